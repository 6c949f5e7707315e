/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* daemon/cgroup-time.c: parsers with good and bad files, then groups of this machine where one can be made. */
#include "cgroup-time.h"
#include "daemon-unit.h"

#include <sys/stat.h>
#include <time.h>

#include "cgroup.h"
#include "clock.h"

#define V2_CPU_STAT                \
        "usage_usec 8617213\n"     \
        "user_usec 5200000\n"      \
        "system_usec 3417213\n"    \
        "nr_periods 120\n"         \
        "nr_throttled 37\n"        \
        "throttled_usec 1503456\n" \
        "nr_bursts 0\n"            \
        "burst_usec 0\n"
#define V1_CPU_STAT "nr_periods 120\nnr_throttled 37\nthrottled_time 1503456789\n"

START_TEST(test_fields) {
        static const struct {
                const char *text;
                int r;
                int64_t value;
        } table[] = {
                { "nr_throttled 37\n", 0, 37 },
                { "nr_throttled 37", 0, 37 },
                { "a 1\nnr_throttled 0\nb 2\n", 0, 0 },
                { "nr_throttled 9223372036854775807\n", 0, INT64_MAX },
                { "nr_throttled 9223372036854775808\n", -EINVAL, 0 },
                { "nr_throttled 99999999999999999999999999999999999999\n", -EINVAL, 0 },
                { "nr_throttled -1\n", -EINVAL, 0 },
                { "nr_throttled \n", -EINVAL, 0 },
                { "nr_throttled 3x\n", -EINVAL, 0 },
                { "nr_throttled  3\n", -EINVAL, 0 },
                { "nr_throttled max\n", -EINVAL, 0 },
                { "nr_throttled", -ENOENT, 0 },
                { "nr_throttled\t3\n", -ENOENT, 0 },
                { "nr_throttled_more 3\n", -ENOENT, 0 },
                { " nr_throttled 3\n", -ENOENT, 0 },
                { "xnr_throttled 3\n", -ENOENT, 0 },
                { "", -ENOENT, 0 },
                { "\n\n\n", -ENOENT, 0 },
                { "\n\nnr_throttled 5\n", 0, 5 },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                int64_t value = 99;
                int r = cgroup_parse_field(table[i].text, "nr_throttled", &value);

                ck_assert_msg(r == table[i].r, "\"%s\": %d", table[i].text, r);
                ck_assert_int_eq(value, r < 0 ? 99 : table[i].value);
        }
}
END_TEST

START_TEST(test_numbers) {
        static const char *const bad[] = { "", "\n", "-1\n", "1 2\n", "1\n2\n", "1\n\n", "max\n", "0x10\n", "1.5\n",
                " 1\n", "9223372036854775808\n", "11111111111111111111111111111111111111111\n" };
        int64_t value = 99;

        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                ck_assert_msg(cgroup_parse_number(bad[i], &value) == -EINVAL, "\"%s\"", bad[i]);
        ck_assert_int_eq(value, 99);
        ck_assert_int_eq(cgroup_parse_number("0\n", &value), 0);
        ck_assert_int_eq(value, 0);
        ck_assert_int_eq(cgroup_parse_number("9223372036854775807", &value), 0);
        ck_assert_int_eq(value, INT64_MAX);
}
END_TEST

