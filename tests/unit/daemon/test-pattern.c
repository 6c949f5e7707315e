/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* daemon/pattern.c: what matches, what is refused, and that no pattern costs more than a pattern may. */
#include "pattern.h"
#include "daemon-unit.h"

#include <sys/resource.h>

/* Far above what the limits in pattern.c allow, far below what a pattern without limits takes. */
#define MEMORY_MAX_KIB (8L * 1024)
#define CPU_MAX_SECONDS 10

static bool matches(const char *pattern, const char *name) {
        _cleanup_(pattern_freep) Pattern *p = NULL;

        assert_done(pattern_new(pattern, &p, &error));
        return pattern_matches(p, name);
}

START_TEST(test_whole_name) {
        ck_assert(matches("redis", "redis"));
        ck_assert(!matches("redis", "redis-server"));
        ck_assert(!matches("server", "redis-server"));
        ck_assert(!matches("redis", "redis\n"));
        ck_assert(!matches("redis$", "redis\n"));
        ck_assert(!matches("(?m)redis$", "redis\nx"));
        ck_assert(matches("redis.*", "redis-server"));
        ck_assert(matches("a|ab", "ab"));
        ck_assert(matches("nginx: (master|worker) process", "nginx: worker process"));
        ck_assert(!matches("a", ""));
        ck_assert(matches("a*", ""));
        ck_assert(matches("^a$", "a"));
        ck_assert(matches("[a-z]+\\d", "worker7"));
        ck_assert(!matches("A", "a"));
        ck_assert(matches("(?i)A", "a"));
        /* Names are bytes. */
        ck_assert(matches("\\xff.", "\xff\xfe"));
        ck_assert(!matches("(*UTF).+", "\xff\xfe"));
        ck_assert(matches(".*", "a b\tc"));
}
END_TEST

static void assert_refused(const char *text) {
        Pattern *p = (Pattern *) 1;
        char *error = NULL;

        ck_assert_msg(pattern_new(text, &p, &error) == -EINVAL, "\"%s\" was taken", text);
        ck_assert_ptr_eq(p, (Pattern *) 1);
        ck_assert_msg(!isempty(error), "\"%s\" was refused without a word", text);
        free(error);
        ck_assert_int_eq(pattern_new(text, &p, NULL), -EINVAL);
}

START_TEST(test_refused) {
        static const char *const bad[] = { "", "(", ")", "[", "a**b(", "*", "+a", "a{2,1}", "[z-a]", "(?<n", "\\",
                "\\C", "(?P=none)", "(*NOSUCHVERB)", "(?R", "[[:nosuch:]]", "\\x{110000000}", "(?<=a+)b", "a{99999}" };
        _cleanup_free_ char *deep = NULL;
        char long_one[PATTERN_LENGTH_MAX + 2];

        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_refused(bad[i]);

        memset(long_one, 'a', sizeof(long_one));
        long_one[PATTERN_LENGTH_MAX + 1] = '\0';
        assert_refused(long_one);
        long_one[PATTERN_LENGTH_MAX] = '\0';
        ck_assert(matches(long_one, long_one));

        ck_assert_int_gt(asprintf(&deep, "%0100d", 0), 0);
        memset(deep, '(', 50 + 1);
        deep[51] = 'a';
        memset(deep + 52, ')', 48);
        assert_refused(deep);

        assert_fails(pattern_new("ab(c", &(Pattern *){ NULL }, &error), -EINVAL, "byte 4");
        assert_fails(pattern_new("", &(Pattern *){ NULL }, &error), -EINVAL, "1 to 256 bytes");
}
END_TEST

/* Runs in a process of its own, which the kernel ends when it takes too long. Exits 0 when it kept to its memory, too. */
static void in_bounds(const char *pattern, const char *name) {
        int status;
        pid_t pid = fork();

        ck_assert_int_ge(pid, 0);
        if (pid == 0) {
                struct rlimit cpu = { CPU_MAX_SECONDS, CPU_MAX_SECONDS };
                struct rusage before, after;
                Pattern *p = NULL;

                (void) setrlimit(RLIMIT_CPU, &cpu);
                (void) getrusage(RUSAGE_SELF, &before);
                if (pattern_new(pattern, &p, NULL) >= 0)
                        for (unsigned i = 0; i < 20; i++)
                                (void) pattern_matches(p, name);
                pattern_free(p);
                (void) getrusage(RUSAGE_SELF, &after);
                _exit(after.ru_maxrss - before.ru_maxrss > MEMORY_MAX_KIB ? 2 : 0);
        }
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_msg(!WIFSIGNALED(status), "\"%s\": ended by signal %d", pattern, WTERMSIG(status));
        ck_assert_msg(WEXITSTATUS(status) == 0, "\"%s\": too much memory", pattern);
}

