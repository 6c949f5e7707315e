/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the unit tests of the store share: a machine, a directory, and short questions to a database. */
#pragma once

#include <check.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "store.h"

static const StoreMachine test_machine = {
        .id = 4000000000,
        .hostname = "host",
        .kernel = "6.1",
        .architecture = "x86_64",
        .cpus = 2,
        .boot_id = "0123456789abcdef0123456789abcdef",
};

#define SECOND ((int64_t) NSEC_PER_SEC)

/* For results that must be 0 or more; shows the sentence if not. */
#define assert_done(expression)                                                                               \
        do {                                                                                                  \
                char *error = NULL;                                                                           \
                int _done_ = (expression);                                                                    \
                ck_assert_msg(_done_ >= 0, "%s: %d, %s", #expression, _done_, error ? error : "no sentence"); \
                free(error);                                                                                  \
        } while (0)

/* For results that must be this error, with a sentence in it. `error` is the name to pass to the call. */
#define assert_fails(expression, code, part)                                                                \
        do {                                                                                                \
                char *error = NULL;                                                                         \
                int _code_ = (expression);                                                                  \
                ck_assert_msg(_code_ == (code), "%s: %d (%s), not %d", #expression, _code_,                 \
                                error ? error : "no sentence", (code));                                     \
                ck_assert_msg(error &&strstr(error, (part)), "%s: \"%s\" does not say \"%s\"", #expression, \
                                error ? error : "", (part));                                                \
                free(error);                                                                                \
        } while (0)

static inline Store *_unused_ open_store(const char *path) {
        Store *s = NULL;

        assert_done(store_open(path, &test_machine, &s, &error));
        return s;
}

static inline void _unused_ execute(Store *s, const char *sql) {
        char *message = NULL;

        ck_assert_msg(sqlite3_exec(store_database(s), sql, NULL, NULL, &message) == SQLITE_OK, "%s: %s", sql,
                        message ? message : "");
}

/* The first value of the only row; -1 when there is no row or it is NULL. */
static inline int64_t _unused_ number(Store *s, const char *sql) {
        sqlite3_stmt *st = NULL;
        int64_t n = -1;

        ck_assert_msg(sqlite3_prepare_v2(store_database(s), sql, -1, &st, NULL) == SQLITE_OK, "%s: %s", sql,
                        sqlite3_errmsg(store_database(s)));
        if (sqlite3_step(st) == SQLITE_ROW && sqlite3_column_type(st, 0) != SQLITE_NULL)
                n = sqlite3_column_int64(st, 0);
        sqlite3_finalize(st);
        return n;
}

/* The first value of the only row as text, "NULL" for NULL. The caller frees. */
static inline char *_unused_ text(Store *s, const char *sql) {
        sqlite3_stmt *st = NULL;
        const char *value;
        char *copy;

        ck_assert_msg(sqlite3_prepare_v2(store_database(s), sql, -1, &st, NULL) == SQLITE_OK, "%s: %s", sql,
                        sqlite3_errmsg(store_database(s)));
        ck_assert_msg(sqlite3_step(st) == SQLITE_ROW, "%s: no row", sql);
        value = (const char *) sqlite3_column_text(st, 0);
        copy = strdup(value ? value : "NULL");
        sqlite3_finalize(st);
        return copy;
}

#define assert_text(s, sql, expected)                 \
        do {                                          \
                char *_text_ = text((s), (sql));      \
                ck_assert_str_eq(_text_, (expected)); \
                free(_text_);                         \
        } while (0)

/* A whole file, so that it can be compared later. The caller frees. */
static inline char *_unused_ read_file(const char *path, size_t *ret_size) {
        struct stat st;
        char *data;
        int fd = open(path, O_RDONLY | O_CLOEXEC);

        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(fstat(fd, &st), 0);
        data = malloc((size_t) st.st_size + 1);
        ck_assert_int_eq(read(fd, data, (size_t) st.st_size), st.st_size);
        close(fd);
        *ret_size = (size_t) st.st_size;
        return data;
}

static inline void _unused_ write_file(const char *path, const void *data, size_t size) {
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(write(fd, data, size), (ssize_t) size);
        close(fd);
}

/* A directory of the test's own, and names in it. */
static char directory[64];

static inline void _unused_ directory_make(void) {
        strcpy(directory, "/tmp/prism-unit-XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(directory));
        ck_assert_int_eq(chmod(directory, 0755), 0);
}

static inline void _unused_ directory_remove(void) {
        char command[96];

        (void) snprintf(command, sizeof(command), "rm -rf '%s'", directory);
        ck_assert_int_eq(system(command), 0);
}

/* Valid until the next four calls. */
static inline const char *_unused_ in_directory(const char *name) {
        static char paths[4][128];
        static unsigned n;
        char *path = paths[n++ % 4];

        (void) snprintf(path, sizeof(paths[0]), "%s/%s", directory, name);
        return path;
}

/* Runs a suite and returns what main() returns. */
static inline int run_suite(Suite *suite) {
        SRunner *runner = srunner_create(suite);
        int failed;

        srunner_run_all(runner, CK_ENV);
        failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
