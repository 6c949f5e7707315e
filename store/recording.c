/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Recordings: named periods, and the deletion of what only one of them covers. */
#include "internal.h"

/* One transaction of a deletion removes the rows of so much time, so that writers and readers wait only briefly. */
#define DELETE_CHUNK_NS (10 * (int64_t) NSEC_PER_SEC)

/* No row is longer; a row that begins in a recording ends at most so long after it. */
#define ROW_LENGTH_MAX_NS (120 * (int64_t) NSEC_PER_SEC)

/* A row with dt_ns covers (ts_ns - dt_ns, ts_ns], one without only its moment. */
static const struct {
        const char *name;
        bool has_length;
} measurement_tables[] = {
        { "thread_time", true },
        { "wait", true },
        { "mux_wait", true },
        { "call", true },
        { "wake", true },
        { "ran_instead", true },
        { "disk", true },
        { "socket_sample", true },
        { "cgroup_time", true },
        { "coverage", true },
        { "loss", false },
};

void store_recording_done(StoreRecording *r) {
        free(TAKE_PTR(r->name));
        free(TAKE_PTR(r->state));
        free(TAKE_PTR(r->options));
}

static int out_of_memory(Store *s, char **ret_error) {
        return store_say(ret_error, -ENOMEM, "There is not enough memory to work on %s.", store_name(s));
}

int store_recording_begin(
                Store *s, const char *name, int64_t start_ns, const char *options, int64_t *ret_id, char **ret_error) {
        _cleanup_statement_ sqlite3_stmt *st = NULL;
        int r, b = 0;

        r = store_prepare(s, "INSERT INTO recording (name, start_ns, state, options) VALUES (?1, ?2, 'running', ?3)",
                        &st, ret_error);
        if (r < 0)
                return r;
        b |= store_bind_text(st, 1, name);
        b |= sqlite3_bind_int64(st, 2, start_ns);
        b |= store_bind_text(st, 3, options ? options : "{}");
        if (b != SQLITE_OK)
                return out_of_memory(s, ret_error);

        switch (sqlite3_step(st)) {
        case SQLITE_DONE:
                *ret_id = sqlite3_last_insert_rowid(s->database);
                return 0;
        case SQLITE_CONSTRAINT_UNIQUE:
                return store_say(ret_error, -EEXIST,
                                "There is a recording %s in %s already: take another name, or delete that one first.",
                                name, store_name(s));
        default:
                return store_failed(s, ret_error);
        }
}

int store_recording_end(Store *s, int64_t id, int64_t end_ns, const char *state, char **ret_error) {
        _cleanup_statement_ sqlite3_stmt *st = NULL;
        int r, b = 0;

        r = store_prepare(s,
                        "UPDATE recording SET end_ns = max(?2, start_ns), state = ?3 WHERE id = ?1 AND state = "
                        "'running'",
                        &st, ret_error);
        if (r < 0)
                return r;
        b |= sqlite3_bind_int64(st, 1, id);
        b |= sqlite3_bind_int64(st, 2, end_ns);
        b |= store_bind_text(st, 3, state);
        if (b != SQLITE_OK)
                return out_of_memory(s, ret_error);
        if (sqlite3_step(st) != SQLITE_DONE)
                return store_failed(s, ret_error);
        if (sqlite3_changes(s->database) == 0)
                return store_say(ret_error, -ENOENT, "There is no running recording %lld in %s.", (long long) id,
                                store_name(s));
        return 0;
}

static int copy_text(sqlite3_stmt *st, int column, char **ret) {
        const char *text = (const char *) sqlite3_column_text(st, column);

        *ret = strdup(text ? text : "");
        return *ret ? 0 : -ENOMEM;
}

/* Fills *ret from the columns that the queries below name in this order; its strings are freed on failure. */
static int read_recording(sqlite3_stmt *st, StoreRecording *ret) {
        StoreRecording row = {
                .id = sqlite3_column_int64(st, 0),
                .start_ns = sqlite3_column_int64(st, 2),
                .end_ns = sqlite3_column_int64(st, 3),
                .pinned = sqlite3_column_int(st, 5) != 0,
        };

        if (copy_text(st, 1, &row.name) < 0 || copy_text(st, 4, &row.state) < 0 || copy_text(st, 6, &row.options) < 0) {
                store_recording_done(&row);
                return -ENOMEM;
        }
        *ret = row;
        return 0;
}

