/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Objects of one type that rows add up into, each found by its key. Sums are kept so rather than by GROUP BY: the rows
 * come in the order of time, so that SQLite would have to sort each table, which costs more than reading it. Pure.
 *
 * Ownership: a Tally owns its objects until tally_take() hands them over; they never move. */
#pragma once

#include "store/basic/macro.h"

/* What makes an object unique: ids, or pointers to interned words; those not used are 0. */
typedef struct TallyKey {
        uint64_t words[4];
} TallyKey;

typedef struct Tally {
        size_t object_size;
        void **objects; /* in the order in which they were made */
        TallyKey *keys; /* of each */
        size_t n, c_objects, c_keys;
        size_t next;             /* the object that is tried first */
        struct TallySlot *slots; /* open addressing; at most half of them are used */
        size_t n_slots;          /* a power of two, or 0 */
} Tally;

#define TALLY(type)                         \
        (Tally) {                           \
                .object_size = sizeof(type) \
        }

/* NULL if there is none. */
void *tally_find(Tally *t, const TallyKey *key);

/* 0: *ret is the object of that key; 1: it has been made, all zero; -ENOMEM. */
int tally_get(Tally *t, const TallyKey *key, void **ret);

/* Hands over the array of the objects (NULL if there are none) and the objects themselves, to be freed one by one. */
void **tally_take(Tally *t, size_t *ret_n);

void tally_done(Tally *t);
