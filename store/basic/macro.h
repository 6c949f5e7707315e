/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The C manner of this project in a few macros: cleanup attributes, ownership transfer, array helpers.
 * store/basic/ holds what prismd and prismctl share beside the database. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define _cleanup_(f) __attribute__((cleanup(f)))
#define _printf_(a, b) __attribute__((format(printf, a, b)))
#define _unused_ __attribute__((unused))

#define ELEMENTSOF(x) (sizeof(x) / sizeof((x)[0]))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

#define NSEC_PER_SEC UINT64_C(1000000000)
#define NSEC_PER_MSEC UINT64_C(1000000)
#define NSEC_PER_USEC UINT64_C(1000)
#define USEC_PER_SEC UINT64_C(1000000)

/* Hands a pointer over: yields its value and leaves NULL behind, so that its cleanup does nothing. */
#define TAKE_PTR(pointer)                            \
        ({                                           \
                typeof(pointer) _taken_ = (pointer); \
                (pointer) = NULL;                    \
                _taken_;                             \
        })

#define TAKE_FD(fd)                 \
        ({                          \
                int _taken_ = (fd); \
                (fd) = -1;          \
                _taken_;            \
        })

/* Defines the function that _cleanup_(FUNCp) names, for a destructor that takes a pointer. */
#define DEFINE_CLEANUP(type, function)                  \
        static inline void function##p(type *pointer) { \
                if (*pointer)                           \
                        function(*pointer);             \
        }                                               \
        struct _needs_a_semicolon_

static inline void freep(void *pointer) {
        free(*(void **) pointer);
}

static inline void closep(int *fd) {
        if (*fd >= 0)
                close(*fd);
}

DEFINE_CLEANUP(FILE *, fclose);

#define _cleanup_free_ _cleanup_(freep)
#define _cleanup_close_ _cleanup_(closep)
#define _cleanup_fclose_ _cleanup_(fclosep)

static inline bool streq(const char *a, const char *b) {
        return strcmp(a, b) == 0;
}

/* The part of `s` after `prefix`, or NULL if it does not start with it. */
static inline const char *startswith(const char *s, const char *prefix) {
        size_t n = strlen(prefix);

        return strncmp(s, prefix, n) == 0 ? s + n : NULL;
}

static inline bool isempty(const char *s) {
        return !s || s[0] == '\0';
}

/* Makes room for one more element behind `n` in a growing array; 0 or -ENOMEM. `capacity` counts elements. */
#define GROW(array, n, capacity)                                                  \
        ({                                                                        \
                int _r_ = 0;                                                      \
                if ((n) >= (capacity)) {                                          \
                        size_t _c_ = (capacity) ? (capacity) *2 : 16;             \
                        void *_p_ = reallocarray((array), _c_, sizeof(*(array))); \
                        if (_p_) {                                                \
                                (array) = _p_;                                    \
                                (capacity) = _c_;                                 \
                        } else                                                    \
                                _r_ = -ENOMEM;                                    \
                }                                                                 \
                _r_;                                                              \
        })
