/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The heart of prismd: owns the loop and all parts, and does what the bus asks for. The bus vtables stand apart in
 * manager-bus.c, target-bus.c and recording-bus.c; connections in server.c. */
#pragma once

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "collector.h"
#include "config.h"
#include "recorder.h"
#include "target.h"
#include "worker.h"

/* What is kept for snapshots: a little over a minute, or so many batches, or this much memory. */
#define LIVE_NS (70 * NSEC_PER_SEC)
#define LIVE_BATCHES_MAX 256
#define LIVE_BYTES_MAX (16 * 1024 * 1024)
/* Images being made at a time. */
#define SNAPSHOTS_MAX 8

typedef struct Server Server;
typedef struct Manager Manager;

struct Manager {
        sd_event *event;
        Config config;
        char *state_dir, *database, *config_file;
        int lock_fd; /* holds the state directory against a second prismd */

        StoreMachine machine;
        char *hostname, *kernel, *architecture, boot_id[33];
        int64_t start_ns;

        Probes *probes;
        Collector *collector;
        Recorder *recorder;
        Worker *images; /* makes snapshots */
        Server *server;

        Target *targets; /* oldest first */
        unsigned n_targets;
        uint32_t last_target;

        struct {
                Batch *batch;
                uint64_t boundary_ns;
        } live[LIVE_BATCHES_MAX]; /* a ring */
        unsigned first_live, n_live;
        size_t live_bytes;
        unsigned n_snapshots;

        sd_event_source *tick_timer, *scan_timer, *events_source;
        uint64_t ticks;
        uint64_t calls_since_ns; /* when the calls tier was last switched on; 0: no recording wants it */
        uint64_t last_flush_ns;
        int64_t clock_held_ns; /* the last step of the system's clock that was reported */
        uint64_t logged_losses;
        char status[128]; /* as systemd was told last */
};

typedef struct ManagerOptions {
        const char *state_dir, *config_file;
        bool has_machine_id;
        uint32_t machine_id;
        const char *const *addresses; /* NULL-terminated; empty: the defaults */
} ManagerOptions;

/* *ret_error: a sentence for the user. */
int manager_new(const ManagerOptions *options, Manager **ret, char **ret_error);
Manager *manager_free(Manager *m);
DEFINE_CLEANUP(Manager *, manager_free);
int manager_run(Manager *m);

/* place.c. Fills in where prismd is; *ret_error as above. */
int manager_open_state_dir(Manager *m, const char *state_dir, char **ret_error);
int manager_identify_machine(Manager *m, const ManagerOptions *options);
/* Yields r, with the sentence "WHAT OBJECT: why; REMEDY" (remedy may be NULL). */
int manager_fail(int r, char **ret_error, const char *what, const char *object, const char *remedy);

/* What the bus asks for. Failures fill *error with one of the names in dbus/names.h. */
int manager_track(Manager *m, TargetKind kind, const char *argument, enum prism_follow follow, uint32_t depth,
                Target **ret, sd_bus_error *error);
int manager_untrack(Manager *m, Target *t, sd_bus_error *error);
Target *manager_target(Manager *m, uint32_t number);

/* manager-recordings.c. `answer` comes when the store has it, with the recording and what was wrong. */
int manager_record_start(Manager *m, const char *name, const char *calls, uint64_t duration_ns, recorder_answer answer,
                void *userdata, sd_bus_error *error);
/* `interrupted`: by prismd's own end. */
int manager_record_end(Manager *m, Recording *recording, bool interrupted, recorder_answer answer, void *userdata);
int manager_record_stop(Manager *m, Recording *recording, recorder_answer answer, void *userdata, sd_bus_error *error);
int manager_record_delete(
                Manager *m, Recording *recording, recorder_answer answer, void *userdata, sd_bus_error *error);

/* `answer` gets the descriptor of an image, which it must close, or r < 0. */
typedef void (*snapshot_answer)(int r, int fd, const char *error, void *userdata);
int manager_snapshot(Manager *m, snapshot_answer answer, void *userdata, sd_bus_error *error);

RecorderHooks manager_recorder_hooks(Manager *m);
/* Switches the calls tier as the running recordings want it. */
void manager_update_calls(Manager *m);

/* How early a tick may be and still count as the second that it ends. */
#define TICK_SLACK_NS (200 * NSEC_PER_MSEC)

/* Closes the current interval now. With `flush` all is known up to *ret_boundary_ns (boot clock; may be NULL). */
int manager_collect(Manager *m, bool flush, uint64_t *ret_boundary_ns);
