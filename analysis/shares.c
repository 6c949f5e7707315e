/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* First each table is added up in its own Tally, then what belongs together is sorted together. */
#include "shares.h"

#include "order.h"
#include "scan.h"

typedef struct Counting {
        Tally waits, wakers, watched, instead;
} Counting;

static void counting_done(Counting *c) {
        tally_done(&c->waits);
        tally_done(&c->wakers);
        tally_done(&c->watched);
        tally_done(&c->instead);
}

Shares *shares_free(Shares *s) {
        if (!s)
                return NULL;

        free_pointers(s->waits, s->n_waits);
        free_pointers(s->wakers, s->n_wakers);
        free_pointers(s->watched, s->n_watched);
        free_pointers(s->instead, s->n_instead);
        free(s->processes);
        free(s->threads);
        free(s->losses);
        free(s);
        return NULL;
}

static int find_times(Reading *r, const ScanRow *row, void *userdata, void **ret) {
        row->thread->times.total_ns += row->clip.part;
        *ret = &row->thread->times;
        return 0;
}

static int find_wait(Reading *r, const ScanRow *row, void *userdata, void **ret) {
        Counting *c = userdata;
        void *object;
        SharesWait *w;
        const char *op;
        int k;

        k = scan_word(r, row, 2, &op);
        if (k < 0)
                return k;
        k = tally_get(&c->waits,
                        &(TallyKey){ { (uint64_t) row->thread->id, (uint64_t) scan_id(row, 1), (uintptr_t) op } },
                        &object);
        if (k < 0)
                return k;
        w = object;
        if (k > 0) {
                w->thread = row->thread;
                w->op = op;
                k = reading_resource(r, scan_id(row, 1), &w->resource, row->ret_error);
                if (k < 0)
                        return k;
        }
        *ret = w;
        return 0;
}

static int find_waker(Reading *r, const ScanRow *row, void *userdata, void **ret) {
        int64_t resource_id = scan_id(row, 1), waker_id = scan_id(row, 3);
        Counting *c = userdata;
        void *object;
        SharesWaker *w;
        const char *kind;
        int k;

        k = scan_word(r, row, 2, &kind);
        if (k < 0)
                return k;
        k = tally_get(&c->wakers,
                        &(TallyKey){ { (uint64_t) row->thread->id, (uint64_t) resource_id, (uintptr_t) kind,
                                        (uint64_t) waker_id } },
                        &object);
        if (k < 0)
                return k;
        w = object;
        if (k > 0) {
                w->waiter = row->thread;
                w->kind = kind;
                k = reading_resource(r, resource_id, &w->resource, row->ret_error);
                if (k >= 0 && waker_id != 0)
                        k = reading_thread(r, waker_id, &w->waker, row->ret_error);
                if (k < 0)
                        return k;
        }
        *ret = w;
        return 0;
}

/* Parts of a wait that was left out belong to nothing. */
static int find_watched(Reading *r, const ScanRow *row, void *userdata, void **ret) {
        int64_t resource_id = scan_id(row, 1), watched_id = scan_id(row, 3);
        Counting *c = userdata;
        SharesWatched *w;
        SharesWait *wait;
        const char *op;
        void *object;
        int k;

        k = scan_word(r, row, 2, &op);
        if (k < 0)
                return k;
        wait = tally_find(&c->waits,
                        &(TallyKey){ { (uint64_t) row->thread->id, (uint64_t) resource_id, (uintptr_t) op } });
        if (!wait)
                return 0;

        k = tally_get(&c->watched, &(TallyKey){ { (uintptr_t) wait, (uint64_t) watched_id } }, &object);
        if (k < 0)
                return k;
        w = object;
        if (k > 0) {
                w->wait = wait;
                if (watched_id != 0) {
                        k = reading_resource(r, watched_id, &w->watched, row->ret_error);
                        if (k < 0)
                                return k;
                }
        }
        *ret = w;
        return 0;
}

