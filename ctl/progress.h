/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One line on the terminal that changes while something takes its time. Not a terminal, or not in its foreground:
 * nothing. */
#pragma once

#include "store/basic/macro.h"

typedef struct Progress {
        bool shown;
} Progress;

bool progress_is_wanted(void);
void progress_show(Progress *p, const char *format, ...) _printf_(2, 3);
void progress_clear(Progress *p);
