/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#define COMPILE_MEMORY_MAX (1024 * 1024)
#define MATCH_LIMIT 100000
#define HEAP_LIMIT_KIB 1024
#define NESTING_LIMIT 50

struct Pattern {
        pcre2_code *code;
        pcre2_match_context *context;
        pcre2_match_data *data;
        size_t allocated; /* while it is compiled */
};

/* Lets a pattern use so much memory and no more: nested repetitions multiply. */
static void *limited_malloc(size_t size, void *userdata) {
        Pattern *p = userdata;

        if (!p->code) {
                if (size > COMPILE_MEMORY_MAX - p->allocated)
                        return NULL;
                p->allocated += size;
        }
        return malloc(size);
}

static void limited_free(void *memory, void *userdata) {
        free(memory);
}

Pattern *pattern_free(Pattern *p) {
        if (!p)
                return NULL;
        pcre2_match_data_free(p->data);
        pcre2_match_context_free(p->context);
        pcre2_code_free(p->code);
        free(p);
        return NULL;
}

int pattern_new(const char *text, Pattern **ret, char **ret_error) {
        _cleanup_(pattern_freep) Pattern *p = NULL;
        pcre2_general_context *general;
        pcre2_compile_context *compile;
        size_t length = strlen(text), position = 0;
        int error = 0;

        if (length == 0 || length > PATTERN_LENGTH_MAX) {
                if (ret_error &&
                                asprintf(ret_error, "a command pattern has 1 to %d bytes, this one has %zu",
                                                PATTERN_LENGTH_MAX, length) < 0)
                        *ret_error = NULL;
                return -EINVAL;
        }
        p = calloc(1, sizeof(*p));
        if (!p)
                return -ENOMEM;

        general = pcre2_general_context_create(limited_malloc, limited_free, p);
        compile = pcre2_compile_context_create(general);
        p->context = pcre2_match_context_create(general);
        if (compile && p->context) {
                pcre2_set_parens_nest_limit(compile, NESTING_LIMIT);
                pcre2_set_match_limit(p->context, MATCH_LIMIT);
                pcre2_set_depth_limit(p->context, MATCH_LIMIT);
                pcre2_set_heap_limit(p->context, HEAP_LIMIT_KIB);
                p->code = pcre2_compile((PCRE2_SPTR) text, length,
                                PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_NEVER_BACKSLASH_C, &error, &position,
                                compile);
                if (p->code)
                        p->data = pcre2_match_data_create_from_pattern(p->code, NULL);
        }
        pcre2_compile_context_free(compile);
        pcre2_general_context_free(general);

        if (!p->code) {
                char message[256] = "out of memory";

                if (error)
                        pcre2_get_error_message(error, (PCRE2_UCHAR *) message, sizeof(message));
                if (ret_error &&
                                asprintf(ret_error, "the command pattern is not one that can be used: %s, at byte %zu",
                                                message, position) < 0)
                        *ret_error = NULL;
                return -EINVAL;
        }
        if (!p->data)
                return -ENOMEM;
        *ret = TAKE_PTR(p);
        return 0;
}

bool pattern_matches(const Pattern *p, const char *name) {
        return pcre2_match(p->code, (PCRE2_SPTR) name, strlen(name), 0, 0, p->data, p->context) >= 0;
}
