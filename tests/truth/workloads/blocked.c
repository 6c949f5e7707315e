/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Threads that fall asleep before anybody looks and sleep through all of the scenario: on a futex, in a pipe, for time.
 * One more does nothing but run through all of it, and one renames itself in the middle. */
#include "workload.h"

#define LENGTH_NS (2500 * MSEC)

typedef struct Scenario {
        Gate never, rename;
        uint32_t word;
        pid_t futex, pipe, timer, runner, renamed;
        _Atomic uint64_t end_ns;
        atomic_bool go;
        uint64_t run_ns;
} Scenario;

static void *block_on_futex(void *argument) {
        Scenario *s = argument;

        name_thread("on-futex");
        s->futex = thread_id();
        for (;;)
                futex(&s->word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
        return NULL;
}

static void *block_in_pipe(void *argument) {
        Scenario *s = argument;

        name_thread("in-pipe");
        s->pipe = thread_id();
        gate_pass(&s->never);
        return NULL;
}

static void *block_for_time(void *argument) {
        Scenario *s = argument;

        name_thread("for-time");
        s->timer = thread_id();
        sleep_ns(3600 * SEC);
        return NULL;
}

static void *run_through(void *argument) {
        Scenario *s = argument;

        name_thread("runner");
        s->runner = thread_id();
        gate_pass(&s->rename);
        uint64_t before_ns = thread_cpu_ns();
        spin_until(s->end_ns);
        s->run_ns = thread_cpu_ns() - before_ns;
        return NULL;
}

static void *rename_itself(void *argument) {
        Scenario *s = argument;

        name_thread("name-before");
        s->renamed = thread_id();
        gate_pass(&s->rename);
        sleep_ns(LENGTH_NS / 2);
        name_thread("name-after");
        sleep_ns(LENGTH_NS / 4);
        return NULL;
}

int main(void) {
        static Scenario s;

        gate_init(&s.never);
        gate_init(&s.rename);
        start_thread(block_on_futex, &s);
        start_thread(block_in_pipe, &s);
        start_thread(block_for_time, &s);
        pthread_t runner = start_thread(run_through, &s);
        pthread_t renamed = start_thread(rename_itself, &s);
        sleep_ns(50 * MSEC);

        ready();
        s.end_ns = now_ns() + LENGTH_NS;
        gate_open(&s.rename, 2);
        join_thread(runner);
        join_thread(renamed);
        printf("{\"futex\":%d,\"address\":%llu,\"pipe\":%d,\"timer\":%d,\"runner\":%d,\"run_ns\":%llu,\"renamed\":%d}",
                        s.futex, (unsigned long long) (uintptr_t) &s.word, s.pipe, s.timer, s.runner,
                        (unsigned long long) s.run_ns, s.renamed);
        finish();
        return EXIT_SUCCESS;
}
