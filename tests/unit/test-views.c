/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* store/views.sql: what the published tool's users ask of its tables has the right answer here. The queries are of the
 * kinds that its documentation and pages use. Sockets, processes and constants: test-views-names.c. */
#include "views.h"

static void write_call(Store *s, uint64_t thread, uint64_t resource, const char *op, int64_t end_ms, int64_t length_ms,
                uint64_t count, uint64_t bytes, unsigned bucket) {
        BatchCall row = { .ts_ns = START + end_ms * MSEC,
                .dt_ns = length_ms * MSEC,
                .thread_key = thread,
                .resource_key = resource,
                .op = op,
                .count = count,
                .bytes = bytes };

        row.histogram[bucket] = (uint32_t) count;
        write_row(s, call, &row);
}

static int64_t id_of(Store *s, unsigned resource) {
        char sql[128];

        (void) snprintf(sql, sizeof(sql), "SELECT id FROM resource WHERE kind = '%s' AND ident = '%s'",
                        resources[resource].kind, resources[resource].ident);
        return number(s, sql);
}

/* The columns of the published tool, under its names. */
START_TEST(test_columns) {
        static const struct {
                const char *view, *columns;
        } published[] = {
                { "taskstats",
                                "machine_id ts pid tid comm nvcsw nivcsw run_time_total rq_time_total rq_count "
                                "blkio_time_total blkio_count uninterruptible_total freepages_time_total "
                                "freepages_count thrashing_time_total thrashing_count swapin_time_total swapin_count" },
                { "taskstats_view",
                                "machine_id ts time_diff pid tid comm run_share rq_share uninterruptible_share "
                                "blkio_share interruptible_share" },
                { "futex_wait",
                                "machine_id ts_s pid tid futex_key_addr futex_key_word futex_key_offset "
                                "total_requests total_time hist0 hist1 hist2 hist3 hist4 hist5 hist6 hist7" },
                { "futex_wake",
                                "machine_id ts_s pid tid futex_key_addr futex_key_word futex_key_offset "
                                "total_requests successful_count" },
                { "vfs",
                                "machine_id ts_s pid tid fs_magic device_id inode_id op total_time total_requests "
                                "hist0 hist1 "
                                "hist2 hist3 hist4 hist5 hist6 hist7" },
                { "muxio_wait", "machine_id ts_s pid tid is_epoll poll_id total_time total_requests" },
                { "muxio_file",
                                "machine_id ts_s poll_id fs_magic device_id inode_id mode hist0 hist1 hist2 hist3 "
                                "hist4 hist5 hist6 hist7" },
                { "iowait",
                                "machine_id ts_s pid tid part0 bdev total_time sector_cnt total_requests hist0 hist1 "
                                "hist2 "
                                "hist3 hist4 hist5 hist6 hist7" },
                { "aio_getevents", "machine_id ts_s pid tid aioctx total_time total_requests" },
                { "aio_submit", "machine_id ts_s pid tid aioctx total_requests" },
                { "aio_file",
                                "machine_id ts_s aioctx isreg fs_magic device_id inode_id part0 bdev mode hist0 hist1 "
                                "hist2 hist3 hist4 hist5 hist6 hist7" },
                { "socket_context", "machine_id inode_id family type protocol" },
                { "socket_inet", "machine_id inode_id netns_cookie src_address src_port dst_address dst_port" },
                { "socket_map", "machine_id sock1_inode_id sock2_inode_id" },
                { "tcp_discovery",
                                "local_machine_id local_inode_id remote_machine_id remote_inode_id inserted_at "
                                "machine_id" },
                { "process_context", "machine_id pid cgroup argv exe" },
                { "docker", "machine_id cgroup id name image_name image_hash" },
                { "k8s", "machine_id cgroup id namespace pod_name container_name image_name" },
                { "linux_consts", "const_type const_name value" },
        };
        _cleanup_(store_closep) Store *s = open_store(NULL);

        for (size_t i = 0; i < ELEMENTSOF(published); i++) {
                _cleanup_free_ char *columns = strdup(published[i].columns);
                char *rest = columns, *column;

                while ((column = strsep(&rest, " "))) {
                        char sql[128];

                        (void) snprintf(sql, sizeof(sql),
                                        "SELECT count(*) FROM pragma_table_info('%s') WHERE name = '%s'",
                                        published[i].view, column);
                        ck_assert_msg(number(s, sql) == 1, "%s.%s", published[i].view, column);
                }
        }
        ck_assert_int_eq(number(s,
                                         "SELECT count(*) FROM sqlite_schema WHERE type = 'view' AND name NOT LIKE "
                                         "'%\\_second' ESCAPE '\\' AND name NOT LIKE 'resource\\_%' ESCAPE '\\'"),
                        ELEMENTSOF(published));
}
END_TEST

