/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Text from and for people: names that others chose made safe to show, numbers made readable. */
#pragma once

#include "macro.h"

bool utf8_is_valid(const char *s);

/* A copy that is safe to print: control characters (C0, DEL, C1), bidirectional overrides and bytes that are not UTF-8
 * become \xNN (\n \t \r \\ in their short form); everything else stays. NULL on OOM. */
char *text_escape(const char *s);

/* A copy that is valid UTF-8: bytes that are not become U+FFFD. For JSON, whose libraries escape the rest. */
char *text_to_utf8(const char *s);

/* "1.234s", "12.3ms", "45us", "0": three or four digits, for tables. Returns `buffer`. */
char *format_duration(char *buffer, size_t size, uint64_t ns);
/* Percent of whole with one decimal, "12.3%"; "-" when whole is 0. */
char *format_share(char *buffer, size_t size, uint64_t part, uint64_t whole);
/* "2026-11-30 11:02:10.123456" UTC. */
char *format_moment(char *buffer, size_t size, int64_t unix_ns);
/* "2026-11-30T11:02:10.123456Z", for JSON. */
char *format_rfc3339(char *buffer, size_t size, int64_t unix_ns);

/* A recording's name: 1 to 200 bytes of valid UTF-8 without control characters or '/', not starting with '-' or '.',
 * without "..". */
bool recording_name_is_valid(const char *s);
