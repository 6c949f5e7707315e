/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* mix busy|idle MILLISECONDS: threads of different habits. Each is born after the go; when the answer is given all stand at a
 * gate, which they pass when all that watch have ended. So whoever watches from before the go until after the answer has seen
 * all of each life up to there, and no beginning or end is left to compare. What the kernel's own accounts hold of each is
 * noted there too.
 *
 * busy: more threads than the CPUs can run, two of them never asleep on CPU 1. idle: two that wake each other on two CPUs,
 * which have nothing else to do. */
#include "workload.h"

#include <sys/stat.h>

#define SLEEP_NS (2 * MSEC)
#define SHORT_WORK_NS (MSEC / 10)
#define LONG_WORK_NS (MSEC / 3)
#define REST_NS (50 * MSEC)
#define BLOCK_SIZE 4096
#define N_MAX 16

typedef struct Scenario {
        uint64_t end_ns;
        pthread_mutex_t mutex;
        Gate there, back, rest, leave;
} Scenario;

typedef struct Member {
        const char *name;
        int cpu; /* -1: any */
        void (*live)(Scenario *s);
        Scenario *scenario;
        pid_t tid;
        uint64_t cpu_ns;
        Schedstat used;
        unsigned long voluntary, involuntary; /* switches */
} Member;

static void work(uint64_t ns) {
        spin_until(now_ns() + ns);
}

static void live_sleeper(Scenario *s) {
        while (now_ns() < s->end_ns) {
                sleep_ns(SLEEP_NS);
                work(SHORT_WORK_NS);
        }
}

static void live_locker(Scenario *s) {
        while (now_ns() < s->end_ns) {
                CHECK_THREAD(pthread_mutex_lock(&s->mutex));
                work(LONG_WORK_NS);
                CHECK_THREAD(pthread_mutex_unlock(&s->mutex));
                sleep_ns(2 * LONG_WORK_NS);
        }
}

static void live_spinner(Scenario *s) {
        spin_until(s->end_ns);
}

static void live_yielder(Scenario *s) {
        while (now_ns() < s->end_ns) {
                work(LONG_WORK_NS);
                CHECK(sched_yield() == 0);
        }
}

static void live_writer(Scenario *s) {
        static const char block[BLOCK_SIZE];
        char name[] = "mix-XXXXXX";
        int fd = mkstemp(name);

        CHECK(fd >= 0 && unlink(name) == 0);
        while (now_ns() < s->end_ns) {
                CHECK(write(fd, block, sizeof(block)) == sizeof(block));
                CHECK(fdatasync(fd) == 0);
                sleep_ns(SLEEP_NS);
        }
        CHECK(close(fd) == 0);
}

/* Ends when its partner's end of the pipe is closed. */
static void live_pong(Scenario *s) {
        char byte;

        while (read(s->there.fds[0], &byte, 1) == 1) {
                work(SHORT_WORK_NS);
                gate_open(&s->back, 1);
        }
}

static void live_ping(Scenario *s) {
        while (now_ns() < s->end_ns) {
                gate_open(&s->there, 1);
                gate_pass(&s->back);
                work(SHORT_WORK_NS);
        }
        CHECK(close(s->there.fds[1]) == 0);
}

static const Member busy[] = {
        { .name = "sleeper-0", .cpu = -1, .live = live_sleeper },
        { .name = "sleeper-1", .cpu = -1, .live = live_sleeper },
        { .name = "locker-0", .cpu = -1, .live = live_locker },
        { .name = "locker-1", .cpu = -1, .live = live_locker },
        { .name = "locker-2", .cpu = -1, .live = live_locker },
        { .name = "ping", .cpu = -1, .live = live_ping },
        { .name = "pong", .cpu = -1, .live = live_pong },
        { .name = "writer", .cpu = -1, .live = live_writer },
        { .name = "yielder", .cpu = 1, .live = live_yielder },
        { .name = "spinner-0", .cpu = 1, .live = live_spinner },
        { .name = "spinner-1", .cpu = 1, .live = live_spinner },
};

static const Member idle[] = {
        { .name = "ping", .cpu = 0, .live = live_ping },
        { .name = "pong", .cpu = 1, .live = live_pong },
};