START_TEST(test_cpu_stat) {
        CgroupValues v = CGROUP_VALUES_UNKNOWN;

        cgroup_parse_cpu_stat(V2_CPU_STAT, true, &v);
        ck_assert_int_eq(v.usage_ns, 8617213000);
        ck_assert_int_eq(v.throttled_ns, 1503456000);
        ck_assert_int_eq(v.throttled_periods, 37);
        ck_assert_int_eq(v.memory_bytes, -1);

        v = CGROUP_VALUES_UNKNOWN;
        cgroup_parse_cpu_stat(V1_CPU_STAT, false, &v);
        ck_assert_int_eq(v.usage_ns, -1);
        ck_assert_int_eq(v.throttled_ns, 1503456789);
        ck_assert_int_eq(v.throttled_periods, 37);

        /* Each version's file read as the other's has no throttled time. */
        v = CGROUP_VALUES_UNKNOWN;
        cgroup_parse_cpu_stat(V1_CPU_STAT, true, &v);
        ck_assert_int_eq(v.throttled_ns, -1);
        v = CGROUP_VALUES_UNKNOWN;
        cgroup_parse_cpu_stat(V2_CPU_STAT, false, &v);
        ck_assert_int_eq(v.throttled_ns, -1);

        /* The controller is not enabled: usage alone. Microseconds that do not fit are not known. */
        v = CGROUP_VALUES_UNKNOWN;
        cgroup_parse_cpu_stat("usage_usec 5\nuser_usec 5\nsystem_usec 0\n", true, &v);
        ck_assert_int_eq(v.usage_ns, 5000);
        ck_assert_int_eq(v.throttled_periods, -1);
        v = CGROUP_VALUES_UNKNOWN;
        cgroup_parse_cpu_stat("usage_usec 9223372036854775807\nthrottled_usec x\nnr_throttled -3\n", true, &v);
        ck_assert_mem_eq(&v, &CGROUP_VALUES_UNKNOWN, sizeof(v));
}
END_TEST

START_TEST(test_memory_events) {
        ck_assert_int_eq(cgroup_parse_memory_events("low 9\nhigh 1\nmax 20\noom 300\noom_kill 5000\n"), 321);
        ck_assert_int_eq(cgroup_parse_memory_events("low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n"), 0);
        ck_assert_int_eq(cgroup_parse_memory_events("max 4\n"), 4);
        ck_assert_int_eq(cgroup_parse_memory_events("high x\nmax 4\n"), 4);
        ck_assert_int_eq(cgroup_parse_memory_events(""), -1);
        ck_assert_int_eq(cgroup_parse_memory_events("low 5\n"), -1);
        ck_assert_int_eq(cgroup_parse_memory_events("high 9223372036854775807\nmax 1\n"), INT64_MAX);
}
END_TEST

START_TEST(test_paths) {
        static const char text[] = "12:cpu,cpuacct:/a:b\n"
                                   "11:memory:/deep/er\n"
                                   "10:name=systemd:/user.slice\n"
                                   "9:cpuset:/\n"
                                   "0::/unified one\n";
        static const struct {
                const char *text, *controller, *path;
        } table[] = {
                { text, "cpu", "/a:b" },
                { text, "cpuacct", "/a:b" },
                { text, "memory", "/deep/er" },
                { text, "cpuset", "/" },
                { text, NULL, "/unified one" },
                { text, "cp", NULL },
                { text, "cpu,cpuacct", NULL },
                { text, "", NULL },
                { text, "blkio", NULL },
                { "0::/x", NULL, "/x" },
                { "0::/x", "cpu", NULL },
                { "", NULL, NULL },
                { "\n::\n", NULL, NULL },
                { "0:", NULL, NULL },
                { "0::", NULL, NULL },
                { "0::relative\n", NULL, NULL },
                { ":cpu", "cpu", NULL },
                { "cpu", "cpu", NULL },
                { "1:,cpu,:/x\n", "cpu", "/x" },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_free_ char *path = NULL;
                int r = cgroup_parse_path(table[i].text, table[i].controller, &path);

                ck_assert_msg(r == (table[i].path ? 0 : -ENOENT), "\"%s\" %s: %d", table[i].text,
                                table[i].controller ?: "unified", r);
                if (r == 0)
                        ck_assert_str_eq(path, table[i].path);
                else
                        ck_assert_ptr_null(path);
        }
}
END_TEST

