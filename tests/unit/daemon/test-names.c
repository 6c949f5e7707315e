/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* daemon/names.c: a word for each number, also for those that nobody has named. */
#include "names.h"
#include "daemon-unit.h"

START_TEST(test_system_calls) {
        static const struct {
                unsigned op;
                const char *name;
        } known[] = {
                { 0, "read" },
                { 7, "poll" },
                { 35, "nanosleep" },
                { 61, "wait4" },
                { 202, "futex" },
                { 230, "clock_nanosleep" },
                { 449, "futex_waitv" },
                { 455, "futex_wait" },
                { PRISM_OP_COMPAT | 3, "read" },
                { PRISM_OP_COMPAT | 162, "nanosleep" },
                { PRISM_OP_COMPAT | 240, "futex" },
                { PRISM_OP_COMPAT | 422, "futex_time64" },
                { PRISM_OP_COMPAT | 449, "futex_waitv" },
        };

        for (size_t i = 0; i < ELEMENTSOF(known); i++)
                ck_assert_str_eq(op_name(PRISM_KIND_OTHER, known[i].op), known[i].name);
}
END_TEST

/* What a newer kernel, or a program with a wrong number in its register, may send. */
START_TEST(test_unnamed_system_calls) {
        const char *first;

        ck_assert_str_eq(op_name(PRISM_KIND_OTHER, 511), "syscall-511");
        ck_assert_str_eq(op_name(PRISM_KIND_OTHER, 600), "syscall-600");
        ck_assert_str_eq(op_name(PRISM_KIND_OTHER, 1024 + 88), "syscall-1112");
        ck_assert_str_eq(op_name(PRISM_KIND_OTHER, PRISM_OP_COMPAT - 1), "syscall-16383");
        ck_assert_str_eq(op_name(PRISM_KIND_OTHER, PRISM_OP_COMPAT | 600), "syscall-600");
        ck_assert_str_eq(op_name(PRISM_KIND_OTHER, PRISM_OP_NAMED - 1), "syscall-16383");

        /* They live as long as the program and do not move. */
        first = op_name(PRISM_KIND_OTHER, 601);
        for (unsigned op = 0; op < 0x10000; op++)
                ck_assert_msg(!isempty(op_name(PRISM_KIND_OTHER, op)), "no name for %u", op);
        ck_assert_ptr_eq(op_name(PRISM_KIND_OTHER, 601), first);
        ck_assert_str_eq(first, "syscall-601");
}
END_TEST

START_TEST(test_named_ops) {
        ck_assert_str_eq(op_name(PRISM_KIND_OTHER, PRISM_OP_FUTEX_WAIT), "wait");
        ck_assert_str_eq(op_name(PRISM_KIND_OTHER, PRISM_OP_FUTEX_LOCK_PI), "lock_pi");
        ck_assert_str_eq(op_name(PRISM_KIND_OTHER, PRISM_OP_STOPPED), "stopped");
        ck_assert_str_eq(op_name(PRISM_KIND_OTHER, PRISM_OP_UNKNOWN), "unknown");
        ck_assert_str_eq(op_name(PRISM_KIND_OTHER, _PRISM_OP_MAX), "unknown");
        ck_assert_str_eq(op_name(PRISM_KIND_OTHER, 0xffff), "unknown");
        ck_assert_str_eq(op_name(PRISM_KIND_OTHER, UINT32_MAX), "unknown");
        for (unsigned a = PRISM_OP_NAMED; a < _PRISM_OP_MAX; a++)
                for (unsigned b = PRISM_OP_NAMED; b < a; b++)
                        ck_assert_str_ne(op_name(PRISM_KIND_OTHER, a), op_name(PRISM_KIND_OTHER, b));
}
END_TEST

/* The word of each number, none twice; beyond the last, the one that says so. */
static void assert_words(const char *(*name)(unsigned number), unsigned first, unsigned end, const char *beyond) {
        for (unsigned a = first; a < end; a++) {
                ck_assert_msg(name(a) && name(a)[0] != '\0', "no word for %u", a);
                for (unsigned b = first; b < a; b++)
                        ck_assert_msg(!streq(name(a), name(b)), "\"%s\" stands for %u and %u", name(a), b, a);
        }
        ck_assert_str_eq(name(end), beyond);
        ck_assert_str_eq(name(UINT32_MAX), beyond);
}

START_TEST(test_words) {
        /* Kind 0 is not a kind; it shows as the last one. */
        ck_assert_str_eq(kind_name(PRISM_KIND_NONE), "other");
        assert_words(kind_name, PRISM_KIND_NONE + 1, _PRISM_KIND_MAX, "other");
        assert_words(loss_name, 0, _PRISM_LOSS_MAX, "unknown");
        assert_words(waker_kind_name, PRISM_WAKER_UNSEEN, PRISM_WAKER_TIMER + 1, "unseen");
        assert_words(follow_name, PRISM_FOLLOW_NONE, PRISM_FOLLOW_CHILDREN + 1, "none");

        ck_assert_str_eq(kind_name(PRISM_KIND_FUTEX), "futex");
        ck_assert_str_eq(kind_name(PRISM_KIND_KERNEL_LOCK), "kernel-lock");
        ck_assert_str_eq(waker_kind_name(PRISM_WAKER_IRQ), "irq");
        ck_assert_str_eq(loss_name(PRISM_LOSS_WAIT_FULL), "wait-map-full");
}
END_TEST

START_TEST(test_follow) {
        ck_assert_int_eq(follow_from_name("none"), PRISM_FOLLOW_NONE);
        ck_assert_int_eq(follow_from_name("children"), PRISM_FOLLOW_CHILDREN);
        ck_assert_int_eq(follow_from_name(""), -EINVAL);
        ck_assert_int_eq(follow_from_name("Children"), -EINVAL);
        ck_assert_int_eq(follow_from_name("children "), -EINVAL);
        ck_assert_int_eq(follow_from_name("child"), -EINVAL);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("names");
        TCase *tests = tcase_create("names");

        tcase_add_test(tests, test_system_calls);
        tcase_add_test(tests, test_unnamed_system_calls);
        tcase_add_test(tests, test_named_ops);
        tcase_add_test(tests, test_words);
        tcase_add_test(tests, test_follow);
        suite_add_tcase(suite, tests);
        return run_suite(suite);
}
