/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "clock.h"

#include <time.h>

static int64_t timespec_ns(const struct timespec *ts) {
        return (int64_t) ts->tv_sec * (int64_t) NSEC_PER_SEC + (int64_t) ts->tv_nsec;
}

uint64_t boot_now(void) {
        struct timespec ts;

        clock_gettime(CLOCK_BOOTTIME, &ts);
        return (uint64_t) timespec_ns(&ts);
}

/* Reads both clocks as close together as it gets: of a few tries, the one whose two boot readings are nearest. */
static int64_t offset_now(void) {
        int64_t best = INT64_MAX, offset = 0;

        for (unsigned i = 0; i < 5; i++) {
                struct timespec before, unix_time, after;
                int64_t gap;

                clock_gettime(CLOCK_BOOTTIME, &before);
                clock_gettime(CLOCK_REALTIME, &unix_time);
                clock_gettime(CLOCK_BOOTTIME, &after);
                gap = timespec_ns(&after) - timespec_ns(&before);
                if (gap < best) {
                        best = gap;
                        offset = timespec_ns(&unix_time) - timespec_ns(&before) - gap / 2;
                }
        }
        return offset;
}

bool clock_update(Clock *c, bool hold) {
        int64_t now = offset_now();

        c->held_ns = 0;
        if (c->known && llabs(now - c->offset_ns) <= CLOCK_TOLERANCE_NS)
                return false;
        if (c->known && hold) {
                c->held_ns = now - c->offset_ns;
                return false;
        }
        c->offset_ns = now;
        c->known = true;
        return true;
}

int64_t clock_unix(const Clock *c, uint64_t boot_ns) {
        return (int64_t) boot_ns + c->offset_ns;
}
