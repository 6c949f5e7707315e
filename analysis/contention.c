/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Groups waits and wakers by resource, by sorting copies of the arrays of pointers. */
#include "contention.h"

#include "order.h"

void contentions_done(Contentions *c) {
        for (size_t i = 0; i < c->n; i++) {
                for (size_t j = 0; j < c->items[i].n_wakers; j++)
                        free(c->items[i].wakers[j]);
                free(c->items[i].wakers);
        }
        free(c->items);
        *c = (Contentions){};
}

static int64_t waker_id(const SharesWaker *w) {
        return w->waker ? w->waker->id : 0;
}

static int compare_waits(const void *a, const void *b) {
        const SharesWait *x = *(SharesWait *const *) a, *y = *(SharesWait *const *) b;
        int k = COMPARE(x->resource->id, y->resource->id);

        return k != 0 ? k : COMPARE(x->thread->id, y->thread->id);
}

/* So that those of one resource, and in it those of one waker, stand together. */
static int compare_wakers(const void *a, const void *b) {
        const SharesWaker *x = *(SharesWaker *const *) a, *y = *(SharesWaker *const *) b;
        int k = COMPARE(x->resource->id, y->resource->id);

        if (k == 0)
                k = strcmp(x->kind, y->kind);
        return k != 0 ? k : COMPARE(waker_id(x), waker_id(y));
}

static int compare_totals(const void *a, const void *b) {
        const SharesWaker *x = *(SharesWaker *const *) a, *y = *(SharesWaker *const *) b;
        int k = COMPARE(y->total_ns, x->total_ns);

        return k != 0 ? k : compare_wakers(a, b);
}

static int compare_contentions(const void *a, const void *b) {
        const Contention *x = a, *y = b;
        int k = COMPARE(y->total_ns, x->total_ns);

        return k != 0 ? k : COMPARE(x->resource->id, y->resource->id);
}

/* A sorted copy of an array of pointers. */
static int sorted(const void *array, size_t n, int (*compare)(const void *, const void *), void **ret) {
        void *copy = calloc(n + 1, sizeof(void *));

        if (!copy)
                return -ENOMEM;
        if (n > 0) {
                memcpy(copy, array, n * sizeof(void *));
                qsort(copy, n, sizeof(void *), compare);
        }
        *ret = copy;
        return 0;
}

/* Merges the wakers of one resource, which stand from *position on, into the contention of it. */
static int take_wakers(Contention *c, SharesWaker *const *wakers, size_t n, size_t *position) {
        size_t capacity = 0;

        while (*position < n && wakers[*position]->resource->id < c->resource->id)
                (*position)++;

        for (; *position < n && wakers[*position]->resource == c->resource; (*position)++) {
                const SharesWaker *w = wakers[*position];
                SharesWaker *last = c->n_wakers > 0 ? c->wakers[c->n_wakers - 1] : NULL;

                if (!last || !streq(last->kind, w->kind) || last->waker != w->waker) {
                        if (GROW(c->wakers, c->n_wakers, capacity) < 0)
                                return -ENOMEM;
                        last = calloc(1, sizeof(*last));
                        if (!last)
                                return -ENOMEM;
                        last->resource = w->resource;
                        last->kind = w->kind;
                        last->waker = w->waker;
                        c->wakers[c->n_wakers++] = last;
                }
                last->count += w->count;
                last->total_ns += w->total_ns;
                c->wakers_total_ns += w->total_ns;
        }

        if (c->n_wakers > 1)
                qsort(c->wakers, c->n_wakers, sizeof(SharesWaker *), compare_totals);
        return 0;
}

int contentions_make(const Shares *s, Contentions *ret) {
        _cleanup_(contentions_done) Contentions made = {};
        _cleanup_free_ void *waits_copy = NULL, *wakers_copy = NULL;
        SharesWait **waits;
        size_t capacity = 0, position = 0;
        int r;

        r = sorted(s->waits, s->n_waits, compare_waits, &waits_copy);
        if (r < 0)
                return r;
        r = sorted(s->wakers, s->n_wakers, compare_wakers, &wakers_copy);
        if (r < 0)
                return r;

        waits = waits_copy;
        for (size_t i = 0; i < s->n_waits;) {
                const Thread *last_thread = NULL;
                Contention *c;

                if (GROW(made.items, made.n, capacity) < 0)
                        return -ENOMEM;
                c = made.items + made.n++;
                *c = (Contention){ .resource = waits[i]->resource, .process = waits[i]->thread->process };

                for (; i < s->n_waits && waits[i]->resource == c->resource; i++) {
                        if (waits[i]->thread != last_thread)
                                c->n_threads++;
                        last_thread = waits[i]->thread;
                        if (last_thread->process != c->process)
                                c->process = NULL;
                        c->count += waits[i]->count;
                        c->total_ns += waits[i]->total_ns;
                        c->max_ns = MAX(c->max_ns, waits[i]->max_ns);
                }

                r = take_wakers(c, wakers_copy, s->n_wakers, &position);
                if (r < 0)
                        return r;
        }

        if (made.n > 1)
                qsort(made.items, made.n, sizeof(Contention), compare_contentions);
        *ret = made;
        made = (Contentions){};
        return 0;
}
