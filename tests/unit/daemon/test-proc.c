/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* daemon/proc.c against the real /proc: this process, its threads, children with names that want to deceive. */
#include "proc.h"
#include "daemon-unit.h"

#include <pthread.h>
#include <sys/syscall.h>

START_TEST(test_units) {
        static const struct {
                const char *cgroup, *unit;
        } table[] = {
                { "/system.slice/nginx.service", "nginx.service" },
                { "/system.slice/nginx.service/", "nginx.service" },
                { "/system.slice/docker-0123.scope", "docker-0123.scope" },
                { "/user.slice/user-1000.slice/user@1000.service/app.slice/app-x.scope", "app-x.scope" },
                { "/user.slice/user-1000.slice/user@1000.service", "user@1000.service" },
                { "/system.slice/a.service/supervised", "a.service" },
                { "/system.slice/a.service/b.service/c", "b.service" },
                { "//system.slice//a.service", "a.service" },
                { "/system.slice/system-getty.slice/getty@tty1.service", "getty@tty1.service" },
                { "/../system.slice/a.service", "a.service" }, /* of a cgroup namespace, seen from inside */
                { "/_cpu.service", "cpu.service" },
                { "/", NULL },
                { "", NULL },
                { "/system.slice", NULL },
                { "/docker/0123456789abcdef", NULL },
                { "/.service", NULL },
                { "/x.servicex", NULL },
                { "/x.service.d", NULL },
                { "/x.SERVICE", NULL },
                { "/kubepods.slice/kubepods-burstable.slice/cri-containerd-ab.scope", "cri-containerd-ab.scope" },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_free_ char *unit = unit_of_cgroup(table[i].cgroup);

                if (table[i].unit)
                        ck_assert_msg(unit && streq(unit, table[i].unit), "%s: %s", table[i].cgroup, unit ?: "none");
                else
                        ck_assert_msg(!unit, "%s: %s", table[i].cgroup, unit);
        }
}
END_TEST

START_TEST(test_self) {
        _cleanup_free_ char *exe = NULL;
        ProcDetails d;
        ProcStatus s;
        struct stat st;

        ck_assert_int_eq(prctl(PR_SET_NAME, "prism test"), 0);
        ck_assert_int_eq(proc_status((uint32_t) getpid(), &s), 0);
        ck_assert_str_eq(s.comm, "prism test");
        ck_assert_uint_eq(s.tgid, (uint32_t) getpid());
        ck_assert_uint_eq(s.ppid, (uint32_t) getppid());
        ck_assert_uint_eq(s.uid, getuid());
        ck_assert_uint_ge(s.threads, 1);
        ck_assert(!s.kernel_thread);

        proc_details((uint32_t) getpid(), true, &d);
        exe = realpath("/proc/self/exe", NULL);
        ck_assert_str_eq(d.exe, exe);
        assert_contains(d.cmdline, "test-daemon-proc");
        ck_assert_ptr_nonnull(d.cgroup);
        ck_assert_int_eq(d.cgroup[0], '/');
        ck_assert_int_eq(stat("/proc/self/ns/net", &st), 0);
        ck_assert_uint_eq(d.netns, st.st_ino);
        proc_details_done(&d);
        ck_assert_ptr_null(d.exe);
        proc_details_done(&d);
}
END_TEST

static void *wait_for_byte(void *userdata) {
        int *pipes = userdata;
        char byte = 0;
        pid_t tid = (pid_t) syscall(SYS_gettid);

        (void) prctl(PR_SET_NAME, "a thread)");
        if (write(pipes[1], &tid, sizeof(tid)) != sizeof(tid) || read(pipes[2], &byte, 1) < 0)
                return NULL;
        return userdata;
}

START_TEST(test_thread_of_self) {
        int pipes[4];
        ProcStatus s, whole;
        pthread_t thread;
        pid_t tid;

        ck_assert_int_eq(pipe(pipes), 0);
        ck_assert_int_eq(pipe(pipes + 2), 0);
        ck_assert_int_eq(pthread_create(&thread, NULL, wait_for_byte, pipes), 0);
        ck_assert_int_eq(read(pipes[0], &tid, sizeof(tid)), sizeof(tid));

        ck_assert_int_eq(proc_status((uint32_t) tid, &s), 0);
        ck_assert_uint_eq(s.tgid, (uint32_t) getpid());
        ck_assert_str_eq(s.comm, "a thread)");
        ck_assert_int_eq(proc_status((uint32_t) getpid(), &whole), 0);
        ck_assert_uint_ge(whole.threads, 2);
        ck_assert_uint_eq(s.threads, whole.threads);
        ck_assert_str_ne(whole.comm, s.comm);

        close(pipes[3]);
        ck_assert_int_eq(pthread_join(thread, NULL), 0);
        for (unsigned i = 0; i < 3; i++)
                close(pipes[i]);
}
END_TEST

