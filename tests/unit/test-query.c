/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* store/query.c: templates, and what a user's SQL may do. */
#include "query.h"
#include "unit.h"

static const QueryVariable variables[] = {
        { "pid_filter", "(pid = 5 and machine_id = 1)" },
        { "limit", "10" },
        { "nested", "{{ limit }}" },
};
static const QueryRange one[] = { { 1 * SECOND, 2 * SECOND } };
static const QueryRange two[] = { { 3 * SECOND, 4 * SECOND }, { 5 * SECOND + 500, 6 * SECOND } };

static void assert_expands(const char *sql, const char *expected) {
        char *expanded = NULL;

        assert_done(query_expand(sql, variables, ELEMENTSOF(variables), one, 1, two, 2, &expanded, &error));
        ck_assert_str_eq(expanded, expected);
        free(expanded);
}

static void assert_refused(const char *sql, const char *part) {
        char *expanded = NULL;

        assert_fails(query_expand(sql, variables, ELEMENTSOF(variables), one, 1, two, 2, &expanded, &error), -EINVAL,
                        part);
        ck_assert_ptr_null(expanded);
}

START_TEST(test_variables) {
        assert_expands("", "");
        assert_expands("SELECT '{', '}' , 1 } }", "SELECT '{', '}' , 1 } }");
        assert_expands("SELECT {{limit}}", "SELECT 10");
        assert_expands("{{ limit }}{{\n\tlimit\t}}", "1010");
        assert_expands("WHERE {{ pid_filter }} AND {{ tid_filter }}", "WHERE (pid = 5 and machine_id = 1) AND (1)");
        /* A value is not a template. */
        assert_expands("{{ nested }}", "{{ limit }}");

        assert_refused("{{ unknown }}", "unknown");
        assert_refused("{{ limits }}", "limits");
        assert_refused("{{ }}", "without a name");
        assert_refused("{{}}", "without a name");
        assert_refused("{{ 1x }}", "without a name");
        assert_refused("{{ limit limit }}", "more than a name");
        assert_refused("{{ limit(\"ts\") }}", "more than a name");
        assert_refused("SELECT {{ limit", "without }}");
        assert_refused("SELECT {{ limit }} {{", "without }}");
        assert_refused("SELECT {{ limit }", "without }}");
}
END_TEST

START_TEST(test_filters) {
        assert_expands("{{ baseline_filter(\"ts\") }}",
                        "((ts > '1970-01-01 00:00:01.000000' AND ts <= '1970-01-01 00:00:02.000000'))");
        assert_expands("{{baseline_filter('v.TS_S')}}",
                        "((v.TS_S > '1970-01-01 00:00:01.000000' AND v.TS_S <= '1970-01-01 00:00:02.000000'))");
        assert_expands("{{ baseline_filter(\"ts_ns\") }}", "((ts_ns > 1000000000 AND ts_ns <= 2000000000))");
        assert_expands("{{ compare_filter (\"w.ts_ns\") }}",
                        "((w.ts_ns > 3000000000 AND w.ts_ns <= 4000000000) OR (w.ts_ns > 5000000500 AND w.ts_ns <= "
                        "6000000000))");
        assert_expands("{{ compare_filter(\"ts.x\") }}",
                        "((ts.x > 3000000000 AND ts.x <= 4000000000) OR (ts.x > 5000000500 AND ts.x <= 6000000000))");

        assert_refused("{{ baseline_filter }}", "column in quotes");
        assert_refused("{{ baseline_filter() }}", "column in quotes");
        assert_refused("{{ baseline_filter(ts) }}", "column in quotes");
        assert_refused("{{ baseline_filter(\"ts') }}", "column in quotes");
        assert_refused("{{ baseline_filter(\") }}", "column in quotes");
        assert_refused("{{ baseline_filter(\"\") }}", "not the name of a column");
        assert_refused("{{ baseline_filter(\"ts OR 1=1\") }}", "not the name of a column");
        assert_refused("{{ baseline_filter(\"ts); DROP TABLE wait; --\") }}", "not the name of a column");
        assert_refused("{{ baseline_filter(\"a.b.c\") }}", "not the name of a column");
        assert_refused("{{ baseline_filter(\".ts\") }}", "not the name of a column");
        assert_refused("{{ baseline_filter(\"ts.\") }}", "not the name of a column");
        assert_refused("{{ baseline_filter(\"1ts\") }}", "not the name of a column");
        assert_refused("{{ baseline_filter(\"ts\") OR 1 }}", "column in quotes");
}
END_TEST

