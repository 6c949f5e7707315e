/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* store_write(): the rows of a batch into the tables, in one transaction. */
#include "internal.h"

#define HISTOGRAM_COLUMNS "hist0, hist1, hist2, hist3, hist4, hist5, hist6, hist7"

/* A statement and its _ADD twin number their parameters alike, so that one function binds for both. */
static const char *const statement_sql[_STATEMENT_MAX] = {
        [STATEMENT_BEGIN] = "BEGIN IMMEDIATE",
        [STATEMENT_COMMIT] = "COMMIT",
        [STATEMENT_ROLLBACK] = "ROLLBACK",

        /* What is known is never replaced by NULL, nor what was followed by what is only named. The start in Unix time stays
         * as it was first computed, so that it does not follow the clock's corrections. */
        [STATEMENT_PROCESS] =
                        "INSERT INTO process (machine_id, boot, pid, host_pid, start_boot_ns, start_ns, exit_ns, ppid, "
                        "uid, comm, "
                        "exe, cmdline, cgroup, unit, netns, found_by, found_from, target) "
                        "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18) "
                        "ON CONFLICT (machine_id, boot, host_pid, start_boot_ns) DO UPDATE SET "
                        "pid = coalesce(nullif(excluded.pid, 0), pid), "
                        "exit_ns = coalesce(excluded.exit_ns, exit_ns), "
                        "ppid = coalesce(excluded.ppid, ppid), "
                        "uid = CASE excluded.found_by WHEN 'observed' THEN coalesce(uid, excluded.uid) "
                        "ELSE coalesce(excluded.uid, uid) END, "
                        "comm = coalesce(nullif(excluded.comm, ''), comm), "
                        "exe = coalesce(excluded.exe, exe), "
                        "cmdline = coalesce(excluded.cmdline, cmdline), "
                        "cgroup = coalesce(excluded.cgroup, cgroup), "
                        "unit = coalesce(excluded.unit, unit), "
                        "netns = coalesce(excluded.netns, netns), "
                        "found_by = CASE excluded.found_by WHEN 'observed' THEN found_by ELSE excluded.found_by END, "
                        "found_from = coalesce(excluded.found_from, found_from), "
                        "target = coalesce(excluded.target, target) "
                        "RETURNING id",
        [STATEMENT_PROCESS_PARENT] = "UPDATE process SET found_from = ?2 WHERE id = ?1",
        [STATEMENT_THREAD] = "INSERT INTO thread (process_id, tid, host_tid, start_boot_ns, start_ns, exit_ns, comm) "
                             "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) "
                             "ON CONFLICT (process_id, host_tid, start_boot_ns) DO UPDATE SET "
                             "tid = coalesce(nullif(excluded.tid, 0), tid), "
                             "exit_ns = coalesce(excluded.exit_ns, exit_ns), "
                             "comm = coalesce(nullif(excluded.comm, ''), comm) "
                             "RETURNING id",
        [STATEMENT_RESOURCE] = "INSERT INTO resource (machine_id, boot, kind, ident, name) VALUES (?1, ?2, ?3, ?4, ?5) "
                               "ON CONFLICT (machine_id, boot, kind, ident) DO UPDATE SET "
                               "name = coalesce(excluded.name, name) "
                               "RETURNING id",

        [STATEMENT_THREAD_TIME] =
                        "INSERT INTO thread_time (ts_ns, dt_ns, thread_id, run_ns, runqueue_ns, sleep_ns, block_ns, "
                        "iowait_ns, throttled_ns, healed_ns, switches, preemptions) "
                        "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        [STATEMENT_THREAD_TIME_ADD] =
                        "UPDATE thread_time SET dt_ns = dt_ns + ?2, run_ns = run_ns + ?4, runqueue_ns = runqueue_ns + "
                        "?5, "
                        "sleep_ns = sleep_ns + ?6, block_ns = block_ns + ?7, iowait_ns = iowait_ns + ?8, "
                        "throttled_ns = throttled_ns + ?9, healed_ns = healed_ns + ?10, switches = switches + ?11, "
                        "preemptions = preemptions + ?12 WHERE ts_ns = ?1 AND thread_id = ?3",

        /* The _ADD of what hangs on a thread_time row leaves dt_ns alone: two rows of one interval do not make it longer.
         * Where the intervals themselves were added, the RETILE statements set it. */
        [STATEMENT_WAIT] = "INSERT INTO wait (ts_ns, dt_ns, thread_id, resource_id, op, count, total_ns, "
                           "max_ns, " HISTOGRAM_COLUMNS
                           ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
        [STATEMENT_WAIT_ADD] =
                        "UPDATE wait SET count = count + ?6, total_ns = total_ns + ?7, max_ns = max(max_ns, ?8), "
                        "hist0 = hist0 + ?9, hist1 = hist1 + ?10, hist2 = hist2 + ?11, hist3 = hist3 + ?12, "
                        "hist4 = hist4 + ?13, hist5 = hist5 + ?14, hist6 = hist6 + ?15, hist7 = hist7 + ?16 "
                        "WHERE ts_ns = ?1 AND thread_id = ?3 AND resource_id = ?4 AND op = ?5",
        [STATEMENT_WAKE] = "INSERT INTO wake (ts_ns, dt_ns, waker_thread_id, waker_kind, thread_id, resource_id, "
                           "count, total_ns) "
                           "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        [STATEMENT_WAKE_ADD] = "UPDATE wake SET count = count + ?7, total_ns = total_ns + ?8 WHERE ts_ns = ?1 AND "
                               "waker_thread_id = ?3 AND waker_kind = ?4 AND thread_id = ?5 AND resource_id = ?6",
        [STATEMENT_RAN_INSTEAD] = "INSERT INTO ran_instead (ts_ns, dt_ns, thread_id, process_id, total_ns) "
                                  "VALUES (?1, ?2, ?3, ?4, ?5)",
        [STATEMENT_LOSS] = "INSERT INTO loss (ts_ns, part, reason, count) VALUES (?1, ?2, ?3, ?4)",
        [STATEMENT_CLOCK] = "INSERT INTO clock (boot, boot_ns, unix_ns) VALUES (?1, ?2, ?3) "
                            "ON CONFLICT (boot, boot_ns) DO UPDATE SET unix_ns = excluded.unix_ns",

#define RETILE(table)                                                                                       \
        "UPDATE " table " SET dt_ns = (SELECT dt_ns FROM thread_time WHERE ts_ns = ?1 AND thread_id = ?2) " \
        "WHERE ts_ns = ?1 AND thread_id = ?2"
        [STATEMENT_RETILE_WAIT] = RETILE("wait"),
        [STATEMENT_RETILE_CALL] = RETILE("call"),
        [STATEMENT_RETILE_WAKE] = RETILE("wake"),
        [STATEMENT_RETILE_RAN_INSTEAD] = RETILE("ran_instead"),
};

