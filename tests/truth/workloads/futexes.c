/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One thread waits by one kind of futex operation, another one wakes it after a known time.
 * futexes wait|bitset|unprivate|requeue_pi|waitv|waitv2|waitv_timeout|timeout|futex2. Prints "unsupported" where the kernel lacks it. */
#include "workload.h"

#define N_ROUNDS 12
#define WAIT_NS (60 * MSEC)
#define N_VECTOR 3
#define VECTOR_WOKEN 1 /* which one of the vector the waker uses */

#define FUTEX2_SIZE_U32 0x02
#define FUTEX2_PRIVATE_FLAG 128
#define SYSCALL_FUTEX_WAKE 454
#define SYSCALL_FUTEX_WAIT 455

struct vector_entry {
        uint64_t value;
        uint64_t address;
        uint32_t flags;
        uint32_t reserved;
};

typedef struct Scenario {
        const char *mode;
        uint32_t words[N_VECTOR];
        uint32_t lock; /* requeue_pi: the PI futex that the waiter gets */
        Gate asleep, woken;
        _Atomic uint64_t woken_ns;
        pid_t waiter, waker;
        Tally tally;
        atomic_bool unsupported;
} Scenario;

static bool is(const Scenario *s, const char *mode) {
        return strcmp(s->mode, mode) == 0;
}

/* The waker uses one of a vector; waitv2: with futex_wake() instead of futex(). */
static size_t woken_index(const Scenario *s) {
        return is(s, "waitv") || is(s, "waitv2") ? VECTOR_WOKEN : 0;
}

static bool times_out(const Scenario *s) {
        return is(s, "timeout") || is(s, "waitv_timeout");
}

static long wait_once(Scenario *s) {
        struct timespec timeout = timespec_of(WAIT_NS);

        if (is(s, "wait"))
                return futex(s->words, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
        if (is(s, "timeout"))
                return futex(s->words, FUTEX_WAIT_PRIVATE, 0, &timeout, NULL, 0);
        if (is(s, "unprivate"))
                return futex(s->words, FUTEX_WAIT, 0, NULL, NULL, 0);
        if (is(s, "bitset"))
                return futex(s->words, FUTEX_WAIT_BITSET_PRIVATE, 0, NULL, NULL, 0x10);
        if (is(s, "requeue_pi")) {
                long r = futex(s->words, FUTEX_WAIT_REQUEUE_PI_PRIVATE, 0, NULL, &s->lock, 0);
                if (r == 0)
                        CHECK(futex(&s->lock, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0) == 0);
                return r;
        }
        if (is(s, "futex2"))
                return syscall(SYSCALL_FUTEX_WAIT, s->words, 0UL, 0xffffffffUL, FUTEX2_SIZE_U32 | FUTEX2_PRIVATE_FLAG,
                                NULL, CLOCK_MONOTONIC);

        struct vector_entry vector[N_VECTOR];
        for (size_t i = 0; i < N_VECTOR; i++)
                vector[i] = (struct vector_entry){ 0, (uintptr_t) &s->words[i], FUTEX2_SIZE_U32 | FUTEX2_PRIVATE_FLAG,
                        0 };
        if (is(s, "waitv_timeout")) {
                CHECK(clock_gettime(CLOCK_MONOTONIC, &timeout) == 0);
                timeout = timespec_of((uint64_t) timeout.tv_sec * SEC + (uint64_t) timeout.tv_nsec + WAIT_NS);
        }
        return syscall(SYS_futex_waitv, vector, N_VECTOR, 0, times_out(s) ? &timeout : NULL, CLOCK_MONOTONIC);
}

static void wake_once(Scenario *s) {
        long woken;

        s->woken_ns = now_ns();
        if (is(s, "unprivate"))
                woken = futex(s->words, FUTEX_WAKE, 1, NULL, NULL, 0);
        else if (is(s, "bitset"))
                woken = futex(s->words, FUTEX_WAKE_BITSET_PRIVATE, 1, NULL, NULL, 0x30);
        else if (is(s, "requeue_pi"))
                woken = futex(s->words, FUTEX_CMP_REQUEUE_PI_PRIVATE, 1, NULL, &s->lock, 0);
        else if (is(s, "futex2") || is(s, "waitv2"))
                woken = syscall(SYSCALL_FUTEX_WAKE, &s->words[woken_index(s)], 0xffffffffUL, 1,
                                FUTEX2_SIZE_U32 | FUTEX2_PRIVATE_FLAG);
        else
                woken = futex(&s->words[woken_index(s)], FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
        if (woken < 0 && errno == ENOSYS) {
                /* futex_wait() and futex_wake() came later than futex_waitv(): end the wait in the old manner. */
                s->unsupported = true;
                woken = futex(&s->words[woken_index(s)], FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
        }
        CHECK(woken == 1);
}

static void *run_waiter(void *argument) {
        Scenario *s = argument;
        pid_t pid = getpid();

        name_thread("waiter");
        s->waiter = thread_id();
        for (unsigned i = 0; i < N_ROUNDS; i++) {
                uint64_t queued_ns = schedstat_of(pid, s->waiter).runqueue_ns;
                if (!times_out(s))
                        gate_open(&s->asleep, 1);
                uint64_t start_ns = now_ns();
                long r = wait_once(s);
                uint64_t end_ns = now_ns();
                if (r < 0 && errno == ENOSYS) {
                        s->unsupported = true;
                        break;
                }
                if (times_out(s)) {
                        CHECK(r < 0 && errno == ETIMEDOUT);
                        /* Nobody notes the end of this one: leave out what the scheduler says was the run queue. */
                        tally_add(&s->tally,
                                        end_ns - start_ns - (schedstat_of(pid, s->waiter).runqueue_ns - queued_ns));
                } else {
                        CHECK(r >= 0);
                        tally_add(&s->tally, s->woken_ns - start_ns);
                        gate_open(&s->woken, 1);
                        if (s->unsupported)
                                return NULL;
                }
        }
        if (s->unsupported)
                gate_open(&s->woken, 1);
        return NULL;
}

static void *run_waker(void *argument) {
        Scenario *s = argument;

        name_thread("waker");
        s->waker = thread_id();
        for (unsigned i = 0; i < N_ROUNDS && !times_out(s); i++) {
                gate_pass(&s->asleep);
                sleep_ns(WAIT_NS);
                if (s->unsupported)
                        break;
                wake_once(s);
                gate_pass(&s->woken);
                if (s->unsupported)
                        break;
        }
        return NULL;
}

int main(int argc, char *argv[]) {
        CHECK(argc == 2);
        Scenario s = { .mode = argv[1] };
        pthread_t waiter, waker;

        gate_init(&s.asleep);
        gate_init(&s.woken);
        ready();
        waker = start_thread(run_waker, &s);
        waiter = start_thread(run_waiter, &s);
        join_thread(waiter);
        join_thread(waker);

        printf("{\"unsupported\":%s,\"waiter\":%d,\"waker\":%d,\"first\":%llu,\"woken\":%llu,",
                        s.unsupported ? "true" : "false", s.waiter, s.waker,
                        (unsigned long long) (uintptr_t) &s.words[0],
                        (unsigned long long) (uintptr_t) &s.words[woken_index(&s)]);
        print_tally(&s.tally);
        putchar('}');
        finish();
        return EXIT_SUCCESS;
}
