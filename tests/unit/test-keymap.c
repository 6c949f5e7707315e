/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* store/keymap.c: keys, ids, and taking back. */
#include "keymap.h"
#include "unit.h"

START_TEST(test_many) {
        KeyMap m = {};

        keymap_begin(&m);
        for (uint64_t i = 1; i <= 20000; i++)
                ck_assert_int_eq(keymap_put(&m, i << 32 | i, (int64_t) i), 0);
        for (uint64_t i = 1; i <= 20000; i++)
                ck_assert_int_eq(keymap_get(&m, i << 32 | i), (int64_t) i);
        ck_assert_int_eq(keymap_get(&m, 1), 0);
        ck_assert_int_eq(keymap_get(&m, UINT64_MAX), 0);
        keymap_clear(&m);
        ck_assert_int_eq(keymap_get(&m, UINT64_C(1) << 32 | 1), 0);
}
END_TEST

START_TEST(test_rollback) {
        KeyMap m = {};

        keymap_begin(&m);
        ck_assert_int_eq(keymap_put(&m, 1, 10), 0);
        ck_assert_int_eq(keymap_put(&m, 2, 20), 0);

        keymap_begin(&m);
        ck_assert_int_eq(keymap_put(&m, 2, 21), 0);
        ck_assert_int_eq(keymap_put(&m, 2, 22), 0);
        ck_assert_int_eq(keymap_put(&m, 3, 30), 0);
        ck_assert_int_eq(keymap_put(&m, 3, 31), 0);
        ck_assert_int_eq(keymap_get(&m, 2), 22);
        keymap_rollback(&m);

        ck_assert_int_eq(keymap_get(&m, 1), 10);
        ck_assert_int_eq(keymap_get(&m, 2), 20);
        ck_assert_int_eq(keymap_get(&m, 3), 0);

        /* What one rollback restored, the next must not lose. */
        keymap_begin(&m);
        ck_assert_int_eq(keymap_put(&m, 3, 33), 0);
        keymap_rollback(&m);
        ck_assert_int_eq(keymap_get(&m, 2), 20);
        ck_assert_int_eq(keymap_get(&m, 3), 0);
        keymap_clear(&m);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("keymap");
        TCase *tests = tcase_create("keymap");

        tcase_add_test(tests, test_many);
        tcase_add_test(tests, test_rollback);
        suite_add_tcase(suite, tests);
        return run_suite(suite);
}