START_TEST(test_bombs) {
        static const char *const bombs[] = {
                "((a{1,100}){1,100}){1,100}",
                "((a{0,65535}){0,65535}){0,65535}",
                "(((((((((a{1,9}){1,9}){1,9}){1,9}){1,9}){1,9}){1,9}){1,9}){1,9})",
                "(a+)+$",
                "(a+)+[bc]",
                "(a|a)*[bc]",
                "(a|aa)+[bc]",
                "(.*)*(.*)*(.*)*[bc]",
                "(?:(?:a*)*)*[bc]",
                "(?R)*[bc]",
                "(a(?1)?)*[bc]",
                "(?=(a+)+[bc])a*",
                "(a*)*\\1*\\1*[bc]",
                "(?:a?){200}a{200}",
                "()()()()()()()()()()()()()()()()()()()()()()()()()()()()()()()()()()()()()()()()()()()()()()()()()()()"
                "()()()()()"
                "()()()()(a|b)*[cd]",
        };
        char name[4096];

        memset(name, 'a', sizeof(name) - 1);
        name[sizeof(name) - 1] = '\0';
        for (size_t i = 0; i < ELEMENTSOF(bombs); i++)
                in_bounds(bombs[i], name);
}
END_TEST

START_TEST(test_nested_repetition_is_refused) {
        assert_refused("((a{1,100}){1,100}){1,100}");
        assert_refused("((a{0,65535}){0,65535}){0,65535}");
}
END_TEST

/* prismd asks a pattern again and again for as long as it runs: what one name cost must not be missing for the next. */
START_TEST(test_for_ever) {
        _cleanup_(pattern_freep) Pattern *p = NULL;
        char name[256], hard[4096];

        memset(name, 'a', sizeof(name) - 1);
        name[sizeof(name) - 1] = '\0';
        memset(hard, 'a', sizeof(hard) - 1);
        hard[sizeof(hard) - 1] = '\0';
        assert_done(pattern_new("(a|b)+(c|d)?", &p, &error));
        for (unsigned i = 0; i < 2000; i++) {
                ck_assert(pattern_matches(p, name));
                ck_assert(pattern_matches(p, "ab"));
                ck_assert(!pattern_matches(p, "abx"));
                if (i % 100 == 0)
                        (void) pattern_matches(p, hard);
        }
}
END_TEST

/* Each pattern that random bytes make is taken or refused with a sentence, and matching with it ends. */
START_TEST(test_random) {
        static const char alphabet[] = "ab.*+?()[]{}|^$\\1,9:=!<>P-#";
        uint32_t state = 1;
        unsigned taken = 0;

        for (unsigned i = 0; i < 20000; i++) {
                _cleanup_(pattern_freep) Pattern *p = NULL;
                _cleanup_free_ char *error = NULL;
                char text[25];
                size_t n = 1 + next_random(&state) % (sizeof(text) - 1);
                int r;

                for (size_t k = 0; k < n; k++)
                        text[k] = next_random(&state) % 16 ? alphabet[next_random(&state) % (sizeof(alphabet) - 1)]
                                                           : (char) (1 + next_random(&state) % 255);
                text[n] = '\0';
                r = pattern_new(text, &p, &error);
                ck_assert_msg(r == 0 ? p != NULL : r == -EINVAL && !isempty(error), "\"%s\": %d", text, r);
                if (r < 0)
                        continue;
                taken++;
                (void) pattern_matches(p, "");
                (void) pattern_matches(p, "abababababababababababab");
                (void) pattern_matches(p, text);
        }
        ck_assert_uint_gt(taken, 100);
        ck_assert_uint_lt(taken, 19900);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("pattern");
        TCase *tests = tcase_create("pattern");

        tcase_set_timeout(tests, 60);
        tcase_add_test(tests, test_whole_name);
        tcase_add_test(tests, test_refused);
        tcase_add_test(tests, test_bombs);
        tcase_add_test(tests, test_nested_repetition_is_refused);
        tcase_add_test(tests, test_for_ever);
        tcase_add_test(tests, test_random);
        suite_add_tcase(suite, tests);
        return run_suite(suite);
}
