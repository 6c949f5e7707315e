/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Counting queries. */
#include "contents.h"
#include "statement.h"

static int count(Store *s, const char *sql, int64_t start_ns, int64_t end_ns, uint64_t *ret, char **ret_error) {
        _cleanup_(sqlite3_finalizep) sqlite3_stmt *q = NULL;
        int r;

        r = statement_prepare(s, sql, &q, ret_error);
        if (r < 0)
                return r;

        sqlite3_bind_int64(q, 1, start_ns);
        sqlite3_bind_int64(q, 2, end_ns);

        r = statement_step(s, q, ret_error);
        if (r < 0)
                return r;

        *ret = r > 0 ? (uint64_t) sqlite3_column_int64(q, 0) : 0;
        return 0;
}

int contents_read(Store *s, int64_t start_ns, int64_t end_ns, Contents *ret, char **ret_error) {
        static const char *const tables[CONTENTS_TABLES] = {
                "thread_time",
                "wait",
                "mux_wait",
                "call",
                "wake",
                "disk",
                "ran_instead",
                "socket_sample",
                "cgroup_time",
                "coverage",
        };
        Contents c = {};
        int r;

        for (size_t i = 0; i < CONTENTS_TABLES; i++) {
                char sql[128];

                snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s WHERE ts_ns > ?1 AND ts_ns <= ?2", tables[i]);
                c.tables[i].table = tables[i];
                r = count(s, sql, start_ns, end_ns, &c.tables[i].rows, ret_error);
                if (r < 0)
                        return r;
        }

        r = count(s, "SELECT count(DISTINCT thread_id) FROM thread_time WHERE ts_ns > ?1 AND ts_ns <= ?2", start_ns,
                        end_ns, &c.threads, ret_error);
        if (r < 0)
                return r;

        r = count(s,
                        "SELECT count(DISTINCT process_id) FROM thread WHERE id IN"
                        " (SELECT DISTINCT thread_id FROM thread_time WHERE ts_ns > ?1 AND ts_ns <= ?2)",
                        start_ns, end_ns, &c.processes, ret_error);
        if (r < 0)
                return r;

        r = count(s, "SELECT coalesce(sum(count), 0) FROM loss WHERE ts_ns > ?1 AND ts_ns <= ?2", start_ns, end_ns,
                        &c.losses, ret_error);
        if (r < 0)
                return r;

        *ret = c;
        return 0;
}

int contents_extent(Store *s, int64_t *ret_start_ns, int64_t *ret_end_ns, char **ret_error) {
        _cleanup_(sqlite3_finalizep) sqlite3_stmt *q = NULL;
        int r;

        r = statement_prepare(s, "SELECT min(ts_ns - dt_ns), max(ts_ns) FROM thread_time", &q, ret_error);
        if (r < 0)
                return r;

        r = statement_step(s, q, ret_error);
        if (r < 0)
                return r;
        if (r == 0 || sqlite3_column_type(q, 0) == SQLITE_NULL)
                return -ENODATA;

        *ret_start_ns = sqlite3_column_int64(q, 0);
        *ret_end_ns = sqlite3_column_int64(q, 1);
        return 0;
}
