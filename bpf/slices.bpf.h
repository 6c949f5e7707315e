/* SPDX-License-Identifier: GPL-2.0-only */
/* Who ran instead: the last time slices of each CPU, and the walk back over them that a thread makes when it leaves the
 * run queue. The lengths are the scheduler's own, so that remembering a slice needs no clock. */
#ifndef PRISM_SLICES_H
#define PRISM_SLICES_H

#include "identity.bpf.h"

/* How long `task` has had the CPU whose slices these are: 0 if the switch to it was not delivered. */
static __always_inline __u32 slice_length(const struct slices *s, struct task_struct *task) {
        __u64 length = task->se.sum_exec_runtime - s->running_exec;

        if (s->running != (__u64) task)
                return 0;
        return length > 0xffffffff ? 0xffffffff : length;
}

/* Remembers that `prev` just ran on this CPU and that `next` runs now. Switches to idle leave nobody waiting and are not
 * remembered; coming back from idle leaves a mark at which walks stop. */
static __always_inline void slice_push(struct slices *s, struct task_struct *prev, struct task_struct *next) {
        __u32 n = s->next, length = slice_length(s, prev);

        s->running = (__u64) next;
        s->running_exec = next->se.sum_exec_runtime;
        if (next->pid == 0)
                return;
        if (prev->pid == 0) {
                if (s->slice[(n - 1) & (PRISM_SLICES - 1)].tgid == 0)
                        return;
                s->slice[n & (PRISM_SLICES - 1)].tgid = 0;
        } else {
                s->slice[n & (PRISM_SLICES - 1)].task = (__u64) prev;
                s->slice[n & (PRISM_SLICES - 1)].tgid = prev->tgid;
                s->slice[n & (PRISM_SLICES - 1)].length_ns = length;
        }
        s->next = n + 1;
}

/* The two functions below are global, so that the verifier looks at each once and not once for every path that leads to
 * it. Such functions take numbers only: tasks come as addresses, which they read with probes. */

/* 0, or -1 when there was no room (counted). */
__noinline int instead_add(__u32 generation, __u64 thread, __u64 task_address, __u32 tgid, __u64 ns) {
        void *map = bpf_map_lookup_elem(&instead_generations, &generation);
        struct task_struct *task = (struct task_struct *) task_address;
        struct prism_instead_key key = {};
        struct prism_instead_value *value;
        struct prism_instead_value fresh = {};
        int r;

        if (!map)
                return -1;
        key.thread = thread;
        key.tgid = tgid;
        /* A task that is gone may have left its memory to another: then the number does not fit any more. */
        if (BPF_CORE_READ(task, tgid) == tgid)
                key.process_start_ns = BPF_CORE_READ(task, group_leader, start_boottime);

        value = bpf_map_lookup_elem(map, &key);
        if (value) {
                value->total_ns += ns;
                return 0;
        }

        fresh.total_ns = ns;
        if (key.process_start_ns) {
                fresh.user_tgid = user_process_number(task);
                BPF_CORE_READ_STR_INTO(&fresh.comm, task, group_leader, comm);
        }
        r = bpf_map_update_elem(map, &key, &fresh, BPF_NOEXIST);
        if (r == 0)
                return 0;
        count_loss(r == -E2BIG ? PRISM_LOSS_INSTEAD_FULL : PRISM_LOSS_INSTEAD_BUSY);
        return -1;
}

/* Names who ran on `cpu` during the last `waited` ns; `self`, the address of the thread's task, ends the walk: before
 * that, it had the CPU itself. Returns how much could be named. */
__noinline __u64 instead_charge(__u32 generation, __u64 thread, __u64 self, __u32 cpu, __u64 waited) {
        struct slices *s = bpf_map_lookup_elem(&slices, &cpu);
        __u64 named = 0;
        __u32 n;
        int i;

        if (!s)
                return 0;
        n = s->next;
        for (i = 1; i <= PRISM_SLICES; i++) {
                const struct slice *e = &s->slice[(n - i) & (PRISM_SLICES - 1)];
                __u64 ns = e->length_ns;

                if (named >= waited || e->tgid == 0 || e->task == self)
                        break;
                if (ns > waited - named)
                        ns = waited - named;
                if (ns == 0)
                        continue;
                if (instead_add(generation, thread, e->task, e->tgid, ns) != 0)
                        break;
                named += ns;
        }
        return named;
}

#endif
