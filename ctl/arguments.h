/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The words of a command line, one after the other. Pure, and without the global state of getopt_long(), which also
 * takes the range -10m..-5m for an option: here a dash before a digit starts an operand. */
#pragma once

#include "store/basic/macro.h"

/* A long option of a verb, --name. `id` is above 0. */
typedef struct Option {
        const char *name;
        int id;
        bool takes_value;
} Option;

typedef struct Arguments {
        int argc;
        char **argv; /* borrowed */
        int next;
        const char *value; /* of the option returned last; NULL if it takes none */
        bool stop_at_operand;
        char **operands; /* what is not an option, in order; the strings are borrowed */
        int n_operands;
} Arguments;

/* `argv` has no program name. With stop_at_operand the first operand ends it: it and all that follows become operands.
 */
int arguments_init(Arguments *a, int argc, char **argv, bool stop_at_operand);
void arguments_done(Arguments *a);

/* The id of the next option in `options` or, failing that, in `more`; 0 when all words are taken. -EINVAL: not an
 * option, or a value is missing or too much, and *ret_error (malloc'd) says so. */
int arguments_next(Arguments *a, const Option *options, size_t n_options, const Option *more, size_t n_more,
                char **ret_error);