/* A thread_time row that was added to one that was there. */
typedef struct Merged {
        int64_t ts_ns, thread_id;
} Merged;

typedef struct MergedList {
        Merged *items;
        size_t n, capacity;
} MergedList;

static int get_statement(Store *s, enum statement which, sqlite3_stmt **ret, char **ret_error) {
        sqlite3_stmt **statement = s->statements + which;

        if (!*statement &&
                        sqlite3_prepare_v3(s->database, statement_sql[which], -1, SQLITE_PREPARE_PERSISTENT, statement,
                                        NULL) != SQLITE_OK)
                return store_failed(s, ret_error);
        *ret = *statement;
        return 0;
}

/* Runs a bound statement to its end and resets it. `bound` is the sum of what the bindings returned. With `ret_id` the
 * first column of its only row is taken. A row that is there already is -EEXIST without a sentence. */
static int run(Store *s, sqlite3_stmt *statement, int bound, int64_t *ret_id, char **ret_error) {
        int64_t id = 0;
        int r = 0, code;

        if (bound != SQLITE_OK)
                r = store_say(ret_error, -ENOMEM, "There is not enough memory to write to %s.", store_name(s));
        else {
                while ((code = sqlite3_step(statement)) == SQLITE_ROW)
                        id = sqlite3_column_int64(statement, 0);
                if (code == SQLITE_CONSTRAINT_PRIMARYKEY)
                        r = -EEXIST;
                else if (code != SQLITE_DONE)
                        r = store_failed(s, ret_error);
        }
        (void) sqlite3_reset(statement);
        (void) sqlite3_clear_bindings(statement);

        if (r >= 0 && ret_id)
                *ret_id = id;
        return r;
}

