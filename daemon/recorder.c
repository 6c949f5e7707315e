/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "recorder.h"

#include <sys/stat.h>

#include "worker.h"

/* What may wait for the disk: two minutes of ticks, or this much memory. */
#define QUEUE_BATCHES_MAX 120
#define QUEUE_BYTES_MAX (32 * 1024 * 1024)
#define CHECKPOINT_EVERY_BATCHES 30
/* The store's table of keys is emptied after this many descriptions, so that it does not grow for ever. */
#define DESCRIPTIONS_PER_EPOCH 500000

struct Recorder {
        sd_event *event;
        RecorderHooks hooks;
        Losses *losses;
        char *database;

        Worker *worker;
        Store *store; /* used by jobs on the worker's thread only, once it runs */

        Recording *recordings;
        uint64_t last_number;
        uint64_t epoch;       /* all is described again in each */
        uint64_t given_epoch; /* of the last batch given: a newer one makes the store forget its keys first */
        uint64_t descriptions;
        size_t queue_batches, queue_bytes, since_checkpoint;
        char *store_error; /* NULL: the last write went well */
};

static Recording *recording_free(Recording *recording) {
        sd_event_source_disable_unref(recording->timer);
        free(recording->name);
        free(recording->calls);
        free(recording);
        return NULL;
}

const char *recording_state_name(RecordingState s) {
        static const char *const names[] = {
                [RECORDING_STARTING] = "running",
                [RECORDING_RUNNING] = "running",
                [RECORDING_ENDING] = "running",
                [RECORDING_FINISHED] = "finished",
                [RECORDING_INTERRUPTED] = "interrupted",
        };

        return names[s];
}

static void append(Recorder *r, Recording *recording) {
        Recording **end = &r->recordings;

        while (*end)
                end = &(*end)->next;
        *end = recording;
}

static void detach(Recorder *r, Recording *recording) {
        for (Recording **p = &r->recordings; *p; p = &(*p)->next)
                if (*p == recording) {
                        *p = recording->next;
                        return;
                }
}

/* {"calls":"none",...}: the only option so far is a word without special characters. */
static char *calls_of_options(const char *options) {
        const char *p = options ? strstr(options, "\"calls\":\"") : NULL;

        if (!p)
                return strdup("none");
        p += strlen("\"calls\":\"");
        return strndup(p, strcspn(p, "\""));
}

static int load_recordings(Recorder *r, char **ret_error) {
        StoreRecording *stored = NULL;
        size_t n = 0;
        int k;

        k = store_recordings_interrupt(r->store, ret_error);
        if (k >= 0)
                k = store_recordings(r->store, &stored, &n, ret_error);
        for (size_t i = 0; k >= 0 && i < n; i++) {
                Recording *recording = calloc(1, sizeof(*recording));

                if (!recording) {
                        k = -ENOMEM;
                        break;
                }
                recording->recorder = r;
                recording->number = ++r->last_number;
                recording->id = stored[i].id;
                recording->name = TAKE_PTR(stored[i].name);
                recording->start_ns = stored[i].start_ns;
                recording->end_ns = stored[i].end_ns;
                recording->pinned = stored[i].pinned;
                recording->state = streq(stored[i].state, "finished") ? RECORDING_FINISHED : RECORDING_INTERRUPTED;
                recording->calls = calls_of_options(stored[i].options);
                append(r, recording);
        }
        for (size_t i = 0; i < n; i++)
                store_recording_done(&stored[i]);
        free(stored);
        return k;
}

