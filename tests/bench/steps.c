/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* steps WHAT SECONDS: one kind of step over and over on one CPU; prints the nanoseconds of one, as the 10th percentile of many
 * short batches: what others do to the machine makes batches longer, never shorter.
 *
 *   getppid  a call that is about nothing
 *   wake     a futex wake that finds nobody
 *   read     a read from a socket that has nothing
 *   pipe     a byte to another thread of the same CPU and back through pipes: two switches and two wakes
 *   epoll    the same over TCP, the other thread waiting in epoll_wait
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define BATCHES_MAX 100000
#define CALLS 5000 /* of a batch */
#define ROUND_TRIPS 500

typedef struct Ends {
        int ask, answered; /* of who asks: where it writes and reads */
        int asked, answer; /* of the other thread */
        bool epoll;
} Ends;

static void must(bool good, const char *what) {
        if (good)
                return;
        perror(what);
        exit(1);
}

static uint64_t now_ns(void) {
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t) ts.tv_sec * 1000000000U + (uint64_t) ts.tv_nsec;
}

static void *answer(void *userdata) {
        const Ends *e = userdata;
        int set = epoll_create1(EPOLL_CLOEXEC);
        struct epoll_event event = { .events = EPOLLIN };
        char c;

        must(set >= 0 && (!e->epoll || epoll_ctl(set, EPOLL_CTL_ADD, e->asked, &event) == 0), "epoll");
        for (;;) {
                if (e->epoll)
                        epoll_wait(set, &event, 1, -1);
                if (read(e->asked, &c, 1) != 1 || write(e->answer, &c, 1) != 1)
                        return NULL;
        }
}

static void connect_pipes(Ends *e) {
        int there[2], back[2];

        must(pipe(there) == 0 && pipe(back) == 0, "pipe");
        *e = (Ends){ .ask = there[1], .answered = back[0], .asked = there[0], .answer = back[1] };
}

static void connect_tcp(Ends *e) {
        struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0), server, on = 1;
        socklen_t length = sizeof(address);

        must(bind(listener, (struct sockaddr *) &address, length) == 0 && listen(listener, 1) == 0 &&
                                        getsockname(listener, (struct sockaddr *) &address, &length) == 0 &&
                                        connect(client, (struct sockaddr *) &address, length) == 0,
                        "TCP");
        server = accept(listener, NULL, NULL);
        must(server >= 0 && setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0 &&
                                        setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0,
                        "TCP");
        *e = (Ends){ .ask = client, .answered = client, .asked = server, .answer = server, .epoll = true };
}

static void call(const char *what, int nothing) {
        static uint32_t word;
        char c;

        if (*what == 'g')
                syscall(SYS_getppid);
        else if (*what == 'w')
                syscall(SYS_futex, &word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0);
        else
                must(read(nothing, &c, 1) < 0, "read");
}

static int compare(const void *a, const void *b) {
        double x = *(const double *) a, y = *(const double *) b;

        return (x > y) - (x < y);
}

int main(int argc, char *argv[]) {
        static double batches[BATCHES_MAX];
        bool trips;
        int sockets[2];
        pthread_t thread;
        cpu_set_t first;
        uint64_t end;
        size_t n = 0;
        Ends ends;

        if (argc != 3) {
                fprintf(stderr, "usage: steps getppid|wake|read|pipe|epoll SECONDS\n");
                return 2;
        }
        CPU_ZERO(&first);
        CPU_SET(0, &first);
        must(sched_setaffinity(0, sizeof(first), &first) == 0, "CPU 0");
        must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sockets) == 0, "socketpair");
        trips = strcmp(argv[1], "pipe") == 0 || strcmp(argv[1], "epoll") == 0;
        if (trips) {
                if (strcmp(argv[1], "pipe") == 0)
                        connect_pipes(&ends);
                else
                        connect_tcp(&ends);
                must(pthread_create(&thread, NULL, answer, &ends) == 0, "thread");
        }

        end = now_ns() + (uint64_t) (atof(argv[2]) * 1e9);
        while (n < BATCHES_MAX && now_ns() < end) {
                unsigned steps = trips ? ROUND_TRIPS : CALLS;
                uint64_t begin = now_ns();
                char c = 0;

                for (unsigned i = 0; i < steps; i++)
                        if (trips)
                                must(write(ends.ask, &c, 1) == 1 && read(ends.answered, &c, 1) == 1, "round trip");
                        else
                                call(argv[1], sockets[0]);
                batches[n++] = (double) (now_ns() - begin) / steps;
        }
        qsort(batches, n, sizeof(*batches), compare);
        printf("%.0f\n", batches[n / 10]);
        return 0;
}
