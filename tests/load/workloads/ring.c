/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* ring PROCESSES THREADS ROUNDS SLEEPS: in each process THREADS threads stand in a ring and hand on a token, ROUNDS times
 * round, each by waking the next one's futex; then each thread sleeps SLEEPS times. Every thread does the same known
 * number of waits, and all of them but one or two are asleep at any time. */
#include "workload.h"

#define SLEEP_NS (2 * MSEC)
#define STACK_SIZE (64U * 1024U)
/* Long enough for the last thread to fall asleep. */
#define SETTLE_NS (300 * MSEC)

typedef struct Node {
        uint32_t turn;     /* futex: the round that has come to it */
        uint64_t woken_ns; /* by the one before it, who writes this first */
        pid_t pid, tid;
        Tally waits; /* on the futex, without the first: that began before anybody looked; as if each began with the call */
        uint64_t late_begin_ns; /* part of the above in which it lost the CPU, perhaps before it was asleep */
        uint64_t late_end_ns;   /* what wakes may have come after woken_ns; written by the one before it */
        uint64_t first_end_ns;  /* 0: it was not asleep */
        Schedstat in_sleeps;
        uint64_t slept_ns; /* by its own clock, so with in_sleeps */
        struct Node *next;
        bool first, last;
} Node;

typedef struct Shared {
        unsigned arrived, finished;
        uint32_t end; /* futex, of each process by itself */
} Shared;

static Shared *shared;
static Node *nodes;
static unsigned n_processes, n_threads, n_rounds, n_sleeps;
static Gate start_gate, end_gate;

static struct rusage usage_now(void) {
        struct rusage usage;

        CHECK(getrusage(RUSAGE_THREAD, &usage) == 0);
        return usage;
}

static void hand_on(Node *to, uint32_t round) {
        uint64_t begin_ns = now_ns();

        to->woken_ns = begin_ns;
        __atomic_store_n(&to->turn, round, __ATOMIC_RELEASE);
        CHECK(futex(&to->turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) >= 0);
        to->late_end_ns += now_ns() - begin_ns;
}

/* Whether the thread was asleep for it: it may have come to its turn when that had already come to it. */
static bool await_turn(Node *n, uint32_t round, bool *ret_preempted) {
        struct rusage before = usage_now(), after;
        uint32_t turn;

        while ((turn = __atomic_load_n(&n->turn, __ATOMIC_ACQUIRE)) < round)
                CHECK(futex(&n->turn, FUTEX_WAIT_PRIVATE, turn, NULL, NULL, 0) == 0 || errno == EAGAIN ||
                                errno == EINTR);
        after = usage_now();
        *ret_preempted = after.ru_nivcsw > before.ru_nivcsw;
        return after.ru_nvcsw > before.ru_nvcsw;
}

static void *run_node(void *argument) {
        Node *n = argument;
        uint64_t begin_ns;
        Schedstat before;
        bool preempted;

        name_thread("ring");
        n->pid = getpid();
        n->tid = thread_id();
        __atomic_add_fetch(&shared->arrived, 1, __ATOMIC_RELEASE);

        for (unsigned round = 1; round <= n_rounds; round++) {
                begin_ns = now_ns();
                if (await_turn(n, round, &preempted)) {
                        if (round == 1)
                                n->first_end_ns = n->woken_ns;
                        else
                                tally_add(&n->waits, n->woken_ns - begin_ns);
                        if (round > 1 && preempted)
                                n->late_begin_ns += n->woken_ns - begin_ns;
                }
                if (!n->last || round < n_rounds)
                        hand_on(n->next, n->last ? round + 1 : round);
        }

        before = schedstat();
        begin_ns = now_ns();
        for (unsigned i = 0; i < n_sleeps; i++)
                sleep_ns(SLEEP_NS);
        n->slept_ns = now_ns() - begin_ns;
        n->in_sleeps = schedstat();
        n->in_sleeps.run_ns -= before.run_ns;
        n->in_sleeps.runqueue_ns -= before.runqueue_ns;

        __atomic_add_fetch(&shared->finished, 1, __ATOMIC_RELEASE);
        while (!__atomic_load_n(&shared->end, __ATOMIC_ACQUIRE))
                futex(&shared->end, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
        return NULL;
}

static void run_ring(Node *ring) {
        pthread_t *threads = calloc(n_threads, sizeof(*threads));
        pthread_attr_t attributes;

        CHECK(threads);
        CHECK_THREAD(pthread_attr_init(&attributes));
        CHECK_THREAD(pthread_attr_setstacksize(&attributes, STACK_SIZE));
        for (unsigned i = 0; i < n_threads; i++) {
                ring[i].next = &ring[(i + 1) % n_threads];
                ring[i].last = i == n_threads - 1;
        }
        for (unsigned i = 0; i < n_threads; i++)
                CHECK_THREAD(pthread_create(&threads[i], &attributes, run_node, &ring[i]));

        gate_pass(&start_gate);
        hand_on(&ring[0], 1);
        gate_pass(&end_gate);
        __atomic_store_n(&shared->end, 1, __ATOMIC_RELEASE);
        CHECK(futex(&shared->end, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0) >= 0);
        for (unsigned i = 0; i < n_threads; i++)
                join_thread(threads[i]);
        exit(EXIT_SUCCESS);
}

static void await_all(const unsigned *counter) {
        while (__atomic_load_n(counter, __ATOMIC_ACQUIRE) < n_processes * n_threads)
                sleep_ns(MSEC);
}

static void print_node(const Node *n) {
        printf("[%d,%d,%llu,%u,%llu,%llu,%llu,%llu,%llu,%llu,%llu]", (int) n->pid, (int) n->tid,
                        (unsigned long long) (uintptr_t) &n->turn, n->waits.count,
                        (unsigned long long) n->waits.total_ns, (unsigned long long) n->late_begin_ns,
                        (unsigned long long) n->late_end_ns, (unsigned long long) n->first_end_ns,
                        (unsigned long long) n->slept_ns, (unsigned long long) n->in_sleeps.run_ns,
                        (unsigned long long) n->in_sleeps.runqueue_ns);
}

int main(int argc, char **argv) {
        uint64_t start_ns, end_ns;

        if (argc != 5)
                return 2;
        n_processes = (unsigned) atoi(argv[1]);
        n_threads = (unsigned) atoi(argv[2]);
        n_rounds = (unsigned) atoi(argv[3]);
        n_sleeps = (unsigned) atoi(argv[4]);
        shared = shared_memory(sizeof(*shared));
        nodes = shared_memory(sizeof(*nodes) * n_processes * n_threads);
        gate_init(&start_gate);
        gate_init(&end_gate);

        for (unsigned i = 0; i < n_processes; i++) {
                pid_t pid = fork();

                CHECK(pid >= 0);
                if (pid == 0)
                        run_ring(nodes + i * n_threads);
        }
        await_all(&shared->arrived);
        sleep_ns(SETTLE_NS);

        ready();
        start_ns = now_ns();
        gate_open(&start_gate, n_processes);
        await_all(&shared->finished);
        end_ns = now_ns();

        printf("{\"sleep_ns\":%llu,\"played_ns\":%llu,\"threads\":[", (unsigned long long) SLEEP_NS,
                        (unsigned long long) (end_ns - start_ns));
        for (unsigned i = 0; i < n_processes * n_threads; i++) {
                if (i > 0)
                        putchar(',');
                print_node(&nodes[i]);
        }
        printf("]}");
        finish();
        gate_open(&end_gate, n_processes);
        for (unsigned i = 0; i < n_processes; i++)
                CHECK(wait(NULL) > 0);
        return EXIT_SUCCESS;
}
