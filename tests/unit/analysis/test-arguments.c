/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* ctl/arguments.c: what is an option, what is its value, what is an operand. */
#include "ctl/arguments.h"

#include "../unit.h"

enum {
        PID = 1,
        ALL,
        JSON = 100,
};

static const Option options[] = { { "pid", PID, true }, { "all", ALL, false } };
static const Option more[] = { { "json", JSON, false }, { "pid", JSON, false } };

#define WORDS(...) ((char **) (const char *[]){ __VA_ARGS__, NULL })

static void init(Arguments *a, char **words, bool stop) {
        int n = 0;

        while (words[n])
                n++;
        ck_assert_int_eq(arguments_init(a, n, words, stop), 0);
}

static int next(Arguments *a) {
        char *error = NULL;
        int r = arguments_next(a, options, ELEMENTSOF(options), more, ELEMENTSOF(more), &error);

        ck_assert_msg(r >= 0, "%d: %s", r, error ? error : "no sentence");
        return r;
}

static void assert_bad(char **words, const char *part) {
        _cleanup_(arguments_done) Arguments a = {};

        init(&a, words, false);
        assert_fails(arguments_next(&a, options, ELEMENTSOF(options), more, ELEMENTSOF(more), &error), -EINVAL, part);
}

START_TEST(test_options) {
        _cleanup_(arguments_done) Arguments a = {};

        init(&a, WORDS("--pid", "-5", "x", "--pid=7=8", "--json", "--all", "--pid", "", "y"), false);
        ck_assert_int_eq(next(&a), PID);
        ck_assert_str_eq(a.value, "-5"); /* a value, whatever it looks like */
        ck_assert_int_eq(next(&a), PID);
        ck_assert_str_eq(a.value, "7=8");
        ck_assert_int_eq(next(&a), JSON);
        ck_assert_ptr_null(a.value);
        ck_assert_int_eq(next(&a), ALL);
        ck_assert_int_eq(next(&a), PID);
        ck_assert_str_eq(a.value, "");
        ck_assert_int_eq(next(&a), 0);
        ck_assert_int_eq(next(&a), 0);
        ck_assert_int_eq(a.n_operands, 2);
        ck_assert_str_eq(a.operands[0], "x");
        ck_assert_str_eq(a.operands[1], "y");
        ck_assert_ptr_null(a.operands[2]);
}
END_TEST

START_TEST(test_ranges) {
        _cleanup_(arguments_done) Arguments a = {};

        init(&a, WORDS("-10m..-5m", "-", "--all"), false);
        ck_assert_int_eq(next(&a), ALL);
        ck_assert_int_eq(next(&a), 0);
        ck_assert_int_eq(a.n_operands, 2);
        ck_assert_str_eq(a.operands[0], "-10m..-5m");
        ck_assert_str_eq(a.operands[1], "-");
}
END_TEST

START_TEST(test_double_dash) {
        _cleanup_(arguments_done) Arguments a = {};

        init(&a, WORDS("--all", "--", "--all", "--", "-x"), false);
        ck_assert_int_eq(next(&a), ALL);
        ck_assert_int_eq(next(&a), 0);
        ck_assert_int_eq(a.n_operands, 3);
        ck_assert_str_eq(a.operands[0], "--all");
        ck_assert_str_eq(a.operands[1], "--");
        ck_assert_str_eq(a.operands[2], "-x");
}
END_TEST

START_TEST(test_stop) {
        _cleanup_(arguments_done) Arguments a = {};

        init(&a, WORDS("--all", "ls", "--json", "--", "-l"), true);
        ck_assert_int_eq(next(&a), ALL);
        ck_assert_int_eq(next(&a), 0);
        ck_assert_int_eq(a.n_operands, 4);
        ck_assert_str_eq(a.operands[0], "ls");
        ck_assert_str_eq(a.operands[1], "--json");
        ck_assert_str_eq(a.operands[2], "--");
        ck_assert_ptr_null(a.operands[4]);
}
END_TEST

START_TEST(test_bad) {
        assert_bad(WORDS("--nothing"), "--nothing");
        assert_bad(WORDS("--pi", "1"), "--pi");
        assert_bad(WORDS("--pid"), "needs a value");
        assert_bad(WORDS("--all=1"), "no value");
        assert_bad(WORDS("-x"), "-x");
        assert_bad(WORDS("--=3"), "--=3");
        assert_bad(WORDS("---all"), "---all");
}
END_TEST

START_TEST(test_none) {
        _cleanup_(arguments_done) Arguments a = {};
        char *none[] = { NULL };

        init(&a, none, false);
        ck_assert_int_eq(next(&a), 0);
        ck_assert_int_eq(a.n_operands, 0);
        ck_assert_ptr_null(a.operands[0]);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("arguments");
        TCase *c = tcase_create("arguments");

        tcase_add_test(c, test_options);
        tcase_add_test(c, test_ranges);
        tcase_add_test(c, test_double_dash);
        tcase_add_test(c, test_stop);
        tcase_add_test(c, test_bad);
        tcase_add_test(c, test_none);
        suite_add_tcase(suite, c);
        return run_suite(suite);
}
