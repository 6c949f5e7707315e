/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* store/write.c: what a batch says is what the tables hold; all of it or nothing. */
#include "unit.h"

static Batch *new_batch(void) {
        Batch *b = batch_new();

        ck_assert_ptr_nonnull(b);
        return b;
}

/* Two processes (keys 11, 12) of one thread each (keys 21, 22), and a resource (key 31). */
static void describe(Batch *b) {
        assert_done(batch_add_process(b,
                        &(BatchProcess){ .key = 12,
                                        .parent_key = 11,
                                        .start_boot_ns = 200,
                                        .start_ns = 1200,
                                        .pid = 2,
                                        .host_pid = 1002,
                                        .ppid = 1,
                                        .uid = 1000,
                                        .comm = "child",
                                        .found_by = "child" }));
        assert_done(batch_add_process(b,
                        &(BatchProcess){ .key = 11,
                                        .start_boot_ns = 100,
                                        .start_ns = 1100,
                                        .pid = 1,
                                        .host_pid = 1001,
                                        .uid = 0,
                                        .netns = 77,
                                        .comm = "parent",
                                        .exe = "/bin/p",
                                        .cmdline = "p -x",
                                        .cgroup = "/a",
                                        .unit = "a.service",
                                        .found_by = "target",
                                        .target = "pid:1" }));
        assert_done(batch_add_thread(b,
                        &(BatchThread){ .key = 21,
                                        .process_key = 11,
                                        .start_boot_ns = 100,
                                        .start_ns = 1100,
                                        .tid = 1,
                                        .host_tid = 1001,
                                        .comm = "parent" }));
        assert_done(batch_add_thread(b,
                        &(BatchThread){ .key = 22,
                                        .process_key = 12,
                                        .start_boot_ns = 200,
                                        .start_ns = 1200,
                                        .tid = 2,
                                        .host_tid = 1002,
                                        .comm = "child" }));
        assert_done(batch_add_resource(b, &(BatchResource){ .key = 31, .kind = "futex", .ident = "private:1:2" }));
}

static void add_rows(Batch *b, int64_t ts_ns) {
        assert_done(batch_add_thread_time(b,
                        &(BatchThreadTime){ .ts_ns = ts_ns,
                                        .dt_ns = 1000,
                                        .thread_key = 21,
                                        .run_ns = 100,
                                        .runqueue_ns = 200,
                                        .sleep_ns = 300,
                                        .block_ns = 400,
                                        .iowait_ns = 50,
                                        .throttled_ns = 60,
                                        .healed_ns = 70,
                                        .switches = 8,
                                        .preemptions = 9 }));
        assert_done(batch_add_wait(b,
                        &(BatchWait){ .ts_ns = ts_ns,
                                        .dt_ns = 1000,
                                        .thread_key = 21,
                                        .resource_key = 31,
                                        .op = "wait",
                                        .count = 5,
                                        .total_ns = 700,
                                        .max_ns = 600,
                                        .histogram = { 1, 2, 3, 4, 5, 6, 7, 8 } }));
        assert_done(batch_add_wake(b,
                        &(BatchWake){ .ts_ns = ts_ns,
                                        .dt_ns = 1000,
                                        .waker_thread_key = 22,
                                        .waker_kind = "thread",
                                        .thread_key = 21,
                                        .resource_key = 31,
                                        .count = 3,
                                        .total_ns = 500 }));
        assert_done(batch_add_wake(b,
                        &(BatchWake){ .ts_ns = ts_ns,
                                        .dt_ns = 1000,
                                        .waker_kind = "irq",
                                        .thread_key = 21,
                                        .resource_key = 31,
                                        .count = 2,
                                        .total_ns = 200 }));
        assert_done(batch_add_ran_instead(b,
                        &(BatchRanInstead){ .ts_ns = ts_ns,
                                        .dt_ns = 1000,
                                        .thread_key = 21,
                                        .process_key = 12,
                                        .total_ns = 150 }));
        assert_done(batch_add_ran_instead(
                        b, &(BatchRanInstead){ .ts_ns = ts_ns, .dt_ns = 1000, .thread_key = 21, .total_ns = 50 }));
}

