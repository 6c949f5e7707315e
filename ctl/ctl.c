/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The common options and the one way in which errors are said. */
#include "ctl.h"

#include <stdarg.h>

#include "store/basic/text.h"

enum {
        OPTION_ADDRESS = 1000,
        OPTION_STATE_DIR,
        OPTION_DB,
        OPTION_JSON,
        OPTION_NO_LEGEND,
        OPTION_HELP,
        OPTION_VERSION,
};

static const Option common_options[] = {
        { "address", OPTION_ADDRESS, true },
        { "state-dir", OPTION_STATE_DIR, true },
        { "db", OPTION_DB, true },
        { "json", OPTION_JSON, false },
        { "no-legend", OPTION_NO_LEGEND, false },
        { "help", OPTION_HELP, false },
        { "version", OPTION_VERSION, false },
};

int ctl_next_option(Ctl *ctl, Arguments *a, const Option *options, size_t n_options) {
        for (;;) {
                _cleanup_free_ char *error = NULL;
                int id;

                id = arguments_next(a, options, n_options, common_options, ELEMENTSOF(common_options), &error);
                if (id == -EINVAL) {
                        ctl_fail(CTL_USAGE, "%s; see prismctl %s%s--help", error, ctl->verb ? ctl->verb->name : "",
                                        ctl->verb ? " " : "");
                        return id;
                }
                if (id < 0) {
                        ctl_out_of_memory();
                        return id;
                }

                switch (id) {
                case OPTION_ADDRESS:
                case OPTION_STATE_DIR:
                case OPTION_DB:
                        if (isempty(a->value)) {
                                ctl_fail(CTL_USAGE, "an address, a directory or a file cannot be empty");
                                return -EINVAL;
                        }
                        if (id == OPTION_ADDRESS)
                                ctl->address = a->value;
                        else if (id == OPTION_STATE_DIR)
                                ctl->state_dir = a->value;
                        else
                                ctl->db = a->value;
                        break;
                case OPTION_JSON:
                        ctl->json = true;
                        break;
                case OPTION_NO_LEGEND:
                        ctl->no_legend = true;
                        break;
                case OPTION_HELP:
                        ctl->help = true;
                        if (!ctl->verb)
                                break;
                        verb_print_help(ctl->verb, stdout);
                        return -ECANCELED;
                case OPTION_VERSION:
                        ctl->version = true;
                        if (!ctl->verb)
                                break;
                        printf("prismctl %s\n", PRISM_VERSION);
                        return -ECANCELED;
                default:
                        return id;
                }
        }
}

/* Makes a message safe to print. text_escape() doubles backslashes, which a person need not see: they are harmless. */
static char *make_safe(const char *message) {
        char *safe = text_escape(message), *out;

        if (!safe)
                return NULL;

        out = safe;
        for (const char *in = safe; *in; in++) {
                *out++ = *in;
                if (in[0] == '\\' && in[1] == '\\')
                        in++;
        }
        *out = '\0';
        return safe;
}

int ctl_fail(int status, const char *format, ...) {
        _cleanup_free_ char *message = NULL, *safe = NULL;
        va_list ap;
        int r;

        va_start(ap, format);
        r = vasprintf(&message, format, ap);
        va_end(ap);
        if (r < 0) {
                message = NULL;
                ctl_out_of_memory();
                return status;
        }

        safe = make_safe(message);
        if (!safe) {
                ctl_out_of_memory();
                return status;
        }

        /* Behind what was printed before it. */
        fflush(stdout);
        fprintf(stderr, "prismctl: %s\n", safe);
        return status;
}

int ctl_fail_with(int status, int error, const char *sentence) {
        if (sentence)
                return ctl_fail(status, "%s", sentence);
        if (error == -ENOMEM)
                return ctl_out_of_memory();
        return ctl_fail(status, "%s", strerror(-error));
}

int ctl_out_of_memory(void) {
        fputs("prismctl: out of memory\n", stderr);
        return CTL_FAILED;
}

int ctl_flush(int status) {
        errno = 0;
        if (fflush(stdout) == 0 && !ferror(stdout))
                return status;
        return ctl_fail(CTL_FAILED, "cannot write the output: %s", strerror(errno ? errno : EIO));
}
