/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Key performance indicators: what users measure of their service, to hold the recordings against. */
#include <math.h>

#include "internal.h"

static int run(Store *s, const char *sql, char **ret_error) {
        return sqlite3_exec(s->database, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : store_failed(s, ret_error);
}

static int insert_points(Store *s, const char *name, const StoreKpi *points, size_t n, char **ret_error) {
        _cleanup_statement_ sqlite3_stmt *st = NULL;
        int r;

        r = store_prepare(s, "INSERT OR REPLACE INTO kpi (name, ts_ns, value) VALUES (?1, ?2, ?3)", &st, ret_error);
        if (r < 0)
                return r;
        if (store_bind_text(st, 1, name) != SQLITE_OK)
                return store_say(ret_error, -ENOMEM, "There is not enough memory to work on %s.", store_name(s));
        for (size_t i = 0; i < n; i++) {
                sqlite3_bind_int64(st, 2, points[i].ts_ns);
                sqlite3_bind_double(st, 3, points[i].value);
                if (sqlite3_step(st) != SQLITE_DONE)
                        return store_failed(s, ret_error);
                sqlite3_reset(st);
        }
        return 0;
}

int store_add_kpi(Store *s, const char *name, const StoreKpi *points, size_t n, char **ret_error) {
        int r;

        for (size_t i = 0; i < n; i++)
                if (!isfinite(points[i].value))
                        return store_say(ret_error, -EINVAL, "Point %zu of %s is not a number.", i + 1, name);

        r = run(s, "BEGIN IMMEDIATE", ret_error);
        if (r < 0)
                return r;
        r = insert_points(s, name, points, n, ret_error);
        if (r >= 0)
                r = run(s, "COMMIT", ret_error);
        if (r < 0)
                (void) sqlite3_exec(s->database, "ROLLBACK", NULL, NULL, NULL);
        return r;
}
