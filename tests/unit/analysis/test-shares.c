/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* analysis/shares.c: sums, clipping, who belongs to whom, and orders, over a story that is known. */
#include "analysis/shares.h"

#include "sample.h"

/* The two belong together: shares point into the reading. */
typedef struct Sample {
        Reading *reading;
        Shares *shares;
} Sample;

static void sample_done(Sample *s) {
        shares_free(s->shares);
        reading_free(s->reading);
}

static Sample read_target(Store *store, double from, double until, bool histograms, const char *target) {
        Sample s = { .reading = sample_read(store, from, until, target) };

        assert_done(shares_read(s.reading, histograms, &s.shares, &error));
        reading_end(s.reading);
        return s;
}

static Sample read_shares(Store *store, double from, double until) {
        return read_target(store, from, until, true, NULL);
}

static const Thread *find_thread(const Shares *s, const char *comm) {
        for (size_t i = 0; i < s->n_threads; i++)
                if (streq(s->threads[i]->comm, comm))
                        return s->threads[i];
        ck_abort_msg("no thread %s", comm);
        return NULL;
}

START_TEST(test_whole) {
        _cleanup_(store_closep) Store *store = sample_open();
        _cleanup_(sample_done) Sample sample = read_shares(store, 0, 10);
        const Shares *s = sample.shares;
        const Thread *holder = find_thread(s, "holder"), *waiter = find_thread(s, "waiter"),
                     *sleeper = find_thread(s, "sleeper");

        ck_assert_uint_eq(s->n_timed_threads, 3);
        ck_assert_uint_eq(s->n_timed_processes, 1);
        ck_assert_ptr_eq(s->threads[0], holder); /* most active first */
        ck_assert_ptr_eq(s->threads[1], waiter);
        ck_assert_ptr_eq(s->threads[2], sleeper);

        ck_assert_uint_eq(holder->times.total_ns, 10 * NSEC_PER_SEC);
        ck_assert_uint_eq(holder->times.run_ns, 5000 * NSEC_PER_MSEC);
        ck_assert_uint_eq(holder->times.runqueue_ns, 1000 * NSEC_PER_MSEC);
        ck_assert_uint_eq(holder->times.sleep_ns, 4000 * NSEC_PER_MSEC);
        ck_assert_uint_eq(holder->times.switches, 40);
        ck_assert_uint_eq(holder->times.preemptions, 20);
        ck_assert_int_eq(holder->tid, 101);
        ck_assert_int_eq(holder->process->pid, 100);
        ck_assert_int_eq(holder->process->host_pid, 5100);
        ck_assert_str_eq(holder->process->target, "pid:100");

        ck_assert_uint_eq(s->processes[0]->n_threads, 3);
        ck_assert_uint_eq(s->processes[0]->times.run_ns, 7000 * NSEC_PER_MSEC);
        ck_assert_uint_eq(s->times.total_ns, 30 * NSEC_PER_SEC);
        ck_assert_uint_eq(sample.reading->machines.n, 1);
        ck_assert_str_eq(((Machine *) sample.reading->machines.objects[0])->hostname, "host");

        ck_assert_uint_eq(s->n_losses, 1);
        ck_assert_uint_eq(s->losses[0].count, 13);
}
END_TEST

START_TEST(test_waits) {
        _cleanup_(store_closep) Store *store = sample_open();
        _cleanup_(sample_done) Sample sample = read_shares(store, 0, 10);
        const Shares *s = sample.shares;
        const Thread *waiter = find_thread(s, "waiter");
        const SharesWait *w = waiter->top_wait;

        ck_assert_uint_eq(s->n_waits, 3);
        ck_assert_str_eq(s->waits[0]->op, "epoll_wait"); /* most time first */
        ck_assert_uint_eq(s->waits[0]->total_ns, 10 * NSEC_PER_SEC);
        ck_assert_uint_eq(s->waits[0]->count, 0);
        ck_assert_uint_eq(s->waits[0]->n_wakers, 0);

        ck_assert_ptr_eq(w, s->waits[1]);
        ck_assert_str_eq(w->resource->kind, "futex");
        ck_assert_str_eq(w->resource->name, "heap+0x10");
        ck_assert_uint_eq(w->count, 20);
        ck_assert_uint_eq(w->total_ns, 8000 * NSEC_PER_MSEC);
        ck_assert_uint_eq(w->max_ns, 600 * NSEC_PER_MSEC);
        ck_assert_uint_eq(w->histogram[6], 20);
        ck_assert_uint_eq(waiter->waited_ns, waiter->times.sleep_ns + waiter->times.block_ns);

        ck_assert_uint_eq(w->n_wakers, 2);
        ck_assert_uint_eq(w->wakers_total_ns, 8000 * NSEC_PER_MSEC);
        ck_assert_str_eq(w->wakers[0]->kind, "thread");
        ck_assert_str_eq(w->wakers[0]->waker->comm, "holder");
        ck_assert_uint_eq(w->wakers[0]->total_ns, 6000 * NSEC_PER_MSEC);
        ck_assert_uint_eq(w->wakers[0]->count, 10);
        ck_assert_str_eq(w->wakers[1]->kind, "timer");
        ck_assert_ptr_null(w->wakers[1]->waker);
}
END_TEST

