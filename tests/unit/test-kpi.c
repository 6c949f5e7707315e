/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* store/kpi.c: points come in whole or not at all, and once. */
#include <math.h>

#include "unit.h"

START_TEST(test_add_and_replace) {
        _cleanup_(store_closep) Store *s = open_store(NULL);
        const StoreKpi first[] = { { 10 * SECOND, 1.5 }, { 11 * SECOND, 2.5 } };
        const StoreKpi again[] = { { 11 * SECOND, 7 }, { 12 * SECOND, -3 } };

        assert_done(store_add_kpi(s, "x'; DROP TABLE kpi", first, ELEMENTSOF(first), &error));
        assert_done(store_add_kpi(s, "x'; DROP TABLE kpi", again, ELEMENTSOF(again), &error));
        assert_done(store_add_kpi(s, "other", first, 1, &error));
        ck_assert_int_eq(number(s, "SELECT count(*) FROM kpi WHERE name LIKE 'x%'"), 3);
        ck_assert_int_eq(number(s, "SELECT sum(value * 2) FROM kpi WHERE name LIKE 'x%'"), 11);
        ck_assert_int_eq(number(s, "SELECT count(*) FROM kpi"), 4);
}
END_TEST

START_TEST(test_not_a_number) {
        _cleanup_(store_closep) Store *s = open_store(NULL);
        const StoreKpi points[] = { { 10 * SECOND, 1 }, { 11 * SECOND, NAN } };
        const StoreKpi infinite = { 10 * SECOND, INFINITY };

        assert_fails(store_add_kpi(s, "rate", points, ELEMENTSOF(points), &error), -EINVAL, "Point 2 of rate");
        assert_fails(store_add_kpi(s, "rate", &infinite, 1, &error), -EINVAL, "Point 1 of rate");
        ck_assert_int_eq(number(s, "SELECT count(*) FROM kpi"), 0);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("kpi");
        TCase *tests = tcase_create("kpi");

        tcase_add_test(tests, test_add_and_replace);
        tcase_add_test(tests, test_not_a_number);
        suite_add_tcase(suite, tests);
        return run_suite(suite);
}
