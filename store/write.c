/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* store_write(): the rows of a batch into the tables, in one transaction. */
#include "internal.h"

/* The statements that are not those of a kind of rows, which row_sql() makes. */
static const char *const statement_sql[_STATEMENT_FIXED_MAX] = {
        [STATEMENT_BEGIN] = "BEGIN IMMEDIATE",
        [STATEMENT_COMMIT] = "COMMIT",
        [STATEMENT_ROLLBACK] = "ROLLBACK",
        [STATEMENT_PROCESS_PARENT] = "UPDATE process SET found_from = ?2 WHERE id = ?1",

#define RETILE(table)                                                                                       \
        "UPDATE " table " SET dt_ns = (SELECT dt_ns FROM thread_time WHERE ts_ns = ?1 AND thread_id = ?2) " \
        "WHERE ts_ns = ?1 AND thread_id = ?2"
        [STATEMENT_RETILE_WAIT] = RETILE("wait"),
        [STATEMENT_RETILE_MUX_WAIT] = RETILE("mux_wait"),
        [STATEMENT_RETILE_CALL] = RETILE("call"),
        [STATEMENT_RETILE_WAKE] = RETILE("wake"),
        [STATEMENT_RETILE_RAN_INSTEAD] = RETILE("ran_instead"),
};

static const char *const object_names[_OBJECT_MAX] = {
        [OBJECT_PROCESS] = "process",
        [OBJECT_THREAD] = "thread",
        [OBJECT_RESOURCE] = "resource",
};

/* A thread_time row that was added to one that was there. */
typedef struct Merged {
        int64_t ts_ns, thread_id;
} Merged;

typedef struct MergedList {
        Merged *items;
        size_t n, capacity;
} MergedList;

static int out_of_memory(Store *s, char **ret_error) {
        return store_say(ret_error, -ENOMEM, "There is not enough memory to write to %s.", store_name(s));
}

