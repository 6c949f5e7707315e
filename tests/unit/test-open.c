/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* store/store.c: the schema, migrations, what is refused, and who may read. */
#include <grp.h>
#include <signal.h>
#include <sys/wait.h>

#include "schema-1.h"
#include "unit.h"

#define NOBODY 65534

static const char *database_path(void) {
        return in_directory("prism.db");
}

/* A store that holds one thread's time. */
static void write_some(Store *s, int64_t ts_ns) {
        _cleanup_(batch_unrefp) Batch *b = batch_new();

        assert_done(batch_add_process(b,
                        &(BatchProcess){ .key = 1,
                                        .pid = 5,
                                        .host_pid = 5,
                                        .start_boot_ns = 1,
                                        .comm = "p",
                                        .found_by = "target" }));
        assert_done(batch_add_thread(b,
                        &(BatchThread){ .key = 1,
                                        .process_key = 1,
                                        .tid = 5,
                                        .host_tid = 5,
                                        .start_boot_ns = 1,
                                        .comm = "t" }));
        assert_done(batch_add_thread_time(b,
                        &(BatchThreadTime){ .ts_ns = ts_ns,
                                        .dt_ns = SECOND,
                                        .thread_key = 1,
                                        .run_ns = SECOND / 4,
                                        .sleep_ns = 3 * SECOND / 4 }));
        assert_done(store_write(s, b, &error));
}

START_TEST(test_schema) {
        static const char *const tables[] = { "boot", "call", "cgroup_time", "clock", "coverage", "disk", "epoll_watch",
                "kpi", "loss", "machine", "meta", "mux_wait", "process", "ran_instead", "recording", "resource",
                "socket", "socket_sample", "thread", "thread_time", "wait", "wake" };
        _cleanup_(store_closep) Store *s = open_store(NULL);
        sqlite3_stmt *st = NULL;
        size_t n = 0;

        ck_assert_int_eq(sqlite3_prepare_v2(store_database(s),
                                         "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' "
                                         "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name",
                                         -1, &st, NULL),
                        SQLITE_OK);
        while (sqlite3_step(st) == SQLITE_ROW) {
                ck_assert_uint_lt(n, ELEMENTSOF(tables));
                ck_assert_str_eq((const char *) sqlite3_column_text(st, 0), tables[n++]);
        }
        sqlite3_finalize(st);
        ck_assert_uint_eq(n, ELEMENTSOF(tables));

        ck_assert_int_eq(number(s,
                                         "SELECT count(*) FROM pragma_table_list WHERE schema = 'main' AND type = "
                                         "'table' "
                                         "AND strict = 0 AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"),
                        0);
        assert_text(s, "PRAGMA integrity_check", "ok");
}
END_TEST

START_TEST(test_views) {
        _cleanup_(store_closep) Store *s = open_store(NULL);
        sqlite3_stmt *st = NULL;
        size_t n = 0;

        ck_assert_int_eq(sqlite3_prepare_v2(store_database(s), "SELECT name FROM sqlite_schema WHERE type = 'view'", -1,
                                         &st, NULL),
                        SQLITE_OK);
        for (; sqlite3_step(st) == SQLITE_ROW; n++) {
                char sql[128];

                (void) snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s", sqlite3_column_text(st, 0));
                ck_assert_msg(number(s, sql) >= 0, "%s", sql);
        }
        sqlite3_finalize(st);
        ck_assert_uint_ge(n, 1);

        write_some(s, INT64_C(1796036530123456789));
        assert_text(s, "SELECT ts FROM taskstats_view", "2026-11-30 11:02:10.123456");
        assert_text(s,
                        "SELECT pid || ' ' || tid || ' ' || comm || ' ' || run_share || ' ' || interruptible_share || "
                        "' ' || machine_id "
                        "FROM taskstats_view",
                        "5 5 t 0.25 0.75 4000000000");
}
END_TEST

