/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* store/basic/text.c: what is shown is safe to show. */
#include "basic/text.h"
#include "unit.h"

static void assert_escaped(const char *s, const char *expected) {
        char *escaped = text_escape(s);

        ck_assert_str_eq(escaped, expected);
        free(escaped);
}

START_TEST(test_utf8) {
        ck_assert(utf8_is_valid(""));
        ck_assert(utf8_is_valid("a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"));
        ck_assert(!utf8_is_valid("\x80"));
        ck_assert(!utf8_is_valid("a\xc3"));
        ck_assert(!utf8_is_valid("\xc0\xaf"));         /* overlong */
        ck_assert(!utf8_is_valid("\xe0\x80\xaf"));     /* overlong */
        ck_assert(!utf8_is_valid("\xed\xa0\x80"));     /* surrogate */
        ck_assert(!utf8_is_valid("\xf4\x90\x80\x80")); /* above U+10FFFF */
        ck_assert(!utf8_is_valid("\xff"));
}
END_TEST

START_TEST(test_escape) {
        assert_escaped("plain text", "plain text");
        assert_escaped("", "");
        assert_escaped("a\nb\tc\rd\\e", "a\\nb\\tc\\rd\\\\e");
        assert_escaped("\x1b[31mred", "\\x1b[31mred");
        assert_escaped("\x01\x7f", "\\x01\\x7f");
        assert_escaped("\xc2\x9b", "\\xc2\\x9b"); /* C1: some terminals take it for ESC [ */
        assert_escaped("\xc2\xa0", "\xc2\xa0");
        assert_escaped("x\xe2\x80\xaey", "x\\xe2\\x80\\xaey"); /* right-to-left override */
        assert_escaped("\xe2\x81\xa6", "\\xe2\\x81\\xa6");
        assert_escaped("\xd8\x9c", "\\xd8\\x9c");
        assert_escaped("\xc3\xa4\xe2\x82\xac", "\xc3\xa4\xe2\x82\xac");
        assert_escaped("a\xff\xc3", "a\\xff\\xc3");
        assert_escaped("\xed\xa0\x80", "\\xed\\xa0\\x80");
}
END_TEST

static bool is_safe(const char *s) {
        for (; *s; s++) {
                unsigned char c = (unsigned char) *s;

                if (c < 0x20 || c == 0x7f || (c == 0xc2 && (unsigned char) s[1] < 0xa0))
                        return false;
        }
        return true;
}

/* All bytes, alone and in pairs: what comes out has no control character. */
START_TEST(test_escape_all_bytes) {
        for (unsigned first = 0; first < 256; first++)
                for (unsigned second = 1; second < 256; second++) {
                        char s[3] = { (char) first, (char) second, 0 }, *escaped;

                        escaped = text_escape(first == 0 ? s + 1 : s);
                        if (!utf8_is_valid(escaped) || !is_safe(escaped))
                                ck_abort_msg("%02x %02x becomes %s", first, second, escaped);
                        free(escaped);
                }
}
END_TEST

START_TEST(test_to_utf8) {
        static const char *const cases[][2] = {
                { "ok \xc3\xa4", "ok \xc3\xa4" },
                { "\xff", "\xef\xbf\xbd" },
                { "a\xc3", "a\xef\xbf\xbd" },
                { "\xc3(\xe2\x82", "\xef\xbf\xbd(\xef\xbf\xbd\xef\xbf\xbd" },
                { "new\nline", "new\nline" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                char *valid = text_to_utf8(cases[i][0]);

                ck_assert_str_eq(valid, cases[i][1]);
                ck_assert(utf8_is_valid(valid));
                free(valid);
        }
}
END_TEST

START_TEST(test_numbers) {
        static const struct {
                uint64_t ns;
                const char *text;
        } durations[] = {
                { 0, "0" },
                { 1, "1ns" },
                { 999, "999ns" },
                { 45000, "45us" },
                { 1999, "1us" },
                { 999999, "999us" },
                { 1234567, "1.234ms" },
                { 12345678, "12.3ms" },
                { 123456789, "123ms" },
                { 999999999, "999ms" },
                { 1234567890, "1.234s" },
                { 60 * NSEC_PER_SEC, "60.0s" },
                { 3600 * NSEC_PER_SEC, "3600s" },
                { UINT64_MAX, "18446744073s" },
        };
        char buffer[64], small[4];

        for (size_t i = 0; i < ELEMENTSOF(durations); i++)
                ck_assert_str_eq(format_duration(buffer, sizeof(buffer), durations[i].ns), durations[i].text);
        ck_assert_str_eq(format_duration(small, sizeof(small), 1234567890), "1.2");

        ck_assert_str_eq(format_share(buffer, sizeof(buffer), 123, 1000), "12.3%");
        ck_assert_str_eq(format_share(buffer, sizeof(buffer), 1, 1), "100.0%");
        ck_assert_str_eq(format_share(buffer, sizeof(buffer), 0, 5), "0.0%");
        ck_assert_str_eq(format_share(buffer, sizeof(buffer), 0, 0), "-");
        ck_assert_str_eq(format_share(buffer, sizeof(buffer), UINT64_MAX, UINT64_MAX), "100.0%");
}
END_TEST

START_TEST(test_moments) {
        char buffer[64];

        ck_assert_str_eq(format_moment(buffer, sizeof(buffer), 0), "1970-01-01 00:00:00.000000");
        ck_assert_str_eq(format_moment(buffer, sizeof(buffer), INT64_C(1796036530123456789)),
                        "2026-11-30 11:02:10.123456");
        ck_assert_str_eq(format_rfc3339(buffer, sizeof(buffer), INT64_C(1796036530123456789)),
                        "2026-11-30T11:02:10.123456Z");
        ck_assert_str_eq(format_moment(buffer, sizeof(buffer), -1), "1969-12-31 23:59:59.999999");
        ck_assert_str_eq(format_moment(buffer, sizeof(buffer), INT64_MAX), "2262-04-11 23:47:16.854775");
}
END_TEST

START_TEST(test_recording_names) {
        char long_name[202];

        memset(long_name, 'a', 201);
        long_name[201] = '\0';
        ck_assert(!recording_name_is_valid(long_name));
        long_name[200] = '\0';
        ck_assert(recording_name_is_valid(long_name));

        ck_assert(recording_name_is_valid("slow"));
        ck_assert(recording_name_is_valid("a b, 'c' \xc3\xa4"));
        ck_assert(recording_name_is_valid("x'; DROP TABLE wait; --"));
        ck_assert(!recording_name_is_valid(""));
        ck_assert(!recording_name_is_valid("-x"));
        ck_assert(!recording_name_is_valid(".x"));
        ck_assert(!recording_name_is_valid("a..b"));
        ck_assert(!recording_name_is_valid("a/b"));
        ck_assert(!recording_name_is_valid("../../x'; DROP TABLE"));
        ck_assert(!recording_name_is_valid("a\nb"));
        ck_assert(!recording_name_is_valid("a\xc2\x85"));
        ck_assert(!recording_name_is_valid("a\xff"));
}
END_TEST

int main(void) {
        Suite *suite = suite_create("text");
        TCase *tests = tcase_create("text");

        tcase_add_test(tests, test_utf8);
        tcase_add_test(tests, test_escape);
        tcase_add_test(tests, test_escape_all_bytes);
        tcase_add_test(tests, test_to_utf8);
        tcase_add_test(tests, test_numbers);
        tcase_add_test(tests, test_moments);
        tcase_add_test(tests, test_recording_names);
        suite_add_tcase(suite, tests);
        return run_suite(suite);
}