static int run_simple(Store *s, enum statement which, char **ret_error) {
        sqlite3_stmt *statement = NULL;
        int r;

        r = get_statement(s, which, &statement, ret_error);
        if (r < 0)
                return r;
        return run(s, statement, SQLITE_OK, NULL, ret_error);
}

static int find_key(Store *s, const KeyMap *map, const char *what, uint64_t key, int64_t *ret, char **ret_error) {
        int64_t id = keymap_get(map, key);

        if (id == 0)
                return store_say(ret_error, -ENOKEY, "A row for %s uses %s %llu, which was never described to it.",
                                store_name(s), what, (unsigned long long) key);
        *ret = id;
        return 0;
}

static int put_key(Store *s, KeyMap *map, uint64_t key, int64_t id, char **ret_error) {
        if (keymap_put(map, key, id) < 0)
                return store_say(ret_error, -ENOMEM, "There is not enough memory to write to %s.", store_name(s));
        return 0;
}

static int bind_or_null(sqlite3_stmt *statement, int index, uint64_t number, uint64_t unknown) {
        return number == unknown ? sqlite3_bind_null(statement, index) : store_bind_u64(statement, index, number);
}

static int write_process(Store *s, const BatchProcess *p, char **ret_error) {
        int64_t id = 0, parent = keymap_get(&s->processes, p->parent_key);
        sqlite3_stmt *st = NULL;
        int r, b = 0;

        r = get_statement(s, STATEMENT_PROCESS, &st, ret_error);
        if (r < 0)
                return r;

        b |= sqlite3_bind_int64(st, 1, s->machine_id);
        b |= sqlite3_bind_int64(st, 2, s->boot);
        b |= sqlite3_bind_int64(st, 3, p->pid);
        b |= sqlite3_bind_int64(st, 4, p->host_pid);
        b |= sqlite3_bind_int64(st, 5, p->start_boot_ns);
        b |= sqlite3_bind_int64(st, 6, p->start_ns);
        b |= bind_or_null(st, 7, (uint64_t) p->exit_ns, 0);
        b |= bind_or_null(st, 8, p->ppid, 0);
        b |= bind_or_null(st, 9, p->uid, UINT32_MAX);
        b |= store_bind_text(st, 10, p->comm ? p->comm : "");
        b |= store_bind_text(st, 11, p->exe);
        b |= store_bind_text(st, 12, p->cmdline);
        b |= store_bind_text(st, 13, p->cgroup);
        b |= store_bind_text(st, 14, p->unit);
        b |= bind_or_null(st, 15, p->netns, 0);
        b |= store_bind_text(st, 16, p->found_by);
        b |= bind_or_null(st, 17, (uint64_t) parent, 0);
        b |= store_bind_text(st, 18, p->target);

        r = run(s, st, b, &id, ret_error);
        if (r < 0)
                return r;
        return put_key(s, &s->processes, p->key, id, ret_error);
}

/* For parents that stand behind their children in the batch. */
static int write_process_parent(Store *s, const BatchProcess *p, char **ret_error) {
        int64_t parent = keymap_get(&s->processes, p->parent_key);
        sqlite3_stmt *st = NULL;
        int r, b = 0;

        if (parent == 0)
                return 0;
        r = get_statement(s, STATEMENT_PROCESS_PARENT, &st, ret_error);
        if (r < 0)
                return r;
        b |= sqlite3_bind_int64(st, 1, keymap_get(&s->processes, p->key));
        b |= sqlite3_bind_int64(st, 2, parent);
        return run(s, st, b, NULL, ret_error);
}

static int write_processes(Store *s, const Batch *batch, char **ret_error) {
        _cleanup_free_ bool *late = NULL;
        int r = 0;

        late = calloc(batch->n_processes + 1, sizeof(bool));
        if (!late)
                return -ENOMEM;

        for (size_t i = 0; r >= 0 && i < batch->n_processes; i++) {
                const BatchProcess *p = batch->processes + i;

                late[i] = p->parent_key != 0 && keymap_get(&s->processes, p->parent_key) == 0;
                r = write_process(s, p, ret_error);
        }
        for (size_t i = 0; r >= 0 && i < batch->n_processes; i++)
                if (late[i])
                        r = write_process_parent(s, batch->processes + i, ret_error);
        return r;
}

