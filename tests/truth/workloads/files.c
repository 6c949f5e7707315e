/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* files PATH: a thread that writes a block to a file and calls fsync(), many times. All of its time that is neither on
 * the CPU nor in the run queue is waiting, nearly all of that uninterruptible. */
#include "workload.h"

#define N_ROUNDS 800
#define BLOCK_BYTES 4096

typedef struct Writer {
        const char *path;
        Gate gate;
        pid_t tid;
        uint64_t waited_ns;
} Writer;

static void *run_writer(void *argument) {
        Writer *w = argument;
        char block[BLOCK_BYTES] = { 1 };
        int fd = open(w->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        CHECK(fd >= 0);
        name_thread("writer");
        w->tid = thread_id();
        gate_pass(&w->gate);
        Schedstat before = schedstat();
        uint64_t start_ns = now_ns();
        for (unsigned i = 0; i < N_ROUNDS; i++) {
                CHECK(write(fd, block, sizeof(block)) == sizeof(block));
                CHECK(fsync(fd) == 0);
        }
        uint64_t elapsed_ns = now_ns() - start_ns;
        Schedstat after = schedstat();
        w->waited_ns = elapsed_ns - (after.run_ns - before.run_ns) - (after.runqueue_ns - before.runqueue_ns);
        close(fd);
        return NULL;
}

int main(int argc, char *argv[]) {
        CHECK(argc == 2);
        Writer writer = { .path = argv[1] };

        gate_init(&writer.gate);
        pthread_t thread = start_thread(run_writer, &writer);
        ready();
        gate_open(&writer.gate, 1);
        join_thread(thread);
        CHECK(unlink(writer.path) == 0);
        printf("{\"tid\":%d,\"waited_ns\":%llu}", writer.tid, (unsigned long long) writer.waited_ns);
        finish();
        return EXIT_SUCCESS;
}
