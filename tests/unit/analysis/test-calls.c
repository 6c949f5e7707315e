/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* analysis/coverage.c and calls.c: what was seen for part of the time, and what is made of it. */
#include "analysis/calls.h"

#include "sample.h"

static Calls read_calls(Reading *r) {
        Calls c = {};

        assert_done(calls_read(r, true, &c, &error));
        return c;
}

START_TEST(test_arithmetic) {
        const Coverage tenth = { .recorded_ns = 100 * NSEC_PER_SEC, .covered_ns = 10 * NSEC_PER_SEC },
                       third = { .recorded_ns = 30, .covered_ns = 9 },
                       whole = { .recorded_ns = 100 * NSEC_PER_SEC, .covered_ns = 100 * NSEC_PER_SEC },
                       nearly = { .recorded_ns = 100 * NSEC_PER_SEC, .covered_ns = 99 * NSEC_PER_SEC },
                       mostly = { .recorded_ns = 100 * NSEC_PER_SEC, .covered_ns = 98 * NSEC_PER_SEC },
                       none = { .recorded_ns = 100 * NSEC_PER_SEC }, nothing = {};

        ck_assert(coverage_is_estimate(&tenth));
        ck_assert_uint_eq(coverage_scale(&tenth, 123), 1230);
        ck_assert_uint_eq(coverage_scale(&tenth, UINT64_MAX / 2), UINT64_MAX);
        ck_assert_uint_eq(coverage_scale(&tenth, UINT64_MAX / 10), UINT64_MAX / 10 * 10);
        ck_assert_double_eq_tol(coverage_rate(&tenth, 123), 12.3, 1e-9);

        ck_assert_uint_eq(coverage_scale(&third, 1), 3); /* 3.33 */
        ck_assert_uint_eq(coverage_scale(&third, 2), 7); /* 6.67 */

        /* It is switched on a little late. */
        ck_assert(!coverage_is_estimate(&whole));
        ck_assert(!coverage_is_estimate(&nearly));
        ck_assert_uint_eq(coverage_scale(&nearly, 123456), 123456);

        ck_assert(coverage_is_estimate(&mostly));
        ck_assert_uint_eq(coverage_scale(&mostly, 980), 1000);

        ck_assert(coverage_is_estimate(&none));
        ck_assert_uint_eq(coverage_scale(&none, 5), 5);
        ck_assert_double_eq(coverage_rate(&none, 5), 0);
        ck_assert(!coverage_is_estimate(&nothing));
}
END_TEST

START_TEST(test_sampled) {
        _cleanup_(store_closep) Store *store = sample_open();
        _cleanup_(reading_freep) Reading *r = sample_read(store, 0, 10, NULL);
        _cleanup_(calls_done) Calls c = read_calls(r);

        ck_assert_uint_eq(c.coverage.recorded_ns, 10 * NSEC_PER_SEC); /* there are no recordings: all of it */
        ck_assert_uint_eq(c.coverage.covered_ns, NSEC_PER_SEC);
        ck_assert(coverage_is_estimate(&c.coverage));

        ck_assert_uint_eq(c.n, 2);
        ck_assert_str_eq(c.items[0]->op, "send"); /* most time first */
        ck_assert_str_eq(c.items[0]->thread->comm, "holder");
        ck_assert_str_eq(c.items[0]->resource->name, "tcp 10.0.0.2:5432");
        ck_assert_uint_eq(c.items[0]->count, 100);
        ck_assert_uint_eq(c.items[0]->errors, 5);
        ck_assert_uint_eq(c.items[0]->bytes, 4000);
        ck_assert_uint_eq(c.items[0]->total_ns, 50 * NSEC_PER_MSEC);
        ck_assert_uint_eq(c.items[0]->max_ns, 2 * NSEC_PER_MSEC);
        ck_assert_uint_eq(c.items[0]->histogram[3], 90);
        ck_assert_uint_eq(c.items[0]->histogram[4], 10);
        ck_assert_uint_eq(coverage_scale(&c.coverage, c.items[0]->count), 1000);
        ck_assert_double_eq_tol(coverage_rate(&c.coverage, c.items[0]->count), 100, 1e-9);
        ck_assert_str_eq(c.items[1]->op, "receive");
}
END_TEST