START_TEST(test_taskstats_view) {
        _cleanup_(store_closep) Store *s = open_described();

        write_time(s, MAIN, START + SECOND, SECOND);
        write_time(s, MAIN, START + 12 * SECOND + 345678900, SECOND);
        write_time(s, OTHER, START + 2 * SECOND, SECOND);
        /* A quarter of a long row's every second. */
        write_time(s, WORKER, START + 12 * SECOND, 3 * SECOND);
        assert_answer(s,
                        "SELECT ts, pid, tid, rq_share AS share, 'baseline' AS type FROM taskstats_view "
                        "WHERE {{ pid_filter }} AND {{ baseline_filter(\"ts\") }} AND rq_share > 0.01 "
                        "UNION ALL "
                        "SELECT ts, pid, tid, rq_share, 'compare' AS type FROM taskstats_view "
                        "WHERE {{ pid_filter }} AND {{ compare_filter(\"ts\") }} AND rq_share > 0.01 ORDER BY ts, tid",
                        "2026-11-30 11:02:11.000000 1302804 1302804 0.25 baseline; "
                        "2026-11-30 11:02:20.000000 1302804 1302805 0.25 baseline; "
                        "2026-11-30 11:02:21.000000 1302804 1302805 0.25 compare; "
                        "2026-11-30 11:02:22.000000 1302804 1302805 0.25 compare; "
                        "2026-11-30 11:02:22.345678 1302804 1302804 0.25 compare");
        assert_answer(s,
                        "SELECT time_diff, comm, run_share, uninterruptible_share, blkio_share, interruptible_share, "
                        "machine_id FROM taskstats_view WHERE tid = 77",
                        "1000000000 client 0.25 0.25 0.125 0.25 4000000000");
        assert_answer(s,
                        "SELECT tid, min(ts) AS first, max(ts) AS last, count(*) FROM taskstats_view "
                        "WHERE {{ pid_filter }} GROUP BY tid, comm ORDER BY tid",
                        "1302804 2026-11-30 11:02:11.000000 2026-11-30 11:02:22.345678 2; "
                        "1302805 2026-11-30 11:02:20.000000 2026-11-30 11:02:22.000000 3");
}
END_TEST

/* The differences of its counters are what taskstats_view says. */
START_TEST(test_taskstats) {
        _cleanup_(store_closep) Store *s = open_described();

        write_time(s, MAIN, START + SECOND, SECOND);
        write_time(s, MAIN, START + 4 * SECOND, 3 * SECOND);
        write_time(s, OTHER, START + 2 * SECOND, SECOND);
        write_wait(s, MAIN, RECLAIM, "reclaim", 4000, 3000, 5, 40, 4);
        write_wait(s, MAIN, SWAP, "swap", 1000, 1000, 2, 30, 4);
        write_wait(s, MAIN, SWAP, "file", 1000, 1000, 9, 99, 4);
        assert_answer(s,
                        "SELECT ts, nvcsw, nivcsw, run_time_total, rq_time_total, rq_count, blkio_time_total, "
                        "uninterruptible_total, freepages_time_total, freepages_count, swapin_time_total, "
                        "swapin_count, blkio_count, thrashing_count FROM taskstats WHERE {{ pid_filter }} ORDER BY ts",
                        "2026-11-30 11:02:11.000000 7 2 250000000 250000000 9 125000000 250000000 0 0 30000000 2 NULL "
                        "NULL; "
                        "2026-11-30 11:02:12.000000 9 2 500000000 500000000 11 250000000 500000000 0 0 30000000 2 NULL "
                        "NULL; "
                        "2026-11-30 11:02:13.000000 11 3 750000000 750000000 14 375000000 750000000 0 0 30000000 2 "
                        "NULL NULL; "
                        "2026-11-30 11:02:14.000000 14 4 1000000000 1000000000 18 500000000 1000000000 40000000 5 "
                        "30000000 2 NULL NULL");
        ck_assert_int_eq(
                        number(s,
                                        "SELECT count(*) FROM (SELECT ts, pid, tid, rq_time_total - lag(rq_time_total) "
                                        "OVER (PARTITION BY machine_id, tid ORDER BY ts) AS rq FROM taskstats) a "
                                        "JOIN taskstats_view v USING (ts, pid, tid) WHERE a.rq = v.rq_share * "
                                        "v.time_diff"),
                        3);
        ck_assert_int_eq(number(s, "SELECT count(*) FROM taskstats"), 5);
        assert_answer(s, "SELECT DISTINCT machine_id, pid, tid, comm FROM taskstats WHERE pid = tid ORDER BY pid",
                        "4000000000 77 77 client; 4000000000 1302804 1302804 server");
}
END_TEST