static int write_thread(Store *s, const BatchThread *t, char **ret_error) {
        int64_t id = 0, process = 0;
        sqlite3_stmt *st = NULL;
        int r, b = 0;

        r = find_key(s, &s->processes, "process", t->process_key, &process, ret_error);
        if (r < 0)
                return r;
        r = get_statement(s, STATEMENT_THREAD, &st, ret_error);
        if (r < 0)
                return r;

        b |= sqlite3_bind_int64(st, 1, process);
        b |= sqlite3_bind_int64(st, 2, t->tid);
        b |= sqlite3_bind_int64(st, 3, t->host_tid);
        b |= sqlite3_bind_int64(st, 4, t->start_boot_ns);
        b |= sqlite3_bind_int64(st, 5, t->start_ns);
        b |= bind_or_null(st, 6, (uint64_t) t->exit_ns, 0);
        b |= store_bind_text(st, 7, t->comm ? t->comm : "");

        r = run(s, st, b, &id, ret_error);
        if (r < 0)
                return r;
        return put_key(s, &s->threads, t->key, id, ret_error);
}

static int write_resource(Store *s, const BatchResource *resource, char **ret_error) {
        sqlite3_stmt *st = NULL;
        int64_t id = 0;
        int r, b = 0;

        r = get_statement(s, STATEMENT_RESOURCE, &st, ret_error);
        if (r < 0)
                return r;

        b |= sqlite3_bind_int64(st, 1, s->machine_id);
        b |= sqlite3_bind_int64(st, 2, s->boot);
        b |= store_bind_text(st, 3, resource->kind);
        b |= store_bind_text(st, 4, resource->ident);
        b |= store_bind_text(st, 5, resource->name);

        r = run(s, st, b, &id, ret_error);
        if (r < 0)
                return r;
        return put_key(s, &s->resources, resource->key, id, ret_error);
}

static int thread_time_statement(
                Store *s, enum statement which, const BatchThreadTime *row, int64_t thread, char **ret_error) {
        sqlite3_stmt *st = NULL;
        int r, b = 0;

        r = get_statement(s, which, &st, ret_error);
        if (r < 0)
                return r;

        b |= sqlite3_bind_int64(st, 1, row->ts_ns);
        b |= sqlite3_bind_int64(st, 2, row->dt_ns);
        b |= sqlite3_bind_int64(st, 3, thread);
        b |= store_bind_u64(st, 4, row->run_ns);
        b |= store_bind_u64(st, 5, row->runqueue_ns);
        b |= store_bind_u64(st, 6, row->sleep_ns);
        b |= store_bind_u64(st, 7, row->block_ns);
        b |= store_bind_u64(st, 8, row->iowait_ns);
        b |= store_bind_u64(st, 9, row->throttled_ns);
        b |= store_bind_u64(st, 10, row->healed_ns);
        b |= store_bind_u64(st, 11, row->switches);
        b |= store_bind_u64(st, 12, row->preemptions);
        return run(s, st, b, NULL, ret_error);
}

static int write_thread_time(Store *s, const BatchThreadTime *row, MergedList *merged, char **ret_error) {
        int64_t thread = 0;
        int r;

        r = find_key(s, &s->threads, "thread", row->thread_key, &thread, ret_error);
        if (r < 0)
                return r;
        r = thread_time_statement(s, STATEMENT_THREAD_TIME, row, thread, ret_error);
        if (r != -EEXIST)
                return r;

        r = GROW(merged->items, merged->n, merged->capacity);
        if (r < 0)
                return r;
        merged->items[merged->n++] = (Merged){ .ts_ns = row->ts_ns, .thread_id = thread };
        return thread_time_statement(s, STATEMENT_THREAD_TIME_ADD, row, thread, ret_error);
}

