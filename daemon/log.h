/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Logging: to the journal when stderr is connected to it, else as plain lines to stderr. */
#pragma once

#include <syslog.h>

#include "basic/macro.h"

void log_set_level(int level);
int log_level_from_name(const char *name); /* -EINVAL */

/* One line; control characters in it are escaped, since names in it are chosen by others. */
_printf_(2, 3) void log_message(int level, const char *format, ...);

#define log_error(...) log_message(LOG_ERR, __VA_ARGS__)
#define log_warning(...) log_message(LOG_WARNING, __VA_ARGS__)
#define log_info(...) log_message(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_message(LOG_DEBUG, __VA_ARGS__)