static int get_statement(Store *s, unsigned which, sqlite3_stmt **ret, char **ret_error) {
        _cleanup_(sqlite3_freep) void *made = NULL;
        sqlite3_stmt **statement = s->statements + which;
        const char *sql;

        if (*statement) {
                *ret = *statement;
                return 0;
        }

        if (which >= STATEMENT_ROW) {
                made = which >= STATEMENT_ROW_MERGE ? row_sql(which - STATEMENT_ROW_MERGE, true)
                                                    : row_sql(which - STATEMENT_ROW, false);
                if (!made)
                        return out_of_memory(s, ret_error);
                sql = made;
        } else
                sql = statement_sql[which];

        if (sqlite3_prepare_v3(s->database, sql, -1, SQLITE_PREPARE_PERSISTENT, statement, NULL) != SQLITE_OK)
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
                r = out_of_memory(s, ret_error);
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

static int run_simple(Store *s, unsigned which, char **ret_error) {
        sqlite3_stmt *statement = NULL;
        int r;

        r = get_statement(s, which, &statement, ret_error);
        if (r < 0)
                return r;
        return run(s, statement, SQLITE_OK, NULL, ret_error);
}

/* Binds the id of what a key stands for. Returns what SQLite does, or -ENOKEY with a sentence. */
static int bind_key(Store *s, sqlite3_stmt *st, int index, const Column *column, uint64_t key, char **ret_error) {
        int64_t id = keymap_get(s->keys + column->object, key);
        bool zero_is_none = column->absent == ABSENT_NULL_0 || column->absent == ABSENT_ID_0;

        if (id == 0 && column->absent != ABSENT_UNDESCRIBED && !(zero_is_none && key == 0))
                return store_say(ret_error, -ENOKEY, "A row for %s uses %s %llu, which was never described to it.",
                                store_name(s), object_names[column->object], (unsigned long long) key);
        return id == 0 && column->absent != ABSENT_ID_0 ? sqlite3_bind_null(st, index)
                                                        : sqlite3_bind_int64(st, index, id);
}

static int bind_number(sqlite3_stmt *st, int index, int64_t number, enum column_absent absent) {
        if ((absent == ABSENT_NULL_0 && number == 0) || (absent == ABSENT_NULL_MINUS && number < 0) ||
                        (absent == ABSENT_NULL_MAX32 && number == UINT32_MAX))
                return sqlite3_bind_null(st, index);
        return sqlite3_bind_int64(st, index, number);
}

/* Binds all columns of a row. 0, -ENOKEY or -ENOMEM. */
static int bind_row(Store *s, const RowKind *kind, sqlite3_stmt *st, const char *row, char **ret_error) {
        int index = 1, code = SQLITE_OK;

        for (const Column *c = kind->columns; code == SQLITE_OK && c < kind->columns + kind->n_columns; c++) {
                const void *member = row + c->offset;

                switch (c->type) {
                case COLUMN_I64:
                        code = bind_number(st, index++, *(const int64_t *) member, c->absent);
                        break;
                case COLUMN_U64:
                        code = bind_number(st, index++, (int64_t) MIN(*(const uint64_t *) member, (uint64_t) INT64_MAX),
                                        c->absent);
                        break;
                case COLUMN_U32:
                        code = bind_number(st, index++, *(const uint32_t *) member, c->absent);
                        break;
                case COLUMN_TEXT: {
                        const char *text = *(const char *const *) member;

                        code = store_bind_text(st, index++, !text && c->absent == ABSENT_EMPTY ? "" : text);
                        break;
                }
                case COLUMN_HISTOGRAM: {
                        const uint32_t *buckets = member;

                        for (int i = 0; code == SQLITE_OK && i < STORE_HISTOGRAM_BUCKETS; i++)
                                code = sqlite3_bind_int64(st, index++, buckets[i]);
                        break;
                }
                case COLUMN_KEY:
                        code = bind_key(s, st, index++, c, *(const uint64_t *) member, ret_error);
                        if (code < 0)
                                return code;
                        break;
                case COLUMN_MACHINE:
                        code = sqlite3_bind_int64(st, index++, s->machine_id);
                        break;
                case COLUMN_BOOT:
                        code = sqlite3_bind_int64(st, index++, s->boot);
                        break;
                }
        }
        return code == SQLITE_OK ? 0 : out_of_memory(s, ret_error);
}

/* One row; with `merge` it is added to one that is there already, without that is -EEXIST. */
static int write_row(Store *s, enum row_kind which, bool merge, const void *row, char **ret_error) {
        const RowKind *kind = row_kinds + which;
        sqlite3_stmt *st = NULL;
        int64_t id = 0;
        int r;

        r = get_statement(s, (merge ? STATEMENT_ROW_MERGE : STATEMENT_ROW) + which, &st, ret_error);
        if (r < 0)
                return r;
        r = bind_row(s, kind, st, row, ret_error);
        if (r < 0)
                return r;
        r = run(s, st, SQLITE_OK, &id, ret_error);
        if (r < 0 || kind->describes == OBJECT_NONE)
                return r;

        if (keymap_put(s->keys + kind->describes, *(const uint64_t *) ((const char *) row + kind->key_offset), id) < 0)
                return out_of_memory(s, ret_error);
        return 0;
}

/* For parents that stand behind their children in the batch. */
static int write_process_parent(Store *s, const BatchProcess *p, char **ret_error) {
        int64_t parent = keymap_get(s->keys + OBJECT_PROCESS, p->parent_key);
        sqlite3_stmt *st = NULL;
        int r, b = 0;

        if (parent == 0)
                return 0;
        r = get_statement(s, STATEMENT_PROCESS_PARENT, &st, ret_error);
        if (r < 0)
                return r;
        b |= sqlite3_bind_int64(st, 1, keymap_get(s->keys + OBJECT_PROCESS, p->key));
        b |= sqlite3_bind_int64(st, 2, parent);
        return run(s, st, b, NULL, ret_error);
}

static int write_processes(Store *s, const Batch *batch, char **ret_error) {
        _cleanup_free_ bool *late = NULL;
        int r = 0;

        late = calloc(batch->n_processes + 1, sizeof(bool));
        if (!late)
                return out_of_memory(s, ret_error);

        for (size_t i = 0; r >= 0 && i < batch->n_processes; i++) {
                const BatchProcess *p = batch->processes + i;

                late[i] = p->parent_key != 0 && keymap_get(s->keys + OBJECT_PROCESS, p->parent_key) == 0;
                r = write_row(s, ROW_PROCESS, true, p, ret_error);
        }
        for (size_t i = 0; r >= 0 && i < batch->n_processes; i++)
                if (late[i])
                        r = write_process_parent(s, batch->processes + i, ret_error);
        return r;
}

/* Inserted first without merging, so that it is known which were merged. */
static int write_thread_time(Store *s, const BatchThreadTime *row, MergedList *merged, char **ret_error) {
        int r;

        r = write_row(s, ROW_THREAD_TIME, false, row, ret_error);
        if (r != -EEXIST)
                return r;

        if (GROW(merged->items, merged->n, merged->capacity) < 0)
                return out_of_memory(s, ret_error);
        merged->items[merged->n++] = (Merged){
                .ts_ns = row->ts_ns,
                .thread_id = keymap_get(s->keys + OBJECT_THREAD, row->thread_key),
        };
        return write_row(s, ROW_THREAD_TIME, true, row, ret_error);
}

static int write_kind(Store *s, enum row_kind which, const Batch *batch, char **ret_error) {
        const RowKind *kind = row_kinds + which;
        const char *row;
        size_t n;
        int r = 0;

        /* All pointers of a batch look alike in memory; their types differ, hence no cast. */
        memcpy(&row, (const char *) batch + kind->array_offset, sizeof(row));
        memcpy(&n, (const char *) batch + kind->n_offset, sizeof(n));
        for (; r >= 0 && n > 0; n--, row += kind->row_size)
                r = write_row(s, which, true, row, ret_error);
        return r;
}

/* What hangs on a thread_time row carries its dt_ns, so a longer one must show in them too. */
static int retile(Store *s, const Merged *merged, char **ret_error) {
        static const enum statement statements[] = { STATEMENT_RETILE_WAIT, STATEMENT_RETILE_MUX_WAIT,
                STATEMENT_RETILE_CALL, STATEMENT_RETILE_WAKE, STATEMENT_RETILE_RAN_INSTEAD };
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
        int r = 0;

        for (enum row_kind kind = 0; r >= 0 && kind < _ROW_MAX; kind++)
                if (kind == ROW_PROCESS)
                        r = write_processes(s, b, ret_error);
                else if (kind == ROW_THREAD_TIME)
                        for (size_t i = 0; r >= 0 && i < b->n_thread_times; i++)
                                r = write_thread_time(s, b->thread_times + i, merged, ret_error);
                else
                        r = write_kind(s, kind, b, ret_error);
        for (size_t i = 0; r >= 0 && i < merged->n; i++)
                r = retile(s, merged->items + i, ret_error);
        return r;
}

static int begin(Store *s, char **ret_error) {
        int r;

        r = run_simple(s, STATEMENT_BEGIN, ret_error);
        if (r < 0)
                return r;
        for (enum object object = 0; object < _OBJECT_MAX; object++)
                keymap_begin(s->keys + object);
        return 0;
}

/* Commits what went well, or undoes it. */
static int end(Store *s, int r, char **ret_error) {
        if (r >= 0)
                r = run_simple(s, STATEMENT_COMMIT, ret_error);
        if (r >= 0)
                return 0;

        /* SQLite has already rolled back after some errors. */
        if (!sqlite3_get_autocommit(s->database))
                (void) run_simple(s, STATEMENT_ROLLBACK, NULL);
        for (enum object object = 0; object < _OBJECT_MAX; object++)
                keymap_rollback(s->keys + object);
        return r;
}

int store_write(Store *s, const Batch *b, char **ret_error) {
        MergedList merged = {};
        int r;

        r = begin(s, ret_error);
        if (r < 0)
                return r;
        r = write_rows(s, b, &merged, ret_error);
        free(merged.items);
        return end(s, r, ret_error);
}

int store_write_descriptions(Store *s, Batch *const *batches, size_t n, char **ret_error) {
        int r;

        r = begin(s, ret_error);
        if (r < 0)
                return r;
        for (enum row_kind kind = 0; r >= 0 && kind <= ROW_SOCKET; kind++)
                for (size_t i = 0; r >= 0 && i < n; i++)
                        r = kind == ROW_PROCESS ? write_processes(s, batches[i], ret_error)
                                                : write_kind(s, kind, batches[i], ret_error);
        return end(s, r, ret_error);
}