static int wait_statement(Store *s, enum statement which, const BatchWait *row, int64_t thread, int64_t resource,
                char **ret_error) {
        sqlite3_stmt *st = NULL;
        int r, b = 0;

        r = get_statement(s, which, &st, ret_error);
        if (r < 0)
                return r;

        b |= sqlite3_bind_int64(st, 1, row->ts_ns);
        b |= sqlite3_bind_int64(st, 2, row->dt_ns);
        b |= sqlite3_bind_int64(st, 3, thread);
        b |= sqlite3_bind_int64(st, 4, resource);
        b |= store_bind_text(st, 5, row->op);
        b |= store_bind_u64(st, 6, row->count);
        b |= store_bind_u64(st, 7, row->total_ns);
        b |= store_bind_u64(st, 8, row->max_ns);
        for (int i = 0; i < STORE_HISTOGRAM_BUCKETS; i++)
                b |= sqlite3_bind_int64(st, 9 + i, row->histogram[i]);
        return run(s, st, b, NULL, ret_error);
}

static int write_wait(Store *s, const BatchWait *row, char **ret_error) {
        int64_t thread = 0, resource = 0;
        int r;

        r = find_key(s, &s->threads, "thread", row->thread_key, &thread, ret_error);
        if (r >= 0)
                r = find_key(s, &s->resources, "resource", row->resource_key, &resource, ret_error);
        if (r < 0)
                return r;
        r = wait_statement(s, STATEMENT_WAIT, row, thread, resource, ret_error);
        if (r == -EEXIST)
                r = wait_statement(s, STATEMENT_WAIT_ADD, row, thread, resource, ret_error);
        return r;
}

static int wake_statement(Store *s, enum statement which, const BatchWake *row, int64_t waker, int64_t thread,
                int64_t resource, char **ret_error) {
        sqlite3_stmt *st = NULL;
        int r, b = 0;

        r = get_statement(s, which, &st, ret_error);
        if (r < 0)
                return r;

        b |= sqlite3_bind_int64(st, 1, row->ts_ns);
        b |= sqlite3_bind_int64(st, 2, row->dt_ns);
        b |= sqlite3_bind_int64(st, 3, waker);
        b |= store_bind_text(st, 4, row->waker_kind);
        b |= sqlite3_bind_int64(st, 5, thread);
        b |= sqlite3_bind_int64(st, 6, resource);
        b |= store_bind_u64(st, 7, row->count);
        b |= store_bind_u64(st, 8, row->total_ns);
        return run(s, st, b, NULL, ret_error);
}

static int write_wake(Store *s, const BatchWake *row, char **ret_error) {
        int64_t waker = 0, thread = 0, resource = 0;
        int r = 0;

        if (row->waker_thread_key != 0)
                r = find_key(s, &s->threads, "thread", row->waker_thread_key, &waker, ret_error);
        if (r >= 0)
                r = find_key(s, &s->threads, "thread", row->thread_key, &thread, ret_error);
        if (r >= 0)
                r = find_key(s, &s->resources, "resource", row->resource_key, &resource, ret_error);
        if (r < 0)
                return r;
        r = wake_statement(s, STATEMENT_WAKE, row, waker, thread, resource, ret_error);
        if (r == -EEXIST)
                r = wake_statement(s, STATEMENT_WAKE_ADD, row, waker, thread, resource, ret_error);
        return r;
}

static int write_ran_instead(Store *s, const BatchRanInstead *row, char **ret_error) {
        int64_t thread = 0, process = 0;
        sqlite3_stmt *st = NULL;
        int r, b = 0;

        r = find_key(s, &s->threads, "thread", row->thread_key, &thread, ret_error);
        if (r >= 0 && row->process_key != 0)
                r = find_key(s, &s->processes, "process", row->process_key, &process, ret_error);
        if (r >= 0)
                r = get_statement(s, STATEMENT_RAN_INSTEAD, &st, ret_error);
        if (r < 0)
                return r;

        b |= sqlite3_bind_int64(st, 1, row->ts_ns);
        b |= sqlite3_bind_int64(st, 2, row->dt_ns);
        b |= sqlite3_bind_int64(st, 3, thread);
        b |= bind_or_null(st, 4, (uint64_t) process, 0);
        b |= store_bind_u64(st, 5, row->total_ns);
        return run(s, st, b, NULL, ret_error);
}

