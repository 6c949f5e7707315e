/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* store/basic/parse.c: what people type. */
#include <time.h>

#include "basic/parse.h"
#include "unit.h"

/* 2026-11-30 12:00:00 UTC */
#define NOW INT64_C(1796040000000000000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)

static void set_zone(const char *zone) {
        ck_assert_int_eq(setenv("TZ", zone, 1), 0);
        tzset();
}

START_TEST(test_u64) {
        uint64_t n = 7;

        ck_assert_int_eq(parse_u64("0", 10, &n), 0);
        ck_assert_uint_eq(n, 0);
        ck_assert_int_eq(parse_u64("18446744073709551615", UINT64_MAX, &n), 0);
        ck_assert_uint_eq(n, UINT64_MAX);
        ck_assert_int_eq(parse_u64("007", 10, &n), 0);
        ck_assert_uint_eq(n, 7);

        ck_assert_int_eq(parse_u64("11", 10, &n), -ERANGE);
        ck_assert_int_eq(parse_u64("18446744073709551616", UINT64_MAX, &n), -ERANGE);
        ck_assert_int_eq(parse_u64("99999999999999999999999999", UINT64_MAX, &n), -ERANGE);
        ck_assert_int_eq(parse_u64("99999999999999999999999999x", UINT64_MAX, &n), -EINVAL);
        ck_assert_int_eq(parse_u64("", 10, &n), -EINVAL);
        ck_assert_int_eq(parse_u64("-1", 10, &n), -EINVAL);
        ck_assert_int_eq(parse_u64("+1", 10, &n), -EINVAL);
        ck_assert_int_eq(parse_u64(" 1", 10, &n), -EINVAL);
        ck_assert_int_eq(parse_u64("1 ", 10, &n), -EINVAL);
        ck_assert_int_eq(parse_u64("0x1", 10, &n), -EINVAL);
        ck_assert_int_eq(parse_u64("1\n", 10, &n), -EINVAL);
        ck_assert_uint_eq(n, 7);
}
END_TEST

START_TEST(test_duration) {
        static const struct {
                const char *text;
                uint64_t ns;
        } good[] = {
                { "10", 10 * NSEC_PER_SEC },
                { "1.5", 1500 * NSEC_PER_MSEC },
                { "10s", 10 * NSEC_PER_SEC },
                { "1.5m", 90 * NSEC_PER_SEC },
                { "2min", 120 * NSEC_PER_SEC },
                { "2h", 7200 * NSEC_PER_SEC },
                { "250ms", 250 * NSEC_PER_MSEC },
                { "3us", 3000 },
                { "1ns", 1 },
                { "1m30s", 90 * NSEC_PER_SEC },
                { "3d", 3 * 86400 * NSEC_PER_SEC },
                { "1h0m0s", 3600 * NSEC_PER_SEC },
                { "0.000000001s", 1 },
                { "3660d", 3660 * 86400 * NSEC_PER_SEC },
        };
        static const char *const bad[] = { "", "s", "-1s", "+1s", " 1s", "1 s", "1s ", "1x", "1m30", "1.s", ".5s",
                "1..5s", "1e3s", "10S", "1sms", "s10", "1,5s" };
        static const char *const out_of_range[] = { "0", "0s", "0.0000000001s", "3661d", "99999999999999999999999d",
                "100000d1s" };
        uint64_t ns = 42;

        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                ck_assert_msg(parse_duration(bad[i], &ns) == -EINVAL, "%s", bad[i]);
        for (size_t i = 0; i < ELEMENTSOF(out_of_range); i++)
                ck_assert_msg(parse_duration(out_of_range[i], &ns) == -ERANGE, "%s", out_of_range[i]);
        ck_assert_uint_eq(ns, 42);
        for (size_t i = 0; i < ELEMENTSOF(good); i++) {
                ck_assert_msg(parse_duration(good[i].text, &ns) == 0, "%s", good[i].text);
                ck_assert_msg(ns == good[i].ns, "%s: %llu", good[i].text, (unsigned long long) ns);
        }
}
END_TEST

