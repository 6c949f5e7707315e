/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Passes over measurement tables: each row that reaches into the range is added, in the proportion in which it lies
 * there, to an object that its first columns name. */
#pragma once

#include "clip.h"
#include "reading.h"

typedef enum ScanRule {
        SCAN_SUM,     /* in proportion */
        SCAN_MAXIMUM, /* whole: the length of the longest wait stays what it was */
} ScanRule;

/* A column, and the uint64_t of the object that it is added to. */
typedef struct ScanColumn {
        const char *name;
        size_t offset;
        ScanRule rule;
} ScanColumn;

#define SCAN_COLUMN(type, member) \
        { #member, offsetof(type, member), SCAN_SUM }
#define SCAN_COLUMN_MAXIMUM(type, member) \
        { #member, offsetof(type, member), SCAN_MAXIMUM }
#define SCAN_BUCKET(type, i) \
        { "hist" #i, offsetof(type, histogram) + (i) * sizeof(uint64_t), SCAN_SUM }
/* Last, so that they can be left out: they are half of what there is to read. */
#define SCAN_HISTOGRAM(type)                                                                                          \
        SCAN_BUCKET(type, 0), SCAN_BUCKET(type, 1), SCAN_BUCKET(type, 2), SCAN_BUCKET(type, 3), SCAN_BUCKET(type, 4), \
                        SCAN_BUCKET(type, 5), SCAN_BUCKET(type, 6), SCAN_BUCKET(type, 7)

typedef struct ScanRow {
        sqlite3_value **values; /* the key columns begin at SCAN_KEY */
        Clip clip;
        Thread *thread; /* of the first key column, with `by_thread` */
        char **ret_error;
} ScanRow;

#define SCAN_KEY 2

typedef struct Scan {
        const char *table;
        const char *keys; /* columns, such as "thread_id, resource_id, op" */
        int n_keys;
        bool by_thread; /* the first key is thread_id; rows of threads that the Reading does not want are left out */
        const ScanColumn *columns;
        size_t n_columns;
        /* The object that the row is added to; NULL: none. */
        int (*find)(Reading *r, const ScanRow *row, void *userdata, void **ret_object);
} Scan;

int scan(Reading *r, const Scan *s, void *userdata, char **ret_error);

static inline int64_t scan_id(const ScanRow *row, int key) {
        return sqlite3_value_int64(row->values[SCAN_KEY + key]);
}

static inline bool scan_is_null(const ScanRow *row, int key) {
        return sqlite3_value_type(row->values[SCAN_KEY + key]) == SQLITE_NULL;
}

/* A number of at least 0, whole. */
static inline uint64_t scan_value(const ScanRow *row, int key) {
        int64_t v = scan_id(row, key);

        return v > 0 ? (uint64_t) v : 0;
}

/* Interned. */
static inline int scan_word(Reading *r, const ScanRow *row, int key, const char **ret) {
        return reading_word(r, (const char *) sqlite3_value_text(row->values[SCAN_KEY + key]), ret);
}