START_TEST(test_new_file) {
        _cleanup_(store_closep) Store *s = NULL;
        struct stat st;
        mode_t mask = umask(077);

        s = open_store(database_path());
        umask(mask);
        ck_assert_int_eq(stat(database_path(), &st), 0);
        ck_assert_uint_eq(st.st_mode & 07777, 0640);
        ck_assert_int_eq(number(s, "PRAGMA application_id"), STORE_APPLICATION_ID);
        ck_assert_int_eq(number(s, "PRAGMA user_version"), STORE_VERSION);
        ck_assert_int_eq(number(s, "PRAGMA auto_vacuum"), 2);
        ck_assert_int_eq(number(s, "PRAGMA synchronous"), 1);
        ck_assert_int_eq(number(s, "PRAGMA busy_timeout"), 5000);
        assert_text(s, "PRAGMA journal_mode", "wal");
        assert_text(s, "PRAGMA integrity_check", "ok");
        assert_text(s, "SELECT hostname || ' ' || kernel || ' ' || architecture || ' ' || cpus FROM machine",
                        "host 6.1 x86_64 2");
        ck_assert_int_eq(number(s, "SELECT id FROM machine"), 4000000000);
        assert_text(s, "SELECT boot_id FROM boot", "0123456789abcdef0123456789abcdef");

        /* Nothing of its making is left beside it. */
        s = store_close(s);
        ck_assert_int_eq(stat(in_directory("prism.db-wal"), &st), 0);
        ck_assert_int_eq(st.st_size, 0);
        ck_assert_int_eq(stat(in_directory("prism.db-shm"), &st), 0);
        ck_assert_int_eq(unlink(in_directory("prism.db-wal")), 0);
        ck_assert_int_eq(unlink(in_directory("prism.db-shm")), 0);
        ck_assert_int_eq(unlink(database_path()), 0);
        ck_assert_int_eq(rmdir(directory), 0);
        ck_assert_int_eq(mkdir(directory, 0755), 0);
}
END_TEST

START_TEST(test_zero_bytes_are_new) {
        _cleanup_(store_closep) Store *s = NULL;

        write_file(database_path(), "", 0);
        assert_fails(store_open_readonly(database_path(), &s, &error), -ENOENT, database_path());
        s = open_store(database_path());
        ck_assert_int_eq(number(s, "PRAGMA user_version"), STORE_VERSION);
}
END_TEST

START_TEST(test_machine_and_boot) {
        StoreMachine other = test_machine, update = test_machine;
        Store *s = open_store(database_path());

        s = store_close(s);
        update.hostname = "renamed";
        update.boot_id = "ffffffffffffffffffffffffffffffff";
        assert_done(store_open(database_path(), &update, &s, &error));
        ck_assert_int_eq(number(s, "SELECT count(*) FROM machine"), 1);
        ck_assert_int_eq(number(s, "SELECT count(*) FROM boot"), 2);
        assert_text(s, "SELECT hostname FROM machine", "renamed");
        s = store_close(s);

        /* The same boot of another machine (a guest's copy, say) is not this one's. */
        other.id = 1;
        assert_done(store_open(database_path(), &other, &s, &error));
        ck_assert_int_eq(number(s, "SELECT count(*) FROM machine"), 2);
        ck_assert_int_eq(number(s, "SELECT count(*) FROM boot"), 3);
        s = store_close(s);

        s = open_store(database_path());
        ck_assert_int_eq(number(s, "SELECT count(*) FROM boot"), 3);
        s = store_close(s);
}
END_TEST

/* One whose making stopped before its first table: migrated as any older version is. */
START_TEST(test_older_is_migrated) {
        _cleanup_(store_closep) Store *s = NULL;
        sqlite3 *db = NULL;

        ck_assert_int_eq(sqlite3_open(database_path(), &db), SQLITE_OK);
        ck_assert_int_eq(
                        sqlite3_exec(db, "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA application_id = 0x5052534d; VACUUM",
                                        NULL, NULL, NULL),
                        SQLITE_OK);
        sqlite3_close(db);

        assert_fails(store_open_readonly(database_path(), &s, &error), -EPROTO, "older");
        s = open_store(database_path());
        ck_assert_int_eq(number(s, "PRAGMA user_version"), STORE_VERSION);
        ck_assert_int_eq(number(s, "SELECT count(*) FROM wait"), 0);
        assert_text(s, "PRAGMA integrity_check", "ok");
}
END_TEST

