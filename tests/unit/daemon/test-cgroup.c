/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* daemon/cgroup.c against the hierarchies that this machine has mounted. */
#include "cgroup.h"
#include "daemon-unit.h"

#include <limits.h>
#include <mntent.h>

#include "proc.h"

/* Where the first hierarchy of this type is mounted and a group can be made in it; false if there is none. */
static bool hierarchy(const char *type, const char *option, char *ret, size_t size) {
        struct mntent *entry;
        bool found = false;
        FILE *f = setmntent("/proc/self/mounts", "re");

        ck_assert_ptr_nonnull(f);
        while (!found && (entry = getmntent(f)))
                if (streq(entry->mnt_type, type) && (!option || hasmntopt(entry, option))) {
                        (void) snprintf(ret, size, "%s", entry->mnt_dir);
                        found = access(ret, W_OK) == 0;
                }
        endmntent(f);
        return found;
}

START_TEST(test_bad_paths) {
        static const char *const bad[] = { "", "relative", "relative/path", "..", "/..", "/a/..", "/a/../b", "/../etc",
                "/./a", "/a/.", "/a//..", ".", "./a" };
        static const char *const missing[] = { "/prism-no-such-group", "/prism-no-such-group/", "//prism-no-such-group",
                "/...", "/..a", "/a b\n'; DROP TABLE", "/\xff", "/etc", "/%s%n", "/proc", "/cgroup.procs",
                "/sys/fs/cgroup-no/x" };
        char long_one[2 * PATH_MAX];
        CgroupSet s = { .n = 99 };

        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                ck_assert_msg(cgroup_find(bad[i], &s) == -EINVAL, "\"%s\"", bad[i]);
        for (size_t i = 0; i < ELEMENTSOF(missing); i++)
                ck_assert_msg(cgroup_find(missing[i], &s) == -ENOENT, "\"%s\"", missing[i]);

        memset(long_one, 'a', sizeof(long_one));
        long_one[0] = '/';
        long_one[sizeof(long_one) - 1] = '\0';
        ck_assert_int_eq(cgroup_find(long_one, &s), -EINVAL);
        long_one[PATH_MAX - 1] = '\0';
        ck_assert_int_eq(cgroup_find(long_one, &s), -ENOENT);

        ck_assert_int_eq(cgroup_find_unit("prism-no-such.service", &s), -ENOENT);
        ck_assert_int_eq(cgroup_find_unit("", &s), -ENOENT);
        ck_assert_int_eq(cgroup_find_unit("..", &s), -ENOENT);
        ck_assert_uint_eq(s.n, 99);
}
END_TEST

/* Each group that the kernel says this process is in is found, and this process in it. */
START_TEST(test_own_groups) {
        _cleanup_free_ char *text = NULL;
        char *save = NULL;
        unsigned found = 0;

        ck_assert_int_eq(read_file("/proc/self/cgroup", 16384, &text, NULL), 0);
        for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
                const char *path = strchr(strchr(line, ':') + 1, ':') + 1;
                Looking l = { .pid = (uint32_t) getpid() };
                CgroupSet s;
                int r;

                if (strstr(path, "/.."))
                        continue;
                r = cgroup_find(path, &s);
                if (r == -ENOENT) /* that hierarchy is not mounted here */
                        continue;
                ck_assert_msg(r == 0, "%s: %d", path, r);
                ck_assert_uint_ge(s.n, 1);
                ck_assert_int_eq(cgroup_for_each_process(&s, look, &l), 0);
                ck_assert_msg(l.seen >= 1, "%s: not found in it", path);
                found++;

                l = (Looking){ .answer = -EXFULL };
                ck_assert_int_eq(cgroup_for_each_process(&s, look, &l), -EXFULL);
                ck_assert_uint_eq(l.others, 1);
                cgroup_set_done(&s);
                ck_assert_uint_eq(s.n, 0);
        }
        if (found == 0)
                skip_test("no cgroup hierarchy is mounted");
}
END_TEST

static void put_into(const char *directory_of_group, pid_t pid) {
        char path[PATH_MAX + 256], text[16];

        (void) snprintf(path, sizeof(path), "%s/cgroup.procs", directory_of_group);
        (void) snprintf(text, sizeof(text), "%d", pid);
        write_file(path, text, strlen(text));
}

static void remove_group(const char *path) {
        int r;

        /* A process leaves its group some time after it was waited for. */
        for (unsigned i = 0; i < 1000; i++) {
                r = rmdir(path);
                if (r == 0 || errno != EBUSY)
                        break;
                (void) usleep(10000);
        }
        ck_assert_msg(r == 0, "%s: %s", path, strerror(errno));
}

