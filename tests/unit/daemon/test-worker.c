/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* daemon/worker.c: where jobs run, in which order, and that none is left behind. */
#include "worker.h"
#include "daemon-unit.h"

#include <pthread.h>
#include <sys/resource.h>

typedef struct Log {
        unsigned *ran, *done; /* numbers of jobs; `ran` is the worker's until they are done */
        size_t n_ran, n_done, limit;
        Worker *worker;
} Log;

typedef struct Numbered {
        Job job;
        Log *log;
        unsigned number, again, sleep_us;
        pthread_t ran_on;
        sigset_t blocked;
        char comm[16];
} Numbered;

static void numbered_run(Job *job) {
        Numbered *n = (Numbered *) job;

        if (n->sleep_us)
                (void) usleep(n->sleep_us);
        n->ran_on = pthread_self();
        (void) pthread_sigmask(SIG_BLOCK, NULL, &n->blocked);
        (void) prctl(PR_GET_NAME, n->comm);
        n->log->ran[n->log->n_ran++] = n->number;
}

static void give(Log *log, unsigned number, unsigned again, unsigned sleep_us);

static void numbered_done(Job *job) {
        Numbered *n = (Numbered *) job;
        Log *log = n->log;

        ck_assert(!pthread_equal(n->ran_on, pthread_self()));
        ck_assert_int_eq(sigismember(&n->blocked, SIGTERM), 1);
        ck_assert_int_eq(sigismember(&n->blocked, SIGINT), 1);
        ck_assert_str_eq(n->comm, "prism-unit");
        log->done[log->n_done++] = n->number;
        if (n->again)
                give(log, n->number + 1, n->again - 1, 0);
        free(n);
}

static void give(Log *log, unsigned number, unsigned again, unsigned sleep_us) {
        Numbered *n = calloc(1, sizeof(*n));

        ck_assert_ptr_nonnull(n);
        *n = (Numbered){
                .job = { .run = numbered_run, .done = numbered_done },
                .log = log,
                .number = number,
                .again = again,
                .sleep_us = sleep_us,
        };
        worker_give(log->worker, &n->job);
}

static Log log_new(sd_event *event, size_t limit) {
        Log log = { .limit = limit };

        log.ran = calloc(limit, sizeof(*log.ran));
        log.done = calloc(limit, sizeof(*log.done));
        ck_assert_ptr_nonnull(log.ran);
        ck_assert_ptr_nonnull(log.done);
        ck_assert_int_eq(worker_new(event, "prism-unit", &log.worker), 0);
        return log;
}

static void log_free(Log *log) {
        free(log->ran);
        free(log->done);
}

static void assert_order(const Log *log, size_t n) {
        ck_assert_uint_eq(log->n_ran, n);
        ck_assert_uint_eq(log->n_done, n);
        for (size_t i = 0; i < n; i++) {
                ck_assert_uint_eq(log->ran[i], i);
                ck_assert_uint_eq(log->done[i], i);
        }
}

static void run_until(sd_event *event, const Log *log, size_t n) {
        while (log->n_done < n)
                ck_assert_int_ge(sd_event_run(event, 10 * USEC_PER_SEC), 1);
}

START_TEST(test_order) {
        sd_event *event = NULL;
        Log log;

        ck_assert_int_ge(sd_event_new(&event), 0);
        log = log_new(event, 3000);
        for (unsigned i = 0; i < 3000; i++) {
                give(&log, i, 0, 0);
                if (i % 7 == 0)
                        ck_assert_int_ge(sd_event_run(event, 0), 0);
        }
        run_until(event, &log, 3000);
        log.worker = worker_free(log.worker);
        assert_order(&log, 3000);
        log_free(&log);
        sd_event_unref(event);
}
END_TEST

/* A job may give the next one when it is done. */
START_TEST(test_chain) {
        sd_event *event = NULL;
        Log log;

        ck_assert_int_ge(sd_event_new(&event), 0);
        log = log_new(event, 200);
        give(&log, 0, 199, 0);
        run_until(event, &log, 200);
        log.worker = worker_free(log.worker);
        assert_order(&log, 200);
        log_free(&log);
        sd_event_unref(event);
}
END_TEST

/* Nothing is done behind the main loop's back, and freeing waits for what was given. */
START_TEST(test_free_waits) {
        sd_event *event = NULL;
        Log log;

        ck_assert_int_ge(sd_event_new(&event), 0);
        log = log_new(event, 50);
        for (unsigned i = 0; i < 50; i++)
                give(&log, i, 0, 2000);
        ck_assert_uint_eq(log.n_done, 0);
        log.worker = worker_free(log.worker);
        assert_order(&log, 50);
        log_free(&log);
        sd_event_unref(event);
}
END_TEST

START_TEST(test_nothing_given) {
        sd_event *event = NULL;
        Worker *w = NULL;

        ck_assert_int_ge(sd_event_new(&event), 0);
        for (unsigned i = 0; i < 100; i++) {
                ck_assert_int_eq(worker_new(event, "prism-unit", &w), 0);
                w = worker_free(w);
                ck_assert_ptr_null(w);
        }
        ck_assert_ptr_null(worker_free(NULL));
        sd_event_unref(event);
}
END_TEST

/* Where no descriptor is left, an error and nothing else. */
START_TEST(test_no_descriptors) {
        int fds[1024], first, n = 0;
        sd_event *event = NULL;
        Worker *w = (Worker *) 1;

        ck_assert_int_ge(sd_event_new(&event), 0);
        first = dup(STDIN_FILENO);
        ck_assert_int_ge(first, 0);
        {
                struct rlimit before, few;

                ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
                few = before;
                few.rlim_cur = (rlim_t) first + 20;
                ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
                while (n < (int) ELEMENTSOF(fds) && (fds[n] = dup(first)) >= 0)
                        n++;
                ck_assert_int_eq(worker_new(event, "prism-unit", &w), -EMFILE);
                ck_assert_ptr_eq(w, (Worker *) 1);
                ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
        }
        while (n > 0)
                close(fds[--n]);
        ck_assert_int_eq(fcntl(STDIN_FILENO, F_GETFD) >= 0, 1);
        close(first);
        sd_event_unref(event);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("worker");
        TCase *tests = tcase_create("worker");

        tcase_set_timeout(tests, 60);
        tcase_add_test(tests, test_order);
        tcase_add_test(tests, test_chain);
        tcase_add_test(tests, test_free_waits);
        tcase_add_test(tests, test_nothing_given);
        tcase_add_test(tests, test_no_descriptors);
        suite_add_tcase(suite, tests);
        return run_suite(suite);
}
