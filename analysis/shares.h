/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where the time of a range went: per process and thread, what the threads waited for, who ended the waits, and who ran
 * instead of them. Read in one pass over each table; rows that straddle the range count in proportion.
 *
 * Ownership: a Shares owns all that hangs on it; pointers between its objects stay valid until shares_free(). Its text
 * is as the store holds it: escape it before showing it. */
#pragma once

#include "store/store.h"

typedef struct ShareTimes {
        uint64_t total_ns; /* tracked time inside the range */
        uint64_t run_ns, runqueue_ns, sleep_ns, block_ns;
        uint64_t iowait_ns, throttled_ns, healed_ns; /* parts of the above */
        uint64_t switches, preemptions;
} ShareTimes;

typedef struct SharesMachine {
        int64_t id;
        unsigned cpus;
        char *hostname, *kernel;
} SharesMachine;

typedef struct SharesProcess {
        int64_t id, machine_id;
        int64_t pid, host_pid;
        char *comm;
        char *cmdline, *unit, *target; /* each may be NULL */
        size_t n_threads; /* with time in the range; 0: it is only named, as a waker or as who ran instead */
        ShareTimes times; /* the sum over its threads */
} SharesProcess;

typedef struct SharesWait SharesWait;

typedef struct SharesThread {
        int64_t id;
        int64_t tid, host_tid;
        char *comm;
        SharesProcess *process;
        ShareTimes times;     /* total_ns 0: it is only named, as a waker */
        uint64_t waited_ns;   /* sum of its waits: sleep + block, when all is well */
        uint64_t instead_ns;  /* sum of what is said about its run queue time, the unnamed part too: runqueue_ns, when
                                 all is well */
        uint64_t unnamed_ns;  /* part of instead_ns for which no process is named */
        SharesWait *top_wait; /* the one with the most time, or NULL */
} SharesThread;

typedef struct SharesResource {
        int64_t id;
        char *kind, *ident;
        char *name; /* may be NULL */
} SharesResource;

/* Who ended the waits of one thread on one resource. */
typedef struct SharesWaker {
        SharesThread *waiter;
        SharesResource *resource;
        const char *kind;    /* thread, irq, timer, unseen */
        SharesThread *waker; /* NULL unless kind is thread */
        uint64_t count, total_ns;
} SharesWaker;

struct SharesWait {
        SharesThread *thread;
        SharesResource *resource;
        const char *op;
        uint64_t count;    /* waits that ended */
        uint64_t total_ns; /* waiting inside the range, also of waits that have not ended */
        uint64_t max_ns;   /* at full length; 0 when none ended */
        uint64_t histogram[STORE_HISTOGRAM_BUCKETS];
        /* Those of its thread and resource (all operations), most waiting first: a slice of Shares.wakers. */
        SharesWaker *const *wakers;
        size_t n_wakers;
        uint64_t wakers_total_ns;
};

typedef struct SharesInstead {
        SharesThread *thread; /* that stood in the run queue */
        SharesProcess *process;
        uint64_t total_ns;
} SharesInstead;

typedef struct SharesLoss {
        char *part, *reason;
        uint64_t count;
} SharesLoss;

typedef struct Shares {
        int64_t start_ns, end_ns;
        ShareTimes times; /* the sum over all threads */

        SharesMachine **machines;
        SharesProcess **processes; /* those with threads first, most active (run + runqueue + block) first */
        SharesThread **threads;    /* likewise */
        SharesResource **resources;
        SharesWait **waits;      /* most time first */
        SharesWaker **wakers;    /* by thread and resource, then most time first */
        SharesInstead **instead; /* by thread, then most time first */
        SharesLoss **losses;
        size_t n_machines, n_processes, n_threads, n_resources, n_waits, n_wakers, n_instead, n_losses;
        size_t n_timed_processes, n_timed_threads; /* how many, from the front, have time in the range */

        char **words; /* kinds and operations */
        size_t n_words;
} Shares;

typedef struct SharesOptions {
        bool histograms;    /* read those of the waits, too: they are half of what there is to read */
        const char *target; /* only threads of processes that this target brought in; NULL: all */
} SharesOptions;

/* Reads in one read transaction. A range without rows gives empty arrays. */
int shares_read(Store *s, int64_t start_ns, int64_t end_ns, const SharesOptions *options, Shares **ret,
                char **ret_error);

Shares *shares_free(Shares *s); /* returns NULL */
DEFINE_CLEANUP(Shares *, shares_free);

/* The slice of `instead` that belongs to a thread. */
size_t shares_instead_of(const Shares *s, const SharesThread *t, SharesInstead *const **ret);

void share_times_add(ShareTimes *sum, const ShareTimes *t);

/* What makes a thread interesting: the time in which it did or wanted something. */
static inline uint64_t share_times_active(const ShareTimes *t) {
        return t->run_ns + t->runqueue_ns + t->block_ns;
}
