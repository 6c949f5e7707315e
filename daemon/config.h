/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Settings: defaults, the configuration file, the command line. */
#pragma once

#include "basic/macro.h"

typedef struct Config {
        /* [Limits] */
        unsigned targets;
        unsigned threads;     /* tracked at a time */
        unsigned processes;   /* known at a time, also those that are only named */
        unsigned resources;   /* known at a time */
        unsigned waits;       /* different (thread, resource, operation, waker) in a second */
        unsigned ran_instead; /* different (thread, process) in a second */
        unsigned connections; /* on private sockets */
        unsigned recordings;
} Config;

void config_defaults(Config *c);
/* Reads a file over what is set. Unknown keys and bad values are logged with file and line and left out. -ENOENT and
 * others from opening. */
int config_read(Config *c, const char *path);
/* Reads a file and then, in order of their names, the drop-ins: those in FILE.d that end in .conf; one of them must be there. */
int config_load(Config *c, const char *path);

/* A running prismd can change some limits; what the kernel side and the tables were made with needs a new start. */
bool config_restart_needed(const Config *now, const Config *wanted);
void config_apply(Config *now, const Config *wanted);
