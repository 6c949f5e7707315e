/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Options are looked up by their full name; nothing is abbreviated, so that new ones never change what a script means.
 */
#include "arguments.h"

int arguments_init(Arguments *a, int argc, char **argv, bool stop_at_operand) {
        char **operands = calloc((size_t) argc + 1, sizeof(char *));

        if (!operands)
                return -ENOMEM;

        *a = (Arguments){ .argc = argc, .argv = argv, .stop_at_operand = stop_at_operand, .operands = operands };
        return 0;
}

void arguments_done(Arguments *a) {
        free(a->operands);
        a->operands = NULL;
}

static bool is_operand(const char *word) {
        /* A lone dash, and what starts like a negative number or a moment before now. */
        return word[0] != '-' || word[1] == '\0' || (word[1] >= '0' && word[1] <= '9');
}

static const Option *find(const char *name, size_t length, const Option *options, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (strlen(options[i].name) == length && strncmp(options[i].name, name, length) == 0)
                        return options + i;
        return NULL;
}

static int complain(char **ret_error, const char *before, const char *word, const char *behind) {
        char *sentence;

        if (asprintf(&sentence, "%s %s%s", before, word, behind) < 0)
                return -ENOMEM;
        *ret_error = sentence;
        return -EINVAL;
}

int arguments_next(Arguments *a, const Option *options, size_t n_options, const Option *more, size_t n_more,
                char **ret_error) {
        while (a->next < a->argc) {
                const char *word = a->argv[a->next++], *name, *value;
                const Option *o;
                size_t length;

                if (is_operand(word)) {
                        a->operands[a->n_operands++] = (char *) word;
                        if (!a->stop_at_operand)
                                continue;
                } else if (!streq(word, "--")) {
                        if (streq(word, "-h"))
                                word = "--help";

                        name = startswith(word, "--");
                        if (!name)
                                return complain(ret_error, "unknown option", word, "");

                        value = strchr(name, '=');
                        length = value ? (size_t) (value - name) : strlen(name);
                        o = find(name, length, options, n_options);
                        if (!o)
                                o = find(name, length, more, n_more);
                        if (!o)
                                return complain(ret_error, "unknown option", word, "");

                        if (o->takes_value && !value && a->next >= a->argc)
                                return complain(ret_error, "option", word, " needs a value");
                        if (!o->takes_value && value)
                                return complain(ret_error, "no value can be given to", word, "");

                        a->value = !o->takes_value ? NULL : value ? value + 1 : a->argv[a->next++];
                        return o->id;
                }

                /* Behind "--", or behind the operand at which to stop, there are only operands. */
                while (a->next < a->argc)
                        a->operands[a->n_operands++] = a->argv[a->next++];
        }

        return 0;
}