/* A migration that fails in its middle leaves the database as it was. */
START_TEST(test_failed_migration) {
        Store *s = NULL;
        sqlite3 *db = NULL;

        ck_assert_int_eq(sqlite3_open(database_path(), &db), SQLITE_OK);
        ck_assert_int_eq(sqlite3_exec(db,
                                         "PRAGMA application_id = 0x5052534d; CREATE TABLE loss (a); INSERT INTO loss "
                                         "VALUES (7)",
                                         NULL, NULL, NULL),
                        SQLITE_OK);
        sqlite3_close(db);

        assert_fails(store_open(database_path(), &test_machine, &s, &error), -EUCLEAN, "loss");
        ck_assert_ptr_null(s);

        ck_assert_int_eq(sqlite3_open(database_path(), &db), SQLITE_OK);
        ck_assert_int_eq(sqlite3_exec(db, "SELECT a FROM loss", NULL, NULL, NULL), SQLITE_OK);
        ck_assert_int_eq(sqlite3_exec(db, "SELECT * FROM machine", NULL, NULL, NULL), SQLITE_ERROR);
        sqlite3_close(db);
}
END_TEST

/* A version 1 database with rows in all tables that the migration makes anew, and a view that it has not. */
static void make_version_1(void) {
        sqlite3 *db = NULL;

        ck_assert_int_eq(sqlite3_open(database_path(), &db), SQLITE_OK);
        ck_assert_int_eq(sqlite3_exec(db, "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA application_id = 0x5052534d", NULL,
                                         NULL, NULL),
                        SQLITE_OK);
        ck_assert_int_eq(sqlite3_exec(db, schema_of_version_1, NULL, NULL, NULL), SQLITE_OK);
        ck_assert_int_eq(
                        sqlite3_exec(db,
                                        "INSERT INTO machine VALUES (7, 'old', '6.1', 'x86_64', 1);"
                                        "INSERT INTO boot VALUES (1, 7, 'b');"
                                        "INSERT INTO process (id, machine_id, boot, pid, host_pid, start_boot_ns, "
                                        "start_ns, comm, found_by) VALUES (3, 7, 1, 5, 5, 1, 1, 'p', 'target');"
                                        "INSERT INTO thread VALUES (4, 3, 5, 5, 1, 1, NULL, 't');"
                                        "INSERT INTO resource VALUES (5, 7, 1, 'epoll', 'a', NULL), "
                                        "(6, 7, 1, 'inet', 'b', NULL), (7, 7, 1, 'inet', 'c', NULL);"
                                        "INSERT INTO thread_time VALUES (100, 10, 4, 1, 2, 3, 4, 0, 0, 0, 0, 0);"
                                        "INSERT INTO call VALUES (100, 10, 4, 6, 'send', 11, 12, 13, 14, 1, 2, 3, 4, "
                                        "5, "
                                        "6, 7, 8);"
                                        "INSERT INTO disk VALUES (100, 10, 8, 1, 3, 4, '/a', 'read', 2, 21, 44, 1, 2, "
                                        "3, 4, 5, 6, 7, 8), (100, 10, 8, 0, 3, 0, '', 'flush', 0, 0, 9, 0, 0, 0, 0, 0, "
                                        "0, 0, 0);"
                                        "INSERT INTO epoll_watch VALUES (5, 6, 10, 20), (5, 6, 30, 40), (5, 7, 1, 2);"
                                        "CREATE VIEW \"of old \"\"times\"\"\" AS SELECT gone FROM call;"
                                        "PRAGMA user_version = 1",
                                        NULL, NULL, NULL),
                        SQLITE_OK);
        sqlite3_close(db);
}