START_TEST(test_instead) {
        _cleanup_(store_closep) Store *store = sample_open();
        _cleanup_(sample_done) Sample sample = read_shares(store, 0, 10);
        const Shares *s = sample.shares;
        const Thread *holder = find_thread(s, "holder");
        SharesInstead *const *instead;

        ck_assert_uint_eq(shares_instead_of(s, holder, &instead), 1);
        ck_assert_str_eq(instead[0]->process->comm, "stress");
        ck_assert_uint_eq(instead[0]->process->n_threads, 0);
        ck_assert_uint_eq(instead[0]->total_ns, 600 * NSEC_PER_MSEC);
        ck_assert_uint_eq(holder->instead_ns, holder->times.runqueue_ns);
        ck_assert_uint_eq(holder->unnamed_ns, 400 * NSEC_PER_MSEC);
        ck_assert_uint_eq(shares_instead_of(s, find_thread(s, "waiter"), &instead), 0);
}
END_TEST

START_TEST(test_clipped) {
        _cleanup_(store_closep) Store *store = sample_open();
        /* Half of the third second, and the fourth. */
        _cleanup_(sample_done) Sample sample = read_shares(store, 2.5, 4);
        const Shares *s = sample.shares;
        const Thread *holder = find_thread(s, "holder"), *sleeper = find_thread(s, "sleeper");

        ck_assert_uint_eq(holder->times.total_ns, 1500 * NSEC_PER_MSEC);
        ck_assert_uint_eq(holder->times.run_ns, 750 * NSEC_PER_MSEC);
        ck_assert_uint_eq(holder->times.run_ns + holder->times.runqueue_ns + holder->times.sleep_ns +
                                        holder->times.block_ns,
                        holder->times.total_ns);
        ck_assert_uint_eq(holder->top_wait->count, 6);
        ck_assert_uint_eq(holder->top_wait->max_ns, 100 * NSEC_PER_MSEC); /* at full length */
        ck_assert_uint_eq(holder->unnamed_ns, 60 * NSEC_PER_MSEC);

        /* A row that ends long after the range. */
        ck_assert_uint_eq(sleeper->times.sleep_ns, 1500 * NSEC_PER_MSEC);
        ck_assert_uint_eq(sleeper->waited_ns, 1500 * NSEC_PER_MSEC);

        ck_assert_uint_eq(s->n_losses, 1); /* of second 3 and 4 */
        ck_assert_uint_eq(s->losses[0].count, 13);
}
END_TEST

START_TEST(test_pieces_add_up) {
        _cleanup_(store_closep) Store *store = sample_open();
        _cleanup_(sample_done) Sample whole = read_shares(store, 0, 10);
        uint64_t run_ns = 0, wait_ns = 0;

        for (int i = 0; i < 40; i++) {
                _cleanup_(sample_done) Sample sample = read_shares(store, i * 0.25, (i + 1) * 0.25);
                const Shares *s = sample.shares;

                run_ns += s->times.run_ns;
                wait_ns += find_thread(s, "waiter")->waited_ns;
        }
        ck_assert_uint_eq(run_ns, whole.shares->times.run_ns);
        ck_assert_uint_eq(wait_ns, find_thread(whole.shares, "waiter")->waited_ns);
}
END_TEST

