/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* prismctl query: one SQL statement of the user's on the database, read only. */
#include "store/query.h"

#include <fcntl.h>
#include <poll.h>

#include "ctl.h"
#include "database.h"
#include "json.h"
#include "signals.h"
#include "store/basic/parse.h"
#include "store/basic/text.h"
#include "store/ranges.h"
#include "table.h"

DEFINE_CLEANUP(sqlite3_stmt *, sqlite3_finalize);

#define QUERY_FILE_BYTES_MAX (1024 * 1024)
/* How many steps of SQLite's machine lie between two looks for Ctrl-C: some tens of microseconds. */
#define QUERY_PROGRESS_STEPS 10000

typedef struct Query {
        const char *sql, *file;
        QueryVariable *variables;         /* name and value are malloc'd */
        const char **baseline, **compare; /* as typed; borrowed */
        size_t n_variables, n_baseline, n_compare;
        size_t c_variables, c_baseline, c_compare;
} Query;

static void query_done(Query *q) {
        for (size_t i = 0; i < q->n_variables; i++) {
                free((char *) q->variables[i].name);
                free((char *) q->variables[i].value);
        }
        free(q->variables);
        free(q->baseline);
        free(q->compare);
}

static int read_file(const char *path, char **ret, char **ret_error) {
        _cleanup_fclose_ FILE *opened = NULL;
        _cleanup_free_ char *text = NULL;
        FILE *f = stdin;
        size_t n;

        if (!streq(path, "-")) {
                f = opened = fopen(path, "re");
                if (!opened) {
                        int r = -errno;

                        return asprintf(ret_error, "cannot open %s: %s", path, strerror(-r)) < 0 ? -ENOMEM : r;
                }
        }

        text = malloc(QUERY_FILE_BYTES_MAX + 1);
        if (!text)
                return -ENOMEM;
        n = fread(text, 1, QUERY_FILE_BYTES_MAX + 1, f);
        if (ferror(f))
                return asprintf(ret_error, "cannot read %s", path) < 0 ? -ENOMEM : -EIO;
        if (n > QUERY_FILE_BYTES_MAX)
                return asprintf(ret_error, "%s is longer than a query can be (1 MiB)", path) < 0 ? -ENOMEM : -EFBIG;
        if (memchr(text, '\0', n))
                return asprintf(ret_error, "%s is not text", path) < 0 ? -ENOMEM : -EINVAL;

        text[n] = '\0';
        *ret = TAKE_PTR(text);
        return 0;
}

static int resolve(Store *s, const char *const *texts, size_t n, QueryRange **ret, char **ret_error) {
        _cleanup_free_ QueryRange *ranges = calloc(n + 1, sizeof(*ranges));
        int64_t now_ns = now_unix_ns();
        int r;

        if (!ranges)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                _cleanup_free_ char *name = NULL;

                r = store_resolve_range(s, texts[i], now_ns, &ranges[i].start_ns, &ranges[i].end_ns, &name, ret_error);
                if (r < 0)
                        return r;
        }
        *ret = TAKE_PTR(ranges);
        return 0;
}

/* SQLite asks whether to go on. */
static int is_interrupted(void *userdata) {
        struct pollfd p = { .fd = *(int *) userdata, .events = POLLIN };

        return poll(&p, 1, 0) > 0;
}

static int fail_with_sqlite(sqlite3 *db) {
        switch (sqlite3_errcode(db)) {
        case SQLITE_AUTH:
        case SQLITE_READONLY:
                return ctl_fail(CTL_FAILED, "a query can only read");
        case SQLITE_INTERRUPT:
                return ctl_fail(CTL_FAILED, "the query was interrupted");
        case SQLITE_NOMEM:
                return ctl_out_of_memory();
        default:
                return ctl_fail(CTL_FAILED, "SQL: %s", sqlite3_errmsg(db));
        }
}

/* One statement that reads, and nothing behind it. An exit code. */
static int prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret) {
        _cleanup_(sqlite3_finalizep) sqlite3_stmt *q = NULL;
        const char *tail = sql;

        while (!q) {
                if (sqlite3_prepare_v2(db, tail, -1, &q, &tail) != SQLITE_OK)
                        return fail_with_sqlite(db);
                if (!q && *tail == '\0')
                        return ctl_fail(CTL_USAGE, "there is no SQL in the query");
        }
        if (!sqlite3_stmt_readonly(q))
                return ctl_fail(CTL_FAILED, "a query can only read");
        if (sqlite3_column_count(q) == 0)
                return ctl_fail(CTL_FAILED, "this statement gives no rows: a query is a SELECT");

        /* Comments and semicolons may follow. */
        while (*tail != '\0') {
                _cleanup_(sqlite3_finalizep) sqlite3_stmt *second = NULL;

                if (sqlite3_prepare_v2(db, tail, -1, &second, &tail) != SQLITE_OK || second)
                        return ctl_fail(CTL_USAGE, "a query is one statement only");
        }

        *ret = TAKE_PTR(q);
        return CTL_DONE;
}

