/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One thread for each way to wait for time, for a child, for a signal. What the scheduler says about the run queue
 * (schedstat) is left out of the measured length, since nobody else notes the end of these waits.
 * "stopped" is a scenario of its own: a sleeper and a spinner that the driver stops and continues. */
#include "workload.h"

#include <sys/timerfd.h>

#define N_SLEEPS 24
#define SLEEP_NS (30 * MSEC)
#define N_SHORT 400
#define N_CHILDREN 3
#define CHILD_NS (150 * MSEC)
#define N_SIGNALS 6
#define SIGNAL_NS (80 * MSEC)
#define STOPPED_SLEEP_NS (2000 * MSEC)

typedef struct Sleeper {
        const char *name;
        void (*sleep)(struct Sleeper *);
        unsigned repeat;
        bool signalled; /* a helper thread sends it signals */

        Gate *gate;
        int fd;
        pthread_t thread;
        pid_t tid;
        Tally tally;
        Schedstat used;
        uint64_t start_ns, end_ns;
        atomic_bool asleep;
} Sleeper;

static void by_nanosleep(Sleeper *s) {
        sleep_ns(SLEEP_NS);
}

static void by_absolute(Sleeper *s) {
        struct timespec until = timespec_of(now_ns() + SLEEP_NS);

        CHECK_THREAD(clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &until, NULL));
}

static void by_usleep(Sleeper *s) {
        usleep(1000);
}

static void by_timerfd(Sleeper *s) {
        uint64_t expirations;
        struct itimerspec in = { .it_value = timespec_of(SLEEP_NS) };

        CHECK(timerfd_settime(s->fd, 0, &in, NULL) == 0);
        CHECK(read(s->fd, &expirations, sizeof(expirations)) == sizeof(expirations));
}

static void by_wait(Sleeper *s) {
        pid_t pid = fork();

        CHECK(pid >= 0);
        if (pid == 0) {
                sleep_ns(CHILD_NS);
                _exit(0);
        }
        uint64_t start_ns = now_ns();
        if (strcmp(s->name, "wait4") == 0)
                CHECK(waitpid(pid, NULL, 0) == pid);
        else {
                siginfo_t info;
                CHECK(waitid(P_PID, (id_t) pid, &info, WEXITED) == 0);
        }
        tally_add(&s->tally, now_ns() - start_ns);
}

/* The parent goes on when the child has ended, or executes an image. */
static void by_vfork(Sleeper *s) {
        uint64_t start_ns = now_ns();
        pid_t pid = vfork();

        if (pid == 0) {
                sleep_ns(CHILD_NS);
                _exit(0);
        }
        tally_add(&s->tally, now_ns() - start_ns);
        CHECK(pid > 0 && waitpid(pid, NULL, 0) == pid);
}

static void by_sigtimedwait(Sleeper *s) {
        sigset_t set;
        struct timespec timeout = timespec_of(SIGNAL_NS);

        sigemptyset(&set);
        sigaddset(&set, SIGUSR2);
        CHECK(sigtimedwait(&set, NULL, &timeout) < 0 && errno == EAGAIN);
}

static void by_sigwait(Sleeper *s) {
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, SIGUSR1);
        s->asleep = true;
        CHECK(sigwaitinfo(&set, NULL) == SIGUSR1);
}

static void by_pause(Sleeper *s) {
        sigset_t none;

        /* With SIGUSR1 blocked until here, a signal that comes early is not lost. */
        sigemptyset(&none);
        s->asleep = true;
        if (strcmp(s->name, "pause") == 0)
                CHECK(pause() < 0);
        else
                CHECK(sigsuspend(&none) < 0);
}

static void on_signal(int number) {
}

static Sleeper sleepers[] = {
        { .name = "nanosleep", .sleep = by_nanosleep, .repeat = N_SLEEPS },
        { .name = "absolute", .sleep = by_absolute, .repeat = N_SLEEPS },
        { .name = "usleep", .sleep = by_usleep, .repeat = N_SHORT },
        { .name = "timerfd", .sleep = by_timerfd, .repeat = N_SLEEPS },
        { .name = "wait4", .sleep = by_wait, .repeat = N_CHILDREN },
        { .name = "waitid", .sleep = by_wait, .repeat = N_CHILDREN },
        { .name = "vfork", .sleep = by_vfork, .repeat = N_CHILDREN },
        { .name = "sigtimedwait", .sleep = by_sigtimedwait, .repeat = N_SIGNALS },
        { .name = "sigwait", .sleep = by_sigwait, .repeat = N_SIGNALS, .signalled = true },
        { .name = "sigsuspend", .sleep = by_pause, .repeat = N_SIGNALS, .signalled = true },
        { .name = "pause", .sleep = by_pause, .repeat = N_SIGNALS, .signalled = true },
};