START_TEST(test_futex_wait) {
        _cleanup_(store_closep) Store *s = open_described();

        /* Two operations on one futex are one row. */
        write_wait(s, MAIN, FUTEX, "wait", 1000, 1000, 3, 300, 4);
        write_wait(s, MAIN, FUTEX, "wait_bitset", 1000, 1000, 1, 200, 5);
        write_wait(s, MAIN, TIMER, "nanosleep", 1000, 1000, 1, 400, 6);
        write_wait(s, WORKER, FUTEX_SHARED, "wait", 14000, 3000, 1, 3000, 7);
        write_wait(s, WORKER, FUTEX_SHARED, "wait_bitset", 14000, 3000, 0, 0, 0);
        /* Calls that woke, or waited or not, are no waits. */
        write_call(s, MAIN, FUTEX, "wait", 1000, 1000, 90, 0, 0);
        write_call(s, MAIN, FUTEX, "wake", 1000, 1000, 90, 0, 0);
        write_call(s, MAIN, FUTEX, "wake", 2000, 1000, 90, 0, 0);
        write_wait(s, WORKER, FUTEX_LOST, "wait", 15000, 1000, 1, 10, 4);
        write_wait(s, OTHER, FUTEX_SHARED, "wait", 2000, 1500, 1, 10, 4); /* not yet long */
        assert_answer(s,
                        "SELECT ts_s, tid, futex_key_addr || '-' || futex_key_word || '-' || futex_key_offset AS fkey, "
                        "SUM(total_requests), SUM(total_time)/1e9 AS total_time FROM futex_wait "
                        "WHERE {{ pid_filter }} AND ({{ compare_filter(\"ts_s\") }} OR {{ baseline_filter(\"ts_s\") "
                        "}}) "
                        "GROUP BY ts_s, tid, fkey ORDER BY ts_s",
                        "2026-11-30 11:02:11.000000 1302804 9-140372721553408-1656 4 0.5; "
                        "2026-11-30 11:02:22.000000 1302805 5-26-5 0 1.0; "
                        "2026-11-30 11:02:23.000000 1302805 5-26-5 0 1.0; "
                        "2026-11-30 11:02:24.000000 1302805 5-26-5 1 1.0; "
                        "2026-11-30 11:02:25.000000 1302805 NULL 1 0.01");
        ck_assert_int_eq(number(s, "SELECT count(*) FROM futex_wait WHERE tid = 1302804"), 1);
        ck_assert_int_eq(number(s, "SELECT count(*) FROM futex_wait WHERE tid = 1302805"), 4);
        ck_assert_int_eq(number(s, "SELECT total_time FROM futex_wait WHERE tid = 77"), 10 * MSEC);
        assert_answer(s,
                        "SELECT pid, SUM(hist0), SUM(hist1), SUM(hist2), SUM(hist3), SUM(hist4), SUM(hist5), "
                        "SUM(hist6), SUM(hist7) FROM futex_wait WHERE {{ pid_filter }} AND "
                        "{{ baseline_filter(\"ts_s\") }} GROUP BY pid",
                        "1302804 0 0 0 0 3 1 0 0");
        ck_assert_int_eq(number(s, "SELECT 140372721553408 = 0x7fab12345000 AND 1656 = 0x678"), 1);
}
END_TEST