/* Whatever a file says, the parsers end, and within its bounds. */
START_TEST(test_noise) {
        static const char letters[] = "0123456789 \n:,/-nr_throttled usage_usec cpu high max\xff";
        uint32_t state = 20261130;

        for (unsigned i = 0; i < 20000; i++) {
                _cleanup_free_ char *text = NULL, *path = NULL;
                CgroupValues v = CGROUP_VALUES_UNKNOWN;
                size_t n = next_random(&state) % 80;
                int64_t value;

                text = calloc(1, n + 1);
                ck_assert_ptr_nonnull(text);
                for (size_t k = 0; k < n; k++)
                        text[k] = letters[next_random(&state) % (sizeof(letters) - 1)];
                cgroup_parse_cpu_stat(text, i & 1, &v);
                ck_assert_int_ge(v.throttled_periods, -1);
                ck_assert_int_ge(v.usage_ns, -1);
                ck_assert_int_ge(cgroup_parse_memory_events(text), -1);
                if (cgroup_parse_number(text, &value) >= 0)
                        ck_assert_int_ge(value, 0);
                if (cgroup_parse_path(text, i & 1 ? "cpu" : NULL, &path) >= 0)
                        ck_assert_int_eq(path[0], '/');
        }
}
END_TEST

START_TEST(test_difference) {
        CgroupValues before = { 100, 50, 5, 4096, 2 }, after = before, d;

        ck_assert(!cgroup_values_difference(&before, &after, &d));
        ck_assert_int_eq(d.usage_ns, 0);
        ck_assert_int_eq(d.memory_bytes, 4096);

        after = (CgroupValues){ 350, 50, 5, 8192, 4 };
        ck_assert(cgroup_values_difference(&before, &after, &d));
        ck_assert_mem_eq(&d, (&(CgroupValues){ 250, 0, 0, 8192, 2 }), sizeof(d));

        /* Memory that was given back is a change; a total that went down is not this group's. */
        after = before;
        after.memory_bytes = 0;
        ck_assert(cgroup_values_difference(&before, &after, &d));
        ck_assert_int_eq(d.memory_bytes, 0);
        after = (CgroupValues){ 99, 60, 5, 4096, 2 };
        ck_assert(cgroup_values_difference(&before, &after, &d));
        ck_assert_mem_eq(&d, (&(CgroupValues){ -1, 10, 0, 4096, 0 }), sizeof(d));

        /* What was or is not known gives no difference. */
        after = CGROUP_VALUES_UNKNOWN;
        (void) cgroup_values_difference(&before, &after, &d);
        ck_assert_mem_eq(&d, &CGROUP_VALUES_UNKNOWN, sizeof(d));
        ck_assert(!cgroup_values_difference(&after, &after, &d));
        after = before;
        before = CGROUP_VALUES_UNKNOWN;
        (void) cgroup_values_difference(&before, &after, &d);
        ck_assert_mem_eq(&d, (&(CgroupValues){ -1, -1, -1, 4096, -1 }), sizeof(d));
}
END_TEST

typedef struct Seen {
        const char *path, *outer;
        unsigned rows, outer_rows;
        uint64_t from_ns, until_ns;
        CgroupValues sum;
} Seen;

static int see(const char *path, uint64_t from_ns, uint64_t until_ns, const CgroupValues *values, void *userdata) {
        Seen *s = userdata;

        s->outer_rows += streq(path, s->outer);
        if (!streq(path, s->path))
                return 0;
        s->rows++;
        s->from_ns = from_ns;
        s->until_ns = until_ns;
        s->sum.usage_ns += MAX(values->usage_ns, 0);
        s->sum.throttled_ns += MAX(values->throttled_ns, 0);
        return 0;
}

static void write_text(const char *group, const char *name, const char *text) {
        _cleanup_free_ char *path = NULL;
        FILE *f;

        ck_assert_int_ge(asprintf(&path, "%s/%s", group, name), 0);
        f = fopen(path, "we");
        ck_assert_msg(f != NULL, "%s: %s", path, strerror(errno));
        (void) fputs(text, f);
        ck_assert_int_eq(fclose(f), 0);
}

