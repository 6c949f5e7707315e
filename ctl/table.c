/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Rows go straight into libsmartcols lines or JSON objects, whichever is wanted. */
#include "table.h"

#include <inttypes.h>
#include <libsmartcols/libsmartcols.h>
#include <sys/ioctl.h>

#include "json.h"
#include "store/basic/text.h"

#define TABLE_ELLIPSIS "..."
/* Characters that each cell may have on a narrow terminal, too. */
#define TABLE_LEAST_WIDTH 32

struct Table {
        const TableColumn *columns;
        size_t n_columns;
        size_t column; /* the one that the next cell belongs to */
        size_t n_rows;
        int error; /* the first one, kept until the table is printed */

        struct libscols_table *lines; /* for people */
        struct libscols_line *line;
        size_t cell; /* in the line: columns without a title have none */

        json_object *array;  /* for programs */
        json_object *object; /* borrowed from the array */
};

char *format_bytes(char *buffer, size_t size, uint64_t bytes) {
        static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };
        double value = (double) bytes;
        size_t i = 0;

        while (value >= 1024 && i + 1 < ELEMENTSOF(units)) {
                value /= 1024;
                i++;
        }
        snprintf(buffer, size, i == 0 ? "%.0f %s" : "%.1f %s", value, units[i]);
        return buffer;
}

int table_new(const TableColumn *columns, size_t n_columns, bool json, Table **ret) {
        _cleanup_(table_freep) Table *t = NULL;

        t = calloc(1, sizeof(*t));
        if (!t)
                return -ENOMEM;
        t->columns = columns;
        t->n_columns = n_columns;

        if (json) {
                t->array = json_object_new_array();
                if (!t->array)
                        return -ENOMEM;
                *ret = TAKE_PTR(t);
                return 0;
        }

        t->lines = scols_new_table();
        if (!t->lines)
                return -ENOMEM;

        /* What is shown has been made safe already, with escapes that must not be escaped again. */
        scols_table_enable_noencoding(t->lines, 1);

        for (size_t i = 0; i < n_columns; i++)
                if (columns[i].title &&
                                !scols_table_new_column(
                                                t->lines, columns[i].title, 0, columns[i].right ? SCOLS_FL_RIGHT : 0))
                        return -ENOMEM;

        *ret = TAKE_PTR(t);
        return 0;
}

Table *table_free(Table *t) {
        if (!t)
                return NULL;

        scols_unref_table(t->lines);
        json_object_put(t->array);
        free(t);
        return NULL;
}

bool table_is_json(const Table *t) {
        return t->array != NULL;
}

size_t table_rows(const Table *t) {
        return t->n_rows;
}

void table_row(Table *t) {
        t->column = 0;
        t->cell = 0;
        t->n_rows++;
        if (t->error < 0)
                return;

        if (t->array) {
                t->object = json_object_new_object();
                if (!t->object || json_object_array_add(t->array, t->object) < 0) {
                        json_object_put(t->object);
                        t->object = NULL;
                        t->error = -ENOMEM;
                }
        } else {
                t->line = scols_table_new_line(t->lines, NULL);
                if (!t->line)
                        t->error = -ENOMEM;
        }
}

/* One cell; takes the value. In each kind of table the other's form is ignored. */
static void put(Table *t, const char *safe_text, json_object *value) {
        const TableColumn *c = t->column < t->n_columns ? t->columns + t->column : NULL;

        t->column++;
        if (!c || t->error < 0) {
                json_object_put(value);
                return;
        }

        if (t->array) {
                if (!c->key)
                        json_object_put(value);
                else if (json_add(t->object, c->key, value) < 0)
                        t->error = -ENOMEM;
        } else {
                json_object_put(value);
                if (c->title && scols_line_set_data(t->line, t->cell++, safe_text) < 0)
                        t->error = -ENOMEM;
        }
}

void table_custom(Table *t, const char *text, json_object *value) {
        _cleanup_free_ char *safe = NULL;

        if (t->array) {
                put(t, NULL, value);
                return;
        }

        safe = text_escape(text ? text : "-");
        if (!safe)
                t->error = -ENOMEM;
        put(t, safe, value);
}

void table_text(Table *t, const char *s) {
        table_custom(t, s, t->array ? json_text(s) : NULL);
}

void table_null(Table *t) {
        put(t, "-", NULL);
}

void table_number(Table *t, int64_t n) {
        char buffer[32];

        snprintf(buffer, sizeof(buffer), "%" PRId64, n);
        put(t, buffer, t->array ? json_object_new_int64(n) : NULL);
}

void table_count(Table *t, uint64_t n) {
        char buffer[32];

        snprintf(buffer, sizeof(buffer), "%" PRIu64, n);
        put(t, buffer, t->array ? json_object_new_uint64(n) : NULL);
}

void table_real(Table *t, double d) {
        char buffer[64];

        snprintf(buffer, sizeof(buffer), "%.15g", d);
        put(t, buffer, t->array ? json_real(d) : NULL);
}

void table_bytes(Table *t, uint64_t bytes) {
        char buffer[32];

        put(t, format_bytes(buffer, sizeof(buffer), bytes), t->array ? json_object_new_uint64(bytes) : NULL);
}

