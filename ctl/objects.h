/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The targets and recordings of a running prismd, as its bus objects show them. */
#pragma once

#include "client.h"

typedef struct TargetProcess {
        uint32_t pid;
        char *comm, *found_by;
        uint32_t threads;
} TargetProcess;

typedef struct Target {
        char *path;
        char *kind, *name, *follow;
        uint32_t depth, threads;
        TargetProcess *processes;
        size_t n_processes;
} Target;

typedef struct Targets {
        Target *items;
        size_t n;
} Targets;

typedef struct Recording {
        char *path; /* NULL: read from a database */
        char *name, *state, *calls;
        int64_t start_ns, end_ns; /* end_ns 0: running */
        bool pinned;
} Recording;

typedef struct Recordings {
        Recording *items;
        size_t n;
} Recordings;

void targets_done(Targets *t);
void recordings_done(Recordings *r);

/* Objects that go away while they are read are left out. */
int targets_read(Client *c, Targets *ret, char **ret_error);
int recordings_read(Client *c, Recordings *ret, char **ret_error);

const Target *targets_find(const Targets *t, const char *name);          /* NULL if there is none */
const Recording *recordings_find(const Recordings *r, const char *name); /* NULL if there is none */
