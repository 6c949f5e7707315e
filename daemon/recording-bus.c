/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Recordings on the bus: /org/prism/Prism1/recording/NUMBER */
#include "../dbus/names.h"
#include "basic/parse.h"
#include "manager-bus.h"

char *recording_path(const Recording *recording) {
        char *path;

        return asprintf(&path, PRISM_RECORDING_PREFIX "/%llu", (unsigned long long) recording->number) < 0 ? NULL
                                                                                                           : path;
}

int recording_find(sd_bus *bus, const char *path, const char *interface, void *userdata, void **ret_found,
                sd_bus_error *error) {
        const char *number = startswith(path, PRISM_RECORDING_PREFIX "/");
        Recording *recording;
        Manager *m = userdata;
        uint64_t n;

        if (!number || parse_u64(number, UINT64_MAX, &n) < 0)
                return 0;
        recording = recorder_by_number(m->recorder, n);
        /* Until the store has it, it does not exist for clients. */
        if (!recording || recording->id == 0)
                return 0;
        *ret_found = recording;
        return 1;
}

int recording_enumerate(sd_bus *bus, const char *prefix, void *userdata, char ***ret_paths, sd_bus_error *error) {
        Manager *m = userdata;
        char **paths;
        size_t n = 0;

        for (Recording *recording = recorder_recordings(m->recorder); recording; recording = recording->next)
                n++;
        paths = calloc(n + 1, sizeof(*paths));
        if (!paths)
                return -ENOMEM;
        n = 0;
        for (Recording *recording = recorder_recordings(m->recorder); recording; recording = recording->next) {
                if (recording->id == 0)
                        continue;
                paths[n] = recording_path(recording);
                if (paths[n])
                        n++;
        }
        *ret_paths = paths;
        return 1;
}

static int get_state(sd_bus *bus, const char *path, const char *interface, const char *property, sd_bus_message *reply,
                void *userdata, sd_bus_error *error) {
        Recording *recording = userdata;

        return sd_bus_message_append(reply, "s", recording_state_name(recording->state));
}

static int get_end_time(sd_bus *bus, const char *path, const char *interface, const char *property,
                sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        Recording *recording = userdata;

        return sd_bus_message_append(
                        reply, "t", recording->state <= RECORDING_ENDING ? UINT64_C(0) : (uint64_t) recording->end_ns);
}

static int get_pinned(sd_bus *bus, const char *path, const char *interface, const char *property, sd_bus_message *reply,
                void *userdata, sd_bus_error *error) {
        Recording *recording = userdata;

        return sd_bus_message_append(reply, "b", recording->pinned);
}

const sd_bus_vtable recording_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("Name", "s", NULL, offsetof(Recording, name), SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("State", "s", get_state, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("StartTime", "t", NULL, offsetof(Recording, start_ns), SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("EndTime", "t", get_end_time, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("Calls", "s", NULL, offsetof(Recording, calls), SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Pinned", "b", get_pinned, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_VTABLE_END,
};
