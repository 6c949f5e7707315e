/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Conversations over each kind of socket and by each kind of call: a client that waits for its server's service time, a
 * server that waits for its client's think time. */
#include "address.h"

#include <sys/uio.h>

#define N_EXCHANGES 50
#define THINK_NS (8 * MSEC)
#define SERVICE_NS (12 * MSEC)
#define REQUEST_BYTES 100
#define ANSWER_BYTES 300

/* One end of a conversation. */
typedef struct End End;
struct End {
        const struct Talk *talk;
        End *other;
        int fd;
        Address peer; /* where to send to, if it is not connected */
        _Atomic uint64_t woken_ns;
        pid_t tid;
        Tally waits;
        uint64_t bytes_in, bytes_out;
};

typedef struct Talk {
        const char *name; /* at most 13 bytes: the threads are called NAME-c and NAME-s */
        int family, type;
        const char *path;     /* unix: of the server; NULL: a socket pair */
        const char *own_path; /* unix datagrams: of the client */
        bool unconnected;
        void (*send)(End *, void *, size_t);
        size_t (*receive)(End *, void *, size_t);
        int listener;
        End client, server;
        Gate *gate;
} Talk;

static void by_send(End *e, void *data, size_t size) {
        CHECK(send(e->fd, data, size, 0) == (ssize_t) size);
}

static size_t by_recv(End *e, void *data, size_t size) {
        return (size_t) recv(e->fd, data, size, 0);
}

static void by_write(End *e, void *data, size_t size) {
        CHECK(write(e->fd, data, size) == (ssize_t) size);
}

static size_t by_read(End *e, void *data, size_t size) {
        return (size_t) read(e->fd, data, size);
}

static void by_writev(End *e, void *data, size_t size) {
        struct iovec parts[] = { { data, 10 }, { (char *) data + 10, size - 10 } };

        CHECK(writev(e->fd, parts, ELEMENTSOF(parts)) == (ssize_t) size);
}

static size_t by_readv(End *e, void *data, size_t size) {
        struct iovec parts[] = { { data, 10 }, { (char *) data + 10, size - 10 } };

        return (size_t) readv(e->fd, parts, ELEMENTSOF(parts));
}

static void by_sendto(End *e, void *data, size_t size) {
        CHECK(sendto(e->fd, data, size, 0, &e->peer.any, address_size(&e->peer)) == (ssize_t) size);
}

static size_t by_recvfrom(End *e, void *data, size_t size) {
        Address from;
        socklen_t from_size = sizeof(from);

        return (size_t) recvfrom(e->fd, data, size, 0, &from.any, &from_size);
}

static void by_sendmsg(End *e, void *data, size_t size) {
        struct iovec part = { data, size };
        struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

        CHECK(sendmsg(e->fd, &message, 0) == (ssize_t) size);
}

static size_t by_recvmsg(End *e, void *data, size_t size) {
        struct iovec part = { data, size };
        struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

        return (size_t) recvmsg(e->fd, &message, 0);
}

static void by_sendmmsg(End *e, void *data, size_t size) {
        struct iovec part = { data, size };
        struct mmsghdr message = { .msg_hdr = { .msg_iov = &part, .msg_iovlen = 1 } };

        CHECK(sendmmsg(e->fd, &message, 1, 0) == 1);
}

static size_t by_recvmmsg(End *e, void *data, size_t size) {
        struct iovec part = { data, size };
        struct mmsghdr message = { .msg_hdr = { .msg_iov = &part, .msg_iovlen = 1 } };

        CHECK(recvmmsg(e->fd, &message, 1, 0, NULL) == 1);
        return message.msg_len;
}

static Talk talks[] = {
        { .name = "tcp4", .family = AF_INET, .type = SOCK_STREAM, .send = by_send, .receive = by_recv },
        { .name = "tcp6", .family = AF_INET6, .type = SOCK_STREAM, .send = by_write, .receive = by_read },
        { .name = "udp4",
                        .family = AF_INET,
                        .type = SOCK_DGRAM,
                        .unconnected = true,
                        .send = by_sendto,
                        .receive = by_recvfrom },
        { .name = "udp4-joined", .family = AF_INET, .type = SOCK_DGRAM, .send = by_sendmsg, .receive = by_recvmsg },
        { .name = "udp6-joined", .family = AF_INET6, .type = SOCK_DGRAM, .send = by_sendmmsg, .receive = by_recvmmsg },
        { .name = "unix-stream",
                        .family = AF_UNIX,
                        .type = SOCK_STREAM,
                        .path = "stream",
                        .send = by_writev,
                        .receive = by_readv },
        { .name = "unix-dgram",
                        .family = AF_UNIX,
                        .type = SOCK_DGRAM,
                        .path = "dgram",
                        .own_path = "dgram-client",
                        .unconnected = true,
                        .send = by_sendto,
                        .receive = by_recvfrom },
        { .name = "unix-packet",
                        .family = AF_UNIX,
                        .type = SOCK_SEQPACKET,
                        .path = "@prism-truth-packet",
                        .send = by_sendmsg,
                        .receive = by_recvmsg },
        { .name = "socketpair", .family = AF_UNIX, .type = SOCK_STREAM, .send = by_write, .receive = by_read },
};

