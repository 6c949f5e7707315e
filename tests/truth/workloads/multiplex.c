/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Waits on several files at once. The waker chooses which of them ends each wait, by writing to it; how long the waiter
 * had waited by then is put down to that file. */
#include "pair.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>

#define N_ROUNDS 40
#define FAST_NS (6 * MSEC)
#define SLOW_NS (20 * MSEC)
#define TIMEOUT_MS 10
#define N_REUSED 10 /* rounds that a descriptor stays the same file */

/* Of a pair: file i is read at fds[i] and written at fds[PAIR_FILES + i], a word at a time; number is the epoll set,
 * data the inner one. */
static void add_file(Pair *p, const char *kind, int reader, int writer) {
        unsigned i = 0;

        while (p->kinds[i])
                i++;
        CHECK(i < PAIR_FILES);
        p->kinds[i] = kind;
        p->fds[i] = reader;
        p->fds[PAIR_FILES + i] = writer;
        p->inodes[i] = reader == writer ? 0 : inode_of(reader); /* all eventfds have the same inode */
}

static void add_pipe(Pair *p) {
        int fds[2];

        CHECK(pipe2(fds, O_CLOEXEC) == 0);
        add_file(p, "pipe", fds[0], fds[1]);
}

static void add_socket(Pair *p) {
        int fds[2];

        CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
        add_file(p, "unix", fds[0], fds[1]);
}

static void add_eventfd(Pair *p) {
        int fd = eventfd(0, EFD_CLOEXEC);

        CHECK(fd >= 0);
        add_file(p, "eventfd", fd, fd);
}

static int new_set(void) {
        int fd = epoll_create1(EPOLL_CLOEXEC);

        CHECK(fd >= 0);
        return fd;
}

static void watch(int set, int fd, uint32_t how) {
        struct epoll_event event = { .events = EPOLLIN | how, .data.fd = fd };

        CHECK(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) == 0);
}

static void set_up_server(Pair *p) {
        add_socket(p);
        add_socket(p);
        p->number = (unsigned long) new_set();
        watch((int) p->number, p->fds[0], 0);
        watch((int) p->number, p->fds[1], 0);
}

/* Three from the fast one, one from the slow one. */
static void choose_fast_and_slow(Pair *p) {
        p->chosen = p->round % 4 == 3;
        p->wait_ns = p->chosen == 0 ? FAST_NS : SLOW_NS;
}

static void choose_late(Pair *p) {
        if (p->round == 0)
                set_up_server(p);
        choose_fast_and_slow(p);
}

static void choose_in_turn(Pair *p) {
        unsigned n = 0;

        while (n < PAIR_FILES && p->kinds[n])
                n++;
        p->chosen = p->round % n;
        p->wait_ns = FAST_NS + p->chosen * 4 * MSEC;
}

static void write_chosen(Pair *p) {
        uint64_t word = 1;

        CHECK(write(p->fds[PAIR_FILES + p->chosen], &word, sizeof(word)) == sizeof(word));
}

static void read_chosen(Pair *p) {
        uint64_t word;

        CHECK(read(p->fds[p->chosen], &word, sizeof(word)) == sizeof(word));
}

static void wait_epoll(Pair *p) {
        struct epoll_event events[8];

        CHECK(epoll_wait((int) p->number, events, ELEMENTSOF(events), -1) == 1);
        CHECK(events[0].data.fd == p->fds[p->chosen]);
}

/* Nobody reads: each write is an edge. */
static void set_up_edge(Pair *p) {
        add_eventfd(p);
        add_pipe(p);
        p->number = (unsigned long) new_set();
        watch((int) p->number, p->fds[0], EPOLLET);
        watch((int) p->number, p->fds[1], EPOLLET);
}

static void wait_edge(Pair *p) {
        struct epoll_event events[8];
        sigset_t none;

        sigemptyset(&none);
        CHECK(epoll_pwait((int) p->number, events, ELEMENTSOF(events), -1, &none) == 1);
        CHECK(events[0].data.fd == p->fds[p->chosen]);
}

static void set_up_oneshot(Pair *p) {
        add_pipe(p);
        add_pipe(p);
        p->number = (unsigned long) new_set();
        watch((int) p->number, p->fds[0], EPOLLONESHOT);
        watch((int) p->number, p->fds[1], EPOLLONESHOT);
}