/* Names for the columns: a name that comes twice is given a number, as members of an object need. */
static char **name_columns(sqlite3_stmt *q, int n) {
        char **names = calloc((size_t) n + 1, sizeof(char *));

        for (int i = 0; names && i < n; i++) {
                const char *name = sqlite3_column_name(q, i);
                int same = 0;

                for (int j = 0; j < i; j++)
                        if (name && streq(name, sqlite3_column_name(q, j)))
                                same++;
                if (name && same == 0)
                        names[i] = text_to_utf8(name);
                else if (name && asprintf(&names[i], "%s:%d", name, same) < 0)
                        names[i] = NULL;
                if (!names[i]) {
                        for (int j = 0; j < i; j++)
                                free(names[j]);
                        free(names);
                        return NULL;
                }
        }
        return names;
}

static void free_names(char ***names) {
        if (!*names)
                return;
        for (char **name = *names; *name; name++)
                free(*name);
        free(*names);
}

static char *column_hex(sqlite3_stmt *q, int column) {
        const unsigned char *bytes = sqlite3_column_blob(q, column);
        size_t n = (size_t) sqlite3_column_bytes(q, column);
        char *hex = malloc(2 * n + 1);

        if (!hex)
                return NULL;
        for (size_t i = 0; i < n; i++)
                snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
        hex[2 * n] = '\0';
        return hex;
}

static int column_json(sqlite3_stmt *q, int column, json_object **ret) {
        _cleanup_free_ char *hex = NULL;
        json_object *o;

        switch (sqlite3_column_type(q, column)) {
        case SQLITE_NULL:
                *ret = NULL;
                return 0;
        case SQLITE_INTEGER:
                o = json_object_new_int64(sqlite3_column_int64(q, column));
                break;
        case SQLITE_FLOAT:
                o = json_real(sqlite3_column_double(q, column));
                break;
        case SQLITE_BLOB:
                hex = column_hex(q, column);
                o = hex ? json_object_new_string(hex) : NULL;
                break;
        default:
                o = json_text((const char *) sqlite3_column_text(q, column));
        }
        if (!o)
                return -ENOMEM;
        *ret = o;
        return 0;
}

/* Row by row, for results of any size. When it fails in the middle the array stays open, so that nobody takes it for
 * all. */
static int print_json(sqlite3 *db, sqlite3_stmt *q, char **names, int n, size_t *ret_rows) {
        size_t rows = 0;
        int step;

        putchar('[');
        while ((step = sqlite3_step(q)) == SQLITE_ROW) {
                _cleanup_json_ json_object *row = json_object_new_object();

                if (!row)
                        return ctl_out_of_memory();
                for (int i = 0; i < n; i++) {
                        json_object *value;

                        if (column_json(q, i, &value) < 0 || json_add(row, names[i], value) < 0)
                                return ctl_out_of_memory();
                }
                printf("%s\n  %s", rows > 0 ? "," : "",
                                json_object_to_json_string_ext(
                                                row, JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE));
                rows++;
        }
        if (step != SQLITE_DONE) {
                fflush(stdout);
                return fail_with_sqlite(db);
        }
        puts(rows > 0 ? "\n]" : "]");

        *ret_rows = rows;
        return CTL_DONE;
}

static int put_cell(Table *t, sqlite3_stmt *q, int column) {
        _cleanup_free_ char *hex = NULL;

        switch (sqlite3_column_type(q, column)) {
        case SQLITE_NULL:
                table_null(t);
                break;
        case SQLITE_INTEGER:
                table_number(t, sqlite3_column_int64(q, column));
                break;
        case SQLITE_FLOAT:
                table_real(t, sqlite3_column_double(q, column));
                break;
        case SQLITE_BLOB:
                hex = column_hex(q, column);
                if (!hex)
                        return -ENOMEM;
                table_text(t, hex);
                break;
        default:
                table_text(t, (const char *) sqlite3_column_text(q, column));
        }
        return 0;
}

static int print_table(const Ctl *ctl, sqlite3 *db, sqlite3_stmt *q, char **names, int n, size_t *ret_rows) {
        _cleanup_free_ TableColumn *columns = calloc((size_t) n, sizeof(*columns));
        _cleanup_(table_freep) Table *t = NULL;
        int step = sqlite3_step(q);

        if (!columns)
                return ctl_out_of_memory();
        for (int i = 0; i < n; i++) {
                int type = step == SQLITE_ROW ? sqlite3_column_type(q, i) : SQLITE_TEXT;

                columns[i] = (TableColumn){ .title = names[i],
                        .right = type == SQLITE_INTEGER || type == SQLITE_FLOAT };
        }
        if (table_new(columns, (size_t) n, false, &t) < 0)
                return ctl_out_of_memory();

        for (; step == SQLITE_ROW; step = sqlite3_step(q)) {
                table_row(t);
                for (int i = 0; i < n; i++)
                        if (put_cell(t, q, i) < 0)
                                return ctl_out_of_memory();
        }
        if (step != SQLITE_DONE)
                return fail_with_sqlite(db);

        *ret_rows = table_rows(t);
        return table_print(t, ctl->no_legend, stdout) < 0 ? ctl_out_of_memory() : CTL_DONE;
}