int store_recordings(Store *s, StoreRecording **ret, size_t *ret_n, char **ret_error) {
        _cleanup_statement_ sqlite3_stmt *st = NULL;
        StoreRecording *rows = NULL;
        size_t n = 0, capacity = 0;
        int r, code = SQLITE_DONE;

        r = store_prepare(s,
                        "SELECT id, name, start_ns, end_ns, state, pinned, options FROM recording ORDER BY start_ns, "
                        "id",
                        &st, ret_error);
        if (r < 0)
                return r;

        while (r >= 0 && (code = sqlite3_step(st)) == SQLITE_ROW) {
                r = GROW(rows, n, capacity);
                if (r >= 0)
                        r = read_recording(st, rows + n);
                if (r >= 0)
                        n++;
        }
        if (r < 0)
                r = out_of_memory(s, ret_error);
        else if (code != SQLITE_DONE)
                r = store_failed(s, ret_error);

        if (r < 0) {
                while (n > 0)
                        store_recording_done(rows + --n);
                free(rows);
                return r;
        }
        *ret = rows;
        *ret_n = n;
        return 0;
}

int store_recordings_interrupt(Store *s, char **ret_error) {
        return store_execute(s,
                        "UPDATE recording SET state = 'interrupted', end_ns = max(start_ns, "
                        "coalesce((SELECT max(ts_ns) FROM thread_time), 0), "
                        "coalesce((SELECT max(ts_ns) FROM call), 0), "
                        "coalesce((SELECT max(ts_ns) FROM disk), 0), "
                        "coalesce((SELECT max(ts_ns) FROM socket_sample), 0), "
                        "coalesce((SELECT max(ts_ns) FROM cgroup_time), 0)) "
                        "WHERE state = 'running'",
                        ret_error);
}

/* The first moment in (after_ns, until_ns] that has a row in any table, or until_ns. */
static int first_row_after(Store *s, int64_t after_ns, int64_t until_ns, int64_t *ret, char **ret_error) {
        int64_t first = until_ns;
        int r;

        for (size_t i = 0; i < ELEMENTSOF(measurement_tables); i++) {
                char sql[128];
                int64_t found = until_ns;

                (void) snprintf(sql, sizeof(sql), "SELECT ts_ns FROM %s WHERE ts_ns > %lld ORDER BY ts_ns LIMIT 1",
                                measurement_tables[i].name, (long long) after_ns);
                r = store_number(s, sql, &found, ret_error);
                if (r < 0)
                        return r;
                first = MIN(first, found);
        }
        *ret = first;
        return 0;
}

/* Deletes from all tables the rows in (from_ns, to_ns] that the recording covers and no other does. */
static int delete_between(Store *s, const StoreRecording *recording, int64_t from_ns, int64_t to_ns, char **ret_error) {
        int r;

        r = store_execute(s, "BEGIN IMMEDIATE", ret_error);
        if (r < 0)
                return r;

        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(measurement_tables); i++) {
                const char *name = measurement_tables[i].name;
                char sql[512];

                if (measurement_tables[i].has_length)
                        (void) snprintf(sql, sizeof(sql),
                                        "DELETE FROM %s AS m WHERE ts_ns > %lld AND ts_ns <= %lld AND ts_ns - dt_ns < "
                                        "%lld "
                                        "AND NOT EXISTS (SELECT 1 FROM recording r WHERE r.id <> %lld AND r.start_ns < "
                                        "m.ts_ns "
                                        "AND (r.end_ns IS NULL OR r.end_ns > m.ts_ns - m.dt_ns))",
                                        name, (long long) from_ns, (long long) to_ns, (long long) recording->end_ns,
                                        (long long) recording->id);
                else
                        (void) snprintf(sql, sizeof(sql),
                                        "DELETE FROM %s AS m WHERE ts_ns > %lld AND ts_ns <= %lld "
                                        "AND NOT EXISTS (SELECT 1 FROM recording r WHERE r.id <> %lld AND r.start_ns < "
                                        "m.ts_ns "
                                        "AND (r.end_ns IS NULL OR r.end_ns >= m.ts_ns))",
                                        name, (long long) from_ns, (long long) MIN(to_ns, recording->end_ns),
                                        (long long) recording->id);
                r = store_execute(s, sql, ret_error);
        }
        if (r >= 0)
                r = store_execute(s, "COMMIT", ret_error);
        if (r < 0 && !sqlite3_get_autocommit(s->database))
                (void) store_execute(s, "ROLLBACK", NULL);
        return r;
}