/* A futex on which a thread both waits and wakes is a lock. */
START_TEST(test_futex_wake) {
        _cleanup_(store_closep) Store *s = open_described();
        static const struct {
                uint64_t waker, thread, resource, count;
                int64_t end_ms;
                const char *kind;
        } wakes[] = {
                { WORKER, MAIN, FUTEX, 3, 1000, "thread" },
                { WORKER, OTHER, FUTEX, 2, 1300, "thread" }, /* the same second of the same waker */
                { MAIN, WORKER, FUTEX, 4, 2000, "thread" },
                { OTHER, MAIN, FUTEX_SHARED, 1, 2000, "thread" },
                { 0, MAIN, FUTEX, 9, 3000, "timer" },
                { WORKER, MAIN, PIPE, 9, 3000, "thread" },
        };

        for (size_t i = 0; i < ELEMENTSOF(wakes); i++)
                write_row(s, wake,
                                &(BatchWake){ .ts_ns = START + wakes[i].end_ms * MSEC,
                                                .dt_ns = SECOND,
                                                .waker_thread_key = wakes[i].waker,
                                                .waker_kind = wakes[i].kind,
                                                .thread_key = wakes[i].thread,
                                                .resource_key = wakes[i].resource,
                                                .count = wakes[i].count });
        write_wait(s, MAIN, FUTEX, "wait", 1000, 1000, 3, 300, 4);
        write_wait(s, MAIN, FUTEX_SHARED, "wait", 2000, 1000, 1, 300, 4);

        assert_answer(s,
                        "SELECT ts_s, pid, tid, futex_key_addr, futex_key_offset, total_requests, successful_count, "
                        "machine_id FROM futex_wake ORDER BY ts_s, tid",
                        "2026-11-30 11:02:11.300000 1302804 1302805 9 1656 5 5 4000000000; "
                        "2026-11-30 11:02:12.000000 77 77 5 5 1 1 4000000000; "
                        "2026-11-30 11:02:12.000000 1302804 1302804 9 1656 4 4 4000000000");
        assert_answer(s,
                        "WITH fwake AS (SELECT DISTINCT fwake.tid, futex_key_addr, futex_key_word, futex_key_offset "
                        "FROM futex_wake AS fwake WHERE {{ pid_filter }} AND {{ baseline_filter(\"ts_s\") }}), "
                        "fwait AS (SELECT DISTINCT fwait.tid, futex_key_addr, futex_key_word, futex_key_offset "
                        "FROM futex_wait AS fwait WHERE {{ pid_filter }} AND {{ baseline_filter(\"ts_s\") }}) "
                        "SELECT DISTINCT futex_key_addr, futex_key_word, futex_key_offset FROM fwait "
                        "INNER JOIN fwake USING (tid, futex_key_addr, futex_key_word, futex_key_offset)",
                        "9 140372721553408 1656");
}
END_TEST

START_TEST(test_vfs) {
        _cleanup_(store_closep) Store *s = open_described();

        write_wait(s, MAIN, PIPE, "read", 1000, 1000, 2, 600, 5);
        write_wait(s, MAIN, PIPE, "read", 2000, 1000, 1, 500, 5);
        write_call(s, MAIN, PIPE, "read", 2000, 1000, 8, 4096, 2);
        write_call(s, MAIN, PIPE, "write", 2000, 1000, 6, 100, 1); /* never blocked */
        write_wait(s, WORKER, FILE_DATA, "fsync", 15000, 3000, 1, 2700, 7);
        write_wait(s, WORKER, FILE_DATA, "open", 15000, 3000, 1, 3, 4);
        write_wait(s, WORKER, TERMINAL, "read", 16000, 1000, 1, 1000, 6);
        write_wait(s, WORKER, TCP_SERVER, "receive", 17000, 1000, 3, 900, 5);
        write_wait(s, OTHER, UNIX_CLIENT, "send", 17000, 1500, 3, 900, 5);
        write_wait(s, OTHER, FUTEX, "wait", 17000, 1000, 3, 100, 5);

        assert_answer(s,
                        "SELECT DISTINCT ts_s, SUM(total_requests) AS total_requests FROM vfs "
                        "WHERE inode_id = 41 AND op = 0 GROUP BY ts_s ORDER BY ts_s",
                        "2026-11-30 11:02:11.000000 2; 2026-11-30 11:02:12.000000 8");
        assert_answer(s,
                        "SELECT op, total_time, total_requests, hist1, hist2, hist5, bytes, calls_counted, operation "
                        "FROM vfs WHERE inode_id = 41 ORDER BY ts_s, op",
                        "0 600000000 2 0 0 2 NULL 0 read; 0 500000000 8 0 8 0 4096 1 read; "
                        "1 0 6 6 0 0 100 1 write");
        assert_answer(s,
                        "SELECT DISTINCT vfs.machine_id, pid, tid, op, fs_desc.const_name, device_id, vfs.inode_id "
                        "FROM vfs LEFT JOIN linux_consts fs_desc ON fs_desc.const_type = 'fs_magic' "
                        "AND fs_desc.value = vfs.fs_magic WHERE {{ compare_filter(\"ts_s\") }} ORDER BY tid, ts_s, op",
                        "4000000000 77 77 1 SOCKFS_MAGIC 0 62; "
                        "4000000000 1302804 1302805 1 NULL 8388625 1234; "
                        "4000000000 1302804 1302805 2 NULL 8388625 1234; "
                        "4000000000 1302804 1302805 0 NULL 142606338 NULL; "
                        "4000000000 1302804 1302805 0 SOCKFS_MAGIC 0 51");
        /* A long row in its seconds. */
        assert_answer(s,
                        "SELECT ts_s, tid, SUM(total_time)/1e9 AS total_time, SUM(total_requests) FROM vfs "
                        "WHERE {{ pid_filter }} AND operation = 'fsync' GROUP BY ts_s, tid ORDER BY ts_s",
                        "2026-11-30 11:02:23.000000 1302805 0.9 0; 2026-11-30 11:02:24.000000 1302805 0.9 0; "
                        "2026-11-30 11:02:25.000000 1302805 0.9 1");
        ck_assert_int_eq(number(s, "SELECT 8388625 = (8 << 20 | 17) AND 142606338 = (136 << 20 | 2)"), 1);
}
END_TEST

