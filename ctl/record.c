/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* prismctl record: starting and stopping recordings, and what is in them. */
#include "record.h"

#include <inttypes.h>

#include "analysis/calls.h"
#include "analysis/contents.h"
#include "database.h"
#include "json.h"
#include "progress.h"
#include "signals.h"
#include "store/basic/parse.h"
#include "store/basic/text.h"
#include "table.h"

/* Between two looks at a recording that prismd is to end. */
#define RECORD_POLL_NS (200 * NSEC_PER_MSEC)
/* How much longer than asked for a recording may run before something must be wrong: its last rows have to reach the
 * disk. */
#define RECORD_GRACE_NS (120 * NSEC_PER_SEC)

int record_start(Client *c, const char *name, uint64_t duration_ns, const char *calls, char **ret_path,
                char **ret_error) {
        _cleanup_message_ sd_bus_message *m = NULL, *reply = NULL;
        const char *path;
        char *copy;
        int r;

        r = client_new_call(c, PRISM_PATH, PRISM_INTERFACE_MANAGER, "StartRecording", &m);
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "s", name);
        if (r < 0)
                return r;
        r = sd_bus_message_open_container(m, 'a', "{sv}");
        if (r < 0)
                return r;
        if (duration_ns > 0) {
                r = sd_bus_message_append(m, "{sv}", "duration", "t", duration_ns);
                if (r < 0)
                        return r;
        }
        if (calls) {
                r = sd_bus_message_append(m, "{sv}", "calls", "s", calls);
                if (r < 0)
                        return r;
        }
        r = sd_bus_message_close_container(m);
        if (r < 0)
                return r;

        r = client_send(c, m, CLIENT_TIMEOUT_USEC, &reply, ret_error);
        if (r < 0)
                return r;
        r = sd_bus_message_read(reply, "o", &path);
        if (r < 0)
                return r;
        copy = strdup(path);
        if (!copy)
                return -ENOMEM;
        *ret_path = copy;
        return 0;
}

bool record_calls_are_valid(const char *calls) {
        return streq(calls, "none") || streq(calls, "sampled") || streq(calls, "full");
}

int record_stop(Client *c, const char *path, char **ret_error) {
        return client_call_with_path(c, "StopRecording", path, CLIENT_LONG_TIMEOUT_USEC, ret_error);
}

int record_read_counters(Client *c, RecordCounters *ret) {
        _cleanup_message_ sd_bus_message *reply = NULL;
        _cleanup_json_ json_object *status = NULL;
        RecordCounters counters = {};
        json_object *losses;
        int r;

        r = client_call_manager(c, "GetStatus", &reply, NULL);
        if (r < 0)
                return r;
        r = json_from_message(reply, &status);
        if (r < 0)
                return r;

        counters.threads = json_get_u64(status, "Threads");
        counters.targets = json_get_u64(status, "Targets");
        if (json_object_object_get_ex(status, "Losses", &losses) && json_object_is_type(losses, json_type_object)) {
                json_object_object_foreach(losses, key, value) {
                        (void) key;
                        counters.losses += json_object_get_uint64(value);
                }
        }

        *ret = counters;
        return 0;
}

static int find_recording(Client *c, const char *name, char **ret_path, char **ret_error) {
        _cleanup_(recordings_done) Recordings recordings = {};
        const Recording *o;
        char *path;
        int r;

        r = recordings_read(c, &recordings, ret_error);
        if (r < 0)
                return r;
        o = recordings_find(&recordings, name);
        if (!o)
                return asprintf(ret_error, "there is no recording %s; prismctl record list shows them", name) < 0
                                ? -ENOMEM
                                : -ENOENT;

        path = strdup(o->path);
        if (!path)
                return -ENOMEM;
        *ret_path = path;
        return 0;
}

