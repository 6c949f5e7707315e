/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Keys to row ids, by uthash. */
#include "keymap.h"

/* Out of memory is an error of one insertion, not the end of the program. The keys are numbers that the producer counts
 * or takes from addresses and times, so one multiplication spreads them. */
#define HASH_NONFATAL_OOM 1
#define HASH_FUNCTION(pointer, length, hash)                                        \
        do {                                                                        \
                uint64_t _key_;                                                     \
                memcpy(&_key_, (pointer), sizeof(_key_));                           \
                (hash) = (unsigned) ((_key_ * UINT64_C(0x9e3779b97f4a7c15)) >> 32); \
        } while (0)
#include <uthash.h>

struct KeyMapEntry {
        uint64_t key;
        int64_t id;
        int64_t previous_id;  /* 0: it was not there before `transaction` */
        unsigned transaction; /* the last one that changed it */
        UT_hash_handle hh;
};

void keymap_begin(KeyMap *m) {
        m->transaction++;
}

static void entry_remove(KeyMap *m, struct KeyMapEntry *e) {
        HASH_DEL(m->entries, e);
        free(e);
}

void keymap_rollback(KeyMap *m) {
        struct KeyMapEntry *e, *next;

        HASH_ITER(hh, m->entries, e, next) {
                if (e->transaction != m->transaction)
                        continue;
                if (e->previous_id == 0)
                        entry_remove(m, e);
                else
                        e->id = e->previous_id;
        }
}

int keymap_put(KeyMap *m, uint64_t key, int64_t id) {
        struct KeyMapEntry *e;

        HASH_FIND(hh, m->entries, &key, sizeof(key), e);
        if (!e) {
                e = calloc(1, sizeof(*e));
                if (!e)
                        return -ENOMEM;
                e->key = key;
                HASH_ADD(hh, m->entries, key, sizeof(e->key), e);
                if (!e->hh.tbl) {
                        free(e);
                        return -ENOMEM;
                }
                e->transaction = m->transaction;
        } else if (e->transaction != m->transaction) {
                e->previous_id = e->id;
                e->transaction = m->transaction;
        }

        e->id = id;
        return 0;
}

int64_t keymap_get(const KeyMap *m, uint64_t key) {
        struct KeyMapEntry *e;

        HASH_FIND(hh, m->entries, &key, sizeof(key), e);
        return e ? e->id : 0;
}

void keymap_clear(KeyMap *m) {
        struct KeyMapEntry *e, *next;

        HASH_ITER(hh, m->entries, e, next)
                entry_remove(m, e);
}
