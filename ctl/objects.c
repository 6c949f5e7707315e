/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads the bus objects of prismd, property by property. */
#include "objects.h"

static void target_done(Target *t) {
        for (size_t i = 0; i < t->n_processes; i++) {
                free(t->processes[i].comm);
                free(t->processes[i].found_by);
        }
        free(t->processes);
        free(t->path);
        free(t->kind);
        free(t->name);
        free(t->follow);
}

void targets_done(Targets *t) {
        for (size_t i = 0; i < t->n; i++)
                target_done(t->items + i);
        free(t->items);
        *t = (Targets){};
}

static void recording_done(Recording *r) {
        free(r->path);
        free(r->name);
        free(r->state);
        free(r->calls);
}

void recordings_done(Recordings *r) {
        for (size_t i = 0; i < r->n; i++)
                recording_done(r->items + i);
        free(r->items);
        *r = (Recordings){};
}

const Target *targets_find(const Targets *t, const char *name) {
        for (size_t i = 0; i < t->n; i++)
                if (streq(t->items[i].name, name))
                        return t->items + i;
        return NULL;
}

const Recording *recordings_find(const Recordings *r, const char *name) {
        for (size_t i = 0; i < r->n; i++)
                if (streq(r->items[i].name, name))
                        return r->items + i;
        return NULL;
}

/* Reads the variant at the cursor as text, instead of what *text held. */
static int read_text(sd_bus_message *m, char **text) {
        const char *s;
        char *copy;
        int r;

        r = sd_bus_message_read(m, "v", "s", &s);
        if (r < 0)
                return r;
        copy = strdup(s);
        if (!copy)
                return -ENOMEM;
        free(*text);
        *text = copy;
        return 0;
}

static int read_processes(sd_bus_message *m, Target *t) {
        size_t capacity = t->n_processes;
        const char *comm, *found_by;
        uint32_t pid, threads;
        int r;

        r = sd_bus_message_enter_container(m, 'v', "a(ussu)");
        if (r < 0)
                return r;
        r = sd_bus_message_enter_container(m, 'a', "(ussu)");
        if (r < 0)
                return r;

        while ((r = sd_bus_message_read(m, "(ussu)", &pid, &comm, &found_by, &threads)) > 0) {
                TargetProcess *p;

                if (GROW(t->processes, t->n_processes, capacity) < 0)
                        return -ENOMEM;
                p = t->processes + t->n_processes++;
                *p = (TargetProcess){
                        .pid = pid, .threads = threads, .comm = strdup(comm), .found_by = strdup(found_by)
                };
                if (!p->comm || !p->found_by)
                        return -ENOMEM;
        }
        if (r < 0)
                return r;

        r = sd_bus_message_exit_container(m);
        if (r < 0)
                return r;
        return sd_bus_message_exit_container(m);
}

static int read_target_property(sd_bus_message *m, const char *property, void *object) {
        Target *t = object;

        if (streq(property, "Kind"))
                return read_text(m, &t->kind);
        if (streq(property, "Name"))
                return read_text(m, &t->name);
        if (streq(property, "Follow"))
                return read_text(m, &t->follow);
        if (streq(property, "Depth"))
                return sd_bus_message_read(m, "v", "u", &t->depth);
        if (streq(property, "Threads"))
                return sd_bus_message_read(m, "v", "u", &t->threads);
        if (streq(property, "Processes"))
                return read_processes(m, t);
        return sd_bus_message_skip(m, "v");
}

static int read_recording_property(sd_bus_message *m, const char *property, void *object) {
        Recording *o = object;
        uint64_t time;
        int pinned, r;

        if (streq(property, "Name"))
                return read_text(m, &o->name);
        if (streq(property, "State"))
                return read_text(m, &o->state);
        if (streq(property, "Calls"))
                return read_text(m, &o->calls);
        if (streq(property, "Pinned")) {
                r = sd_bus_message_read(m, "v", "b", &pinned);
                if (r >= 0)
                        o->pinned = pinned;
                return r;
        }
        if (streq(property, "StartTime") || streq(property, "EndTime")) {
                r = sd_bus_message_read(m, "v", "t", &time);
                if (r >= 0)
                        *(property[0] == 'S' ? &o->start_ns : &o->end_ns) = (int64_t) time;
                return r;
        }
        return sd_bus_message_skip(m, "v");
}

/* Reads all properties of an object. 0: it has gone away. */
static int read_object(Client *c, const char *path, const char *interface,
                int (*read_property)(sd_bus_message *m, const char *property, void *object), void *object,
                char **ret_error) {
        _cleanup_message_ sd_bus_message *m = NULL;
        _cleanup_free_ char *error = NULL;
        int r;

        r = client_get_all(c, path, interface, &m, &error);
        if (r == -ENOENT)
                return 0;
        if (r < 0) {
                if (ret_error)
                        *ret_error = TAKE_PTR(error);
                return r;
        }

        r = sd_bus_message_enter_container(m, 'a', "{sv}");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                const char *property;

                r = sd_bus_message_read(m, "s", &property);
                if (r < 0)
                        return r;
                r = read_property(m, property, object);
                if (r < 0)
                        return r;
                r = sd_bus_message_exit_container(m);
                if (r < 0)
                        return r;
        }
        return r < 0 ? r : 1;
}

int targets_read(Client *c, Targets *ret, char **ret_error) {
        _cleanup_message_ sd_bus_message *m = NULL;
        _cleanup_(targets_done) Targets targets = {};
        size_t capacity = 0;
        const char *path;
        int r;

        r = client_call_manager(c, "ListTargets", &m, ret_error);
        if (r < 0)
                return r;
        r = sd_bus_message_enter_container(m, 'a', "o");
        if (r < 0)
                return r;

        while ((r = sd_bus_message_read(m, "o", &path)) > 0) {
                Target *t;

                if (GROW(targets.items, targets.n, capacity) < 0)
                        return -ENOMEM;
                t = targets.items + targets.n++;
                *t = (Target){ .path = strdup(path) };
                if (!t->path)
                        return -ENOMEM;

                r = read_object(c, path, PRISM_INTERFACE_TARGET, read_target_property, t, ret_error);
                if (r < 0)
                        return r;
                if (r == 0 || !t->name || !t->kind || !t->follow)
                        target_done(targets.items + --targets.n);
        }
        if (r < 0)
                return r;

        *ret = targets;
        targets = (Targets){};
        return 0;
}

int recordings_read(Client *c, Recordings *ret, char **ret_error) {
        _cleanup_message_ sd_bus_message *m = NULL;
        _cleanup_(recordings_done) Recordings recordings = {};
        size_t capacity = 0;
        const char *path;
        int r;

        r = client_call_manager(c, "ListRecordings", &m, ret_error);
        if (r < 0)
                return r;
        r = sd_bus_message_enter_container(m, 'a', "o");
        if (r < 0)
                return r;

        while ((r = sd_bus_message_read(m, "o", &path)) > 0) {
                Recording *o;

                if (GROW(recordings.items, recordings.n, capacity) < 0)
                        return -ENOMEM;
                o = recordings.items + recordings.n++;
                *o = (Recording){ .path = strdup(path) };
                if (!o->path)
                        return -ENOMEM;

                r = read_object(c, path, PRISM_INTERFACE_RECORDING, read_recording_property, o, ret_error);
                if (r < 0)
                        return r;
                if (r == 0 || !o->name || !o->state)
                        recording_done(recordings.items + --recordings.n);
        }
        if (r < 0)
                return r;

        *ret = recordings;
        recordings = (Recordings){};
        return 0;
}
