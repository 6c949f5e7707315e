/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Native asynchronous IO on a slow disk: reads past the cache of a file in the working directory, several at a time, and
 * the wait until all of them are done. */
#include "pair.h"

#include <linux/aio_abi.h>

#define N_ROUNDS 30
#define N_REQUESTS 3
#define BLOCK 4096

static void set_up_reader(Pair *p) {
        size_t size = (size_t) p->rounds * N_REQUESTS * BLOCK;
        aio_context_t context = 0;

        p->path = full_path(p->path);
        p->fds[0] = open(p->path, O_RDWR | O_CREAT | O_DIRECT | O_CLOEXEC, 0600);
        CHECK(p->fds[0] >= 0);
        char *zeros = aligned_alloc(BLOCK, size);
        CHECK(zeros);
        memset(zeros, 0, size);
        CHECK(write(p->fds[0], zeros, size) == (ssize_t) size && fsync(p->fds[0]) == 0);
        p->data = zeros;
        p->inodes[0] = inode_of(p->fds[0]);
        CHECK(syscall(SYS_io_setup, 16, &context) == 0);
        p->number = context;
}

/* The clock starts when the requests have been handed over. */
static void submit_and_wait(Pair *p) {
        struct iocb requests[N_REQUESTS] = { 0 }, *list[N_REQUESTS];
        struct io_event events[N_REQUESTS];

        for (unsigned i = 0; i < N_REQUESTS; i++) {
                size_t place = ((size_t) p->tally.count * N_REQUESTS + i) * BLOCK;

                requests[i] = (struct iocb){
                        .aio_lio_opcode = IOCB_CMD_PREAD,
                        .aio_fildes = (uint32_t) p->fds[0],
                        .aio_buf = (uintptr_t) p->data + place,
                        .aio_nbytes = BLOCK,
                        .aio_offset = (int64_t) place,
                };
                list[i] = &requests[i];
        }
        CHECK(syscall(SYS_io_submit, p->number, N_REQUESTS, list) == N_REQUESTS);
        p->start_ns = now_ns();
        CHECK(syscall(SYS_io_getevents, p->number, N_REQUESTS, N_REQUESTS, events, NULL) == N_REQUESTS);
        for (unsigned i = 0; i < N_REQUESTS; i++)
                CHECK(events[i].res == BLOCK);
}

static Pair pairs[] = {
        { .name = "aio-reader", .path = "aio", .set_up = set_up_reader, .wait = submit_and_wait, .rounds = N_ROUNDS },
};

int main(void) {
        pairs_play(pairs, ELEMENTSOF(pairs));
        finish();
        return EXIT_SUCCESS;
}
