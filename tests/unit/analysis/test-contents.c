/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* analysis/contents.c: how much of what a range holds. */
#include "analysis/contents.h"

#include "sample.h"

START_TEST(test_contents) {
        _cleanup_(store_closep) Store *store = sample_open();
        Contents c;

        assert_done(contents_read(store, SAMPLE_START, SAMPLE_START + 10 * SECOND, &c, &error));
        ck_assert_uint_eq(c.threads, 2); /* the sleeper's row ends later */
        ck_assert_uint_eq(c.processes, 1);
        ck_assert_uint_eq(c.losses, 13);
        ck_assert_str_eq(c.tables[0].table, "thread_time");
        ck_assert_uint_eq(c.tables[0].rows, 20);
        ck_assert_str_eq(c.tables[3].table, "call");
        ck_assert_uint_eq(c.tables[3].rows, 2);
        ck_assert_str_eq(c.tables[6].table, "ran_instead");
        ck_assert_uint_eq(c.tables[6].rows, 20);
        for (size_t i = 0; i < CONTENTS_TABLES; i++)
                ck_assert_ptr_nonnull(c.tables[i].table);

        assert_done(contents_read(store, SAMPLE_START + 50 * SECOND, SAMPLE_START + 60 * SECOND, &c, &error));
        ck_assert_uint_eq(c.tables[0].rows + c.threads + c.losses, 0);
}
END_TEST

START_TEST(test_extent) {
        _cleanup_(store_closep) Store *store = sample_open(), *empty = open_store(NULL);
        int64_t start_ns = -1, end_ns = -1;

        ck_assert_int_eq(contents_extent(empty, &start_ns, &end_ns, NULL), -ENODATA);
        ck_assert_int_eq(start_ns, -1);
        assert_done(contents_extent(store, &start_ns, &end_ns, &error));
        ck_assert_int_eq(start_ns, SAMPLE_START);
        ck_assert_int_eq(end_ns, SAMPLE_START + 40 * SECOND);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("contents");
        TCase *c = tcase_create("contents");

        tcase_add_test(c, test_contents);
        tcase_add_test(c, test_extent);
        suite_add_tcase(suite, c);
        return run_suite(suite);
}
