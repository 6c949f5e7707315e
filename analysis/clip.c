/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The overlap of a row and a range. */
#include "clip.h"

Clip clip_row(int64_t ts_ns, int64_t dt_ns, int64_t start_ns, int64_t end_ns) {
        int64_t begin, from, until;

        if (dt_ns <= 0) {
                bool inside = ts_ns > start_ns && ts_ns <= end_ns;

                return (Clip){ .part = inside, .whole = 1 };
        }

        begin = ts_ns >= INT64_MIN + dt_ns ? ts_ns - dt_ns : INT64_MIN;
        from = MAX(begin, start_ns);
        until = MIN(ts_ns, end_ns);
        if (until <= from)
                return (Clip){ .part = 0, .whole = (uint64_t) dt_ns };

        return (Clip){ .part = (uint64_t) until - (uint64_t) from, .whole = (uint64_t) dt_ns };
}
