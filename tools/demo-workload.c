/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The program of tools/demo: a shop whose clerks take the inventory lock for a moment at each request, and an auditor
 * who holds it for 60 ms ten times a second. Runs until it is killed, at most five minutes. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CLERKS 4

pthread_mutex_t inventory_lock = PTHREAD_MUTEX_INITIALIZER;
volatile unsigned long inventory;

static void pause_us(unsigned us) {
        struct timespec t = { .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000L };

        nanosleep(&t, NULL);
}

static void compute_us(unsigned us) {
        struct timespec begin, now;

        clock_gettime(CLOCK_MONOTONIC, &begin);
        do {
                inventory++;
                clock_gettime(CLOCK_MONOTONIC, &now);
        } while ((now.tv_sec - begin.tv_sec) * 1000000 + (now.tv_nsec - begin.tv_nsec) / 1000 < us);
}

static void *clerk(void *unused) {
        (void) unused;
        for (;;) {
                pthread_mutex_lock(&inventory_lock);
                compute_us(200);
                pthread_mutex_unlock(&inventory_lock);
                pause_us(2000); /* the network */
        }
        return NULL;
}

static void *auditor(void *unused) {
        (void) unused;
        for (;;) {
                pthread_mutex_lock(&inventory_lock);
                pause_us(60000); /* reads a file while it holds the lock */
                pthread_mutex_unlock(&inventory_lock);
                pause_us(40000);
        }
        return NULL;
}

int main(void) {
        pthread_t thread;

        for (int i = 0; i < CLERKS; i++) {
                char name[16] = "clerk-0";

                name[strlen(name) - 1] += (char) i;
                if (pthread_create(&thread, NULL, clerk, NULL) != 0)
                        return EXIT_FAILURE;
                pthread_setname_np(thread, name);
        }
        if (pthread_create(&thread, NULL, auditor, NULL) != 0)
                return EXIT_FAILURE;
        pthread_setname_np(thread, "auditor");
        alarm(300);
        pause();
        return EXIT_SUCCESS;
}
