/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A store in memory with a known story, for the tests of analysis/.
 *
 * Process demo (pid 100) has the threads holder (tid 101), waiter (102), and sleeper (103); stress (900) is only named.
 * From second 0 to 10, each second: holder runs 0.5 s, stands in the run queue 0.1 s (0.06 s stress, 0.04 s not named)
 * and sleeps 0.4 s on a timer; waiter runs 0.2 s and waits 0.8 s for the lock in two waits, which holder ends (0.6 s)
 * and a timer (0.2 s). sleeper sleeps in epoll_wait from second 0 to 40: one row, of which the socket ended 30 s and nothing
 * that it watches 10 s. Only in second 10 calls are counted: holder sends 100 times on the socket, 5 of them in vain, 4,000
 * bytes in 50 ms, and waiter reads it 10 times, in 1 ms. */
#pragma once

#include "../unit.h"
#include "analysis/reading.h"

#define SAMPLE_START INT64_C(1795000000000000000)

enum {
        SAMPLE_DEMO = 1,
        SAMPLE_STRESS,
        SAMPLE_HOLDER = 11,
        SAMPLE_WAITER,
        SAMPLE_SLEEPER,
        SAMPLE_LOCK = 21,
        SAMPLE_TIMER,
        SAMPLE_EPOLL,
        SAMPLE_SOCKET,
};

static inline void sample_describe(Batch *b) {
        static const struct {
                uint64_t key;
                const char *comm;
        } threads[] = { { SAMPLE_HOLDER, "holder" }, { SAMPLE_WAITER, "waiter" }, { SAMPLE_SLEEPER, "sleeper" } };

        ck_assert_int_eq(batch_add_process(b,
                                         &(BatchProcess){ .key = SAMPLE_DEMO,
                                                         .start_boot_ns = 1,
                                                         .start_ns = SAMPLE_START,
                                                         .pid = 100,
                                                         .host_pid = 5100,
                                                         .comm = "demo",
                                                         .found_by = "target",
                                                         .target = "pid:100" }),
                        0);
        ck_assert_int_eq(batch_add_process(b,
                                         &(BatchProcess){ .key = SAMPLE_STRESS,
                                                         .start_boot_ns = 2,
                                                         .start_ns = SAMPLE_START,
                                                         .pid = 900,
                                                         .host_pid = 5900,
                                                         .comm = "stress",
                                                         .found_by = "observed" }),
                        0);
        for (size_t i = 0; i < ELEMENTSOF(threads); i++)
                ck_assert_int_eq(batch_add_thread(b,
                                                 &(BatchThread){ .key = threads[i].key,
                                                                 .process_key = SAMPLE_DEMO,
                                                                 .start_boot_ns = 3,
                                                                 .start_ns = SAMPLE_START,
                                                                 .tid = 101 + (uint32_t) i,
                                                                 .host_tid = 5101 + (uint32_t) i,
                                                                 .comm = threads[i].comm }),
                                0);
        ck_assert_int_eq(batch_add_resource(b,
                                         &(BatchResource){ .key = SAMPLE_LOCK,
                                                         .kind = "futex",
                                                         .ident = "private:1:7f00",
                                                         .name = "heap+0x10" }),
                        0);
        ck_assert_int_eq(batch_add_resource(b, &(BatchResource){ .key = SAMPLE_TIMER, .kind = "timer", .ident = "" }),
                        0);
        ck_assert_int_eq(batch_add_resource(b,
                                         &(BatchResource){ .key = SAMPLE_EPOLL,
                                                         .kind = "epoll",
                                                         .ident = "epoll:1:5",
                                                         .name = "eventpoll:5" }),
                        0);
        ck_assert_int_eq(batch_add_resource(b,
                                         &(BatchResource){ .key = SAMPLE_SOCKET,
                                                         .kind = "inet",
                                                         .ident = "inode:77",
                                                         .name = "tcp 10.0.0.2:5432" }),
                        0);
}

