/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* visits CONNECTIONS PER_SECOND FILE: short-lived TCP connections over loopback, one after the other in each pair of a
 * client and a server thread, of which each CPU has one: connect, ask, answer, close. The server waits for the question
 * and the client for the answer. FILE gets a line for each end of each connection: whose it was (TID), inode number, local
 * and remote port, and how often the thread left the CPU for a read on it. PER_SECOND 0: as many as the machine does.
 *
 * In a network namespace of its own, and closed by reset, so that no port is kept from the next one. */
#include "address.h"

#include <net/if.h>
#include <sys/ioctl.h>

#define CPUS_MAX 64
#define PACE_NS (10 * MSEC)

typedef struct End {
        unsigned long long inode;
        uint16_t local_port, remote_port;
        unsigned waits;
} End;

typedef struct Side {
        pid_t tid;
        pthread_t thread;
        End *ends; /* one a connection */
        int listener;
        Address address;
        int cpu;
        bool is_client;
        long reads, accepts, connects; /* how often it left the CPU in them */
} Side;

static Gate start_gate, end_gate;
static unsigned per_pair, per_pair_and_second, n_pairs, finished;

static void own_network(void) {
        struct ifreq request = { .ifr_name = "lo" };
        int fd;

        CHECK(unshare(CLONE_NEWNET) == 0);
        fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        CHECK(fd >= 0);
        CHECK(ioctl(fd, SIOCGIFFLAGS, &request) == 0);
        request.ifr_flags |= IFF_UP | IFF_RUNNING;
        CHECK(ioctl(fd, SIOCSIFFLAGS, &request) == 0);
        close(fd);
}

static long voluntary_switches(void) {
        struct rusage usage;

        CHECK(getrusage(RUSAGE_THREAD, &usage) == 0);
        return usage.ru_nvcsw;
}

static void note_end(End *end, int fd) {
        Address local, remote;
        socklen_t local_size = sizeof(local), remote_size = sizeof(remote);
        struct stat st;

        CHECK(fstat(fd, &st) == 0);
        CHECK(getsockname(fd, &local.any, &local_size) == 0);
        CHECK(getpeername(fd, &remote.any, &remote_size) == 0);
        end->inode = st.st_ino;
        end->local_port = ntohs(local.in.sin_port);
        end->remote_port = ntohs(remote.in.sin_port);
}

/* Adds the waits to both counters. */
static void read_byte(int fd, Side *s, End *end) {
        long before = voluntary_switches(), waits;
        char byte;

        CHECK(recv(fd, &byte, 1, 0) == 1);
        waits = voluntary_switches() - before;
        end->waits += (unsigned) waits;
        s->reads += waits;
}

static void send_byte(int fd) {
        CHECK(send(fd, "x", 1, MSG_NOSIGNAL) == 1);
}

static void visit(Side *s, End *end) {
        struct linger at_once = { .l_onoff = 1 };
        long before = voluntary_switches();
        int fd = connected_socket(SOCK_STREAM, &s->address);

        s->connects += voluntary_switches() - before;
        CHECK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)) == 0);
        note_end(end, fd);
        sched_yield(); /* the server comes to wait for the question */
        send_byte(fd);
        read_byte(fd, s, end);
        close(fd);
}

static void serve(Side *s, End *end) {
        long before = voluntary_switches();
        int fd = accepted_socket(s->listener);

        s->accepts += voluntary_switches() - before;
        note_end(end, fd);
        read_byte(fd, s, end);
        send_byte(fd);
        close(fd);
}

static void *run_side(void *argument) {
        uint64_t start_ns, due_ns;
        Side *s = argument;

        name_thread(s->is_client ? "visitor" : "host");
        s->tid = thread_id();
        pin(0, s->cpu);
        gate_pass(&start_gate);
        start_ns = now_ns();
        for (unsigned i = 0; i < per_pair; i++) {
                if (!s->is_client) {
                        serve(s, &s->ends[i]);
                        continue;
                }
                visit(s, &s->ends[i]);
                if (per_pair_and_second == 0)
                        continue;
                due_ns = start_ns + i * SEC / per_pair_and_second;
                if (due_ns > now_ns() + PACE_NS)
                        sleep_ns(PACE_NS);
        }
        __atomic_add_fetch(&finished, 1, __ATOMIC_RELEASE);
        gate_pass(&end_gate);
        return NULL;
}

static void write_ends(const char *path, const Side *sides) {
        FILE *f = fopen(path, "we");

        CHECK(f);
        for (unsigned i = 0; i < 2 * n_pairs; i++)
                for (unsigned k = 0; k < per_pair; k++) {
                        const End *end = &sides[i].ends[k];

                        fprintf(f, "%d %llu %u %u %u\n", (int) sides[i].tid, end->inode, end->local_port,
                                        end->remote_port, end->waits);
                }
        CHECK(fclose(f) == 0);
}

int main(int argc, char **argv) {
        uint64_t start_ns, end_ns;
        cpu_set_t set;
        Side *sides;
        int cpu = -1;

        if (argc != 4)
                return 2;
        CHECK(sched_getaffinity(0, sizeof(set), &set) == 0);
        n_pairs = (unsigned) CPU_COUNT(&set);
        CHECK(n_pairs > 0 && n_pairs <= CPUS_MAX);
        per_pair = (unsigned) atoi(argv[1]) / n_pairs;
        per_pair_and_second = (unsigned) atoi(argv[2]) / n_pairs;
        sides = calloc(2 * n_pairs, sizeof(*sides));
        CHECK(sides);
        own_network();
        gate_init(&start_gate);
        gate_init(&end_gate);

        for (unsigned i = 0; i < 2 * n_pairs; i++) {
                Side *s = &sides[i];

                while (i % 2 == 0 && !CPU_ISSET((size_t) ++cpu, &set))
                        ;
                s->cpu = cpu;
                s->is_client = i % 2;
                s->ends = calloc(per_pair, sizeof(*s->ends));
                CHECK(s->ends);
                if (s->is_client)
                        s->address = sides[i - 1].address;
                else {
                        s->address = loopback(AF_INET);
                        s->listener = bound_socket(SOCK_STREAM, &s->address);
                        CHECK(listen(s->listener, 8) == 0);
                }
        }
        for (unsigned i = 0; i < 2 * n_pairs; i++)
                sides[i].thread = start_thread(run_side, &sides[i]);

        ready();
        start_ns = now_ns();
        gate_open(&start_gate, 2 * n_pairs);
        while (__atomic_load_n(&finished, __ATOMIC_ACQUIRE) < 2 * n_pairs)
                sleep_ns(10 * MSEC);
        end_ns = now_ns();
        write_ends(argv[3], sides);

        printf("{\"connections\":%u,\"played_ns\":%llu,\"threads\":[", per_pair * n_pairs,
                        (unsigned long long) (end_ns - start_ns));
        for (unsigned i = 0; i < 2 * n_pairs; i++)
                printf("%s{\"tid\":%d,\"reads\":%ld,\"accepts\":%ld,\"connects\":%ld}", i ? "," : "",
                                (int) sides[i].tid, sides[i].reads, sides[i].accepts, sides[i].connects);
        printf("]}");
        finish();
        gate_open(&end_gate, 2 * n_pairs);
        for (unsigned i = 0; i < 2 * n_pairs; i++)
                join_thread(sides[i].thread);
        return EXIT_SUCCESS;
}
