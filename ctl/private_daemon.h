/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A prismd of prismctl's own, for `prismctl run` where none runs: in a directory that only this user can enter, gone
 * when it is done. */
#pragma once

#include <sys/types.h>

#include "signals.h"

typedef struct PrivateDaemon {
        pid_t pid; /* 0: not running */
        char *directory, *address, *database;
} PrivateDaemon;

/* Starts it and waits until it answers. A signal (not of a child) or 10 s without an answer end that: -EINTR,
 * -ETIMEDOUT. */
int private_daemon_start(PrivateDaemon *d, Signals *signals, char **ret_error);
/* Ends it and waits until it has closed its database, which stays. -EIO: it did not end well. */
int private_daemon_stop(PrivateDaemon *d);
/* Ends it if it runs and removes its directory. */
void private_daemon_done(PrivateDaemon *d);
