/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A regular expression for command names, compiled and matched with bounded memory and time. */
#pragma once

#include "basic/macro.h"

#define PATTERN_LENGTH_MAX 256

typedef struct Pattern Pattern;

/* -EINVAL with a sentence that says what is wrong with it, and where. */
int pattern_new(const char *text, Pattern **ret, char **ret_error);
Pattern *pattern_free(Pattern *p);
DEFINE_CLEANUP(Pattern *, pattern_free);

/* Whether the whole name matches. A match that takes too long is none. */
bool pattern_matches(const Pattern *p, const char *name);
