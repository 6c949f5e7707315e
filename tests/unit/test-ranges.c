/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* store/ranges.c: a name, or two moments. */
#include "ranges.h"
#include "unit.h"

#define NOW (1000000 * SECOND)

START_TEST(test_resolve) {
        _cleanup_(store_closep) Store *s = open_store(NULL);
        int64_t id, start = 1, end = 2;
        char *name = NULL;

        assert_done(store_recording_begin(s, "slow", 100 * SECOND, NULL, &id, &error));
        assert_done(store_resolve_range(s, "slow", NOW, &start, &end, &name, &error));
        ck_assert_int_eq(start, 100 * SECOND);
        ck_assert_int_eq(end, NOW);
        ck_assert_str_eq(name, "slow");
        free(name);

        assert_done(store_recording_end(s, id, 110 * SECOND, "finished", &error));
        assert_done(store_resolve_range(s, "slow", NOW, &start, &end, &name, &error));
        ck_assert_int_eq(end, 110 * SECOND);
        free(name);

        assert_done(store_resolve_range(s, "-10s..-5s", NOW, &start, &end, &name, &error));
        ck_assert_int_eq(start, NOW - 10 * SECOND);
        ck_assert_int_eq(end, NOW - 5 * SECOND);
        ck_assert_ptr_null(name);

        /* A recording wins, also over what could be a period. */
        assert_done(store_recording_begin(s, "-10s..-5s", 200 * SECOND, NULL, &id, &error));
        assert_done(store_resolve_range(s, "-10s..-5s", NOW, &start, &end, &name, &error));
        ck_assert_int_eq(start, 200 * SECOND);
        ck_assert_str_eq(name, "-10s..-5s");
        free(name);
}
END_TEST

START_TEST(test_errors) {
        _cleanup_(store_closep) Store *s = open_store(NULL);
        int64_t start = 1, end = 2;
        char *name = NULL;

        assert_fails(store_resolve_range(s, "none", NOW, &start, &end, &name, &error), -ENOENT, "no recording none");
        assert_fails(store_resolve_range(s, "", NOW, &start, &end, &name, &error), -ENOENT, "no recording");
        assert_fails(store_resolve_range(s, "x' OR '1'='1", NOW, &start, &end, &name, &error), -ENOENT, "x' OR");
        assert_fails(store_resolve_range(s, "a\x1b[2J", NOW, &start, &end, &name, &error), -ENOENT, "a\\x1b[2J");
        assert_fails(store_resolve_range(s, "-5s..-10s", NOW, &start, &end, &name, &error), -EINVAL, "not a period");
        assert_fails(store_resolve_range(s, "../../etc", NOW, &start, &end, &name, &error), -EINVAL, "START..END");
        assert_fails(store_resolve_range(s, "-9d..-99999999d", NOW, &start, &end, &name, &error), -ERANGE,
                        "not a period");
        ck_assert_int_eq(start, 1);
        ck_assert_int_eq(end, 2);
        ck_assert_ptr_null(name);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("ranges");
        TCase *tests = tcase_create("ranges");

        tcase_add_test(tests, test_resolve);
        tcase_add_test(tests, test_errors);
        suite_add_tcase(suite, tests);
        return run_suite(suite);
}
