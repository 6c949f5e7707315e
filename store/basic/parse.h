/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Parsing what people type: numbers, lengths of time, moments and ranges. Pure: no clock is read. */
#pragma once

#include "macro.h"

/* A decimal number without sign, spaces or leading +. -EINVAL not a number, -ERANGE above max. */
int parse_u64(const char *s, uint64_t max, uint64_t *ret);

/* A length such as "10s", "1.5m", "2h", "250ms", "1m30s", "3d"; a bare number is seconds. Result > 0. -EINVAL, -ERANGE
 * (over 10 years or 0). */
int parse_duration(const char *s, uint64_t *ret_ns);

/* A moment: RFC 3339 ("2026-11-30T12:00:00Z", "+01:00", fractions, a space for the T; local time without zone),
 * "HH:MM[:SS[.frac]]" (the last such moment before `now`, local time), "now", or "-10m" (before `now`). */
int parse_moment(const char *s, int64_t now_ns, int64_t *ret_ns);

/* "START..END", each a moment. An empty START or END is an error, as is END <= START. */
int parse_range(const char *s, int64_t now_ns, int64_t *ret_start_ns, int64_t *ret_end_ns);

/* "name=value" at its first '='; `name` must be a C identifier. */
int parse_assignment(const char *s, char **ret_name, char **ret_value);
