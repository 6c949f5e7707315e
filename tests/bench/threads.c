/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Starts threads on small stacks. They sleep for ever, or each wakes so many times a second, and not all at once.
 * Says "ready" when all of them are there, and ends with its input. usage: threads NUMBER WAKES-PER-SECOND */

#include <err.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_SECOND 1000000000L
#define STACK_SIZE (32 * 1024)

static long period_ns; /* 0: never */

static void *sleeper(void *arg) {
        (void) arg;
        for (;;)
                pause();
        return NULL;
}

static long ns_between(const struct timespec *from, const struct timespec *to) {
        return (to->tv_sec - from->tv_sec) * NS_PER_SECOND + to->tv_nsec - from->tv_nsec;
}

/* arg: what part of a period it begins late, in ns. */
static void *waker(void *arg) {
        struct timespec next, now;

        clock_gettime(CLOCK_MONOTONIC, &next);
        for (long ns = (long) (intptr_t) arg;; ns = period_ns) {
                ns += next.tv_nsec;
                next.tv_sec += ns / NS_PER_SECOND;
                next.tv_nsec = ns % NS_PER_SECOND;
                clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);

                /* On a machine that is too full what was missed is not made up for: that would keep it full. */
                clock_gettime(CLOCK_MONOTONIC, &now);
                if (ns_between(&next, &now) > period_ns)
                        next = now;
        }
        return NULL;
}

int main(int argc, char *argv[]) {
        pthread_attr_t attributes;
        char byte;

        if (argc != 3)
                errx(2, "usage: threads NUMBER WAKES-PER-SECOND");
        long number = atol(argv[1]);
        double rate = atof(argv[2]);
        if (number < 1 || rate < 0)
                errx(2, "an argument is out of range");
        if (rate > 0)
                period_ns = (long) (NS_PER_SECOND / rate);

        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, STACK_SIZE);
        pthread_attr_setguardsize(&attributes, 0); /* a mapping each is all that they need */
        for (long i = 0; i < number; i++) {
                pthread_t thread;
                void *late = (void *) (intptr_t) (period_ns / number * i);
                errno = pthread_create(&thread, &attributes, period_ns > 0 ? waker : sleeper, late);
                if (errno != 0)
                        err(1, "thread %ld", i);
        }

        puts("ready");
        fflush(stdout);
        while (read(STDIN_FILENO, &byte, 1) > 0)
                ;
        _exit(0);
}
