/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* memory FILE MEBIBYTES: a thread that writes a file, whose pages count against the limit of its group. */
#include "workload.h"

#include <fcntl.h>

typedef struct Writer {
        Gate gate;
        int fd;
        unsigned mebibytes;
        uint64_t elapsed_ns;
        pid_t tid;
} Writer;

static void *run_writer(void *argument) {
        static char block[1 << 16];
        Writer *w = argument;

        name_thread("writer");
        w->tid = thread_id();
        gate_pass(&w->gate);
        uint64_t start_ns = now_ns();
        for (unsigned i = 0; i < w->mebibytes * 16; i++)
                CHECK(write(w->fd, block, sizeof(block)) == sizeof(block));
        w->elapsed_ns = now_ns() - start_ns;
        return NULL;
}

int main(int argc, char *argv[]) {
        CHECK(argc == 3);
        Writer w = { .mebibytes = (unsigned) atoi(argv[2]) };

        w.fd = open(argv[1], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        CHECK(w.fd >= 0);
        gate_init(&w.gate);
        pthread_t thread = start_thread(run_writer, &w);
        ready();
        gate_open(&w.gate, 1);
        join_thread(thread);
        printf("{\"tid\":%d,\"elapsed_ns\":%llu}", w.tid, (unsigned long long) w.elapsed_ns);
        finish();
        return EXIT_SUCCESS;
}