static inline void sample_second(Batch *b, int64_t ts_ns) {
        const int64_t ms = (int64_t) NSEC_PER_MSEC;
        const uint64_t ums = NSEC_PER_MSEC;

        ck_assert_int_eq(batch_add_thread_time(b,
                                         &(BatchThreadTime){ .ts_ns = ts_ns,
                                                         .dt_ns = 1000 * ms,
                                                         .thread_key = SAMPLE_HOLDER,
                                                         .run_ns = 500 * ums,
                                                         .runqueue_ns = 100 * ums,
                                                         .sleep_ns = 400 * ums,
                                                         .switches = 4,
                                                         .preemptions = 2 }),
                        0);
        ck_assert_int_eq(batch_add_thread_time(b,
                                         &(BatchThreadTime){ .ts_ns = ts_ns,
                                                         .dt_ns = 1000 * ms,
                                                         .thread_key = SAMPLE_WAITER,
                                                         .run_ns = 200 * ums,
                                                         .sleep_ns = 800 * ums,
                                                         .switches = 2 }),
                        0);
        ck_assert_int_eq(batch_add_wait(b,
                                         &(BatchWait){ .ts_ns = ts_ns,
                                                         .dt_ns = 1000 * ms,
                                                         .thread_key = SAMPLE_HOLDER,
                                                         .resource_key = SAMPLE_TIMER,
                                                         .op = "clock_nanosleep",
                                                         .count = 4,
                                                         .total_ns = 400 * ums,
                                                         .max_ns = 100 * ums,
                                                         .histogram = { [5] = 4 } }),
                        0);
        ck_assert_int_eq(batch_add_wait(b,
                                         &(BatchWait){ .ts_ns = ts_ns,
                                                         .dt_ns = 1000 * ms,
                                                         .thread_key = SAMPLE_WAITER,
                                                         .resource_key = SAMPLE_LOCK,
                                                         .op = "wait",
                                                         .count = 2,
                                                         .total_ns = 800 * ums,
                                                         .max_ns = 600 * ums,
                                                         .histogram = { [6] = 2 } }),
                        0);
        ck_assert_int_eq(batch_add_wake(b,
                                         &(BatchWake){ .ts_ns = ts_ns,
                                                         .dt_ns = 1000 * ms,
                                                         .waker_kind = "timer",
                                                         .thread_key = SAMPLE_WAITER,
                                                         .resource_key = SAMPLE_LOCK,
                                                         .count = 1,
                                                         .total_ns = 200 * ums }),
                        0);
        ck_assert_int_eq(batch_add_wake(b,
                                         &(BatchWake){ .ts_ns = ts_ns,
                                                         .dt_ns = 1000 * ms,
                                                         .waker_thread_key = SAMPLE_HOLDER,
                                                         .waker_kind = "thread",
                                                         .thread_key = SAMPLE_WAITER,
                                                         .resource_key = SAMPLE_LOCK,
                                                         .count = 1,
                                                         .total_ns = 600 * ums }),
                        0);
        ck_assert_int_eq(batch_add_ran_instead(b,
                                         &(BatchRanInstead){ .ts_ns = ts_ns,
                                                         .dt_ns = 1000 * ms,
                                                         .thread_key = SAMPLE_HOLDER,
                                                         .process_key = SAMPLE_STRESS,
                                                         .total_ns = 60 * ums }),
                        0);
        ck_assert_int_eq(batch_add_ran_instead(b,
                                         &(BatchRanInstead){ .ts_ns = ts_ns,
                                                         .dt_ns = 1000 * ms,
                                                         .thread_key = SAMPLE_HOLDER,
                                                         .total_ns = 40 * ums }),
                        0);
}

