/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Ten thousand short-lived connections, pipes and files with a few descriptors and inodes between them. Each hundredth
 * is waited for a known time; the others are hardly waited for, and none of them is any of the former. */
#include "address.h"
#include "pair.h"

#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>

#define N_ROUNDS 10000
#define EACH 100
#define LONG_NS (10 * MSEC)
#define SHORT_NS (MSEC / 2) /* a pace of about a thousand a second */

/* by_file[1] counts the long ones. */
static bool choose(Pair *p) {
        p->chosen = p->round % EACH == EACH / 2;
        p->wait_ns = p->chosen ? LONG_NS : SHORT_NS;
        return p->chosen;
}

static void read_byte(Pair *p) {
        char byte;

        CHECK(read(p->fds[0], &byte, 1) == 1);
}

static void write_byte(Pair *p) {
        CHECK(write(p->fds[1], "x", 1) == 1);
}

static void close_both(Pair *p) {
        close(p->fds[0]);
        close(p->fds[1]);
}

static void new_pipe(Pair *p) {
        CHECK(pipe2(p->fds, O_CLOEXEC) == 0);
        if (choose(p))
                pair_note(p, p->fds[0]);
}

static void set_up_listener(Pair *p) {
        Address *a = malloc(sizeof(*a));

        CHECK(a);
        *a = loopback(AF_INET);
        p->fds[2] = bound_socket(SOCK_STREAM, a);
        CHECK(listen(p->fds[2], 8) == 0);
        p->data = a;
}

static void new_connection(Pair *p) {
        struct linger at_once = { .l_onoff = 1 }; /* its port is free again when it is closed */

        p->fds[0] = connected_socket(SOCK_STREAM, p->data);
        p->fds[1] = accepted_socket(p->fds[2]);
        CHECK(setsockopt(p->fds[0], SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)) == 0);
        if (choose(p))
                pair_note(p, p->fds[0]);
}

/* A file system gives the inode number of a removed file to the next one; what tells them apart is the generation. */
static void new_file(Pair *p) {
        int generation = 0;

        p->fds[0] = open("recycled", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        p->fds[1] = open("recycled", O_RDWR | O_CLOEXEC);
        CHECK(p->fds[0] >= 0 && p->fds[1] >= 0);
        CHECK(flock(p->fds[1], LOCK_EX) == 0);
        CHECK(ioctl(p->fds[0], FS_IOC_GETVERSION, &generation) == 0);
        if (choose(p)) {
                pair_note(p, p->fds[0]);
                ((uint32_t *) p->data)[p->n_noted - 1] = (uint32_t) generation;
        }
}

static void set_up_file(Pair *p) {
        p->data = calloc(PAIR_NOTES, sizeof(uint32_t));
        CHECK(p->data);
}

static void wait_lock(Pair *p) {
        CHECK(flock(p->fds[0], LOCK_EX) == 0);
}

static void unlock(Pair *p) {
        CHECK(flock(p->fds[1], LOCK_UN) == 0);
}

static void remove_file(Pair *p) {
        CHECK(unlink("recycled") == 0);
        close_both(p);
}

static Pair pairs[] = {
        { .name = "connections",
                        .set_up = set_up_listener,
                        .prepare = new_connection,
                        .wait = read_byte,
                        .wake = write_byte,
                        .after = close_both,
                        .rounds = N_ROUNDS },
        { .name = "pipes",
                        .prepare = new_pipe,
                        .wait = read_byte,
                        .wake = write_byte,
                        .after = close_both,
                        .rounds = N_ROUNDS },
        { .name = "files",
                        .set_up = set_up_file,
                        .prepare = new_file,
                        .wait = wait_lock,
                        .wake = unlock,
                        .after = remove_file,
                        .rounds = N_ROUNDS },
};

int main(void) {
        pairs_start(pairs, ELEMENTSOF(pairs));
        ready();
        pairs_go(pairs, ELEMENTSOF(pairs));
        pairs_join(pairs, ELEMENTSOF(pairs));
        for (size_t i = 0; i < ELEMENTSOF(pairs); i++) {
                printf("%c\"%s\":{\"long_ns\":%llu,\"long_count\":%u,", i == 0 ? '{' : ',', pairs[i].name,
                                (unsigned long long) pairs[i].by_file[1].total_ns, pairs[i].by_file[1].count);
                print_pair(&pairs[i]);
                putchar('}');
        }
        printf(",\"generations\":[");
        for (unsigned i = 0; i < pairs[2].n_noted; i++)
                printf("%s%u", i > 0 ? "," : "", ((const uint32_t *) pairs[2].data)[i]);
        printf("]}");
        finish();
        return EXIT_SUCCESS;
}
