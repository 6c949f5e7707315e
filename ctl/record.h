/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Recordings over the bus, for `prismctl record` and `prismctl run`. */
#pragma once

#include "client.h"
#include "objects.h"

typedef struct RecordCounters {
        uint64_t threads, targets;
        uint64_t losses; /* of all kinds, since prismd started */
} RecordCounters;

/* duration_ns 0: until it is stopped. calls NULL: what prismd does without being told. */
int record_start(Client *c, const char *name, uint64_t duration_ns, const char *calls, char **ret_path,
                char **ret_error);
bool record_calls_are_valid(const char *calls);
/* Returns when all of it is in the database. */
int record_stop(Client *c, const char *path, char **ret_error);

int record_read_counters(Client *c, RecordCounters *ret);