/* The recordings of the running prismd, or without one (or with --db) those of the database. */
static int read_recordings(const Ctl *ctl, Recordings *ret, char **ret_error) {
        _cleanup_(client_closep) Client *c = NULL;
        _cleanup_(store_closep) Store *store = NULL;
        StoreRecording *rows;
        size_t n;
        int r;

        if (!ctl->db && !ctl->state_dir && client_open(ctl, &c, NULL) >= 0) {
                c->no_auto_start = true;
                if (recordings_read(c, ret, NULL) >= 0)
                        return 0;
        }

        r = database_open(ctl, &store, ret_error);
        if (r < 0)
                return r;
        r = store_recordings(store, &rows, &n, ret_error);
        if (r < 0)
                return r;

        ret->items = calloc(n + 1, sizeof(Recording));
        for (size_t i = 0; i < n; i++) {
                if (ret->items) {
                        json_object *options = rows[i].options ? json_tokener_parse(rows[i].options) : NULL;
                        const char *calls = options ? json_get_text(options, "calls") : NULL;
                        Recording *o = ret->items + ret->n++;

                        *o = (Recording){
                                .name = TAKE_PTR(rows[i].name),
                                .state = TAKE_PTR(rows[i].state),
                                .calls = calls ? strdup(calls) : NULL,
                                .start_ns = rows[i].start_ns,
                                .end_ns = rows[i].end_ns,
                                .pinned = rows[i].pinned,
                        };
                        json_object_put(options);
                }
                store_recording_done(rows + i);
        }
        free(rows);
        return ret->items ? 0 : -ENOMEM;
}

static const TableColumn recording_columns[] = {
        { "name", "NAME", false },
        { "state", "STATE", false },
        { "start", "START (UTC)", false },
        { "end", NULL, false },
        { "start_ns", NULL, true },
        { "end_ns", NULL, true },
        { "length_ns", "LENGTH", true },
        { "calls", "CALLS", false },
        { "pinned", NULL, false },
};

static void put_recording(Table *t, const Recording *o) {
        int64_t end_ns = o->end_ns ? o->end_ns : now_unix_ns();

        table_row(t);
        table_text(t, o->name);
        table_text(t, o->state);
        table_moment(t, o->start_ns);
        table_moment(t, o->end_ns);
        table_number(t, o->start_ns);
        if (o->end_ns)
                table_number(t, o->end_ns);
        else
                table_null(t);
        table_duration(t, end_ns > o->start_ns ? (uint64_t) (end_ns - o->start_ns) : 0);
        table_text(t, o->calls);
        table_boolean(t, o->pinned);
}

static int record_list(const Ctl *ctl) {
        _cleanup_(recordings_done) Recordings recordings = {};
        _cleanup_(table_freep) Table *t = NULL;
        _cleanup_free_ char *error = NULL;
        int r;

        r = read_recordings(ctl, &recordings, &error);
        if (r < 0)
                return ctl_fail_with(CTL_FAILED, r, error);
        if (table_new(recording_columns, ELEMENTSOF(recording_columns), ctl->json, &t) < 0)
                return ctl_out_of_memory();

        for (size_t i = 0; i < recordings.n; i++)
                put_recording(t, recordings.items + i);
        r = table_print(t, ctl->no_legend, stdout);
        if (r < 0)
                return ctl_fail_with(CTL_FAILED, r, NULL);
        return recordings.n == 0 ? ctl_fail(CTL_NOTHING, "there are no recordings; see prismctl record --help")
                                 : CTL_DONE;
}

static void print_coverage(const Coverage *c) {
        char a[64], b[64];

        if (c->covered_ns == 0)
                puts("calls: not recorded\n");
        else
                printf("calls: recorded for %s of %s%s\n\n", format_duration(a, sizeof(a), c->covered_ns),
                                format_duration(b, sizeof(b), c->recorded_ns),
                                coverage_is_estimate(c) ? "; their numbers are estimates" : "");
}

static int read_coverage(Store *store, int64_t start_ns, int64_t end_ns, Coverage *ret, char **ret_error) {
        _cleanup_(reading_freep) Reading *reading = NULL;
        int r;

        r = reading_begin(store, start_ns, end_ns, NULL, &reading, ret_error);
        return r < 0 ? r : coverage_read(reading, CALLS_PART, ret, ret_error);
}

