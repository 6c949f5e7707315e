/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A thread holds a mutex for known times while three others wait for it.
 * mutex heap|static|stack|pi: threads of one process. mutex memfd|shm|anonymous|file: the mutex lies in shared memory,
 * and two of the waiters belong to a second process that sees it at another address. */
#include "workload.h"

#define N_WAITERS 3
#define N_ROUNDS 6
#define HOLD_NS (80 * MSEC)
#define WAITER_HOLD_NS (20 * MSEC)

typedef struct Lock {
        char before[4096 + 192]; /* so that the offset in a file is not 0 */
        pthread_mutex_t mutex;
        pid_t owner;
        uint64_t released_ns;
} Lock;

typedef struct Wait {
        uint64_t ns;
        pid_t waker;
} Wait;

typedef struct Waiter {
        pid_t pid, tid;
        uintptr_t address;
        Tally tally;
        Wait waits[N_ROUNDS];
} Waiter;

/* In shared memory, for the answer of the second process. */
typedef struct Answer {
        pid_t holder;
        Waiter waiters[N_WAITERS];
} Answer;

typedef struct Scenario {
        Lock *lock;
        Gate contend, done;
        Answer *answer;
} Scenario;

typedef struct Role {
        Scenario *scenario;
        size_t index;
} Role;

static Lock static_lock;

static void release(Lock *lock) {
        lock->owner = thread_id();
        lock->released_ns = now_ns();
        CHECK_THREAD(pthread_mutex_unlock(&lock->mutex));
}

static void *run_waiter(void *argument) {
        Role *role = argument;
        Scenario *s = role->scenario;
        Waiter *waiter = &s->answer->waiters[role->index];
        char name[16];

        snprintf(name, sizeof(name), "waiter-%zu", role->index);
        name_thread(name);
        waiter->pid = getpid();
        waiter->tid = thread_id();
        waiter->address = (uintptr_t) &s->lock->mutex.__data.__lock;

        for (size_t i = 0; i < N_ROUNDS; i++) {
                gate_pass(&s->contend);
                uint64_t start_ns = now_ns();
                CHECK_THREAD(pthread_mutex_lock(&s->lock->mutex));
                waiter->waits[i] = (Wait){ s->lock->released_ns - start_ns, s->lock->owner };
                tally_add(&waiter->tally, waiter->waits[i].ns);
                sleep_ns(WAITER_HOLD_NS);
                release(s->lock);
                gate_open(&s->done, 1);
                /* The next round's byte must not be taken by a waiter that has not yet had its turn in this one. */
                sleep_ns(N_WAITERS * WAITER_HOLD_NS);
        }
        return NULL;
}

static void *run_holder(void *argument) {
        Scenario *s = argument;

        name_thread("holder");
        s->answer->holder = thread_id();
        for (size_t i = 0; i < N_ROUNDS; i++) {
                CHECK_THREAD(pthread_mutex_lock(&s->lock->mutex));
                gate_open(&s->contend, N_WAITERS);
                sleep_ns(HOLD_NS);
                release(s->lock);
                for (size_t j = 0; j < N_WAITERS; j++)
                        gate_pass(&s->done);
                sleep_ns(N_WAITERS * WAITER_HOLD_NS + 10 * MSEC);
        }
        return NULL;
}

static void init_lock(Lock *lock, bool shared, bool inherit) {
        pthread_mutexattr_t attributes;

        CHECK_THREAD(pthread_mutexattr_init(&attributes));
        if (shared)
                CHECK_THREAD(pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED));
        if (inherit)
                CHECK_THREAD(pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT));
        CHECK_THREAD(pthread_mutex_init(&lock->mutex, &attributes));
        pthread_mutexattr_destroy(&attributes);
}