/* Two groups, one in the other, in the hierarchy that counts CPU time; a child that spins in the inner one. */
START_TEST(test_group) {
        _cleanup_(cgroup_times_freep) CgroupTimes *t = NULL;
        _cleanup_free_ char *mount = NULL, *outer = NULL, *inner = NULL, *number = NULL;
        uint64_t now = 1000 * NSEC_PER_SEC;
        unsigned left_out = 99;
        Seen seen = {};
        bool unified;
        pid_t pid;

        if (geteuid() != 0 || cgroup_controller_directory("cpuacct", &mount, &unified) < 0)
                skip_test("needs root and a cgroup hierarchy");
        ck_assert_int_ge(asprintf(&outer, "%s/prism-unit-%d", mount, (int) getpid()), 0);
        ck_assert_int_ge(asprintf(&inner, "%s/inner", outer), 0);
        if (mkdir(outer, 0755) < 0)
                skip_test("no group can be made in %s: %s", mount, strerror(errno));
        ck_assert_int_eq(mkdir(inner, 0755), 0);
        seen.path = inner + strlen(mount);
        seen.outer = outer + strlen(mount);

        pid = fork();
        ck_assert_int_ge(pid, 0);
        if (pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                for (;;)
                        ;
        }
        ck_assert_int_ge(asprintf(&number, "%d", (int) pid), 0);
        write_text(inner, "cgroup.procs", number);

        ck_assert_int_eq(cgroup_times_new(&t), 0);
        for (unsigned tick = 0; tick < 3; tick++, now += NSEC_PER_SEC) {
                cgroup_times_begin(t);
                ck_assert_int_eq(cgroup_times_process(t, (uint32_t) pid, 5, now), 0);
                ck_assert_int_eq(cgroup_times_collect(t, now, see, &seen, &left_out), 0);
                ck_assert_uint_eq(left_out, 0);
                /* The first look only gives what to compare with. */
                ck_assert_uint_eq(seen.rows, tick);
                if (tick > 0) {
                        ck_assert_uint_eq(seen.from_ns, now - NSEC_PER_SEC);
                        ck_assert_uint_eq(seen.until_ns, now);
                }
                ck_assert_int_eq(usleep(100000), 0);
        }
        ck_assert_int_gt(seen.sum.usage_ns, 0);
        ck_assert_int_le(seen.sum.usage_ns, (int64_t) NSEC_PER_SEC);
        /* The outer one has met no limit. */
        ck_assert_uint_eq(seen.outer_rows, 0);

        /* Stopped, it uses nothing: no row. */
        ck_assert_int_eq(kill(pid, SIGSTOP), 0);
        ck_assert_int_eq(waitpid(pid, NULL, WUNTRACED), pid);
        for (unsigned tick = 0; tick < 2; tick++, now += NSEC_PER_SEC) {
                seen.rows = 0;
                cgroup_times_begin(t);
                ck_assert_int_eq(cgroup_times_process(t, (uint32_t) pid, 5, now), 0);
                ck_assert_int_eq(cgroup_times_collect(t, now, see, &seen, &left_out), 0);
        }
        ck_assert_uint_eq(seen.rows, 0);

        /* Nobody is in it any more: forgotten, and met for the first time after that. */
        ck_assert_int_eq(kill(pid, SIGCONT), 0);
        cgroup_times_begin(t);
        ck_assert_int_eq(cgroup_times_collect(t, now, see, &seen, &left_out), 0);
        now += NSEC_PER_SEC;
        cgroup_times_begin(t);
        ck_assert_int_eq(cgroup_times_process(t, (uint32_t) pid, 5, now), 0);
        ck_assert_int_eq(cgroup_times_collect(t, now, see, &seen, &left_out), 0);
        ck_assert_uint_eq(seen.rows, 0);

        /* Removed and made again between two looks, under a process that seems to be the same: what the new one
         * has used is no difference to the old one. */
        ck_assert_int_eq(usleep(100000), 0);
        write_text(mount, "cgroup.procs", number);
        ck_assert_int_eq(rmdir(inner), 0);
        ck_assert_int_eq(mkdir(inner, 0755), 0);
        write_text(inner, "cgroup.procs", number);
        for (unsigned tick = 0; tick < 3; tick++) {
                now += NSEC_PER_SEC;
                ck_assert_uint_eq(seen.rows, 0);
                ck_assert_int_eq(usleep(50000), 0);
                cgroup_times_begin(t);
                ck_assert_int_eq(cgroup_times_process(t, (uint32_t) pid, 5, now), 0);
                ck_assert_int_eq(cgroup_times_collect(t, now, see, &seen, &left_out), 0);
        }
        ck_assert_uint_eq(seen.rows, 1);
        ck_assert_uint_eq(seen.from_ns, now - NSEC_PER_SEC);

        child_end(pid);
        for (unsigned i = 0; i < 100 && rmdir(inner) < 0; i++)
                ck_assert_int_eq(usleep(10000), 0);
        ck_assert_int_eq(rmdir(outer), 0);

        /* A process that has ended, and one that never was. */
        cgroup_times_begin(t);
        ck_assert_int_eq(cgroup_times_process(t, (uint32_t) pid, 5, now), 0);
        ck_assert_int_eq(cgroup_times_process(t, 0, 0, now), 0);
        ck_assert_int_eq(cgroup_times_collect(t, now, see, &seen, &left_out), 0);
}
END_TEST