int recorder_new(sd_event *event, const char *database, const StoreMachine *machine, Losses *losses,
                const RecorderHooks *hooks, Recorder **ret, char **ret_error) {
        _cleanup_(recorder_freep) Recorder *r = NULL;
        int k;

        r = calloc(1, sizeof(*r));
        if (!r)
                return -ENOMEM;
        r->event = sd_event_ref(event);
        r->hooks = *hooks;
        r->losses = losses;
        r->epoch = 1;
        r->database = strdup(database);
        if (!r->database)
                return -ENOMEM;
        k = store_open(database, machine, &r->store, ret_error);
        if (k >= 0)
                k = load_recordings(r, ret_error);
        if (k >= 0)
                k = worker_new(event, "prism-writer", &r->worker);
        if (k < 0)
                return k;
        *ret = TAKE_PTR(r);
        return 0;
}

Recorder *recorder_free(Recorder *r) {
        if (!r)
                return NULL;
        worker_free(r->worker); /* finishes what is queued */
        while (r->recordings) {
                Recording *recording = r->recordings;

                r->recordings = recording->next;
                recording_free(recording);
        }
        store_close(r->store);
        sd_event_unref(r->event);
        free(r->store_error);
        free(r->database);
        free(r);
        return NULL;
}

Recording *recorder_recordings(Recorder *r) {
        return r->recordings;
}

Recording *recorder_find(Recorder *r, const char *name) {
        for (Recording *recording = r->recordings; recording; recording = recording->next)
                if (streq(recording->name, name))
                        return recording;
        return NULL;
}

Recording *recorder_by_number(Recorder *r, uint64_t number) {
        for (Recording *recording = r->recordings; recording; recording = recording->next)
                if (recording->number == number)
                        return recording;
        return NULL;
}

static const char *const calls_modes[] = {
        [CALLS_NONE] = "none",
        [CALLS_SAMPLED] = "sampled",
        [CALLS_FULL] = "full",
};

const char *calls_mode_name(CallsMode mode) {
        return (size_t) mode < ELEMENTSOF(calls_modes) ? calls_modes[mode] : "none";
}

int calls_mode_from_name(const char *name) {
        for (size_t i = 0; i < ELEMENTSOF(calls_modes); i++)
                if (streq(calls_modes[i], name))
                        return (int) i;
        return -EINVAL;
}

CallsMode recorder_calls(const Recorder *r) {
        CallsMode most = CALLS_NONE;

        for (const Recording *recording = r->recordings; recording; recording = recording->next) {
                int mode = recording->calls ? calls_mode_from_name(recording->calls) : -EINVAL;

                if ((recording->state == RECORDING_STARTING || recording->state == RECORDING_RUNNING) &&
                                mode > (int) most)
                        most = (CallsMode) mode;
        }
        return most;
}

unsigned recorder_n_running(const Recorder *r) {
        unsigned n = 0;

        for (Recording *recording = r->recordings; recording; recording = recording->next)
                n += recording->state <= RECORDING_ENDING;
        return n;
}

bool recorder_is_recording(const Recorder *r) {
        return recorder_n_running(r) > 0;
}

bool recorder_wanted(const Recorder *r, uint64_t from, uint64_t until) {
        for (Recording *recording = r->recordings; recording; recording = recording->next)
                if (recording->state <= RECORDING_ENDING && until > recording->start_boot_ns &&
                                from < recording->end_boot_ns)
                        return true;
        return false;
}

uint64_t recorder_epoch(const Recorder *r) {
        return r->epoch;
}

size_t recorder_queue_length(const Recorder *r) {
        return r->queue_batches;
}

size_t recorder_queue_limit(void) {
        return QUEUE_BATCHES_MAX;
}

const char *recorder_store_state(const Recorder *r) {
        return r->store_error ?: "ok";
}

uint64_t recorder_store_bytes(const Recorder *r) {
        _cleanup_free_ char *wal = NULL;
        uint64_t total = 0;
        struct stat st;

        if (stat(r->database, &st) == 0)
                total += (uint64_t) st.st_size;
        if (asprintf(&wal, "%s-wal", r->database) >= 0 && stat(wal, &st) == 0)
                total += (uint64_t) st.st_size;
        return total;
}

