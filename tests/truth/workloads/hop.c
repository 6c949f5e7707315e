/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A thread that runs without a pause and moves to the other CPU every millisecond.
 *
 * Its CPU time is known up to what the moves cost only: when a thread comes to another CPU, the kernel counts the time until
 * that CPU has noticed as CPU time (putting it into the queue reads the clock, and the switch then does without), which is
 * 20 to 80 us each on virtual machines. So the CPU time of the work between the moves is measured too: the truth lies
 * between the two. */
#include "workload.h"

#define LENGTH_NS (2000 * MSEC)
#define STAY_NS MSEC

typedef struct Hopper {
        Gate gate;
        pid_t tid;
        uint64_t work_ns, run_ns, elapsed_ns;
        Schedstat before; /* asleep at the gate */
        uint64_t runqueue_ns;
        unsigned hops;
} Hopper;

static void *run_hopper(void *argument) {
        Hopper *h = argument;

        name_thread("hopper");
        h->tid = thread_id();
        gate_pass(&h->gate);
        uint64_t start_ns = now_ns(), start_cpu_ns = thread_cpu_ns();
        for (; now_ns() < start_ns + LENGTH_NS; h->hops++) {
                pin(0, (int) (h->hops % 2));
                uint64_t moved_cpu_ns = thread_cpu_ns();
                spin_until(now_ns() + STAY_NS);
                h->work_ns += thread_cpu_ns() - moved_cpu_ns;
        }
        h->run_ns = thread_cpu_ns() - start_cpu_ns;
        h->elapsed_ns = now_ns() - start_ns;
        h->runqueue_ns = schedstat().runqueue_ns - h->before.runqueue_ns;
        return NULL;
}

int main(void) {
        Hopper hopper = { 0 };

        gate_init(&hopper.gate);
        pthread_t thread = start_thread(run_hopper, &hopper);
        ready();
        hopper.before = schedstat_of(getpid(), hopper.tid);
        gate_open(&hopper.gate, 1);
        join_thread(thread);
        printf("{\"tid\":%d,\"hops\":%u,\"work_ns\":%llu,\"run_ns\":%llu,\"runqueue_ns\":%llu,\"elapsed_ns\":%llu}",
                        hopper.tid, hopper.hops, (unsigned long long) hopper.work_ns,
                        (unsigned long long) hopper.run_ns, (unsigned long long) hopper.runqueue_ns,
                        (unsigned long long) hopper.elapsed_ns);
        finish();
        return EXIT_SUCCESS;
}
