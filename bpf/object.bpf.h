/* SPDX-License-Identifier: GPL-2.0-only */
/* What prismd is told of an object: names, addresses and counters that it could not see in time by itself. Written only
 * where an entry of `wait` or `call` is new in its generation, so at most once a second for a thread and object. */
#ifndef PRISM_OBJECT_H
#define PRISM_OBJECT_H

#include "file.bpf.h"

/* Kinds of which the kernel side can say more than their identity. */
static __always_inline bool is_described(__u32 kind) {
        switch (kind) {
        case PRISM_KIND_FUTEX:
        case PRISM_KIND_TIMER:
        case PRISM_KIND_CHILD:
        case PRISM_KIND_SIGNAL:
        case PRISM_KIND_KERNEL_LOCK:
        case PRISM_KIND_RECLAIM:
        case PRISM_KIND_AIO:
        case PRISM_KIND_OTHER:
                return false;
        }
        return true;
}

/* `file` is the address that led to *key; it may have been closed and used again since: what it is now is compared. `st` is
 * the thread's, for which `descriptor` is the file. 0: there was no room. */
extern __noinline int object_describe(
                __u32 scratch, struct prism_object_key *key, __u64 file, struct thread_state *st, int descriptor);

#endif