static void store_answered(Recorder *r, int k, const char *error) {
        bool failed = r->store_error;

        free(r->store_error);
        r->store_error = k < 0 ? strdup(error ?: strerror(-k)) : NULL;
        if ((k < 0) != failed) /* once, not once a second */
                r->hooks.failed(k, error, r->hooks.userdata);
}

/* ---- Batches ---- */

typedef struct WriteJob {
        Job job;
        Recorder *recorder;
        Batch *batch;
        size_t bytes, rows;
        bool forget, checkpoint;
        int r;
        char *error;
} WriteJob;

static void write_run(Job *job) {
        WriteJob *j = (WriteJob *) job;

        if (j->forget)
                store_forget_keys(j->recorder->store);
        j->r = store_write(j->recorder->store, j->batch, &j->error);
        if (j->r >= 0 && j->checkpoint)
                (void) store_checkpoint(j->recorder->store);
}

static void write_done(Job *job) {
        WriteJob *j = (WriteJob *) job;
        Recorder *r = j->recorder;

        r->queue_batches--;
        r->queue_bytes -= j->bytes;
        if (j->r < 0) {
                losses_count(r->losses, "store", "write-failed", j->rows);
                r->epoch++;
        }
        store_answered(r, j->r, j->error);
        batch_unref(j->batch);
        free(j->error);
        free(j);
}

void recorder_give(Recorder *r, Batch *b) {
        size_t rows = batch_rows(b), bytes = batch_bytes(b);
        WriteJob *j;

        if (batch_is_empty(b))
                return;
        if (r->queue_batches >= QUEUE_BATCHES_MAX || r->queue_bytes + bytes > QUEUE_BYTES_MAX) {
                losses_count(r->losses, "store", "queue-full", rows);
                r->epoch++;
                return;
        }
        j = calloc(1, sizeof(*j));
        if (!j) {
                losses_count(r->losses, "store", "memory", rows);
                r->epoch++;
                return;
        }
        j->job.run = write_run;
        j->job.done = write_done;
        j->recorder = r;
        j->batch = batch_ref(b);
        j->bytes = bytes;
        j->rows = rows;
        j->forget = r->given_epoch != r->epoch;
        r->given_epoch = r->epoch;
        if (++r->since_checkpoint >= CHECKPOINT_EVERY_BATCHES) {
                j->checkpoint = true;
                r->since_checkpoint = 0;
        }
        r->descriptions += b->n_processes + b->n_threads + b->n_resources;
        if (r->descriptions > DESCRIPTIONS_PER_EPOCH) {
                /* For the batches that follow; this one was made before. */
                r->descriptions = 0;
                r->epoch++;
        }
        r->queue_batches++;
        r->queue_bytes += bytes;
        worker_give(r->worker, &j->job);
}

/* Losses that no tick will write any more, because nothing is recorded: those of a recording's last batches. */
static void give_losses(Recorder *r, int64_t ts_ns) {
        _cleanup_(batch_unrefp) Batch *b = batch_new();

        for (size_t i = 0; b && i < r->losses->n; i++) {
                Loss *l = &r->losses->entries[i];
                BatchLoss row = {
                        .ts_ns = ts_ns, .part = l->part, .reason = l->reason, .count = l->total - l->reported
                };

                if (row.count > 0 && batch_add_loss(b, &row) >= 0)
                        l->reported = l->total;
        }
        if (b)
                recorder_give(r, b);
}

/* ---- Recordings ---- */

typedef enum Step {
        STEP_BEGIN,
        STEP_END,
        STEP_DELETE,
} Step;

typedef struct RecordingJob {
        Job job;
        Recorder *recorder;
        Recording *recording; /* for the main loop */
        Step step;
        char *name, *options;
        const char *state;
        int64_t id, start_ns, end_ns;
        int64_t cursor_ns; /* how far a deletion has come */
        int r;
        char *error;
        recorder_answer answer;
        void *userdata;
} RecordingJob;

