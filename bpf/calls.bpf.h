/* SPDX-License-Identifier: GPL-2.0-only */
/* Entering something that a thread did into the `call` map of the current generation. */
#ifndef PRISM_CALLS_H
#define PRISM_CALLS_H

#include "maps.bpf.h"

struct call_result {
        __u64 length_ns;
        __u64 bytes;
        __u32 count;
        __u32 errors;
};

/* `file` may be 0: then nothing can be said of the object. False: something found no room, and is counted as lost. */
extern __noinline int call_add(struct thread_state *st, struct prism_resource *resource, __u64 user_address, __u64 file,
                struct call_result *result);

#endif
