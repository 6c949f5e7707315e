/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* spin MILLISECONDS: a thread that does nothing but run, for so long by the clock. */
#include "workload.h"

typedef struct Spinner {
        Gate gate;
        uint64_t length_ns, elapsed_ns, run_ns;
        pid_t tid;
} Spinner;

static void *run_spinner(void *argument) {
        Spinner *s = argument;

        name_thread("spinner");
        s->tid = thread_id();
        gate_pass(&s->gate);
        uint64_t start_ns = now_ns();
        s->run_ns = thread_cpu_ns();
        spin_until(start_ns + s->length_ns);
        s->run_ns = thread_cpu_ns() - s->run_ns;
        s->elapsed_ns = now_ns() - start_ns;
        return NULL;
}

int main(int argc, char *argv[]) {
        CHECK(argc == 2);
        Spinner s = { .length_ns = (uint64_t) atoi(argv[1]) * MSEC };

        gate_init(&s.gate);
        pthread_t thread = start_thread(run_spinner, &s);
        ready();
        gate_open(&s.gate, 1);
        join_thread(thread);
        printf("{\"tid\":%d,\"run_ns\":%llu,\"elapsed_ns\":%llu}", s.tid, (unsigned long long) s.run_ns,
                        (unsigned long long) s.elapsed_ns);
        finish();
        return EXIT_SUCCESS;
}
