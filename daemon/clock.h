/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The boot clock, and Unix time from it. */
#pragma once

#include "basic/macro.h"

/* A row's times stay comparable across ticks because the offset is held still until it is off by more than this: clock
 * discipline moves it by up to half a millisecond a second, and then intervals would not tile. */
#define CLOCK_TOLERANCE_NS (1 * (int64_t) NSEC_PER_MSEC)

typedef struct Clock {
        int64_t offset_ns; /* Unix = boot + offset */
        int64_t held_ns;   /* how far the system's clock is ahead of that, while it is held */
        bool known;
} Clock;

uint64_t boot_now(void);
/* True when the offset is new: at first, and after a step. While something is recorded it is held: a recording lies on one time
 * line, whatever is done to the system's clock meanwhile. Else a step back would give two rows to one second, a step forward
 * would make it an hour long. */
bool clock_update(Clock *c, bool hold);
int64_t clock_unix(const Clock *c, uint64_t boot_ns);
