/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "disk.h"

#include <assert.h>

static_assert(PRISM_HISTOGRAM_BUCKETS == STORE_HISTOGRAM_BUCKETS, "histograms of both sides are the same");

const char *disk_op_name(unsigned op) {
        static const char *const names[_PRISM_DISK_MAX] = {
                [PRISM_DISK_READ] = "read",
                [PRISM_DISK_WRITE] = "write",
                [PRISM_DISK_FLUSH] = "flush",
                [PRISM_DISK_DISCARD] = "discard",
                [PRISM_DISK_OTHER] = "other",
        };

        return op < _PRISM_DISK_MAX ? names[op] : "other";
}

int disk_collect(const struct prism_disk_key *keys, const struct prism_disk_value *values, size_t n, Registry *registry,
                CgroupNames *cgroups, int64_t ts_ns, int64_t dt_ns, uint64_t now_ns, const DiskHooks *hooks) {
        for (size_t i = 0; i < n; i++) {
                const struct prism_disk_key *key = &keys[i];
                const struct prism_disk_value *value = &values[i];
                Thread *thread = key->thread ? registry_thread_by_handle(registry, key->thread) : NULL;
                Process *process = thread ? thread->process : hooks->process(key, value, hooks->userdata);
                char number[sizeof("id:18446744073709551615")];
                BatchDisk row;
                int r;

                if (!process)
                        continue;
                row = (BatchDisk){
                        .ts_ns = ts_ns,
                        .dt_ns = dt_ns,
                        .device = key->device,
                        .partition = key->partition,
                        .process_key = process->key,
                        .thread_key = thread ? thread->key : 0,
                        .op = disk_op_name(key->op),
                        .requests = value->requests,
                        .sectors = value->sectors,
                        .total_ns = value->total_ns,
                        .max_ns = value->max_ns,
                };
                memcpy(row.histogram, value->histogram, sizeof(row.histogram));
                if (key->cgroup) {
                        row.cgroup = cgroup_names_find(cgroups, key->cgroup, now_ns);
                        if (!row.cgroup) {
                                snprintf(number, sizeof(number), "id:%llu", key->cgroup);
                                row.cgroup = number;
                        }
                }
                r = hooks->emit(&row, process, thread, hooks->userdata);
                if (r < 0)
                        return r;
        }
        return 0;
}
