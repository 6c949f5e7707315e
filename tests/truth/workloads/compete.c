/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A thread that wants to run, and two processes of weights 3:1 ("heavy", "light") that take its CPU away.
 * compete busy CPU: the thread never sleeps. compete waking CPU: it sleeps for 2 ms after each 1 ms of work.
 * compete realtime CPU: "light" is a real-time process instead that takes the CPU often and for a short time.
 * compete migrate: it stands behind "heavy" on CPU 0, is moved to CPU 1 while it waits, and stands behind "light" there. */
#include "workload.h"

#define LENGTH_NS (2500 * MSEC)
#define WORK_NS MSEC
#define SLEEP_NS (2 * MSEC)
#define BURST_NS (200 * UINT64_C(1000))
#define BURST_PAUSE_NS (2 * MSEC)
#define LIGHT_NICE 5 /* weight 335 against 1024 */
#define STAY_NS (250 * MSEC)
#define SETTLE_NS (20 * MSEC)

typedef struct Competitor {
        const char *name;
        pid_t pid;
        int cpu, nice, priority;
        Gate gate;
        bool bursts; /* sleeps between short times of work */
        atomic_bool stop;
        uint64_t run_ns;
} Competitor;

typedef struct Scenario {
        bool waking, realtime;
        int cpu;
        Gate gate;
        pid_t tid;
        uint64_t end_ns; /* of the busy phase */
        uint64_t start_ns, stopped_ns;
        Schedstat before; /* asleep at the gate: getting from there to the CPU is a part of the scenario */
        Schedstat used;
} Scenario;

static void set_fifo(pid_t tid, int priority) {
        struct sched_param parameters = { .sched_priority = priority };

        CHECK(sched_setscheduler(tid, SCHED_FIFO, &parameters) == 0);
}

static void compete(Competitor *c) {
        CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
        name_thread(c->name);
        pin(0, c->cpu);
        if (c->priority > 0)
                set_fifo(0, c->priority);
        else
                CHECK(setpriority(PRIO_PROCESS, 0, c->nice) == 0);
        gate_pass(&c->gate);
        uint64_t before_ns = thread_cpu_ns();
        while (!c->stop)
                if (c->bursts) {
                        uint64_t start_ns = thread_cpu_ns();
                        while (thread_cpu_ns() < start_ns + BURST_NS)
                                ;
                        sleep_ns(BURST_PAUSE_NS);
                }
        c->run_ns = thread_cpu_ns() - before_ns;
        _exit(EXIT_SUCCESS);
}

static void start_competitor(Competitor *c) {
        gate_init(&c->gate);
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0)
                compete(c);
        c->pid = pid;
}

static void *run_target(void *argument) {
        Scenario *s = argument;

        name_thread("target");
        s->tid = thread_id();
        pin(0, s->cpu);
        gate_pass(&s->gate);
        s->start_ns = now_ns();
        if (s->end_ns == 0)
                s->end_ns = s->start_ns + LENGTH_NS;
        while (now_ns() < s->end_ns)
                if (s->waking) {
                        uint64_t start_ns = thread_cpu_ns();
                        while (thread_cpu_ns() < start_ns + WORK_NS)
                                ;
                        sleep_ns(SLEEP_NS);
                }
        s->stopped_ns = now_ns();
        Schedstat after = schedstat();
        s->used = (Schedstat){ after.run_ns - s->before.run_ns, after.runqueue_ns - s->before.runqueue_ns };
        return NULL;
}

static void print_answer(const Scenario *s, const Competitor *heavy, const Competitor *light) {
        printf("\"tid\":%d,\"run_ns\":%llu,\"runqueue_ns\":%llu,\"elapsed_ns\":%llu,\"heavy\":%d,\"heavy_ns\":%llu,"
               "\"light\":%d,\"light_ns\":%llu",
                        s->tid, (unsigned long long) s->used.run_ns, (unsigned long long) s->used.runqueue_ns,
                        (unsigned long long) (s->stopped_ns - s->start_ns), heavy->pid,
                        (unsigned long long) heavy->run_ns, light->pid, (unsigned long long) light->run_ns);
}

static void run_on_one_cpu(Scenario *s, Competitor *heavy, Competitor *light) {
        *heavy = (Competitor){ .name = "heavy", .cpu = s->cpu };
        *light = (Competitor){ .name = "light", .cpu = s->cpu, .nice = LIGHT_NICE };
        if (s->realtime)
                *light = (Competitor){ .name = "light", .cpu = s->cpu, .priority = 10, .bursts = true };
        gate_init(&s->gate);
        start_competitor(heavy);
        start_competitor(light);
        pthread_t target = start_thread(run_target, s);
        pin(0, 1 - s->cpu);
        ready();
        s->before = schedstat_of(getpid(), s->tid);
        gate_open(&heavy->gate, 1);
        gate_open(&light->gate, 1);
        gate_open(&s->gate, 1);
        join_thread(target);
        heavy->stop = light->stop = true;
        CHECK(waitpid(heavy->pid, NULL, 0) == heavy->pid);
        CHECK(waitpid(light->pid, NULL, 0) == light->pid);
        putchar('{');
        print_answer(s, heavy, light);
        putchar('}');
}

/* The competitors are real-time, so that the target stays where it is until it is moved. */
static void run_migration(Scenario *s, Competitor *heavy, Competitor *light) {
        *heavy = (Competitor){ .name = "heavy", .cpu = 0, .priority = 10 };
        *light = (Competitor){ .name = "light", .cpu = 1, .priority = 10 };
        gate_init(&s->gate);
        s->cpu = 0;
        s->end_ns = 1; /* nothing to do: it ends as soon as it runs */
        start_competitor(heavy);
        start_competitor(light);
        pthread_t target = start_thread(run_target, s);
        ready();

        set_fifo(0, 20);
        s->before = schedstat_of(getpid(), s->tid);
        gate_open(&heavy->gate, 1);
        gate_open(&light->gate, 1);
        sleep_ns(SETTLE_NS);
        gate_open(&s->gate, 1);
        uint64_t woken_ns = now_ns();
        sleep_ns(STAY_NS);
        pin(s->tid, 1);
        uint64_t moved_ns = now_ns();
        sleep_ns(STAY_NS);
        light->stop = true;
        uint64_t released_ns = now_ns();
        join_thread(target);
        heavy->stop = true;
        CHECK(waitpid(heavy->pid, NULL, 0) == heavy->pid);
        CHECK(waitpid(light->pid, NULL, 0) == light->pid);

        /* Nearly all of it passed before the thread could look for itself. */
        s->used.runqueue_ns = released_ns - woken_ns;
        printf("{\"behind_heavy_ns\":%llu,\"behind_light_ns\":%llu,\"queued_before_ns\":%llu,",
                        (unsigned long long) (moved_ns - woken_ns), (unsigned long long) (released_ns - moved_ns),
                        (unsigned long long) s->before.runqueue_ns);
        print_answer(s, heavy, light);
        putchar('}');
}

int main(int argc, char *argv[]) {
        CHECK(argc >= 2);
        Scenario scenario = {
                .waking = strcmp(argv[1], "waking") == 0,
                .realtime = strcmp(argv[1], "realtime") == 0,
                .cpu = argc > 2 ? atoi(argv[2]) : 0,
        };
        Competitor *competitors = shared_memory(2 * sizeof(Competitor));

        if (strcmp(argv[1], "migrate") == 0)
                run_migration(&scenario, &competitors[0], &competitors[1]);
        else
                run_on_one_cpu(&scenario, &competitors[0], &competitors[1]);
        finish();
        return EXIT_SUCCESS;
}