static int find_instead(Reading *r, const ScanRow *row, void *userdata, void **ret) {
        uint64_t total_ns = clip_value(row->clip, scan_value(row, 2));
        Counting *c = userdata;
        SharesInstead *o;
        void *object;
        int k;

        row->thread->instead_ns += total_ns;
        if (scan_is_null(row, 1)) {
                row->thread->unnamed_ns += total_ns;
                return 0;
        }

        k = tally_get(&c->instead, &(TallyKey){ { (uint64_t) row->thread->id, (uint64_t) scan_id(row, 1) } }, &object);
        if (k < 0)
                return k;
        o = object;
        if (k > 0) {
                o->thread = row->thread;
                k = reading_process(r, scan_id(row, 1), &o->process, row->ret_error);
                if (k < 0)
                        return k;
        }
        *ret = o;
        return 0;
}

static const ScanColumn time_columns[] = {
        SCAN_COLUMN(ShareTimes, run_ns),
        SCAN_COLUMN(ShareTimes, runqueue_ns),
        SCAN_COLUMN(ShareTimes, sleep_ns),
        SCAN_COLUMN(ShareTimes, block_ns),
        SCAN_COLUMN(ShareTimes, iowait_ns),
        SCAN_COLUMN(ShareTimes, throttled_ns),
        SCAN_COLUMN(ShareTimes, healed_ns),
        SCAN_COLUMN(ShareTimes, switches),
        SCAN_COLUMN(ShareTimes, preemptions),
};
static const ScanColumn wait_columns[] = {
        SCAN_COLUMN(SharesWait, count),
        SCAN_COLUMN(SharesWait, total_ns),
        SCAN_COLUMN_MAXIMUM(SharesWait, max_ns),
        SCAN_HISTOGRAM(SharesWait),
};
static const ScanColumn waker_columns[] = {
        SCAN_COLUMN(SharesWaker, count),
        SCAN_COLUMN(SharesWaker, total_ns),
};
static const ScanColumn watched_columns[] = {
        SCAN_COLUMN(SharesWatched, count),
        SCAN_COLUMN(SharesWatched, total_ns),
};
static const ScanColumn instead_columns[] = {
        SCAN_COLUMN(SharesInstead, total_ns),
};

static int scan_all(Reading *r, bool histograms, Counting *c, char **ret_error) {
        const Scan scans[] = {
                { "thread_time", "thread_id", 1, true, time_columns, ELEMENTSOF(time_columns), find_times },
                { "wait", "thread_id, resource_id, op", 3, true, wait_columns,
                                ELEMENTSOF(wait_columns) - (histograms ? 0 : STORE_HISTOGRAM_BUCKETS), find_wait },
                { "wake", "thread_id, resource_id, waker_kind, waker_thread_id", 4, true, waker_columns,
                                ELEMENTSOF(waker_columns), find_waker },
                { "mux_wait", "thread_id, resource_id, op, watched_id", 4, true, watched_columns,
                                ELEMENTSOF(watched_columns), find_watched },
                { "ran_instead", "thread_id, process_id", 2, true, instead_columns, ELEMENTSOF(instead_columns),
                                find_instead },
        };

        for (size_t i = 0; i < ELEMENTSOF(scans); i++) {
                int k = scan(r, scans + i, c, ret_error);

                if (k < 0)
                        return k;
        }
        return 0;
}

static int read_losses(Reading *r, Shares *s, char **ret_error) {
        _cleanup_(sqlite3_finalizep) sqlite3_stmt *q = NULL;
        size_t capacity = 0;
        int k;

        k = statement_prepare(r->store,
                        "SELECT part, reason, sum(count) FROM loss WHERE ts_ns > ?1 AND ts_ns <= ?2"
                        " GROUP BY part, reason ORDER BY 3 DESC",
                        &q, ret_error);
        if (k < 0)
                return k;
        sqlite3_bind_int64(q, 1, r->start_ns);
        sqlite3_bind_int64(q, 2, r->end_ns);

        while ((k = statement_step(r->store, q, ret_error)) > 0) {
                SharesLoss *l;

                if (GROW(s->losses, s->n_losses, capacity) < 0)
                        return -ENOMEM;
                l = s->losses + s->n_losses++;
                *l = (SharesLoss){ .count = (uint64_t) sqlite3_column_int64(q, 2) };
                k = reading_word(r, (const char *) sqlite3_column_text(q, 0), &l->part);
                if (k < 0)
                        return k;
                k = reading_word(r, (const char *) sqlite3_column_text(q, 1), &l->reason);
                if (k < 0)
                        return k;
        }
        return k;
}

