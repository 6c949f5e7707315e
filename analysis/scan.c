/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One query a table, which hands each row to an aggregate function of ours: SQLite then walks the table without coming back
 * for each row and column, which is a third of the time. */
#include "scan.h"

/* There only while a scan runs, to which it belongs. */
#define SCAN_FUNCTION "prism_scan"

typedef struct Scanning {
        Reading *reading;
        const Scan *scan;
        void *userdata;
        int error; /* what ended it early */
        ScanRow row;
} Scanning;

static void add_row(const Scan *s, const ScanRow *row, void *object) {
        for (size_t i = 0; i < s->n_columns; i++) {
                uint64_t value = scan_value(row, s->n_keys + (int) i);
                uint64_t *sum = (uint64_t *) ((char *) object + s->columns[i].offset);

                if (s->columns[i].rule == SCAN_MAXIMUM)
                        *sum = MAX(*sum, value);
                else if (value > 0)
                        *sum += clip_value(row->clip, value);
        }
}

static int take_row(Scanning *g) {
        Reading *r = g->reading;
        ScanRow *row = &g->row;
        void *object = NULL;
        int k;

        row->clip = clip_row(sqlite3_value_int64(row->values[0]), sqlite3_value_int64(row->values[1]), r->start_ns,
                        r->end_ns);
        if (clip_is_empty(row->clip))
                return 0;

        if (g->scan->by_thread) {
                k = reading_thread(r, scan_id(row, 0), &row->thread, row->ret_error);
                if (k < 0)
                        return k;
                if (!reading_wants(r, row->thread))
                        return 0;
        }

        k = g->scan->find(r, row, g->userdata, &object);
        if (k < 0)
                return k;
        if (object)
                add_row(g->scan, row, object);
        return 0;
}

static void on_row(sqlite3_context *context, int n_values, sqlite3_value **values) {
        Scanning *g = sqlite3_user_data(context);

        g->row.values = values;
        g->error = take_row(g);
        if (g->error < 0)
                sqlite3_result_error_code(context, SQLITE_ABORT);
}

static void on_end(sqlite3_context *context) {
        sqlite3_result_null(context);
}

static int make_query(const Scan *s, char **ret) {
        _cleanup_free_ char *sql = NULL;
        FILE *f;
        size_t size;

        f = open_memstream(&sql, &size);
        if (!f)
                return -ENOMEM;
        fprintf(f, "SELECT " SCAN_FUNCTION "(ts_ns, dt_ns, %s", s->keys);
        for (size_t i = 0; i < s->n_columns; i++)
                fprintf(f, ", %s", s->columns[i].name);
        /* The bounds on the bare ts_ns are what the key's index can use. */
        fprintf(f, ") FROM %s WHERE ts_ns > ?1 AND ts_ns < ?2", s->table);
        if (fclose(f) != 0)
                return -ENOMEM;
        *ret = TAKE_PTR(sql);
        return 0;
}

static int run(Reading *r, Scanning *g, const char *sql, char **ret_error) {
        _cleanup_(sqlite3_finalizep) sqlite3_stmt *q = NULL;
        int k;

        k = statement_prepare(r->store, sql, &q, ret_error);
        if (k < 0)
                return k;
        sqlite3_bind_int64(q, 1, r->start_ns);
        sqlite3_bind_int64(q, 2,
                        r->end_ns < INT64_MAX - CLIP_LONGEST_ROW_NS ? r->end_ns + CLIP_LONGEST_ROW_NS : INT64_MAX);

        k = sqlite3_step(q);
        if (g->error < 0)
                return g->error;
        return k == SQLITE_ROW ? 0 : statement_error(r->store, ret_error);
}

int scan(Reading *r, const Scan *s, void *userdata, char **ret_error) {
        sqlite3 *db = store_database(r->store);
        Scanning g = { .reading = r, .scan = s, .userdata = userdata, .row = { .ret_error = ret_error } };
        _cleanup_free_ char *sql = NULL;
        int k;

        k = make_query(s, &sql);
        if (k < 0)
                return k;
        if (sqlite3_create_function_v2(db, SCAN_FUNCTION, -1, SQLITE_UTF8, &g, NULL, on_row, on_end, NULL) != SQLITE_OK)
                return statement_error(r->store, ret_error);
        k = run(r, &g, sql, ret_error);
        sqlite3_create_function_v2(db, SCAN_FUNCTION, -1, SQLITE_UTF8, NULL, NULL, NULL, NULL, NULL);
        return k;
}
