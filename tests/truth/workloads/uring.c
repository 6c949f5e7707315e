/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* io_uring: a thread submits a read of an empty pipe beside two requests that do nothing, and waits until all three are
 * complete, which is when another thread writes to the pipe. Says so when this kernel refuses io_uring. */
#include "pair.h"

#include <linux/io_uring.h>

#define N_ROUNDS 40
#define ROUND_NS (10 * MSEC)
#define N_ENTRIES 8
#define N_REQUESTS 3

typedef struct Ring {
        _Atomic uint32_t *submit_tail, *complete_head, *complete_tail;
        uint32_t submit_mask, *submit_array, complete_mask;
        struct io_uring_sqe *submissions;
        struct io_uring_cqe *completions;
        uint64_t word;
} Ring;

static void *map_ring(int fd, size_t size, off_t what) {
        void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, what);

        CHECK(p != MAP_FAILED);
        return p;
}

static void set_up_ring(Pair *p) {
        struct io_uring_params params = { 0 };
        Ring *r = calloc(1, sizeof(*r));
        int fd = (int) syscall(SYS_io_uring_setup, N_ENTRIES, &params);

        CHECK(r && fd >= 0);
        char *submit = map_ring(fd, params.sq_off.array + params.sq_entries * sizeof(uint32_t), IORING_OFF_SQ_RING);
        char *complete = map_ring(
                        fd, params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe), IORING_OFF_CQ_RING);
        r->submit_tail = (_Atomic uint32_t *) (void *) (submit + params.sq_off.tail);
        r->submit_mask = *(uint32_t *) (void *) (submit + params.sq_off.ring_mask);
        r->submit_array = (uint32_t *) (void *) (submit + params.sq_off.array);
        r->complete_head = (_Atomic uint32_t *) (void *) (complete + params.cq_off.head);
        r->complete_tail = (_Atomic uint32_t *) (void *) (complete + params.cq_off.tail);
        r->complete_mask = *(uint32_t *) (void *) (complete + params.cq_off.ring_mask);
        r->completions = (struct io_uring_cqe *) (void *) (complete + params.cq_off.cqes);
        r->submissions = map_ring(fd, params.sq_entries * sizeof(struct io_uring_sqe), IORING_OFF_SQES);
        p->data = r;
        p->number = (unsigned long) fd;
        p->inodes[0] = inode_of(fd);
        CHECK(pipe2(p->fds, O_CLOEXEC) == 0);
}

static void submit(Ring *r, struct io_uring_sqe request) {
        uint32_t tail = *r->submit_tail;

        r->submissions[tail & r->submit_mask] = request;
        r->submit_array[tail & r->submit_mask] = tail & r->submit_mask;
        *r->submit_tail = tail + 1;
}

static void submit_and_wait(Pair *p) {
        Ring *r = p->data;

        for (unsigned i = 1; i < N_REQUESTS; i++)
                submit(r, (struct io_uring_sqe){ .opcode = IORING_OP_NOP });
        submit(r,
                        (struct io_uring_sqe){
                                        .opcode = IORING_OP_READ,
                                        .fd = p->fds[0],
                                        .addr = (uintptr_t) &r->word,
                                        .len = sizeof(r->word),
                                        .user_data = 1,
                        });
        CHECK(syscall(SYS_io_uring_enter, (int) p->number, N_REQUESTS, N_REQUESTS, IORING_ENTER_GETEVENTS, NULL, 0) ==
                        N_REQUESTS);
        for (unsigned i = 0; i < N_REQUESTS; i++) {
                CHECK(*r->complete_head != *r->complete_tail);
                struct io_uring_cqe done = r->completions[*r->complete_head & r->complete_mask];
                CHECK(done.res == (done.user_data ? (int) sizeof(r->word) : 0));
                *r->complete_head = *r->complete_head + 1;
        }
}

static void write_word(Pair *p) {
        uint64_t word = 1;

        CHECK(write(p->fds[1], &word, sizeof(word)) == sizeof(word));
}

static Pair pairs[] = {
        { .name = "ring",
                        .set_up = set_up_ring,
                        .wait = submit_and_wait,
                        .wake = write_word,
                        .rounds = N_ROUNDS,
                        .wait_ns = ROUND_NS },
};

int main(void) {
        struct io_uring_params params = { 0 };
        int fd = (int) syscall(SYS_io_uring_setup, N_ENTRIES, &params);

        if (fd < 0) {
                const char *reason = strerror(errno);

                ready();
                printf("{\"refused\":\"%s\"}", reason);
        } else {
                close(fd);
                pairs_play(pairs, ELEMENTSOF(pairs));
        }
        finish();
        return EXIT_SUCCESS;
}
