/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which member of which row of a batch goes into which column of which table, and what becomes of a row that is there
 * already. A table of data: write.c reads it. Private to store/. */
#pragma once

#include "batch.h"

/* Kinds of rows, in the order in which they are written: what others refer to comes first. */
enum row_kind {
        ROW_PROCESS,
        ROW_THREAD,
        ROW_RESOURCE,
        ROW_SOCKET,
        ROW_EPOLL_WATCH,
        ROW_CLOCK,
        ROW_THREAD_TIME,
        ROW_WAIT,
        ROW_MUX_WAIT,
        ROW_WAKE,
        ROW_RAN_INSTEAD,
        ROW_CALL,
        ROW_SOCKET_SAMPLE,
        ROW_DISK,
        ROW_CGROUP_TIME,
        ROW_COVERAGE,
        ROW_LOSS,
        _ROW_MAX,
};

/* What the producer's keys stand for. */
enum object {
        OBJECT_PROCESS,
        OBJECT_THREAD,
        OBJECT_RESOURCE,
        _OBJECT_MAX,
        OBJECT_NONE = _OBJECT_MAX,
};

enum column_type {
        COLUMN_I64,
        COLUMN_U64,
        COLUMN_U32,
        COLUMN_TEXT,
        COLUMN_HISTOGRAM, /* uint32_t[STORE_HISTOGRAM_BUCKETS] into the columns hist0 and on */
        COLUMN_KEY,       /* a key, into the id of what it stands for */
        COLUMN_MACHINE,   /* the store's own */
        COLUMN_BOOT,
};

/* Which value of a member says that there is none, and what is stored for it. */
enum column_absent {
        ABSENT_NEVER,       /* a key must have been described: -ENOKEY */
        ABSENT_NULL_0,      /* 0: NULL */
        ABSENT_NULL_MINUS,  /* below 0: NULL */
        ABSENT_NULL_MAX32,  /* UINT32_MAX: NULL */
        ABSENT_EMPTY,       /* a NULL text: '' */
        ABSENT_ID_0,        /* key 0: id 0 */
        ABSENT_UNDESCRIBED, /* a key that was never described: NULL */
};

typedef struct Column {
        const char *name;
        size_t offset; /* of the member in the row */
        enum column_type type;
        enum column_absent absent;
        enum object object; /* of a key */
        bool identity;      /* part of what makes two rows the same */
        /* The new value of the column when the row is there already: SQL in which $ stands for the column's name. NULL: it
         * stays as it is. */
        const char *merge;
} Column;

typedef struct RowKind {
        const char *table;
        const Column *columns;
        size_t n_columns;
        size_t row_size, array_offset, n_offset; /* the array and its length in a Batch */
        enum object describes;                   /* the row gives the member `key` a meaning */
        size_t key_offset;
} RowKind;

extern const RowKind row_kinds[_ROW_MAX];

/* The statement that inserts a row of this kind, its parameters numbered as the columns (a histogram counts as many): with
 * `merge` it updates a row that is there already, without it that is an error. Returns the id if the kind describes
 * something. The caller frees with sqlite3_free(); NULL: no memory. */
char *row_sql(enum row_kind kind, bool merge);
