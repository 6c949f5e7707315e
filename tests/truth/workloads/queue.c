/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A queue with a condition variable: one producer with a known period, two consumers that wait for it. */
#include "workload.h"

#define N_CONSUMERS 2
#define N_ITEMS 30
#define PERIOD_NS (40 * MSEC)

typedef struct Queue {
        pthread_mutex_t mutex;
        pthread_cond_t filled;
        unsigned items;
        bool closed;
        _Atomic uint64_t signalled_ns;
        pid_t producer;
} Queue;

typedef struct Consumer {
        Queue *queue;
        Gate *gate;
        pid_t tid;
        Tally tally;
        unsigned taken;
} Consumer;

static void *run_consumer(void *argument) {
        Consumer *c = argument;
        Queue *q = c->queue;

        name_thread("consumer");
        c->tid = thread_id();
        gate_pass(c->gate);
        CHECK_THREAD(pthread_mutex_lock(&q->mutex));
        for (;;) {
                while (q->items == 0 && !q->closed) {
                        uint64_t start_ns = now_ns();
                        CHECK_THREAD(pthread_cond_wait(&q->filled, &q->mutex));
                        tally_add(&c->tally, q->signalled_ns - start_ns);
                }
                if (q->items == 0)
                        break;
                q->items--;
                c->taken++;
        }
        CHECK_THREAD(pthread_mutex_unlock(&q->mutex));
        return NULL;
}

static void *run_producer(void *argument) {
        Queue *q = argument;

        name_thread("producer");
        q->producer = thread_id();
        for (unsigned i = 0; i <= N_ITEMS; i++) {
                sleep_ns(PERIOD_NS);
                CHECK_THREAD(pthread_mutex_lock(&q->mutex));
                if (i < N_ITEMS)
                        q->items++;
                else
                        q->closed = true;
                CHECK_THREAD(pthread_mutex_unlock(&q->mutex));
                /* Outside of the mutex, so that no consumer wakes up only to wait for it. */
                q->signalled_ns = now_ns();
                CHECK_THREAD(i < N_ITEMS ? pthread_cond_signal(&q->filled) : pthread_cond_broadcast(&q->filled));
        }
        return NULL;
}

int main(void) {
        Queue queue = { .mutex = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER };
        Consumer consumers[N_CONSUMERS];
        pthread_t threads[N_CONSUMERS];
        Gate gate;

        gate_init(&gate);
        for (size_t i = 0; i < N_CONSUMERS; i++) {
                consumers[i] = (Consumer){ .queue = &queue, .gate = &gate };
                threads[i] = start_thread(run_consumer, &consumers[i]);
        }

        ready();
        gate_open(&gate, N_CONSUMERS);
        join_thread(start_thread(run_producer, &queue));
        for (size_t i = 0; i < N_CONSUMERS; i++)
                join_thread(threads[i]);

        printf("{\"producer\":%d,\"address\":%llu,\"size\":%zu,\"consumers\":[", queue.producer,
                        (unsigned long long) (uintptr_t) &queue.filled, sizeof(queue.filled));
        for (size_t i = 0; i < N_CONSUMERS; i++) {
                printf("%s{\"tid\":%d,\"taken\":%u,", i ? "," : "", consumers[i].tid, consumers[i].taken);
                print_tally(&consumers[i].tally);
                putchar('}');
        }
        printf("]}");
        finish();
        return EXIT_SUCCESS;
}
