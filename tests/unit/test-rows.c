/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* store/rows.c: what its table says of the kinds of rows, seen through store_write(). test-write.c has the transaction, and
 * the kinds that came first. */
#include "internal.h"
#include "unit.h"

/* A process (key 1) of one thread (key 1) and four resources (keys 1 to 4). */
static void describe(Batch *b) {
        assert_done(batch_add_process(
                        b, &(BatchProcess){ .key = 1, .pid = 7, .host_pid = 7, .comm = "p", .found_by = "target" }));
        assert_done(batch_add_thread(
                        b, &(BatchThread){ .key = 1, .process_key = 1, .tid = 7, .host_tid = 7, .comm = "t" }));
        for (uint64_t key = 1; key <= 4; key++) {
                char ident[] = { (char) ('a' + key - 1), '\0' };

                assert_done(batch_add_resource(b, &(BatchResource){ .key = key, .kind = "inet", .ident = ident }));
        }
}

static Store *new_store(void) {
        _cleanup_(batch_unrefp) Batch *b = batch_new();
        Store *s = open_store(NULL);

        describe(b);
        assert_done(store_write(s, b, &error));
        return s;
}

/* Writes a batch of one row of each of the given. */
#define write_one(s, kind, ...)                                  \
        do {                                                     \
                Batch *_b_ = batch_new();                        \
                assert_done(batch_add_##kind(_b_, __VA_ARGS__)); \
                assert_done(store_write((s), _b_, &error));      \
                batch_unref(_b_);                                \
        } while (0)

#define assert_refused_key(s, kind, what, ...)                                \
        do {                                                                  \
                Batch *_b_ = batch_new();                                     \
                assert_done(batch_add_##kind(_b_, __VA_ARGS__));              \
                assert_fails(store_write((s), _b_, &error), -ENOKEY, (what)); \
                batch_unref(_b_);                                             \
        } while (0)

/* Every statement that the table makes is one that the schema takes, with as many parameters as are bound. */
START_TEST(test_statements) {
        _cleanup_(store_closep) Store *s = open_store(NULL);

        for (enum row_kind kind = 0; kind < _ROW_MAX; kind++)
                for (unsigned merge = 0; merge < 2; merge++) {
                        char *sql = row_sql(kind, merge != 0);
                        sqlite3_stmt *st = NULL;
                        int n = 0;

                        ck_assert_msg(sqlite3_prepare_v2(store_database(s), sql, -1, &st, NULL) == SQLITE_OK, "%s: %s",
                                        sql, sqlite3_errmsg(store_database(s)));
                        for (size_t c = 0; c < row_kinds[kind].n_columns; c++)
                                n += row_kinds[kind].columns[c].type == COLUMN_HISTOGRAM ? STORE_HISTOGRAM_BUCKETS : 1;
                        ck_assert_int_eq(sqlite3_bind_parameter_count(st), n);
                        sqlite3_finalize(st);
                        sqlite3_free(sql);
                }
}
END_TEST

/* What makes two rows the same is the table's key, and each column of a table has a value, but for those that only
 * another program fills. */
START_TEST(test_columns) {
        static const char *const others[] = { "process.container_id", "process.container_name", "process.pod",
                "process.namespace", "socket.peer_machine_id", "socket.peer_cookie", "process.id", "thread.id",
                "resource.id" };
        _cleanup_(store_closep) Store *s = open_store(NULL);

        for (enum row_kind kind = 0; kind < _ROW_MAX; kind++) {
                char sql[256];
                sqlite3_stmt *st = NULL;

                (void) snprintf(sql, sizeof(sql), "SELECT name FROM pragma_table_info('%s')", row_kinds[kind].table);
                ck_assert_int_eq(sqlite3_prepare_v2(store_database(s), sql, -1, &st, NULL), SQLITE_OK);
                while (sqlite3_step(st) == SQLITE_ROW) {
                        const char *name = (const char *) sqlite3_column_text(st, 0);
                        bool seen = false;

                        for (size_t c = 0; c < row_kinds[kind].n_columns; c++)
                                seen |= row_kinds[kind].columns[c].type == COLUMN_HISTOGRAM
                                                ? startswith(name, "hist") != NULL
                                                : streq(row_kinds[kind].columns[c].name, name);
                        (void) snprintf(sql, sizeof(sql), "%s.%s", row_kinds[kind].table, name);
                        for (size_t i = 0; i < ELEMENTSOF(others); i++)
                                seen |= streq(others[i], sql);
                        ck_assert_msg(seen, "nothing writes %s", sql);
                }
                sqlite3_finalize(st);
        }
}
END_TEST

#define CALL                                                                                                    \
        "SELECT ts_ns || ' ' || dt_ns || ' ' || op || ' ' || count || ' ' || errors || ' ' || bytes || ' ' || " \
        "total_ns || ' ' || max_ns || ' ' || hist0 || ',' || hist1 || ',' || hist2 || ',' || hist3 || ',' || "  \
        "hist4 || ',' || hist5 || ',' || hist6 || ',' || hist7 || ' ' || host_tid || ' ' || ident "             \
        "FROM call JOIN thread t ON t.id = thread_id JOIN resource r ON r.id = resource_id"

/* Needs no thread_time row. */
START_TEST(test_call) {
        _cleanup_(store_closep) Store *s = new_store();
        BatchCall row = {
                .ts_ns = 5000,
                .dt_ns = 1000,
                .thread_key = 1,
                .resource_key = 2,
                .op = "send",
                .count = 10,
                .errors = 1,
                .bytes = 300,
                .total_ns = 70,
                .max_ns = 60,
                .histogram = { 1, 2, 3, 4, 5, 6, 7, 8 },
        };

        write_one(s, call, &row);
        assert_text(s, CALL, "5000 1000 send 10 1 300 70 60 1,2,3,4,5,6,7,8 7 b");
        row.max_ns = 50;
        write_one(s, call, &row);
        assert_text(s, CALL, "5000 1000 send 20 2 600 140 60 2,4,6,8,10,12,14,16 7 b");
        row.max_ns = 65;
        write_one(s, call, &row);
        assert_text(s, "SELECT count || ' ' || max_ns FROM call", "30 65");

        row.op = "receive";
        write_one(s, call, &row);
        ck_assert_int_eq(number(s, "SELECT count(*) FROM call"), 2);
        row.resource_key = 9;
        assert_refused_key(s, call, "resource 9", &row);
        row.resource_key = 2;
        row.thread_key = 0;
        assert_refused_key(s, call, "thread 0", &row);
}
END_TEST

START_TEST(test_mux_wait) {
        _cleanup_(store_closep) Store *s = new_store();
        BatchMuxWait row = {
                .ts_ns = 5000,
                .dt_ns = 1000,
                .thread_key = 1,
                .resource_key = 2,
                .watched_key = 3,
                .op = "epoll_wait",
                .count = 2,
                .total_ns = 70,
        };

        write_one(s, mux_wait, &row);
        row.watched_key = 0;
        row.total_ns = 30;
        write_one(s, mux_wait, &row);
        write_one(s, mux_wait, &row);
        assert_text(s,
                        "SELECT group_concat(ts_ns || ' ' || dt_ns || ' ' || host_tid || ' ' || r.ident || ' ' || "
                        "coalesce(w.ident, '-' || watched_id) || ' ' || op || ' ' || count || ' ' || total_ns, '; ') "
                        "FROM (SELECT * FROM mux_wait ORDER BY watched_id DESC) JOIN thread t ON t.id = thread_id "
                        "JOIN resource r ON r.id = resource_id LEFT JOIN resource w ON w.id = watched_id",
                        "5000 1000 7 b c epoll_wait 2 70; 5000 1000 7 b -0 epoll_wait 4 60");

        row.watched_key = 9;
        assert_refused_key(s, mux_wait, "resource 9", &row);
        row.watched_key = 3;
        row.resource_key = 0;
        assert_refused_key(s, mux_wait, "resource 0", &row);
        row.resource_key = 2;
        row.thread_key = 9;
        assert_refused_key(s, mux_wait, "thread 9", &row);
}
END_TEST

/* Where intervals were added, all that hangs on them is as long; a call without an interval keeps its own. */
START_TEST(test_retile) {
        _cleanup_(store_closep) Store *s = new_store();
        _cleanup_(batch_unrefp) Batch *b = batch_new();

        assert_done(batch_add_thread_time(
                        b, &(BatchThreadTime){ .ts_ns = 5000, .dt_ns = 1000, .thread_key = 1, .sleep_ns = 1000 }));
        assert_done(batch_add_mux_wait(b,
                        &(BatchMuxWait){ .ts_ns = 5000,
                                        .dt_ns = 1000,
                                        .thread_key = 1,
                                        .resource_key = 1,
                                        .op = "poll",
                                        .total_ns = 1000 }));
        for (int64_t ts_ns = 5000; ts_ns <= 6000; ts_ns += 1000)
                assert_done(batch_add_call(b,
                                &(BatchCall){ .ts_ns = ts_ns,
                                                .dt_ns = 1000,
                                                .thread_key = 1,
                                                .resource_key = 1,
                                                .op = "poll",
                                                .total_ns = 1000 }));
        assert_done(store_write(s, b, &error));
        b->thread_times[0].dt_ns = 500;
        assert_done(store_write(s, b, &error));

        assert_text(s, "SELECT dt_ns || ' ' || sleep_ns FROM thread_time", "1500 2000");
        assert_text(s, "SELECT dt_ns || ' ' || total_ns FROM mux_wait", "1500 2000");
        assert_text(s, "SELECT group_concat(ts_ns || ' ' || dt_ns || ' ' || total_ns, '; ') FROM call",
                        "5000 1500 2000; 6000 1000 2000");
}
END_TEST

#define SOCKET                                                                                                       \
        "SELECT r.ident || ' ' || family || ' ' || type || ' ' || protocol || ' ' || coalesce(s.netns, '-') || ' ' " \
        "|| coalesce(local_addr || ':' || local_port, '-') || ' ' || coalesce(remote_addr || ':' || remote_port, "   \
        "'-') || ' ' || coalesce(state, '-') || ' ' || coalesce(path, '-') || ' ' || coalesce(cookie, '-') || ' ' "  \
        "|| coalesce(peer.ident, '-') FROM socket s JOIN resource r ON r.id = resource_id "                          \
        "LEFT JOIN resource peer ON peer.id = peer_resource_id"

START_TEST(test_socket) {
        _cleanup_(store_closep) Store *s = new_store();
        BatchSocket known = {
                .resource_key = 2,
                .family = 2,
                .type = 1,
                .protocol = 6,
                .state = 1,
                .netns = 4026531840,
                .local_addr = "127.0.0.1",
                .remote_addr = "10.0.0.2",
                .local_port = 40000,
                .remote_port = 5432,
                .path = "@x",
                .cookie = UINT64_MAX,
                .peer_resource_key = 3,
        };

        /* Nothing is known but the family. */
        write_one(s, socket, &(BatchSocket){ .resource_key = 2, .family = 2 });
        assert_text(s, SOCKET, "b 2 0 0 - - - - - - -");
        write_one(s, socket, &known);
        assert_text(s, SOCKET, "b 2 1 6 4026531840 127.0.0.1:40000 10.0.0.2:5432 1 @x 9223372036854775807 c");

        /* Nothing is known any more, and of the peer no description. */
        write_one(s, socket, &(BatchSocket){ .resource_key = 2, .peer_resource_key = 99 });
        assert_text(s, SOCKET, "b 2 1 6 4026531840 127.0.0.1:40000 10.0.0.2:5432 1 @x 9223372036854775807 c");

        /* What changed is what it is now. */
        known.state = 7;
        known.remote_addr = "10.0.0.3";
        known.remote_port = 1;
        known.cookie = 5;
        known.peer_resource_key = 4;
        write_one(s, socket, &known);
        assert_text(s, SOCKET, "b 2 1 6 4026531840 127.0.0.1:40000 10.0.0.3:1 7 @x 5 d");
        ck_assert_int_eq(number(s, "SELECT count(*) FROM socket"), 1);
        ck_assert_int_eq(number(s, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
        assert_refused_key(s, socket, "resource 99", &(BatchSocket){ .resource_key = 99, .family = 2 });
}
END_TEST

#define SAMPLE                                                                                            \
        "SELECT ts_ns || ' ' || dt_ns || ' ' || ident || ' ' || bytes_in || ' ' || bytes_out || ' ' || "  \
        "retransmits || ' ' || coalesce(srtt_ns, '-') || ' ' || send_queue || ' ' || receive_queue FROM " \
        "socket_sample JOIN resource ON id = resource_id"

START_TEST(test_socket_sample) {
        _cleanup_(store_closep) Store *s = new_store();
        BatchSocketSample row = {
                .ts_ns = 5000,
                .dt_ns = 1000,
                .resource_key = 2,
                .bytes_in = 10,
                .bytes_out = 20,
                .retransmits = 3,
                .srtt_ns = 400,
                .send_queue = 50,
                .receive_queue = 60,
        };

        write_one(s, socket_sample, &row);
        assert_text(s, SAMPLE, "5000 1000 b 10 20 3 400 50 60");
        row.srtt_ns = 300;
        row.send_queue = 0;
        row.receive_queue = 70;
        write_one(s, socket_sample, &row);
        assert_text(s, SAMPLE, "5000 2000 b 20 40 6 300 0 70");
        row.srtt_ns = 0;
        write_one(s, socket_sample, &row);
        assert_text(s, SAMPLE, "5000 3000 b 30 60 9 300 0 70");

        row.ts_ns = 6000;
        write_one(s, socket_sample, &row);
        ck_assert_int_eq(number(s, "SELECT srtt_ns IS NULL FROM socket_sample WHERE ts_ns = 6000"), 1);
        row.resource_key = 0;
        assert_refused_key(s, socket_sample, "resource 0", &row);
}
END_TEST

/* One row a pair, which grows at both ends. */
START_TEST(test_epoll_watch) {
        _cleanup_(store_closep) Store *s = new_store();
        BatchEpollWatch row = { .resource_key = 1, .watched_key = 2, .first_ns = 100, .last_ns = 200 };

        write_one(s, epoll_watch, &row);
        row.first_ns = 150;
        row.last_ns = 300;
        write_one(s, epoll_watch, &row);
        row.first_ns = 90;
        row.last_ns = 95;
        write_one(s, epoll_watch, &row);
        row.watched_key = 3;
        write_one(s, epoll_watch, &row);
        assert_text(s,
                        "SELECT group_concat(r.ident || ' ' || w.ident || ' ' || first_ns || ' ' || last_ns, '; ') "
                        "FROM "
                        "epoll_watch JOIN resource r ON r.id = resource_id JOIN resource w ON w.id = watched_id",
                        "a b 90 300; a c 90 95");
        row.watched_key = 0;
        assert_refused_key(s, epoll_watch, "resource 0", &row);
}
END_TEST

#define DISK                                                                                                        \
        "SELECT group_concat(ts_ns || ' ' || dt_ns || ' ' || device || ' ' || partition || ' ' || host_pid || ' ' " \
        "|| coalesce(host_tid, '-' || thread_id) || ' ''' || d.cgroup || ''' ' || op || ' ' || requests || ' ' || " \
        "sectors || ' ' || total_ns || ' ' || max_ns || ' ' || hist0 || ',' || hist7, '; ') FROM disk d "           \
        "JOIN process p ON p.id = d.process_id LEFT JOIN thread t ON t.id = thread_id"

START_TEST(test_disk) {
        _cleanup_(store_closep) Store *s = new_store();
        BatchDisk row = {
                .ts_ns = 5000,
                .dt_ns = 1000,
                .device = 7 << 20 | 3,
                .partition = 2,
                .process_key = 1,
                .thread_key = 1,
                .cgroup = "/a",
                .op = "read",
                .requests = 4,
                .sectors = 32,
                .total_ns = 70,
                .max_ns = 60,
                .histogram = { 3, [7] = 1 },
        };

        write_one(s, disk, &row);
        assert_text(s, DISK, "5000 1000 7340035 2 7 7 '/a' read 4 32 70 60 3,1");
        row.dt_ns = 900;
        row.max_ns = 69;
        write_one(s, disk, &row);
        assert_text(s, DISK, "5000 1000 7340035 2 7 7 '/a' read 8 64 140 69 6,2");

        execute(s, "DELETE FROM disk");
        row.thread_key = 0;
        row.cgroup = NULL;
        write_one(s, disk, &row);
        row.dt_ns = 1100;
        row.max_ns = 1;
        write_one(s, disk, &row);
        assert_text(s, DISK, "5000 1100 7340035 2 7 -0 '' read 8 64 140 69 6,2");

        /* Each part of the identity is one. */
        row.device++;
        write_one(s, disk, &row);
        row.partition++;
        write_one(s, disk, &row);
        row.thread_key = 1;
        write_one(s, disk, &row);
        row.cgroup = "/b";
        write_one(s, disk, &row);
        row.op = "write";
        write_one(s, disk, &row);
        ck_assert_int_eq(number(s, "SELECT count(*) FROM disk WHERE requests = 4"), 5);

        row.process_key = 0;
        assert_refused_key(s, disk, "process 0", &row);
        row.process_key = 1;
        row.thread_key = 9;
        assert_refused_key(s, disk, "thread 9", &row);
}
END_TEST

#define CGROUP                                                                                       \
        "SELECT ts_ns || ' ' || dt_ns || ' ' || cgroup || ' ' || coalesce(usage_ns, '-') || ' ' || " \
        "coalesce(throttled_ns, '-') || ' ' || coalesce(throttled_periods, '-') || ' ' || "          \
        "coalesce(memory_bytes, '-') || ' ' || coalesce(memory_events, '-') FROM cgroup_time"

START_TEST(test_cgroup_time) {
        _cleanup_(store_closep) Store *s = new_store();
        BatchCgroupTime nothing = {
                .ts_ns = 5000,
                .dt_ns = 1000,
                .cgroup = "/a",
                .usage_ns = -1,
                .throttled_ns = -1,
                .throttled_periods = -1,
                .memory_bytes = -1,
                .memory_events = -1,
        };
        BatchCgroupTime row = {
                .ts_ns = 5000,
                .dt_ns = 1000,
                .cgroup = "/a",
                .usage_ns = 1,
                .throttled_ns = 20,
                .throttled_periods = 3,
                .memory_bytes = 400,
                .memory_events = 0,
        };

        write_one(s, cgroup_time, &nothing);
        assert_text(s, CGROUP, "5000 1000 /a - - - - -");
        write_one(s, cgroup_time, &row);
        assert_text(s, CGROUP, "5000 2000 /a 1 20 3 400 0");
        row.memory_bytes = 300;
        row.memory_events = 2;
        write_one(s, cgroup_time, &row);
        assert_text(s, CGROUP, "5000 3000 /a 2 40 6 300 2");
        write_one(s, cgroup_time, &nothing);
        assert_text(s, CGROUP, "5000 4000 /a 2 40 6 300 2");
}
END_TEST

START_TEST(test_coverage) {
        _cleanup_(store_closep) Store *s = new_store();
        BatchCoverage row = { .ts_ns = 5000, .dt_ns = 1000, .part = "calls" };

        write_one(s, coverage, &row);
        row.dt_ns = 300;
        write_one(s, coverage, &row);
        row.part = "other";
        write_one(s, coverage, &row);
        assert_text(s, "SELECT group_concat(ts_ns || ' ' || dt_ns || ' ' || part, '; ') FROM coverage",
                        "5000 1300 calls; 5000 300 other");
}
END_TEST

/* All kinds in one batch, of which the last refers to what is not known: nothing of it is there. */
START_TEST(test_all_or_nothing) {
        _cleanup_(store_closep) Store *s = open_store(NULL);
        _cleanup_(batch_unrefp) Batch *b = batch_new();

        describe(b);
        assert_done(batch_add_socket(b, &(BatchSocket){ .resource_key = 1, .family = 1, .peer_resource_key = 2 }));
        assert_done(batch_add_epoll_watch(b, &(BatchEpollWatch){ .resource_key = 1, .watched_key = 2 }));
        assert_done(batch_add_mux_wait(b, &(BatchMuxWait){ .thread_key = 1, .resource_key = 1, .op = "poll" }));
        assert_done(batch_add_call(b, &(BatchCall){ .thread_key = 1, .resource_key = 1, .op = "read" }));
        assert_done(batch_add_socket_sample(b, &(BatchSocketSample){ .resource_key = 1 }));
        assert_done(batch_add_disk(b, &(BatchDisk){ .process_key = 1, .op = "read" }));
        assert_done(batch_add_disk(b, &(BatchDisk){ .process_key = 9, .op = "read" }));
        assert_done(batch_add_cgroup_time(b, &(BatchCgroupTime){ .cgroup = "/" }));
        assert_done(batch_add_coverage(b, &(BatchCoverage){ .part = "calls" }));

#define COUNT                                                                                       \
        "SELECT (SELECT count(*) FROM resource) || ' ' || (SELECT count(*) FROM socket) || ' ' || " \
        "(SELECT count(*) FROM epoll_watch) || ' ' || (SELECT count(*) FROM mux_wait) || ' ' || "   \
        "(SELECT count(*) FROM call) || ' ' || (SELECT count(*) FROM socket_sample) || ' ' || "     \
        "(SELECT count(*) FROM disk) || ' ' || (SELECT count(*) FROM cgroup_time) || ' ' || "       \
        "(SELECT count(*) FROM coverage)"
        assert_fails(store_write(s, b, &error), -ENOKEY, "process 9");
        assert_text(s, COUNT, "0 0 0 0 0 0 0 0 0");
        b->n_disks = 1;
        assert_done(store_write(s, b, &error));
        assert_text(s, COUNT, "4 1 1 1 1 1 1 1 1");
}
END_TEST

/* A text that is missing where one must be is refused by the tables. */
START_TEST(test_missing_text) {
        _cleanup_(store_closep) Store *s = new_store();
        _cleanup_(batch_unrefp) Batch *call = batch_new(), *cgroup = batch_new();

        assert_done(batch_add_call(call, &(BatchCall){ .thread_key = 1, .resource_key = 1 }));
        assert_fails(store_write(s, call, &error), -EINVAL, "call.op");
        assert_done(batch_add_cgroup_time(cgroup, &(BatchCgroupTime){ .ts_ns = 1 }));
        assert_fails(store_write(s, cgroup, &error), -EINVAL, "cgroup_time.cgroup");
}
END_TEST

int main(void) {
        Suite *suite = suite_create("rows");
        TCase *tests = tcase_create("rows");

        tcase_add_test(tests, test_statements);
        tcase_add_test(tests, test_columns);
        tcase_add_test(tests, test_call);
        tcase_add_test(tests, test_mux_wait);
        tcase_add_test(tests, test_retile);
        tcase_add_test(tests, test_socket);
        tcase_add_test(tests, test_socket_sample);
        tcase_add_test(tests, test_epoll_watch);
        tcase_add_test(tests, test_disk);
        tcase_add_test(tests, test_cgroup_time);
        tcase_add_test(tests, test_coverage);
        tcase_add_test(tests, test_all_or_nothing);
        tcase_add_test(tests, test_missing_text);
        suite_add_tcase(suite, tests);
        return run_suite(suite);
}
