/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How threads, resources and waits are called in tables. The text may hold any bytes: tables make it safe. */
#pragma once

#include "analysis/shares.h"
#include "table.h"

/* "futex:wait heap+0x1c0", "other:epoll_wait". NULL on OOM. */
char *label_wait(const SharesWait *w);
/* The resource's name, else its ident, else "-"; borrowed. */
const char *label_resource(const SharesResource *r);
/* Who ended waits: "holder/1235 98.0%, timer 2.0%", the foremost of them. A waker's process is named unless it is
 * `own`. NULL on OOM. */
char *label_wakers(SharesWaker *const *wakers, size_t n, uint64_t total_ns, const SharesProcess *own);
/* Who ran instead of a thread: "stress/812 75%", the foremost of them. Shares are of the time that is named. NULL on
 * OOM. */
char *label_instead(const Shares *s, const SharesThread *t);

/* What a reason for losses means, in plain words; a constant, or NULL for one that is not known here. */
const char *label_loss(const char *reason);

/* Two cells: the thread's top wait and its share of the thread's time. For people the share stands in the first. */
void label_top_wait(Table *t, const SharesThread *thread);
