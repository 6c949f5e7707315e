/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Unions of intervals, and a proportion. */
#include "coverage.h"

/* 1 %: a part that is switched on for a recording comes some milliseconds later. */
#define COVERAGE_ERROR_SHARE 100

/* The length of the union of the intervals (start, end] that a query yields in the order of their starts, inside the
 * range. `text` is bound to ?3 unless it is NULL. */
static int add_up(Reading *r, const char *sql, const char *text, uint64_t *ret_ns, bool *ret_any, char **ret_error) {
        _cleanup_(sqlite3_finalizep) sqlite3_stmt *q = NULL;
        int64_t reached_ns = r->start_ns;
        uint64_t sum_ns = 0;
        bool any = false;
        int k;

        k = statement_prepare(r->store, sql, &q, ret_error);
        if (k < 0)
                return k;
        sqlite3_bind_int64(q, 1, r->start_ns);
        sqlite3_bind_int64(q, 2, r->end_ns);
        if (text)
                sqlite3_bind_text(q, 3, text, -1, SQLITE_STATIC);

        while ((k = statement_step(r->store, q, ret_error)) > 0) {
                int64_t from_ns = MAX(sqlite3_column_int64(q, 0), reached_ns);
                int64_t until_ns = MIN(sqlite3_column_int64(q, 1), r->end_ns);

                any = true;
                if (until_ns > from_ns) {
                        sum_ns += (uint64_t) until_ns - (uint64_t) from_ns;
                        reached_ns = until_ns;
                }
        }
        if (k < 0)
                return k;

        *ret_ns = sum_ns;
        *ret_any = any;
        return 0;
}

int coverage_read(Reading *r, const char *part, Coverage *ret, char **ret_error) {
        Coverage c;
        bool any;
        int k;

        k = add_up(r,
                        "SELECT start_ns, coalesce(end_ns, ?2) FROM recording"
                        " WHERE start_ns < ?2 AND coalesce(end_ns, ?2) > ?1 ORDER BY start_ns",
                        NULL, &c.recorded_ns, &any, ret_error);
        if (k < 0)
                return k;
        if (!any)
                c.recorded_ns = r->end_ns > r->start_ns ? (uint64_t) r->end_ns - (uint64_t) r->start_ns : 0;

        k = add_up(r,
                        "SELECT ts_ns - dt_ns, ts_ns FROM coverage"
                        " WHERE part = ?3 AND ts_ns > ?1 AND ts_ns - dt_ns < ?2 ORDER BY ts_ns - dt_ns",
                        part, &c.covered_ns, &any, ret_error);
        if (k < 0)
                return k;

        c.covered_ns = MIN(c.covered_ns, c.recorded_ns);
        *ret = c;
        return 0;
}

bool coverage_is_estimate(const Coverage *c) {
        return c->recorded_ns - c->covered_ns > c->recorded_ns / COVERAGE_ERROR_SHARE;
}

uint64_t coverage_scale(const Coverage *c, uint64_t value) {
        unsigned __int128 scaled;

        if (c->covered_ns == 0 || !coverage_is_estimate(c))
                return value;
        scaled = ((unsigned __int128) value * c->recorded_ns + c->covered_ns / 2) / c->covered_ns;
        return scaled > UINT64_MAX ? UINT64_MAX : (uint64_t) scaled;
}

double coverage_rate(const Coverage *c, uint64_t value) {
        return c->covered_ns > 0 ? (double) value * (double) NSEC_PER_SEC / (double) c->covered_ns : 0;
}