static int execute(const Ctl *ctl, Store *store, const char *sql) {
        static const int caught[] = { SIGINT, SIGTERM, 0 };
        _cleanup_(signals_release) Signals signals = SIGNALS_NONE;
        _cleanup_(sqlite3_finalizep) sqlite3_stmt *q = NULL;
        _cleanup_(free_names) char **names = NULL;
        sqlite3 *db = store_database(store);
        size_t rows = 0;
        int n, r;

        r = query_check_readonly(db);
        if (r >= 0)
                r = signals_catch(&signals, caught);
        if (r < 0)
                return ctl_fail_with(CTL_FAILED, r, NULL);
        sqlite3_progress_handler(db, QUERY_PROGRESS_STEPS, is_interrupted, &signals.fd);

        r = prepare(db, sql, &q);
        if (r != CTL_DONE)
                return r;

        n = sqlite3_column_count(q);
        names = name_columns(q, n);
        if (!names)
                return ctl_out_of_memory();

        r = ctl->json ? print_json(db, q, names, n, &rows) : print_table(ctl, db, q, names, n, &rows);
        sqlite3_progress_handler(db, 0, NULL, NULL);
        if (r != CTL_DONE)
                return r;
        return rows == 0 ? ctl_fail(CTL_NOTHING, "the query gives no rows") : CTL_DONE;
}

static int run(const Ctl *ctl, const Query *query) {
        _cleanup_(store_closep) Store *store = NULL;
        _cleanup_free_ QueryRange *baseline = NULL, *compare = NULL;
        _cleanup_free_ char *text = NULL, *sql = NULL, *error = NULL;
        int r;

        if (query->file) {
                r = read_file(query->file, &text, &error);
                if (r < 0)
                        return ctl_fail_with(CTL_FAILED, r, error);
        }

        r = database_open(ctl, &store, &error);
        if (r < 0)
                return ctl_fail_with(CTL_FAILED, r, error);

        r = resolve(store, query->baseline, query->n_baseline, &baseline, &error);
        if (r >= 0)
                r = resolve(store, query->compare, query->n_compare, &compare, &error);
        if (r < 0)
                return ctl_fail_with(r == -ENOENT                              ? CTL_NOTHING
                                                : r == -EINVAL || r == -ERANGE ? CTL_USAGE
                                                                               : CTL_FAILED,
                                r, error);

        r = query_expand(query->file ? text : query->sql, query->variables, query->n_variables, baseline,
                        query->n_baseline, compare, query->n_compare, &sql, &error);
        if (r < 0)
                return ctl_fail_with(r == -EINVAL ? CTL_USAGE : CTL_FAILED, r, error);

        return execute(ctl, store, sql);
}

static int take_variable(Query *q, const char *assignment) {
        char *name, *value;
        int r;

        r = parse_assignment(assignment, &name, &value);
        if (r == -EINVAL)
                return ctl_fail(CTL_USAGE, "--var takes NAME=VALUE, not \"%s\"", assignment);
        if (r < 0)
                return ctl_fail_with(CTL_FAILED, r, NULL);

        if (GROW(q->variables, q->n_variables, q->c_variables) < 0) {
                free(name);
                free(value);
                return ctl_out_of_memory();
        }
        q->variables[q->n_variables++] = (QueryVariable){ .name = name, .value = value };
        return CTL_DONE;
}

int verb_query(Ctl *ctl, int argc, char **argv) {
        enum {
                OPTION_FILE = 1,
                OPTION_BASELINE,
                OPTION_COMPARE,
                OPTION_VAR,
        };
        static const Option options[] = {
                { "file", OPTION_FILE, true },
                { "baseline", OPTION_BASELINE, true },
                { "compare", OPTION_COMPARE, true },
                { "var", OPTION_VAR, true },
        };
        _cleanup_(arguments_done) Arguments a = {};
        _cleanup_(query_done) Query q = {};
        int r;

        if (arguments_init(&a, argc, argv, false) < 0)
                return ctl_out_of_memory();

        while ((r = ctl_next_option(ctl, &a, options, ELEMENTSOF(options))) > 0)
                switch (r) {
                case OPTION_FILE:
                        q.file = a.value;
                        break;
                case OPTION_BASELINE:
                        if (GROW(q.baseline, q.n_baseline, q.c_baseline) < 0)
                                return ctl_out_of_memory();
                        q.baseline[q.n_baseline++] = a.value;
                        break;
                case OPTION_COMPARE:
                        if (GROW(q.compare, q.n_compare, q.c_compare) < 0)
                                return ctl_out_of_memory();
                        q.compare[q.n_compare++] = a.value;
                        break;
                case OPTION_VAR:
                        r = take_variable(&q, a.value);
                        if (r != CTL_DONE)
                                return r;
                }
        if (r < 0)
                return ctl_option_status(r);

        if (a.n_operands != (q.file ? 0 : 1))
                return ctl_fail(CTL_USAGE,
                                "say the query as one argument in quotes, or the file that holds it with --file");
        q.sql = q.file ? NULL : a.operands[0];
        return run(ctl, &q);
}