START_TEST(test_round_trip) {
        _cleanup_(store_closep) Store *s = open_store(NULL);
        _cleanup_(batch_unrefp) Batch *b = new_batch();

        describe(b);
        add_rows(b, 5000);
        assert_done(batch_add_loss(
                        b, &(BatchLoss){ .ts_ns = 5000, .part = "kernel", .reason = "wait-full", .count = 4 }));
        assert_done(batch_add_clock(b, &(BatchClock){ .boot_ns = 10, .unix_ns = 1010 }));
        assert_done(store_write(s, b, &error));

        assert_text(s,
                        "SELECT pid || ' ' || host_pid || ' ' || start_boot_ns || ' ' || start_ns || ' ' || uid || ' ' "
                        "|| comm || ' ' || exe "
                        "|| ' ' || cmdline || ' ' || cgroup || ' ' || unit || ' ' || netns || ' ' || found_by || ' ' "
                        "|| target "
                        "FROM process WHERE host_pid = 1001",
                        "1 1001 100 1100 0 parent /bin/p p -x /a a.service 77 target pid:1");
        ck_assert_int_eq(number(s,
                                         "SELECT count(*) FROM process WHERE host_pid = 1001 AND exit_ns IS NULL AND "
                                         "ppid IS NULL "
                                         "AND found_from IS NULL"),
                        1);
        ck_assert_int_eq(number(s,
                                         "SELECT count(*) FROM process WHERE host_pid = 1002 AND exe IS NULL AND "
                                         "cmdline IS NULL "
                                         "AND cgroup IS NULL AND unit IS NULL AND netns IS NULL AND target IS NULL AND "
                                         "ppid = 1"),
                        1);
        /* The child stands before its parent in the batch. */
        assert_text(s, "SELECT parent.comm FROM process child JOIN process parent ON parent.id = child.found_from",
                        "parent");

        assert_text(s,
                        "SELECT tt.ts_ns || ' ' || dt_ns || ' ' || host_tid || ' ' || run_ns || ' ' || runqueue_ns || "
                        "' ' || sleep_ns || ' ' "
                        "|| block_ns || ' ' || iowait_ns || ' ' || throttled_ns || ' ' || healed_ns || ' ' || switches "
                        "|| ' ' || preemptions "
                        "FROM thread_time tt JOIN thread t ON t.id = tt.thread_id",
                        "5000 1000 1001 100 200 300 400 50 60 70 8 9");
        assert_text(s,
                        "SELECT host_tid || ' ' || kind || ' ' || ident || ' ' || op || ' ' || count || ' ' || "
                        "total_ns || ' ' || max_ns "
                        "|| ' ' || hist0 || hist1 || hist2 || hist3 || hist4 || hist5 || hist6 || hist7 "
                        "FROM wait JOIN thread t ON t.id = thread_id JOIN resource r ON r.id = resource_id",
                        "1001 futex private:1:2 wait 5 700 600 12345678");
        assert_text(s,
                        "SELECT group_concat(line, '; ') FROM (SELECT waker_kind || ' ' || coalesce(waker.comm, '-') "
                        "|| ' ' || count "
                        "|| ' ' || total_ns AS line FROM wake LEFT JOIN thread waker ON waker.id = waker_thread_id "
                        "ORDER BY waker_kind)",
                        "irq - 2 200; thread child 3 500");
        ck_assert_int_eq(number(s, "SELECT waker_thread_id FROM wake WHERE waker_kind = 'irq'"), 0);
        assert_text(s,
                        "SELECT group_concat(coalesce(comm, '-') || ' ' || total_ns, '; ') FROM ran_instead LEFT JOIN "
                        "process p "
                        "ON p.id = process_id",
                        "child 150; - 50");
        assert_text(s, "SELECT ts_ns || ' ' || part || ' ' || reason || ' ' || count FROM loss",
                        "5000 kernel wait-full 4");
        assert_text(s, "SELECT boot_ns || ' ' || unix_ns FROM clock", "10 1010");
        ck_assert_int_eq(number(s, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
}
END_TEST

START_TEST(test_updates) {
        _cleanup_(store_closep) Store *s = open_store(NULL);
        _cleanup_(batch_unrefp) Batch *first = new_batch(), *second = new_batch(), *third = new_batch();

        describe(first);
        assert_done(store_write(s, first, &error));

        /* What is not known this time stays; what is new comes in. */
        assert_done(batch_add_process(second,
                        &(BatchProcess){ .key = 11,
                                        .start_boot_ns = 100,
                                        .start_ns = 1105,
                                        .exit_ns = 9000,
                                        .pid = 1,
                                        .host_pid = 1001,
                                        .uid = UINT32_MAX,
                                        .comm = "renamed",
                                        .cmdline = "p -y",
                                        .found_by = "observed" }));
        assert_done(batch_add_thread(second,
                        &(BatchThread){ .key = 21,
                                        .process_key = 11,
                                        .start_boot_ns = 100,
                                        .tid = 1,
                                        .host_tid = 1001,
                                        .exit_ns = 9000,
                                        .comm = "other" }));
        assert_done(batch_add_resource(second,
                        &(BatchResource){ .key = 31, .kind = "futex", .ident = "private:1:2", .name = "lock in p" }));
        assert_done(store_write(s, second, &error));
        assert_text(s,
                        "SELECT comm || ' ' || exe || ' ' || cmdline || ' ' || exit_ns || ' ' || found_by || ' ' || "
                        "target || ' ' || start_ns "
                        "|| ' ' || uid FROM process WHERE host_pid = 1001",
                        "renamed /bin/p p -y 9000 target pid:1 1100 0");
        assert_text(s, "SELECT comm || ' ' || exit_ns || ' ' || start_ns FROM thread WHERE host_tid = 1001",
                        "other 9000 1100");
        assert_text(s, "SELECT name FROM resource", "lock in p");

        assert_done(batch_add_process(third,
                        &(BatchProcess){ .key = 11,
                                        .start_boot_ns = 100,
                                        .host_pid = 1001,
                                        .comm = "",
                                        .found_by = "peer" }));
        assert_done(batch_add_resource(third, &(BatchResource){ .key = 31, .kind = "futex", .ident = "private:1:2" }));
        assert_done(store_write(s, third, &error));
        assert_text(s,
                        "SELECT comm || ' ' || pid || ' ' || exit_ns || ' ' || found_by FROM process WHERE host_pid = "
                        "1001",
                        "renamed 1 9000 peer");
        assert_text(s, "SELECT name FROM resource", "lock in p");
        ck_assert_int_eq(number(s, "SELECT count(*) FROM process"), 2);
        ck_assert_int_eq(number(s, "SELECT count(*) FROM thread"), 2);
        ck_assert_int_eq(number(s, "SELECT count(*) FROM resource"), 1);
}
END_TEST

/* A pid that the kernel gave again is another process. */
START_TEST(test_identity) {
        _cleanup_(store_closep) Store *s = open_store(NULL);
        _cleanup_(batch_unrefp) Batch *b = new_batch();

        for (uint64_t i = 1; i <= 3; i++) {
                assert_done(batch_add_process(b,
                                &(BatchProcess){ .key = i,
                                                .start_boot_ns = (int64_t) i,
                                                .pid = 7,
                                                .host_pid = 7,
                                                .comm = "p",
                                                .found_by = "target" }));
                assert_done(batch_add_thread(b,
                                &(BatchThread){ .key = i,
                                                .process_key = i,
                                                .start_boot_ns = (int64_t) i,
                                                .tid = 7,
                                                .host_tid = 7,
                                                .comm = "t" }));
                assert_done(batch_add_thread_time(
                                b, &(BatchThreadTime){ .ts_ns = 1, .dt_ns = 1, .thread_key = i, .run_ns = i }));
        }
        assert_done(store_write(s, b, &error));
        ck_assert_int_eq(number(s, "SELECT count(DISTINCT id) FROM process"), 3);
        assert_text(s,
                        "SELECT group_concat(p.start_boot_ns || ' ' || run_ns) FROM thread_time JOIN thread t ON t.id "
                        "= thread_id "
                        "JOIN process p ON p.id = process_id",
                        "1 1,2 2,3 3");
}
END_TEST

/* The clock went back: rows of the same moment are added to those that are there, and what hangs on them stays in step. */
START_TEST(test_merge) {
        _cleanup_(store_closep) Store *s = open_store(NULL);
        _cleanup_(batch_unrefp) Batch *first = new_batch(), *second = new_batch();

        describe(first);
        add_rows(first, 5000);
        assert_done(batch_add_clock(first, &(BatchClock){ .boot_ns = 10, .unix_ns = 1010 }));
        assert_done(store_write(s, first, &error));

        add_rows(second, 5000);
        second->waits[0].max_ns = 550;
        assert_done(batch_add_wait(second,
                        &(BatchWait){ .ts_ns = 5000,
                                        .dt_ns = 1000,
                                        .thread_key = 21,
                                        .resource_key = 31,
                                        .op = "lock",
                                        .count = 1,
                                        .total_ns = 1,
                                        .max_ns = 1 }));
        assert_done(batch_add_clock(second, &(BatchClock){ .boot_ns = 10, .unix_ns = 910 }));
        assert_done(store_write(s, second, &error));

        assert_text(s,
                        "SELECT dt_ns || ' ' || run_ns || ' ' || runqueue_ns || ' ' || sleep_ns || ' ' || block_ns || "
                        "' ' || iowait_ns || ' ' "
                        "|| throttled_ns || ' ' || healed_ns || ' ' || switches || ' ' || preemptions FROM thread_time",
                        "2000 200 400 600 800 100 120 140 16 18");
        assert_text(s,
                        "SELECT dt_ns || ' ' || count || ' ' || total_ns || ' ' || max_ns || ' ' || hist0 || ' ' || "
                        "hist7 FROM wait "
                        "WHERE op = 'wait'",
                        "2000 10 1400 600 2 16");
        ck_assert_int_eq(number(s, "SELECT dt_ns FROM wait WHERE op = 'lock'"), 2000);
        assert_text(s,
                        "SELECT group_concat(waker_kind || ' ' || dt_ns || ' ' || count || ' ' || total_ns, '; ') "
                        "FROM (SELECT * FROM wake ORDER BY waker_kind)",
                        "irq 2000 4 400; thread 2000 6 1000");
        assert_text(s, "SELECT count(*) || ' ' || min(dt_ns) || ' ' || sum(total_ns) FROM ran_instead", "4 2000 400");
        assert_text(s, "SELECT count(*) || ' ' || unix_ns FROM clock", "1 910");
}
END_TEST

/* Two rows for one wait in one interval: added, but the interval is no longer for it. */
START_TEST(test_merge_within_a_batch) {
        _cleanup_(store_closep) Store *s = open_store(NULL);
        _cleanup_(batch_unrefp) Batch *b = new_batch();

        describe(b);
        add_rows(b, 5000);
        for (unsigned i = 0; i < 2; i++) {
                assert_done(batch_add_wait(b, b->waits));
                assert_done(batch_add_wake(b, b->wakes));
        }
        b->waits[2].max_ns = 900;
        assert_done(store_write(s, b, &error));
        assert_text(s, "SELECT dt_ns || ' ' || count || ' ' || total_ns || ' ' || max_ns || ' ' || hist1 FROM wait",
                        "1000 15 2100 900 6");
        assert_text(s, "SELECT dt_ns || ' ' || count || ' ' || total_ns FROM wake WHERE waker_kind = 'thread'",
                        "1000 9 1500");
}
END_TEST

START_TEST(test_restart) {
        _cleanup_(batch_unrefp) Batch *first = new_batch(), *second = new_batch();
        StoreMachine rebooted = test_machine;
        int64_t process, thread, resource;
        Store *s;

        directory_make();
        s = open_store(in_directory("prism.db"));
        describe(first);
        assert_done(store_write(s, first, &error));
        process = number(s, "SELECT id FROM process WHERE host_pid = 1001");
        thread = number(s, "SELECT id FROM thread WHERE host_tid = 1001");
        resource = number(s, "SELECT id FROM resource");
        s = store_close(s);

        /* Keys are the producer's and start anew with it; the rows are the same. */
        describe(second);
        for (size_t i = 0; i < second->n_processes; i++) {
                second->processes[i].key += 500;
                second->processes[i].parent_key += second->processes[i].parent_key ? 500 : 0;
                second->threads[i].key += 500;
                second->threads[i].process_key += 500;
        }
        second->resources[0].key += 500;
        assert_done(batch_add_thread_time(second, &(BatchThreadTime){ .ts_ns = 1, .dt_ns = 1, .thread_key = 521 }));
        s = open_store(in_directory("prism.db"));
        assert_done(store_write(s, second, &error));
        ck_assert_int_eq(number(s, "SELECT count(*) FROM process"), 2);
        ck_assert_int_eq(number(s, "SELECT id FROM process WHERE host_pid = 1001"), process);
        ck_assert_int_eq(number(s, "SELECT id FROM resource"), resource);
        ck_assert_int_eq(number(s, "SELECT thread_id FROM thread_time"), thread);
        s = store_close(s);

        /* After a boot they are others, whatever their numbers. */
        rebooted.boot_id = "00000000000000000000000000000001";
        assert_done(store_open(in_directory("prism.db"), &rebooted, &s, &error));
        assert_done(store_write(s, first, &error));
        ck_assert_int_eq(number(s, "SELECT count(*) FROM process"), 4);
        ck_assert_int_eq(number(s, "SELECT count(*) FROM thread"), 4);
        ck_assert_int_eq(number(s, "SELECT count(*) FROM resource"), 2);
        ck_assert_int_eq(number(s,
                                         "SELECT count(*) FROM process a JOIN process b ON a.id = b.found_from AND "
                                         "a.boot = b.boot"),
                        2);
        s = store_close(s);
        directory_remove();
}
END_TEST

/* One row of each kind that names an unknown key: the whole batch is refused, and its descriptions are forgotten. */
START_TEST(test_unknown_keys) {
        _cleanup_(store_closep) Store *s = open_store(NULL);

        for (unsigned kind = 0; kind < 9; kind++) {
                _cleanup_(batch_unrefp) Batch *b = new_batch();

                describe(b);
                add_rows(b, 5000);
                switch (kind) {
                case 0:
                        b->threads[1].process_key = 99;
                        break;
                case 1:
                        b->thread_times[0].thread_key = 99;
                        break;
                case 2:
                        b->waits[0].thread_key = 99;
                        break;
                case 3:
                        b->waits[0].resource_key = 99;
                        break;
                case 4:
                        b->wakes[0].waker_thread_key = 99;
                        break;
                case 5:
                        b->wakes[0].thread_key = 0;
                        break;
                case 6:
                        b->wakes[0].resource_key = 99;
                        break;
                case 7:
                        b->ran_instead[0].thread_key = 99;
                        break;
                default:
                        b->ran_instead[0].process_key = 99;
                        break;
                }
                assert_fails(store_write(s, b, &error), -ENOKEY, kind == 5 ? "thread 0" : "99");
                ck_assert_int_eq(number(s,
                                                 "SELECT (SELECT count(*) FROM process) + (SELECT count(*) FROM "
                                                 "thread) + (SELECT count(*) "
                                                 "FROM resource) + (SELECT count(*) FROM thread_time) + (SELECT "
                                                 "count(*) FROM wait) + "
                                                 "(SELECT count(*) FROM wake) + (SELECT count(*) FROM ran_instead)"),
                                0);
        }

        {
                _cleanup_(batch_unrefp) Batch *rows = new_batch();

                add_rows(rows, 5000);
                assert_fails(store_write(s, rows, &error), -ENOKEY, "never described");
        }
        {
                _cleanup_(batch_unrefp) Batch *b = new_batch(), *rows = new_batch();

                describe(b);
                assert_done(store_write(s, b, &error));
                add_rows(rows, 5000);
                assert_done(store_write(s, rows, &error));
                store_forget_keys(s);
                assert_fails(store_write(s, rows, &error), -ENOKEY, "never described");
                ck_assert_int_eq(number(s, "SELECT run_ns FROM thread_time"), 100);
        }
}
END_TEST

/* What a failed batch described is unknown again, of each kind. */
START_TEST(test_descriptions_of_a_failed_batch) {
        _cleanup_(store_closep) Store *s = open_store(NULL);
        _cleanup_(batch_unrefp) Batch *failing = new_batch(), *process = new_batch(), *thread = new_batch(),
                                      *resource = new_batch();

        describe(failing);
        add_rows(failing, 5000);
        failing->ran_instead[1].thread_key = 99;
        assert_fails(store_write(s, failing, &error), -ENOKEY, "thread 99");

        assert_done(batch_add_thread(process, failing->threads));
        assert_fails(store_write(s, process, &error), -ENOKEY, "process 11");
        assert_done(batch_add_thread_time(thread, failing->thread_times));
        assert_fails(store_write(s, thread, &error), -ENOKEY, "thread 21");
        describe(resource);
        resource->n_resources = 0;
        assert_done(batch_add_wait(resource, failing->waits));
        assert_fails(store_write(s, resource, &error), -ENOKEY, "resource 31");
}
END_TEST

/* A row that the tables refuse takes everything before it back, and the store goes on. */
START_TEST(test_refused_row) {
        _cleanup_(store_closep) Store *s = open_store(NULL);
        _cleanup_(batch_unrefp) Batch *b = new_batch();

        describe(b);
        add_rows(b, 5000);
        b->wakes[1].waker_kind = NULL;
        assert_fails(store_write(s, b, &error), -EINVAL, "waker_kind");
        ck_assert_int_eq(number(s, "SELECT count(*) FROM thread_time"), 0);
        ck_assert_int_eq(sqlite3_get_autocommit(store_database(s)), 1);
        b->wakes[1].waker_kind = "irq";
        assert_done(store_write(s, b, &error));
        ck_assert_int_eq(number(s, "SELECT count(*) FROM thread_time"), 1);
}
END_TEST

/* The disk is full in the middle of a batch. */
START_TEST(test_full) {
        _cleanup_(batch_unrefp) Batch *first = new_batch(), *big = new_batch();
        char limit[64];
        Store *s;

        directory_make();
        s = open_store(in_directory("prism.db"));
        describe(first);
        add_rows(first, 5000);
        assert_done(store_write(s, first, &error));

        (void) snprintf(limit, sizeof(limit), "PRAGMA max_page_count = %lld",
                        (long long) number(s, "PRAGMA page_count") + 2);
        execute(s, limit);
        for (unsigned i = 0; i < 5000; i++)
                assert_done(batch_add_thread_time(
                                big, &(BatchThreadTime){ .ts_ns = 10000 + i, .dt_ns = 1, .thread_key = 21 }));
        assert_done(batch_add_thread(big,
                        &(BatchThread){ .key = 29,
                                        .process_key = 11,
                                        .start_boot_ns = 900,
                                        .tid = 9,
                                        .host_tid = 1009,
                                        .comm = "new" }));
        assert_fails(store_write(s, big, &error), -ENOSPC, "No space");
        ck_assert_int_eq(number(s, "SELECT count(*) FROM thread_time"), 1);
        ck_assert_int_eq(number(s, "SELECT count(*) FROM thread"), 2);

        execute(s, "PRAGMA max_page_count = 1000000");
        assert_done(store_write(s, big, &error));
        ck_assert_int_eq(number(s, "SELECT count(*) FROM thread_time"), 5001);
        ck_assert_int_eq(number(s, "SELECT count(*) FROM thread"), 3);
        assert_text(s, "PRAGMA integrity_check", "ok");
        s = store_close(s);
        directory_remove();
}
END_TEST

START_TEST(test_locked) {
        _cleanup_(batch_unrefp) Batch *b = new_batch();
        Store *s, *other;

        directory_make();
        s = open_store(in_directory("prism.db"));
        other = open_store(in_directory("prism.db"));
        execute(other, "BEGIN IMMEDIATE");
        sqlite3_busy_timeout(store_database(s), 20);
        describe(b);
        assert_fails(store_write(s, b, &error), -EBUSY, "locked");
        execute(other, "COMMIT");
        assert_done(store_write(s, b, &error));
        ck_assert_int_eq(number(other, "SELECT count(*) FROM process"), 2);
        s = store_close(s);
        other = store_close(other);
        directory_remove();
}
END_TEST

/* What targets choose is data, whatever it looks like. */
START_TEST(test_hostile_text) {
        _cleanup_(store_closep) Store *s = open_store(NULL);
        _cleanup_(batch_unrefp) Batch *b = new_batch();

        assert_done(batch_add_process(b,
                        &(BatchProcess){ .key = 1,
                                        .host_pid = 1,
                                        .comm = "'; DROP TABLE wait; --",
                                        .exe = "bad \xff\xc3 end",
                                        .cmdline = "a\nb\x1b",
                                        .found_by = "target",
                                        .uid = UINT32_MAX }));
        assert_done(store_write(s, b, &error));
        assert_text(s, "SELECT comm FROM process", "'; DROP TABLE wait; --");
        assert_text(s, "SELECT exe FROM process", "bad \xef\xbf\xbd\xef\xbf\xbd end");
        assert_text(s, "SELECT cmdline FROM process", "a\nb\x1b");
        ck_assert_int_eq(number(s, "SELECT uid IS NULL FROM process"), 1);
        ck_assert_int_eq(number(s, "SELECT count(*) FROM wait"), 0);
}
END_TEST

START_TEST(test_extremes) {
        _cleanup_(store_closep) Store *s = open_store(NULL);
        _cleanup_(batch_unrefp) Batch *empty = new_batch(), *b = new_batch();

        assert_done(store_write(s, empty, &error));
        describe(b);
        b->processes[0].netns = UINT64_MAX;
        b->processes[0].uid = UINT32_MAX - 1;
        add_rows(b, INT64_MAX);
        b->waits[0].total_ns = UINT64_MAX;
        b->waits[0].histogram[0] = UINT32_MAX;
        assert_done(store_write(s, b, &error));
        ck_assert_int_eq(number(s, "SELECT total_ns FROM wait"), INT64_MAX);
        ck_assert_int_eq(number(s, "SELECT hist0 FROM wait"), UINT32_MAX);
        ck_assert_int_eq(number(s, "SELECT uid FROM process WHERE host_pid = 1002"), UINT32_MAX - 1);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("write");
        TCase *tests = tcase_create("write");

        tcase_add_test(tests, test_round_trip);
        tcase_add_test(tests, test_updates);
        tcase_add_test(tests, test_identity);
        tcase_add_test(tests, test_merge);
        tcase_add_test(tests, test_merge_within_a_batch);
        tcase_add_test(tests, test_restart);
        tcase_add_test(tests, test_unknown_keys);
        tcase_add_test(tests, test_descriptions_of_a_failed_batch);
        tcase_add_test(tests, test_refused_row);
        tcase_add_test(tests, test_full);
        tcase_add_test(tests, test_locked);
        tcase_add_test(tests, test_hostile_text);
        tcase_add_test(tests, test_extremes);
        suite_add_tcase(suite, tests);
        return run_suite(suite);
}