START_TEST(test_hostile_names) {
        static const char *const names[] = { "a) R 1 1 1 1 1", "((((", "))))", ") (", "x\nTgid:\t1",
                "\nPPid:\t7\nUid:", "Tgid:\t1", "a\tb c", "\xff\xfe\x80", "\x01\x1b[31m", "123456789012345", "%s%n",
                "\\n", " ", " R 1 0 0 0 -1" };

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                pid_t pid = child_start(names[i]);
                ProcStatus s;

                ck_assert_int_eq(proc_status((uint32_t) pid, &s), 0);
                ck_assert_str_eq(s.comm, names[i]);
                ck_assert_uint_eq(s.tgid, (uint32_t) pid);
                ck_assert_uint_eq(s.ppid, (uint32_t) getpid());
                ck_assert_uint_eq(s.uid, getuid());
                ck_assert_uint_eq(s.threads, 1);
                ck_assert(!s.kernel_thread);
                child_end(pid);
        }
}
END_TEST

START_TEST(test_kernel_thread) {
        _cleanup_free_ char *argv0 = NULL;
        ProcDetails d;
        ProcStatus s;

        if (proc_status(2, &s) < 0 || !streq(s.comm, "kthreadd"))
                skip_test("kernel threads cannot be seen from this pid namespace");
        ck_assert(s.kernel_thread);
        ck_assert_uint_eq(s.tgid, 2);
        ck_assert_uint_eq(s.ppid, 0);
        argv0 = proc_argv0_name(2);
        ck_assert_ptr_null(argv0);
        proc_details((uint32_t) getpid(), false, &d);
        ck_assert_ptr_null(d.exe);
        ck_assert_ptr_null(d.cmdline);
        ck_assert_uint_ne(d.netns, 0);
        proc_details_done(&d);
        proc_details(2, true, &d);
        ck_assert_ptr_null(d.exe);
        ck_assert_ptr_null(d.cmdline);
        proc_details_done(&d);
}
END_TEST

START_TEST(test_gone) {
        pid_t pid = child_start("zombie");
        ProcDetails d;
        ProcStatus s;
        siginfo_t info;

        /* Ended and not waited for: it has a name, and no memory to read from. */
        ck_assert_int_eq(kill(pid, SIGKILL), 0);
        ck_assert_int_eq(waitid(P_PID, (id_t) pid, &info, WEXITED | WNOWAIT), 0);
        ck_assert_int_eq(proc_status((uint32_t) pid, &s), 0);
        ck_assert_str_eq(s.comm, "zombie");
        ck_assert(!s.kernel_thread);
        ck_assert_ptr_null(proc_argv0_name((uint32_t) pid));
        proc_details((uint32_t) pid, true, &d);
        ck_assert_ptr_null(d.cmdline);
        proc_details_done(&d);

        ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
        memset(&s, 0x55, sizeof(s));
        ck_assert_int_eq(proc_status((uint32_t) pid, &s), -ESRCH);
        ck_assert_uint_eq(s.tgid, 0x55555555);
        ck_assert_int_eq(proc_status(0, &s), -ESRCH);
        ck_assert_int_eq(proc_status(UINT32_MAX, &s), -ESRCH);
        ck_assert_ptr_null(proc_argv0_name((uint32_t) pid));
        proc_details((uint32_t) pid, true, &d);
        ck_assert_ptr_null(d.exe);
        ck_assert_ptr_null(d.cgroup);
        ck_assert_ptr_null(d.unit);
        ck_assert_uint_eq(d.netns, 0);
        proc_details_done(&d);
}
END_TEST

static void assert_argv0(const char *argv0, const char *expected) {
        char *argv[] = { (char *) argv0, (char *) "1000", NULL };
        pid_t pid = child_execute(argv);
        _cleanup_free_ char *name = proc_argv0_name((uint32_t) pid);

        ck_assert_msg(name && streq(name, expected), "\"%s\": \"%s\"", argv0, name ?: "none");
        child_end(pid);
}

START_TEST(test_argv0) {
        _cleanup_free_ char *long_one = malloc(6001), *name = NULL;
        char *argv[] = { long_one, (char *) "1000", NULL };
        pid_t pid;

        assert_argv0("sleep", "sleep");
        assert_argv0("/usr/bin/my server", "my server");
        assert_argv0("./a/b", "b");
        assert_argv0("-bash", "-bash");
        assert_argv0("nginx: worker process", "nginx: worker process");
        assert_argv0("a\nb", "a\nb");
        assert_argv0("/\xff\xfe", "\xff\xfe");

        ck_assert_ptr_nonnull(long_one);
        memset(long_one, 'x', 6000);
        long_one[6000] = '\0';
        pid = child_execute(argv);
        name = proc_argv0_name((uint32_t) pid);
        ck_assert_ptr_nonnull(name);
        ck_assert_uint_le(strlen(name), 4096);
        ck_assert_uint_ge(strlen(name), 1024);
        child_end(pid);
}
END_TEST

