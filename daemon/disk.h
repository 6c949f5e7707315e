/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Rows of block requests from what the kernel side has summed up: names for its numbers. */
#pragma once

#include "batch.h"
#include "cgroup.h"
#include "registry.h"

/* A constant: read, write, flush, discard, other. */
const char *disk_op_name(unsigned op);

typedef struct DiskHooks {
        /* The process that submitted, entered if it is not known; NULL if it cannot be, which is counted there. Asked
         * where no tracked thread is known to have submitted. */
        Process *(*process)(const struct prism_disk_key *key, const struct prism_disk_value *value, void *userdata);
        /* `thread` is NULL if it is not tracked; all that *row points to is valid during the call only. */
        int (*emit)(const BatchDisk *row, Process *process, Thread *thread, void *userdata);
        void *userdata;
} DiskHooks;

/* One row an entry: two that name the same process, thread and group are added up by the store. A group whose path
 * is not known is called "id:" and its number. Stops at the first negative return of `emit`, which it returns. */
int disk_collect(const struct prism_disk_key *keys, const struct prism_disk_value *values, size_t n, Registry *registry,
                CgroupNames *cgroups, int64_t ts_ns, int64_t dt_ns, uint64_t now_ns, const DiskHooks *hooks);
