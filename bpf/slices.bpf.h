/* SPDX-License-Identifier: GPL-2.0-only */
/* Who ran instead: the last time slices of each CPU, and the walk back over them that a thread makes when it leaves the
 * run queue. The lengths are the scheduler's own, so that remembering a slice needs no clock. */
#ifndef PRISM_SLICES_H
#define PRISM_SLICES_H

#include "identity.bpf.h"

/* How long `task` has had the CPU whose slices these are: 0 if the switch to it was not delivered. */
static __always_inline __u64 slice_length(const struct slices *s, struct task_struct *task) {
        return s->running == (__u64) task ? task->se.sum_exec_runtime - s->running_exec : 0;
}

static __always_inline struct slice *slice_at(struct slices *s, __u32 n) {
        return &s->slice[n & (PRISM_SLICES - 1)];
}

/* Remembers that `prev` just ran on this CPU and that `next` runs now. Switches to idle leave nobody waiting and are not
 * remembered; coming back from idle leaves a mark at which walks stop. */
static __always_inline void slice_push(struct slices *s, struct task_struct *prev, struct task_struct *next) {
        __u64 length = slice_length(s, prev);
        __u32 n = s->next, tgid = prev->pid ? prev->tgid : 0;
        struct slice *last = slice_at(s, n - 1);

        s->running = (__u64) next;
        s->running_exec = next->se.sum_exec_runtime;
        if (next->pid == 0)
                return;
        if (last->tgid == tgid) {
                last->task = (__u64) prev;
                last->length_ns += length;
                return;
        }
        last = slice_at(s, n);
        last->task = (__u64) prev;
        last->tgid = tgid;
        last->length_ns = length;
        s->next = n + 1;
}

/* `st` stands in the queue of this CPU from now on, because it lost it. */
static __always_inline void slice_mark(struct thread_state *st, struct slices *s, __u32 cpu) {
        st->mark_cpu = cpu;
        st->mark_next = s->next;
        st->mark_ns = slice_at(s, s->next - 1)->length_ns;
}

/* The functions below are global, so that the verifier looks at each once and not once for every path that leads to it.
 * Such functions take numbers and map values only: tasks come as addresses, which they read with probes. */

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
        if (KERNEL_READ(task, tgid) == tgid)
                key.process_start_ns = KERNEL_READ(task, group_leader, start_boottime);

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

/* Takes a free place in the row for the process of a task. 0, or -1 if the task is gone. */
__noinline int instead_take(struct prism_instead_inline *place, __u64 task_address, __u32 tgid, __u64 ns) {
        struct task_struct *task = (struct task_struct *) task_address;

        if (!place || KERNEL_READ(task, tgid) != tgid)
                return -1;
        place->process_start_ns = KERNEL_READ(task, group_leader, start_boottime);
        place->user_tgid = user_process_number(task);
        BPF_CORE_READ_STR_INTO(&place->comm, task, group_leader, comm);
        place->tgid = tgid;
        place->total_ns = ns;
        place->task = task_address;
        return 0;
}

/* Charges `ns` to the process of a task. A process that has the number of the thread's own is its own, since it lives; and a
 * task that is where it was and has the same number is the same within one generation. */
static __always_inline bool instead_note(
                struct prism_thread_time *row, __u32 generation, __u64 task, __u32 tgid, __u32 own_tgid, __u64 ns) {
        int i;

        if (tgid == own_tgid) {
                row->own_ns += ns;
                return true;
        }
        for (i = 0; i < PRISM_INLINE_INSTEADS; i++) {
                struct prism_instead_inline *place = &row->insteads[i];

                if (place->task == task && place->tgid == tgid) {
                        place->total_ns += ns;
                        return true;
                }
                if (place->task == 0 && instead_take(place, task, tgid, ns) == 0)
                        return true;
        }
        return instead_add(generation, row->thread, task, tgid, ns) == 0;
}

/* Names who ran on `cpu` during the last `waited` ns, which `st` stood in its queue. A thread that lost the CPU knows where
 * the slices stood then; one that was woken goes back for as long as it waited, at most to its own last slice. Returns how
 * much could be named. */
__noinline __u64 instead_charge(
                struct prism_thread_time *row, struct thread_state *st, __u32 generation, __u32 cpu, __u64 waited) {
        struct slices *s = bpf_map_lookup_elem(&slices, &cpu);
        __u64 named = 0;
        bool marked;
        __u32 n;
        int i;

        if (!s || !row || !st)
                return 0;
        n = s->next;
        marked = st->mark_cpu == cpu;
        for (i = 1; i <= PRISM_SLICES; i++) {
                const struct slice *e = slice_at(s, n - i);
                bool last = marked && n - i + 1 == st->mark_next;
                __u64 ns = e->length_ns;

                if (last)
                        ns = ns > st->mark_ns ? ns - st->mark_ns : 0;
                if (named >= waited || e->tgid == 0 || (!marked && e->task == st->task))
                        break;
                if (ns > waited - named)
                        ns = waited - named;
                if (ns) {
                        if (!instead_note(row, generation, e->task, e->tgid, st->tgid, ns))
                                break;
                        named += ns;
                }
                if (last)
                        break;
        }
        return named;
}

#endif