static inline void sample_add_calls(Batch *b, int64_t ts_ns) {
        ck_assert_int_eq(
                        batch_add_coverage(b, &(BatchCoverage){ .ts_ns = ts_ns, .dt_ns = SECOND, .part = "calls" }), 0);
        ck_assert_int_eq(batch_add_call(b,
                                         &(BatchCall){ .ts_ns = ts_ns,
                                                         .dt_ns = SECOND,
                                                         .thread_key = SAMPLE_HOLDER,
                                                         .resource_key = SAMPLE_SOCKET,
                                                         .op = "send",
                                                         .count = 100,
                                                         .errors = 5,
                                                         .bytes = 4000,
                                                         .total_ns = 50 * NSEC_PER_MSEC,
                                                         .max_ns = 2 * NSEC_PER_MSEC,
                                                         .histogram = { [3] = 90, [4] = 10 } }),
                        0);
        ck_assert_int_eq(batch_add_call(b,
                                         &(BatchCall){ .ts_ns = ts_ns,
                                                         .dt_ns = SECOND,
                                                         .thread_key = SAMPLE_WAITER,
                                                         .resource_key = SAMPLE_SOCKET,
                                                         .op = "receive",
                                                         .count = 10,
                                                         .bytes = 1000,
                                                         .total_ns = NSEC_PER_MSEC,
                                                         .max_ns = NSEC_PER_MSEC / 2,
                                                         .histogram = { [2] = 10 } }),
                        0);
}

static inline void sample_add_mux_wait(Batch *b, uint64_t watched_key, uint64_t total_ns) {
        ck_assert_int_eq(batch_add_mux_wait(b,
                                         &(BatchMuxWait){ .ts_ns = SAMPLE_START + 40 * SECOND,
                                                         .dt_ns = 40 * SECOND,
                                                         .thread_key = SAMPLE_SLEEPER,
                                                         .resource_key = SAMPLE_EPOLL,
                                                         .watched_key = watched_key,
                                                         .op = "epoll_wait",
                                                         .total_ns = total_ns }),
                        0);
}

static inline Store *_unused_ sample_open(void) {
        _cleanup_(batch_unrefp) Batch *b = batch_new();
        Store *s = open_store(NULL);

        ck_assert_ptr_nonnull(b);
        sample_describe(b);
        for (int64_t second = 1; second <= 10; second++)
                sample_second(b, SAMPLE_START + second * SECOND);

        ck_assert_int_eq(batch_add_thread_time(b,
                                         &(BatchThreadTime){ .ts_ns = SAMPLE_START + 40 * SECOND,
                                                         .dt_ns = 40 * SECOND,
                                                         .thread_key = SAMPLE_SLEEPER,
                                                         .sleep_ns = 40 * NSEC_PER_SEC }),
                        0);
        ck_assert_int_eq(batch_add_wait(b,
                                         &(BatchWait){ .ts_ns = SAMPLE_START + 40 * SECOND,
                                                         .dt_ns = 40 * SECOND,
                                                         .thread_key = SAMPLE_SLEEPER,
                                                         .resource_key = SAMPLE_EPOLL,
                                                         .op = "epoll_wait",
                                                         .total_ns = 40 * NSEC_PER_SEC }),
                        0);
        sample_add_mux_wait(b, SAMPLE_SOCKET, 30 * NSEC_PER_SEC);
        sample_add_mux_wait(b, 0, 10 * NSEC_PER_SEC);
        sample_add_calls(b, SAMPLE_START + 10 * SECOND);
        ck_assert_int_eq(batch_add_loss(b,
                                         &(BatchLoss){ .ts_ns = SAMPLE_START + 3 * SECOND,
                                                         .part = "kernel",
                                                         .reason = "wait-map-full",
                                                         .count = 12 }),
                        0);
        ck_assert_int_eq(batch_add_loss(b,
                                         &(BatchLoss){ .ts_ns = SAMPLE_START + 4 * SECOND,
                                                         .part = "kernel",
                                                         .reason = "wait-map-full",
                                                         .count = 1 }),
                        0);

        assert_done(store_write(s, b, &error));
        return s;
}

/* Everything from second `from` to second `until`. */
static inline Reading *_unused_ sample_read(Store *s, double from, double until, const char *target) {
        Reading *r = NULL;

        assert_done(reading_begin(s, SAMPLE_START + (int64_t) (from * (double) SECOND),
                        SAMPLE_START + (int64_t) (until * (double) SECOND), target, &r, &error));
        return r;
}
