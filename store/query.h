/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* SQL that a user brings: its `{{ }}` expanded (a pure function), and a guard that lets it read and nothing else. */
#pragma once

#include <sqlite3.h>

#include "basic/macro.h"

typedef struct QueryVariable {
        const char *name, *value;
} QueryVariable;

/* (start_ns, end_ns], as a measurement row's interval. */
typedef struct QueryRange {
        int64_t start_ns, end_ns;
} QueryRange;

/* Replaces `{{ name }}` by the value of that variable (pid_filter and tid_filter are "(1)" when they are not given) and
 * `{{ baseline_filter("col") }}`, `{{ compare_filter("col") }}` by a condition, in parentheses, that the column lies in
 * one of the ranges. A column whose last part is ts or ts_s is compared as ISO text in UTC, any other as Unix time in
 * nanoseconds. A value is inserted as it is and not expanded again; what bounds a query is query_check_readonly().
 * -EINVAL with a sentence: what is wrong with the template, or what was not given. -ENOMEM. */
int query_expand(const char *sql, const QueryVariable *vars, size_t n, const QueryRange *baseline, size_t n_baseline,
                const QueryRange *compare, size_t n_compare, char **ret, char **ret_error);

/* From here on the connection compiles statements that read, and fails the others with SQLITE_AUTH. How long a
 * statement may run is left to the caller's progress handler. 0 or -EIO. */
int query_check_readonly(sqlite3 *db);
