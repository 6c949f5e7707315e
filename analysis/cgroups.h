/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How the limits of control groups acted in a range. Borrows from its Reading. */
#pragma once

#include "reading.h"

typedef struct Cgroup {
        const char *cgroup;
        uint64_t length_ns; /* of the range, for which there are rows */
        uint64_t usage_ns, throttled_ns, throttled_periods;
        uint64_t memory_bytes; /* the most that was seen */
        uint64_t memory_events;
        bool knows_cpu, knows_throttling, knows_memory, knows_events; /* some row has the number */
} Cgroup;

typedef struct Cgroups {
        Cgroup **items; /* most throttled first */
        size_t n;
} Cgroups;

int cgroups_read(Reading *r, Cgroups *ret, char **ret_error);
void cgroups_done(Cgroups *c);

/* Whether a limit held it up. */
static inline bool cgroup_was_limited(const Cgroup *c) {
        return c->throttled_ns > 0 || c->throttled_periods > 0 || c->memory_events > 0;
}
