/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* daemon/target.c: what may be a target, how it is called, and which processes it wants. */
#include "target.h"
#include "daemon-unit.h"

static const TargetKind all_kinds[] = { TARGET_PROCESS, TARGET_CGROUP, TARGET_UNIT, TARGET_COMMAND };

/* Refused as a target of this kind, with a sentence, and nothing set. */
static void assert_refused(TargetKind kind, const char *argument, const char *part) {
        Target *t = (Target *) 1;
        char *error = NULL;
        int r = target_new(kind, argument, PRISM_FOLLOW_CHILDREN, 0, &t, &error);

        ck_assert_msg(r == -EINVAL, "%s \"%s\": %d", target_kind_name(kind), argument, r);
        ck_assert_msg(!isempty(error), "%s \"%s\": refused without a word", target_kind_name(kind), argument);
        assert_contains(error, part);
        ck_assert_ptr_eq(t, (Target *) 1);
        free(error);
        ck_assert_int_eq(target_new(kind, argument, PRISM_FOLLOW_CHILDREN, 0, &t, NULL), -EINVAL);
}

START_TEST(test_unclean) {
        static const char *const unclean[] = { "", "a\nb", "a\tb", "\x1b[31m", "a\x7f", "\x01", "a\r", "\xff", "a\xc3",
                "\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80",
                "a\xc2\x85"
                "b",
                "\xc2\x9b"
                "31m" };
        char long_one[1026];

        memset(long_one, 'a', sizeof(long_one));
        long_one[0] = '/';
        long_one[1025] = '\0';
        for (size_t k = 0; k < ELEMENTSOF(all_kinds); k++) {
                for (size_t i = 0; i < ELEMENTSOF(unclean); i++)
                        assert_refused(all_kinds[k], unclean[i], "control characters");
                assert_refused(all_kinds[k], long_one, "1024 bytes");
        }
}
END_TEST

START_TEST(test_process) {
        static const char *const bad[] = { "x", "-1", "1 ", " 1", "1x", "0x10", "4294967296", "99999999999999999999",
                "../1", "1'; DROP TABLE process" };
        Looking l = { .pid = (uint32_t) getpid() };
        Target *t = NULL;
        char pid[16];

        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_refused(TARGET_PROCESS, bad[i], "number");
        (void) snprintf(pid, sizeof(pid), "%d", getpid());
        assert_done(target_new(TARGET_PROCESS, pid, PRISM_FOLLOW_NONE, 3, &t, &error));
        ck_assert_uint_eq(t->pid, (uint32_t) getpid());
        ck_assert_int_eq(t->follow, PRISM_FOLLOW_NONE);
        ck_assert_uint_eq(t->depth, 3);
        ck_assert_str_eq(startswith(t->name, "pid:"), pid);
        ck_assert(!target_is_open(t));
        ck_assert_int_eq(target_for_each_process(t, look, &l), 0);
        ck_assert_uint_eq(l.seen, 1);
        ck_assert_uint_eq(l.others, 0);
        target_free(t);
}
END_TEST

START_TEST(test_units) {
        static const char *const bad[] = { "a/b.service", "/x.service", "../x.service", "x.service/", "nginx",
                "x'; DROP TABLE" };
        Target *t = (Target *) 1;
        char *error = NULL;

        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_refused(TARGET_UNIT, bad[i], "no slash");
        ck_assert_int_eq(target_new(TARGET_UNIT, "prism-no-such.service", PRISM_FOLLOW_NONE, 0, &t, &error), -ENOENT);
        ck_assert_int_eq(target_new(TARGET_UNIT, "\xc3\xa4'; DROP TABLE x.service", PRISM_FOLLOW_NONE, 0, &t, &error),
                        -ENOENT);
        ck_assert_ptr_eq(t, (Target *) 1);
        ck_assert_ptr_null(error);
}
END_TEST

