/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a store holds of a range: how many rows of which table, of how many threads. For `record show`. */
#pragma once

#include "store/store.h"

#define CONTENTS_TABLES 10

typedef struct Contents {
        struct {
                const char *table; /* a constant */
                uint64_t rows;
        } tables[CONTENTS_TABLES];
        uint64_t processes, threads, losses; /* losses: the sum of the counts, not the number of rows */
} Contents;

/* Rows that end inside (start_ns, end_ns]. */
int contents_read(Store *s, int64_t start_ns, int64_t end_ns, Contents *ret, char **ret_error);

/* From the start of the first thread_time row to the end of the last one. -ENODATA when there are none. */
int contents_extent(Store *s, int64_t *ret_start_ns, int64_t *ret_end_ns, char **ret_error);