static void set_up_stream(Talk *t, Address *server) {
        t->listener = bound_socket(t->type, server);
        CHECK(listen(t->listener, 8) == 0);
        t->client.fd = connected_socket(t->type, server);
        t->server.fd = accepted_socket(t->listener);
}

static void set_up_datagrams(Talk *t, Address *server) {
        Address client = t->family == AF_UNIX ? unix_name(t->own_path) : loopback(t->family);

        t->server.fd = bound_socket(t->type, server);
        t->client.fd = bound_socket(t->type, &client);
        if (!t->unconnected) {
                CHECK(connect(t->server.fd, &client.any, address_size(&client)) == 0);
                CHECK(connect(t->client.fd, &server->any, address_size(server)) == 0);
        }
        t->client.peer = *server;
        t->server.peer = client;
}

static void set_up(Talk *t, Gate *gate) {
        t->listener = -1;
        t->gate = gate;
        t->client.talk = t->server.talk = t;
        t->client.other = &t->server;
        t->server.other = &t->client;
        if (t->family == AF_UNIX && !t->path) {
                int fds[2];

                CHECK(socketpair(AF_UNIX, t->type | SOCK_CLOEXEC, 0, fds) == 0);
                t->client.fd = fds[0];
                t->server.fd = fds[1];
                return;
        }
        Address server = t->family == AF_UNIX ? unix_name(t->path) : loopback(t->family);

        if (t->type == SOCK_DGRAM)
                set_up_datagrams(t, &server);
        else
                set_up_stream(t, &server);
}

static void say(End *e, size_t size) {
        char data[512] = { 0 };

        e->other->woken_ns = now_ns();
        e->talk->send(e, data, size);
        e->bytes_out += size;
}

static void hear(End *e, size_t size) {
        char data[512];
        uint64_t start_ns = now_ns();

        CHECK(e->talk->receive(e, data, sizeof(data)) == size);
        e->bytes_in += size;
        CHECK(e->woken_ns > start_ns); /* else there was no wait */
        tally_add(&e->waits, e->woken_ns - start_ns);
}

static void begin(End *e, const char *suffix) {
        char name[16];

        snprintf(name, sizeof(name), "%.13s-%s", e->talk->name, suffix);
        name_thread(name);
        e->tid = thread_id();
        gate_pass(e->talk->gate);
}

static void *run_client(void *argument) {
        End *e = argument;

        begin(e, "c");
        for (unsigned i = 0; i < N_EXCHANGES; i++) {
                sleep_ns(THINK_NS);
                say(e, REQUEST_BYTES);
                hear(e, ANSWER_BYTES);
        }
        return NULL;
}

static void *run_server(void *argument) {
        End *e = argument;

        begin(e, "s");
        for (unsigned i = 0; i < N_EXCHANGES; i++) {
                hear(e, REQUEST_BYTES);
                sleep_ns(SERVICE_NS);
                say(e, ANSWER_BYTES);
        }
        return NULL;
}

static void print_end(const char *key, const End *e) {
        printf("\"%s\":{\"tid\":%d,\"bytes_in\":%llu,\"bytes_out\":%llu,", key, e->tid,
                        (unsigned long long) e->bytes_in, (unsigned long long) e->bytes_out);
        print_socket(e->fd);
        print_tally(&e->waits);
        putchar('}');
}

int main(void) {
        pthread_t threads[2 * ELEMENTSOF(talks)];
        Gate gate;

        gate_init(&gate);
        for (size_t i = 0; i < ELEMENTSOF(talks); i++) {
                set_up(&talks[i], &gate);
                threads[2 * i] = start_thread(run_server, &talks[i].server);
                threads[2 * i + 1] = start_thread(run_client, &talks[i].client);
        }
        ready();
        gate_open(&gate, ELEMENTSOF(threads));
        for (size_t i = 0; i < ELEMENTSOF(threads); i++)
                join_thread(threads[i]);
        sleep_ns(LAST_ACK_NS);
        for (size_t i = 0; i < ELEMENTSOF(talks); i++) {
                printf("%c\"%s\":{", i == 0 ? '{' : ',', talks[i].name);
                print_end("client", &talks[i].client);
                putchar(',');
                print_end("server", &talks[i].server);
                putchar('}');
        }
        putchar('}');
        finish();
        return EXIT_SUCCESS;
}
