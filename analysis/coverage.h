/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For how much of a range a part that is not always on was on, and what that makes of its numbers. */
#pragma once

#include "reading.h"

typedef struct Coverage {
        uint64_t recorded_ns; /* of the range: that for which there are recordings; all of it when there are none at all */
        uint64_t covered_ns; /* part of that in which it was on */
} Coverage;

int coverage_read(Reading *r, const char *part, Coverage *ret, char **ret_error);

/* Whether numbers for the whole range can only be estimated: more than 1 % of it were not seen. */
bool coverage_is_estimate(const Coverage *c);

/* What was counted while it was on, for the whole range: value * recorded / covered, to the nearest. As it is when nothing
 * is covered, or so much that it is no estimate. UINT64_MAX when it is more than that. */
uint64_t coverage_scale(const Coverage *c, uint64_t value);

/* Per second in which it was on. 0 when nothing is covered. */
double coverage_rate(const Coverage *c, uint64_t value);
