/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Puts descriptions of what the registry knows into batches. */
#pragma once

#include "clock.h"
#include "registry.h"

/* Into a batch for the recorder, unless it was described in this epoch and has not changed since (`described` is 0
 * then). A failure leaves it undescribed: the store refuses the batch and the loss is counted there. */
void describe_process(Batch *b, Process *p, const Clock *clock, uint64_t epoch);
void describe_thread(Batch *b, Thread *t, const Clock *clock, uint64_t epoch);
void describe_resource(Batch *b, Resource *s, uint64_t epoch);

/* Of what is forgotten while batches of the last minute name it: into one of these. 0 or -ENOMEM. */
int redescribe_process(Batch *b, const Process *p, const Clock *clock);
int redescribe_thread(Batch *b, const Thread *t, const Clock *clock);
int redescribe_resource(Batch *b, const Resource *s);

/* All that the registry knows, for a snapshot. 0 or -ENOMEM. */
int describe_all(Batch *b, Registry *r, const Clock *clock);
