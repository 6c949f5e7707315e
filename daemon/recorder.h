/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Recordings, and the thread that writes them. The main loop never waits for the disk: batches go through a bounded
 * queue, and what does not fit is a counted loss. */
#pragma once

#include <systemd/sd-event.h>

#include "batch.h"
#include "clock.h"
#include "losses.h"
#include "store.h"

typedef struct Recorder Recorder;
typedef struct Recording Recording;

typedef enum RecordingState {
        RECORDING_STARTING, /* the store has not confirmed it yet */
        RECORDING_RUNNING,
        RECORDING_ENDING, /* its last rows are on their way */
        RECORDING_FINISHED,
        RECORDING_INTERRUPTED,
} RecordingState;

/* How much of the time system calls are counted. */
typedef enum CallsMode {
        CALLS_NONE,
        CALLS_SAMPLED,
        CALLS_FULL,
} CallsMode;
const char *calls_mode_name(CallsMode mode);
int calls_mode_from_name(const char *name); /* -EINVAL */

struct Recording {
        uint64_t number; /* names its bus object */
        int64_t id;      /* in the store, 0 until confirmed */
        char *name;
        RecordingState state;
        int64_t start_ns, end_ns;            /* Unix; end 0 while it runs */
        uint64_t start_boot_ns, end_boot_ns; /* of this run of prismd only; end UINT64_MAX while it runs */
        char *calls;
        bool pinned, deleting;
        int64_t store_id;     /* as `id`, for the worker's thread */
        uint64_t duration_ns; /* 0: until it is stopped */
        Recorder *recorder;
        sd_event_source *timer;
        Recording *next;
};

/* Called on the main loop when the store has answered: r as in store.h, `error` a sentence or NULL. */
typedef void (*recorder_answer)(Recording *recording, int r, const char *error, void *userdata);

typedef struct RecorderHooks {
        void (*changed)(Recording *recording, void *userdata);    /* its state */
        void (*removed)(Recording *recording, void *userdata);    /* before it is freed */
        void (*expired)(Recording *recording, void *userdata);    /* its duration is over: end it */
        void (*failed)(int r, const char *error, void *userdata); /* a write failed, or 0: they succeed again */
        void *userdata;
} RecorderHooks;

int recorder_new(sd_event *event, const char *database, const StoreMachine *machine, Losses *losses,
                const RecorderHooks *hooks, Recorder **ret, char **ret_error);
/* Waits until all that was given is written. Recordings that still run are found as interrupted at the next start. */
Recorder *recorder_free(Recorder *r);
DEFINE_CLEANUP(Recorder *, recorder_free);

Recording *recorder_recordings(Recorder *r); /* iterate with ->next; oldest first */
Recording *recorder_find(Recorder *r, const char *name);
Recording *recorder_by_number(Recorder *r, uint64_t number);
bool recorder_is_recording(const Recorder *r);
unsigned recorder_n_running(const Recorder *r);
/* The most that a running recording wants of the calls tier. */
CallsMode recorder_calls(const Recorder *r);
const char *recording_state_name(RecordingState s);

/* The states in flight must have been written out at the boundary (collector_tick() with flush). The answer comes when
 * the store has it. */
int recorder_begin(Recorder *r, const char *name, const char *calls, uint64_t duration_ns, uint64_t boundary_boot_ns,
                int64_t boundary_unix_ns, recorder_answer answer, void *userdata, Recording **ret);
/* First: no row after the boundary is wanted for it any more. Then, when the tick after the boundary was given:
 * recorder_end_finish(). */
void recorder_end_begin(Recording *recording, uint64_t boundary_boot_ns, int64_t boundary_unix_ns);
int recorder_end_finish(Recording *recording, bool interrupted, recorder_answer answer, void *userdata);
int recorder_delete(Recording *recording, recorder_answer answer, void *userdata);

/* Writes points of an indicator; takes a copy. The answer comes without a recording. */
int recorder_add_kpi(Recorder *r, const char *name, const StoreKpi *points, size_t n, recorder_answer answer,
                void *userdata);

bool recorder_wanted(const Recorder *r, uint64_t from_boot_ns, uint64_t until_boot_ns);
uint64_t recorder_epoch(const Recorder *r);
/* Queues a batch; takes a reference. Empty ones are left out. */
void recorder_give(Recorder *r, Batch *b);

size_t recorder_queue_length(const Recorder *r);
size_t recorder_queue_limit(void);
uint64_t recorder_store_bytes(const Recorder *r);
/* "ok", or what is wrong with the store. */
const char *recorder_store_state(const Recorder *r);