static int show_contents(const Ctl *ctl, const Recording *o, const Contents *contents, const Coverage *coverage) {
        static const TableColumn columns[] = { { "table", "TABLE", false }, { "rows", "ROWS", true } };
        _cleanup_(table_freep) Table *head = NULL, *rows = NULL;
        _cleanup_json_ json_object *array = NULL, *root = NULL;
        json_object *tables;
        int r;

        if (table_new(recording_columns, ELEMENTSOF(recording_columns), ctl->json, &head) < 0 ||
                        table_new(columns, ELEMENTSOF(columns), ctl->json, &rows) < 0)
                return -ENOMEM;

        put_recording(head, o);
        for (size_t i = 0; i < CONTENTS_TABLES; i++) {
                if (!ctl->json && contents->tables[i].rows == 0)
                        continue;
                table_row(rows);
                table_text(rows, contents->tables[i].table);
                table_count(rows, contents->tables[i].rows);
        }

        if (!ctl->json) {
                r = table_print(head, ctl->no_legend, stdout);
                if (r < 0)
                        return r;
                printf("\n%" PRIu64 " processes, %" PRIu64 " threads, losses: ", contents->processes,
                                contents->threads);
                if (contents->losses > 0)
                        printf("%" PRIu64 "\n", contents->losses);
                else
                        puts("none");
                print_coverage(coverage);
                return table_print(rows, ctl->no_legend, stdout);
        }

        r = table_take_json(head, &array);
        if (r < 0)
                return r;
        root = json_object_get(json_object_array_get_idx(array, 0));
        r = table_take_json(rows, &tables);
        if (r < 0)
                return r;
        if (json_add(root, "tables", tables) < 0 ||
                        json_add(root, "processes", json_object_new_uint64(contents->processes)) < 0 ||
                        json_add(root, "threads", json_object_new_uint64(contents->threads)) < 0 ||
                        json_add(root, "losses", json_object_new_uint64(contents->losses)) < 0 ||
                        json_add(root, "calls_coverage_ns", json_object_new_uint64(coverage->covered_ns)) < 0 ||
                        json_add(root, "calls_estimate", json_object_new_boolean(coverage_is_estimate(coverage))) < 0)
                return -ENOMEM;
        json_print(root, stdout);
        return 0;
}

static int record_show(const Ctl *ctl, const char *name) {
        _cleanup_(recordings_done) Recordings recordings = {};
        _cleanup_(store_closep) Store *store = NULL;
        _cleanup_free_ char *error = NULL;
        const Recording *o;
        Contents contents;
        Coverage coverage;
        int64_t end_ns;
        int r;

        r = read_recordings(ctl, &recordings, &error);
        if (r < 0)
                return ctl_fail_with(CTL_FAILED, r, error);
        o = recordings_find(&recordings, name);
        if (!o)
                return ctl_fail(CTL_NOTHING, "there is no recording %s; prismctl record list shows them", name);

        end_ns = o->end_ns ? o->end_ns : now_unix_ns();
        r = database_open(ctl, &store, &error);
        if (r >= 0)
                r = contents_read(store, o->start_ns, end_ns, &contents, &error);
        if (r >= 0)
                r = read_coverage(store, o->start_ns, end_ns, &coverage, &error);
        if (r >= 0)
                r = show_contents(ctl, o, &contents, &coverage);
        return r < 0 ? ctl_fail_with(CTL_FAILED, r, error) : CTL_DONE;
}

static int record_stop_or_delete(const Ctl *ctl, const char *name, bool delete) {
        _cleanup_(client_closep) Client *c = NULL;
        _cleanup_free_ char *path = NULL, *error = NULL;
        int r;

        r = client_open(ctl, &c, &error);
        if (r < 0)
                return ctl_fail_with(CTL_FAILED, r, error);

        r = find_recording(c, name, &path, &error);
        if (r >= 0)
                r = delete ? client_call_with_path(c, "DeleteRecording", path, CLIENT_LONG_TIMEOUT_USEC, &error)
                           : record_stop(c, path, &error);
        if (r < 0)
                return ctl_fail_with(r == -ENOENT ? CTL_NOTHING : CTL_FAILED, r, error);
        return CTL_DONE;
}

