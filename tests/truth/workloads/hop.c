/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A thread that runs without a pause and moves to the other CPU every millisecond. Two others, of the idle class, keep both
 * CPUs awake: where a thread comes to an idle CPU, the kernel counts the time that it takes to wake that CPU up as CPU time of
 * the thread (enqueuing it updates the clock, and the switch then skips that), which on virtual machines is 20 to 80 us each. */
#include "workload.h"

#define LENGTH_NS (2000 * MSEC)
#define STAY_NS MSEC

typedef struct Hopper {
        Gate gate;
        pid_t tid;
        uint64_t run_ns, elapsed_ns;
        uint64_t runqueue_ns;
        unsigned hops;
} Hopper;

static atomic_bool done;

static void *keep_awake(void *argument) {
        struct sched_param parameters = { 0 };

        name_thread("awake");
        pin(0, *(int *) argument);
        CHECK(sched_setscheduler(0, SCHED_IDLE, &parameters) == 0);
        while (!done)
                ;
        return NULL;
}

static void *run_hopper(void *argument) {
        Hopper *h = argument;

        name_thread("hopper");
        h->tid = thread_id();
        gate_pass(&h->gate);
        Schedstat before = schedstat();
        uint64_t start_ns = now_ns(), start_cpu_ns = thread_cpu_ns();
        for (; now_ns() < start_ns + LENGTH_NS; h->hops++) {
                pin(0, (int) (h->hops % 2));
                spin_until(now_ns() + STAY_NS);
        }
        h->run_ns = thread_cpu_ns() - start_cpu_ns;
        h->elapsed_ns = now_ns() - start_ns;
        h->runqueue_ns = schedstat().runqueue_ns - before.runqueue_ns;
        return NULL;
}

int main(void) {
        Hopper hopper = { 0 };
        int cpus[] = { 0, 1 };
        pthread_t awake[ELEMENTSOF(cpus)];

        gate_init(&hopper.gate);
        pthread_t thread = start_thread(run_hopper, &hopper);
        ready();
        for (size_t i = 0; i < ELEMENTSOF(cpus); i++)
                awake[i] = start_thread(keep_awake, &cpus[i]);
        gate_open(&hopper.gate, 1);
        join_thread(thread);
        done = true;
        for (size_t i = 0; i < ELEMENTSOF(cpus); i++)
                join_thread(awake[i]);
        printf("{\"tid\":%d,\"hops\":%u,\"run_ns\":%llu,\"runqueue_ns\":%llu,\"elapsed_ns\":%llu}", hopper.tid,
                        hopper.hops, (unsigned long long) hopper.run_ns, (unsigned long long) hopper.runqueue_ns,
                        (unsigned long long) hopper.elapsed_ns);
        finish();
        return EXIT_SUCCESS;
}
