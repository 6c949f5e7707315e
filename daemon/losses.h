/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What was lost since start, by part and reason. Names are constants; there are few. */
#pragma once

#include "basic/macro.h"

#define LOSSES_MAX 64

typedef struct Loss {
        const char *part, *reason;
        uint64_t total;
        uint64_t reported; /* of it, already written to the store's `loss` table or at least tried to */
} Loss;

typedef struct Losses {
        Loss entries[LOSSES_MAX];
        size_t n;
} Losses;

void losses_count(Losses *l, const char *part, const char *reason, uint64_t count);
uint64_t losses_total(const Losses *l);
