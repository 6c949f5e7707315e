/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Waits on sockets that are no answers: accept(), connect() to a listener whose queue is full, and senders whose
 * receivers do not keep up. */
#include "address.h"
#include "pair.h"

#define N_ROUNDS 40
#define ROUND_NS (10 * MSEC)
#define N_BULK 40
#define BULK_BYTES 65536
#define LOST_SYN_NS (400 * MSEC)

/* Of a pair: fds[0] is the waiter's socket, fds[1] the listener or the other end; data is the address. */
static Address *address_of(Pair *p) {
        if (!p->data) {
                Address *a = malloc(sizeof(*a));

                CHECK(a);
                *a = p->path ? unix_name(p->path) : loopback((int) p->number);
                p->data = a;
        }
        return p->data;
}

static void set_up_accept(Pair *p) {
        p->fds[0] = bound_socket(SOCK_STREAM, address_of(p));
        CHECK(listen(p->fds[0], 8) == 0);
        p->inodes[0] = inode_of(p->fds[0]);
}

static void wait_accept(Pair *p) {
        int fd = p->round % 2 ? accept4(p->fds[0], NULL, NULL, SOCK_CLOEXEC) : accept(p->fds[0], NULL, NULL);

        CHECK(fd >= 0);
        close(fd);
}

static void wake_accept(Pair *p) {
        close(connected_socket(SOCK_STREAM, address_of(p)));
}

/* The queue holds one connection and is full. */
static void set_up_connect(Pair *p) {
        p->fds[1] = bound_socket(SOCK_STREAM, address_of(p));
        CHECK(listen(p->fds[1], 0) == 0);
        close(connected_socket(SOCK_STREAM, address_of(p)));
}

static void prepare_connect(Pair *p) {
        p->fds[0] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        CHECK(p->fds[0] >= 0);
        pair_note(p, p->fds[0]);
}

static void wait_connect(Pair *p) {
        const Address *a = p->data;

        CHECK(connect(p->fds[0], &a->any, address_size(a)) == 0);
}

static void wake_connect(Pair *p) {
        close(accepted_socket(p->fds[1]));
}

static void close_own(Pair *p) {
        close(p->fds[0]);
}

/* The receiver's queue of datagrams is full. (Between two that are connected with each other there is no such limit.) */
static void set_up_send(Pair *p) {
        char byte = 0;

        p->fds[1] = bound_socket(SOCK_DGRAM, address_of(p));
        p->fds[0] = connected_socket(SOCK_DGRAM, address_of(p));
        while (send(p->fds[0], &byte, 1, MSG_DONTWAIT) == 1)
                ;
        CHECK(errno == EAGAIN);
        p->inodes[0] = inode_of(p->fds[0]);
}

static void wait_send(Pair *p) {
        char byte = 0;

        CHECK(send(p->fds[0], &byte, 1, 0) == 1);
}

static void wake_send(Pair *p) {
        char byte;

        CHECK(recv(p->fds[1], &byte, 1, 0) == 1);
}

static Pair pairs[] = {
        { .name = "accept-tcp4",
                        .number = AF_INET,
                        .set_up = set_up_accept,
                        .wait = wait_accept,
                        .wake = wake_accept,
                        .rounds = N_ROUNDS,
                        .wait_ns = ROUND_NS },
        { .name = "accept-tcp6",
                        .number = AF_INET6,
                        .set_up = set_up_accept,
                        .wait = wait_accept,
                        .wake = wake_accept,
                        .rounds = N_ROUNDS,
                        .wait_ns = ROUND_NS },
        { .name = "accept-unix",
                        .path = "accept",
                        .set_up = set_up_accept,
                        .wait = wait_accept,
                        .wake = wake_accept,
                        .rounds = N_ROUNDS,
                        .wait_ns = ROUND_NS },
        { .name = "connect-unix",
                        .path = "connect",
                        .set_up = set_up_connect,
                        .prepare = prepare_connect,
                        .wait = wait_connect,
                        .wake = wake_connect,
                        .after = close_own,
                        .rounds = N_ROUNDS,
                        .wait_ns = ROUND_NS },
        { .name = "send-dgram",
                        .path = "datagrams",
                        .set_up = set_up_send,
                        .wait = wait_send,
                        .wake = wake_send,
                        .rounds = N_ROUNDS,
                        .wait_ns = ROUND_NS },
};

/* A sender whose receiver takes BULK_BYTES every ROUND_NS. How often it waits depends on buffers; how long all in
 * all is its time without run and run queue. */
typedef struct Bulk {
        const char *name;
        int family;
        int fds[2];
        Gate *gate;
        pid_t tid, receiver;
        uint64_t elapsed_ns;
        Schedstat used;
} Bulk;

static Bulk bulks[] = {
        { .name = "send-tcp", .family = AF_INET },
        { .name = "send-stream", .family = AF_UNIX },
};

static void set_up_bulk(Bulk *b, Gate *gate) {
        Address a = loopback(AF_INET);
        int size = BULK_BYTES;

        b->gate = gate;
        if (b->family == AF_UNIX)
                CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, b->fds) == 0);
        else {
                int listener = bound_socket(SOCK_STREAM, &a);

                CHECK(setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)) == 0);
                CHECK(listen(listener, 1) == 0);
                b->fds[0] = connected_socket(SOCK_STREAM, &a);
                b->fds[1] = accepted_socket(listener);
                close(listener);
        }
        CHECK(setsockopt(b->fds[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)) == 0);
}

