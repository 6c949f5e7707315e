/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Logging: to the journal, with fields, when stderr is connected to it, else as plain lines to stderr. So many lines in
 * so much time, and as many warnings and errors; what is more is counted and said in one line. */
#pragma once

#include <syslog.h>

#include "basic/macro.h"

#define LOG_LINES_MAX 200
#define LOG_LINES_USEC (30 * USEC_PER_SEC)

void log_set_level(int level);
int log_level_from_name(const char *name); /* -EINVAL */

/* What a message is about; what is NULL or 0 is left out. */
typedef struct LogFields {
        const char *id; /* MESSAGE_ID=, one of messages.h */
        const char *target;
        uint32_t pid;
        const char *recording;
} LogFields;

/* One line; control characters in it are escaped, since names in it are chosen by others. `fields` may be NULL. */
_printf_(3, 4) void log_event(int level, const LogFields *fields, const char *format, ...);

#define log_message(level, ...) log_event(level, NULL, __VA_ARGS__)
#define log_error(...) log_message(LOG_ERR, __VA_ARGS__)
#define log_warning(...) log_message(LOG_WARNING, __VA_ARGS__)
#define log_info(...) log_message(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_message(LOG_DEBUG, __VA_ARGS__)

/* Says how many lines were left out, if some were and their time is over. To be called now and then. */
void log_catch_up(void);
/* Lines of this level and those that share its limit, in the current stretch of LOG_LINES_USEC. */
unsigned log_lines(int level);
