/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* store/recording.c: periods with names, and what goes when one goes. */
#include "basic/text.h"
#include "unit.h"

static int64_t begin(Store *s, const char *name, int64_t start_ns) {
        int64_t id = 0;

        assert_done(store_recording_begin(s, name, start_ns, "{}", &id, &error));
        return id;
}

static int64_t record(Store *s, const char *name, int64_t start_ns, int64_t end_ns) {
        int64_t id = begin(s, name, start_ns);

        assert_done(store_recording_end(s, id, end_ns, "finished", &error));
        return id;
}

/* A row each dt_ns in (from, to] in every table of measurements. */
static void write_rows(Store *s, int64_t from_ns, int64_t to_ns, int64_t dt_ns) {
        _cleanup_(batch_unrefp) Batch *b = batch_new();

        assert_done(batch_add_process(
                        b, &(BatchProcess){ .key = 1, .pid = 7, .host_pid = 7, .comm = "p", .found_by = "target" }));
        assert_done(batch_add_thread(
                        b, &(BatchThread){ .key = 1, .process_key = 1, .tid = 7, .host_tid = 7, .comm = "t" }));
        assert_done(batch_add_resource(b, &(BatchResource){ .key = 1, .kind = "futex", .ident = "1" }));
        for (int64_t ts_ns = from_ns + dt_ns; ts_ns <= to_ns; ts_ns += dt_ns) {
                assert_done(batch_add_thread_time(
                                b, &(BatchThreadTime){ .ts_ns = ts_ns, .dt_ns = dt_ns, .thread_key = 1 }));
                assert_done(batch_add_wait(b,
                                &(BatchWait){ .ts_ns = ts_ns,
                                                .dt_ns = dt_ns,
                                                .thread_key = 1,
                                                .resource_key = 1,
                                                .op = "w" }));
                assert_done(batch_add_wake(b,
                                &(BatchWake){ .ts_ns = ts_ns,
                                                .dt_ns = dt_ns,
                                                .waker_kind = "irq",
                                                .thread_key = 1,
                                                .resource_key = 1 }));
                assert_done(batch_add_ran_instead(
                                b, &(BatchRanInstead){ .ts_ns = ts_ns, .dt_ns = dt_ns, .thread_key = 1 }));
                assert_done(batch_add_mux_wait(b,
                                &(BatchMuxWait){ .ts_ns = ts_ns,
                                                .dt_ns = dt_ns,
                                                .thread_key = 1,
                                                .resource_key = 1,
                                                .op = "w" }));
                assert_done(batch_add_call(b,
                                &(BatchCall){ .ts_ns = ts_ns,
                                                .dt_ns = dt_ns,
                                                .thread_key = 1,
                                                .resource_key = 1,
                                                .op = "w" }));
                assert_done(batch_add_socket_sample(
                                b, &(BatchSocketSample){ .ts_ns = ts_ns, .dt_ns = dt_ns, .resource_key = 1 }));
                assert_done(batch_add_disk(
                                b, &(BatchDisk){ .ts_ns = ts_ns, .dt_ns = dt_ns, .process_key = 1, .op = "read" }));
                assert_done(batch_add_cgroup_time(
                                b, &(BatchCgroupTime){ .ts_ns = ts_ns, .dt_ns = dt_ns, .cgroup = "/" }));
                assert_done(batch_add_coverage(b, &(BatchCoverage){ .ts_ns = ts_ns, .dt_ns = dt_ns, .part = "calls" }));
                assert_done(batch_add_loss(
                                b, &(BatchLoss){ .ts_ns = ts_ns, .part = "kernel", .reason = "x", .count = 1 }));
        }
        assert_done(store_write(s, b, &error));
}