static int compare_times(const ShareTimes *a, const ShareTimes *b) {
        int k = COMPARE(b->total_ns > 0, a->total_ns > 0);

        if (k != 0)
                return k;
        k = COMPARE(share_times_active(b), share_times_active(a));
        return k != 0 ? k : COMPARE(b->total_ns, a->total_ns);
}

static int compare_processes(const void *a, const void *b) {
        const Process *x = *(Process *const *) a, *y = *(Process *const *) b;
        int k = compare_times(&x->times, &y->times);

        return k != 0 ? k : COMPARE(x->id, y->id);
}

static int compare_threads(const void *a, const void *b) {
        const Thread *x = *(Thread *const *) a, *y = *(Thread *const *) b;
        int k = compare_times(&x->times, &y->times);

        return k != 0 ? k : COMPARE(x->id, y->id);
}

static int compare_two_waits(const SharesWait *x, const SharesWait *y) {
        int k = COMPARE(y->total_ns, x->total_ns);

        if (k == 0)
                k = COMPARE(x->thread->id, y->thread->id);
        if (k == 0)
                k = COMPARE(x->resource->id, y->resource->id);
        return k != 0 ? k : strcmp(x->op, y->op);
}

static int compare_waits(const void *a, const void *b) {
        return compare_two_waits(*(SharesWait *const *) a, *(SharesWait *const *) b);
}

static int compare_waker_owners(const SharesWaker *x, int64_t thread_id, int64_t resource_id) {
        int k = COMPARE(x->waiter->id, thread_id);

        return k != 0 ? k : COMPARE(x->resource->id, resource_id);
}

static int compare_wakers(const void *a, const void *b) {
        const SharesWaker *x = *(SharesWaker *const *) a, *y = *(SharesWaker *const *) b;
        int k = compare_waker_owners(x, y->waiter->id, y->resource->id);

        if (k == 0)
                k = COMPARE(y->total_ns, x->total_ns);
        if (k == 0)
                k = COMPARE(y->count, x->count);
        if (k == 0)
                k = strcmp(x->kind, y->kind);
        return k != 0 ? k : COMPARE(x->waker ? x->waker->id : 0, y->waker ? y->waker->id : 0);
}

static int compare_watched(const void *a, const void *b) {
        const SharesWatched *x = *(SharesWatched *const *) a, *y = *(SharesWatched *const *) b;
        int k = x->wait == y->wait ? 0 : compare_two_waits(x->wait, y->wait);

        if (k == 0)
                k = COMPARE(y->total_ns, x->total_ns);
        return k != 0 ? k : COMPARE(x->watched ? x->watched->id : 0, y->watched ? y->watched->id : 0);
}

static int compare_instead(const void *a, const void *b) {
        const SharesInstead *x = *(SharesInstead *const *) a, *y = *(SharesInstead *const *) b;
        int k = COMPARE(x->thread->id, y->thread->id);

        if (k == 0)
                k = COMPARE(y->total_ns, x->total_ns);
        return k != 0 ? k : COMPARE(x->process->id, y->process->id);
}