static unsigned times_found(const CgroupSet *s, pid_t pid, unsigned *others) {
        Looking l = { .pid = (uint32_t) pid };

        ck_assert_int_eq(cgroup_for_each_process(s, look, &l), 0);
        *others = l.others;
        return l.seen;
}

/* A group with a unit in it that moves, ends and is gone, in a hierarchy mounted at `mount`. */
static void assert_life_of_group(const char *mount, bool has_units) {
        char path[256], unit[64], group[PATH_MAX + 64], inner[PATH_MAX + 192], full[PATH_MAX + 256];
        unsigned others;
        CgroupSet outer, by_unit, by_full;
        pid_t pid;

        (void) snprintf(path, sizeof(path), "/prism-unit-%d.slice", getpid());
        (void) snprintf(unit, sizeof(unit), "prism-unit-%d.service", getpid());
        (void) snprintf(group, sizeof(group), "%s%s", mount, path);
        (void) snprintf(inner, sizeof(inner), "%s/%s", group, unit);
        ck_assert_int_eq(mkdir(group, 0755), 0);
        ck_assert_int_eq(cgroup_find_unit(unit, &by_unit), -ENOENT);
        ck_assert_int_eq(mkdir(inner, 0755), 0);
        pid = child_start("grouped");

        ck_assert_int_eq(cgroup_find(path, &outer), 0);
        ck_assert_uint_ge(outer.n, 1);
        ck_assert_uint_eq(times_found(&outer, pid, &others), 0);
        put_into(group, pid);
        ck_assert_uint_eq(times_found(&outer, pid, &others), 1);
        ck_assert_uint_eq(others, 0);
        put_into(inner, pid);
        ck_assert_uint_eq(times_found(&outer, pid, &others), 1); /* below it is in it */

        (void) snprintf(full, sizeof(full), "%s/", inner);
        ck_assert_int_eq(cgroup_find(full, &by_full), 0);
        ck_assert_uint_eq(by_full.n, 1);
        ck_assert_uint_eq(times_found(&by_full, pid, &others), 1);
        put_into(group, pid);
        ck_assert_uint_eq(times_found(&by_full, pid, &others), 0);
        put_into(inner, pid);

        if (has_units) {
                char escaped[80];

                ck_assert_int_eq(cgroup_find_unit(unit, &by_unit), 0);
                ck_assert_uint_eq(by_unit.n, 1);
                ck_assert_str_eq(by_unit.directories[0], inner);
                ck_assert_uint_eq(times_found(&by_unit, pid, &others), 1);
                cgroup_set_done(&by_unit);
                /* Part of the name is not the name. */
                ck_assert_int_eq(cgroup_find_unit(unit + 1, &by_unit), -ENOENT);
                (void) snprintf(escaped, sizeof(escaped), "_%s", unit);
                ck_assert_int_eq(cgroup_find_unit(escaped, &by_unit), -ENOENT);
        }

        child_end(pid);
        remove_group(inner);
        ck_assert_uint_eq(times_found(&by_full, pid, &others), 0);
        ck_assert_uint_eq(others, 0);
        ck_assert_uint_eq(times_found(&outer, pid, &others), 0);
        if (has_units)
                ck_assert_int_eq(cgroup_find_unit(unit, &by_unit), -ENOENT);
        ck_assert_int_eq(cgroup_find(full, &by_unit), -ENOENT);
        remove_group(group);
        ck_assert_uint_eq(times_found(&outer, pid, &others), 0);
        ck_assert_int_eq(cgroup_find(path, &by_unit), -ENOENT);
        cgroup_set_done(&outer);
        cgroup_set_done(&by_full);
}

START_TEST(test_unified) {
        char mount[PATH_MAX];

        if (!hierarchy("cgroup2", NULL, mount, sizeof(mount)))
                skip_test("no cgroup v2 hierarchy in which groups can be made");
        assert_life_of_group(mount, true);
}
END_TEST

START_TEST(test_legacy) {
        char mount[PATH_MAX];

        if (!hierarchy("cgroup", "pids", mount, sizeof(mount)) && !hierarchy("cgroup", "freezer", mount, sizeof(mount)))
                skip_test("no cgroup v1 hierarchy in which groups can be made");
        assert_life_of_group(mount, false);
}
END_TEST