static void wait_oneshot(Pair *p) {
        struct epoll_event events[8];
        struct timespec timeout = { .tv_sec = 10 };

        /* glibc has it from 2.35 on */
        CHECK(syscall(SYS_epoll_pwait2, (int) p->number, events, (int) ELEMENTSOF(events), &timeout, NULL, 8) == 1);
        CHECK(events[0].data.fd == p->fds[p->chosen]);
}

static void arm_again(Pair *p) {
        struct epoll_event event = { .events = EPOLLIN | EPOLLONESHOT, .data.fd = p->fds[p->chosen] };

        read_chosen(p);
        CHECK(epoll_ctl((int) p->number, EPOLL_CTL_MOD, p->fds[p->chosen], &event) == 0);
}

/* The first two files are watched by an inner set, the third by the outer one. */
static void set_up_nested(Pair *p) {
        int inner = new_set();

        add_pipe(p);
        add_pipe(p);
        add_pipe(p);
        p->number = (unsigned long) new_set();
        p->data = (void *) (intptr_t) inner;
        watch(inner, p->fds[0], 0);
        watch(inner, p->fds[1], 0);
        watch((int) p->number, inner, 0);
        watch((int) p->number, p->fds[2], 0);
}

static void wait_nested(Pair *p) {
        struct epoll_event event;
        int inner = (int) (intptr_t) p->data;

        CHECK(epoll_wait((int) p->number, &event, 1, -1) == 1);
        CHECK(event.data.fd == (p->chosen < 2 ? inner : p->fds[2]));
}

static void read_nested(Pair *p) {
        struct epoll_event event;

        if (p->chosen < 2) {
                CHECK(epoll_wait((int) (intptr_t) p->data, &event, 1, 0) == 1);
                CHECK(event.data.fd == p->fds[p->chosen]);
        }
        read_chosen(p);
}

/* The same descriptor becomes one pipe after the other. */
static void set_up_reused(Pair *p) {
        p->number = (unsigned long) new_set();
}

static void choose_reused(Pair *p) {
        p->chosen = p->round / N_REUSED;
        p->wait_ns = FAST_NS + p->chosen * 2 * MSEC;
        if (p->round % N_REUSED != 0)
                return;
        add_pipe(p);
        if (p->round == 0)
                p->data = (void *) (intptr_t) p->fds[0];
        int wanted = (int) (intptr_t) p->data;
        if (p->fds[p->chosen] != wanted) {
                /* Closes the former one at the same moment, with which it leaves the set. */
                CHECK(dup3(p->fds[p->chosen], wanted, O_CLOEXEC) == wanted);
                close(p->fds[p->chosen]);
                close(p->fds[PAIR_FILES + p->chosen - 1]);
                p->fds[p->chosen] = wanted;
        }
        watch((int) p->number, wanted, 0);
}

static void set_up_silent(Pair *p) {
        add_pipe(p);
        p->number = (unsigned long) new_set();
        watch((int) p->number, p->fds[0], 0);
}

static void wait_epoll_timeout(Pair *p) {
        struct epoll_event event;

        CHECK(epoll_wait((int) p->number, &event, 1, TIMEOUT_MS) == 0);
}

static void choose_fast(Pair *p) {
        p->wait_ns = FAST_NS;
}

static void wait_epoll_signal(Pair *p) {
        struct epoll_event event;

        CHECK(epoll_wait((int) p->number, &event, 1, -1) < 0 && errno == EINTR);
}

static void send_signal(Pair *p) {
        CHECK_THREAD(pthread_kill(p->threads[0], SIGUSR2));
}

static void set_up_one(Pair *p) {
        add_pipe(p);
}

static void set_up_two(Pair *p) {
        add_socket(p);
        add_pipe(p);
}

static void set_up_three(Pair *p) {
        add_pipe(p);
        add_socket(p);
        add_eventfd(p);
}

static nfds_t poll_set(const Pair *p, struct pollfd *set) {
        nfds_t n = 0;

        for (; n < PAIR_FILES && p->kinds[n]; n++)
                set[n] = (struct pollfd){ .fd = p->fds[n], .events = POLLIN };
        return n;
}

static void wait_poll(Pair *p) {
        struct pollfd set[PAIR_FILES];
        nfds_t n = poll_set(p, set);

        CHECK(poll(set, n, -1) == 1 && set[p->chosen].revents == POLLIN);
}

static void wait_ppoll(Pair *p) {
        struct pollfd set[PAIR_FILES];
        nfds_t n = poll_set(p, set);
        struct timespec timeout = { .tv_sec = 10 };

        CHECK(ppoll(set, n, &timeout, NULL) == 1 && set[p->chosen].revents == POLLIN);
}

