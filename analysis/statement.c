/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Preparing and stepping, with SQLite's codes as errno. */
#include "statement.h"

int statement_error(Store *s, char **ret_error) {
        sqlite3 *db = store_database(s);
        const char *path = sqlite3_db_filename(db, "main");
        int code = sqlite3_errcode(db);

        if (code == SQLITE_NOMEM)
                return -ENOMEM;

        if (ret_error &&
                        asprintf(ret_error, "cannot read %s: %s", isempty(path) ? "the database" : path,
                                        sqlite3_errmsg(db)) < 0)
                return -ENOMEM;

        switch (code) {
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
                return -EBUSY;
        case SQLITE_CORRUPT:
        case SQLITE_NOTADB:
                return -EUCLEAN;
        case SQLITE_INTERRUPT:
                return -EINTR;
        case SQLITE_ERROR:
                return -EINVAL;
        default:
                return -EIO;
        }
}

int statement_prepare(Store *s, const char *sql, sqlite3_stmt **ret, char **ret_error) {
        if (sqlite3_prepare_v2(store_database(s), sql, -1, ret, NULL) != SQLITE_OK)
                return statement_error(s, ret_error);
        return 0;
}

int statement_step(Store *s, sqlite3_stmt *q, char **ret_error) {
        switch (sqlite3_step(q)) {
        case SQLITE_ROW:
                return 1;
        case SQLITE_DONE:
                return 0;
        default:
                return statement_error(s, ret_error);
        }
}