static int write_loss(Store *s, const BatchLoss *row, char **ret_error) {
        sqlite3_stmt *st = NULL;
        int r, b = 0;

        r = get_statement(s, STATEMENT_LOSS, &st, ret_error);
        if (r < 0)
                return r;

        b |= sqlite3_bind_int64(st, 1, row->ts_ns);
        b |= store_bind_text(st, 2, row->part);
        b |= store_bind_text(st, 3, row->reason);
        b |= store_bind_u64(st, 4, row->count);
        return run(s, st, b, NULL, ret_error);
}

static int write_clock(Store *s, const BatchClock *row, char **ret_error) {
        sqlite3_stmt *st = NULL;
        int r, b = 0;

        r = get_statement(s, STATEMENT_CLOCK, &st, ret_error);
        if (r < 0)
                return r;

        b |= sqlite3_bind_int64(st, 1, s->boot);
        b |= sqlite3_bind_int64(st, 2, row->boot_ns);
        b |= sqlite3_bind_int64(st, 3, row->unix_ns);
        return run(s, st, b, NULL, ret_error);
}

/* What hangs on a thread_time row carries its dt_ns, so a longer one must show in them too. */
static int retile(Store *s, const Merged *merged, char **ret_error) {
        static const enum statement statements[] = { STATEMENT_RETILE_WAIT, STATEMENT_RETILE_CALL,
                STATEMENT_RETILE_WAKE, STATEMENT_RETILE_RAN_INSTEAD };
        int r = 0;

        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(statements); i++) {
                sqlite3_stmt *st = NULL;
                int b = 0;

                r = get_statement(s, statements[i], &st, ret_error);
                if (r < 0)
                        break;
                b |= sqlite3_bind_int64(st, 1, merged->ts_ns);
                b |= sqlite3_bind_int64(st, 2, merged->thread_id);
                r = run(s, st, b, NULL, ret_error);
        }
        return r;
}

static int write_rows(Store *s, const Batch *b, MergedList *merged, char **ret_error) {
        int r;

        r = write_processes(s, b, ret_error);
        for (size_t i = 0; r >= 0 && i < b->n_threads; i++)
                r = write_thread(s, b->threads + i, ret_error);
        for (size_t i = 0; r >= 0 && i < b->n_resources; i++)
                r = write_resource(s, b->resources + i, ret_error);
        for (size_t i = 0; r >= 0 && i < b->n_clocks; i++)
                r = write_clock(s, b->clocks + i, ret_error);
        for (size_t i = 0; r >= 0 && i < b->n_thread_times; i++)
                r = write_thread_time(s, b->thread_times + i, merged, ret_error);
        for (size_t i = 0; r >= 0 && i < b->n_waits; i++)
                r = write_wait(s, b->waits + i, ret_error);
        for (size_t i = 0; r >= 0 && i < b->n_wakes; i++)
                r = write_wake(s, b->wakes + i, ret_error);
        for (size_t i = 0; r >= 0 && i < b->n_ran_instead; i++)
                r = write_ran_instead(s, b->ran_instead + i, ret_error);
        for (size_t i = 0; r >= 0 && i < b->n_losses; i++)
                r = write_loss(s, b->losses + i, ret_error);
        for (size_t i = 0; r >= 0 && i < merged->n; i++)
                r = retile(s, merged->items + i, ret_error);
        return r;
}

int store_write(Store *s, const Batch *b, char **ret_error) {
        MergedList merged = {};
        int r;

        r = run_simple(s, STATEMENT_BEGIN, ret_error);
        if (r < 0)
                return r;
        keymap_begin(&s->processes);
        keymap_begin(&s->threads);
        keymap_begin(&s->resources);

        r = write_rows(s, b, &merged, ret_error);
        free(merged.items);
        if (r >= 0)
                r = run_simple(s, STATEMENT_COMMIT, ret_error);
        if (r >= 0)
                return 0;

        /* SQLite has already rolled back after some errors. */
        if (!sqlite3_get_autocommit(s->database))
                (void) run_simple(s, STATEMENT_ROLLBACK, NULL);
        keymap_rollback(&s->processes);
        keymap_rollback(&s->threads);
        keymap_rollback(&s->resources);
        return r;
}