/* A call row that is long and has no wait, and one that has. */
START_TEST(test_long_calls) {
        _cleanup_(store_closep) Store *s = open_described();

        write_call(s, MAIN, PIPE, "write", 4000, 4000, 10, 7, 0);
        write_call(s, OTHER, PIPE, "write", 4000, 2000, 3, 9, 0);
        write_call(s, WORKER, PIPE, "read", 4000, 2000, 3, 9, 0);
        write_wait(s, WORKER, PIPE, "read", 4000, 2000, 2, 1501, 5);
        assert_answer(s,
                        "SELECT tid, ts_s, total_time, total_requests, hist0, hist5, bytes FROM vfs ORDER BY tid, ts_s",
                        "77 2026-11-30 11:02:13.000000 0 1 1 0 4; 77 2026-11-30 11:02:14.000000 0 2 2 0 5; "
                        "1302804 2026-11-30 11:02:11.000000 0 2 2 0 1; 1302804 2026-11-30 11:02:12.000000 0 3 3 0 2; "
                        "1302804 2026-11-30 11:02:13.000000 0 2 2 0 2; 1302804 2026-11-30 11:02:14.000000 0 3 3 0 2; "
                        "1302805 2026-11-30 11:02:13.000000 750500000 1 1 0 4; "
                        "1302805 2026-11-30 11:02:14.000000 750500000 2 2 0 5");
}
END_TEST

START_TEST(test_muxio_wait) {
        _cleanup_(store_closep) Store *s = open_described();
        char expected[256];

        write_wait(s, MAIN, EPOLL, "epoll_wait", 1000, 1000, 5, 700, 5);
        write_wait(s, MAIN, EPOLL, "epoll_wait", 3000, 2000, 1, 2000, 7);
        write_wait(s, WORKER, POLL, "poll", 3000, 1000, 2, 100, 4);
        write_call(s, WORKER, POLL, "poll", 3000, 1000, 20, 0, 0);
        write_wait(s, WORKER, TIMER, "nanosleep", 3000, 1000, 2, 100, 4);
        (void) snprintf(expected, sizeof(expected),
                        "1302804 2026-11-30 11:02:11.000000 0.7 5 1 %lld; 1302804 2026-11-30 11:02:12.000000 1.0 0 1 "
                        "%lld; 1302804 2026-11-30 11:02:13.000000 1.0 1 1 %lld; 1302805 2026-11-30 11:02:13.000000 0.1 "
                        "20 0 %lld",
                        (long long) id_of(s, EPOLL), (long long) id_of(s, EPOLL), (long long) id_of(s, EPOLL),
                        (long long) id_of(s, POLL));
        assert_answer(s,
                        "SELECT tid, ts_s, SUM(total_time)/1e9 AS muxio_share, SUM(total_requests), is_epoll, poll_id "
                        "FROM muxio_wait WHERE {{ pid_filter }} AND {{ baseline_filter(\"ts_s\") }} "
                        "GROUP BY ts_s, tid ORDER BY tid, ts_s",
                        expected);
        assert_answer(s,
                        "SELECT ts_s, tid, total_time FROM muxio_wait WHERE pid = {{ pid }} AND tid IN "
                        "(SELECT DISTINCT tid FROM muxio_wait WHERE pid = {{ pid }} ORDER BY tid LIMIT 1 OFFSET 1) "
                        "ORDER BY ts_s",
                        "2026-11-30 11:02:13.000000 1302805 100000000");
}
END_TEST

