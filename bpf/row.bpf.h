/* SPDX-License-Identifier: GPL-2.0-only */
/* A thread's row in the current generation of `thread_time`: finding it, and opening it at the first charge. */
#ifndef PRISM_ROW_H
#define PRISM_ROW_H

#include "maps.bpf.h"

static __always_inline __u32 histogram_bucket(__u64 ns) {
        return ns <= 1000ULL                  ? 0
                        : ns <= 10000ULL      ? 1
                        : ns <= 100000ULL     ? 2
                        : ns <= 1000000ULL    ? 3
                        : ns <= 10000000ULL   ? 4
                        : ns <= 100000000ULL  ? 5
                        : ns <= 1000000000ULL ? 6
                                              : 7;
}

static __always_inline struct prism_thread_time *time_row(__u32 generation, __u32 slot) {
        __u32 index = generation * settings.thread_slots + slot;

        return bpf_map_lookup_elem(&thread_time, &index);
}

static __always_inline __u32 current_generation(void) {
        __u32 generation = READ_ONCE(control.generation) & 1;

        /* The clock is read after this: see struct prism_control. */
        barrier();
        return generation;
}

/* Whether the sleep that the thread is in has been ended by a wake. */
static __always_inline bool was_woken(const struct thread_state *st) {
        return READ_ONCE(st->wake_ns) >= st->since_ns;
}

/* Opens the thread's row in this generation, and splits off what came before the generation if it is long or was
 * already written out. Returns from when on the current state counts into the row. */
static __always_inline __u64 row_open(struct prism_thread_time *row, const struct thread_state *st, __u32 generation) {
        __u64 start = control.generation_start_ns[generation & 1];
        __u64 from = st->since_ns;

        if (row->thread != st->thread) {
                row->thread = st->thread;
                row->from_ns = from;
        }
        if (from < start && (from < control.flush_ns || start - from > PRISM_LONG_STATE_NS)) {
                row->lead_from_ns = from;
                row->lead_until_ns = start;
                row->lead_wake_ns = start;
                if (st->state >= PRISM_STATE_SLEEP && was_woken(st) && st->wake_ns < start)
                        row->lead_wake_ns = st->wake_ns;
                row->lead_resource = st->resource;
                row->lead_user_address = st->user_address;
                row->lead_state = st->state;
                row->lead_iowait = st->iowait;
                row->lead_throttled = st->throttled;
                row->from_ns = start;
                from = start;
        }
        return from;
}

#endif
