/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A batch: the rows of one tick, on their way from the collector to a store. Plain memory: no database, no I/O.
 *
 * Ownership: a batch owns all that it points to; strings given to it are copied into its arena. After it has been
 * handed to another thread it is immutable; the reference count is atomic.
 *
 * Numbers named `key` stand for objects and are chosen by the producer: never 0, never used twice for two things of one
 * kind while the producer runs. A store maps them to its own ids. A batch must describe (processes, threads, resources)
 * each key that its rows use unless an earlier batch given to the same store did; describing one again updates what can
 * change (exit, names). */
#pragma once

#include "basic/macro.h"

#define STORE_HISTOGRAM_BUCKETS 8

typedef struct BatchProcess {
        uint64_t key;
        uint64_t parent_key;                      /* found_from: the process that led to it, 0 if none */
        int64_t start_boot_ns, start_ns, exit_ns; /* exit_ns 0: alive */
        uint32_t pid, host_pid, ppid, uid;        /* ppid 0, uid UINT32_MAX: unknown */
        uint64_t netns;                           /* 0: unknown */
        const char *comm;
        const char *exe, *cmdline, *cgroup, *unit; /* each may be NULL */
        const char *found_by;                      /* target, child, peer, observed */
        const char *target;                        /* may be NULL */
} BatchProcess;

typedef struct BatchThread {
        uint64_t key, process_key;
        int64_t start_boot_ns, start_ns, exit_ns;
        uint32_t tid, host_tid;
        const char *comm;
} BatchThread;

typedef struct BatchResource {
        uint64_t key;
        const char *kind, *ident;
        const char *name; /* may be NULL */
} BatchResource;

typedef struct BatchThreadTime {
        int64_t ts_ns, dt_ns;
        uint64_t thread_key;
        uint64_t run_ns, runqueue_ns, sleep_ns, block_ns, iowait_ns, throttled_ns, healed_ns;
        uint64_t switches, preemptions;
} BatchThreadTime;

typedef struct BatchWait {
        int64_t ts_ns, dt_ns;
        uint64_t thread_key, resource_key;
        const char *op; /* a string that lives as long as the program */
        uint64_t count, total_ns, max_ns;
        uint32_t histogram[STORE_HISTOGRAM_BUCKETS];
} BatchWait;

typedef struct BatchWake {
        int64_t ts_ns, dt_ns;
        uint64_t waker_thread_key; /* 0 unless waker_kind is "thread" */
        const char *waker_kind;    /* a string that lives as long as the program */
        uint64_t thread_key, resource_key;
        uint64_t count, total_ns;
} BatchWake;

typedef struct BatchRanInstead {
        int64_t ts_ns, dt_ns;
        uint64_t thread_key;
        uint64_t process_key; /* 0: not named */
        uint64_t total_ns;
} BatchRanInstead;

typedef struct BatchLoss {
        int64_t ts_ns;
        const char *part, *reason; /* strings that live as long as the program */
        uint64_t count;
} BatchLoss;

typedef struct BatchClock {
        int64_t boot_ns, unix_ns;
} BatchClock;

typedef struct Batch {
        unsigned n_ref; /* atomic */

        BatchProcess *processes;
        BatchThread *threads;
        BatchResource *resources;
        BatchThreadTime *thread_times;
        BatchWait *waits;
        BatchWake *wakes;
        BatchRanInstead *ran_instead;
        BatchLoss *losses;
        BatchClock *clocks;
        size_t n_processes, n_threads, n_resources, n_thread_times, n_waits, n_wakes, n_ran_instead, n_losses, n_clocks;
        size_t c_processes, c_threads, c_resources, c_thread_times, c_waits, c_wakes, c_ran_instead, c_losses, c_clocks;

        struct BatchChunk *arena; /* the copied strings */
        size_t arena_bytes;
} Batch;

Batch *batch_new(void);
Batch *batch_ref(Batch *b);
Batch *batch_unref(Batch *b); /* returns NULL */
DEFINE_CLEANUP(Batch *, batch_unref);

/* Each copies *row (and the strings that are not program constants) into the batch: 0 or -ENOMEM. */
int batch_add_process(Batch *b, const BatchProcess *row);
int batch_add_thread(Batch *b, const BatchThread *row);
int batch_add_resource(Batch *b, const BatchResource *row);
int batch_add_thread_time(Batch *b, const BatchThreadTime *row);
int batch_add_wait(Batch *b, const BatchWait *row);
int batch_add_wake(Batch *b, const BatchWake *row);
int batch_add_ran_instead(Batch *b, const BatchRanInstead *row);
int batch_add_loss(Batch *b, const BatchLoss *row);
int batch_add_clock(Batch *b, const BatchClock *row);

/* Rows of measurements (not descriptions), and all the memory that the batch holds. */
size_t batch_rows(const Batch *b);
size_t batch_bytes(const Batch *b);
