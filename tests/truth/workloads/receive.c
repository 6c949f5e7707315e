/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* receive PORT COUNT: a thread that waits for COUNT datagrams. receive PORT COUNT ADDRESS: sends as many there, at once. */
#include "workload.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#define DATAGRAM_BYTES 1400

typedef struct Receiver {
        int fd;
        unsigned count;
        Gate gate;
        pid_t tid;
        Tally tally;
        Schedstat used;
} Receiver;

static void *run_receiver(void *argument) {
        Receiver *r = argument;
        char datagram[DATAGRAM_BYTES];

        name_thread("receiver");
        r->tid = thread_id();
        gate_pass(&r->gate);
        Schedstat before = schedstat();
        for (unsigned i = 0; i < r->count; i++) {
                uint64_t start_ns = now_ns();
                CHECK(recv(r->fd, datagram, sizeof(datagram), 0) == sizeof(datagram));
                tally_add(&r->tally, now_ns() - start_ns);
        }
        Schedstat after = schedstat();
        r->used = (Schedstat){ after.run_ns - before.run_ns, after.runqueue_ns - before.runqueue_ns };
        return NULL;
}

static void send_all(const Receiver *r, struct sockaddr_in *to) {
        char datagram[DATAGRAM_BYTES] = { 0 };

        for (unsigned i = 0; i < r->count; i++)
                CHECK(sendto(r->fd, datagram, sizeof(datagram), 0, (struct sockaddr *) to, sizeof(*to)) ==
                                sizeof(datagram));
}

int main(int argc, char *argv[]) {
        CHECK(argc >= 3);
        Receiver receiver = { .count = (unsigned) atoi(argv[2]) };
        struct sockaddr_in address = {
                .sin_family = AF_INET,
                .sin_port = htons((uint16_t) atoi(argv[1])),
        };
        int size = 1 << 20;

        receiver.fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        CHECK(receiver.fd >= 0);
        if (argc > 3) {
                CHECK(setsockopt(receiver.fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) == 0);
                CHECK(inet_pton(AF_INET, argv[3], &address.sin_addr) == 1);
                ready();
                send_all(&receiver, &address);
                printf("{}");
                finish();
                return EXIT_SUCCESS;
        }

        CHECK(bind(receiver.fd, (struct sockaddr *) &address, sizeof(address)) == 0);
        gate_init(&receiver.gate);
        pthread_t thread = start_thread(run_receiver, &receiver);
        ready();
        gate_open(&receiver.gate, 1);
        join_thread(thread);
        printf("{\"tid\":%d,\"runqueue_ns\":%llu,", receiver.tid, (unsigned long long) receiver.used.runqueue_ns);
        print_tally(&receiver.tally);
        putchar('}');
        finish();
        return EXIT_SUCCESS;
}
