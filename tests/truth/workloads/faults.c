/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Memory that is not there yet. "file": threads that touch, or have the kernel read, pages of a mapped file in the working
 * directory that are not in the cache. "locks": threads of one process that change the protection of large mappings, for
 * which each needs the lock of the process's memory alone. */
#include "pair.h"

#define N_ROUNDS 30
#define PAGE 4096
#define STRIDE (16 * PAGE)

#define N_CHANGERS 3
#define CHANGED_BYTES (32U << 20)
#define CHANGING_NS (700 * MSEC)
#define ALL_DONE_NS (200 * MSEC)

static void map_cold(Pair *p) {
        size_t size = (size_t) p->rounds * STRIDE;
        char *ones = malloc(size);

        CHECK(ones);
        memset(ones, 1, size);
        p->path = full_path(p->path);
        int fd = open(p->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        CHECK(fd >= 0 && write(fd, ones, size) == (ssize_t) size && fsync(fd) == 0);
        free(ones);
        CHECK(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0);
        p->inodes[0] = inode_of(fd);
        p->data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
        CHECK(p->data != MAP_FAILED && madvise(p->data, size, MADV_RANDOM) == 0);
        close(fd);
        CHECK(pipe2(p->fds, O_CLOEXEC) == 0);
}

static const char *next_page(Pair *p) {
        return (const char *) p->data + (size_t) p->tally.count * STRIDE;
}

static void touch(Pair *p) {
        CHECK(*(volatile const char *) next_page(p) == 1);
}

/* The fault happens inside the system call, and is no wait on the pipe. */
static void have_it_read(Pair *p) {
        CHECK(write(p->fds[1], next_page(p), PAGE) == PAGE);
}

static void drain(Pair *p) {
        char page[PAGE];

        CHECK(read(p->fds[0], page, PAGE) == PAGE);
}

static Pair pairs[] = {
        { .name = "touch", .path = "touched", .set_up = map_cold, .wait = touch, .rounds = N_ROUNDS },
        { .name = "in-a-call",
                        .path = "written",
                        .set_up = map_cold,
                        .wait = have_it_read,
                        .after = drain,
                        .rounds = N_ROUNDS },
};

typedef struct Changer {
        Gate *gate, *prepared;
        pid_t tid;
        unsigned count;
        uint64_t elapsed_ns;
        Schedstat used;
} Changer;

static void *run_changer(void *argument) {
        Changer *c = argument;
        char *memory = mmap(NULL, CHANGED_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        CHECK(memory != MAP_FAILED && madvise(memory, CHANGED_BYTES, MADV_NOHUGEPAGE) == 0);
        for (size_t i = 0; i < CHANGED_BYTES; i += PAGE)
                memory[i] = 1;
        name_thread("changer");
        c->tid = thread_id();
        (void) schedstat(); /* has what memory it needs from now on */
        gate_open(c->prepared, 1);
        gate_pass(c->gate);
        Schedstat before = schedstat();
        uint64_t start_ns = now_ns();
        for (; now_ns() < start_ns + CHANGING_NS; c->count++)
                CHECK(mprotect(memory, CHANGED_BYTES, c->count % 2 ? PROT_READ | PROT_WRITE : PROT_READ) == 0);
        c->elapsed_ns = now_ns() - start_ns;
        sleep_ns(ALL_DONE_NS); /* reading its account may need memory, too: when nobody fights for it any more */
        Schedstat after = schedstat();
        c->used = (Schedstat){ after.run_ns - before.run_ns, after.runqueue_ns - before.runqueue_ns };
        return NULL;
}

static void play_locks(void) {
        Changer changers[N_CHANGERS] = { 0 };
        pthread_t threads[N_CHANGERS];
        Gate gate, prepared;

        gate_init(&gate);
        gate_init(&prepared);
        for (size_t i = 0; i < N_CHANGERS; i++) {
                changers[i].gate = &gate;
                changers[i].prepared = &prepared;
                threads[i] = start_thread(run_changer, &changers[i]);
        }
        for (size_t i = 0; i < N_CHANGERS; i++)
                gate_pass(&prepared);
        ready();
        gate_open(&gate, N_CHANGERS);
        printf("{\"changers\":[");
        for (size_t i = 0; i < N_CHANGERS; i++) {
                const Changer *c = &changers[i];

                join_thread(threads[i]);
                printf("%s{\"tid\":%d,\"count\":%u,\"run_ns\":%llu,\"runqueue_ns\":%llu,\"total_ns\":%llu}",
                                i > 0 ? "," : "", c->tid, c->count, (unsigned long long) c->used.run_ns,
                                (unsigned long long) c->used.runqueue_ns, (unsigned long long) c->elapsed_ns);
        }
        printf("]}");
}

int main(int argc, char *argv[]) {
        CHECK(argc == 2);
        if (strcmp(argv[1], "locks") == 0)
                play_locks();
        else
                pairs_play(pairs, ELEMENTSOF(pairs));
        finish();
        return EXIT_SUCCESS;
}
