/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How much of a measurement row lies inside a range. Rows cover (ts - dt, ts] and are taken to be spread evenly. Pure.
 */
#pragma once

#include "store/basic/macro.h"

/* No row covers more than this: a thread that stays in one state gets a row after 60 s. With some slack, it bounds how
 * far behind a range the rows that reach into it can end. */
#define CLIP_LONGEST_ROW_NS (INT64_C(61) * INT64_C(1000000000))

typedef struct Clip {
        uint64_t part, whole; /* the row's overlap with the range, and the row's length */
} Clip;

/* The part of the row (ts_ns - dt_ns, ts_ns] that lies in (start_ns, end_ns]. A row of no length counts whole when it
 * ends inside. */
Clip clip_row(int64_t ts_ns, int64_t dt_ns, int64_t start_ns, int64_t end_ns);

static inline bool clip_is_empty(Clip c) {
        return c.part == 0;
}

/* value * part / whole, to the nearest, without overflow. */
static inline uint64_t clip_value(Clip c, uint64_t value) {
        if (c.part == c.whole)
                return value;
        return (uint64_t) (((unsigned __int128) value * c.part + c.whole / 2) / c.whole);
}
