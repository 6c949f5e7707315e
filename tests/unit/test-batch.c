/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* store/batch.c: a batch owns what it was given, and lives as long as somebody holds it. */
#include <pthread.h>

#include "unit.h"

START_TEST(test_copies) {
        _cleanup_(batch_unrefp) Batch *b = batch_new();
        char comm[] = "worker", *big = malloc(100001);

        memset(big, 'x', 100000);
        big[100000] = '\0';

        assert_done(batch_add_process(
                        b, &(BatchProcess){ .key = 1, .comm = comm, .cmdline = big, .found_by = "target" }));
        assert_done(batch_add_thread(b, &(BatchThread){ .key = 2, .process_key = 1, .comm = comm }));
        assert_done(batch_add_resource(b, &(BatchResource){ .key = 3, .kind = comm, .ident = big }));
        assert_done(batch_add_socket(
                        b, &(BatchSocket){ .resource_key = 3, .local_addr = comm, .remote_addr = big, .path = comm }));
        assert_done(batch_add_socket(b, &(BatchSocket){ .resource_key = 3 }));
        assert_done(batch_add_disk(b, &(BatchDisk){ .process_key = 1, .cgroup = comm, .op = "read" }));
        assert_done(batch_add_disk(b, &(BatchDisk){ .process_key = 1, .op = "read" }));
        assert_done(batch_add_cgroup_time(b, &(BatchCgroupTime){ .cgroup = comm }));
        memset(comm, '!', strlen(comm));
        memset(big, '!', 100000);

        ck_assert_str_eq(b->processes[0].comm, "worker");
        ck_assert_uint_eq(strspn(b->processes[0].cmdline, "x"), 100000);
        ck_assert_ptr_null(b->processes[0].exe);
        ck_assert_str_eq(b->threads[0].comm, "worker");
        ck_assert_str_eq(b->resources[0].kind, "worker");
        ck_assert_uint_eq(strlen(b->resources[0].ident), 100000);
        ck_assert_ptr_null(b->resources[0].name);
        ck_assert_str_eq(b->sockets[0].local_addr, "worker");
        ck_assert_uint_eq(strspn(b->sockets[0].remote_addr, "x"), 100000);
        ck_assert_str_eq(b->sockets[0].path, "worker");
        ck_assert_ptr_null(b->sockets[1].local_addr);
        ck_assert_ptr_null(b->sockets[1].remote_addr);
        ck_assert_ptr_null(b->sockets[1].path);
        ck_assert_str_eq(b->disks[0].cgroup, "worker");
        ck_assert_ptr_null(b->disks[1].cgroup);
        ck_assert_str_eq(b->cgroup_times[0].cgroup, "worker");
        free(big);
}
END_TEST

START_TEST(test_growth) {
        _cleanup_(batch_unrefp) Batch *b = batch_new();
        char comm[32];

        ck_assert_uint_eq(batch_rows(b), 0);
        for (unsigned i = 0; i < 5000; i++) {
                (void) snprintf(comm, sizeof(comm), "thread %u", i);
                assert_done(batch_add_thread(b, &(BatchThread){ .key = i + 1, .comm = comm }));
                assert_done(batch_add_thread_time(b, &(BatchThreadTime){ .ts_ns = i }));
                assert_done(batch_add_wait(b, &(BatchWait){ .ts_ns = i, .histogram = { [7] = i } }));
        }
        assert_done(batch_add_wake(b, &(BatchWake){ .ts_ns = 1 }));
        assert_done(batch_add_ran_instead(b, &(BatchRanInstead){ .ts_ns = 1 }));
        assert_done(batch_add_loss(b, &(BatchLoss){ .ts_ns = 1 }));
        assert_done(batch_add_clock(b, &(BatchClock){ .boot_ns = 1 }));

        ck_assert_uint_eq(b->n_threads, 5000);
        for (unsigned i = 0; i < 5000; i++) {
                (void) snprintf(comm, sizeof(comm), "thread %u", i);
                ck_assert_str_eq(b->threads[i].comm, comm);
                ck_assert_int_eq(b->thread_times[i].ts_ns, i);
                ck_assert_uint_eq(b->waits[i].histogram[7], i);
        }
        /* Descriptions are no rows. */
        ck_assert_uint_eq(batch_rows(b), 10004);
        ck_assert_uint_ge(
                        batch_bytes(b), 5000 * (sizeof(BatchThread) + sizeof(BatchThreadTime) + sizeof(BatchWait) + 8));
        ck_assert_uint_le(batch_bytes(b),
                        4 * 5000 * (sizeof(BatchThread) + sizeof(BatchThreadTime) + sizeof(BatchWait) + 12));
}
END_TEST