START_TEST(test_life) {
        _cleanup_(store_closep) Store *s = open_store(NULL);
        StoreRecording *rows = NULL;
        int64_t late, early, ignored = 77;
        size_t n = 0;

        assert_done(store_recordings(s, &rows, &n, &error));
        ck_assert_uint_eq(n, 0);
        free(rows);

        assert_done(store_recording_begin(s, "late", 20 * SECOND, "{\"calls\":\"none\"}", &late, &error));
        early = begin(s, "early 'quoted' \xc3\xa4", 10 * SECOND);
        assert_fails(store_recording_begin(s, "late", 30 * SECOND, "{}", &ignored, &error), -EEXIST, "late");
        ck_assert_int_eq(ignored, 77);

        assert_done(store_recording_end(s, late, 25 * SECOND, "finished", &error));
        assert_fails(store_recording_end(s, late, 26 * SECOND, "finished", &error), -ENOENT, "no running recording");
        assert_fails(store_recording_end(s, 999, 26 * SECOND, "finished", &error), -ENOENT, "999");

        assert_done(store_recordings(s, &rows, &n, &error));
        ck_assert_uint_eq(n, 2);
        ck_assert_int_eq(rows[0].id, early);
        ck_assert_str_eq(rows[0].name, "early 'quoted' \xc3\xa4");
        ck_assert_str_eq(rows[0].state, "running");
        ck_assert_int_eq(rows[0].start_ns, 10 * SECOND);
        ck_assert_int_eq(rows[0].end_ns, 0);
        ck_assert(rows[0].pinned);
        ck_assert_str_eq(rows[0].options, "{}");
        ck_assert_int_eq(rows[1].id, late);
        ck_assert_str_eq(rows[1].state, "finished");
        ck_assert_int_eq(rows[1].end_ns, 25 * SECOND);
        ck_assert_str_eq(rows[1].options, "{\"calls\":\"none\"}");
        for (size_t i = 0; i < n; i++)
                store_recording_done(rows + i);
        free(rows);
}
END_TEST

START_TEST(test_interrupt) {
        _cleanup_(store_closep) Store *s = open_store(NULL);
        int64_t finished, with_rows, without_rows;

        finished = record(s, "finished", SECOND, 2 * SECOND);
        with_rows = begin(s, "with", 2 * SECOND);
        write_rows(s, 2 * SECOND, 9 * SECOND, SECOND);
        without_rows = begin(s, "without", 50 * SECOND);
        /* A thread that only ran has no other row. */
        {
                _cleanup_(batch_unrefp) Batch *b = batch_new();

                assert_done(batch_add_call(b,
                                &(BatchCall){ .ts_ns = 10 * SECOND,
                                                .dt_ns = SECOND,
                                                .thread_key = 1,
                                                .resource_key = 1,
                                                .op = "read" }));
                assert_done(store_write(s, b, &error));
        }
        assert_done(store_recordings_interrupt(s, &error));

        ck_assert_int_eq(number(s, "SELECT count(*) FROM recording WHERE state = 'interrupted'"), 2);
        ck_assert_int_eq(number(s, "SELECT count(*) FROM recording WHERE state = 'finished' AND end_ns = 2000000000"),
                        1);
        ck_assert_int_eq(number(s, "SELECT end_ns FROM recording WHERE name = 'with'"), 10 * SECOND);
        ck_assert_int_eq(number(s, "SELECT end_ns FROM recording WHERE name = 'without'"), 50 * SECOND);
        ck_assert_int_lt(finished, with_rows);
        ck_assert_int_lt(with_rows, without_rows);
        assert_done(store_recordings_interrupt(s, &error));
        ck_assert_int_eq(number(s, "SELECT count(*) FROM recording WHERE state = 'interrupted'"), 2);
}
END_TEST

static const char *const tables[] = { "thread_time", "wait", "mux_wait", "call", "wake", "ran_instead", "socket_sample",
        "disk", "cgroup_time", "coverage", "loss" };

static void assert_rows(Store *s, int64_t first_ns, int64_t last_ns, int64_t count) {
        for (size_t i = 0; i < ELEMENTSOF(tables); i++) {
                char sql[96];

                (void) snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s", tables[i]);
                ck_assert_msg(number(s, sql) == count, "%s: %lld rows", tables[i], (long long) number(s, sql));
                (void) snprintf(sql, sizeof(sql), "SELECT min(ts_ns) FROM %s", tables[i]);
                ck_assert_msg(number(s, sql) == first_ns, "%s: from %lld", tables[i], (long long) number(s, sql));
                (void) snprintf(sql, sizeof(sql), "SELECT max(ts_ns) FROM %s", tables[i]);
                ck_assert_msg(number(s, sql) == last_ns, "%s: until %lld", tables[i], (long long) number(s, sql));
        }
}

