/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Waits on what is read and written like a pipe: pipes, FIFOs, terminals, eventfd, timerfd, signalfd, inotify. */
#include "pair.h"

#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <termios.h>

#define N_ROUNDS 40
#define ROUND_NS (10 * MSEC)

/* fds[0] is the waiter's, fds[1] the waker's. */
static void read_word(Pair *p) {
        uint64_t word;

        CHECK(read(p->fds[0], &word, sizeof(word)) == sizeof(word));
}

static void write_word(Pair *p) {
        uint64_t word = 1;

        CHECK(write(p->fds[1], &word, sizeof(word)) == sizeof(word));
}

static void set_up_pipe(Pair *p) {
        CHECK(pipe2(p->fds, O_CLOEXEC) == 0);
        p->inodes[0] = inode_of(p->fds[0]);
}

/* One page, and it is full. */
static void set_up_full_pipe(Pair *p) {
        char page[4096] = { 0 };
        int fds[2];

        CHECK(pipe2(fds, O_CLOEXEC) == 0);
        CHECK(fcntl(fds[1], F_SETPIPE_SZ, (int) sizeof(page)) == sizeof(page));
        CHECK(write(fds[1], page, sizeof(page)) == sizeof(page));
        p->fds[0] = fds[1];
        p->fds[1] = fds[0];
        p->inodes[0] = inode_of(fds[0]);
}

static void write_page(Pair *p) {
        char page[4096] = { 0 };

        CHECK(write(p->fds[0], page, sizeof(page)) == sizeof(page));
}

static void read_page(Pair *p) {
        char page[4096];

        CHECK(read(p->fds[1], page, sizeof(page)) == sizeof(page));
}

static void make_fifo(Pair *p) {
        struct stat st;

        p->path = full_path(p->path);
        CHECK(mkfifo(p->path, 0600) == 0);
        CHECK(stat(p->path, &st) == 0);
        p->inodes[0] = st.st_ino;
}

static void set_up_fifo(Pair *p) {
        make_fifo(p);
        p->fds[0] = open(p->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        p->fds[1] = open(p->path, O_WRONLY | O_CLOEXEC);
        CHECK(p->fds[0] >= 0 && p->fds[1] >= 0);
        CHECK(fcntl(p->fds[0], F_SETFL, 0) == 0);
}

/* `number` is how the waiter opens it; the waker opens the other end. */
static void open_own(Pair *p) {
        p->fds[0] = open(p->path, (int) p->number | O_CLOEXEC);
        CHECK(p->fds[0] >= 0);
}

static void open_other(Pair *p) {
        int fd = open(p->path, (p->number == O_RDONLY ? O_WRONLY : O_RDONLY) | O_CLOEXEC);

        CHECK(fd >= 0);
        close(fd);
}

static void close_own(Pair *p) {
        close(p->fds[0]);
}

static void set_up_eventfd(Pair *p) {
        p->fds[0] = p->fds[1] = eventfd(0, EFD_CLOEXEC);
        CHECK(p->fds[0] >= 0);
}

static void fill_eventfd(Pair *p) {
        uint64_t most = UINT64_MAX - 1;

        CHECK(write(p->fds[0], &most, sizeof(most)) == sizeof(most));
}

static void add_to_eventfd(Pair *p) {
        write_word(p);
}

static void set_up_timerfd(Pair *p) {
        p->fds[0] = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
        CHECK(p->fds[0] >= 0);
}

/* The ticks begin with the first wait. */
static void wait_tick(Pair *p) {
        struct itimerspec every = { .it_value = timespec_of(ROUND_NS), .it_interval = timespec_of(ROUND_NS) };

        if (p->tally.count == 0)
                CHECK(timerfd_settime(p->fds[0], 0, &every, NULL) == 0);
        read_word(p);
}

static void set_up_signalfd(Pair *p) {
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, SIGUSR1);
        p->fds[0] = signalfd(-1, &set, SFD_CLOEXEC);
        CHECK(p->fds[0] >= 0);
}

static void wait_signal(Pair *p) {
        struct signalfd_siginfo info;

        CHECK(read(p->fds[0], &info, sizeof(info)) == sizeof(info));
}

