/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* analysis/tally.c: every key has its object, in whatever order they come. */
#include "analysis/tally.h"

#include "../unit.h"

#define KEYS 5000

static TallyKey make_key(uint64_t i) {
        /* They differ in one word or another, and in high bits. */
        return (TallyKey){ { i % 7, i << 40, 0, i / 7 } };
}

static void count(Tally *t, uint64_t i, bool expected_new) {
        const TallyKey key = make_key(i);
        void *object = NULL;

        ck_assert_int_eq(tally_get(t, &key, &object), expected_new);
        ck_assert_uint_eq(*(uint64_t *) object, expected_new ? 0 : i + 1);
        *(uint64_t *) object = i + 1;
        ck_assert_ptr_eq(tally_find(t, &key), object);
}

START_TEST(test_orders) {
        _cleanup_(tally_done) Tally t = TALLY(uint64_t);
        const TallyKey missing = make_key(KEYS);

        ck_assert_ptr_null(tally_find(&t, &missing));
        for (uint64_t i = 0; i < KEYS; i++)
                count(&t, i, true);
        ck_assert_uint_eq(t.n, KEYS);

        /* As it was made, with gaps, backwards, and each twice. */
        for (uint64_t i = 0; i < KEYS; i++)
                count(&t, i, false);
        for (uint64_t i = 0; i < KEYS; i += 3)
                count(&t, i, false);
        for (uint64_t i = KEYS; i > 0; i--)
                count(&t, i - 1, false);
        for (uint64_t i = 0; i < KEYS; i++) {
                count(&t, i, false);
                count(&t, i, false);
        }
        ck_assert_ptr_null(tally_find(&t, &missing));
        ck_assert_uint_eq(t.n, KEYS);
}
END_TEST

START_TEST(test_take) {
        _cleanup_(tally_done) Tally t = TALLY(uint64_t);
        void **objects;
        size_t n = 7;

        ck_assert_ptr_null(tally_take(&t, &n));
        ck_assert_uint_eq(n, 0);

        for (uint64_t i = 0; i < 3; i++)
                count(&t, i, true);
        objects = tally_take(&t, &n);
        ck_assert_uint_eq(n, 3);
        for (uint64_t i = 0; i < 3; i++) {
                ck_assert_uint_eq(*(uint64_t *) objects[i], i + 1);
                free(objects[i]);
        }
        free(objects);

        /* It can be used again. */
        count(&t, 1, true);
        ck_assert_uint_eq(t.n, 1);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("tally");
        TCase *c = tcase_create("tally");

        tcase_add_test(c, test_orders);
        tcase_add_test(c, test_take);
        suite_add_tcase(suite, c);
        return run_suite(suite);
}
