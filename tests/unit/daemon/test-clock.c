/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* daemon/clock.c: the offset between the clocks, held still until it is wrong. */
#include "clock.h"
#include "daemon-unit.h"

#include <time.h>

START_TEST(test_offset) {
        struct timespec before, after;
        Clock c = {};
        int64_t now, held;

        ck_assert(clock_update(&c, false));
        ck_assert(c.known);
        ck_assert_int_eq(clock_gettime(CLOCK_REALTIME, &before), 0);
        now = clock_unix(&c, boot_now());
        ck_assert_int_eq(clock_gettime(CLOCK_REALTIME, &after), 0);
        ck_assert_int_ge(now, before.tv_sec * SECOND + before.tv_nsec - CLOCK_TOLERANCE_NS);
        ck_assert_int_le(now, after.tv_sec * SECOND + after.tv_nsec + CLOCK_TOLERANCE_NS);

        /* Off by less than is tolerated: the same to the nanosecond. By more: read anew. */
        c.offset_ns += CLOCK_TOLERANCE_NS / 2;
        held = c.offset_ns;
        ck_assert(!clock_update(&c, false));
        ck_assert_int_eq(c.offset_ns, held);
        c.offset_ns -= 3600 * SECOND;
        /* While something is recorded it stays, and says by how much. */
        ck_assert(!clock_update(&c, true));
        ck_assert_int_eq(c.offset_ns, held - 3600 * SECOND);
        ck_assert_int_lt(llabs(c.held_ns - 3600 * SECOND), 2 * CLOCK_TOLERANCE_NS);
        ck_assert(clock_update(&c, false));
        ck_assert_int_lt(llabs(c.offset_ns - held), 2 * CLOCK_TOLERANCE_NS);
        ck_assert_int_eq(c.held_ns, 0);
        c.offset_ns += 2 * CLOCK_TOLERANCE_NS + CLOCK_TOLERANCE_NS / 2;
        ck_assert(clock_update(&c, false));
}
END_TEST

START_TEST(test_conversion) {
        Clock c = { .offset_ns = 1764500000 * SECOND, .known = true };

        ck_assert_int_eq(clock_unix(&c, 0), 1764500000 * SECOND);
        ck_assert_int_eq(clock_unix(&c, 7), 1764500000 * SECOND + 7);
        c.offset_ns = -SECOND; /* a clock that was set before 1970 */
        ck_assert_int_eq(clock_unix(&c, 0), -SECOND);
}
END_TEST

START_TEST(test_boot_clock) {
        uint64_t first = boot_now();

        ck_assert_uint_gt(first, 0);
        for (unsigned i = 0; i < 1000; i++) {
                uint64_t next = boot_now();

                ck_assert_uint_ge(next, first);
                first = next;
        }
}
END_TEST

int main(void) {
        Suite *suite = suite_create("clock");
        TCase *tests = tcase_create("clock");

        tcase_add_test(tests, test_offset);
        tcase_add_test(tests, test_conversion);
        tcase_add_test(tests, test_boot_clock);
        suite_add_tcase(suite, tests);
        return run_suite(suite);
}