static void read_switches(Member *m) {
        char path[64], line[128];

        snprintf(path, sizeof(path), "/proc/self/task/%d/status", m->tid);
        FILE *f = fopen(path, "re");
        CHECK(f);
        while (fgets(line, sizeof(line), f)) {
                (void) sscanf(line, "voluntary_ctxt_switches: %lu", &m->voluntary);
                (void) sscanf(line, "nonvoluntary_ctxt_switches: %lu", &m->involuntary);
        }
        fclose(f);
}

static void *run_member(void *argument) {
        Member *m = argument;

        name_thread(m->name);
        m->tid = thread_id();
        if (m->cpu >= 0)
                pin(0, m->cpu);
        m->live(m->scenario);
        gate_open(&m->scenario->rest, 1);
        gate_pass(&m->scenario->leave);
        return NULL;
}

static bool is_asleep(pid_t tid) {
        char path[64], line[256] = "";

        snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
        FILE *f = fopen(path, "re");
        CHECK(f);
        CHECK(fgets(line, sizeof(line), f));
        fclose(f);
        const char *end = strrchr(line, ')');
        return end && end[1] == ' ' && end[2] == 'S';
}

/* Of a thread that is asleep: the kernel brings its accounts up to date when it leaves the CPU. */
static void read_accounts(Member *m, pthread_t thread) {
        struct timespec ts;
        clockid_t clock;

        read_switches(m);
        m->used = schedstat_of(getpid(), m->tid);
        CHECK_THREAD(pthread_getcpuclockid(thread, &clock));
        CHECK(clock_gettime(clock, &ts) == 0);
        m->cpu_ns = (uint64_t) ts.tv_sec * SEC + (uint64_t) ts.tv_nsec;
}

static unsigned long long inode_of(int fd) {
        struct stat st;

        CHECK(fstat(fd, &st) == 0);
        return st.st_ino;
}

int main(int argc, char *argv[]) {
        Scenario scenario = { .mutex = PTHREAD_MUTEX_INITIALIZER };
        Member members[N_MAX];
        pthread_t threads[N_MAX];
        size_t n;

        CHECK(argc == 3);
        bool is_busy = strcmp(argv[1], "busy") == 0;
        n = is_busy ? ELEMENTSOF(busy) : ELEMENTSOF(idle);
        memcpy(members, is_busy ? busy : idle, n * sizeof(Member));
        gate_init(&scenario.there);
        gate_init(&scenario.back);
        gate_init(&scenario.rest);
        gate_init(&scenario.leave);

        ready();
        scenario.end_ns = now_ns() + (uint64_t) atoi(argv[2]) * MSEC;
        for (size_t i = 0; i < n; i++) {
                members[i].scenario = &scenario;
                threads[i] = start_thread(run_member, &members[i]);
        }
        for (size_t i = 0; i < n; i++)
                gate_pass(&scenario.rest);
        for (size_t i = 0; i < n; i++)
                while (!is_asleep(members[i].tid))
                        sleep_ns(REST_NS);
        sleep_ns(REST_NS);
        for (size_t i = 0; i < n; i++)
                read_accounts(&members[i], threads[i]);

        printf("{\"mutex\":%llu,\"gate\":%llu,\"members\":[", (unsigned long long) (uintptr_t) &scenario.mutex,
                        inode_of(scenario.leave.fds[0]));
        for (size_t i = 0; i < n; i++) {
                const Member *m = &members[i];
                printf("%s{\"name\":\"%s\",\"tid\":%d,\"cpu_ns\":%llu,\"run_ns\":%llu,\"runqueue_ns\":%llu,"
                       "\"voluntary\":%lu,\"involuntary\":%lu}",
                                i ? "," : "", m->name, m->tid, (unsigned long long) m->cpu_ns,
                                (unsigned long long) m->used.run_ns, (unsigned long long) m->used.runqueue_ns,
                                m->voluntary, m->involuntary);
        }
        printf("]}");
        finish();
        gate_open(&scenario.leave, n);
        for (size_t i = 0; i < n; i++)
                join_thread(threads[i]);
        return EXIT_SUCCESS;
}