static void write_mux_wait(
                Store *s, uint64_t watched, int64_t end_ms, int64_t length_ms, uint64_t count, int64_t total_ms) {
        write_row(s, mux_wait,
                        &(BatchMuxWait){ .ts_ns = START + end_ms * MSEC,
                                        .dt_ns = length_ms * MSEC,
                                        .thread_key = MAIN,
                                        .resource_key = EPOLL,
                                        .watched_key = watched,
                                        .op = "epoll_wait",
                                        .count = count,
                                        .total_ns = (uint64_t) (total_ms * MSEC) });
}

START_TEST(test_muxio_file) {
        _cleanup_(store_closep) Store *s = open_described();

        write_wait(s, MAIN, EPOLL, "epoll_wait", 1000, 1000, 9, 900, 5);
        write_mux_wait(s, TCP_SERVER, 1000, 1000, 4, 600);
        write_mux_wait(s, PIPE, 1000, 1000, 3, 3);
        write_mux_wait(s, 0, 1000, 1000, 2, 297);
        write_mux_wait(s, PIPE, 4000, 3000, 1, 3000);
        write_mux_wait(s, TCP_SERVER, 5000, 1000, 0, 1000);
        write_mux_wait(s, PIPE, 5000, 1000, 1, 1000);

        /* Which sockets end the waits of which set, and how long it waits for them. */
        assert_answer(s,
                        "SELECT ts_s, inode_id, const_name, hist3, hist4, hist5, hist6, hist7, total_requests, "
                        "total_time FROM muxio_file LEFT JOIN linux_consts "
                        "ON const_type = 'fs_magic' AND value = fs_magic ORDER BY ts_s, inode_id",
                        "2026-11-30 11:02:11.000000 41 PIPEFS_MAGIC 3 0 0 0 0 3 3000000; "
                        "2026-11-30 11:02:11.000000 51 SOCKFS_MAGIC 0 0 0 4 0 4 600000000; "
                        "2026-11-30 11:02:12.000000 41 PIPEFS_MAGIC 0 0 0 0 0 0 1000000000; "
                        "2026-11-30 11:02:13.000000 41 PIPEFS_MAGIC 0 0 0 0 0 0 1000000000; "
                        "2026-11-30 11:02:14.000000 41 PIPEFS_MAGIC 0 0 0 0 1 1 1000000000; "
                        "2026-11-30 11:02:15.000000 41 PIPEFS_MAGIC 0 0 0 1 0 1 1000000000; "
                        "2026-11-30 11:02:15.000000 51 SOCKFS_MAGIC 0 0 0 0 0 0 1000000000");
        assert_answer(s,
                        "SELECT w.pid, f.inode_id, SUM(f.hist0 + f.hist1 + f.hist2 + f.hist3 + f.hist4 + f.hist5 + "
                        "f.hist6 + f.hist7) AS wakes FROM muxio_wait w "
                        "JOIN muxio_file f USING (machine_id, poll_id, ts_s) GROUP BY w.pid, f.inode_id ORDER BY 2",
                        "1302804 41 3; 1302804 51 4");
}
END_TEST

static void write_disk(Store *s, uint64_t process, uint64_t thread, unsigned partition, const char *op, int64_t end_ms,
                int64_t length_ms, uint64_t requests, unsigned bucket) {
        BatchDisk row = { .ts_ns = START + end_ms * MSEC,
                .dt_ns = length_ms * MSEC,
                .device = 8 << 20 | 16,
                .partition = partition,
                .process_key = process,
                .thread_key = thread,
                .op = op,
                .requests = requests,
                .sectors = requests * 8,
                .total_ns = requests * 2 * NSEC_PER_MSEC };

        row.histogram[bucket] = (uint32_t) requests;
        write_row(s, disk, &row);
}