/* Maps the lock where no process of this scenario has it yet. */
static Lock *map_elsewhere(Lock *lock, int fd) {
        Lock *other;

        if (fd >= 0)
                other = mmap(NULL, sizeof(Lock), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        else {
                void *place = mmap(NULL, sizeof(Lock), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                CHECK(place != MAP_FAILED);
                other = mremap(lock, sizeof(Lock), sizeof(Lock), MREMAP_MAYMOVE | MREMAP_FIXED, place);
        }
        CHECK(other != MAP_FAILED && other != lock);
        return other;
}

static int open_memory(const char *mode) {
        int fd = -1;
        char path[64];

        if (strcmp(mode, "memfd") == 0)
                fd = memfd_create("prism-truth", MFD_CLOEXEC);
        else if (strcmp(mode, "shm") == 0) {
                snprintf(path, sizeof(path), "/prism-truth-%d", (int) getpid());
                fd = shm_open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
                CHECK(fd >= 0 && shm_unlink(path) == 0);
        } else {
                snprintf(path, sizeof(path), "prism-truth-%d", (int) getpid());
                fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
                CHECK(fd >= 0 && unlink(path) == 0);
        }
        CHECK(fd >= 0 && ftruncate(fd, sizeof(Lock)) == 0);
        return fd;
}

static void print_answer(const Answer *a) {
        printf("{\"holder\":%d,\"waiters\":[", a->holder);
        for (size_t i = 0; i < N_WAITERS; i++) {
                const Waiter *w = &a->waiters[i];
                printf("%s{\"pid\":%d,\"tid\":%d,\"address\":%llu,", i ? "," : "", w->pid, w->tid,
                                (unsigned long long) w->address);
                print_tally(&w->tally);
                printf(",\"waits\":[");
                for (size_t j = 0; j < N_ROUNDS; j++)
                        printf("%s{\"ns\":%llu,\"waker\":%d}", j ? "," : "", (unsigned long long) w->waits[j].ns,
                                        w->waits[j].waker);
                printf("]}");
        }
        printf("]}");
}

int main(int argc, char *argv[]) {
        const char *mode = argc == 2 ? argv[1] : "heap";
        Scenario scenario = { .answer = shared_memory(sizeof(Answer)) };
        Lock on_stack;
        bool shared = false;
        int fd = -1;
        pid_t child = 0;
        size_t first = 0, last = N_WAITERS;
        pthread_t holder = 0, waiters[N_WAITERS];
        Role roles[N_WAITERS];

        gate_init(&scenario.contend);
        gate_init(&scenario.done);

        if (strcmp(mode, "heap") == 0 || strcmp(mode, "pi") == 0)
                CHECK(scenario.lock = malloc(sizeof(Lock)));
        else if (strcmp(mode, "static") == 0)
                scenario.lock = &static_lock;
        else if (strcmp(mode, "stack") == 0)
                scenario.lock = &on_stack;
        else if (strcmp(mode, "anonymous") == 0) {
                shared = true;
                scenario.lock = shared_memory(sizeof(Lock));
        } else {
                shared = true;
                fd = open_memory(mode);
                scenario.lock = mmap(NULL, sizeof(Lock), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
                CHECK(scenario.lock != MAP_FAILED);
        }
        init_lock(scenario.lock, shared, strcmp(mode, "pi") == 0);

        ready();
        if (shared) {
                child = fork();
                CHECK(child >= 0);
                if (child == 0) {
                        CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
                        scenario.lock = map_elsewhere(scenario.lock, fd);
                        first = 1;
                } else
                        last = 1;
        }
        for (size_t i = first; i < last; i++) {
                roles[i] = (Role){ &scenario, i };
                waiters[i] = start_thread(run_waiter, &roles[i]);
        }
        if (shared && child == 0) {
                for (size_t i = first; i < last; i++)
                        join_thread(waiters[i]);
                return EXIT_SUCCESS;
        }

        sleep_ns(20 * MSEC); /* until all of them stand at the gate */
        holder = start_thread(run_holder, &scenario);
        join_thread(holder);
        for (size_t i = first; i < last; i++)
                join_thread(waiters[i]);
        if (child > 0)
                CHECK(waitpid(child, NULL, 0) == child);
        print_answer(scenario.answer);
        finish();
        return EXIT_SUCCESS;
}
