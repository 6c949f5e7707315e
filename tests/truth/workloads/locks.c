/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Locks of files between two processes: by flock(), by fcntl(), by fcntl() for open files. The child has the lock, its
 * parent's thread waits for it. */
#include "pair.h"

#include <sys/file.h>

#define N_ROUNDS 40
#define ROUND_NS (10 * MSEC)

static void lock_by(unsigned long how, int fd, bool lock) {
        struct flock whole = { .l_type = lock ? F_WRLCK : F_UNLCK, .l_whence = SEEK_SET };

        if (how == LOCK_EX)
                CHECK(flock(fd, lock ? LOCK_EX : LOCK_UN) == 0);
        else
                CHECK(fcntl(fd, (int) how, &whole) == 0);
}

static void open_file(Pair *p) {
        p->path = full_path(p->path);
        p->fds[0] = open(p->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        CHECK(p->fds[0] >= 0);
        p->inodes[0] = inode_of(p->fds[0]);
}

static void take(Pair *p) {
        lock_by(p->number, p->fds[1], true);
}

static void let_go(Pair *p) {
        lock_by(p->number, p->fds[1], false);
}

static void wait_for_lock(Pair *p) {
        lock_by(p->number, p->fds[0], true);
}

static void unlock_own(Pair *p) {
        lock_by(p->number, p->fds[0], false);
}

#define LOCK                                                                                             \
        .prepare = take, .wait = wait_for_lock, .wake = let_go, .after = unlock_own, .rounds = N_ROUNDS, \
        .wait_ns = ROUND_NS

static const Pair scenarios[] = {
        { .name = "flock", .path = "flock", .number = LOCK_EX, LOCK },
        { .name = "fcntl", .path = "fcntl", .number = F_SETLKW, LOCK },
        { .name = "fcntl-ofd", .path = "fcntl-ofd", .number = F_OFD_SETLKW, LOCK },
};

int main(void) {
        Pair *pairs = shared_memory(sizeof(scenarios));
        Gate *gate = shared_memory(sizeof(*gate));
        size_t n = ELEMENTSOF(scenarios);
        pid_t children[ELEMENTSOF(scenarios)];

        memcpy(pairs, scenarios, sizeof(scenarios));
        gate_init(gate);
        for (size_t i = 0; i < n; i++) {
                Pair *p = &pairs[i];

                p->gate = gate;
                open_file(p);
                children[i] = fork();
                CHECK(children[i] >= 0);
                if (children[i] == 0) {
                        p->fds[1] = open(p->path, O_RDWR | O_CLOEXEC);
                        CHECK(p->fds[1] >= 0);
                        pair_waker(p);
                        _exit(EXIT_SUCCESS);
                }
        }
        for (size_t i = 0; i < n; i++)
                pairs[i].threads[0] = start_thread(pair_waiter, &pairs[i]);
        ready();
        gate_open(gate, 2 * n);
        for (size_t i = 0; i < n; i++) {
                join_thread(pairs[i].threads[0]);
                CHECK(waitpid(children[i], NULL, 0) == children[i]);
                printf("%c\"%s\":{", i == 0 ? '{' : ',', pairs[i].name);
                print_pair(&pairs[i]);
                putchar('}');
        }
        putchar('}');
        finish();
        return EXIT_SUCCESS;
}
