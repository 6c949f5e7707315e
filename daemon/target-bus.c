/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Targets on the bus: /org/prism/Prism1/target/NUMBER */
#include "../dbus/names.h"
#include "basic/parse.h"
#include "basic/text.h"
#include "manager-bus.h"
#include "names.h"

char *target_path(const Target *t) {
        char *path;

        return asprintf(&path, PRISM_TARGET_PREFIX "/%u", t->number) < 0 ? NULL : path;
}

int target_find(sd_bus *bus, const char *path, const char *interface, void *userdata, void **ret_found,
                sd_bus_error *error) {
        const char *number = startswith(path, PRISM_TARGET_PREFIX "/");
        Manager *m = userdata;
        uint64_t n;
        Target *t;

        if (!number || parse_u64(number, UINT32_MAX, &n) < 0)
                return 0;
        t = manager_target(m, (uint32_t) n);
        if (!t)
                return 0;
        *ret_found = t;
        return 1;
}

int target_enumerate(sd_bus *bus, const char *prefix, void *userdata, char ***ret_paths, sd_bus_error *error) {
        Manager *m = userdata;
        char **paths;
        size_t n = 0;

        paths = calloc(m->n_targets + 1, sizeof(*paths));
        if (!paths)
                return -ENOMEM;
        for (Target *t = m->targets; t; t = t->next) {
                paths[n] = target_path(t);
                if (paths[n])
                        n++;
        }
        *ret_paths = paths;
        return 1;
}

static int get_kind(sd_bus *bus, const char *path, const char *interface, const char *property, sd_bus_message *reply,
                void *userdata, sd_bus_error *error) {
        Target *t = userdata;

        return sd_bus_message_append(reply, "s", target_kind_name(t->kind));
}

static int get_follow(sd_bus *bus, const char *path, const char *interface, const char *property, sd_bus_message *reply,
                void *userdata, sd_bus_error *error) {
        Target *t = userdata;

        return sd_bus_message_append(reply, "s", follow_name(t->follow));
}

static int get_processes(sd_bus *bus, const char *path, const char *interface, const char *property,
                sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        Target *t = userdata;
        int r;

        r = sd_bus_message_open_container(reply, 'a', "(ussu)");
        for (Process *p = registry_processes(collector_registry(t->manager->collector)); p && r >= 0; p = p->hh.next) {
                _cleanup_free_ char *comm = NULL;

                if (p->live_threads == 0 || !process_in_target(p, t->number))
                        continue;
                comm = text_to_utf8(p->comm); /* a string on the bus must be valid */
                if (!comm)
                        return -ENOMEM;
                r = sd_bus_message_append(reply, "(ussu)", p->pid, comm, p->found_by, p->live_threads);
        }
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int get_threads(sd_bus *bus, const char *path, const char *interface, const char *property,
                sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        Target *t = userdata;
        uint32_t n = 0;

        for (Process *p = registry_processes(collector_registry(t->manager->collector)); p; p = p->hh.next)
                if (process_in_target(p, t->number))
                        n += p->live_threads;
        return sd_bus_message_append(reply, "u", n);
}

const sd_bus_vtable target_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("Kind", "s", get_kind, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Name", "s", NULL, offsetof(Target, name), SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Follow", "s", get_follow, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Depth", "u", NULL, offsetof(Target, depth), SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Processes", "a(ussu)", get_processes, 0, 0),
        SD_BUS_PROPERTY("Threads", "u", get_threads, 0, 0),
        SD_BUS_VTABLE_END,
};