START_TEST(test_empty) {
        _cleanup_(store_closep) Store *store = sample_open();
        _cleanup_(sample_done) Sample before = read_shares(store, -100, 0), after = read_shares(store, 40, 100);

        ck_assert_uint_eq(before.shares->n_threads, 0);
        ck_assert_uint_eq(before.shares->n_waits, 0);
        ck_assert_uint_eq(before.shares->n_losses, 0);
        ck_assert_uint_eq(after.shares->n_threads, 0);
}
END_TEST

START_TEST(test_no_histograms) {
        _cleanup_(store_closep) Store *store = sample_open();
        _cleanup_(sample_done) Sample s = read_target(store, 0, 10, false, NULL);

        ck_assert_uint_eq(find_thread(s.shares, "waiter")->top_wait->count, 20);
        ck_assert_uint_eq(find_thread(s.shares, "waiter")->top_wait->histogram[6], 0);
}
END_TEST

START_TEST(test_target) {
        _cleanup_(store_closep) Store *store = sample_open();
        _cleanup_(sample_done) Sample mine = read_target(store, 0, 10, false, "pid:100"),
                                      other = read_target(store, 0, 10, false, "pid:10");

        ck_assert_uint_eq(mine.shares->n_timed_threads, 3);
        ck_assert_uint_eq(mine.shares->n_waits, 3);
        ck_assert_uint_eq(mine.shares->n_wakers, 2);
        ck_assert_uint_eq(mine.shares->n_watched, 2);
        ck_assert_uint_eq(mine.shares->n_instead, 1);

        ck_assert_uint_eq(other.shares->n_timed_threads, 0);
        ck_assert_uint_eq(other.shares->n_timed_processes, 0);
        ck_assert_uint_eq(other.shares->n_waits + other.shares->n_wakers + other.shares->n_watched +
                                        other.shares->n_instead,
                        0);
}
END_TEST

START_TEST(test_watched) {
        _cleanup_(store_closep) Store *store = sample_open();
        _cleanup_(sample_done) Sample sample = read_shares(store, 0, 40), clipped = read_shares(store, 10, 30);
        const SharesWait *w = sample.shares->waits[0];

        ck_assert_str_eq(w->op, "epoll_wait");
        ck_assert_uint_eq(w->n_watched, 2);
        ck_assert_str_eq(w->watched[0]->watched->name, "tcp 10.0.0.2:5432"); /* most time first */
        ck_assert_uint_eq(w->watched[0]->total_ns, 30 * NSEC_PER_SEC);
        ck_assert_ptr_null(w->watched[1]->watched);
        ck_assert_uint_eq(w->watched[1]->total_ns, 10 * NSEC_PER_SEC);
        ck_assert_ptr_eq(w->watched[1]->wait, w);
        ck_assert_uint_eq(sample.shares->waits[1]->n_watched, 0);

        w = clipped.shares->waits[0];
        ck_assert_uint_eq(w->watched[0]->total_ns, 15 * NSEC_PER_SEC);
        ck_assert_uint_eq(w->watched[0]->total_ns + w->watched[1]->total_ns, w->total_ns);
}
END_TEST

START_TEST(test_unreadable) {
        _cleanup_(store_closep) Store *store = sample_open();
        _cleanup_(reading_freep) Reading *r = NULL;
        Shares *s = (Shares *) store;

        execute(store, "DROP TABLE wake");
        r = sample_read(store, 0, 1, NULL);
        assert_fails(shares_read(r, false, &s, &error), -EINVAL, "wake");
        ck_assert_ptr_eq(s, store); /* untouched */
        reading_end(r);
        /* No transaction is left open. */
        ck_assert_int_eq(sqlite3_get_autocommit(store_database(store)), 1);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("shares");
        TCase *c = tcase_create("shares");

        tcase_add_test(c, test_whole);
        tcase_add_test(c, test_waits);
        tcase_add_test(c, test_instead);
        tcase_add_test(c, test_clipped);
        tcase_add_test(c, test_pieces_add_up);
        tcase_add_test(c, test_empty);
        tcase_add_test(c, test_no_histograms);
        tcase_add_test(c, test_target);
        tcase_add_test(c, test_watched);
        tcase_add_test(c, test_unreadable);
        suite_add_tcase(suite, c);
        return run_suite(suite);
}
