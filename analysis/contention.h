/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shares seen from the resources: how many threads waited for each, for how long, and who ended their waits. Pure.
 *
 * Borrows from the Shares that it was made of, which must outlive it. */
#pragma once

#include "shares.h"

typedef struct Contention {
        const Resource *resource;
        const Process *process; /* of all that waited; NULL: they are of several */
        size_t n_threads;       /* that waited */
        uint64_t count, total_ns, max_ns;
        SharesWaker **wakers; /* most waiting first; their `waiter` is NULL: they stand for all of them */
        size_t n_wakers;
        uint64_t wakers_total_ns;
} Contention;

typedef struct Contentions {
        Contention *items; /* most waiting first */
        size_t n;
} Contentions;

int contentions_make(const Shares *s, Contentions *ret);
void contentions_done(Contentions *c);
