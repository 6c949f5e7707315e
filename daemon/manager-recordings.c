/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the manager does for recordings: beginning and ending them, and the calls tier that they ask for. */
#include "basic/text.h"
#include "clock.h"
#include "../dbus/names.h"
#include "log.h"
#include "manager-bus.h"
#include "manager.h"
#include "messages.h"

/* ---- The calls tier ---- */

/* Sampled, it is on for a tick in so many. */
#define CALLS_SAMPLE_TICKS 10

void manager_update_calls(Manager *m) {
        CallsMode mode = recorder_calls(m->recorder);
        uint64_t now = boot_now(), on_for = now - m->calls_since_ns;
        bool on;
        int r;

        if (mode == CALLS_NONE || m->calls_since_ns == 0)
                on = mode != CALLS_NONE;
        else if (mode == CALLS_FULL || on_for + TICK_SLACK_NS < NSEC_PER_SEC)
                on = true;
        else
                on = on_for + TICK_SLACK_NS >= CALLS_SAMPLE_TICKS * NSEC_PER_SEC;

        if (mode == CALLS_NONE)
                m->calls_since_ns = 0;
        else if (on && (m->calls_since_ns == 0 || on_for + TICK_SLACK_NS >= CALLS_SAMPLE_TICKS * NSEC_PER_SEC))
                m->calls_since_ns = now;
        r = collector_set_calls(m->collector, on);
        if (r < 0 && r != -EOPNOTSUPP)
                log_warning("cannot count system calls: %s", strerror(-r));
}

/* ---- Recordings ---- */

int manager_record_start(Manager *m, const char *name, const char *calls, uint64_t duration_ns, recorder_answer answer,
                void *userdata, sd_bus_error *error) {
        Recording *recording;
        unsigned n = 0;
        uint64_t boundary;
        int r;

        if (!recording_name_is_valid(name))
                return sd_bus_error_setf(error, PRISM_ERROR_INVALID_ARGS,
                                "this cannot be a recording's name: 1 to 200 bytes of UTF-8 without control "
                                "characters, slashes or \"..\", "
                                "not starting with a dash or dot");
        if (recorder_find(m->recorder, name))
                return sd_bus_error_setf(error, PRISM_ERROR_ALREADY_EXISTS,
                                "there is a recording \"%s\" already; delete it, or choose another name", name);
        for (Recording *other = recorder_recordings(m->recorder); other; other = other->next)
                n++;
        if (n >= m->config.recordings)
                return sd_bus_error_setf(error, PRISM_ERROR_LIMIT_REACHED,
                                "there are %u recordings, which is the limit; delete one, or raise Recordings= in "
                                "prismd.conf",
                                n);

        r = manager_collect(m, true, &boundary);
        if (r >= 0)
                r = recorder_begin(m->recorder, name, calls, duration_ns, boundary,
                                clock_unix(collector_clock(m->collector), boundary), answer, userdata, &recording);
        if (r < 0)
                return r;
        manager_update_calls(m);
        log_event(LOG_INFO, &(LogFields){ .id = PRISM_MESSAGE_RECORDING_STARTED, .recording = name },
                        "recording \"%s\" started", name);
        return 0;
}

int manager_record_end(Manager *m, Recording *recording, bool interrupted, recorder_answer answer, void *userdata) {
        uint64_t boundary;
        int r;

        r = manager_collect(m, true, &boundary);
        if (r < 0)
                boundary = boot_now();
        collector_wait_for_names(m->collector);
        recorder_end_begin(recording, boundary, clock_unix(collector_clock(m->collector), boundary));
        /* Threads that changed state while those in flight were read come with the next interval. */
        (void) manager_collect(m, false, NULL);
        log_event(LOG_INFO, &(LogFields){ .id = PRISM_MESSAGE_RECORDING_ENDED, .recording = recording->name },
                        "recording \"%s\" ended", recording->name);
        return recorder_end_finish(recording, interrupted, answer, userdata);
}

int manager_record_stop(Manager *m, Recording *recording, recorder_answer answer, void *userdata, sd_bus_error *error) {
        if (recording->state == RECORDING_STARTING)
                return sd_bus_error_setf(error, PRISM_ERROR_STORE_FAILED,
                                "recording \"%s\" has not begun: the store has not answered yet", recording->name);
        if (recording->state != RECORDING_RUNNING)
                return sd_bus_error_setf(
                                error, PRISM_ERROR_NOT_FOUND, "recording \"%s\" is not running", recording->name);
        return manager_record_end(m, recording, false, answer, userdata);
}

int manager_record_delete(
                Manager *m, Recording *recording, recorder_answer answer, void *userdata, sd_bus_error *error) {
        if (recording->state <= RECORDING_ENDING)
                return sd_bus_error_setf(error, PRISM_ERROR_UNSUPPORTED, "recording \"%s\" is running; stop it first",
                                recording->name);
        if (recording->deleting)
                return sd_bus_error_setf(
                                error, PRISM_ERROR_NOT_FOUND, "recording \"%s\" is being deleted", recording->name);
        return recorder_delete(recording, answer, userdata);
}

static void on_recording_changed(Recording *recording, void *userdata) {
        manager_update_calls(userdata);
        manager_bus_recording_changed(userdata, recording);
}

static void on_recording_removed(Recording *recording, void *userdata) {
        manager_bus_recording_removed(userdata, recording);
}

static void on_recording_expired(Recording *recording, void *userdata) {
        (void) manager_record_end(userdata, recording, false, NULL, NULL);
}

static void on_store_failed(int r, const char *error, void *userdata) {
        if (r < 0)
                log_event(LOG_ERR, &(LogFields){ .id = PRISM_MESSAGE_STORE_FAILED },
                                "the store cannot be written, what is measured now is lost: %s", error ?: strerror(-r));
        else
                log_event(LOG_INFO, &(LogFields){ .id = PRISM_MESSAGE_STORE_RECOVERED },
                                "the store can be written again");
}

RecorderHooks manager_recorder_hooks(Manager *m) {
        return (RecorderHooks){
                .changed = on_recording_changed,
                .removed = on_recording_removed,
                .expired = on_recording_expired,
                .failed = on_store_failed,
                .userdata = m,
        };
}