START_TEST(test_no_ranges) {
        char *expanded = NULL;

        assert_fails(query_expand("{{ baseline_filter(\"ts\") }}", NULL, 0, NULL, 0, two, 2, &expanded, &error),
                        -EINVAL, "--baseline");
        assert_fails(query_expand("{{ compare_filter(\"ts\") }}", NULL, 0, one, 1, NULL, 0, &expanded, &error), -EINVAL,
                        "--compare");
        ck_assert_int_eq(query_expand("{{ x }}", NULL, 0, NULL, 0, NULL, 0, &expanded, NULL), -EINVAL);
        ck_assert_ptr_null(expanded);
        assert_done(query_expand("{{ pid_filter }}", NULL, 0, NULL, 0, NULL, 0, &expanded, &error));
        ck_assert_str_eq(expanded, "(1)");
        free(expanded);
}
END_TEST

static Store *open_filled(void) {
        _cleanup_(batch_unrefp) Batch *b = batch_new();
        Store *s = open_store(NULL);

        assert_done(batch_add_process(
                        b, &(BatchProcess){ .key = 1, .pid = 7, .host_pid = 7, .comm = "p", .found_by = "target" }));
        assert_done(batch_add_thread(
                        b, &(BatchThread){ .key = 1, .process_key = 1, .tid = 7, .host_tid = 7, .comm = "t" }));
        for (int64_t i = 1; i <= 10; i++)
                assert_done(batch_add_thread_time(b,
                                &(BatchThreadTime){ .ts_ns = i * SECOND,
                                                .dt_ns = SECOND,
                                                .thread_key = 1,
                                                .runqueue_ns = 50 * NSEC_PER_MSEC }));
        assert_done(store_write(s, b, &error));
        return s;
}

static int64_t count_matches(Store *s, const char *sql) {
        _cleanup_free_ char *expanded = NULL;
        QueryRange baseline = { 2 * SECOND, 5 * SECOND };

        assert_done(query_expand(sql, NULL, 0, &baseline, 1, two, 2, &expanded, &error));
        return number(s, expanded);
}

/* The same rows, whichever clock the column has. */
START_TEST(test_filters_in_a_database) {
        _cleanup_(store_closep) Store *s = open_filled();

        ck_assert_int_eq(
                        count_matches(s, "SELECT count(*) FROM thread_time WHERE {{ baseline_filter(\"ts_ns\") }}"), 3);
        ck_assert_int_eq(count_matches(s,
                                         "SELECT count(*) FROM taskstats_view WHERE {{ baseline_filter(\"ts\") }} AND "
                                         "{{ pid_filter }}"),
                        3);
        ck_assert_int_eq(count_matches(s, "SELECT count(*) FROM thread_time t WHERE {{ compare_filter(\"t.ts_ns\") }}"),
                        2);
        ck_assert_int_eq(count_matches(s, "SELECT count(*) FROM taskstats_view v WHERE {{ compare_filter(\"v.ts\") }}"),
                        2);
        ck_assert_int_eq(count_matches(s,
                                         "SELECT count(*) FROM (SELECT ts, pid, tid, rq_share AS share, 'baseline' AS "
                                         "type FROM taskstats_view "
                                         "WHERE {{ pid_filter }} AND {{ baseline_filter(\"ts\") }} AND rq_share > "
                                         "0.01)"),
                        3);
}
END_TEST

static int run(Store *s, const char *sql) {
        return sqlite3_exec(store_database(s), sql, NULL, NULL, NULL) & 0xff;
}

