/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Asks a server over TCP the same question on many connections, each again as soon as the answer is there, for ever.
 * For servers of which one CPU serves more than redis-benchmark can ask with another: an answer costs it one read, one write
 * and a part of an epoll_wait(). usage: asker PORT CONNECTIONS ANSWER-BYTES QUESTION (the line, without its end) */

#include <arpa/inet.h>
#include <err.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define CONNECTIONS_MAX 4096
#define EVENTS 256

static int connect_to(const struct sockaddr_in *address) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0 || connect(fd, (const struct sockaddr *) address, sizeof(*address)) < 0)
                err(1, "connection to the server");

        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
        return fd;
}

static void ask(int fd, const char *question, size_t size) {
        ssize_t sent = write(fd, question, size);
        if (sent < 0 || (size_t) sent != size)
                err(1, "question");
}

int main(int argc, char *argv[]) {
        static size_t missing[CONNECTIONS_MAX * 2]; /* bytes of the answer that have not come yet, by descriptor */
        struct epoll_event events[EVENTS];
        char question[256], answer[65536];

        if (argc != 5)
                errx(2, "usage: asker PORT CONNECTIONS ANSWER-BYTES QUESTION");

        struct sockaddr_in address = { .sin_family = AF_INET,
                .sin_port = htons((uint16_t) atoi(argv[1])),
                .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        int connections = atoi(argv[2]);
        size_t answer_size = (size_t) atol(argv[3]);
        int size = snprintf(question, sizeof(question), "%s\r\n", argv[4]);
        if (connections < 1 || connections > CONNECTIONS_MAX || answer_size == 0 || size >= (int) sizeof(question))
                errx(2, "an argument is out of range");

        int set = epoll_create1(EPOLL_CLOEXEC);
        for (int i = 0; i < connections; i++) {
                int fd = connect_to(&address);
                missing[fd] = answer_size;
                if (epoll_ctl(set, EPOLL_CTL_ADD, fd, &(struct epoll_event){ .events = EPOLLIN, .data.fd = fd }) < 0)
                        err(1, "epoll_ctl");
                ask(fd, question, (size_t) size);
        }

        for (;;) {
                int ready = epoll_wait(set, events, EVENTS, -1);
                for (int i = 0; i < ready; i++) {
                        int fd = events[i].data.fd;
                        ssize_t n = read(fd, answer, sizeof(answer));
                        if (n <= 0 || (size_t) n > missing[fd])
                                errx(1, "%s",
                                                n <= 0 ? "the server closed a connection"
                                                       : "an answer is longer than it should be");

                        missing[fd] -= (size_t) n;
                        if (missing[fd] == 0) {
                                missing[fd] = answer_size;
                                ask(fd, question, (size_t) size);
                        }
                }
        }
}
