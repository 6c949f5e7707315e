/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Images of the last minute, made on a thread of their own: see manager_snapshot(). */
#include "describe.h"
#include "../dbus/names.h"
#include "manager.h"

typedef struct ImageJob {
        Job job;
        Manager *manager;
        Batch *batches[LIVE_BATCHES_MAX + 2];
        size_t n;
        int r, fd;
        char *error;
        snapshot_answer answer;
        void *userdata;
} ImageJob;

static void image_run(Job *job) {
        ImageJob *j = (ImageJob *) job;

        j->r = store_image(&j->manager->machine, j->batches, j->n, &j->fd, &j->error);
}

static ImageJob *image_free(ImageJob *j) {
        if (!j)
                return NULL;
        for (size_t i = 0; i < j->n; i++)
                batch_unref(j->batches[i]);
        free(j->error);
        free(j);
        return NULL;
}
DEFINE_CLEANUP(ImageJob *, image_free);

static void image_done(Job *job) {
        ImageJob *j = (ImageJob *) job;

        j->manager->n_snapshots--;
        j->answer(j->r, j->fd, j->error, j->userdata);
        image_free(j);
}

int manager_snapshot(Manager *m, snapshot_answer answer, void *userdata, sd_bus_error *error) {
        _cleanup_(image_freep) ImageJob *j = NULL;
        int r;

        if (m->n_snapshots >= SNAPSHOTS_MAX)
                return sd_bus_error_setf(error, PRISM_ERROR_LIMIT_REACHED,
                                "%u images are being made already; try again", m->n_snapshots);
        r = manager_collect(m, false, NULL);
        if (r < 0)
                return r;
        j = calloc(1, sizeof(*j));
        if (!j)
                return -ENOMEM;
        j->job.run = image_run;
        j->job.done = image_done;
        j->manager = m;
        j->fd = -1;
        j->answer = answer;
        j->userdata = userdata;

        /* Descriptions first, last what goes on right now. */
        for (unsigned i = 0; i < 2; i++) {
                j->batches[j->n] = batch_new();
                if (!j->batches[j->n])
                        return -ENOMEM;
                j->n++;
        }
        r = collector_peek(m->collector, j->batches[1]);
        if (r >= 0)
                r = describe_all(j->batches[0], collector_registry(m->collector), collector_clock(m->collector));
        if (r < 0)
                return r;
        for (unsigned i = 0; i < m->n_live; i++)
                j->batches[j->n++] = batch_ref(m->live[(m->first_live + i) % LIVE_BATCHES_MAX].batch);
        m->n_snapshots++;
        worker_give(m->images, &TAKE_PTR(j)->job);
        return 0;
}