/* A name that systemd escapes with an underscore since a controller could claim it. */
START_TEST(test_escaped_unit) {
        char mount[PATH_MAX], group[PATH_MAX + 128], unit[64];
        CgroupSet s;

        if (!hierarchy("cgroup2", NULL, mount, sizeof(mount)))
                skip_test("no cgroup v2 hierarchy in which groups can be made");
        (void) snprintf(unit, sizeof(unit), "prism-unit-%d.scope", getpid());
        (void) snprintf(group, sizeof(group), "%s/_%s", mount, unit);
        ck_assert_int_eq(mkdir(group, 0755), 0);
        ck_assert_int_eq(cgroup_find_unit(unit, &s), 0);
        ck_assert_str_eq(s.directories[0], group);
        cgroup_set_done(&s);
        remove_group(group);
}
END_TEST

/* A user may make a group of a unit's name below one that was given to it: the outer one is systemd's. */
START_TEST(test_outermost_unit) {
        char mount[PATH_MAX], deep[PATH_MAX + 192], deeper[PATH_MAX + 256], real[PATH_MAX + 128], unit[64];
        CgroupSet s;

        if (!hierarchy("cgroup2", NULL, mount, sizeof(mount)))
                skip_test("no cgroup v2 hierarchy in which groups can be made");
        (void) snprintf(unit, sizeof(unit), "prism-unit-%d.service", getpid());
        (void) snprintf(deep, sizeof(deep), "%s/a-prism-unit-%d", mount, getpid());
        (void) snprintf(deeper, sizeof(deeper), "%s/%s", deep, unit);
        (void) snprintf(real, sizeof(real), "%s/%s", mount, unit);
        ck_assert_int_eq(mkdir(deep, 0755), 0);
        ck_assert_int_eq(mkdir(deeper, 0755), 0);
        ck_assert_int_eq(mkdir(real, 0755), 0);
        ck_assert_int_eq(cgroup_find_unit(unit, &s), 0);
        ck_assert_uint_eq(s.n, 1);
        ck_assert_str_eq(s.directories[0], real);
        ck_assert(cgroup_set_exists(&s));
        remove_group(real);
        ck_assert(!cgroup_set_exists(&s));
        cgroup_set_done(&s);
        ck_assert(!cgroup_set_exists(&s));
        ck_assert_int_eq(cgroup_find_unit(unit, &s), 0);
        ck_assert_str_eq(s.directories[0], deeper);
        cgroup_set_done(&s);
        remove_group(deeper);
        remove_group(deep);
}
END_TEST

/* With several hierarchies that have the path, all of them together. */
START_TEST(test_several_hierarchies) {
        char pids[PATH_MAX], freezer[PATH_MAX], a[PATH_MAX + 64], b[PATH_MAX + 64], path[64];
        unsigned others;
        CgroupSet s;
        pid_t first, second;

        if (!hierarchy("cgroup", "pids", pids, sizeof(pids)) ||
                        !hierarchy("cgroup", "freezer", freezer, sizeof(freezer)) || streq(pids, freezer))
                skip_test("no two cgroup v1 hierarchies in which groups can be made");
        (void) snprintf(path, sizeof(path), "/prism-unit-%d", getpid());
        (void) snprintf(a, sizeof(a), "%s%s", pids, path);
        (void) snprintf(b, sizeof(b), "%s%s", freezer, path);
        ck_assert_int_eq(mkdir(a, 0755), 0);
        ck_assert_int_eq(mkdir(b, 0755), 0);
        first = child_start("first");
        second = child_start("second");
        put_into(a, first);
        put_into(b, first);
        put_into(b, second);
        ck_assert_int_eq(cgroup_find(path, &s), 0);
        ck_assert_uint_eq(s.n, 2);
        ck_assert_uint_eq(times_found(&s, first, &others), 2);
        ck_assert_uint_eq(others, 1);
        child_end(first);
        child_end(second);
        remove_group(a);
        remove_group(b);
        cgroup_set_done(&s);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("cgroup");
        TCase *tests = tcase_create("cgroup");

        tcase_set_timeout(tests, 30);
        tcase_add_test(tests, test_bad_paths);
        tcase_add_test(tests, test_own_groups);
        tcase_add_test(tests, test_unified);
        tcase_add_test(tests, test_legacy);
        tcase_add_test(tests, test_escaped_unit);
        tcase_add_test(tests, test_outermost_unit);
        tcase_add_test(tests, test_several_hierarchies);
        suite_add_tcase(suite, tests);
        return run_suite(suite);
}