START_TEST(test_iowait) {
        _cleanup_(store_closep) Store *s = open_described();

        write_disk(s, SERVER, MAIN, 1, "read", 1000, 1000, 6, 4);
        write_disk(s, SERVER, MAIN, 1, "write", 1000, 1000, 2, 5); /* one row with the line above */
        write_disk(s, SERVER, WORKER, 0, "write", 12000, 2000, 3, 5);
        write_disk(s, KERNEL, 0, 1, "write", 1000, 1000, 10, 3);

        assert_answer(s,
                        "SELECT hist4 * 1.0 / total, hist5 * 1.0 / total, total FROM (SELECT SUM(hist4) AS hist4, "
                        "SUM(hist5) AS hist5, SUM(hist0) + SUM(hist1) + SUM(hist2) + SUM(hist3) + SUM(hist4) + "
                        "SUM(hist5) + SUM(hist6) + SUM(hist7) AS total FROM iowait "
                        "WHERE {{ pid_filter }} AND {{ baseline_filter(\"ts_s\") }} GROUP BY pid)",
                        "0.75 0.25 8");
        assert_answer(s,
                        "SELECT ts_s, tid, SUM(sector_cnt) AS sectors FROM iowait WHERE {{ pid_filter }} "
                        "AND part0 = 8388624 GROUP BY ts_s, tid ORDER BY ts_s",
                        "2026-11-30 11:02:11.000000 1302804 64; 2026-11-30 11:02:21.000000 1302805 12; "
                        "2026-11-30 11:02:22.000000 1302805 12");
        assert_answer(s,
                        "SELECT pid, tid, part0, bdev, total_time, total_requests, comm FROM iowait "
                        "WHERE ts_s = '2026-11-30 11:02:11.000000' ORDER BY pid",
                        "9 0 8388624 8388625 20000000 10 kworker/0:1; "
                        "1302804 1302804 8388624 8388625 16000000 8 server");
        assert_answer(s, "SELECT DISTINCT tid, part0 FROM iowait io WHERE {{ pid_filter }} ORDER BY tid",
                        "1302804 8388624; 1302805 8388624");
}
END_TEST

START_TEST(test_aio_getevents) {
        _cleanup_(store_closep) Store *s = open_described();

        write_wait(s, MAIN, AIO, "io_getevents", 1000, 1000, 4, 800, 5);
        write_wait(s, MAIN, AIO, "io_submit", 1000, 1000, 1, 50, 5);
        write_wait(s, WORKER, RING, "io_uring_enter", 13000, 2000, 1, 1000, 6);
        write_wait(s, WORKER, RING, "io_worker", 13000, 2000, 1, 900, 6);
        assert_answer(s,
                        "SELECT tid, ts_s, SUM(total_time)/1e9 AS aio_share, SUM(total_requests) FROM aio_getevents "
                        "WHERE {{ pid_filter }} GROUP BY ts_s, tid ORDER BY ts_s",
                        "1302804 2026-11-30 11:02:11.000000 0.8 4; 1302805 2026-11-30 11:02:22.000000 0.5 0; "
                        "1302805 2026-11-30 11:02:23.000000 0.5 1");
        ck_assert_int_eq(number(s, "SELECT DISTINCT aioctx FROM aio_getevents WHERE kind = 'aio'"), id_of(s, AIO));
}
END_TEST

START_TEST(test_aio_submit) {
        _cleanup_(store_closep) Store *s = open_described();

        write_wait(s, MAIN, AIO, "io_submit", 1000, 1000, 2, 20, 4);
        write_call(s, MAIN, AIO, "submit", 1000, 1000, 30, 0, 2);
        write_wait(s, MAIN, AIO, "io_submit", 2000, 1000, 3, 20, 4);
        write_call(s, WORKER, RING, "submit", 3000, 1000, 40, 0, 2);
        write_call(s, WORKER, RING, "complete", 3000, 1000, 39, 0, 2);
        assert_answer(s,
                        "SELECT ts_s, tid, SUM(total_requests), calls_counted FROM aio_submit "
                        "WHERE {{ pid_filter }} AND {{ baseline_filter(\"ts_s\") }} GROUP BY ts_s, tid ORDER BY ts_s",
                        "2026-11-30 11:02:11.000000 1302804 30 1; 2026-11-30 11:02:12.000000 1302804 3 0; "
                        "2026-11-30 11:02:13.000000 1302805 40 1");
}
END_TEST

START_TEST(test_aio_file) {
        _cleanup_(store_closep) Store *s = open_described();

        write_wait(s, MAIN, AIO, "io_getevents", 1000, 1000, 4, 800, 5);
        assert_answer(s,
                        "SELECT aioctx, inode_id, SUM(hist0) FROM aio_file WHERE {{ baseline_filter(\"ts_s\") }} "
                        "GROUP BY aioctx, inode_id",
                        "");
}
END_TEST

