/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sorting arrays of pointers. */
#pragma once

#include "store/basic/macro.h"

/* As qsort() wants it. */
#define COMPARE(a, b) ((a) < (b) ? -1 : (a) > (b))

static inline void sort_pointers(void *array, size_t n, int (*compare)(const void *, const void *)) {
        if (n > 1)
                qsort(array, n, sizeof(void *), compare);
}

static inline void free_pointers(void *array, size_t n) {
        void **objects = array;

        for (size_t i = 0; i < n; i++)
                free(objects[i]);
        free(objects);
}
