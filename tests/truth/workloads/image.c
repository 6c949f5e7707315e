/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A process that changes its image or makes others.
 * image leader|thread: execve() by the main thread, or by another one (which then takes the main thread's number).
 * image child: fork and exec, and wait for it. image daemon: a grandchild that outlives its parent.
 * image after SLEPT: what gets executed. It prints the answer. */
#include "workload.h"

#define BEFORE_NS (200 * MSEC)
#define AFTER_NS (300 * MSEC)

static void __attribute__((noreturn)) execute(const char *program, uint64_t slept_ns) {
        char slept[32];

        snprintf(slept, sizeof(slept), "%llu", (unsigned long long) slept_ns);
        execl(program, program, "after", slept, (char *) NULL);
        fail("execl");
}

static uint64_t sleep_measured(uint64_t ns) {
        Schedstat before = schedstat();
        uint64_t start_ns = now_ns();
        sleep_ns(ns);
        uint64_t slept_ns = now_ns() - start_ns;

        return slept_ns - (schedstat().runqueue_ns - before.runqueue_ns);
}

static void *execute_in_thread(void *argument) {
        name_thread("executor");
        execute(argument, sleep_measured(BEFORE_NS));
        return NULL;
}

static void *sleep_for_ever(void *argument) {
        name_thread("overtaken");
        for (;;)
                sleep_ns(3600 * SEC);
        return NULL;
}

/* The process that the driver started waits, whoever prints the answer: it owns the standard input. */
static void wait_for_child(pid_t pid, int error) {
        if (pid < 0) {
                errno = error;
                fail("fork");
        }
        CHECK(waitpid(pid, NULL, 0) == pid);
}

static void run_child(const char *program) {
        pid_t pid = fork();

        if (pid == 0)
                execute(program, sleep_measured(BEFORE_NS));
        wait_for_child(pid, errno);
        read_line();
}

static void run_daemon(const char *program) {
        pid_t pid = fork();

        if (pid == 0) {
                CHECK(setsid() > 0);
                pid_t grandchild = fork();
                CHECK(grandchild >= 0);
                if (grandchild == 0)
                        execute(program, sleep_measured(BEFORE_NS));
                _exit(EXIT_SUCCESS);
        }
        wait_for_child(pid, errno);
        read_line();
}

static void run_after(const char *slept) {
        name_thread("after-exec");
        uint64_t after_ns = sleep_measured(AFTER_NS);
        printf("{\"pid\":%d,\"before_ns\":%s,\"after_ns\":%llu}\n", (int) getpid(), slept,
                        (unsigned long long) after_ns);
        fflush(stdout);
}

int main(int argc, char *argv[]) {
        CHECK(argc >= 2);
        if (strcmp(argv[1], "after") == 0) {
                bool is_child = getenv("PRISM_TRUTH_CHILD") != NULL;
                run_after(argv[2]);
                if (!is_child)
                        read_line();
                return EXIT_SUCCESS;
        }

        if (strcmp(argv[1], "leader") == 0 || strcmp(argv[1], "thread") == 0) {
                start_thread(sleep_for_ever, NULL);
                ready();
                if (strcmp(argv[1], "leader") == 0)
                        execute(argv[0], sleep_measured(BEFORE_NS));
                join_thread(start_thread(execute_in_thread, argv[0]));
        }
        CHECK(setenv("PRISM_TRUTH_CHILD", "1", 1) == 0);
        ready();
        if (strcmp(argv[1], "child") == 0)
                run_child(argv[0]);
        else
                run_daemon(argv[0]);
        return EXIT_SUCCESS;
}