START_TEST(test_reading_is_allowed) {
        static const char *const allowed[] = {
                "SELECT count(*) FROM thread_time",
                "SELECT ts, rq_share FROM taskstats_view ORDER BY rq_share DESC LIMIT 5",
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT sum(i) FROM n",
                "SELECT thread_id, sum(run_ns) OVER (ORDER BY ts_ns) FROM thread_time",
                "SELECT name FROM sqlite_schema",
                "SELECT json_extract(options, '$.calls') FROM recording",
                "SELECT value FROM json_each('[1,2]')",
                "PRAGMA table_info(wait)",
                "SELECT name FROM pragma_table_info('wait')",
                "PRAGMA user_version",
                "PRAGMA integrity_check",
                "EXPLAIN QUERY PLAN SELECT * FROM wait",
                "VALUES (1), (2)",
        };
        _cleanup_(store_closep) Store *s = open_filled();

        ck_assert_int_eq(query_check_readonly(store_database(s)), 0);
        for (size_t i = 0; i < ELEMENTSOF(allowed); i++)
                ck_assert_msg(run(s, allowed[i]) == SQLITE_OK, "%s: %s", allowed[i], sqlite3_errmsg(store_database(s)));
}
END_TEST

START_TEST(test_anything_else_is_not) {
        static const char *const denied[] = {
                "INSERT INTO kpi VALUES ('a', 1, 1.0)",
                "REPLACE INTO kpi VALUES ('a', 1, 1.0)",
                "UPDATE thread_time SET run_ns = 0",
                "DELETE FROM thread_time",
                "DROP TABLE wait",
                "DROP VIEW taskstats_view",
                "CREATE TABLE t (a)",
                "CREATE TEMP TABLE t (a)",
                "CREATE TABLE t AS SELECT 1",
                "CREATE VIEW v AS SELECT 1",
                "CREATE TEMP VIEW v AS SELECT 1",
                "CREATE TEMP TRIGGER t AFTER INSERT ON kpi BEGIN SELECT 1; END",
                "CREATE INDEX i ON kpi (value)",
                "CREATE VIRTUAL TABLE temp.f USING fts5(a)",
                "ALTER TABLE kpi RENAME TO x",
                "ATTACH '/tmp/prism-unit-attached.db' AS other",
                "ATTACH ':memory:' AS other",
                "DETACH main",
                "VACUUM",
                "VACUUM INTO '/tmp/prism-unit-vacuumed.db'",
                "REINDEX",
                "ANALYZE",
                "BEGIN",
                "SAVEPOINT a",
                "PRAGMA user_version = 7",
                "PRAGMA application_id = 7",
                "PRAGMA journal_mode = DELETE",
                "PRAGMA writable_schema = ON",
                "PRAGMA query_only = OFF",
                "PRAGMA wal_checkpoint(TRUNCATE)",
                "PRAGMA incremental_vacuum",
                "PRAGMA temp_store_directory = '/tmp'",
                "PRAGMA trusted_schema = ON",
                "PRAGMA locking_mode = EXCLUSIVE",
                "SELECT load_extension('x')",
                "SELECT fts3_tokenizer('simple')",
                "SELECT 1; DELETE FROM thread_time",
                "WITH x AS (SELECT 1) DELETE FROM thread_time",
                "EXPLAIN DELETE FROM thread_time",
        };
        _cleanup_(store_closep) Store *s = open_filled();
        struct stat st;

        ck_assert_int_eq(query_check_readonly(store_database(s)), 0);
        for (size_t i = 0; i < ELEMENTSOF(denied); i++) {
                int code = run(s, denied[i]);

                /* A function that is denied fails with SQLITE_ERROR. */
                ck_assert_msg(code == SQLITE_AUTH ||
                                                (code == SQLITE_ERROR &&
                                                                strstr(sqlite3_errmsg(store_database(s)),
                                                                                "not authorized")),
                                "%s: %d, %s", denied[i], code, sqlite3_errmsg(store_database(s)));
        }
        ck_assert_int_eq(number(s, "SELECT count(*) FROM thread_time"), 10);
        ck_assert_int_lt(stat("/tmp/prism-unit-attached.db", &st), 0);
        ck_assert_int_lt(stat("/tmp/prism-unit-vacuumed.db", &st), 0);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("query");
        TCase *tests = tcase_create("query");

        tcase_add_test(tests, test_variables);
        tcase_add_test(tests, test_filters);
        tcase_add_test(tests, test_no_ranges);
        tcase_add_test(tests, test_filters_in_a_database);
        tcase_add_test(tests, test_reading_is_allowed);
        tcase_add_test(tests, test_anything_else_is_not);
        suite_add_tcase(suite, tests);
        return run_suite(suite);
}
