/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One description of rows and columns, shown as a table to people or as a JSON array of objects to programs. */
#pragma once

#include <json-c/json.h>

#include "store/basic/macro.h"

typedef struct TableColumn {
        const char *key;   /* of the member in JSON; NULL: only for people */
        const char *title; /* for people; NULL: only in JSON */
        bool right;        /* aligned to the right, as numbers are */
        bool shorten;      /* a terminal shows long text without its middle */
} TableColumn;

typedef struct Table Table;

/* `columns` is borrowed. */
int table_new(const TableColumn *columns, size_t n_columns, bool json, Table **ret);
Table *table_free(Table *t); /* returns NULL */
DEFINE_CLEANUP(Table *, table_free);

/* Starts a row; one call per column follows, in order. Running out of memory is remembered and reported when the table
 * is printed. */
void table_row(Table *t);

void table_text(Table *t, const char *s); /* any bytes: made safe; NULL: "-" and null */
void table_number(Table *t, int64_t n);
void table_count(Table *t, uint64_t n);
void table_real(Table *t, double d);
void table_boolean(Table *t, bool b);
void table_duration(Table *t, uint64_t ns); /* ns in JSON */
void table_share(Table *t, uint64_t part, uint64_t whole);
void table_moment(Table *t, int64_t unix_ns); /* 0: "-" and null */
void table_null(Table *t);
void table_bytes(Table *t, uint64_t bytes);   /* "1.5 MiB"; the number in JSON */
void table_rate(Table *t, double per_second); /* three digits; the number in JSON */

/* Text for people and a value for JSON that differ. Takes `value` (made only if table_is_json()). */
void table_custom(Table *t, const char *text, json_object *value);
bool table_is_json(const Table *t);

size_t table_rows(const Table *t);

/* For people: titles unless no_legend, also when there are no rows. As JSON: the array. */
int table_print(Table *t, bool no_legend, FILE *f);

/* A copy of at most `width` characters, without its middle if it had more: "/var/l...base/16384/2619". NULL on OOM. */
char *table_shorten(const char *s, size_t width);

/* "12 B", "1.5 MiB". Returns `buffer`. */
char *format_bytes(char *buffer, size_t size, uint64_t bytes);

/* Hands the JSON array over; only of a JSON table. */
int table_take_json(Table *t, json_object **ret);