static void wait_poll_timeout(Pair *p) {
        struct pollfd set[PAIR_FILES];
        nfds_t n = poll_set(p, set);

        CHECK(poll(set, n, TIMEOUT_MS) == 0);
}

static int select_set(const Pair *p, fd_set *set) {
        int most = 0;

        FD_ZERO(set);
        for (unsigned i = 0; i < PAIR_FILES && p->kinds[i]; i++) {
                FD_SET(p->fds[i], set);
                if (p->fds[i] > most)
                        most = p->fds[i];
        }
        return most + 1;
}

/* glibc makes select() of pselect6: this is the system call of that name. */
static void wait_select(Pair *p) {
        fd_set set;
        int n = select_set(p, &set);

        CHECK(syscall(SYS_select, n, &set, NULL, NULL, NULL) == 1 && FD_ISSET(p->fds[p->chosen], &set));
}

static void wait_pselect(Pair *p) {
        fd_set set;
        int n = select_set(p, &set);

        CHECK(pselect(n, &set, NULL, NULL, NULL, NULL) == 1 && FD_ISSET(p->fds[p->chosen], &set));
}

static void wait_select_timeout(Pair *p) {
        fd_set set;
        int n = select_set(p, &set);
        struct timeval timeout = { .tv_usec = TIMEOUT_MS * 1000 };

        CHECK(select(n, &set, NULL, NULL, &timeout) == 0);
}

static void on_signal(int number) {
}

#define IN_TURN .prepare = choose_in_turn, .wake = write_chosen, .after = read_chosen, .rounds = N_ROUNDS

static Pair pairs[] = {
        { .name = "epoll-server",
                        .set_up = set_up_server,
                        .prepare = choose_fast_and_slow,
                        .wait = wait_epoll,
                        .wake = write_chosen,
                        .after = read_chosen,
                        .rounds = N_ROUNDS },
        { .name = "epoll-late",
                        .prepare = choose_late,
                        .wait = wait_epoll,
                        .wake = write_chosen,
                        .after = read_chosen,
                        .rounds = N_ROUNDS },
        { .name = "epoll-edge",
                        .set_up = set_up_edge,
                        .prepare = choose_in_turn,
                        .wait = wait_edge,
                        .wake = write_chosen,
                        .rounds = N_ROUNDS },
        { .name = "epoll-oneshot",
                        .set_up = set_up_oneshot,
                        .prepare = choose_in_turn,
                        .wait = wait_oneshot,
                        .wake = write_chosen,
                        .after = arm_again,
                        .rounds = N_ROUNDS },
        { .name = "epoll-nested",
                        .set_up = set_up_nested,
                        .prepare = choose_in_turn,
                        .wait = wait_nested,
                        .wake = write_chosen,
                        .after = read_nested,
                        .rounds = N_ROUNDS },
        { .name = "epoll-reused",
                        .set_up = set_up_reused,
                        .prepare = choose_reused,
                        .wait = wait_epoll,
                        .wake = write_chosen,
                        .after = read_chosen,
                        .rounds = N_ROUNDS },
        { .name = "epoll-timeout", .set_up = set_up_silent, .wait = wait_epoll_timeout, .rounds = N_ROUNDS },
        { .name = "epoll-signal",
                        .set_up = set_up_silent,
                        .prepare = choose_fast,
                        .wait = wait_epoll_signal,
                        .wake = send_signal,
                        .rounds = N_ROUNDS },
        { .name = "poll-one", .set_up = set_up_one, .wait = wait_poll, IN_TURN },
        { .name = "poll-three", .set_up = set_up_three, .wait = wait_poll, IN_TURN },
        { .name = "ppoll-two", .set_up = set_up_two, .wait = wait_ppoll, IN_TURN },
        { .name = "select-three", .set_up = set_up_three, .wait = wait_select, IN_TURN },
        { .name = "pselect-two", .set_up = set_up_two, .wait = wait_pselect, IN_TURN },
        { .name = "poll-timeout", .set_up = set_up_two, .wait = wait_poll_timeout, .rounds = N_ROUNDS },
        { .name = "select-timeout", .set_up = set_up_two, .wait = wait_select_timeout, .rounds = N_ROUNDS },
};

int main(void) {
        struct sigaction action = { .sa_handler = on_signal };

        CHECK(sigaction(SIGUSR2, &action, NULL) == 0);
        pairs_play(pairs, ELEMENTSOF(pairs));
        finish();
        return EXIT_SUCCESS;
}
