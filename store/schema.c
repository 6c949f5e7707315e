/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The tables and views of a database: made when it is new, brought forward when it is older. */
#include "internal.h"
#include "linux-consts-sql.h"
#include "migration-1-sql.h"
#include "schema-sql.h"
#include "views-sql.h"

/* What brings version N to version N + 1; a database without tables gets those of STORE_VERSION at once. A text here is
 * never changed again: schema.sql says what the newest version is, and a test holds that both roads end there. */
static const char *const migrations[STORE_VERSION] = {
        [1] = migration_1_sql,
};

/* Views hold nothing, so they are not migrated but made anew. They go first, because SQLite refuses to rename a table that a
 * view with a missing column uses. */
static int drop_views(Store *s, char **ret_error) {
        _cleanup_statement_ sqlite3_stmt *st = NULL;
        _cleanup_free_ char *drops = NULL;
        int r;

        r = store_prepare(s,
                        "SELECT group_concat(printf('DROP VIEW \"%w\";', name), ' ') FROM sqlite_schema "
                        "WHERE type = 'view'",
                        &st, ret_error);
        if (r < 0)
                return r;
        if (sqlite3_step(st) != SQLITE_ROW)
                return store_failed(s, ret_error);
        if (sqlite3_column_type(st, 0) == SQLITE_NULL)
                return 0;
        drops = strdup((const char *) sqlite3_column_text(st, 0));
        if (!drops)
                return store_say(ret_error, -ENOMEM, "There is not enough memory to work on %s.", store_name(s));

        /* A statement that still reads the schema would lock it. */
        (void) sqlite3_reset(st);
        return store_execute(s, drops, ret_error);
}

static int migrate_inside(Store *s, int64_t version, char **ret_error) {
        char sql[64];
        int r;

        r = drop_views(s, ret_error);
        if (r >= 0 && version == 0) {
                r = store_execute(s, schema_sql, ret_error);
                version = STORE_VERSION;
        }
        for (; r >= 0 && version < STORE_VERSION; version++)
                r = store_execute(s, migrations[version], ret_error);
        if (r >= 0)
                r = store_execute(s, views_sql, ret_error);
        if (r >= 0)
                r = store_execute(s, linux_consts_sql, ret_error);
        if (r < 0)
                return r;

        (void) snprintf(sql, sizeof(sql), "PRAGMA user_version = %d", STORE_VERSION);
        return store_execute(s, sql, ret_error);
}

int store_migrate(Store *s, int64_t version, char **ret_error) {
        int r;

        if (version == STORE_VERSION)
                return 0;

        r = store_execute(s, "BEGIN IMMEDIATE", ret_error);
        if (r < 0)
                return r;
        /* Another may have done it before this one got the lock. */
        r = store_number(s, "PRAGMA user_version", &version, ret_error);
        if (r >= 0 && version < STORE_VERSION)
                r = migrate_inside(s, version, ret_error);
        if (r >= 0)
                r = store_execute(s, "COMMIT", ret_error);
        if (r < 0 && !sqlite3_get_autocommit(s->database))
                (void) store_execute(s, "ROLLBACK", NULL);
        return r;
}