static void show_progress(Client *c, Progress *p, const char *name, uint64_t left_ns, uint64_t losses_before) {
        RecordCounters counters;

        if (!progress_is_wanted() || record_read_counters(c, &counters) < 0)
                return;
        progress_show(p, "recording %s: %" PRIu64 " s left, %" PRIu64 " threads, %" PRIu64 " losses", name,
                        (left_ns + NSEC_PER_SEC - 1) / NSEC_PER_SEC, counters.threads,
                        counters.losses > losses_before ? counters.losses - losses_before : 0);
}

/* Waits until prismd has ended the recording; a signal ends it early (*ret_early). */
static int wait_for_end(Client *c, Signals *signals, const char *name, const char *path, uint64_t duration_ns,
                bool *ret_early, char **ret_error) {
        uint64_t end_ns = now_monotonic_ns() + duration_ns, losses_before = 0, shown_ns = 0;
        _cleanup_(progress_clear) Progress progress = {};
        RecordCounters counters;
        int r;

        if (record_read_counters(c, &counters) >= 0)
                losses_before = counters.losses;

        for (;;) {
                _cleanup_free_ char *state = NULL;
                struct signalfd_siginfo signal;
                uint64_t now_ns = now_monotonic_ns();

                if (now_ns - shown_ns >= NSEC_PER_SEC) {
                        show_progress(c, &progress, name, end_ns > now_ns ? end_ns - now_ns : 0, losses_before);
                        shown_ns = now_ns;
                }

                r = signals_wait(signals, RECORD_POLL_NS, &signal);
                if (r < 0)
                        return r;
                if (r > 0) {
                        r = record_stop(c, path, ret_error);
                        if (r == -ENOENT) {
                                /* It ended by itself in that moment. */
                                free(*ret_error);
                                *ret_error = NULL;
                                r = 0;
                        }
                        *ret_early = true;
                        return r;
                }

                r = client_get_text(c, path, PRISM_INTERFACE_RECORDING, "State", &state, ret_error);
                if (r < 0)
                        return r;
                if (!streq(state, "running")) {
                        *ret_early = false;
                        return 0;
                }
                if (now_ns > end_ns && now_ns - end_ns > RECORD_GRACE_NS)
                        return asprintf(ret_error, "prismd has not ended the recording %s; see prismctl status", name) <
                                                        0
                                        ? -ENOMEM
                                        : -ETIMEDOUT;
        }
}

static int show_recorded(const Ctl *ctl, Client *c, const char *name, bool early) {
        _cleanup_(recordings_done) Recordings recordings = {};
        _cleanup_(table_freep) Table *t = NULL;
        _cleanup_json_ json_object *array = NULL;
        _cleanup_free_ char *error = NULL, *safe = NULL;
        const Recording *o;
        char length[64];
        int r;

        r = recordings_read(c, &recordings, &error);
        if (r < 0)
                return ctl_fail_with(CTL_FAILED, r, error);
        o = recordings_find(&recordings, name);
        if (!o)
                return ctl_fail(CTL_FAILED, "the recording %s was deleted meanwhile", name);

        if (ctl->json) {
                if (table_new(recording_columns, ELEMENTSOF(recording_columns), true, &t) < 0)
                        return ctl_out_of_memory();
                put_recording(t, o);
                if (table_take_json(t, &array) < 0)
                        return ctl_out_of_memory();
                json_print(json_object_array_get_idx(array, 0), stdout);
        } else {
                safe = text_escape(name);
                if (!safe)
                        return ctl_out_of_memory();
                format_duration(length, sizeof(length),
                                o->end_ns > o->start_ns ? (uint64_t) (o->end_ns - o->start_ns) : 0);
                if (streq(o->state, "running"))
                        printf("recording %s; end it with `prismctl record stop %s`\n", safe, safe);
                else
                        printf("recorded %s: %s%s; see it with `prismctl report %s`\n", safe, length,
                                        early ? ", ended early" : "", safe);
        }

        if (streq(o->state, "interrupted"))
                return ctl_fail(CTL_FAILED, "the recording %s was interrupted: prismd ended before it did", name);
        return CTL_DONE;
}

