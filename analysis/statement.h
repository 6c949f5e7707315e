/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Statements over a store, with errors as errno and a sentence. For the readers of this folder. */
#pragma once

#include "store/store.h"

DEFINE_CLEANUP(sqlite3_stmt *, sqlite3_finalize);

/* Sets *ret_error (may be NULL) to what SQLite says about its last failure, and yields the errno for it. */
int statement_error(Store *s, char **ret_error);

int statement_prepare(Store *s, const char *sql, sqlite3_stmt **ret, char **ret_error);

/* 1: there is a row; 0: no more. */
int statement_step(Store *s, sqlite3_stmt *q, char **ret_error);