START_TEST(test_clipped) {
        _cleanup_(store_closep) Store *store = sample_open();
        _cleanup_(reading_freep) Reading *r = sample_read(store, 8.5, 9.5, NULL);
        _cleanup_(calls_done) Calls c = read_calls(r);

        /* Half of the range was covered, by half of the rows. */
        ck_assert_uint_eq(c.coverage.recorded_ns, NSEC_PER_SEC);
        ck_assert_uint_eq(c.coverage.covered_ns, NSEC_PER_SEC / 2);
        ck_assert_uint_eq(c.items[0]->count, 50);
        ck_assert_uint_eq(coverage_scale(&c.coverage, c.items[0]->count), 100);
        ck_assert_uint_eq(c.items[0]->max_ns, 2 * NSEC_PER_MSEC); /* at full length */
}
END_TEST

START_TEST(test_full) {
        _cleanup_(store_closep) Store *store = sample_open();
        _cleanup_(reading_freep) Reading *r = sample_read(store, 9, 10, NULL);
        _cleanup_(calls_done) Calls c = read_calls(r);

        ck_assert(!coverage_is_estimate(&c.coverage));
        ck_assert_uint_eq(coverage_scale(&c.coverage, c.items[0]->count), 100);
}
END_TEST

/* What was not recorded at all is no reason to estimate anything for it. */
START_TEST(test_recorded) {
        _cleanup_(store_closep) Store *store = sample_open();
        _cleanup_(reading_freep) Reading *r = NULL;
        _cleanup_(calls_done) Calls c = {};
        static const struct {
                const char *name;
                int64_t start, end;
        } recordings[] = { { "a", 4, 6 }, { "b", 5, 7 }, { "c", 8, 60 }, { "later", 70, 80 } };
        int64_t id;

        for (size_t i = 0; i < ELEMENTSOF(recordings); i++) {
                assert_done(store_recording_begin(store, recordings[i].name,
                                SAMPLE_START + recordings[i].start * SECOND, "{}", &id, &error));
                assert_done(store_recording_end(
                                store, id, SAMPLE_START + recordings[i].end * SECOND, "finished", &error));
        }

        r = sample_read(store, 0, 10, NULL);
        c = read_calls(r);
        ck_assert_uint_eq(c.coverage.recorded_ns, 5 * NSEC_PER_SEC); /* 4 to 7 and 8 to 10 */
        ck_assert_uint_eq(c.coverage.covered_ns, NSEC_PER_SEC);
        ck_assert_uint_eq(coverage_scale(&c.coverage, c.items[0]->count), 500);
}
END_TEST

START_TEST(test_none) {
        _cleanup_(store_closep) Store *store = sample_open();
        _cleanup_(reading_freep) Reading *before = sample_read(store, 0, 9, NULL), *other = NULL;
        _cleanup_(calls_done) Calls none = read_calls(before), foreign = {};

        reading_end(before);
        other = sample_read(store, 0, 10, "pid:10");
        foreign = read_calls(other);

        ck_assert_uint_eq(none.n, 0);
        ck_assert_uint_eq(none.coverage.covered_ns, 0);
        ck_assert_uint_eq(foreign.n, 0);
        ck_assert_uint_eq(foreign.coverage.covered_ns, NSEC_PER_SEC);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("calls");
        TCase *c = tcase_create("calls");

        tcase_add_test(c, test_arithmetic);
        tcase_add_test(c, test_sampled);
        tcase_add_test(c, test_clipped);
        tcase_add_test(c, test_full);
        tcase_add_test(c, test_recorded);
        tcase_add_test(c, test_none);
        suite_add_tcase(suite, c);
        return run_suite(suite);
}
