/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of store/ share about a Store. Private to store/. */
#pragma once

#include "keymap.h"
#include "rows.h"
#include "store.h"

/* The statements of write.c, prepared at their first use and kept. */
enum statement {
        STATEMENT_BEGIN,
        STATEMENT_COMMIT,
        STATEMENT_ROLLBACK,
        STATEMENT_PROCESS_PARENT,
        STATEMENT_RETILE_WAIT,
        STATEMENT_RETILE_MUX_WAIT,
        STATEMENT_RETILE_CALL,
        STATEMENT_RETILE_WAKE,
        STATEMENT_RETILE_RAN_INSTEAD,
        _STATEMENT_FIXED_MAX,
        STATEMENT_ROW = _STATEMENT_FIXED_MAX,           /* + enum row_kind: insert */
        STATEMENT_ROW_MERGE = STATEMENT_ROW + _ROW_MAX, /* + enum row_kind: insert, or add to what is there */
        _STATEMENT_MAX = STATEMENT_ROW_MERGE + _ROW_MAX,
};

struct Store {
        sqlite3 *database;
        char *path;       /* NULL: in memory */
        const char *noun; /* what sentences call it when it has no path */
        uint32_t machine_id;
        int64_t boot; /* boot.id, 0 when read only */
        sqlite3_stmt *statements[_STATEMENT_MAX];
        KeyMap keys[_OBJECT_MAX]; /* by enum object */
};

DEFINE_CLEANUP(sqlite3_stmt *, sqlite3_finalize);
DEFINE_CLEANUP(void *, sqlite3_free);
#define _cleanup_statement_ _cleanup_(sqlite3_finalizep)

/* How often a writer tries again before it gives up on another's lock. */
#define STORE_BUSY_TIMEOUT_MS 5000

/* What each of the batches says of processes, threads and resources, and not its rows, in one transaction: one may describe
 * what the rows of another use. */
int store_write_descriptions(Store *s, Batch *const *batches, size_t n, char **ret_error);

/* A connection to a file, or for path NULL to an empty database in memory. `parameters` are those of an SQLite URI. */
int store_new(const char *path, const char *parameters, int flags, Store **ret, char **ret_error);

/* Is the open database ours, and of a version that we know? -EMEDIUMTYPE, -EPROTO, or what reading it gave. */
int store_check(Store *s, int64_t *ret_version, char **ret_error);

/* Brings the database from `version` (0: it has no tables yet) to STORE_VERSION, whole or not at all. */
int store_migrate(Store *s, int64_t version, char **ret_error);

/* Sets *ret_error (may be NULL) to a formatted sentence and returns `error`. When there is no memory for the sentence,
 * it stays as it is. */
int store_say(char **ret_error, int error, const char *format, ...) _printf_(3, 4);

/* The name of the store in sentences. */
const char *store_name(const Store *s);

/* The negative errno of the database's last error, and a sentence about it. */
int store_failed(Store *s, char **ret_error);

/* Runs SQL without results; several statements are allowed. */
int store_execute(Store *s, const char *sql, char **ret_error);
int store_prepare(Store *s, const char *sql, sqlite3_stmt **ret, char **ret_error);
/* The first column of the first row as a number; `ret` is untouched when there is no row. */
int store_number(Store *s, const char *sql, int64_t *ret, char **ret_error);

/* Binding that stores text which is not UTF-8 with U+FFFD for its bad bytes; NULL stays NULL. The text must live until
 * the statement is reset. Numbers above what SQLite can hold become the largest that it can. */
int store_bind_text(sqlite3_stmt *statement, int index, const char *text);
int store_bind_u64(sqlite3_stmt *statement, int index, uint64_t number);
