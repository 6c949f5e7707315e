/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What every workload shares. A workload is a small program with a known answer: it prints "ready PID", waits for a line
 * on stdin, plays its scenario, prints one JSON object that says what really happened by its own clocks, and waits for
 * another line before it exits. All times are nanoseconds of CLOCK_BOOTTIME.
 *
 * Where a thread waits for another one, the end of the wait is the moment at which the other one woke it, as that one
 * noted it: the sleeper's own clock would add its stay in the run queue, which is not waiting. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define _unused_ __attribute__((unused))
#define ELEMENTSOF(x) (sizeof(x) / sizeof((x)[0]))
#define MSEC UINT64_C(1000000)
#define SEC UINT64_C(1000000000)

/* A workload that cannot play its scenario must not report an answer. */
static __attribute__((noreturn)) void fail(const char *what) {
        perror(what);
        exit(EXIT_FAILURE);
}

#define CHECK(expression)                  \
        do {                               \
                if (!(expression))         \
                        fail(#expression); \
        } while (0)

/* pthread functions return the error. */
#define CHECK_THREAD(expression)           \
        do {                               \
                errno = (expression);      \
                if (errno != 0)            \
                        fail(#expression); \
        } while (0)

static inline uint64_t now_ns(void) {
        struct timespec ts;

        CHECK(clock_gettime(CLOCK_BOOTTIME, &ts) == 0);
        return (uint64_t) ts.tv_sec * SEC + (uint64_t) ts.tv_nsec;
}

static inline uint64_t thread_cpu_ns(void) {
        struct timespec ts;

        CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts) == 0);
        return (uint64_t) ts.tv_sec * SEC + (uint64_t) ts.tv_nsec;
}

static inline pid_t thread_id(void) {
        return (pid_t) syscall(SYS_gettid);
}

static inline void name_thread(const char *name) {
        CHECK(prctl(PR_SET_NAME, name) == 0);
}

static inline struct timespec timespec_of(uint64_t ns) {
        return (struct timespec){ .tv_sec = (time_t) (ns / SEC), .tv_nsec = (long) (ns % SEC) };
}

static inline void sleep_ns(uint64_t ns) {
        struct timespec ts = timespec_of(ns);

        while (nanosleep(&ts, &ts) < 0)
                CHECK(errno == EINTR);
}

static inline void spin_until(uint64_t end_ns) {
        while (now_ns() < end_ns)
                ;
}

static inline void pin(pid_t tid, int cpu) {
        cpu_set_t set;

        CPU_ZERO(&set);
        CPU_SET((size_t) cpu, &set);
        CHECK(sched_setaffinity(tid, sizeof(set), &set) == 0);
}

/* What the scheduler itself says about a thread: time on the CPU and time in the run queue. */
typedef struct Schedstat {
        uint64_t run_ns, runqueue_ns;
} Schedstat;

static inline Schedstat schedstat_of(pid_t pid, pid_t tid) {
        char path[64];
        unsigned long long run, runqueue;

        snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int) pid, (int) tid);
        FILE *f = fopen(path, "re");
        CHECK(f);
        CHECK(fscanf(f, "%llu %llu", &run, &runqueue) == 2);
        fclose(f);
        return (Schedstat){ run, runqueue };
}

static inline Schedstat schedstat(void) {
        return schedstat_of(getpid(), thread_id());
}

/* Waits of one thread. */
typedef struct Tally {
        uint64_t total_ns, max_ns;
        unsigned count;
} Tally;

static inline void tally_add(Tally *t, uint64_t ns) {
        t->total_ns += ns;
        t->count++;
        if (ns > t->max_ns)
                t->max_ns = ns;
}

/* Members of a JSON object, for use between braces. */
static inline void print_tally(const Tally *t) {
        printf("\"total_ns\":%llu,\"max_ns\":%llu,\"count\":%u", (unsigned long long) t->total_ns,
                        (unsigned long long) t->max_ns, t->count);
}

/* A gate lets as many threads pass as it was opened for. It is a pipe, so that waiting at it cannot be mistaken for
 * waiting on a futex, a timer or whatever else is being counted. Works across fork(). */
typedef struct Gate {
        int fds[2];
} Gate;

static inline void gate_init(Gate *g) {
        CHECK(pipe2(g->fds, O_CLOEXEC) == 0);
}

static inline void gate_open(Gate *g, size_t n) {
        char bytes[1024] = { 0 };

        CHECK(n <= sizeof(bytes));
        CHECK(write(g->fds[1], bytes, n) == (ssize_t) n);
}

static inline void gate_pass(Gate *g) {
        char byte;
        ssize_t n;

        do
                n = read(g->fds[0], &byte, 1);
        while (n < 0 && errno == EINTR);
        CHECK(n == 1);
}

static inline void *shared_memory(size_t size) {
        void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        CHECK(p != MAP_FAILED);
        return p;
}

static inline pthread_t start_thread(void *(*function)(void *), void *argument) {
        pthread_t thread;

        CHECK_THREAD(pthread_create(&thread, NULL, function, argument));
        return thread;
}

static inline void join_thread(pthread_t thread) {
        CHECK_THREAD(pthread_join(thread, NULL));
}

static inline long futex(void *address, int op, uint32_t value, const struct timespec *timeout, void *address2,
                uint32_t value3) {
        return syscall(SYS_futex, address, op, value, timeout, address2, value3);
}

static inline void read_line(void) {
        char c;
        ssize_t n;

        do {
                n = read(STDIN_FILENO, &c, 1);
                if (n == 0)
                        _exit(EXIT_FAILURE); /* the driver is gone */
        } while ((n < 0 && errno == EINTR) || (n == 1 && c != '\n'));
        CHECK(n == 1);
}

/* Other load on the machine must not delay the threads that are being timed: ask for more weight. Not needed for a right
 * answer, so it may fail. */
static inline void ask_for_weight(void) {
        FILE *f = fopen("/proc/self/autogroup", "we");

        if (f) {
                fputs("-15", f);
                fclose(f);
        }
}

static inline void ready(void) {
        ask_for_weight();
        printf("ready %d\n", (int) getpid());
        fflush(stdout);
        read_line();
}

/* After the JSON object has been printed. */
static inline void finish(void) {
        putchar('\n');
        fflush(stdout);
        read_line();
}
