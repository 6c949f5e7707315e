/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The bus side of the manager: vtables, and the signals that tell clients of changes. What the names mean stands in
 * dbus/org.prism.Prism1.xml. */
#pragma once

#include "manager.h"

/* Puts all objects on a connection. */
int manager_bus_install(Manager *m, sd_bus *bus);

void manager_bus_process(Manager *m, const Target *t, const Process *p, bool found);
void manager_bus_loss(Manager *m, const char *part, const char *reason, uint64_t count);
void manager_bus_target_added(Manager *m, Target *t);
void manager_bus_target_removed(Manager *m, Target *t);
void manager_bus_recording_changed(Manager *m, Recording *recording);
void manager_bus_recording_removed(Manager *m, Recording *recording);

/* Reads options (a{sv}) by a table: unknown keys and wrong types are InvalidArgs. A key is looked up in `entries`. */
typedef struct BusOption {
        const char *key;
        char type;   /* 's', 'u' or 't' */
        void *value; /* const char **, uint32_t *, uint64_t * */
} BusOption;
int bus_read_options(sd_bus_message *message, const BusOption *entries, size_t n, sd_bus_error *error);

/* target-bus.c, recording-bus.c */
extern const sd_bus_vtable target_vtable[];
extern const sd_bus_vtable recording_vtable[];
char *target_path(const Target *t);
char *recording_path(const Recording *recording);
int target_find(sd_bus *bus, const char *path, const char *interface, void *userdata, void **ret_found,
                sd_bus_error *error);
int recording_find(sd_bus *bus, const char *path, const char *interface, void *userdata, void **ret_found,
                sd_bus_error *error);
int target_enumerate(sd_bus *bus, const char *prefix, void *userdata, char ***ret_paths, sd_bus_error *error);
int recording_enumerate(sd_bus *bus, const char *prefix, void *userdata, char ***ret_paths, sd_bus_error *error);
