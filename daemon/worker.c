/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "worker.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>

typedef struct Queue {
        Job *first, *last;
} Queue;

struct Worker {
        pthread_t thread;
        bool started;
        pthread_mutex_t lock; /* guards what follows */
        pthread_cond_t given;
        Queue waiting, finished;
        bool stop;

        int wakeup_fd; /* eventfd: something has finished */
        sd_event_source *source;
};

static void queue_push(Queue *q, Job *job) {
        job->next = NULL;
        if (q->last)
                q->last->next = job;
        else
                q->first = job;
        q->last = job;
}

static Job *queue_pop(Queue *q) {
        Job *job = q->first;

        if (job) {
                q->first = job->next;
                if (!q->first)
                        q->last = NULL;
        }
        return job;
}

static void *worker_main(void *userdata) {
        Worker *w = userdata;

        pthread_mutex_lock(&w->lock);
        for (;;) {
                uint64_t one = 1;
                Job *job = queue_pop(&w->waiting);

                if (!job) {
                        if (w->stop)
                                break;
                        pthread_cond_wait(&w->given, &w->lock);
                        continue;
                }
                pthread_mutex_unlock(&w->lock);
                job->run(job);
                pthread_mutex_lock(&w->lock);
                queue_push(&w->finished, job);
                if (write(w->wakeup_fd, &one, sizeof(one)) < 0)
                        continue; /* the counter is at its end: the main loop is awake already */
        }
        pthread_mutex_unlock(&w->lock);
        return NULL;
}

static void finish_jobs(Worker *w) {
        for (;;) {
                Job *job;

                pthread_mutex_lock(&w->lock);
                job = queue_pop(&w->finished);
                pthread_mutex_unlock(&w->lock);
                if (!job)
                        return;
                job->done(job);
        }
}

static int on_finished(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        Worker *w = userdata;
        uint64_t n;

        if (read(fd, &n, sizeof(n)) < 0 && errno != EAGAIN)
                return -errno;
        finish_jobs(w);
        return 0;
}

int worker_new(sd_event *event, const char *name, Worker **ret) {
        _cleanup_(worker_freep) Worker *w = NULL;
        sigset_t all, before;
        int r;

        w = calloc(1, sizeof(*w));
        if (!w)
                return -ENOMEM;
        pthread_mutex_init(&w->lock, NULL);
        pthread_cond_init(&w->given, NULL);
        w->wakeup_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (w->wakeup_fd < 0)
                return -errno;
        r = sd_event_add_io(event, &w->source, w->wakeup_fd, EPOLLIN, on_finished, w);
        if (r < 0)
                return r;

        /* Signals belong to the main loop. */
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, &before);
        r = -pthread_create(&w->thread, NULL, worker_main, w);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (r < 0)
                return r;
        w->started = true;
        pthread_setname_np(w->thread, name);

        *ret = TAKE_PTR(w);
        return 0;
}

Worker *worker_free(Worker *w) {
        if (!w)
                return NULL;
        if (w->started) {
                pthread_mutex_lock(&w->lock);
                w->stop = true;
                pthread_cond_signal(&w->given);
                pthread_mutex_unlock(&w->lock);
                pthread_join(w->thread, NULL);
                finish_jobs(w);
                /* What `done` has given since: there is no thread for it any more. */
                for (Job *job; (job = queue_pop(&w->waiting));) {
                        job->run(job);
                        job->done(job);
                }
        }
        sd_event_source_disable_unref(w->source);
        if (w->wakeup_fd >= 0)
                close(w->wakeup_fd);
        pthread_cond_destroy(&w->given);
        pthread_mutex_destroy(&w->lock);
        free(w);
        return NULL;
}

void worker_give(Worker *w, Job *job) {
        pthread_mutex_lock(&w->lock);
        queue_push(&w->waiting, job);
        pthread_cond_signal(&w->given);
        pthread_mutex_unlock(&w->lock);
}

void worker_wait(Worker *w, int milliseconds) {
        struct pollfd fd = { .fd = w->wakeup_fd, .events = POLLIN };

        (void) poll(&fd, 1, milliseconds);
        finish_jobs(w);
}