static void send_signal(Pair *p) {
        CHECK(kill(getpid(), SIGUSR1) == 0);
}

/* A read of a file that is in memory is the event that takes least before it is told. */
static void set_up_inotify(Pair *p) {
        p->path = full_path(p->path);
        p->fds[1] = open(p->path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
        CHECK(p->fds[1] >= 0 && write(p->fds[1], "x", 1) == 1);
        p->fds[0] = inotify_init1(IN_CLOEXEC);
        CHECK(p->fds[0] >= 0 && inotify_add_watch(p->fds[0], p->path, IN_ACCESS) >= 0);
}

static void wait_event(Pair *p) {
        char event[512];

        CHECK(read(p->fds[0], event, sizeof(event)) > 0);
}

static void cause_event(Pair *p) {
        char byte;

        CHECK(pread(p->fds[1], &byte, 1, 0) == 1);
}

static void set_up_terminal(Pair *p) {
        struct termios raw;

        p->fds[1] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
        CHECK(p->fds[1] >= 0 && grantpt(p->fds[1]) == 0 && unlockpt(p->fds[1]) == 0);
        p->path = strdup(ptsname(p->fds[1]));
        CHECK(p->path);
        p->fds[0] = open(p->path, O_RDWR | O_NOCTTY | O_CLOEXEC);
        CHECK(p->fds[0] >= 0 && tcgetattr(p->fds[0], &raw) == 0);
        cfmakeraw(&raw);
        CHECK(tcsetattr(p->fds[0], TCSANOW, &raw) == 0);
}

static void read_byte(Pair *p) {
        char byte;

        CHECK(read(p->fds[0], &byte, 1) == 1);
}

static void write_byte(Pair *p) {
        CHECK(write(p->fds[1], "x", 1) == 1);
}

#define TIMES .rounds = N_ROUNDS, .wait_ns = ROUND_NS

static Pair pairs[] = {
        { .name = "pipe-read", .set_up = set_up_pipe, .wait = read_word, .wake = write_word, TIMES },
        { .name = "pipe-write", .set_up = set_up_full_pipe, .wait = write_page, .wake = read_page, TIMES },
        { .name = "fifo-read",
                        .path = "fifo-read",
                        .set_up = set_up_fifo,
                        .wait = read_word,
                        .wake = write_word,
                        TIMES },
        { .name = "fifo-open-read",
                        .path = "fifo-open-read",
                        .number = O_RDONLY,
                        .set_up = make_fifo,
                        .wait = open_own,
                        .wake = open_other,
                        .after = close_own,
                        TIMES },
        { .name = "fifo-open-write",
                        .path = "fifo-open-write",
                        .number = O_WRONLY,
                        .set_up = make_fifo,
                        .wait = open_own,
                        .wake = open_other,
                        .after = close_own,
                        TIMES },
        { .name = "eventfd-1", .set_up = set_up_eventfd, .wait = read_word, .wake = write_word, TIMES },
        { .name = "eventfd-2", .set_up = set_up_eventfd, .wait = read_word, .wake = write_word, TIMES },
        { .name = "eventfd-write",
                        .set_up = set_up_eventfd,
                        .prepare = fill_eventfd,
                        .wait = add_to_eventfd,
                        .wake = read_word,
                        .after = read_word,
                        TIMES },
        { .name = "timerfd", .set_up = set_up_timerfd, .wait = wait_tick, TIMES },
        { .name = "signalfd", .set_up = set_up_signalfd, .wait = wait_signal, .wake = send_signal, TIMES },
        { .name = "inotify",
                        .path = "watched",
                        .set_up = set_up_inotify,
                        .wait = wait_event,
                        .wake = cause_event,
                        TIMES },
        { .name = "terminal", .set_up = set_up_terminal, .wait = read_byte, .wake = write_byte, TIMES },
};

int main(void) {
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, SIGUSR1);
        CHECK_THREAD(pthread_sigmask(SIG_BLOCK, &set, NULL));
        pairs_play(pairs, ELEMENTSOF(pairs));
        finish();
        return EXIT_SUCCESS;
}
