/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the unit tests of prismd share: other processes to look at, what goes to stderr, and input made at random. */
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define read_file unit_read_file /* proc.h has a read_file() of its own */
#include "unit.h"
#undef read_file

/* For what this machine or user does not let a test do. Written so that it shows in the log. */
#define skip_test(...)                             \
        do {                                       \
                printf("%s: skipped: ", __func__); \
                printf(__VA_ARGS__);               \
                printf("\n");                      \
                return;                            \
        } while (0)

/* A child that waits to be killed, under this name if there is one. */
static inline pid_t _unused_ child_start(const char *comm) {
        int ready[2];
        char byte;
        pid_t pid;

        ck_assert_int_eq(pipe(ready), 0);
        pid = fork();
        ck_assert_int_ge(pid, 0);
        if (pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (comm)
                        (void) prctl(PR_SET_NAME, comm);
                if (write(ready[1], "", 1) != 1)
                        _exit(1);
                for (;;)
                        (void) pause();
        }
        close(ready[1]);
        ck_assert_int_eq(read(ready[0], &byte, 1), 1);
        close(ready[0]);
        return pid;
}

/* A child that runs sleep(1) with these arguments; argv[0] may be anything. */
static inline pid_t _unused_ child_execute(char *const argv[]) {
        int gone[2];
        char byte;
        pid_t pid;

        ck_assert_int_eq(pipe2(gone, O_CLOEXEC), 0);
        pid = fork();
        ck_assert_int_ge(pid, 0);
        if (pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                execv("/bin/sleep", argv);
                _exit(1);
        }
        close(gone[1]);
        ck_assert_int_eq(read(gone[0], &byte, 1), 0); /* closed by execve() */
        close(gone[0]);
        return pid;
}

static inline void _unused_ child_end(pid_t pid) {
        ck_assert_int_eq(kill(pid, SIGKILL), 0);
        ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

/* Sends stderr to memory; capture_end() gives it back and returns what was written. The caller frees. */
typedef struct Capture {
        int memory, before;
} Capture;

static inline Capture _unused_ capture_begin(void) {
        Capture c;

        (void) fflush(stderr);
        c.memory = memfd_create("stderr", MFD_CLOEXEC);
        ck_assert_int_ge(c.memory, 0);
        c.before = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
        ck_assert_int_ge(c.before, 0);
        ck_assert_int_ge(dup2(c.memory, STDERR_FILENO), 0);
        return c;
}

static inline char *_unused_ capture_end(Capture *c) {
        off_t size;
        char *text;

        (void) fflush(stderr);
        ck_assert_int_ge(dup2(c->before, STDERR_FILENO), 0);
        close(c->before);
        size = lseek(c->memory, 0, SEEK_END);
        ck_assert_int_ge(size, 0);
        text = calloc(1, (size_t) size + 1);
        ck_assert_ptr_nonnull(text);
        ck_assert_int_eq(pread(c->memory, text, (size_t) size, 0), size);
        close(c->memory);
        return text;
}

#define assert_contains(text, part) \
        ck_assert_msg(strstr((text), (part)) != NULL, "\"%s\" does not say \"%s\"", (text), (part))
#define assert_contains_not(text, part) ck_assert_msg(!strstr((text), (part)), "\"%s\" says \"%s\"", (text), (part))

/* xorshift: the same sequence in each run, so that a failure can be looked at. */
static inline uint32_t _unused_ next_random(uint32_t *state) {
        *state ^= *state << 13;
        *state ^= *state >> 17;
        *state ^= *state << 5;
        return *state;
}

/* Whether the processes visited so far include one. */
typedef struct Looking {
        uint32_t pid;
        unsigned seen, others;
        int answer; /* returned for each */
} Looking;

static inline int _unused_ look(uint32_t pid, void *userdata) {
        Looking *l = userdata;

        if (pid == l->pid)
                l->seen++;
        else
                l->others++;
        return l->answer;
}
