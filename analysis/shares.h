/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where the time of a range went: per process and thread, what the threads waited for, who ended the waits, and who ran
 * instead of them. Read in one pass over each table; rows that straddle the range count in proportion.
 *
 * Ownership: a Shares owns what it counts and points to objects of the Reading, which must outlive it. */
#pragma once

#include "reading.h"

typedef struct SharesWait SharesWait;

/* Who ended the waits of one thread on one resource. */
typedef struct SharesWaker {
        Thread *waiter;
        Resource *resource;
        const char *kind; /* thread, irq, timer, unseen */
        Thread *waker;    /* NULL unless kind is thread */
        uint64_t count, total_ns;
} SharesWaker;

/* The part of the waits of one thread on an epoll or poll set that one watched file ended. */
typedef struct SharesWatched {
        SharesWait *wait;
        Resource *watched; /* NULL: a timeout, a signal, not over yet, or not seen */
        uint64_t count, total_ns;
} SharesWatched;

struct SharesWait {
        Thread *thread;
        Resource *resource;
        const char *op;
        uint64_t count;    /* waits that ended */
        uint64_t total_ns; /* waiting inside the range, also of waits that have not ended */
        uint64_t max_ns;   /* at full length; 0 when none ended */
        uint64_t histogram[STORE_HISTOGRAM_BUCKETS];
        /* Those of its thread and resource (all operations), most waiting first: a slice of Shares.wakers. */
        SharesWaker *const *wakers;
        size_t n_wakers;
        uint64_t wakers_total_ns;
        /* Most waiting first: a slice of Shares.watched. Their sum is total_ns, when there are any. */
        SharesWatched *const *watched;
        size_t n_watched;
};

typedef struct SharesInstead {
        Thread *thread; /* that stood in the run queue */
        Process *process;
        uint64_t total_ns;
} SharesInstead;

typedef struct SharesLoss {
        const char *part, *reason;
        uint64_t count;
} SharesLoss;

typedef struct Shares {
        int64_t start_ns, end_ns;
        ShareTimes times; /* the sum over all threads */

        Process **processes;     /* those with threads first, most active (run + runqueue + block) first */
        Thread **threads;        /* likewise */
        SharesWait **waits;      /* most time first */
        SharesWaker **wakers;    /* by thread and resource, then most time first */
        SharesWatched **watched; /* by wait, in the order of `waits`, then most time first */
        SharesInstead **instead; /* by thread, then most time first */
        SharesLoss *losses;      /* most first */
        size_t n_processes, n_threads, n_waits, n_wakers, n_watched, n_instead, n_losses;
        size_t n_timed_processes, n_timed_threads; /* how many, from the front, have time in the range */
} Shares;

/* A range without rows gives empty arrays. With `histograms` those of the waits are read, too: they are half of what
 * there is to read. Once a Reading: it counts into its objects. */
int shares_read(Reading *r, bool histograms, Shares **ret, char **ret_error);

Shares *shares_free(Shares *s); /* returns NULL */
DEFINE_CLEANUP(Shares *, shares_free);

/* The slice of `instead` that belongs to a thread. */
size_t shares_instead_of(const Shares *s, const Thread *t, SharesInstead *const **ret);
