/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* births threads|processes NUMBER PER_SECOND: threads, or processes that execute `mayfly`, at a steady pace. Each sleeps
 * for 2 ms, once, and ends. */
#include "workload.h"

#include <spawn.h>

#define SLEEP_NS (2 * MSEC)
#define STACK_SIZE (64U * 1024U)
#define PACE_NS (10 * MSEC)
#define AT_A_TIME 256

extern char **environ;

typedef struct Life {
        pid_t id;
        uint64_t begin_ns,
                        end_ns; /* of a thread: around its sleep. Of a process: from before its start to after its end */
} Life;

static Life *lives;
static unsigned n_lives, alive;
static char *mayfly;

static void *live(void *argument) {
        Life *l = argument;

        name_thread("mayfly");
        l->id = thread_id();
        l->begin_ns = now_ns();
        sleep_ns(SLEEP_NS);
        l->end_ns = now_ns();
        __atomic_sub_fetch(&alive, 1, __ATOMIC_RELEASE);
        return NULL;
}

static void begin_thread(Life *l) {
        static pthread_attr_t attributes;
        static bool known;
        pthread_t thread;

        if (!known) {
                CHECK_THREAD(pthread_attr_init(&attributes));
                CHECK_THREAD(pthread_attr_setstacksize(&attributes, STACK_SIZE));
                CHECK_THREAD(pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED));
                known = true;
        }
        CHECK_THREAD(pthread_create(&thread, &attributes, live, l));
}

static void begin_process(Life *l) {
        char *arguments[] = { mayfly, NULL };

        l->begin_ns = now_ns();
        CHECK_THREAD(posix_spawn(&l->id, mayfly, NULL, NULL, arguments, environ));
}

/* Those that have ended, of the ones that have been begun since the oldest that may still live. */
static void reap(unsigned *oldest, unsigned begun) {
        int status;
        pid_t pid;

        while (__atomic_load_n(&alive, __ATOMIC_RELAXED) > 0 && (pid = waitpid(-1, &status, WNOHANG)) > 0) {
                CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
                for (unsigned i = *oldest; i < begun; i++)
                        if (lives[i].id == pid && lives[i].end_ns == 0) {
                                lives[i].end_ns = now_ns();
                                break;
                        }
                while (*oldest < begun && lives[*oldest].end_ns)
                        (*oldest)++;
                __atomic_sub_fetch(&alive, 1, __ATOMIC_RELEASE);
        }
}

int main(int argc, char **argv) {
        unsigned per_second, begun = 0, oldest = 0;
        uint64_t start_ns, end_ns;
        bool threads;

        if (argc != 4)
                return 2;
        threads = strcmp(argv[1], "threads") == 0;
        n_lives = (unsigned) atoi(argv[2]);
        per_second = (unsigned) atoi(argv[3]);
        lives = calloc(n_lives, sizeof(*lives));
        CHECK(lives);
        CHECK(asprintf(&mayfly, "%.*s/mayfly", (int) (strrchr(argv[0], '/') - argv[0]), argv[0]) > 0);

        ready();
        start_ns = now_ns();
        while (begun < n_lives || __atomic_load_n(&alive, __ATOMIC_ACQUIRE) > 0) {
                uint64_t due = (now_ns() - start_ns) * per_second / SEC + 1;

                while (begun < n_lives && begun < due && __atomic_load_n(&alive, __ATOMIC_ACQUIRE) < AT_A_TIME) {
                        __atomic_add_fetch(&alive, 1, __ATOMIC_RELAXED);
                        (threads ? begin_thread : begin_process)(&lives[begun++]);
                }
                if (!threads)
                        reap(&oldest, begun);
                sleep_ns(PACE_NS);
        }
        end_ns = now_ns();

        printf("{\"sleep_ns\":%llu,\"played_ns\":%llu,\"lives\":[", (unsigned long long) SLEEP_NS,
                        (unsigned long long) (end_ns - start_ns));
        for (unsigned i = 0; i < n_lives; i++)
                printf("%s[%d,%llu,%llu]", i ? "," : "", (int) lives[i].id, (unsigned long long) lives[i].begin_ns,
                                (unsigned long long) lives[i].end_ns);
        printf("]}");
        finish();
        return EXIT_SUCCESS;
}
