/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Threads that live for milliseconds: 500 of them, ten at a time, each sleeps for 2 ms and exits. */
#include "workload.h"

#define N_THREADS 500
#define AT_A_TIME 10
#define SLEEP_NS (2 * MSEC)

typedef struct Brief {
        pid_t tid;
        uint64_t slept_ns; /* with the run queue after it */
        uint64_t start_ns, end_ns;
} Brief;

static void *run_brief(void *argument) {
        Brief *b = argument;

        name_thread("brief");
        b->tid = thread_id();
        b->start_ns = now_ns();
        uint64_t start_ns = now_ns();
        sleep_ns(SLEEP_NS);
        b->end_ns = now_ns();
        b->slept_ns = b->end_ns - start_ns;
        return NULL;
}

int main(void) {
        static Brief all[N_THREADS];
        pthread_t threads[AT_A_TIME];

        ready();
        for (size_t i = 0; i < N_THREADS; i += AT_A_TIME) {
                for (size_t j = 0; j < AT_A_TIME; j++)
                        threads[j] = start_thread(run_brief, &all[i + j]);
                for (size_t j = 0; j < AT_A_TIME; j++)
                        join_thread(threads[j]);
        }
        printf("{\"threads\":[");
        for (size_t i = 0; i < N_THREADS; i++)
                printf("%s{\"tid\":%d,\"slept_ns\":%llu,\"lived_ns\":%llu}", i ? "," : "", all[i].tid,
                                (unsigned long long) all[i].slept_ns,
                                (unsigned long long) (all[i].end_ns - all[i].start_ns));
        printf("]}");
        finish();
        return EXIT_SUCCESS;
}