START_TEST(test_moment) {
        static const struct {
                const char *text;
                int64_t ns;
        } good[] = {
                { "now", NOW },
                { "-10m", NOW - 10 * MINUTE },
                { "-1.5s", NOW - 3 * SECOND / 2 },
                { "2026-11-30T12:00:00Z", NOW },
                { "2026-11-30t12:00:00z", NOW },
                { "2026-11-30 12:00:00Z", NOW },
                { "2026-11-30T13:00:00+01:00", NOW },
                { "2026-11-30T06:30:00-05:30", NOW },
                { "2026-11-30T12:00:00.25Z", NOW + SECOND / 4 },
                { "2026-11-30T12:00:00.123456789Z", NOW + 123456789 },
                { "2026-11-30T12:00:00.1234567899Z", NOW + 123456789 },
                { "2026-11-30T12:00:00", NOW - 5 * HOUR }, /* in the zone below */
                { "2024-02-29T00:00:00Z", INT64_C(1709164800000000000) },
                { "2000-02-29T00:00:00Z", INT64_C(951782400000000000) },
                { "16:59:59", NOW - SECOND },
                { "17:00", NOW },
                { "17:00:00.5", NOW + SECOND / 2 - 24 * HOUR },
                { "18:00", NOW - 23 * HOUR },
        };
        static const char *const bad[] = { "", "yesterday", "Now", "12", "12:", "12:0", "24:00", "12:60", "12:00:61",
                "12:00:00.", "12:00x", "1:00", "-", "-5x", "--5s", "2026-11-30", "2026-13-01T00:00:00Z",
                "2026-00-01T00:00:00Z", "2026-02-29T00:00:00Z", "2100-02-29T00:00:00Z", "2026-04-31T00:00:00Z",
                "2026-11-30T25:00:00Z", "2026-11-30T12:00:00+1:00", "2026-11-30T12:00:00+24:00",
                "2026-11-30T12:00:00ZZ", "2026-11-30T12:00:00Z ", "26-11-30T12:00:00Z", "2026-11-30_12:00:00Z",
                "2026/11/30T12:00:00Z" };
        int64_t ns = 42;

        set_zone("EAST-05:00");
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                ck_assert_msg(parse_moment(bad[i], NOW, &ns) == -EINVAL, "%s", bad[i]);
        ck_assert_int_eq(parse_moment("9999-01-01T00:00:00Z", NOW, &ns), -ERANGE);
        ck_assert_int_eq(parse_moment("1969-12-31T23:59:59Z", NOW, &ns), -ERANGE);
        ck_assert_int_eq(parse_moment("-10m", MINUTE, &ns), -ERANGE);
        ck_assert_int_eq(ns, 42);
        for (size_t i = 0; i < ELEMENTSOF(good); i++) {
                ck_assert_msg(parse_moment(good[i].text, NOW, &ns) == 0, "%s", good[i].text);
                ck_assert_msg(ns == good[i].ns, "%s: %lld", good[i].text, (long long) ns);
        }
}
END_TEST

START_TEST(test_range) {
        int64_t start = 1, end = 2;

        set_zone("UTC0");
        ck_assert_int_eq(parse_range("-10m..-5m", NOW, &start, &end), 0);
        ck_assert_int_eq(start, NOW - 10 * MINUTE);
        ck_assert_int_eq(end, NOW - 5 * MINUTE);
        ck_assert_int_eq(parse_range("11:00:00.5..now", NOW, &start, &end), 0);
        ck_assert_int_eq(start, NOW - HOUR + SECOND / 2);
        ck_assert_int_eq(end, NOW);
        ck_assert_int_eq(parse_range("2026-11-30T11:00:00Z..2026-11-30T11:30:00Z", NOW, &start, &end), 0);
        ck_assert_int_eq(end - start, 30 * MINUTE);

        start = 1;
        end = 2;
        ck_assert_int_eq(parse_range("-5m..-10m", NOW, &start, &end), -EINVAL);
        ck_assert_int_eq(parse_range("now..now", NOW, &start, &end), -EINVAL);
        ck_assert_int_eq(parse_range("..now", NOW, &start, &end), -EINVAL);
        ck_assert_int_eq(parse_range("-5m..", NOW, &start, &end), -EINVAL);
        ck_assert_int_eq(parse_range("..", NOW, &start, &end), -EINVAL);
        ck_assert_int_eq(parse_range("-5m", NOW, &start, &end), -EINVAL);
        ck_assert_int_eq(parse_range("-5m...now", NOW, &start, &end), -EINVAL);
        ck_assert_int_eq(parse_range("-5m..-4m..-3m", NOW, &start, &end), -EINVAL);
        ck_assert_int_eq(start, 1);
        ck_assert_int_eq(end, 2);
}
END_TEST

START_TEST(test_assignment) {
        static const char *const bad[] = { "", "x", "=1", "1x=1", "a b=1", "a-b=1", "a;=1", "\xc3\xa4=1" };
        char *name = NULL, *value = NULL;

        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                ck_assert_msg(parse_assignment(bad[i], &name, &value) == -EINVAL, "%s", bad[i]);
        ck_assert_ptr_null(name);

        ck_assert_int_eq(parse_assignment("pid_filter2=(pid = 1)", &name, &value), 0);
        ck_assert_str_eq(name, "pid_filter2");
        ck_assert_str_eq(value, "(pid = 1)");
        free(name);
        free(value);
        ck_assert_int_eq(parse_assignment("_x=", &name, &value), 0);
        ck_assert_str_eq(value, "");
        free(name);
        free(value);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("parse");
        TCase *tests = tcase_create("parse");

        tcase_add_test(tests, test_u64);
        tcase_add_test(tests, test_duration);
        tcase_add_test(tests, test_moment);
        tcase_add_test(tests, test_range);
        tcase_add_test(tests, test_assignment);
        suite_add_tcase(suite, tests);
        return run_suite(suite);
}