/* Each kind has an array of its own; what is counted and what it weighs. */
START_TEST(test_kinds) {
        _cleanup_(batch_unrefp) Batch *b = batch_new();
        size_t bytes = batch_bytes(b), measurements = 0;

#define ADD(kind, Row, n_rows, is_measurement)                                                                \
        do {                                                                                                  \
                assert_done(batch_add_##kind(b, &(Row){}));                                                   \
                measurements += (is_measurement);                                                             \
                ck_assert_uint_eq(b->n_rows, 1);                                                              \
                ck_assert_msg(batch_rows(b) == measurements, "%s: %zu rows", #kind, batch_rows(b));           \
                ck_assert_msg(batch_bytes(b) >= bytes + sizeof(Row), "%s: %zu bytes", #kind, batch_bytes(b)); \
                bytes = batch_bytes(b);                                                                       \
        } while (0)

        ck_assert(batch_is_empty(b));
        ADD(process, BatchProcess, n_processes, false);
        ck_assert(!batch_is_empty(b));
        ADD(thread, BatchThread, n_threads, false);
        ADD(resource, BatchResource, n_resources, false);
        ADD(socket, BatchSocket, n_sockets, false);
        ADD(epoll_watch, BatchEpollWatch, n_epoll_watches, false);
        ADD(coverage, BatchCoverage, n_coverages, false);
        ADD(thread_time, BatchThreadTime, n_thread_times, true);
        ADD(wait, BatchWait, n_waits, true);
        ADD(mux_wait, BatchMuxWait, n_mux_waits, true);
        ADD(wake, BatchWake, n_wakes, true);
        ADD(ran_instead, BatchRanInstead, n_ran_instead, true);
        ADD(call, BatchCall, n_calls, true);
        ADD(socket_sample, BatchSocketSample, n_socket_samples, true);
        ADD(disk, BatchDisk, n_disks, true);
        ADD(cgroup_time, BatchCgroupTime, n_cgroup_times, true);
        ADD(loss, BatchLoss, n_losses, true);
        ADD(clock, BatchClock, n_clocks, true);
#undef ADD
}
END_TEST

#define HOLDS 500000

/* No assertion in here: Check's are for one thread. */
static void *hold_and_release(void *argument) {
        for (unsigned i = 0; i < HOLDS; i++)
                (void) batch_unref(batch_ref(argument));
        return batch_unref(argument);
}

/* A count that is not atomic would end above or below 1 here. */
START_TEST(test_references) {
        Batch *b = batch_new();
        pthread_t threads[4];

        for (size_t i = 0; i < ELEMENTSOF(threads); i++)
                ck_assert_int_eq(pthread_create(threads + i, NULL, hold_and_release, batch_ref(b)), 0);
        for (size_t i = 0; i < ELEMENTSOF(threads); i++)
                pthread_join(threads[i], NULL);
        ck_assert_uint_eq(b->n_ref, 1);
        ck_assert_ptr_null(batch_unref(b));
        ck_assert_ptr_null(batch_unref(NULL));
}
END_TEST

int main(void) {
        Suite *suite = suite_create("batch");
        TCase *tests = tcase_create("batch");

        tcase_add_test(tests, test_copies);
        tcase_add_test(tests, test_growth);
        tcase_add_test(tests, test_kinds);
        tcase_add_test(tests, test_references);
        suite_add_tcase(suite, tests);
        return run_suite(suite);
}
