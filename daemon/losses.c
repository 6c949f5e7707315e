/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "losses.h"

void losses_count(Losses *l, const char *part, const char *reason, uint64_t count) {
        if (count == 0)
                return;
        for (size_t i = 0; i < l->n; i++)
                if (streq(l->entries[i].part, part) && streq(l->entries[i].reason, reason)) {
                        l->entries[i].total += count;
                        return;
                }
        if (l->n == LOSSES_MAX) {
                /* More reasons than the program has: keep the sum right. */
                l->entries[LOSSES_MAX - 1].total += count;
                return;
        }
        l->entries[l->n++] = (Loss){ .part = part, .reason = reason, .total = count };
}

uint64_t losses_total(const Losses *l) {
        uint64_t total = 0;

        for (size_t i = 0; i < l->n; i++)
                total += l->entries[i].total;
        return total;
}
