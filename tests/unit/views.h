/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the tests of the views share: a store that knows some processes and resources, rows in it, and answers to
 * queries with the published tool's {{ }} variables. */
#pragma once

#include "query.h"
#include "unit.h"

/* 2026-11-30 11:02:10 UTC */
#define START (INT64_C(1796036530) * SECOND)
#define MSEC ((int64_t) NSEC_PER_MSEC)

enum {
        SERVER = 1,
        CLIENT,
        KERNEL,
};

enum {
        MAIN = 1, /* of SERVER, as WORKER is */
        WORKER,
        OTHER, /* of CLIENT */
};

enum {
        FUTEX = 1,
        FUTEX_SHARED,
        FUTEX_LOST,
        PIPE,
        FILE_DATA,
        TERMINAL,
        UNIX_SERVER,
        UNIX_CLIENT,
        TCP_SERVER,
        TCP_CLIENT,
        TCP_LISTEN,
        TCP_AWAY,
        EPOLL,
        POLL,
        AIO,
        RING,
        RECLAIM,
        SWAP,
        TIMER,
};

static const struct {
        const char *kind, *ident, *name;
} resources[] = {
        [FUTEX] = { "futex", "private:9:0x7fab12345678", "server+0x5678" },
        [FUTEX_SHARED] = { "futex", "shared:5+0x1a004", NULL },
        [FUTEX_LOST] = { "futex", "lost", NULL },
        [PIPE] = { "pipe", "inode:41", "pipe:[41]" },
        [FILE_DATA] = { "file", "8:17:1234:7", "/var/lib/data" },
        [TERMINAL] = { "chardev", "136:2", "/dev/pts/2" },
        [UNIX_SERVER] = { "unix", "inode:61", "unix /run/server" },
        [UNIX_CLIENT] = { "unix", "inode:62", "unix" },
        [TCP_SERVER] = { "inet", "inode:51", "tcp 127.0.0.1:40112" },
        [TCP_CLIENT] = { "inet", "inode:52", "tcp 127.0.0.1:5432" },
        [TCP_LISTEN] = { "inet", "inode:53", "tcp listen *:5432" },
        [TCP_AWAY] = { "inet", "inode:54", "tcp 10.0.0.2:80" },
        [EPOLL] = { "epoll", "file:0xffff888012345678:55", "eventpoll 55" },
        [POLL] = { "poll", "set:0xabc:55", NULL },
        [AIO] = { "aio", "9:0x7fab00000000", NULL },
        [RING] = { "io_uring", "inode:71", NULL },
        [RECLAIM] = { "reclaim", "reclaim", NULL },
        [SWAP] = { "page-fault", "swap", NULL },
        [TIMER] = { "timer", "nanosleep", NULL },
};

static inline _unused_ Batch *new_batch(void) {
        Batch *b = batch_new();

        ck_assert_ptr_nonnull(b);
        return b;
}

/* A store that knows two followed processes, one that is only named, and the resources. */
static inline _unused_ Store *open_described(void) {
        _cleanup_(batch_unrefp) Batch *b = new_batch();
        Store *s = open_store(NULL);

        assert_done(batch_add_process(b,
                        &(BatchProcess){ .key = SERVER,
                                        .pid = 1302804,
                                        .host_pid = 1302804,
                                        .start_boot_ns = 1,
                                        .start_ns = START,
                                        .comm = "server",
                                        .exe = "/usr/bin/server",
                                        .cmdline = "server --port 5432",
                                        .cgroup = "/system.slice/docker-aa.scope",
                                        .found_by = "target" }));
        assert_done(batch_add_process(b,
                        &(BatchProcess){ .key = CLIENT,
                                        .pid = 77,
                                        .host_pid = 77,
                                        .start_boot_ns = 2,
                                        .comm = "client",
                                        .cgroup = "/kubepods/pod1/cri-containerd-bb.scope",
                                        .found_by = "peer" }));
        assert_done(batch_add_process(b,
                        &(BatchProcess){ .key = KERNEL,
                                        .pid = 9,
                                        .host_pid = 9,
                                        .start_boot_ns = 3,
                                        .comm = "kworker/0:1",
                                        .found_by = "observed" }));
        assert_done(batch_add_thread(b,
                        &(BatchThread){ .key = MAIN,
                                        .process_key = SERVER,
                                        .start_boot_ns = 1,
                                        .tid = 1302804,
                                        .host_tid = 1302804,
                                        .comm = "server" }));
        assert_done(batch_add_thread(b,
                        &(BatchThread){ .key = WORKER,
                                        .process_key = SERVER,
                                        .start_boot_ns = 2,
                                        .tid = 1302805,
                                        .host_tid = 1302805,
                                        .comm = "worker" }));
        assert_done(batch_add_thread(b,
                        &(BatchThread){ .key = OTHER,
                                        .process_key = CLIENT,
                                        .start_boot_ns = 3,
                                        .tid = 77,
                                        .host_tid = 77,
                                        .comm = "client" }));
        for (uint64_t key = 1; key < ELEMENTSOF(resources); key++)
                assert_done(batch_add_resource(b,
                                &(BatchResource){ .key = key,
                                                .kind = resources[key].kind,
                                                .ident = resources[key].ident,
                                                .name = resources[key].name }));
        assert_done(store_write(s, b, &error));
        return s;
}

