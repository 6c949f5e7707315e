/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Template expansion, and the authorizer of users' SQL. */
#include <stdarg.h>

#include "basic/text.h"
#include "query.h"

typedef struct Ranges {
        const char *option; /* what to give on the command line when there are none */
        const QueryRange *items;
        size_t n;
} Ranges;

static int say(char **ret_error, const char *format, ...) _printf_(2, 3);

static int say(char **ret_error, const char *format, ...) {
        char *sentence;
        va_list ap;

        if (!ret_error)
                return -EINVAL;
        va_start(ap, format);
        if (vasprintf(&sentence, format, ap) >= 0)
                *ret_error = sentence;
        va_end(ap);
        return -EINVAL;
}

static bool is_space(char c) {
        return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static size_t identifier_length(const char *s) {
        static const char start[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
        size_t n = strspn(s, start);

        return n == 0 ? 0 : n + strspn(s + n, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");
}

/* An identifier, or two with a point between. */
static bool is_column(const char *s) {
        size_t n = identifier_length(s);

        if (n == 0)
                return false;
        s += n;
        if (*s == '.') {
                n = identifier_length(++s);
                if (n == 0)
                        return false;
                s += n;
        }
        return *s == '\0';
}

static bool column_is_text(const char *column) {
        const char *point = strchr(column, '.'), *name = point ? point + 1 : column;

        return strcasecmp(name, "ts") == 0 || strcasecmp(name, "ts_s") == 0;
}

static void write_filter(FILE *f, const char *column, const Ranges *ranges) {
        fputc('(', f);
        for (size_t i = 0; i < ranges->n; i++) {
                const QueryRange *range = ranges->items + i;
                char start[64], end[64];

                if (i > 0)
                        fputs(" OR ", f);
                if (column_is_text(column))
                        fprintf(f, "(%s > '%s' AND %s <= '%s')", column,
                                        format_moment(start, sizeof(start), range->start_ns), column,
                                        format_moment(end, sizeof(end), range->end_ns));
                else
                        fprintf(f, "(%s > %lld AND %s <= %lld)", column, (long long) range->start_ns, column,
                                        (long long) range->end_ns);
        }
        fputc(')', f);
}

static int expand_filter(FILE *f, const char *name, const char *argument, const Ranges *ranges, char **ret_error) {
        _cleanup_free_ char *column = NULL;
        size_t n = strlen(argument);

        /* The argument stands in parentheses, and in quotes within them. */
        if (n < 4 || argument[0] != '(' || argument[n - 1] != ')' || argument[1] != argument[n - 2] ||
                        (argument[1] != '"' && argument[1] != '\''))
                return say(ret_error, "%s takes a column in quotes, as in {{ %s(\"ts\") }}.", name, name);
        column = strndup(argument + 2, n - 4);
        if (!column)
                return -ENOMEM;
        if (!is_column(column))
                return say(ret_error, "What is given to %s is not the name of a column.", name);
        if (ranges->n == 0)
                return say(ret_error, "The query uses %s: give %s.", name, ranges->option);

        write_filter(f, column, ranges);
        return 0;
}

static int expand_variable(FILE *f, const char *name, const QueryVariable *vars, size_t n, char **ret_error) {
        for (size_t i = 0; i < n; i++)
                if (streq(vars[i].name, name)) {
                        fputs(vars[i].value, f);
                        return 0;
                }
        if (streq(name, "pid_filter") || streq(name, "tid_filter")) {
                fputs("(1)", f);
                return 0;
        }
        return say(ret_error, "The query uses the variable %s: give it with --var %s=VALUE.", name, name);
}

/* Expands what stands between the braces, without the spaces around it. */
static int expand_one(FILE *f, const char *text, const QueryVariable *vars, size_t n, const Ranges *baseline,
                const Ranges *compare, char **ret_error) {
        size_t length = identifier_length(text);
        _cleanup_free_ char *name = strndup(text, length);
        const char *rest = text + length;

        if (!name)
                return -ENOMEM;
        if (length == 0)
                return say(ret_error, "The query has {{ }} without a name in it.");

        while (is_space(*rest))
                rest++;
        if (streq(name, "baseline_filter"))
                return expand_filter(f, name, rest, baseline, ret_error);
        if (streq(name, "compare_filter"))
                return expand_filter(f, name, rest, compare, ret_error);
        if (*rest)
                return say(ret_error, "The query has more than a name between {{ and }} at %s.", name);
        return expand_variable(f, name, vars, n, ret_error);
}

static int expand(FILE *f, const char *sql, const QueryVariable *vars, size_t n, const Ranges *baseline,
                const Ranges *compare, char **ret_error) {
        const char *open;

        while ((open = strstr(sql, "{{"))) {
                const char *start = open + 2, *close = strstr(start, "}}"), *end = close;
                _cleanup_free_ char *text = NULL;
                int r;

                if (!close)
                        return say(ret_error, "The query has a {{ without }} behind it.");
                while (start < end && is_space(*start))
                        start++;
                while (end > start && is_space(end[-1]))
                        end--;
                text = strndup(start, (size_t) (end - start));
                if (!text)
                        return -ENOMEM;

                fwrite(sql, 1, (size_t) (open - sql), f);
                r = expand_one(f, text, vars, n, baseline, compare, ret_error);
                if (r < 0)
                        return r;
                sql = close + 2;
        }
        fputs(sql, f);
        return 0;
}

int query_expand(const char *sql, const QueryVariable *vars, size_t n, const QueryRange *baseline, size_t n_baseline,
                const QueryRange *compare, size_t n_compare, char **ret, char **ret_error) {
        const Ranges baselines = { "--baseline", baseline, n_baseline }, compares = { "--compare", compare, n_compare };
        _cleanup_free_ char *text = NULL;
        size_t size = 0;
        FILE *f;
        int r;

        f = open_memstream(&text, &size);
        if (!f)
                return -ENOMEM;
        r = expand(f, sql, vars, n, &baselines, &compares, ret_error);
        if (ferror(f) && r >= 0)
                r = -ENOMEM;
        if (fclose(f) != 0 && r >= 0)
                r = -ENOMEM;
        if (r < 0)
                return r;
        *ret = TAKE_PTR(text);
        return 0;
}

static bool is_one_of(const char *name, const char *const *list, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (strcasecmp(name, list[i]) == 0)
                        return true;
        return false;
}

/* Pragmas that only report, whatever their argument, and those that set something when they have one. */
static bool pragma_is_safe(const char *name, const char *argument) {
        static const char *const reports[] = { "collation_list", "compile_options", "database_list",
                "foreign_key_check", "foreign_key_list", "function_list", "index_info", "index_list", "index_xinfo",
                "integrity_check", "module_list", "pragma_list", "quick_check", "table_info", "table_list",
                "table_xinfo" };
        static const char *const settings[] = { "application_id", "auto_vacuum", "encoding", "freelist_count",
                "journal_mode", "page_count", "page_size", "schema_version", "user_version" };

        if (is_one_of(name, reports, ELEMENTSOF(reports)))
                return true;
        return !argument && is_one_of(name, settings, ELEMENTSOF(settings));
}

static int authorize(void *context, int action, const char *first, const char *second, const char *database,
                const char *trigger) {
        static const char *const functions[] = { "load_extension", "fts3_tokenizer", "edit", "readfile", "writefile" };

        switch (action) {
        case SQLITE_SELECT:
        case SQLITE_READ:
        case SQLITE_RECURSIVE:
                return SQLITE_OK;
        case SQLITE_FUNCTION:
                return second && is_one_of(second, functions, ELEMENTSOF(functions)) ? SQLITE_DENY : SQLITE_OK;
        case SQLITE_UPDATE:
                /* SQLite asks this when it sets up json_each() and the like, and then changes nothing. Where a statement does mean
                 * the schema, ignoring leaves each column as it is. */
                return first && streq(first, "sqlite_master") ? SQLITE_IGNORE : SQLITE_DENY;
        case SQLITE_PRAGMA:
                return first && pragma_is_safe(first, second) ? SQLITE_OK : SQLITE_DENY;
        default:
                return SQLITE_DENY;
        }
}

int query_check_readonly(sqlite3 *db) {
        if (sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL) != SQLITE_OK ||
                        sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL) != SQLITE_OK ||
                        sqlite3_set_authorizer(db, authorize, NULL) != SQLITE_OK)
                return -EIO;
        return 0;
}
