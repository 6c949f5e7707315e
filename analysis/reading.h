/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One view of a store over a range, on which the analyses of this folder stand: a read transaction, so that they all see
 * the same rows while prismd goes on writing, and the machines, processes, threads and resources that these rows name.
 *
 * Ownership: a Reading owns these objects; what an analysis returns points to them, so free it before the Reading. Their
 * text is as the store holds it: escape it before showing it. One thread at a time. */
#pragma once

#include "statement.h"
#include "tally.h"

typedef struct ShareTimes {
        uint64_t total_ns; /* tracked time inside the range */
        uint64_t run_ns, runqueue_ns, sleep_ns, block_ns;
        uint64_t iowait_ns, throttled_ns, healed_ns; /* parts of the above */
        uint64_t switches, preemptions;
} ShareTimes;

typedef struct Machine {
        int64_t id;
        unsigned cpus;
        char *hostname, *kernel;
} Machine;

typedef struct Process {
        int64_t id, machine_id;
        int64_t pid, host_pid;
        char *comm;
        char *cmdline, *unit, *target; /* each may be NULL */
        bool is_kernel;                /* a kernel thread */

        /* Counted by shares_read(). */
        size_t n_threads; /* with time in the range; 0: it is only named, as a waker or as who ran instead */
        ShareTimes times; /* the sum over its threads */
} Process;

typedef struct Thread {
        int64_t id;
        int64_t tid, host_tid;
        char *comm;
        Process *process;

        /* Counted by shares_read(). */
        ShareTimes times;            /* total_ns 0: it is only named, as a waker */
        uint64_t waited_ns;          /* sum of its waits: sleep + block, when all is well */
        uint64_t instead_ns;         /* sum of what is said about its run queue time, the unnamed part too: runqueue_ns,
                                        when all is well */
        uint64_t unnamed_ns;         /* part of instead_ns for which no process is named */
        struct SharesWait *top_wait; /* the one with the most time, or NULL */
} Thread;

typedef struct Resource {
        int64_t id;
        char *kind, *ident;
        char *name; /* may be NULL */
} Resource;

typedef struct Reading {
        Store *store;
        int64_t start_ns, end_ns;
        const char *target; /* borrowed; only threads of processes that it brought in; NULL: all */

        Tally machines, processes, threads, resources;
        char **words;
        size_t n_words, c_words;

        /* While the transaction is open. */
        bool is_open;
        sqlite3_stmt *describe_machine, *describe_process, *describe_thread, *describe_resource;
        Thread *last_thread;
} Reading;

int reading_begin(Store *s, int64_t start_ns, int64_t end_ns, const char *target, Reading **ret, char **ret_error);
/* Ends the transaction: nothing more can be read, all that was read stays. */
void reading_end(Reading *r);
Reading *reading_free(Reading *r); /* returns NULL */
DEFINE_CLEANUP(Reading *, reading_free);

/* The object with that id, described by the store when it is asked for the first time. One that the store does not
 * describe has "?" for its names. */
int reading_process(Reading *r, int64_t id, Process **ret, char **ret_error);
int reading_thread(Reading *r, int64_t id, Thread **ret, char **ret_error);
int reading_resource(Reading *r, int64_t id, Resource **ret, char **ret_error);

/* Whether an analysis has met that resource already. */
bool reading_knows_resource(Reading *r, int64_t id);

/* Whether the thread belongs to the target. */
bool reading_wants(const Reading *r, const Thread *t);

/* Equal words become one pointer, which lives as long as the Reading. NULL is "". */
int reading_word(Reading *r, const char *word, const char **ret);

void share_times_add(ShareTimes *sum, const ShareTimes *t);

/* What makes a thread interesting: the time in which it did or wanted something. */
static inline uint64_t share_times_active(const ShareTimes *t) {
        return t->run_ns + t->runqueue_ns + t->block_ns;
}