static void *run_sleeper(void *argument) {
        Sleeper *s = argument;
        sigset_t set;

        name_thread(s->name);
        s->tid = thread_id();
        s->fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
        CHECK(s->fd >= 0);
        sigemptyset(&set);
        sigaddset(&set, SIGUSR1);
        CHECK_THREAD(pthread_sigmask(strcmp(s->name, "pause") == 0 ? SIG_UNBLOCK : SIG_BLOCK, &set, NULL));

        gate_pass(s->gate);
        Schedstat before = schedstat();
        s->start_ns = now_ns();
        for (unsigned i = 0; i < s->repeat; i++) {
                uint64_t start_ns = now_ns();
                unsigned counted = s->tally.count;
                s->sleep(s);
                if (counted == s->tally.count)
                        tally_add(&s->tally, now_ns() - start_ns);
        }
        s->end_ns = now_ns();
        Schedstat after = schedstat();
        s->used = (Schedstat){ after.run_ns - before.run_ns, after.runqueue_ns - before.runqueue_ns };
        return NULL;
}

static void *run_signaller(void *argument) {
        name_thread("signaller");
        for (unsigned i = 0; i < N_SIGNALS; i++) {
                for (size_t j = 0; j < ELEMENTSOF(sleepers); j++)
                        while (sleepers[j].signalled && !sleepers[j].asleep)
                                sleep_ns(MSEC);
                sleep_ns(SIGNAL_NS);
                for (size_t j = 0; j < ELEMENTSOF(sleepers); j++)
                        if (sleepers[j].signalled) {
                                sleepers[j].asleep = false;
                                CHECK_THREAD(pthread_kill(sleepers[j].thread, SIGUSR1));
                        }
        }
        *(pid_t *) argument = thread_id();
        return NULL;
}

static void print_sleeper(const Sleeper *s) {
        printf("\"%s\":{\"tid\":%d,\"run_ns\":%llu,\"runqueue_ns\":%llu,\"elapsed_ns\":%llu,", s->name, s->tid,
                        (unsigned long long) s->used.run_ns, (unsigned long long) s->used.runqueue_ns,
                        (unsigned long long) (s->end_ns - s->start_ns));
        print_tally(&s->tally);
        putchar('}');
}

static void run_all(void) {
        Gate gate;
        pid_t signaller = 0;

        gate_init(&gate);
        for (size_t i = 0; i < ELEMENTSOF(sleepers); i++) {
                sleepers[i].gate = &gate;
                sleepers[i].thread = start_thread(run_sleeper, &sleepers[i]);
        }
        ready();
        gate_open(&gate, ELEMENTSOF(sleepers));
        join_thread(start_thread(run_signaller, &signaller));
        for (size_t i = 0; i < ELEMENTSOF(sleepers); i++)
                join_thread(sleepers[i].thread);

        printf("{\"signaller\":%d", signaller);
        for (size_t i = 0; i < ELEMENTSOF(sleepers); i++) {
                putchar(',');
                print_sleeper(&sleepers[i]);
        }
        putchar('}');
}

static void by_long_sleep(Sleeper *s) {
        sleep_ns(STOPPED_SLEEP_NS);
}

static void by_spinning(Sleeper *s) {
        spin_until(now_ns() + STOPPED_SLEEP_NS);
}

static void run_stopped(void) {
        Sleeper both[] = {
                { .name = "sleeper", .sleep = by_long_sleep, .repeat = 1 },
                { .name = "spinner", .sleep = by_spinning, .repeat = 1 },
        };
        Gate gate;

        gate_init(&gate);
        for (size_t i = 0; i < ELEMENTSOF(both); i++) {
                both[i].gate = &gate;
                both[i].thread = start_thread(run_sleeper, &both[i]);
        }
        ready();
        gate_open(&gate, ELEMENTSOF(both));
        for (size_t i = 0; i < ELEMENTSOF(both); i++)
                join_thread(both[i].thread);
        putchar('{');
        print_sleeper(&both[0]);
        putchar(',');
        print_sleeper(&both[1]);
        putchar('}');
}

int main(int argc, char *argv[]) {
        struct sigaction action = { .sa_handler = on_signal };

        CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
        if (argc == 2 && strcmp(argv[1], "stopped") == 0)
                run_stopped();
        else
                run_all();
        finish();
        return EXIT_SUCCESS;
}