START_TEST(test_cgroups) {
        static const char *const bad[] = { "relative", "../..", "/../etc", "/a/../b", "/." };
        Looking l = { .pid = (uint32_t) getpid() };
        Target *t = NULL;

        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_refused(TARGET_CGROUP, bad[i], "absolute path");
        ck_assert_int_eq(target_new(TARGET_CGROUP, "/x'; DROP TABLE", PRISM_FOLLOW_NONE, 0, &t, NULL), -ENOENT);
        ck_assert_ptr_null(t);
        if (target_new(TARGET_CGROUP, "/", PRISM_FOLLOW_CHILDREN, 0, &t, NULL) == -ENOENT)
                skip_test("no cgroup hierarchy is mounted");
        ck_assert_str_eq(t->name, "cgroup:/");
        ck_assert(target_is_open(t));
        ck_assert_int_eq(target_for_each_process(t, look, &l), 0);
        ck_assert_uint_ge(l.seen, 1);
        target_free(t);
}
END_TEST

START_TEST(test_commands) {
        _cleanup_(target_freep) Target *t = NULL, *kernel = NULL;
        char *argv[] = { (char *) "/opt/prism test/argv zero", (char *) "1000", NULL };
        Looking l;
        pid_t pid;

        assert_refused(TARGET_COMMAND, "a(", "not one that can be used");
        assert_refused(TARGET_COMMAND, "((a{1,100}){1,100}){1,100}", "not one that can be used");

        assert_done(target_new(TARGET_COMMAND, "prism \\(com+\\).*|argv zero", PRISM_FOLLOW_CHILDREN, 0, &t, &error));
        ck_assert_str_eq(t->name, "command:prism \\(com+\\).*|argv zero");
        ck_assert(target_is_open(t));

        pid = child_start("prism (comm)");
        l = (Looking){ .pid = (uint32_t) pid };
        ck_assert_int_eq(target_for_each_process(t, look, &l), 0);
        ck_assert_uint_eq(l.seen, 1);
        ck_assert_uint_eq(l.others, 0);
        l = (Looking){ .pid = (uint32_t) pid, .answer = -EXFULL };
        ck_assert_int_eq(target_for_each_process(t, look, &l), -EXFULL);
        child_end(pid);

        pid = child_execute(argv);
        l = (Looking){ .pid = (uint32_t) pid };
        ck_assert_int_eq(target_for_each_process(t, look, &l), 0);
        ck_assert_uint_eq(l.seen, 1);
        child_end(pid);
        l = (Looking){ .pid = (uint32_t) pid };
        ck_assert_int_eq(target_for_each_process(t, look, &l), 0);
        ck_assert_uint_eq(l.seen + l.others, 0);

        assert_done(target_new(TARGET_COMMAND, "kthreadd|kworker.*", PRISM_FOLLOW_CHILDREN, 0, &kernel, &error));
        l = (Looking){};
        ck_assert_int_eq(target_for_each_process(kernel, look, &l), 0);
        ck_assert_uint_eq(l.others, 0);
}
END_TEST

START_TEST(test_names) {
        ck_assert_str_eq(target_kind_name(TARGET_PROCESS), "process");
        ck_assert_str_eq(target_kind_name(TARGET_CGROUP), "cgroup");
        ck_assert_str_eq(target_kind_name(TARGET_UNIT), "unit");
        ck_assert_str_eq(target_kind_name(TARGET_COMMAND), "command");
        for (size_t k = 0; k < ELEMENTSOF(all_kinds); k++) {
                _cleanup_free_ char *name = target_make_name(all_kinds[k], "x%sy");

                assert_contains(name, ":x%sy");
        }
}
END_TEST

int main(void) {
        Suite *suite = suite_create("target");
        TCase *tests = tcase_create("target");

        tcase_set_timeout(tests, 30);
        tcase_add_test(tests, test_unclean);
        tcase_add_test(tests, test_process);
        tcase_add_test(tests, test_units);
        tcase_add_test(tests, test_cgroups);
        tcase_add_test(tests, test_commands);
        tcase_add_test(tests, test_names);
        suite_add_tcase(suite, tests);
        return run_suite(suite);
}