START_TEST(test_no_argv0) {
        static const char *const none[] = { "", "/", "dir/" };

        for (size_t i = 0; i < ELEMENTSOF(none); i++) {
                char *argv[] = { (char *) none[i], (char *) "1000", NULL };
                pid_t pid = child_execute(argv);
                _cleanup_free_ char *name = proc_argv0_name((uint32_t) pid);

                ck_assert_msg(!name, "\"%s\": \"%s\"", none[i], name);
                child_end(pid);
        }
}
END_TEST

START_TEST(test_cmdline) {
        char *argv[] = { (char *) "a b", (char *) "1000", NULL };
        pid_t pid = child_execute(argv);
        ProcDetails d;

        proc_details((uint32_t) pid, true, &d);
        ck_assert_str_eq(d.cmdline, "a b 1000");
        proc_details_done(&d);
        child_end(pid);
}
END_TEST

START_TEST(test_for_each) {
        Looking l = { .pid = (uint32_t) getpid() };

        ck_assert_int_eq(proc_for_each(look, &l), 0);
        ck_assert_uint_eq(l.seen, 1);
        ck_assert_uint_ge(l.others, 1);
        l = (Looking){ .answer = -EXFULL };
        ck_assert_int_eq(proc_for_each(look, &l), -EXFULL);
        ck_assert_uint_eq(l.others, 1);
        l = (Looking){ .pid = (uint32_t) getpid(), .answer = 1 };
        ck_assert_int_eq(proc_for_each(look, &l), 0);
        ck_assert_uint_eq(l.seen, 1);
}
END_TEST

START_TEST(test_children) {
        Looking l = {};
        pid_t pid;

        if (access("/proc/thread-self/children", F_OK) < 0)
                skip_test("this kernel does not list children");
        ck_assert_int_eq(proc_for_each_child((uint32_t) getpid(), look, &l), 0);
        ck_assert_uint_eq(l.others, 0);
        pid = child_start("child");
        l = (Looking){ .pid = (uint32_t) pid };
        ck_assert_int_eq(proc_for_each_child((uint32_t) getpid(), look, &l), 0);
        ck_assert_uint_eq(l.seen, 1);
        ck_assert_uint_eq(l.others, 0);
        l = (Looking){ .answer = -EXFULL };
        ck_assert_int_eq(proc_for_each_child((uint32_t) getpid(), look, &l), -EXFULL);
        child_end(pid);
        l = (Looking){};
        ck_assert_int_eq(proc_for_each_child((uint32_t) pid, look, &l), 0);
        ck_assert_uint_eq(l.others, 0);
}
END_TEST

START_TEST(test_read_file) {
        static const char content[] = "0123\0"
                                      "56789";
        const char *path;
        char *data;
        size_t size;

        directory_make();
        path = in_directory("file");
        write_file(path, content, 10);
        for (size_t limit = 0; limit < 20; limit++) {
                data = NULL;
                ck_assert_int_eq(read_file(path, limit, &data, &size), 0);
                ck_assert_uint_eq(size, MIN(limit, 10u));
                ck_assert_mem_eq(data, content, size);
                ck_assert_int_eq(data[size], '\0');
                free(data);
        }
        ck_assert_int_eq(read_file(path, 100, &data, NULL), 0);
        free(data);

        data = (char *) content;
        size = 77;
        ck_assert_int_eq(read_file(in_directory("missing"), 100, &data, &size), -ENOENT);
        ck_assert_int_eq(read_file(directory, 100, &data, &size), -EISDIR);
        ck_assert_int_eq(read_file("", 100, &data, &size), -ENOENT);
        ck_assert_ptr_eq(data, content);
        ck_assert_uint_eq(size, 77);

        /* Larger than one read of /proc gives. */
        ck_assert_int_eq(read_file("/proc/kallsyms", 100000, &data, &size), 0);
        ck_assert_uint_eq(size, strlen(data));
        ck_assert_uint_eq(size, 100000);
        free(data);
        directory_remove();
}
END_TEST

int main(void) {
        Suite *suite = suite_create("proc");
        TCase *tests = tcase_create("proc");

        tcase_add_test(tests, test_units);
        tcase_add_test(tests, test_self);
        tcase_add_test(tests, test_thread_of_self);
        tcase_add_test(tests, test_hostile_names);
        tcase_add_test(tests, test_kernel_thread);
        tcase_add_test(tests, test_gone);
        tcase_add_test(tests, test_argv0);
        tcase_add_test(tests, test_no_argv0);
        tcase_add_test(tests, test_cmdline);
        tcase_add_test(tests, test_for_each);
        tcase_add_test(tests, test_children);
        tcase_add_test(tests, test_read_file);
        suite_add_tcase(suite, tests);
        return run_suite(suite);
}