/* Gives free pages back to the file system, some at a time. */
static int give_back(Store *s, char **ret_error) {
        int64_t before = 0, left;
        int r;

        r = store_number(s, "PRAGMA freelist_count", &before, ret_error);
        for (left = before; r >= 0 && left > 0; before = left) {
                r = store_execute(s, "PRAGMA incremental_vacuum(1000)", ret_error);
                if (r >= 0)
                        r = store_number(s, "PRAGMA freelist_count", &left, ret_error);
                if (r >= 0 && left >= before)
                        break;
        }
        if (r < 0)
                return r;
        r = store_checkpoint(s);
        if (r < 0)
                return store_say(ret_error, r, "The log of %s cannot be moved into it: %s.", store_name(s),
                                strerror(-r));
        return 0;
}

static int load_recording(Store *s, int64_t id, StoreRecording *ret, char **ret_error) {
        _cleanup_statement_ sqlite3_stmt *st = NULL;
        int r;

        r = store_prepare(s, "SELECT id, name, start_ns, end_ns, state, pinned, options FROM recording WHERE id = ?1",
                        &st, ret_error);
        if (r < 0)
                return r;
        if (sqlite3_bind_int64(st, 1, id) != SQLITE_OK)
                return out_of_memory(s, ret_error);

        switch (sqlite3_step(st)) {
        case SQLITE_ROW:
                return read_recording(st, ret) < 0 ? out_of_memory(s, ret_error) : 0;
        case SQLITE_DONE:
                return store_say(
                                ret_error, -ENOENT, "There is no recording %lld in %s.", (long long) id, store_name(s));
        default:
                return store_failed(s, ret_error);
        }
}

int store_recording_delete_some(Store *s, int64_t id, int64_t *cursor_ns, char **ret_error) {
        _cleanup_(store_recording_done) StoreRecording recording = {};
        _cleanup_statement_ sqlite3_stmt *st = NULL;
        int64_t limit_ns, first_ns, from_ns, to_ns;
        int r;

        r = load_recording(s, id, &recording, ret_error);
        if (r < 0)
                return r;
        if (streq(recording.state, "running"))
                return store_say(ret_error, -EINPROGRESS, "The recording %s is still running: stop it first.",
                                recording.name);

        limit_ns = recording.end_ns + ROW_LENGTH_MAX_NS;
        r = first_row_after(s, MAX(*cursor_ns, recording.start_ns), limit_ns, &first_ns, ret_error);
        if (r < 0)
                return r;
        if (first_ns < limit_ns) {
                from_ns = first_ns - 1;
                to_ns = MIN(from_ns + DELETE_CHUNK_NS, limit_ns);
                r = delete_between(s, &recording, from_ns, to_ns, ret_error);
                if (r >= 0)
                        r = give_back(s, ret_error);
                if (r < 0)
                        return r;
                *cursor_ns = to_ns;
                return 1;
        }

        r = store_prepare(s, "DELETE FROM recording WHERE id = ?1", &st, ret_error);
        if (r < 0)
                return r;
        if (sqlite3_bind_int64(st, 1, id) != SQLITE_OK)
                return out_of_memory(s, ret_error);
        if (sqlite3_step(st) != SQLITE_DONE)
                return store_failed(s, ret_error);
        return 0;
}

int store_recording_delete(Store *s, int64_t id, char **ret_error) {
        int64_t cursor_ns = 0;
        int r;

        do
                r = store_recording_delete_some(s, id, &cursor_ns, ret_error);
        while (r > 0);
        return r;
}