static void recording_run(Job *job) {
        RecordingJob *j = (RecordingJob *) job;
        Store *s = j->recorder->store;

        switch (j->step) {
        case STEP_BEGIN:
                j->r = store_recording_begin(s, j->name, j->start_ns, j->options, &j->id, &j->error);
                if (j->r >= 0) {
                        j->recording->store_id = j->id;
                        (void) store_checkpoint(s); /* whoever was told of it finds it after a power cut */
                }
                break;
        case STEP_END:
                /* Given perhaps before the main loop knew the id. */
                j->r = store_recording_end(s, j->recording->store_id, j->end_ns, j->state, &j->error);
                if (j->r >= 0)
                        (void) store_checkpoint(s);
                break;
        case STEP_DELETE:
                j->r = store_recording_delete_some(s, j->id, &j->cursor_ns, &j->error);
                break;
        }
}

static void recording_remove(Recorder *r, Recording *recording) {
        r->hooks.removed(recording, r->hooks.userdata);
        detach(r, recording);
        recording_free(recording);
}

static int on_expired(sd_event_source *source, uint64_t usec, void *userdata) {
        Recording *recording = userdata;
        Recorder *r = recording->recorder;

        r->hooks.expired(recording, r->hooks.userdata);
        return 0;
}

static void recording_done(Job *job) {
        RecordingJob *j = (RecordingJob *) job;
        Recording *recording = j->recording;
        Recorder *r = j->recorder;
        bool remove = false;

        if (j->step == STEP_DELETE && j->r > 0) {
                /* A piece at a time: batches that wait get their turn in between. */
                worker_give(r->worker, &j->job);
                return;
        }
        store_answered(r, j->r == -EEXIST || j->r == -ENOENT || j->r == -EINPROGRESS ? 0 : j->r, j->error);
        switch (j->step) {
        case STEP_BEGIN:
                if (j->r < 0) {
                        remove = true;
                        break;
                }
                recording->id = j->id;
                if (recording->state == RECORDING_STARTING)
                        recording->state = RECORDING_RUNNING;
                r->hooks.changed(recording, r->hooks.userdata);
                break;
        case STEP_END:
                recording->state =
                                streq(j->state, "finished") && j->r >= 0 ? RECORDING_FINISHED : RECORDING_INTERRUPTED;
                give_losses(r, recording->end_ns);
                r->hooks.changed(recording, r->hooks.userdata);
                break;
        case STEP_DELETE:
                recording->deleting = false;
                remove = j->r >= 0;
                break;
        }
        if (j->answer)
                j->answer(recording, j->r, j->error, j->userdata);
        if (remove)
                recording_remove(r, recording);
        free(j->name);
        free(j->options);
        free(j->error);
        free(j);
}

static int give_step(Recorder *r, Recording *recording, Step step, const char *options, const char *state,
                recorder_answer answer, void *userdata) {
        RecordingJob *j = calloc(1, sizeof(*j));

        if (!j)
                return -ENOMEM;
        j->job.run = recording_run;
        j->job.done = recording_done;
        j->recorder = r;
        j->recording = recording;
        j->step = step;
        j->name = strdup(recording->name);
        j->options = options ? strdup(options) : NULL;
        j->state = state;
        j->id = recording->id;
        j->start_ns = recording->start_ns;
        j->end_ns = recording->end_ns;
        j->answer = answer;
        j->userdata = userdata;
        worker_give(r->worker, &j->job);
        return 0;
}

