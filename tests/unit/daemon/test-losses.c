/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* daemon/losses.c: nothing that is counted goes, not even when there are more reasons than places. */
#include "losses.h"
#include "daemon-unit.h"

static uint64_t count_of(const Losses *l, const char *part, const char *reason) {
        for (size_t i = 0; i < l->n; i++)
                if (streq(l->entries[i].part, part) && streq(l->entries[i].reason, reason))
                        return l->entries[i].total;
        return 0;
}

START_TEST(test_count) {
        Losses l = {};
        char part[] = "kernel";

        ck_assert_uint_eq(losses_total(&l), 0);
        losses_count(&l, "kernel", "full", 0);
        ck_assert_uint_eq(l.n, 0);
        losses_count(&l, "kernel", "full", 3);
        losses_count(&l, "kernel", "busy", 5);
        losses_count(&l, "store", "full", 7);
        losses_count(&l, part, "full", 4); /* the text decides, not where it lies */
        ck_assert_uint_eq(l.n, 3);
        ck_assert_uint_eq(count_of(&l, "kernel", "full"), 7);
        ck_assert_uint_eq(count_of(&l, "kernel", "busy"), 5);
        ck_assert_uint_eq(count_of(&l, "store", "full"), 7);
        ck_assert_uint_eq(losses_total(&l), 19);
}
END_TEST

START_TEST(test_more_than_fit) {
        static char reasons[LOSSES_MAX + 10][16];
        Losses l = {};
        uint64_t sum = 0;

        for (unsigned round = 0; round < 2; round++)
                for (unsigned i = 0; i < ELEMENTSOF(reasons); i++) {
                        (void) snprintf(reasons[i], sizeof(reasons[i]), "reason-%u", i);
                        losses_count(&l, "kernel", reasons[i], i + 1);
                        sum += i + 1;
                        ck_assert_uint_eq(losses_total(&l), sum);
                        ck_assert_uint_le(l.n, LOSSES_MAX);
                }
        ck_assert_uint_eq(count_of(&l, "kernel", "reason-0"), 2);
        ck_assert_uint_eq(count_of(&l, "kernel", "reason-62"), 2 * 63);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("losses");
        TCase *tests = tcase_create("losses");

        tcase_add_test(tests, test_count);
        tcase_add_test(tests, test_more_than_fit);
        suite_add_tcase(suite, tests);
        return run_suite(suite);
}
