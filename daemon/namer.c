/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "namer.h"

#include "futex-name.h"
#include "object-name.h"
#include "worker.h"

#define WAIT_MILLISECONDS 100

typedef struct Question {
        ResourceKey id;
        uint32_t pid;
        uint64_t address;
        char *name;
} Question;

typedef struct NameJob {
        Job job;
        Namer *namer;
        Question questions[NAMER_BATCH];
        size_t n;
} NameJob;

struct Namer {
        Worker *worker;
        NameJob *asked; /* being filled; NULL: nothing to ask */
        bool busy;      /* a batch is on its way */
        namer_found found;
        void *userdata;
};

static void look_up(Job *job) {
        NameJob *j = (NameJob *) job;

        for (size_t i = 0; i < j->n; i++) {
                Question *q = &j->questions[i];

                q->name = q->id.kind == PRISM_KIND_FUTEX ? futex_name(q->pid, q->address)
                                                         : object_path_by_mapping(q->pid, &q->id);
        }
}

static void give(Namer *n) {
        if (n->busy || !n->asked)
                return;
        n->busy = true;
        worker_give(n->worker, &n->asked->job);
        n->asked = NULL;
}

static void deliver(Job *job) {
        NameJob *j = (NameJob *) job;
        Namer *n = j->namer;

        for (size_t i = 0; i < j->n; i++)
                if (j->questions[i].name)
                        n->found(&j->questions[i].id, j->questions[i].name, n->userdata);
        free(j);
        n->busy = false;
        give(n);
}

int namer_new(sd_event *event, namer_found found, void *userdata, Namer **ret) {
        _cleanup_(namer_freep) Namer *n = NULL;
        int r;

        n = calloc(1, sizeof(*n));
        if (!n)
                return -ENOMEM;
        n->found = found;
        n->userdata = userdata;
        r = worker_new(event, "prism-names", &n->worker);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(n);
        return 0;
}

Namer *namer_free(Namer *n) {
        if (!n)
                return NULL;
        free(n->asked);
        n->asked = NULL;
        worker_free(n->worker);
        free(n);
        return NULL;
}

int namer_ask(Namer *n, const ResourceKey *id, uint32_t pid, uint64_t address) {
        if (!n->asked) {
                n->asked = calloc(1, sizeof(*n->asked));
                if (!n->asked)
                        return -ENOMEM;
                n->asked->job.run = look_up;
                n->asked->job.done = deliver;
                n->asked->namer = n;
        }
        if (n->asked->n == NAMER_BATCH)
                return -EBUSY;
        n->asked->questions[n->asked->n++] = (Question){ .id = *id, .pid = pid, .address = address };
        return 0;
}

void namer_flush(Namer *n) {
        give(n);
}

void namer_wait(Namer *n) {
        if (n->busy)
                worker_wait(n->worker, WAIT_MILLISECONDS);
}
