/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A hash table of pointers with linear probing, and the array of what it points to. */
#include "tally.h"

#define TALLY_FIRST_SLOTS 256

typedef struct TallySlot {
        TallyKey key;
        size_t number; /* of the object, from 1 on; 0: free */
} TallySlot;

static uint64_t hash(const TallyKey *key) {
        uint64_t h = 0;

        /* A multiplication and a fold for each word spread them well. */
        for (size_t i = 0; i < ELEMENTSOF(key->words); i++) {
                h = (h ^ key->words[i]) * UINT64_C(0x9e3779b97f4a7c15);
                h ^= h >> 32;
        }
        return h;
}

static bool is_equal(const TallyKey *a, const TallyKey *b) {
        return ((a->words[0] ^ b->words[0]) | (a->words[1] ^ b->words[1]) | (a->words[2] ^ b->words[2]) |
                               (a->words[3] ^ b->words[3])) == 0;
}

/* The slot of that key, or the free one where it belongs. There is always a free one. */
static TallySlot *find_slot(TallySlot *slots, size_t n_slots, const TallyKey *key) {
        size_t i = hash(key) & (n_slots - 1);

        while (slots[i].number > 0 && !is_equal(&slots[i].key, key))
                i = (i + 1) & (n_slots - 1);
        return slots + i;
}

static int grow(Tally *t) {
        size_t n_slots = t->n_slots > 0 ? t->n_slots * 2 : TALLY_FIRST_SLOTS;
        TallySlot *slots;

        slots = calloc(n_slots, sizeof(TallySlot));
        if (!slots)
                return -ENOMEM;
        for (size_t i = 0; i < t->n_slots; i++)
                if (t->slots[i].number > 0)
                        *find_slot(slots, n_slots, &t->slots[i].key) = t->slots[i];
        free(t->slots);
        t->slots = slots;
        t->n_slots = n_slots;
        return 0;
}

/* The number of the object, from 1 on; 0: there is none. Rows of one second come in the order of their keys, and so do those
 * of the next one: what followed on an object when it was made mostly follows on it again, which saves the look-up. */
static size_t find_number(Tally *t, const TallyKey *key) {
        size_t number;

        if (t->next < t->n && is_equal(t->keys + t->next, key))
                number = t->next + 1;
        else if (t->n_slots > 0)
                number = find_slot(t->slots, t->n_slots, key)->number;
        else
                return 0;

        if (number > 0)
                t->next = number < t->n ? number : 0;
        return number;
}

void *tally_find(Tally *t, const TallyKey *key) {
        size_t number = find_number(t, key);

        return number > 0 ? t->objects[number - 1] : NULL;
}

int tally_get(Tally *t, const TallyKey *key, void **ret) {
        size_t number = find_number(t, key);
        void *object;
        int r;

        if (number > 0) {
                *ret = t->objects[number - 1];
                return 0;
        }

        if (t->n >= t->n_slots / 2) {
                r = grow(t);
                if (r < 0)
                        return r;
        }
        if (GROW(t->objects, t->n, t->c_objects) < 0 || GROW(t->keys, t->n, t->c_keys) < 0)
                return -ENOMEM;
        object = calloc(1, t->object_size);
        if (!object)
                return -ENOMEM;

        t->objects[t->n] = object;
        t->keys[t->n] = *key;
        t->n++;
        *find_slot(t->slots, t->n_slots, key) = (TallySlot){ .key = *key, .number = t->n };
        t->next = 0;
        *ret = object;
        return 1;
}

void **tally_take(Tally *t, size_t *ret_n) {
        void **objects = TAKE_PTR(t->objects);

        *ret_n = t->n;
        t->n = 0;
        tally_done(t);
        return objects;
}

void tally_done(Tally *t) {
        for (size_t i = 0; i < t->n; i++)
                free(t->objects[i]);
        free(t->objects);
        free(t->keys);
        free(t->slots);
        *t = (Tally){ .object_size = t->object_size };
}