#define write_row(s, row_kind, ...)                                  \
        do {                                                         \
                _cleanup_(batch_unrefp) Batch *_b_ = new_batch();    \
                assert_done(batch_add_##row_kind(_b_, __VA_ARGS__)); \
                assert_done(store_write((s), _b_, &error));          \
        } while (0)

/* A wait row that ends `end_ms` after START; its last bucket that is not empty is `bucket`. */
static inline _unused_ void write_wait(Store *s, uint64_t thread, uint64_t resource, const char *op, int64_t end_ms,
                int64_t length_ms, uint64_t count, int64_t total_ms, unsigned bucket) {
        BatchWait row = { .ts_ns = START + end_ms * MSEC,
                .dt_ns = length_ms * MSEC,
                .thread_key = thread,
                .resource_key = resource,
                .op = op,
                .count = count,
                .total_ns = (uint64_t) (total_ms * MSEC) };

        row.histogram[bucket] = (uint32_t) count;
        write_row(s, wait, &row);
}

static inline _unused_ void write_time(Store *s, uint64_t thread, int64_t end_ns, int64_t length_ns) {
        uint64_t quarter = (uint64_t) length_ns / 4;

        write_row(s, thread_time,
                        &(BatchThreadTime){ .ts_ns = end_ns,
                                        .dt_ns = length_ns,
                                        .thread_key = thread,
                                        .run_ns = (uint64_t) length_ns - 3 * quarter,
                                        .runqueue_ns = quarter,
                                        .sleep_ns = quarter,
                                        .block_ns = quarter,
                                        .iowait_ns = quarter / 2,
                                        .switches = 7,
                                        .preemptions = 2 });
}

/* All rows of a query with the published tool's variables, columns by spaces and rows by "; ". The caller frees.
 * baseline is the 10 s from START on, compare the 10 s behind them. */
static inline _unused_ char *answer(Store *s, const char *query) {
        static const QueryVariable variables[] = {
                { "pid_filter", "(pid = 1302804 and machine_id = 4000000000)" },
                { "pid", "1302804" },
                { "machine_id", "4000000000" },
        };
        const QueryRange baseline = { START, START + 10 * SECOND },
                         compare = { START + 10 * SECOND, START + 20 * SECOND };
        _cleanup_free_ char *sql = NULL;
        sqlite3_stmt *st = NULL;
        char *text = NULL;
        size_t size = 0;
        FILE *f;
        int r;

        assert_done(query_expand(query, variables, ELEMENTSOF(variables), &baseline, 1, &compare, 1, &sql, &error));
        ck_assert_msg(sqlite3_prepare_v2(store_database(s), sql, -1, &st, NULL) == SQLITE_OK, "%s: %s", sql,
                        sqlite3_errmsg(store_database(s)));
        f = open_memstream(&text, &size);
        ck_assert_ptr_nonnull(f);
        for (bool first = true; (r = sqlite3_step(st)) == SQLITE_ROW; first = false)
                for (int i = 0; i < sqlite3_column_count(st); i++) {
                        const char *value = (const char *) sqlite3_column_text(st, i);

                        fprintf(f, "%s%s", i > 0 ? " " : first ? "" : "; ", value ? value : "NULL");
                }
        ck_assert_msg(r == SQLITE_DONE, "%s: %s", sql, sqlite3_errmsg(store_database(s)));
        ck_assert_int_eq(fclose(f), 0);
        sqlite3_finalize(st);
        return text;
}

#define assert_answer(s, query, expected)               \
        do {                                            \
                char *_answer_ = answer((s), (query));  \
                ck_assert_str_eq(_answer_, (expected)); \
                free(_answer_);                         \
        } while (0)