/* The first waker of a thread and resource in the sorted array, or n_wakers. */
static size_t find_wakers(const Shares *s, int64_t thread_id, int64_t resource_id) {
        size_t low = 0, high = s->n_wakers;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (compare_waker_owners(s->wakers[middle], thread_id, resource_id) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static void conclude_waits(Shares *s) {
        size_t next_watched = 0;

        for (size_t i = 0; i < s->n_waits; i++) {
                SharesWait *w = s->waits[i];
                size_t first = find_wakers(s, w->thread->id, w->resource->id);

                w->thread->waited_ns += w->total_ns;
                if (!w->thread->top_wait) /* most time first */
                        w->thread->top_wait = w;

                w->wakers = s->wakers ? s->wakers + first : NULL;
                for (size_t j = first; j < s->n_wakers; j++) {
                        if (compare_waker_owners(s->wakers[j], w->thread->id, w->resource->id) != 0)
                                break;
                        w->n_wakers++;
                        w->wakers_total_ns += s->wakers[j]->total_ns;
                }

                w->watched = s->watched ? s->watched + next_watched : NULL;
                for (; next_watched < s->n_watched && s->watched[next_watched]->wait == w; next_watched++)
                        w->n_watched++;
        }
}

static void *copy_pointers(const Tally *t) {
        void *copy = calloc(t->n + 1, sizeof(void *));

        if (copy && t->n > 0)
                memcpy(copy, t->objects, t->n * sizeof(void *));
        return copy;
}

/* What can only be said when all rows are there: sums over threads, orders, who belongs to whom. */
static int conclude(Reading *r, Counting *c, Shares *s) {
        s->waits = (SharesWait **) tally_take(&c->waits, &s->n_waits);
        s->wakers = (SharesWaker **) tally_take(&c->wakers, &s->n_wakers);
        s->watched = (SharesWatched **) tally_take(&c->watched, &s->n_watched);
        s->instead = (SharesInstead **) tally_take(&c->instead, &s->n_instead);

        s->threads = copy_pointers(&r->threads);
        s->processes = copy_pointers(&r->processes);
        if (!s->threads || !s->processes)
                return -ENOMEM;
        s->n_threads = r->threads.n;
        s->n_processes = r->processes.n;

        sort_pointers(s->wakers, s->n_wakers, compare_wakers);
        sort_pointers(s->instead, s->n_instead, compare_instead);
        sort_pointers(s->waits, s->n_waits, compare_waits);
        sort_pointers(s->watched, s->n_watched, compare_watched);
        conclude_waits(s);

        for (size_t i = 0; i < s->n_threads; i++) {
                Thread *t = s->threads[i];

                if (t->times.total_ns == 0)
                        continue;
                share_times_add(&t->process->times, &t->times);
                t->process->n_threads++;
                share_times_add(&s->times, &t->times);
                s->n_timed_threads++;
        }
        for (size_t i = 0; i < s->n_processes; i++)
                if (s->processes[i]->n_threads > 0)
                        s->n_timed_processes++;

        sort_pointers(s->threads, s->n_threads, compare_threads);
        sort_pointers(s->processes, s->n_processes, compare_processes);
        return 0;
}

int shares_read(Reading *r, bool histograms, Shares **ret, char **ret_error) {
        _cleanup_(counting_done) Counting counting = {
                .waits = TALLY(SharesWait),
                .wakers = TALLY(SharesWaker),
                .watched = TALLY(SharesWatched),
                .instead = TALLY(SharesInstead),
        };
        _cleanup_(shares_freep) Shares *s = NULL;
        int k;

        s = calloc(1, sizeof(*s));
        if (!s)
                return -ENOMEM;
        s->start_ns = r->start_ns;
        s->end_ns = r->end_ns;

        k = scan_all(r, histograms, &counting, ret_error);
        if (k < 0)
                return k;
        k = read_losses(r, s, ret_error);
        if (k < 0)
                return k;
        k = conclude(r, &counting, s);
        if (k < 0)
                return k;

        *ret = TAKE_PTR(s);
        return 0;
}

size_t shares_instead_of(const Shares *s, const Thread *t, SharesInstead *const **ret) {
        size_t low = 0, high = s->n_instead, n = 0;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (s->instead[middle]->thread->id < t->id)
                        low = middle + 1;
                else
                        high = middle;
        }
        while (low + n < s->n_instead && s->instead[low + n]->thread == t)
                n++;

        *ret = s->instead ? s->instead + low : NULL;
        return n;
}