/* Pieces add up to the row, tile its interval, and are about a second long. */
START_TEST(test_pieces) {
        static const struct {
                int64_t length;
                int64_t pieces;
        } rows[] = {
                { 1, 1 },
                { SECOND, 1 },
                { 1500 * MSEC, 1 },
                { 1500 * MSEC + 1, 2 },
                { 2499999999, 2 },
                { 60 * SECOND + 1, 60 },
                { 61 * SECOND - 7, 61 },
                { 3600 * SECOND, 3600 },
                { 10 * 3600 * SECOND + 11, 3600 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(store_closep) Store *s = open_described();

                write_time(s, MAIN, START + 123, rows[i].length);
                ck_assert_int_eq(number(s, "SELECT count(*) FROM thread_second"), rows[i].pieces);
                ck_assert_int_eq(number(s,
                                                 "SELECT (sum(v.dt_ns), sum(v.run_ns), sum(v.sleep_ns), "
                                                 "sum(v.switches)) "
                                                 "= (t.dt_ns, t.run_ns, t.sleep_ns, t.switches) "
                                                 "FROM thread_second v, thread_time t"),
                                1);
                ck_assert_int_eq(number(s, "SELECT max(ts_ns) FROM thread_second"), START + 123);
                ck_assert_int_eq(
                                number(s,
                                                "SELECT count(*) FROM (SELECT ts_ns - dt_ns AS begin, lag(ts_ns) OVER "
                                                "(ORDER BY ts_ns) AS before FROM thread_second) WHERE begin <> before"),
                                0);
                ck_assert_int_eq(number(s, "SELECT max(dt_ns) - min(dt_ns) <= 1 FROM thread_second"), 1);
        }
}
END_TEST

static char *plan(Store *s, const char *query) {
        _cleanup_free_ char *sql = NULL;

        ck_assert_int_ge(asprintf(&sql, "EXPLAIN QUERY PLAN %s", query), 0);
        return answer(s, sql);
}

/* What keeps them fast on a large database: a time range is read by key, what is made of identities gets an index. */
START_TEST(test_plans) {
        _cleanup_(store_closep) Store *s = open_described();
        _cleanup_free_ char *all = plan(s, "SELECT * FROM taskstats_view WHERE pid = 3 AND tid = 3"),
                            *times = plan(s, "SELECT * FROM taskstats_view WHERE ts_ns > 5 AND ts_ns <= 9 AND pid = 3"),
                            *waits = plan(s, "SELECT * FROM vfs WHERE ts_ns > 5 AND ts_ns <= 9 AND pid = 3"),
                            *futexes = plan(s, "SELECT * FROM futex_wait WHERE ts_ns > 5 AND ts_ns <= 9"),
                            *wakes = plan(s, "SELECT * FROM futex_wake WHERE pid = 3");

        ck_assert_ptr_nonnull(strstr(times, "SEARCH tt USING PRIMARY KEY (ts_ns>? AND ts_ns<?)"));
        ck_assert_ptr_nonnull(strstr(all, "SCAN tt"));
        ck_assert_ptr_null(strstr(all, "AUTOMATIC"));
        ck_assert_ptr_nonnull(strstr(waits, "SEARCH w USING PRIMARY KEY (ts_ns>? AND ts_ns<?)"));
        ck_assert_ptr_nonnull(strstr(waits, "SEARCH f USING AUTOMATIC COVERING INDEX (id=?)"));
        ck_assert_ptr_nonnull(strstr(futexes, "SEARCH w USING PRIMARY KEY (ts_ns>? AND ts_ns<?)"));
        ck_assert_ptr_nonnull(strstr(futexes, "SEARCH f USING AUTOMATIC COVERING INDEX (id=?)"));
        ck_assert_ptr_nonnull(strstr(wakes, "SEARCH f USING AUTOMATIC COVERING INDEX (id=?)"));
}
END_TEST

int main(void) {
        Suite *suite = suite_create("views");
        TCase *tests = tcase_create("views");

        tcase_add_test(tests, test_columns);
        tcase_add_test(tests, test_taskstats_view);
        tcase_add_test(tests, test_taskstats);
        tcase_add_test(tests, test_futex_wait);
        tcase_add_test(tests, test_futex_wake);
        tcase_add_test(tests, test_vfs);
        tcase_add_test(tests, test_long_calls);
        tcase_add_test(tests, test_muxio_wait);
        tcase_add_test(tests, test_muxio_file);
        tcase_add_test(tests, test_iowait);
        tcase_add_test(tests, test_aio_getevents);
        tcase_add_test(tests, test_aio_submit);
        tcase_add_test(tests, test_aio_file);
        tcase_add_test(tests, test_pieces);
        tcase_add_test(tests, test_plans);
        suite_add_tcase(suite, tests);
        return run_suite(suite);
}
