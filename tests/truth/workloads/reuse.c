/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Two threads, one after the other, with the same thread number. The kernel hands out numbers in turn; ns_last_pid says
 * after which one to look for the next. On a machine where others start threads too it takes some tries. */
#include "workload.h"

#define FIRST_NS (150 * MSEC)
#define SECOND_NS (250 * MSEC)
#define N_TRIES 400

typedef struct Thread {
        pid_t wanted; /* 0: any */
        pid_t tid;
        uint64_t sleep_ns, slept_ns;
} Thread;

static void *run_thread(void *argument) {
        Thread *t = argument;

        t->tid = thread_id();
        if (t->wanted != 0 && t->tid != t->wanted)
                return NULL;
        name_thread(t->wanted == 0 ? "first" : "second");
        Schedstat before = schedstat();
        uint64_t start_ns = now_ns();
        sleep_ns(t->sleep_ns);
        uint64_t slept_ns = now_ns() - start_ns;
        t->slept_ns = slept_ns - (schedstat().runqueue_ns - before.runqueue_ns);
        return NULL;
}

static bool set_last(pid_t last) {
        FILE *f = fopen("/proc/sys/kernel/ns_last_pid", "we");

        if (!f)
                return false;
        fprintf(f, "%d", (int) last);
        return fclose(f) == 0;
}

int main(void) {
        Thread first = { .sleep_ns = FIRST_NS }, second = { .sleep_ns = SECOND_NS };

        ready();
        join_thread(start_thread(run_thread, &first));
        second.wanted = first.tid;
        for (unsigned i = 0; i < N_TRIES && second.slept_ns == 0; i++) {
                sleep_ns(MSEC); /* a thread can be joined before the kernel is done with its number */
                if (!set_last(first.tid - 1))
                        break;
                join_thread(start_thread(run_thread, &second));
        }
        printf("{\"reused\":%s,\"tid\":%d,\"first_ns\":%llu,\"second_ns\":%llu}", second.slept_ns ? "true" : "false",
                        first.tid, (unsigned long long) first.slept_ns, (unsigned long long) second.slept_ns);
        finish();
        return EXIT_SUCCESS;
}