void table_rate(Table *t, double per_second) {
        char buffer[64];

        snprintf(buffer, sizeof(buffer), per_second < 100 ? "%.3g" : "%.0f", per_second);
        put(t, buffer, t->array ? json_real(per_second) : NULL);
}

void table_boolean(Table *t, bool b) {
        put(t, b ? "yes" : "no", t->array ? json_object_new_boolean(b) : NULL);
}

void table_duration(Table *t, uint64_t ns) {
        char buffer[64];

        put(t, format_duration(buffer, sizeof(buffer), ns), t->array ? json_object_new_uint64(ns) : NULL);
}

void table_share(Table *t, uint64_t part, uint64_t whole) {
        char buffer[32];

        put(t, format_share(buffer, sizeof(buffer), part, whole), t->array ? json_share(part, whole) : NULL);
}

void table_moment(Table *t, int64_t unix_ns) {
        char buffer[64];

        put(t, unix_ns == 0 ? "-" : format_moment(buffer, sizeof(buffer), unix_ns),
                        t->array ? json_moment(unix_ns) : NULL);
}

/* Of a character in UTF-8. */
static bool is_first_byte(char c) {
        return ((unsigned char) c & 0xc0) != 0x80;
}

static size_t count_characters(const char *s) {
        size_t n = 0;

        for (; *s; s++)
                n += is_first_byte(*s);
        return n;
}

/* How many bytes the first n characters have. */
static size_t skip_characters(const char *s, size_t n) {
        size_t i = 0;

        for (; s[i]; i++)
                if (is_first_byte(s[i]) && n-- == 0)
                        break;
        return i;
}

char *table_shorten(const char *s, size_t width) {
        size_t n = count_characters(s), begin, end, left, right;
        char *shortened;

        if (n <= width || width <= strlen(TABLE_ELLIPSIS))
                return strdup(s);

        /* The end of a path says more than its beginning. */
        left = (width - strlen(TABLE_ELLIPSIS)) / 3;
        right = width - strlen(TABLE_ELLIPSIS) - left;
        begin = skip_characters(s, left);
        end = skip_characters(s, n - right);
        if (asprintf(&shortened, "%.*s" TABLE_ELLIPSIS "%s", (int) begin, s, s + end) < 0)
                return NULL;
        return shortened;
}

static const char *cell_text(Table *t, size_t row, size_t cell) {
        const char *s = scols_cell_get_data(scols_line_get_cell(scols_table_get_line(t->lines, row), cell));

        return s ? s : "";
}

/* The characters of the widest cell. */
static size_t measure(Table *t, size_t cell, const char *title) {
        size_t width = count_characters(title);

        for (size_t row = 0; row < t->n_rows; row++)
                width = MAX(width, count_characters(cell_text(t, row, cell)));
        return width;
}

static int shorten_column(Table *t, size_t cell, size_t width) {
        for (size_t row = 0; row < t->n_rows; row++) {
                _cleanup_free_ char *shortened = table_shorten(cell_text(t, row, cell), width);

                if (!shortened || scols_line_set_data(scols_table_get_line(t->lines, row), cell, shortened) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Where a line would be wider than the terminal, the columns that allow it share what the others leave them. */
static int fit_terminal(Table *t, FILE *f) {
        struct winsize size = {};
        size_t fixed = 0, n = 0, total = 0;
        int fd = fileno(f);

        if (fd < 0 || !isatty(fd) || ioctl(fd, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
                return 0;

        for (size_t column = 0, cell = 0; column < t->n_columns; column++) {
                const TableColumn *c = t->columns + column;
                size_t width;

                if (!c->title)
                        continue;
                width = measure(t, cell++, c->title) + 1;
                total += width;
                if (c->shorten)
                        n++;
                else
                        fixed += width;
        }
        if (n == 0 || total <= (size_t) size.ws_col + 1)
                return 0;

        for (size_t column = 0, cell = 0; column < t->n_columns; column++) {
                size_t left = size.ws_col > fixed ? (size.ws_col - fixed) / n : 0;

                if (!t->columns[column].title)
                        continue;
                if (t->columns[column].shorten && shorten_column(t, cell, MAX(left, TABLE_LEAST_WIDTH)) < 0)
                        return -ENOMEM;
                cell++;
        }
        return 0;
}

int table_print(Table *t, bool no_legend, FILE *f) {
        int r;

        if (t->error < 0)
                return t->error;

        if (t->array) {
                json_print(t->array, f);
                return 0;
        }

        if (t->n_rows == 0) {
                bool first = true;

                if (no_legend)
                        return 0;
                for (size_t i = 0; i < t->n_columns; i++)
                        if (t->columns[i].title) {
                                fprintf(f, "%s%s", first ? "" : " ", t->columns[i].title);
                                first = false;
                        }
                fputc('\n', f);
                return 0;
        }

        r = fit_terminal(t, f);
        if (r < 0)
                return r;
        scols_table_enable_noheadings(t->lines, no_legend);
        scols_table_set_stream(t->lines, f);
        return scols_print_table(t->lines);
}

int table_take_json(Table *t, json_object **ret) {
        if (t->error < 0)
                return t->error;
        *ret = TAKE_PTR(t->array);
        return 0;
}
