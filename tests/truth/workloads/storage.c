/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Waits for a disk that the driver has made slow, each thread on a file of its own in the working directory: fsync() and
 * the like, reads and writes past the cache, reads of what is not in it. Times are those of the calls, so they have the
 * thread's run queue in them. */
#include "pair.h"

#define N_ROUNDS 24
#define BLOCK 4096
#define STRIDE (16 * BLOCK) /* far enough apart that no read serves two */

static void make_contents(Pair *p) {
        size_t size = (size_t) p->rounds * STRIDE;
        char *zeros = calloc(1, size);

        CHECK(zeros);
        p->path = full_path(p->path);
        p->fds[0] = open(p->path, O_RDWR | O_CREAT | O_CLOEXEC | (int) p->number, 0600);
        int fd = open(p->path, O_WRONLY | O_CLOEXEC);
        CHECK(p->fds[0] >= 0 && fd >= 0);
        CHECK(write(fd, zeros, size) == (ssize_t) size && fsync(fd) == 0);
        CHECK(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0);
        CHECK(posix_fadvise(p->fds[0], 0, 0, POSIX_FADV_RANDOM) == 0);
        close(fd);
        free(zeros);
        p->inodes[0] = inode_of(p->fds[0]);
        p->data = aligned_alloc(BLOCK, BLOCK);
        CHECK(p->data);
        memset(p->data, 1, BLOCK);
}

static off_t next_place(Pair *p) {
        return (off_t) p->tally.count * STRIDE;
}

/* What is to be written is there when the clock starts. */
static void dirty(Pair *p) {
        CHECK(pwrite(p->fds[0], p->data, BLOCK, next_place(p)) == BLOCK);
        p->start_ns = now_ns();
}

static void by_fsync(Pair *p) {
        dirty(p);
        CHECK(fsync(p->fds[0]) == 0);
}

static void by_fdatasync(Pair *p) {
        dirty(p);
        CHECK(fdatasync(p->fds[0]) == 0);
}

static void by_range(Pair *p) {
        dirty(p);
        CHECK(sync_file_range(p->fds[0], next_place(p), BLOCK,
                              SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER) == 0);
}

static void by_read(Pair *p) {
        CHECK(pread(p->fds[0], p->data, BLOCK, next_place(p)) == BLOCK);
}

static void by_write(Pair *p) {
        CHECK(pwrite(p->fds[0], p->data, BLOCK, next_place(p)) == BLOCK);
}

static Pair pairs[] = {
        { .name = "fsync", .path = "fsync", .set_up = make_contents, .wait = by_fsync, .rounds = N_ROUNDS },
        { .name = "fdatasync", .path = "fdatasync", .set_up = make_contents, .wait = by_fdatasync, .rounds = N_ROUNDS },
        { .name = "sync-range", .path = "sync-range", .set_up = make_contents, .wait = by_range, .rounds = N_ROUNDS },
        { .name = "direct-read",
                        .path = "direct-read",
                        .number = O_DIRECT,
                        .set_up = make_contents,
                        .wait = by_read,
                        .rounds = N_ROUNDS },
        { .name = "direct-write",
                        .path = "direct-write",
                        .number = O_DIRECT,
                        .set_up = make_contents,
                        .wait = by_write,
                        .rounds = N_ROUNDS },
        { .name = "cold-read", .path = "cold-read", .set_up = make_contents, .wait = by_read, .rounds = N_ROUNDS },
};

int main(void) {
        pairs_play(pairs, ELEMENTSOF(pairs));
        finish();
        return EXIT_SUCCESS;
}
