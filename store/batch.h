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

/* System calls that ended in the interval, at full length. Unlike the others it need not hang on a thread_time row: a
 * thread that never left the CPU in a tick has calls and no transition. */
typedef struct BatchCall {
        int64_t ts_ns, dt_ns;
        uint64_t thread_key, resource_key;
        const char *op; /* a string that lives as long as the program */
        uint64_t count, errors, bytes, total_ns, max_ns;
        uint32_t histogram[STORE_HISTOGRAM_BUCKETS];
} BatchCall;

/* The part of a wait on an epoll or poll set that one watched file ended. */
typedef struct BatchMuxWait {
        int64_t ts_ns, dt_ns;
        uint64_t thread_key, resource_key; /* of the wait row */
        uint64_t watched_key;              /* 0: a timeout, a signal, still waiting, or not seen */
        const char *op;
        uint64_t count, total_ns;
} BatchMuxWait;

/* What is known of a socket; describes the resource of the same key, which must be in this batch or an earlier one. */
typedef struct BatchSocket {
        uint64_t resource_key;
        uint32_t family, type, protocol, state;
        uint32_t netns;                       /* 0: unknown */
        const char *local_addr, *remote_addr; /* text; NULL: none */
        uint32_t local_port, remote_port;     /* 0: none */
        const char *path;                     /* unix; an abstract name begins with '@'; NULL: none */
        uint64_t cookie;                      /* 0: none yet */
        uint64_t peer_resource_key;           /* 0, or one that was never described: not known */
} BatchSocket;

typedef struct BatchSocketSample {
        int64_t ts_ns, dt_ns;
        uint64_t resource_key;
        uint64_t bytes_in, bytes_out, retransmits; /* inside the interval */
        uint64_t srtt_ns;                          /* 0: none */
        uint64_t send_queue, receive_queue;        /* bytes at ts_ns */
} BatchSocketSample;

typedef struct BatchEpollWatch {
        uint64_t resource_key, watched_key;
        int64_t first_ns, last_ns;
} BatchEpollWatch;

typedef struct BatchDisk {
        int64_t ts_ns, dt_ns;
        uint32_t device, partition;
        uint64_t process_key;
        uint64_t thread_key; /* 0: the thread is not tracked */
        const char *cgroup;  /* copied; NULL: none */
        const char *op;      /* a string that lives as long as the program: read, write, flush, discard, other */
        uint64_t requests, sectors, total_ns, max_ns;
        uint32_t histogram[STORE_HISTOGRAM_BUCKETS];
} BatchDisk;

typedef struct BatchCgroupTime {
        int64_t ts_ns, dt_ns;
        const char *cgroup;                                                             /* copied */
        int64_t usage_ns, throttled_ns, throttled_periods, memory_bytes, memory_events; /* -1: unknown */
} BatchCgroupTime;

typedef struct BatchCoverage {
        int64_t ts_ns, dt_ns;
        const char *part; /* a string that lives as long as the program: calls */
} BatchCoverage;

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
        BatchCall *calls;
        BatchMuxWait *mux_waits;
        BatchSocket *sockets;
        BatchSocketSample *socket_samples;
        BatchEpollWatch *epoll_watches;
        BatchDisk *disks;
        BatchCgroupTime *cgroup_times;
        BatchCoverage *coverages;
        BatchLoss *losses;
        BatchClock *clocks;
        size_t n_processes, n_threads, n_resources, n_thread_times, n_waits, n_wakes, n_ran_instead, n_losses, n_clocks;
        size_t n_calls, n_mux_waits, n_sockets, n_socket_samples, n_epoll_watches, n_disks, n_cgroup_times, n_coverages;
        size_t c_processes, c_threads, c_resources, c_thread_times, c_waits, c_wakes, c_ran_instead, c_losses, c_clocks;
        size_t c_calls, c_mux_waits, c_sockets, c_socket_samples, c_epoll_watches, c_disks, c_cgroup_times, c_coverages;

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
int batch_add_call(Batch *b, const BatchCall *row);
int batch_add_mux_wait(Batch *b, const BatchMuxWait *row);
int batch_add_socket(Batch *b, const BatchSocket *row);
int batch_add_socket_sample(Batch *b, const BatchSocketSample *row);
int batch_add_epoll_watch(Batch *b, const BatchEpollWatch *row);
int batch_add_disk(Batch *b, const BatchDisk *row);
int batch_add_cgroup_time(Batch *b, const BatchCgroupTime *row);
int batch_add_coverage(Batch *b, const BatchCoverage *row);
int batch_add_loss(Batch *b, const BatchLoss *row);
int batch_add_clock(Batch *b, const BatchClock *row);

/* Whether there is nothing in it to write, descriptions included. */
bool batch_is_empty(const Batch *b);
/* Rows of measurements (not descriptions), and all the memory that the batch holds. */
size_t batch_rows(const Batch *b);
size_t batch_bytes(const Batch *b);
