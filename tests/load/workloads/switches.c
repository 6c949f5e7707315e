/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* switches yield|handshake SECONDS: as many context switches as the CPUs do. Two threads on each CPU that one is allowed
 * to use: they yield to each other, or wake each other by futexes, so that each of their switches is a wait. How many
 * there were, the kernel says in /proc/PID/task/TID/status. */
#include "workload.h"

#define CPUS_MAX 64
#define YIELDS_BETWEEN_LOOKS 64

typedef struct Side {
        uint32_t turn; /* futex: how often the other side has handed over */
        pid_t tid;
        int cpu;
        struct Side *other;
        bool begins;
        uint64_t rounds;
        pthread_t thread;
} Side;

static Side sides[2 * CPUS_MAX];
static Gate start_gate, end_gate;
static unsigned finished;
static uint64_t play_ns;
static bool handshake;

static void yield_until(Side *s, uint64_t end_ns) {
        while (now_ns() < end_ns)
                for (unsigned i = 0; i < YIELDS_BETWEEN_LOOKS; i++, s->rounds++)
                        sched_yield();
}

static void hand_over(Side *to, uint32_t turn) {
        __atomic_store_n(&to->turn, turn, __ATOMIC_RELEASE);
        CHECK(futex(&to->turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) >= 0);
}

/* The one that begins decides when to end: the other one hears of it with its last turn. */
static void shake_until(Side *s, uint64_t end_ns) {
        uint32_t round = 0, turn;

        for (;;) {
                bool last = s->begins && now_ns() >= end_ns;

                if (s->begins)
                        hand_over(s->other, last ? UINT32_MAX : ++round);
                if (last)
                        return;
                while ((turn = __atomic_load_n(&s->turn, __ATOMIC_ACQUIRE)) == (s->begins ? round - 1 : round))
                        CHECK(futex(&s->turn, FUTEX_WAIT_PRIVATE, turn, NULL, NULL, 0) == 0 || errno == EAGAIN ||
                                        errno == EINTR);
                s->rounds++;
                if (s->begins)
                        continue;
                if (turn == UINT32_MAX)
                        return;
                round = turn;
                hand_over(s->other, round);
        }
}

static void *run_side(void *argument) {
        Side *s = argument;
        uint64_t end_ns;

        s->tid = thread_id();
        name_thread("switches");
        pin(0, s->cpu);
        gate_pass(&start_gate);
        end_ns = now_ns() + play_ns;
        (handshake ? shake_until : yield_until)(s, end_ns);
        __atomic_add_fetch(&finished, 1, __ATOMIC_RELEASE);
        gate_pass(&end_gate);
        return NULL;
}

int main(int argc, char **argv) {
        uint64_t start_ns, end_ns;
        unsigned n = 0;
        cpu_set_t set;

        if (argc != 3)
                return 2;
        handshake = strcmp(argv[1], "handshake") == 0;
        play_ns = (uint64_t) atoi(argv[2]) * SEC;
        gate_init(&start_gate);
        gate_init(&end_gate);
        CHECK(sched_getaffinity(0, sizeof(set), &set) == 0);
        for (int cpu = 0; cpu < CPUS_MAX; cpu++)
                for (unsigned i = 0; CPU_ISSET((size_t) cpu, &set) && i < 2; i++, n++)
                        sides[n] = (Side){ .cpu = cpu, .begins = i == 0, .other = &sides[n ^ 1] };
        for (unsigned i = 0; i < n; i++)
                sides[i].thread = start_thread(run_side, &sides[i]);

        ready();
        start_ns = now_ns();
        gate_open(&start_gate, n);
        while (__atomic_load_n(&finished, __ATOMIC_ACQUIRE) < n)
                sleep_ns(10 * MSEC);
        end_ns = now_ns();

        printf("{\"played_ns\":%llu,\"threads\":[", (unsigned long long) (end_ns - start_ns));
        for (unsigned i = 0; i < n; i++)
                printf("%s{\"tid\":%d,\"rounds\":%llu}", i ? "," : "", (int) sides[i].tid,
                                (unsigned long long) sides[i].rounds);
        printf("]}");
        finish();
        gate_open(&end_gate, n);
        for (unsigned i = 0; i < n; i++)
                join_thread(sides[i].thread);
        return EXIT_SUCCESS;
}
