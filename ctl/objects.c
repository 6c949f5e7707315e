/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads the bus objects of prismd, property by property. */
#include "objects.h"

static void target_done(void *object) {
        Target *t = object;

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

static void recording_done(void *object) {
        Recording *r = object;

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

/* `member` is the whole target: processes have their number beside them. */
static int read_processes(sd_bus_message *m, void *member) {
        Target *t = member;
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

/* A property of an object on the bus, and the member of the structure that it is read into: text into a char *, "u" into a
 * uint32_t, "t" into an int64_t, "b" into a bool. */
typedef struct Property {
        const char *name;
        const char *type; /* NULL: `read` does it */
        size_t offset;
        int (*read)(sd_bus_message *m, void *member);
} Property;

/* What there is to know to read all objects of one kind. */
typedef struct ObjectType {
        const char *list_method, *interface;
        size_t size;
        size_t path_offset; /* of a char * */
        const Property *properties;
        size_t n_properties;
        bool (*is_complete)(const void *object); /* one that is not has gone away while it was read */
        void (*done)(void *object);
} ObjectType;

static int read_property(sd_bus_message *m, const Property *p, void *object) {
        void *member = (char *) object + p->offset;
        union {
                const char *text;
                uint32_t u32;
                uint64_t u64;
                int boolean;
        } value;
        char *copy;
        int r;

        if (!p->type)
                return p->read(m, member);

        r = sd_bus_message_read(m, "v", p->type, &value);
        if (r < 0)
                return r;
        switch (p->type[0]) {
        case 's':
                copy = strdup(value.text);
                if (!copy)
                        return -ENOMEM;
                free(*(char **) member);
                *(char **) member = copy;
                break;
        case 'u':
                *(uint32_t *) member = value.u32;
                break;
        case 't':
                *(int64_t *) member = (int64_t) value.u64;
                break;
        default:
                *(bool *) member = value.boolean;
        }
        return 0;
}

static int read_any_property(sd_bus_message *m, const ObjectType *type, void *object) {
        const char *name;
        int r;

        r = sd_bus_message_read(m, "s", &name);
        if (r < 0)
                return r;
        for (size_t i = 0; i < type->n_properties; i++)
                if (streq(type->properties[i].name, name))
                        return read_property(m, type->properties + i, object);
        return sd_bus_message_skip(m, "v");
}

/* Reads all properties of an object. 0: it has gone away. */
static int read_object(Client *c, const char *path, const ObjectType *type, void *object, char **ret_error) {
        _cleanup_message_ sd_bus_message *m = NULL;
        _cleanup_free_ char *error = NULL;
        int r;

        r = client_get_all(c, path, type->interface, &m, &error);
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
                r = read_any_property(m, type, object);
                if (r < 0)
                        return r;
                r = sd_bus_message_exit_container(m);
                if (r < 0)
                        return r;
        }
        return r < 0 ? r : type->is_complete(object);
}

/* Appends one object to the array at *items, which stays the caller's, also on failure. */
static int append_object(
                Client *c, const char *path, const ObjectType *type, void **items, size_t *n, char **ret_error) {
        void *grown, *object;
        char *copy;
        int r;

        grown = reallocarray(*items, *n + 1, type->size);
        if (!grown)
                return -ENOMEM;
        *items = grown;
        object = (char *) grown + *n * type->size;
        memset(object, 0, type->size);

        copy = strdup(path);
        if (!copy)
                return -ENOMEM;
        *(char **) ((char *) object + type->path_offset) = copy;
        (*n)++;

        r = read_object(c, path, type, object, ret_error);
        if (r == 0) {
                type->done(object);
                (*n)--;
        }
        return r;
}

static int read_objects(Client *c, const ObjectType *type, void **items, size_t *n, char **ret_error) {
        _cleanup_message_ sd_bus_message *m = NULL;
        const char *path;
        int r;

        r = client_call_manager(c, type->list_method, &m, ret_error);
        if (r < 0)
                return r;
        r = sd_bus_message_enter_container(m, 'a', "o");
        if (r < 0)
                return r;

        while ((r = sd_bus_message_read(m, "o", &path)) > 0) {
                r = append_object(c, path, type, items, n, ret_error);
                if (r < 0)
                        return r;
        }
        return r;
}

static bool target_is_complete(const void *object) {
        const Target *t = object;

        return t->name && t->kind && t->follow;
}

int targets_read(Client *c, Targets *ret, char **ret_error) {
        static const Property properties[] = {
                { "Kind", "s", offsetof(Target, kind) },
                { "Name", "s", offsetof(Target, name) },
                { "Follow", "s", offsetof(Target, follow) },
                { "Depth", "u", offsetof(Target, depth) },
                { "Threads", "u", offsetof(Target, threads) },
                { "Processes", NULL, 0, read_processes },
        };
        static const ObjectType type = { "ListTargets", PRISM_INTERFACE_TARGET, sizeof(Target), offsetof(Target, path),
                properties, ELEMENTSOF(properties), target_is_complete, target_done };
        _cleanup_(targets_done) Targets targets = {};
        void *items = NULL;
        int r;

        r = read_objects(c, &type, &items, &targets.n, ret_error);
        targets.items = items;
        if (r < 0)
                return r;

        *ret = targets;
        targets = (Targets){};
        return 0;
}

static bool recording_is_complete(const void *object) {
        const Recording *o = object;

        return o->name && o->state;
}

int recordings_read(Client *c, Recordings *ret, char **ret_error) {
        static const Property properties[] = {
                { "Name", "s", offsetof(Recording, name) },
                { "State", "s", offsetof(Recording, state) },
                { "Calls", "s", offsetof(Recording, calls) },
                { "StartTime", "t", offsetof(Recording, start_ns) },
                { "EndTime", "t", offsetof(Recording, end_ns) },
                { "Pinned", "b", offsetof(Recording, pinned) },
        };
        static const ObjectType type = { "ListRecordings", PRISM_INTERFACE_RECORDING, sizeof(Recording),
                offsetof(Recording, path), properties, ELEMENTSOF(properties), recording_is_complete, recording_done };
        _cleanup_(recordings_done) Recordings recordings = {};
        void *items = NULL;
        int r;

        r = read_objects(c, &type, &items, &recordings.n, ret_error);
        recordings.items = items;
        if (r < 0)
                return r;

        *ret = recordings;
        recordings = (Recordings){};
        return 0;
}
