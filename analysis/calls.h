/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* System calls of a range by thread, operation and resource, blocking or not. Counted only while the calls tier was on: what
 * stands here is what was seen, and coverage_scale() makes numbers for the whole range of it. Borrows from its Reading. */
#pragma once

#include "coverage.h"

#define CALLS_PART "calls"

typedef struct Call {
        Thread *thread;
        Resource *resource;
        const char *op;
        uint64_t count, errors, bytes, total_ns;
        uint64_t max_ns;
        uint64_t histogram[STORE_HISTOGRAM_BUCKETS];
} Call;

typedef struct Calls {
        Coverage coverage;
        Call **items; /* most time first */
        size_t n;
} Calls;

/* Of how much of the range this was seen: reclaim and what io_uring is given are counted also while the calls tier is off. */
Coverage call_coverage(const Calls *calls, const Call *c);

int calls_read(Reading *r, bool histograms, Calls *ret, char **ret_error);
void calls_done(Calls *c);