START_TEST(test_delete_alone) {
        _cleanup_(store_closep) Store *s = open_store(NULL);
        int64_t id;

        id = record(s, "a", 100 * SECOND, 200 * SECOND);
        write_rows(s, 100 * SECOND, 200 * SECOND, SECOND);
        {
                _cleanup_(batch_unrefp) Batch *b = batch_new();

                assert_done(batch_add_socket(b, &(BatchSocket){ .resource_key = 1, .family = 2 }));
                assert_done(batch_add_epoll_watch(b,
                                &(BatchEpollWatch){ .resource_key = 1,
                                                .watched_key = 1,
                                                .first_ns = 110 * SECOND,
                                                .last_ns = 120 * SECOND }));
                assert_done(store_write(s, b, &error));
        }
        assert_done(store_recording_delete(s, id, &error));
        assert_rows(s, -1, -1, 0);
        ck_assert_int_eq(number(s, "SELECT count(*) FROM recording"), 0);
        /* Descriptions stay. */
        ck_assert_int_eq(number(s, "SELECT count(*) FROM thread"), 1);
        ck_assert_int_eq(number(s, "SELECT count(*) FROM socket JOIN resource ON id = resource_id"), 1);
        ck_assert_int_eq(number(s, "SELECT count(*) FROM epoll_watch"), 1);
        assert_fails(store_recording_delete(s, id, &error), -ENOENT, "no recording");
}
END_TEST

/* A table with times that nobody thought of here would keep its rows for ever. */
START_TEST(test_every_table_is_known) {
        _cleanup_(store_closep) Store *s = open_store(NULL);
        sqlite3_stmt *st = NULL;
        size_t n = 0;

        ck_assert_int_eq(sqlite3_prepare_v2(store_database(s),
                                         "SELECT t.name FROM pragma_table_list t, pragma_table_info(t.name) c "
                                         "WHERE t.type = 'table' AND t.schema = 'main' AND c.name = 'ts_ns' AND t.name "
                                         "<> "
                                         "'kpi'",
                                         -1, &st, NULL),
                        SQLITE_OK);
        for (; sqlite3_step(st) == SQLITE_ROW; n++) {
                const char *table = (const char *) sqlite3_column_text(st, 0);
                bool seen = false;

                for (size_t i = 0; i < ELEMENTSOF(tables); i++)
                        seen |= streq(tables[i], table);
                ck_assert_msg(seen, "%s is not tested here", table);
        }
        sqlite3_finalize(st);
        ck_assert_uint_eq(n, ELEMENTSOF(tables));
}
END_TEST

START_TEST(test_delete_overlapping) {
        _cleanup_(store_closep) Store *s = open_store(NULL);
        int64_t middle, inner;

        record(s, "before", 100 * SECOND, 140 * SECOND);
        middle = record(s, "middle", 130 * SECOND, 170 * SECOND);
        begin(s, "running", 160 * SECOND);
        inner = record(s, "inner", 165 * SECOND, 168 * SECOND);
        write_rows(s, 100 * SECOND, 200 * SECOND, SECOND);

        assert_done(store_recording_delete(s, inner, &error));
        assert_rows(s, 101 * SECOND, 200 * SECOND, 100);
        assert_done(store_recording_delete(s, middle, &error));
        assert_rows(s, 101 * SECOND, 200 * SECOND, 80);
        ck_assert_int_eq(number(s, "SELECT max(ts_ns) FROM wait WHERE ts_ns < 150000000000"), 140 * SECOND);
        ck_assert_int_eq(number(s, "SELECT min(ts_ns) FROM wait WHERE ts_ns > 150000000000"), 161 * SECOND);
}
END_TEST

