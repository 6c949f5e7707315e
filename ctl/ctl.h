/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What all verbs share: the options that stand before or behind the verb, exit codes, and saying what went wrong. */
#pragma once

#include "arguments.h"

/* Exit codes; what a verb's function returns. */
enum {
        CTL_DONE = 0,
        CTL_FAILED = 1,
        CTL_USAGE = 2,
        CTL_NOTHING = 3, /* what was asked for is not there */
};

typedef struct Verb Verb;

typedef struct Ctl {
        const Verb *verb;      /* NULL until it is known */
        const char *address;   /* --address; NULL: not given */
        const char *state_dir; /* --state-dir */
        const char *db;        /* --db */
        bool json;
        bool no_legend;
        bool help, version;
} Ctl;

/* A verb's function prints its own errors and returns an exit code. argv starts behind the verb. */
struct Verb {
        const char *name;
        int (*run)(Ctl *ctl, int argc, char **argv);
        const char *synopsis; /* lines, without the program's name */
        const char *summary;
        const char *details; /* of the options; may be NULL */
};

int verb_status(Ctl *ctl, int argc, char **argv);
int verb_track(Ctl *ctl, int argc, char **argv);
int verb_untrack(Ctl *ctl, int argc, char **argv);
int verb_targets(Ctl *ctl, int argc, char **argv);
int verb_processes(Ctl *ctl, int argc, char **argv);
int verb_threads(Ctl *ctl, int argc, char **argv);
int verb_record(Ctl *ctl, int argc, char **argv);
int verb_run(Ctl *ctl, int argc, char **argv);
int verb_report(Ctl *ctl, int argc, char **argv);
int verb_query(Ctl *ctl, int argc, char **argv);
int verb_wait(Ctl *ctl, int argc, char **argv);

void verb_print_help(const Verb *v, FILE *f);

/* The next option of a verb, or 0 when there are no more. The common options are taken here. Below 0 the verb is to
 * return ctl_option_status(): --help was given (and printed), or the command line is wrong (and that was said). */
int ctl_next_option(Ctl *ctl, Arguments *a, const Option *options, size_t n_options);

static inline int ctl_option_status(int r) {
        return r == -ECANCELED ? CTL_DONE : r == -ENOMEM ? CTL_FAILED : CTL_USAGE;
}

/* Says one sentence on stderr, with control characters and invalid UTF-8 escaped, and yields `status`. */
int ctl_fail(int status, const char *format, ...) _printf_(2, 3);

/* The same for a sentence that a function returned; NULL: it failed without one, because of `error` (negative errno).
 */
int ctl_fail_with(int status, int error, const char *sentence);

int ctl_out_of_memory(void);

/* Whether all that was printed reached stdout; says so if not. */
int ctl_flush(int status);