/* The schema as SQLite keeps it, without comments and needless space, in one text. The caller frees. */
static char *schema_text(Store *s) {
        char *text = NULL, *to;
        sqlite3_stmt *st = NULL;

        ck_assert_int_eq(sqlite3_prepare_v2(store_database(s),
                                         "SELECT group_concat(type || ' ' || name || ': ' || coalesce(sql, ''), "
                                         "char(10)) "
                                         "FROM (SELECT * FROM sqlite_schema ORDER BY type, name)",
                                         -1, &st, NULL),
                        SQLITE_OK);
        ck_assert_int_eq(sqlite3_step(st), SQLITE_ROW);
        text = to = strdup((const char *) sqlite3_column_text(st, 0));
        sqlite3_finalize(st);

        for (const char *c = text; *c; c++)
                if (c[0] == '-' && c[1] == '-')
                        c += strcspn(c, "\n") - 1;
                else if (*c != ' ' && *c != '\n')
                        *to++ = *c;
        *to = '\0';
        return text;
}

START_TEST(test_version_1_is_migrated) {
        _cleanup_free_ char *migrated = NULL, *made = NULL;
        _cleanup_(store_closep) Store *s = NULL, *new = open_store(NULL);

        make_version_1();
        assert_fails(store_open_readonly(database_path(), &s, &error), -EPROTO, "older");
        s = open_store(database_path());
        ck_assert_int_eq(number(s, "PRAGMA user_version"), STORE_VERSION);

        assert_text(s,
                        "SELECT ts_ns || ' ' || dt_ns || ' ' || thread_id || ' ' || run_ns || ' ' || block_ns FROM "
                        "thread_time",
                        "100 10 4 1 4");
        assert_text(s,
                        "SELECT ts_ns || ' ' || dt_ns || ' ' || thread_id || ' ' || resource_id || ' ' || op || ' ' || "
                        "count "
                        "|| ' ' || errors || ' ' || bytes || ' ' || total_ns || ' ' || max_ns || ' ' || hist0 || hist1 "
                        "|| "
                        "hist2 || hist3 || hist4 || hist5 || hist6 || hist7 FROM call",
                        "100 10 4 6 send 11 0 12 13 14 12345678");
        assert_text(s,
                        "SELECT group_concat(ts_ns || ' ' || dt_ns || ' ' || device || ' ' || partition || ' ' || "
                        "process_id "
                        "|| ' ' || thread_id || ' ' || cgroup || ' ' || op || ' ' || requests || ' ' || sectors || ' ' "
                        "|| "
                        "total_ns || ' ' || max_ns || ' ' || hist0 || hist1 || hist2 || hist3 || hist4 || hist5 || "
                        "hist6 || "
                        "hist7, '; ') FROM (SELECT * FROM disk ORDER BY partition DESC)",
                        "100 10 8 1 3 4 /a read 2 21 44 22 12345678; 100 10 8 0 3 0  flush 0 0 9 9 00000000");
        assert_text(s,
                        "SELECT group_concat(resource_id || ' ' || watched_id || ' ' || first_ns || ' ' || last_ns, '; "
                        "') "
                        "FROM epoll_watch",
                        "5 6 10 40; 5 7 1 2");
        ck_assert_int_eq(number(s, "SELECT count(*) FROM mux_wait"), 0);
        ck_assert_int_eq(number(s, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
        assert_text(s, "PRAGMA integrity_check", "ok");

        /* It is what a new one is. */
        migrated = schema_text(s);
        made = schema_text(new);
        for (size_t i = 0; migrated[i] || made[i]; i++)
                ck_assert_msg(migrated[i] == made[i], "...%.60s is %.60s in a new one", migrated + MAX(i, 30U) - 30,
                                made + MAX(i, 30U) - 30);

        write_some(s, 5 * SECOND);
        s = store_close(s);
        s = open_store(database_path());
        ck_assert_int_eq(number(s, "SELECT count(*) FROM thread_time"), 2);
        ck_assert_int_eq(number(s, "SELECT count(*) FROM call"), 1);
}
END_TEST

/* One of the tables that are to be made anew is not there. */
START_TEST(test_failed_migration_of_version_1) {
        Store *s = NULL;
        sqlite3 *db = NULL;
        sqlite3_stmt *st = NULL;

        make_version_1();
        ck_assert_int_eq(sqlite3_open(database_path(), &db), SQLITE_OK);
        ck_assert_int_eq(sqlite3_exec(db, "DROP TABLE epoll_watch", NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(db);

        assert_fails(store_open(database_path(), &test_machine, &s, &error), -EUCLEAN, "epoll_watch");
        ck_assert_ptr_null(s);

        ck_assert_int_eq(sqlite3_open(database_path(), &db), SQLITE_OK);
        ck_assert_int_eq(sqlite3_prepare_v2(db,
                                         "SELECT (SELECT user_version FROM pragma_user_version) || ' ' || "
                                         "(SELECT count(*) FROM sqlite_schema WHERE type = 'view') || ' ' || "
                                         "(SELECT count(*) FROM sqlite_schema WHERE name IN ('mux_wait', 'call_1', "
                                         "'disk_1')) "
                                         "|| ' ' || (SELECT count(*) FROM pragma_table_info('call'))",
                                         -1, &st, NULL),
                        SQLITE_OK);
        ck_assert_int_eq(sqlite3_step(st), SQLITE_ROW);
        ck_assert_str_eq((const char *) sqlite3_column_text(st, 0), "1 2 0 17");
        sqlite3_finalize(st);
        sqlite3_close(db);
}
END_TEST

/* Both ways of opening refuse the file, and neither it nor anything beside it changes. */
static void assert_refused(int code, const char *part) {
        _cleanup_free_ char *before = NULL, *after = NULL;
        size_t size_before, size_after;
        struct stat st;
        Store *s = NULL;

        before = read_file(database_path(), &size_before);
        assert_fails(store_open(database_path(), &test_machine, &s, &error), code, part);
        assert_fails(store_open_readonly(database_path(), &s, &error), code, part);
        assert_fails(store_open_readonly(database_path(), &s, &error), code, database_path());
        ck_assert_ptr_null(s);
        after = read_file(database_path(), &size_after);
        ck_assert_uint_eq(size_before, size_after);
        ck_assert_mem_eq(before, after, size_before);

        ck_assert_int_lt(stat(in_directory("prism.db-wal"), &st), 0);
        ck_assert_int_lt(stat(in_directory("prism.db-shm"), &st), 0);
        ck_assert_int_lt(stat(in_directory("prism.db-journal"), &st), 0);
}

static void make_database(const char *sql) {
        sqlite3 *db = NULL;

        ck_assert_int_eq(sqlite3_open(database_path(), &db), SQLITE_OK);
        ck_assert_int_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(db);
}

START_TEST(test_newer_is_refused) {
        make_database("CREATE TABLE t (a); PRAGMA application_id = 0x5052534d; PRAGMA user_version = 3");
        assert_refused(-EPROTO, "newer");
}
END_TEST

/* The newer version stands in the WAL only: it is refused all the same, and the WAL stays. */
START_TEST(test_newer_in_wal_is_refused) {
        _cleanup_free_ char *before = NULL, *after = NULL, *wal_before = NULL, *wal_after = NULL;
        size_t size_before, size_after, wal_size_before, wal_size_after;
        Store *s = NULL;
        int status;
        pid_t pid;

        pid = fork();
        ck_assert_int_ge(pid, 0);
        if (pid == 0) {
                s = open_store(database_path());
                execute(s, "PRAGMA user_version = 3");
                _exit(0);
        }
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_int_eq(status, 0);

        before = read_file(database_path(), &size_before);
        wal_before = read_file(in_directory("prism.db-wal"), &wal_size_before);
        ck_assert_uint_gt(wal_size_before, 0);
        assert_fails(store_open(database_path(), &test_machine, &s, &error), -EPROTO, "newer");
        assert_fails(store_open_readonly(database_path(), &s, &error), -EPROTO, "newer");
        after = read_file(database_path(), &size_after);
        wal_after = read_file(in_directory("prism.db-wal"), &wal_size_after);
        ck_assert_uint_eq(size_before, size_after);
        ck_assert_mem_eq(before, after, size_before);
        ck_assert_uint_eq(wal_size_before, wal_size_after);
        ck_assert_mem_eq(wal_before, wal_after, wal_size_before);
}
END_TEST

START_TEST(test_foreign_is_refused) {
        make_database("CREATE TABLE t (a); INSERT INTO t VALUES (1)");
        assert_refused(-EMEDIUMTYPE, "another program");
        make_database("PRAGMA application_id = 1");
        assert_refused(-EMEDIUMTYPE, "another program");
        make_database("PRAGMA journal_mode = WAL");
        assert_refused(-EMEDIUMTYPE, "another program");
}
END_TEST

START_TEST(test_garbage_is_refused) {
        char garbage[9000];

        for (size_t i = 0; i < sizeof(garbage); i++)
                garbage[i] = (char) (i * 7 + i / 13);
        write_file(database_path(), garbage, sizeof(garbage));
        assert_refused(-EMEDIUMTYPE, "not a database");
        write_file(database_path(), "SQLite format 3", 16);
        assert_refused(-EMEDIUMTYPE, "not a database");
        write_file(database_path(), "x", 1);
        assert_refused(-EMEDIUMTYPE, "not a database");
}
END_TEST

START_TEST(test_truncated_is_refused) {
        Store *s = open_store(database_path());

        s = store_close(s);
        ck_assert_int_eq(unlink(in_directory("prism.db-wal")), 0);
        ck_assert_int_eq(unlink(in_directory("prism.db-shm")), 0);
        ck_assert_int_eq(truncate(database_path(), 3 * 4096 + 100), 0);
        assert_fails(store_open(database_path(), &test_machine, &s, &error), -EUCLEAN, "damaged");
        assert_fails(store_open_readonly(database_path(), &s, &error), -EUCLEAN, "damaged");
        ck_assert_ptr_null(s);
}
END_TEST

START_TEST(test_other_kinds_of_files) {
        Store *s = NULL;

        assert_fails(store_open(directory, &test_machine, &s, &error), -EISDIR, directory);
        assert_fails(store_open(in_directory("no/prism.db"), &test_machine, &s, &error), -ENOENT, "no/prism.db");
        write_file(in_directory("file"), "x", 1);
        assert_fails(store_open(in_directory("file/prism.db"), &test_machine, &s, &error), -ENOTDIR, "file/prism.db");
        ck_assert_int_eq(mkfifo(in_directory("fifo"), 0600), 0);
        assert_fails(store_open(in_directory("fifo"), &test_machine, &s, &error), -EMEDIUMTYPE, "fifo");
        assert_fails(store_open_readonly(in_directory("none"), &s, &error), -ENOENT, "none");
        ck_assert_int_eq(store_open_readonly(in_directory("none"), &s, NULL), -ENOENT);
}
END_TEST

/* Names that mean something to SQLite's URIs are only names. */
START_TEST(test_names) {
        static const char *const names[] = { "a?mode=memory", "100%41.db", "x#y", "'; DROP TABLE wait; --", "\xff" };

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                Store *s = open_store(in_directory(names[i]));
                struct stat st;

                s = store_close(s);
                ck_assert_int_eq(stat(in_directory(names[i]), &st), 0);
                ck_assert_int_gt(st.st_size, 4096);
                assert_done(store_open_readonly(in_directory(names[i]), &s, &error));
                s = store_close(s);
        }
}
END_TEST

START_TEST(test_readonly) {
        _cleanup_(store_closep) Store *writer = open_store(database_path()), *reader = NULL;

        write_some(writer, SECOND);
        assert_done(store_open_readonly(database_path(), &reader, &error));
        ck_assert_int_eq(number(reader, "SELECT count(*) FROM thread_time"), 1);
        ck_assert_int_eq(sqlite3_exec(store_database(reader), "DELETE FROM thread_time", NULL, NULL, NULL) & 0xff,
                        SQLITE_READONLY);
        write_some(writer, 2 * SECOND);
        ck_assert_int_eq(number(reader, "SELECT count(*) FROM thread_time"), 2);
}
END_TEST

/* Runs `function` as a user without rights to the directory; its result is the number of rows it saw, or an errno above 100. */
static int as_nobody(int (*function)(void)) {
        int status;
        pid_t pid = fork();

        ck_assert_int_ge(pid, 0);
        if (pid == 0) {
                if (setgroups(0, NULL) < 0 || setgid(NOBODY) < 0 || setuid(NOBODY) < 0)
                        _exit(99);
                _exit(function());
        }
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert(WIFEXITED(status));
        return WEXITSTATUS(status);
}

static int count_thread_times(void) {
        Store *s = NULL;
        int n, r;

        r = store_open_readonly(database_path(), &s, NULL);
        if (r < 0)
                return 100 - r;
        n = (int) number(s, "SELECT count(*) FROM thread_time");
        (void) store_close(s);
        return n;
}

static int open_for_writing(void) {
        Store *s = NULL;
        int r = store_open(database_path(), &test_machine, &s, NULL);

        (void) store_close(s);
        return r < 0 ? 100 - r : 0;
}

static int open_elsewhere(void) {
        Store *s = NULL;
        int r = store_open(in_directory("other.db"), &test_machine, &s, NULL);

        (void) store_close(s);
        return r < 0 ? 100 - r : 0;
}

/* A member of the group may read the files but not write in their directory. */
START_TEST(test_reader_without_rights) {
        Store *s;

        if (geteuid() != 0)
                return;

        s = open_store(database_path());
        write_some(s, SECOND);
        ck_assert_int_eq(as_nobody(count_thread_times), 100 + EACCES);
        ck_assert_int_eq(chown(database_path(), 0, NOBODY), 0);
        ck_assert_int_eq(chown(in_directory("prism.db-wal"), 0, NOBODY), 0);
        ck_assert_int_eq(chown(in_directory("prism.db-shm"), 0, NOBODY), 0);

        /* While it runs, with rows that are only in the WAL. */
        ck_assert_int_eq(as_nobody(count_thread_times), 1);
        write_some(s, 2 * SECOND);
        ck_assert_int_eq(as_nobody(count_thread_times), 2);
        ck_assert_int_eq(as_nobody(open_for_writing), 100 + EROFS);
        ck_assert_int_eq(as_nobody(open_elsewhere), 100 + EACCES);

        /* After it stopped. */
        s = store_close(s);
        ck_assert_int_eq(as_nobody(count_thread_times), 2);

        /* And when somebody tidied up, unless a writer goes on: what it has written would not be seen. */
        ck_assert_int_eq(unlink(in_directory("prism.db-shm")), 0);
        ck_assert_int_eq(as_nobody(count_thread_times), 2);
        ck_assert_int_eq(unlink(in_directory("prism.db-wal")), 0);
        ck_assert_int_eq(as_nobody(count_thread_times), 2);
        s = open_store(database_path());
        ck_assert_int_eq(unlink(in_directory("prism.db-shm")), 0);
        ck_assert_int_eq(unlink(in_directory("prism.db-wal")), 0);
        ck_assert_int_eq(as_nobody(count_thread_times), 100 + EACCES);
        s = store_close(s);
}
END_TEST

/* A writer that is killed leaves what it committed, for those who only may read and for the next writer. */
START_TEST(test_killed_writer) {
        int pipes[2], status;
        char ready;
        Store *s;
        pid_t pid;

        ck_assert_int_eq(pipe(pipes), 0);
        pid = fork();
        ck_assert_int_ge(pid, 0);
        if (pid == 0) {
                s = open_store(database_path());
                write_some(s, SECOND);
                execute(s, "BEGIN; DELETE FROM thread_time");
                if (write(pipes[1], "x", 1) == 1)
                        (void) pause();
                _exit(1);
        }
        ck_assert_int_eq(read(pipes[0], &ready, 1), 1);
        ck_assert_int_eq(kill(pid, SIGKILL), 0);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        close(pipes[0]);
        close(pipes[1]);

        if (geteuid() == 0) {
                ck_assert_int_eq(chown(database_path(), 0, NOBODY), 0);
                ck_assert_int_eq(chown(in_directory("prism.db-wal"), 0, NOBODY), 0);
                ck_assert_int_eq(chown(in_directory("prism.db-shm"), 0, NOBODY), 0);
                ck_assert_int_eq(as_nobody(count_thread_times), 1);
                ck_assert_int_eq(unlink(in_directory("prism.db-shm")), 0);
                ck_assert_int_eq(as_nobody(count_thread_times), 100 + EACCES);
        }
        s = open_store(database_path());
        ck_assert_int_eq(number(s, "SELECT count(*) FROM thread_time"), 1);
        assert_text(s, "PRAGMA integrity_check", "ok");
        s = store_close(s);
}
END_TEST

START_TEST(test_checkpoint) {
        _cleanup_(store_closep) Store *s = open_store(database_path()), *reader = NULL, *memory = open_store(NULL);
        struct stat st;

        write_some(s, SECOND);
        ck_assert_int_eq(stat(in_directory("prism.db-wal"), &st), 0);
        ck_assert_int_gt(st.st_size, 0);
        ck_assert_int_eq(store_checkpoint(s), 0);
        ck_assert_int_eq(stat(in_directory("prism.db-wal"), &st), 0);
        ck_assert_int_eq(st.st_size, 0);

        /* A reader in the middle of a transaction neither makes it wait nor fail. */
        write_some(s, 2 * SECOND);
        assert_done(store_open_readonly(database_path(), &reader, &error));
        execute(reader, "BEGIN; SELECT count(*) FROM thread_time");
        write_some(s, 3 * SECOND);
        ck_assert_int_eq(store_checkpoint(s), 0);
        ck_assert_int_eq(number(reader, "SELECT count(*) FROM thread_time"), 2);
        execute(reader, "COMMIT; BEGIN; SELECT count(*) FROM thread_time");
        ck_assert_int_eq(store_checkpoint(s), 0);
        ck_assert_int_eq(number(s, "PRAGMA busy_timeout"), 5000);

        ck_assert_int_eq(store_checkpoint(memory), 0);
}
END_TEST

START_TEST(test_memory) {
        _cleanup_(store_closep) Store *first = open_store(NULL), *second = open_store(NULL);

        write_some(first, SECOND);
        ck_assert_int_eq(number(first, "SELECT count(*) FROM thread_time"), 1);
        ck_assert_int_eq(number(second, "SELECT count(*) FROM thread_time"), 0);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("open");
        TCase *tests = tcase_create("open");

        tcase_add_checked_fixture(tests, directory_make, directory_remove);
        tcase_add_test(tests, test_schema);
        tcase_add_test(tests, test_views);
        tcase_add_test(tests, test_new_file);
        tcase_add_test(tests, test_zero_bytes_are_new);
        tcase_add_test(tests, test_machine_and_boot);
        tcase_add_test(tests, test_older_is_migrated);
        tcase_add_test(tests, test_failed_migration);
        tcase_add_test(tests, test_version_1_is_migrated);
        tcase_add_test(tests, test_failed_migration_of_version_1);
        tcase_add_test(tests, test_newer_is_refused);
        tcase_add_test(tests, test_newer_in_wal_is_refused);
        tcase_add_test(tests, test_foreign_is_refused);
        tcase_add_test(tests, test_garbage_is_refused);
        tcase_add_test(tests, test_truncated_is_refused);
        tcase_add_test(tests, test_other_kinds_of_files);
        tcase_add_test(tests, test_names);
        tcase_add_test(tests, test_readonly);
        tcase_add_test(tests, test_reader_without_rights);
        tcase_add_test(tests, test_killed_writer);
        tcase_add_test(tests, test_checkpoint);
        tcase_add_test(tests, test_memory);
        suite_add_tcase(suite, tests);
        return run_suite(suite);
}
