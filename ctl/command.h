/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The command of `prismctl run`: a child that is held before it executes, so that it can be followed from its first
 * instruction. */
#pragma once

#include <sys/types.h>

#include "signals.h"

typedef struct Command {
        pid_t pid;             /* 0: none, or waited for */
        int go_fd, failure_fd; /* parent's ends */
        int status;            /* of waitpid() */
} Command;

#define COMMAND_NONE \
        { .go_fd = -1, .failure_fd = -1 }

/* The child gets the signal mask from before `signals`. */
int command_hold(Command *c, char *const *argv, const Signals *signals);
/* Lets it execute. A negative errno: it could not, has exited, and was waited for. */
int command_release(Command *c);
/* Whether it has ended; its status is kept then. Does not wait. */
bool command_has_ended(Command *c);
/* What a shell would return. */
int command_exit_code(const Command *c);
/* A held child ends without having executed; one that executes is left to itself. */
void command_done(Command *c);
