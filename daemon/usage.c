/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the host used of its disks, and control groups of their limits: rows that hang on no thread's interval. */
#include "collector-internal.h"
#include "describe.h"
#include "disk.h"

typedef struct Usage {
        Collector *collector;
        uint64_t from, until;
} Usage;

static Process *submitter(const struct prism_disk_key *key, const struct prism_disk_value *value, void *userdata) {
        Usage *u = userdata;

        return observed_process(u->collector, key->tgid, key->process_start_ns, value->user_tgid, value->comm);
}

static int emit_disk(const BatchDisk *row, Process *process, Thread *thread, void *userdata) {
        Usage *u = userdata;
        Collector *c = u->collector;
        int r;

        process->used_ns = u->until;
        if (thread)
                thread->used_ns = u->until;
        r = batch_add_disk(c->live, row);
        if (r < 0 || !row_wanted(c, u->from, u->until))
                return r;
        if (thread)
                describe_thread(c->recorded, thread, &c->clock, c->epoch);
        describe_process(c->recorded, process, &c->clock, c->epoch);
        return batch_add_disk(c->recorded, row);
}

int collect_disks(Collector *c, unsigned idle, uint64_t from, uint64_t until) {
        Usage u = { .collector = c, .from = from, .until = until };
        const struct prism_disk_key *keys;
        const struct prism_disk_value *values;
        size_t n;
        int r;

        r = probes_drain_disks(c->probes, idle, &keys, &values, &n);
        if (r < 0)
                return r;
        return disk_collect(keys, values, n, c->registry, c->cgroups, clock_unix(&c->clock, until),
                        (int64_t) (until - from), until, &(DiskHooks){ submitter, emit_disk, &u });
}

static int emit_cgroup(const char *path, uint64_t from, uint64_t until, const CgroupValues *v, void *userdata) {
        Collector *c = userdata;
        BatchCgroupTime row = {
                .ts_ns = clock_unix(&c->clock, until),
                .dt_ns = (int64_t) (until - from),
                .cgroup = path,
                .usage_ns = v->usage_ns,
                .throttled_ns = v->throttled_ns,
                .throttled_periods = v->throttled_periods,
                .memory_bytes = v->memory_bytes,
                .memory_events = v->memory_events,
        };
        int r;

        r = batch_add_cgroup_time(c->live, &row);
        if (r < 0 || !row_wanted(c, from, until))
                return r;
        return batch_add_cgroup_time(c->recorded, &row);
}

int collect_cgroups(Collector *c, uint64_t boundary) {
        unsigned left_out = 0;
        int r;

        cgroup_times_begin(c->cgroup_times);
        for (Process *p = registry_processes(c->registry); p; p = p->hh.next)
                if (p->live_threads > 0 && p->pid &&
                                cgroup_times_process(c->cgroup_times, p->pid, p->identity.start_boot_ns, boundary) ==
                                                -ENOMEM)
                        note_failure(c, -ENOMEM);
        r = cgroup_times_collect(c->cgroup_times, boundary, emit_cgroup, c, &left_out);
        losses_count(&c->losses, "collector", "cgroup-limit", left_out);
        return r;
}
