/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Signals as something to wait for, without handlers and thus without global state. */
#pragma once

#include <signal.h>
#include <sys/signalfd.h>

#include "store/basic/macro.h"

typedef struct Signals {
        int fd; /* a signalfd that does not block */
        sigset_t before;
        bool blocked;
} Signals;

#define SIGNALS_NONE \
        { .fd = -1 }

/* Blocks the signals (the list ends with 0) and opens the descriptor. */
int signals_catch(Signals *s, const int *list);
/* Gives them back; one that is still pending then does what it does by default. */
void signals_release(Signals *s);

/* The next signal: 1; none: 0. */
int signals_read(Signals *s, struct signalfd_siginfo *ret);

/* Waits for a signal or until `timeout_ns` (UINT64_MAX: for ever) has passed: 1 or 0. */
int signals_wait(Signals *s, uint64_t timeout_ns, struct signalfd_siginfo *ret);

/* CLOCK_MONOTONIC. */
uint64_t now_monotonic_ns(void);
int64_t now_unix_ns(void);