/* Numbers of groups are the inode numbers of their directories. */
START_TEST(test_names) {
        _cleanup_(cgroup_names_freep) CgroupNames *names = NULL;
        _cleanup_free_ char *mount = NULL, *group = NULL;
        const char *path;
        struct stat st;
        bool unified;

        ck_assert_int_eq(cgroup_names_new(&names), 0);
        ck_assert_ptr_null(cgroup_names_find(names, UINT64_MAX, 1));
        if (cgroup_controller_directory("blkio", &mount, &unified) < 0)
                skip_test("no cgroup hierarchy is mounted");
        ck_assert_int_eq(stat(mount, &st), 0);
        ck_assert_ptr_null(cgroup_names_find(names, st.st_ino, 2));

        ck_assert_int_ge(asprintf(&group, "%s/prism-unit-%d", mount, (int) getpid()), 0);
        if (mkdir(group, 0755) < 0)
                skip_test("no group can be made in %s: %s", mount, strerror(errno));
        ck_assert_int_eq(stat(group, &st), 0);
        /* Too soon after the last look, then not. */
        ck_assert_ptr_null(cgroup_names_find(names, st.st_ino, 3));
        path = cgroup_names_find(names, st.st_ino, 1 + CGROUP_NAMES_SCAN_NS);
        ck_assert_ptr_nonnull(path);
        ck_assert_str_eq(path, group + strlen(mount));
        ck_assert_int_eq(rmdir(group), 0);
        /* What was known stays known until the next look. */
        ck_assert_ptr_nonnull(cgroup_names_find(names, st.st_ino, 2 + CGROUP_NAMES_SCAN_NS));
        ck_assert_ptr_null(cgroup_names_find(names, UINT64_MAX, 1 + 2 * CGROUP_NAMES_SCAN_NS));
        ck_assert_ptr_null(cgroup_names_find(names, st.st_ino, 2 + 2 * CGROUP_NAMES_SCAN_NS));
}
END_TEST

int main(void) {
        Suite *suite = suite_create("cgroup-time");
        TCase *tests = tcase_create("cgroup-time");

        tcase_set_timeout(tests, 30);
        tcase_add_test(tests, test_fields);
        tcase_add_test(tests, test_numbers);
        tcase_add_test(tests, test_cpu_stat);
        tcase_add_test(tests, test_memory_events);
        tcase_add_test(tests, test_paths);
        tcase_add_test(tests, test_noise);
        tcase_add_test(tests, test_difference);
        tcase_add_test(tests, test_group);
        tcase_add_test(tests, test_names);
        suite_add_tcase(suite, tests);
        return run_suite(suite);
}
