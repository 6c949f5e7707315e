/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* analysis/clip.c: what part of a row lies in a range. */
#include "analysis/clip.h"

#include "../unit.h"

static void assert_clip(int64_t ts_ns, int64_t dt_ns, int64_t start_ns, int64_t end_ns, uint64_t part, uint64_t whole) {
        Clip c = clip_row(ts_ns, dt_ns, start_ns, end_ns);

        ck_assert_uint_eq(c.part, part);
        ck_assert_uint_eq(c.whole, whole);
}

START_TEST(test_overlap) {
        /* Rows are (ts - dt, ts], ranges (start, end]. */
        assert_clip(20, 10, 0, 100, 10, 10);
        assert_clip(20, 10, 10, 20, 10, 10);
        assert_clip(20, 10, 15, 100, 5, 10);
        assert_clip(20, 10, 0, 13, 3, 10);
        assert_clip(20, 10, 12, 15, 3, 10);
        assert_clip(20, 10, 20, 30, 0, 10);
        assert_clip(20, 10, 0, 10, 0, 10);
        assert_clip(20, 10, 30, 40, 0, 10);
        assert_clip(20, 10, 15, 15, 0, 10);
}
END_TEST

START_TEST(test_no_length) {
        assert_clip(20, 0, 19, 20, 1, 1);
        assert_clip(20, 0, 20, 30, 0, 1);
        assert_clip(20, 0, 10, 19, 0, 1);
        assert_clip(20, -5, 0, 100, 1, 1);
}
END_TEST

START_TEST(test_extremes) {
        assert_clip(INT64_MIN + 5, 10, INT64_MIN, INT64_MAX, 5, 10);
        assert_clip(INT64_MAX, INT64_MAX, 0, INT64_MAX, INT64_MAX, INT64_MAX);
        assert_clip(INT64_MAX, 10, INT64_MAX - 4, INT64_MAX, 4, 10);
}
END_TEST

START_TEST(test_value) {
        ck_assert_uint_eq(clip_value((Clip){ 10, 10 }, 7), 7);
        ck_assert_uint_eq(clip_value((Clip){ 5, 10 }, 7), 4); /* 3.5 to the nearest */
        ck_assert_uint_eq(clip_value((Clip){ 1, 10 }, 4), 0);
        ck_assert_uint_eq(clip_value((Clip){ 0, 10 }, UINT64_MAX), 0);
        /* A product of more than 64 bits. */
        ck_assert_uint_eq(clip_value((Clip){ UINT64_C(30000000000), UINT64_C(60000000000) }, UINT64_C(60000000000)),
                        UINT64_C(30000000000));
        ck_assert_uint_eq(clip_value((Clip){ UINT64_MAX - 1, UINT64_MAX }, UINT64_MAX), UINT64_MAX - 1);
}
END_TEST

START_TEST(test_parts_add_up) {
        /* What two ranges that meet take of a row is what there is, to a nanosecond of rounding. */
        for (int64_t cut = 1; cut < 997; cut++) {
                Clip a = clip_row(1000, 997, 0, 3 + cut), b = clip_row(1000, 997, 3 + cut, 2000);
                uint64_t sum = clip_value(a, 12345) + clip_value(b, 12345);

                ck_assert_uint_eq(a.part + b.part, 997);
                ck_assert_uint_ge(sum, 12344);
                ck_assert_uint_le(sum, 12346);
        }
}
END_TEST

int main(void) {
        Suite *suite = suite_create("clip");
        TCase *c = tcase_create("clip");

        tcase_add_test(c, test_overlap);
        tcase_add_test(c, test_no_length);
        tcase_add_test(c, test_extremes);
        tcase_add_test(c, test_value);
        tcase_add_test(c, test_parts_add_up);
        suite_add_tcase(suite, c);
        return run_suite(suite);
}
