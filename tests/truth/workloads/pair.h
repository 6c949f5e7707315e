/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Two threads, or two processes: one waits, the other one ends the wait at a moment that it notes. They keep step by
 * futexes; the pair's memory may be shared between processes. */
#pragma once

#include "workload.h"

#include <sys/stat.h>

#define PAIR_FILES 4
#define PAIR_NOTES 128
#define PAIR_LONG_NS MSEC

typedef struct Pair Pair;
struct Pair {
        const char *name;        /* of the waiter, at most 15 bytes; the other one is called NAME-end, cut to fit */
        void (*set_up)(Pair *);  /* before recording begins, may be NULL */
        void (*prepare)(Pair *); /* by the waker, before the waiter starts to wait, may be NULL */
        void (*wait)(Pair *);
        void (*wake)(Pair *);  /* NULL: nobody, the wait ends by itself */
        void (*after)(Pair *); /* by the waiter, after its wait, may be NULL */
        unsigned rounds;
        uint64_t wait_ns;

        int fds[2 * PAIR_FILES];
        const char *path; /* this, the number and the pointer are for the scenario's own use */
        unsigned long number;
        void *data;

        unsigned chosen; /* which of its files ends the wait of this round, set by the waker in prepare() */
        const char *kinds[PAIR_FILES];
        Tally by_file[PAIR_FILES];
        ino_t inodes[PAIR_FILES]; /* of the files waited for */
        ino_t noted[PAIR_NOTES];  /* inodes, where a file is waited for only once; see pair_note() */
        unsigned n_noted;

        unsigned round;
        atomic_uint prepared, waiting, done; /* rounds; futexes */
        _Atomic uint64_t start_ns, woken_ns;
        Gate *gate;
        pthread_t threads[2];
        pid_t waiter, waker;
        Tally tally;
        unsigned n_long; /* of its waits: above PAIR_LONG_NS, so long that it has left the CPU */
        Schedstat used;  /* by the waiter during its rounds */
};

static inline ino_t inode_of(int fd) {
        struct stat st;

        CHECK(fstat(fd, &st) == 0);
        return st.st_ino;
}

static inline void pair_note(Pair *p, int fd) {
        CHECK(p->n_noted < PAIR_NOTES);
        p->noted[p->n_noted++] = inode_of(fd);
}

/* Of a file in the working directory; never freed. */
static inline char *full_path(const char *name) {
        char *directory = get_current_dir_name(), *path = NULL;

        CHECK(directory);
        CHECK(asprintf(&path, "%s/%s", directory, name) > 0);
        free(directory);
        return path;
}

static inline void pair_await(atomic_uint *progress, unsigned round) {
        unsigned reached;

        while ((reached = *progress) < round)
                CHECK(futex(progress, FUTEX_WAIT, reached, NULL, NULL, 0) == 0 || errno == EAGAIN || errno == EINTR);
}

static inline void pair_reach(atomic_uint *progress, unsigned round) {
        *progress = round;
        CHECK(futex(progress, FUTEX_WAKE, 1, NULL, NULL, 0) >= 0);
}

static inline void *pair_waiter(void *argument) {
        Pair *p = argument;

        name_thread(p->name);
        p->waiter = thread_id();
        gate_pass(p->gate);
        Schedstat before = schedstat();
        for (unsigned i = 1; i <= p->rounds; i++) {
                if (p->wake)
                        pair_await(&p->prepared, i);
                pair_reach(&p->waiting, i);
                p->start_ns = now_ns();
                p->wait(p);
                uint64_t end_ns = p->wake ? p->woken_ns : now_ns();
                tally_add(&p->tally, end_ns - p->start_ns);
                p->n_long += end_ns - p->start_ns > PAIR_LONG_NS;
                tally_add(&p->by_file[p->chosen], end_ns - p->start_ns);
                if (p->after)
                        p->after(p);
                pair_reach(&p->done, i);
        }
        Schedstat after = schedstat();
        p->used = (Schedstat){ after.run_ns - before.run_ns, after.runqueue_ns - before.runqueue_ns };
        return NULL;
}

static inline void *pair_waker(void *argument) {
        Pair *p = argument;
        char name[16];

        snprintf(name, sizeof(name), "%.11s-end", p->name);
        name_thread(name);
        p->waker = thread_id();
        gate_pass(p->gate);
        for (unsigned i = 1; i <= p->rounds; i++) {
                pair_await(&p->done, i - 1);
                p->round = i - 1;
                if (p->prepare)
                        p->prepare(p);
                pair_reach(&p->prepared, i);
                pair_await(&p->waiting, i);
                sleep_ns(p->wait_ns);
                p->woken_ns = now_ns();
                p->wake(p);
        }
        return NULL;
}

/* Members of a JSON object, for use between braces. */
static inline void print_pair(const Pair *p) {
        printf("\"tid\":%d,\"waker\":%d,\"long\":%u,\"run_ns\":%llu,\"runqueue_ns\":%llu,\"inode\":%llu,", p->waiter,
                        p->waker, p->n_long, (unsigned long long) p->used.run_ns,
                        (unsigned long long) p->used.runqueue_ns, (unsigned long long) p->inodes[0]);
        print_tally(&p->tally);
        if (p->n_noted > 0) {
                printf(",\"inodes\":[");
                for (unsigned i = 0; i < p->n_noted; i++)
                        printf("%s%llu", i > 0 ? "," : "", (unsigned long long) p->noted[i]);
                putchar(']');
        }
        if (p->path && p->path[0] == '/')
                printf(",\"path\":\"%s\"", p->path);
        if (!p->kinds[0])
                return;
        printf(",\"files\":[");
        for (unsigned i = 0; i < PAIR_FILES && p->kinds[i]; i++) {
                printf("%s{\"kind\":\"%s\",\"inode\":%llu,", i > 0 ? "," : "", p->kinds[i],
                                (unsigned long long) p->inodes[i]);
                print_tally(&p->by_file[i]);
                putchar('}');
        }
        putchar(']');
}

/* Before ready(). */
static inline void pairs_start(Pair *pairs, size_t n) {
        Gate *gate = malloc(sizeof(*gate));

        CHECK(gate);
        gate_init(gate);
        for (size_t i = 0; i < n; i++) {
                Pair *p = &pairs[i];

                if (p->set_up)
                        p->set_up(p);
                p->gate = gate;
                p->threads[0] = start_thread(pair_waiter, p);
                if (p->wake)
                        p->threads[1] = start_thread(pair_waker, p);
        }
}

static inline void pairs_go(Pair *pairs, size_t n) {
        for (size_t i = 0; i < n; i++)
                gate_open(pairs[i].gate, pairs[i].wake ? 2 : 1);
}

static inline void pairs_join(Pair *pairs, size_t n) {
        for (size_t i = 0; i < n; i++) {
                join_thread(pairs[i].threads[0]);
                if (pairs[i].wake)
                        join_thread(pairs[i].threads[1]);
        }
}

/* One JSON object: what each pair waited for, by its name. */
static inline void pairs_play(Pair *pairs, size_t n) {
        pairs_start(pairs, n);
        ready();
        pairs_go(pairs, n);
        pairs_join(pairs, n);
        for (size_t i = 0; i < n; i++) {
                printf("%c\"%s\":{", i == 0 ? '{' : ',', pairs[i].name);
                print_pair(&pairs[i]);
                putchar('}');
        }
        putchar('}');
}
