/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A thread that does what must not hold up the main loop (the disk, large images), one job after the other. */
#pragma once

#include <systemd/sd-event.h>

#include "basic/macro.h"

typedef struct Worker Worker;
typedef struct Job Job;

/* Embedded at the start of a larger struct, which `done` frees. */
struct Job {
        void (*run)(Job *job);  /* on the worker's thread */
        void (*done)(Job *job); /* on the main loop, in the order in which jobs were given */
        Job *next;
};

int worker_new(sd_event *event, const char *name, Worker **ret);
/* Lets all jobs given so far finish and calls their `done`. */
Worker *worker_free(Worker *w);
DEFINE_CLEANUP(Worker *, worker_free);

void worker_give(Worker *w, Job *job);
/* Gives jobs so long to finish, and calls `done` of those that have. */
void worker_wait(Worker *w, int milliseconds);
