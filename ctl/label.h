/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How threads, resources and waits are called in tables. The text may hold any bytes: tables make it safe. */
#pragma once

#include "analysis/shares.h"
#include "table.h"

/* An operation on a resource in words: "receive tcp 10.0.0.2:5432", "fsync /var/lib/x", "read pipe:[123]", "futex wait
 * server:lock", "clock_nanosleep". NULL on OOM. */
char *label_operation(const char *op, const Resource *r);
/* The same for a wait; one on an epoll or poll set goes on with the watched file that ended most of it: "epoll_wait eventpoll:3
 * (tcp 127.0.0.1:6379 75.0%)". NULL on OOM. */
char *label_wait(const SharesWait *w);
/* The resource's name, else its ident, else "-"; borrowed. */
const char *label_resource(const Resource *r);
/* Who ended waits: "holder/1235 98.0%, timer 2.0%", the foremost of them. A waker's process is named unless it is
 * `own`. NULL on OOM. */
char *label_wakers(SharesWaker *const *wakers, size_t n, uint64_t total_ns, const Process *own);
/* Who ran instead of a thread: "stress/812 75%", the foremost of them. Shares are of the time that is named. NULL on
 * OOM. */
char *label_instead(const Shares *s, const Thread *t);

/* What a reason for losses means, in plain words; a constant, or NULL for one that is not known here. */
const char *label_loss(const char *reason);

/* The cells of a thread's states, as shares of its time; and the columns for them. */
void label_states(Table *t, const ShareTimes *times);
#define LABEL_STATE_COLUMNS                                                                                       \
        { "run_share", "RUN", true }, { "runqueue_share", "RUNQUEUE", true }, { "sleep_share", "SLEEP", true }, { \
                "block_share", "BLOCK", true                                                                      \
        }
#define LABEL_TOP_WAIT_COLUMNS                     \
        { "top_wait", "TOP WAIT", false, true }, { \
                "top_wait_share", NULL, true       \
        }
/* Two cells: the thread's top wait and its share of the thread's time. For people the share stands in the first. */
void label_top_wait(Table *t, const Thread *thread);