int recorder_begin(Recorder *r, const char *name, const char *calls, uint64_t duration_ns, uint64_t boundary_boot_ns,
                int64_t boundary_unix_ns, recorder_answer answer, void *userdata, Recording **ret) {
        char options[128];
        Recording *recording;
        int k;

        recording = calloc(1, sizeof(*recording));
        if (!recording)
                return -ENOMEM;
        recording->recorder = r;
        recording->name = strdup(name);
        recording->calls = strdup(calls);
        if (!recording->name || !recording->calls) {
                recording_free(recording);
                return -ENOMEM;
        }
        recording->number = ++r->last_number;
        recording->state = RECORDING_STARTING;
        recording->start_ns = boundary_unix_ns;
        recording->start_boot_ns = boundary_boot_ns;
        recording->end_boot_ns = UINT64_MAX;
        recording->duration_ns = duration_ns;
        recording->pinned = true;

        snprintf(options, sizeof(options), "{\"calls\":\"%s\",\"duration_ns\":%llu}", calls,
                        (unsigned long long) duration_ns);
        k = give_step(r, recording, STEP_BEGIN, options, NULL, answer, userdata);
        if (k < 0) {
                recording_free(recording);
                return k;
        }
        if (duration_ns &&
                        sd_event_add_time(r->event, &recording->timer, CLOCK_BOOTTIME,
                                        (boundary_boot_ns + duration_ns) / NSEC_PER_USEC, 1, on_expired, recording) < 0)
                losses_count(r->losses, "store", "memory", 1); /* it runs until it is stopped */
        append(r, recording);
        *ret = recording;
        return 0;
}

void recorder_end_begin(Recording *recording, uint64_t boundary_boot_ns, int64_t boundary_unix_ns) {
        recording->state = RECORDING_ENDING;
        recording->end_boot_ns = boundary_boot_ns;
        recording->end_ns = boundary_unix_ns;
        recording->timer = sd_event_source_disable_unref(recording->timer);
}

int recorder_end_finish(Recording *recording, bool interrupted, recorder_answer answer, void *userdata) {
        return give_step(recording->recorder, recording, STEP_END, NULL, interrupted ? "interrupted" : "finished",
                        answer, userdata);
}

int recorder_delete(Recording *recording, recorder_answer answer, void *userdata) {
        int k;

        k = give_step(recording->recorder, recording, STEP_DELETE, NULL, NULL, answer, userdata);
        if (k >= 0)
                recording->deleting = true;
        return k;
}

/* ---- Indicators ---- */

typedef struct KpiJob {
        Job job;
        Recorder *recorder;
        char *name;
        StoreKpi *points;
        size_t n;
        int r;
        char *error;
        recorder_answer answer;
        void *userdata;
} KpiJob;

static KpiJob *kpi_free(KpiJob *j) {
        if (!j)
                return NULL;
        free(j->name);
        free(j->points);
        free(j->error);
        free(j);
        return NULL;
}
DEFINE_CLEANUP(KpiJob *, kpi_free);

static void kpi_run(Job *job) {
        KpiJob *j = (KpiJob *) job;

        j->r = store_add_kpi(j->recorder->store, j->name, j->points, j->n, &j->error);
}

static void kpi_done(Job *job) {
        KpiJob *j = (KpiJob *) job;

        store_answered(j->recorder, j->r == -EINVAL ? 0 : j->r, j->error);
        j->answer(NULL, j->r, j->error, j->userdata);
        kpi_free(j);
}

int recorder_add_kpi(Recorder *r, const char *name, const StoreKpi *points, size_t n, recorder_answer answer,
                void *userdata) {
        _cleanup_(kpi_freep) KpiJob *j = NULL;

        j = calloc(1, sizeof(*j));
        if (!j)
                return -ENOMEM;
        j->name = strdup(name);
        j->points = calloc(n, sizeof(*points));
        if (!j->name || !j->points)
                return -ENOMEM;
        memcpy(j->points, points, n * sizeof(*points));
        j->n = n;
        j->job.run = kpi_run;
        j->job.done = kpi_done;
        j->recorder = r;
        j->answer = answer;
        j->userdata = userdata;
        worker_give(r->worker, &TAKE_PTR(j)->job);
        return 0;
}