static int record_start_and_wait(const Ctl *ctl, const char *name, uint64_t duration_ns, const char *calls) {
        static const int caught[] = { SIGINT, SIGTERM, SIGHUP, 0 };
        _cleanup_(client_closep) Client *c = NULL;
        _cleanup_(signals_release) Signals signals = SIGNALS_NONE;
        _cleanup_free_ char *path = NULL, *error = NULL;
        RecordCounters counters;
        bool early = false;
        int r;

        r = client_open(ctl, &c, &error);
        if (r < 0)
                return ctl_fail_with(CTL_FAILED, r, error);

        /* From before the start on, so that no Ctrl-C leaves a recording behind unnoticed. */
        if (duration_ns > 0) {
                r = signals_catch(&signals, caught);
                if (r < 0)
                        return ctl_fail_with(CTL_FAILED, r, NULL);
        }

        r = record_start(c, name, duration_ns, calls, &path, &error);
        if (r < 0)
                return ctl_fail_with(CTL_FAILED, r, error);

        if (record_read_counters(c, &counters) >= 0 && counters.targets == 0)
                ctl_fail(CTL_DONE,
                                "nothing is followed: the recording will hold nothing until `prismctl track` says what "
                                "to follow");

        if (duration_ns > 0) {
                r = wait_for_end(c, &signals, name, path, duration_ns, &early, &error);
                if (r < 0)
                        return ctl_fail_with(CTL_FAILED, r, error);
        }
        return show_recorded(ctl, c, name, early);
}

int verb_record(Ctl *ctl, int argc, char **argv) {
        enum {
                OPTION_FOR = 1,
                OPTION_CALLS,
        };
        static const Option options[] = { { "for", OPTION_FOR, true }, { "calls", OPTION_CALLS, true } };
        _cleanup_(arguments_done) Arguments a = {};
        const char *what, *name = NULL, *calls = NULL;
        uint64_t duration_ns = 0;
        int r;

        if (arguments_init(&a, argc, argv, false) < 0)
                return ctl_out_of_memory();
        while ((r = ctl_next_option(ctl, &a, options, ELEMENTSOF(options))) > 0)
                switch (r) {
                case OPTION_FOR:
                        if (parse_duration(a.value, &duration_ns) < 0)
                                return ctl_fail(CTL_USAGE, "--for takes a length of time such as 30s or 5m, not \"%s\"",
                                                a.value);
                        break;
                case OPTION_CALLS:
                        calls = a.value;
                        if (!record_calls_are_valid(calls))
                                return ctl_fail(CTL_USAGE, "--calls takes none, sampled or full, not \"%s\"", calls);
                        break;
                }
        if (r < 0)
                return ctl_option_status(r);

        if (a.n_operands == 0)
                return ctl_fail(CTL_USAGE, "say what to do: record start, stop, list, show or delete");
        what = a.operands[0];

        if (!streq(what, "start") && (duration_ns > 0 || calls))
                return ctl_fail(CTL_USAGE, "--for and --calls belong to record start");
        if (streq(what, "list")) {
                if (a.n_operands > 1)
                        return ctl_fail(CTL_USAGE, "record list does not take \"%s\"", a.operands[1]);
                return record_list(ctl);
        }
        if (!streq(what, "start") && !streq(what, "stop") && !streq(what, "show") && !streq(what, "delete"))
                return ctl_fail(CTL_USAGE, "record cannot \"%s\"; it can start, stop, list, show and delete", what);

        if (a.n_operands != 2)
                return ctl_fail(CTL_USAGE, "record %s takes the name of one recording", what);
        name = a.operands[1];
        if (!recording_name_is_valid(name))
                return ctl_fail(CTL_USAGE,
                                "\"%s\" cannot be the name of a recording: it has 1 to 200 bytes of UTF-8 without "
                                "control characters, \"/\""
                                " and \"..\", and does not start with \"-\" or \".\"",
                                name);

        if (streq(what, "start"))
                return record_start_and_wait(ctl, name, duration_ns, calls);
        if (streq(what, "show"))
                return record_show(ctl, name);
        return record_stop_or_delete(ctl, name, streq(what, "delete"));
}
