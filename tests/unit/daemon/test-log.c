/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* daemon/log.c: one message is one line, whatever the names in it. */
#include "log.h"
#include "daemon-unit.h"

#include <pthread.h>

START_TEST(test_lines) {
        Capture c = capture_begin();
        _cleanup_free_ char *text = NULL;

        log_set_level(LOG_INFO);
        log_error("%s is %d", "x", 7);
        log_debug("not shown");
        log_info("a\nprismd: forged \x1b[31mred\x7f \xff end");
        log_set_level(LOG_DEBUG);
        log_debug("shown");
        log_set_level(LOG_ERR);
        log_warning("not shown either");
        log_set_level(LOG_INFO);
        text = capture_end(&c);
        ck_assert_str_eq(text,
                        "prismd: x is 7\n"
                        "prismd: a\\nprismd: forged \\x1b[31mred\\x7f \\xff end\n"
                        "prismd: shown\n");
}
END_TEST

START_TEST(test_long_message) {
        _cleanup_free_ char *name = malloc(100001), *text = NULL;
        Capture c;

        ck_assert_ptr_nonnull(name);
        memset(name, 'x', 100000);
        name[100000] = '\0';
        c = capture_begin();
        log_error("%s", name);
        text = capture_end(&c);
        ck_assert_uint_eq(strlen(text), strlen("prismd: \n") + 100000);
}
END_TEST

/* A JOURNAL_STREAM that names another file than stderr, or nothing at all. */
START_TEST(test_stale_stream) {
        static const char *const values[] = { "1:2", "", "x", "8:", "99999999999999999999999:1" };

        for (size_t i = 0; i < ELEMENTSOF(values); i++) {
                _cleanup_free_ char *text = NULL;
                Capture c = capture_begin();

                ck_assert_int_eq(setenv("JOURNAL_STREAM", values[i], 1), 0);
                log_error("here");
                text = capture_end(&c);
                ck_assert_str_eq(text, "prismd: here\n");
        }
        ck_assert_int_eq(unsetenv("JOURNAL_STREAM"), 0);
}
END_TEST

/* So many lines and no more, also from several threads. */
static void *log_much(void *userdata) {
        for (unsigned i = 0; i < LOG_LINES_MAX; i++)
                log_event(LOG_ERR, &(LogFields){ .target = "pid:1", .pid = 1 }, "%s", (const char *) userdata);
        return NULL;
}

START_TEST(test_limit) {
        _cleanup_free_ char *text = NULL;
        unsigned before = log_lines(LOG_ERR), lines = 0;
        pthread_t threads[3];
        Capture c;

        ck_assert_uint_gt(before, 0);
        ck_assert_uint_lt(before, LOG_LINES_MAX);
        c = capture_begin();
        for (size_t i = 0; i < ELEMENTSOF(threads); i++)
                ck_assert_int_eq(pthread_create(&threads[i], NULL, log_much, (void *) "much"), 0);
        for (size_t i = 0; i < ELEMENTSOF(threads); i++)
                ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
        log_catch_up(); /* the time is not over */
        text = capture_end(&c);
        for (const char *p = text; (p = strstr(p, "prismd: much\n")); p++)
                lines++;
        ck_assert_uint_eq(lines, LOG_LINES_MAX - before);
        ck_assert_uint_eq(strlen(text), lines * strlen("prismd: much\n"));
        ck_assert_uint_eq(log_lines(LOG_ERR), LOG_LINES_MAX);
}
END_TEST

START_TEST(test_levels) {
        ck_assert_int_eq(log_level_from_name("error"), LOG_ERR);
        ck_assert_int_eq(log_level_from_name("warning"), LOG_WARNING);
        ck_assert_int_eq(log_level_from_name("info"), LOG_INFO);
        ck_assert_int_eq(log_level_from_name("debug"), LOG_DEBUG);
        ck_assert_int_eq(log_level_from_name(""), -EINVAL);
        ck_assert_int_eq(log_level_from_name("7"), -EINVAL);
        ck_assert_int_eq(log_level_from_name("Error"), -EINVAL);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("log");
        TCase *tests = tcase_create("log");

        tcase_add_test(tests, test_lines);
        tcase_add_test(tests, test_long_message);
        tcase_add_test(tests, test_stale_stream);
        tcase_add_test(tests, test_levels);
        tcase_add_test(tests, test_limit);
        suite_add_tcase(suite, tests);
        return run_suite(suite);
}