/* Periods that touch share no row; a long row that reaches into one of them stays while it does. */
START_TEST(test_delete_borders) {
        _cleanup_(store_closep) Store *s = open_store(NULL);
        int64_t first, second;

        first = record(s, "first", 0, 60 * SECOND);
        second = record(s, "second", 60 * SECOND, 150 * SECOND);
        write_rows(s, 0, 150 * SECOND, 50 * SECOND); /* until 50, 100 and 150 s */
        assert_done(store_recording_delete(s, first, &error));
        assert_rows(s, 100 * SECOND, 150 * SECOND, 2);
        assert_done(store_recording_delete(s, second, &error));
        assert_rows(s, -1, -1, 0);

        /* The end of the last row lies behind the end of the recording. */
        first = record(s, "first", 0, 60 * SECOND);
        write_rows(s, 0, 40 * SECOND, 40 * SECOND);
        {
                _cleanup_(batch_unrefp) Batch *b = batch_new();

                assert_done(batch_add_thread_time(
                                b, &(BatchThreadTime){ .ts_ns = 100 * SECOND, .dt_ns = 60 * SECOND, .thread_key = 1 }));
                assert_done(batch_add_thread_time(
                                b, &(BatchThreadTime){ .ts_ns = 120 * SECOND, .dt_ns = 20 * SECOND, .thread_key = 1 }));
                assert_done(store_write(s, b, &error));
        }
        assert_done(store_recording_delete(s, first, &error));
        ck_assert_int_eq(number(s, "SELECT ts_ns FROM thread_time"), 120 * SECOND);
}
END_TEST

START_TEST(test_delete_running) {
        _cleanup_(store_closep) Store *s = open_store(NULL);
        int64_t id = begin(s, "running", SECOND);

        write_rows(s, SECOND, 9 * SECOND, SECOND);
        assert_fails(store_recording_delete(s, id, &error), -EINPROGRESS, "still running");
        assert_rows(s, 2 * SECOND, 9 * SECOND, 8);
}
END_TEST

/* In small steps, with writing in between, and the file becomes small again. */
START_TEST(test_delete_in_steps) {
        struct stat before, after;
        unsigned steps = 0;
        int64_t id, cursor = 0, rows = 0;
        Store *s;
        int r;

        directory_make();
        s = open_store(in_directory("prism.db"));
        id = record(s, "a", 0, 400 * SECOND);
        write_rows(s, 0, 400 * SECOND, SECOND / 20);
        ck_assert_int_eq(store_checkpoint(s), 0);
        ck_assert_int_eq(stat(in_directory("prism.db"), &before), 0);

        rows = number(s, "SELECT count(*) FROM thread_time");
        for (r = 1; r > 0; steps++) {
                char *error = NULL;
                int64_t left;

                r = store_recording_delete_some(s, id, &cursor, &error);
                ck_assert_msg(r >= 0, "%s", error);
                left = number(s, "SELECT count(*) FROM thread_time");
                ck_assert_int_le(rows - left, 10 * 20);
                rows = left;
                ck_assert_int_eq(number(s, "SELECT count(*) FROM recording"), r > 0);
        }
        ck_assert_int_eq(rows, 0);
        ck_assert_uint_eq(steps, 41);
        ck_assert_int_eq(number(s, "PRAGMA freelist_count"), 0);
        ck_assert_int_eq(store_checkpoint(s), 0);
        ck_assert_int_eq(stat(in_directory("prism.db"), &after), 0);
        ck_assert_int_gt(before.st_size, 1000000);
        ck_assert_int_lt(after.st_size, 300000);
        assert_text(s, "PRAGMA integrity_check", "ok");
        s = store_close(s);
        directory_remove();
}
END_TEST

int main(void) {
        Suite *suite = suite_create("recording");
        TCase *tests = tcase_create("recording");

        tcase_set_timeout(tests, 30);
        tcase_add_test(tests, test_life);
        tcase_add_test(tests, test_interrupt);
        tcase_add_test(tests, test_delete_alone);
        tcase_add_test(tests, test_every_table_is_known);
        tcase_add_test(tests, test_delete_overlapping);
        tcase_add_test(tests, test_delete_borders);
        tcase_add_test(tests, test_delete_running);
        tcase_add_test(tests, test_delete_in_steps);
        suite_add_tcase(suite, tests);
        return run_suite(suite);
}