static void *run_sender(void *argument) {
        Bulk *b = argument;
        char *data = calloc(1, BULK_BYTES);

        CHECK(data);
        name_thread(b->name);
        b->tid = thread_id();
        gate_pass(b->gate);
        Schedstat before = schedstat();
        uint64_t start_ns = now_ns();
        for (unsigned i = 0; i < N_BULK; i++)
                CHECK(send(b->fds[0], data, BULK_BYTES, 0) == BULK_BYTES);
        b->elapsed_ns = now_ns() - start_ns;
        Schedstat after = schedstat();
        b->used = (Schedstat){ after.run_ns - before.run_ns, after.runqueue_ns - before.runqueue_ns };
        free(data);
        return NULL;
}

static void *run_receiver(void *argument) {
        Bulk *b = argument;
        size_t left = (size_t) N_BULK * BULK_BYTES;
        char *data = malloc(BULK_BYTES);
        char name[16];

        CHECK(data);
        snprintf(name, sizeof(name), "%.11s-end", b->name);
        name_thread(name);
        b->receiver = thread_id();
        gate_pass(b->gate);
        while (left > 0) {
                sleep_ns(ROUND_NS);
                ssize_t n = recv(b->fds[1], data, BULK_BYTES, MSG_DONTWAIT);
                CHECK(n > 0 || (n < 0 && errno == EAGAIN));
                if (n > 0)
                        left -= (size_t) n;
        }
        free(data);
        return NULL;
}

/* A listener whose queue is full drops the request; the client tries again after a second. */
typedef struct LostRequest {
        int listener, filler, fd;
        Address address;
        Gate *gate;
        pid_t tid;
        Tally tally;
        Schedstat used;
} LostRequest;

static void set_up_lost(LostRequest *l, Gate *gate) {
        l->gate = gate;
        l->address = loopback(AF_INET);
        l->listener = bound_socket(SOCK_STREAM, &l->address);
        CHECK(listen(l->listener, 0) == 0);
        l->filler = connected_socket(SOCK_STREAM, &l->address);
        l->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        CHECK(l->fd >= 0);
}

static void *run_lost(void *argument) {
        LostRequest *l = argument;

        name_thread("connect-tcp");
        l->tid = thread_id();
        gate_pass(l->gate);
        Schedstat before = schedstat();
        uint64_t start_ns = now_ns();
        CHECK(connect(l->fd, &l->address.any, address_size(&l->address)) == 0);
        tally_add(&l->tally, now_ns() - start_ns);
        Schedstat after = schedstat();
        l->used = (Schedstat){ after.run_ns - before.run_ns, after.runqueue_ns - before.runqueue_ns };
        return NULL;
}

static void print_bulk(const Bulk *b) {
        printf(",\"%s\":{\"tid\":%d,\"receiver\":%d,", b->name, b->tid, b->receiver);
        print_socket(b->fds[0]);
        printf("\"bytes\":%d,\"run_ns\":%llu,\"runqueue_ns\":%llu,\"total_ns\":%llu,\"other_end\":{",
                        N_BULK * BULK_BYTES, (unsigned long long) b->used.run_ns,
                        (unsigned long long) b->used.runqueue_ns, (unsigned long long) b->elapsed_ns);
        print_socket(b->fds[1]);
        printf("\"bytes\":%d}}", N_BULK * BULK_BYTES);
}

int main(void) {
        pthread_t threads[2 * ELEMENTSOF(bulks) + 1];
        LostRequest lost = { 0 };
        Gate gate;

        gate_init(&gate);
        set_up_lost(&lost, &gate);
        threads[0] = start_thread(run_lost, &lost);
        for (size_t i = 0; i < ELEMENTSOF(bulks); i++) {
                set_up_bulk(&bulks[i], &gate);
                threads[2 * i + 1] = start_thread(run_sender, &bulks[i]);
                threads[2 * i + 2] = start_thread(run_receiver, &bulks[i]);
        }
        pairs_start(pairs, ELEMENTSOF(pairs));
        ready();
        gate_open(&gate, ELEMENTSOF(threads));
        pairs_go(pairs, ELEMENTSOF(pairs));
        sleep_ns(LOST_SYN_NS);
        int accepted = accepted_socket(lost.listener);
        pairs_join(pairs, ELEMENTSOF(pairs));
        for (size_t i = 0; i < ELEMENTSOF(threads); i++)
                join_thread(threads[i]);
        sleep_ns(LAST_ACK_NS);

        printf("{\"connect-tcp\":{\"tid\":%d,\"run_ns\":%llu,\"runqueue_ns\":%llu,", lost.tid,
                        (unsigned long long) lost.used.run_ns, (unsigned long long) lost.used.runqueue_ns);
        print_socket(lost.fd);
        print_tally(&lost.tally);
        putchar('}');
        for (size_t i = 0; i < ELEMENTSOF(bulks); i++)
                print_bulk(&bulks[i]);
        for (size_t i = 0; i < ELEMENTSOF(pairs); i++) {
                printf(",\"%s\":{", pairs[i].name);
                print_pair(&pairs[i]);
                putchar('}');
        }
        putchar('}');
        finish();
        close(accepted);
        return EXIT_SUCCESS;
}
