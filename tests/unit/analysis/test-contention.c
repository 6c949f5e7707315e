/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* analysis/contention.c: the sample's lock, seen from the lock, also when a second thread and operation wait for it. */
#include "analysis/contention.h"

#include "sample.h"

static const Contention *find(const Contentions *c, const char *kind) {
        for (size_t i = 0; i < c->n; i++)
                if (streq(c->items[i].resource->kind, kind))
                        return c->items + i;
        ck_abort_msg("no resource of kind %s", kind);
        return NULL;
}

START_TEST(test_sums) {
        _cleanup_(store_closep) Store *store = sample_open();
        _cleanup_(reading_freep) Reading *reading = NULL;
        _cleanup_(shares_freep) Shares *s = NULL;
        _cleanup_(contentions_done) Contentions c = {};
        const Contention *lock;

        /* In one second the waiter waits by a second operation, too, and a thread of stress waits for the lock. */
        execute(store,
                        "INSERT INTO thread(id, process_id, tid, host_tid, start_boot_ns, start_ns, comm)"
                        " SELECT 1000, id, 901, 5901, 9, 9, 'other' FROM process WHERE comm = 'stress'");
        execute(store,
                        "INSERT INTO wait SELECT ts_ns, dt_ns, 1000, resource_id, op, 1, 5000000, 700000000, 0, 0, 0, "
                        "0, 0, 0, 1, 0"
                        " FROM wait WHERE op = 'wait' ORDER BY ts_ns LIMIT 1 OFFSET 4");
        execute(store,
                        "INSERT INTO wait SELECT ts_ns, dt_ns, thread_id, resource_id, 'lock_pi', 1, 3000000, 3000000, "
                        "0, 0, 0, 1, 0, 0, 0, 0"
                        " FROM wait WHERE op = 'wait' ORDER BY ts_ns LIMIT 1 OFFSET 4");
        execute(store,
                        "INSERT INTO wake SELECT ts_ns, dt_ns, waker_thread_id, waker_kind, 1000, resource_id, 1, "
                        "5000000"
                        " FROM wake WHERE waker_kind = 'thread' ORDER BY ts_ns LIMIT 1 OFFSET 4");
        reading = sample_read(store, 0, 10, NULL);
        assert_done(shares_read(reading, true, &s, &error));
        ck_assert_int_eq(contentions_make(s, &c), 0);

        ck_assert_uint_eq(c.n, 3);
        ck_assert_str_eq(c.items[0].resource->kind, "epoll"); /* most waiting first: 10 s */
        ck_assert_uint_eq(c.items[0].n_wakers, 0);

        lock = find(&c, "futex");
        ck_assert_ptr_eq(lock, c.items + 1);
        ck_assert_uint_eq(lock->n_threads, 2);
        ck_assert_ptr_null(lock->process); /* of two processes */
        ck_assert_uint_eq(lock->count, 22);
        ck_assert_uint_eq(lock->total_ns, 8008 * NSEC_PER_MSEC);
        ck_assert_uint_eq(lock->max_ns, 700 * NSEC_PER_MSEC);
        ck_assert_uint_eq(lock->n_wakers, 2);
        ck_assert_str_eq(lock->wakers[0]->waker->comm, "holder");
        ck_assert_uint_eq(lock->wakers[0]->total_ns, 6005 * NSEC_PER_MSEC);
        ck_assert_uint_eq(lock->wakers[0]->count, 11);
        ck_assert_str_eq(lock->wakers[1]->kind, "timer");
        ck_assert_uint_eq(lock->wakers_total_ns, 8005 * NSEC_PER_MSEC);

        ck_assert_uint_eq(find(&c, "timer")->n_threads, 1);
        ck_assert_str_eq(find(&c, "timer")->process->comm, "demo");
}
END_TEST

START_TEST(test_empty) {
        _cleanup_(store_closep) Store *store = open_store(NULL);
        _cleanup_(reading_freep) Reading *reading = NULL;
        _cleanup_(shares_freep) Shares *s = NULL;
        _cleanup_(contentions_done) Contentions c = {};

        reading = sample_read(store, 0, 1, NULL);
        assert_done(shares_read(reading, true, &s, &error));
        ck_assert_int_eq(contentions_make(s, &c), 0);
        ck_assert_uint_eq(c.n, 0);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("contention");
        TCase *c = tcase_create("contention");

        tcase_add_test(c, test_sums);
        tcase_add_test(c, test_empty);
        suite_add_tcase(suite, c);
        return run_suite(suite);
}
