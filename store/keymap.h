/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A map of the producer's keys to row ids that can take back what one transaction added. Private to store/. */
#pragma once

#include "basic/macro.h"

typedef struct KeyMap {
        struct KeyMapEntry *entries;
        unsigned transaction;
} KeyMap;

/* Starts a transaction: what keymap_put() changes from here on is what keymap_rollback() takes back. */
void keymap_begin(KeyMap *m);
void keymap_rollback(KeyMap *m);

int keymap_put(KeyMap *m, uint64_t key, int64_t id); /* 0 or -ENOMEM */
int64_t keymap_get(const KeyMap *m, uint64_t key);   /* 0 if the key is not there */
void keymap_clear(KeyMap *m);
