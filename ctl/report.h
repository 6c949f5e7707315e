/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The report over a range, for `prismctl report` and `prismctl run`. */
#pragma once

#include "ctl.h"
#include "store/store.h"

#define REPORT_LIMIT 20

typedef struct ReportRange {
        const char *name; /* of the recording; NULL: a range was given */
        int64_t start_ns, end_ns;
        bool running;       /* the recording has not ended */
        const char *target; /* only what this target brought in; NULL: all */
        bool target_or_all; /* all, if it brought nothing in */
} ReportRange;

/* Prints to `f`, with at most `limit` rows in each table for people (0: all). Prints errors itself; an exit code. */
int report_print(const Ctl *ctl, Store *store, const ReportRange *range, uint64_t limit, FILE *f);
