/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sums are kept in hash tables here rather than by GROUP BY: the rows come in the order of time, so that SQLite would
 * have to sort each table, which costs more than reading it. */
#include "clip.h"
#include "shares.h"
#include "statement.h"

/* Keys are whole words: a multiplication and a fold for each spread them well, and cost less than hashing bytes. */
static inline unsigned hash_words(const void *key, size_t size) {
        uint64_t hash = size;

        for (size_t i = 0; i + sizeof(uint64_t) <= size; i += sizeof(uint64_t)) {
                uint64_t word;

                memcpy(&word, (const char *) key + i, sizeof(word));
                hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
                hash ^= hash >> 32;
        }
        return (unsigned) hash;
}

#define HASH_FUNCTION(key, size, result) ((result) = hash_words((key), (size)))
#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(entry) ((entry)->homeless = true)
#include <uthash.h>

/* Each object of the result starts the entry that makes it findable, so that the result's pointers free the entries. A
 * uthash insertion without memory leaves its entry `homeless`. */
#define ENTRY(name, type, key_type) \
        typedef struct name {       \
                type object;        \
                key_type key;       \
                bool homeless;      \
                UT_hash_handle hh;  \
        } name

typedef struct PairKey {
        int64_t thread_id, other_id;
} PairKey;

typedef struct WaitKey {
        int64_t thread_id, resource_id;
        const char *op; /* interned: equal words are one pointer */
} WaitKey;

typedef struct WakerKey {
        int64_t thread_id, resource_id, waker_id;
        const char *kind; /* interned */
} WakerKey;

ENTRY(ThreadEntry, SharesThread, int64_t);
ENTRY(ProcessEntry, SharesProcess, int64_t);
ENTRY(ResourceEntry, SharesResource, int64_t);
ENTRY(WaitEntry, SharesWait, WaitKey);
ENTRY(WakerEntry, SharesWaker, WakerKey);
ENTRY(InsteadEntry, SharesInstead, PairKey);

typedef struct Reader {
        Store *store;
        Shares *shares;
        const SharesOptions *options;
        char **ret_error;
        sqlite3_stmt *describe_thread, *describe_process, *describe_resource;
        ThreadEntry *threads;
        ProcessEntry *processes;
        ResourceEntry *resources;
        WaitEntry *waits;
        WakerEntry *wakers;
        InsteadEntry *instead;
        ThreadEntry *last_thread;
        size_t c_machines, c_threads, c_processes, c_resources, c_waits, c_wakers, c_instead, c_losses, c_words;
} Reader;

static void reader_done(Reader *r) {
        HASH_CLEAR(hh, r->threads);
        HASH_CLEAR(hh, r->processes);
        HASH_CLEAR(hh, r->resources);
        HASH_CLEAR(hh, r->waits);
        HASH_CLEAR(hh, r->wakers);
        HASH_CLEAR(hh, r->instead);
        sqlite3_finalize(r->describe_thread);
        sqlite3_finalize(r->describe_process);
        sqlite3_finalize(r->describe_resource);
}

Shares *shares_free(Shares *s) {
        if (!s)
                return NULL;

        for (size_t i = 0; i < s->n_machines; i++) {
                free(s->machines[i]->hostname);
                free(s->machines[i]->kernel);
                free(s->machines[i]);
        }
        for (size_t i = 0; i < s->n_processes; i++) {
                free(s->processes[i]->comm);
                free(s->processes[i]->cmdline);
                free(s->processes[i]->unit);
                free(s->processes[i]->target);
                free(s->processes[i]);
        }
        for (size_t i = 0; i < s->n_threads; i++) {
                free(s->threads[i]->comm);
                free(s->threads[i]);
        }
        for (size_t i = 0; i < s->n_resources; i++) {
                free(s->resources[i]->kind);
                free(s->resources[i]->ident);
                free(s->resources[i]->name);
                free(s->resources[i]);
        }
        for (size_t i = 0; i < s->n_waits; i++)
                free(s->waits[i]);
        for (size_t i = 0; i < s->n_wakers; i++)
                free(s->wakers[i]);
        for (size_t i = 0; i < s->n_instead; i++)
                free(s->instead[i]);
        for (size_t i = 0; i < s->n_losses; i++) {
                free(s->losses[i]->part);
                free(s->losses[i]->reason);
                free(s->losses[i]);
        }
        for (size_t i = 0; i < s->n_words; i++)
                free(s->words[i]);

        free(s->machines);
        free(s->processes);
        free(s->threads);
        free(s->resources);
        free(s->waits);
        free(s->wakers);
        free(s->instead);
        free(s->losses);
        free(s->words);
        free(s);
        return NULL;
}

void share_times_add(ShareTimes *sum, const ShareTimes *t) {
        sum->total_ns += t->total_ns;
        sum->run_ns += t->run_ns;
        sum->runqueue_ns += t->runqueue_ns;
        sum->sleep_ns += t->sleep_ns;
        sum->block_ns += t->block_ns;
        sum->iowait_ns += t->iowait_ns;
        sum->throttled_ns += t->throttled_ns;
        sum->healed_ns += t->healed_ns;
        sum->switches += t->switches;
        sum->preemptions += t->preemptions;
}

/* A copy of a column's text; NULL when it is NULL (*ret is NULL then too) is not an error. */
static int column_copy(sqlite3_stmt *q, int column, const char *instead_of_null, char **ret) {
        const char *text = (const char *) sqlite3_column_text(q, column);
        char *copy;

        if (!text)
                text = instead_of_null;
        if (!text) {
                *ret = NULL;
                return 0;
        }

        copy = strdup(text);
        if (!copy)
                return -ENOMEM;
        *ret = copy;
        return 0;
}

static uint64_t column_u64(sqlite3_stmt *q, int column) {
        int64_t v = sqlite3_column_int64(q, column);

        return v > 0 ? (uint64_t) v : 0;
}

/* There are as many different words as the kernel has system calls at most, and few of them are used. */
static int intern(Reader *r, const char *word, const char **ret) {
        Shares *s = r->shares;
        char *copy;

        if (!word)
                word = "";

        for (size_t i = 0; i < s->n_words; i++)
                if (streq(s->words[i], word)) {
                        *ret = s->words[i];
                        return 0;
                }

        if (GROW(s->words, s->n_words, r->c_words) < 0)
                return -ENOMEM;
        copy = strdup(word);
        if (!copy)
                return -ENOMEM;
        *ret = s->words[s->n_words++] = copy;
        return 0;
}

/* Makes a new entry, appends its object to an array of the result (which then owns it) and puts it into its table. */
#define ADD(reader, table, array, n, capacity, entry_type, key_value)              \
        ({                                                                         \
                entry_type *_entry_ = NULL;                                        \
                if (GROW((array), (n), (capacity)) >= 0)                           \
                        _entry_ = calloc(1, sizeof(entry_type));                   \
                if (_entry_) {                                                     \
                        (array)[(n)++] = &_entry_->object;                         \
                        _entry_->key = (key_value);                                \
                        HASH_ADD(hh, (table), key, sizeof(_entry_->key), _entry_); \
                        if (_entry_->homeless)                                     \
                                _entry_ = NULL;                                    \
                }                                                                  \
                _entry_;                                                           \
        })

static int get_machine(Reader *r, int64_t id) {
        _cleanup_(sqlite3_finalizep) sqlite3_stmt *q = NULL;
        Shares *s = r->shares;
        SharesMachine *m;
        int k;

        for (size_t i = 0; i < s->n_machines; i++)
                if (s->machines[i]->id == id)
                        return 0;

        k = statement_prepare(r->store, "SELECT hostname, kernel, cpus FROM machine WHERE id = ?1", &q, r->ret_error);
        if (k < 0)
                return k;
        sqlite3_bind_int64(q, 1, id);
        k = statement_step(r->store, q, r->ret_error);
        if (k <= 0)
                return k;

        if (GROW(s->machines, s->n_machines, r->c_machines) < 0)
                return -ENOMEM;
        m = calloc(1, sizeof(*m));
        if (!m)
                return -ENOMEM;
        s->machines[s->n_machines++] = m;

        m->id = id;
        m->cpus = (unsigned) sqlite3_column_int(q, 2);
        k = column_copy(q, 0, "?", &m->hostname);
        if (k < 0)
                return k;
        return column_copy(q, 1, "?", &m->kernel);
}

/* Binds an id to a kept description query, preparing it at first, and steps it. 1 when there is a row. */
static int describe(Reader *r, sqlite3_stmt **q, const char *sql, int64_t id) {
        int k;

        if (!*q) {
                k = statement_prepare(r->store, sql, q, r->ret_error);
                if (k < 0)
                        return k;
        }

        sqlite3_reset(*q);
        sqlite3_bind_int64(*q, 1, id);
        return statement_step(r->store, *q, r->ret_error);
}

static int get_process(Reader *r, int64_t id, SharesProcess **ret) {
        Shares *s = r->shares;
        ProcessEntry *e;
        SharesProcess *p;
        int k, found;

        HASH_FIND(hh, r->processes, &id, sizeof(id), e);
        if (e) {
                *ret = &e->object;
                return 0;
        }

        found = describe(r, &r->describe_process,
                        "SELECT machine_id, pid, host_pid, comm, cmdline, unit, target FROM process WHERE id = ?1", id);
        if (found < 0)
                return found;

        e = ADD(r, r->processes, s->processes, s->n_processes, r->c_processes, ProcessEntry, id);
        if (!e)
                return -ENOMEM;

        p = &e->object;
        p->id = id;
        if (found > 0) {
                p->machine_id = sqlite3_column_int64(r->describe_process, 0);
                p->pid = sqlite3_column_int64(r->describe_process, 1);
                p->host_pid = sqlite3_column_int64(r->describe_process, 2);

                k = column_copy(r->describe_process, 4, NULL, &p->cmdline);
                if (k < 0)
                        return k;
                k = column_copy(r->describe_process, 5, NULL, &p->unit);
                if (k < 0)
                        return k;
                k = column_copy(r->describe_process, 6, NULL, &p->target);
                if (k < 0)
                        return k;
                k = column_copy(r->describe_process, 3, "?", &p->comm);
                if (k < 0)
                        return k;
                k = get_machine(r, p->machine_id);
                if (k < 0)
                        return k;
        } else {
                p->comm = strdup("?");
                if (!p->comm)
                        return -ENOMEM;
        }

        *ret = p;
        return 0;
}

static int get_thread(Reader *r, int64_t id, SharesThread **ret) {
        Shares *s = r->shares;
        ThreadEntry *e;
        SharesThread *t;
        SharesProcess *process;
        int k, found;

        /* Rows of one thread often follow each other. */
        if (r->last_thread && r->last_thread->key == id) {
                *ret = &r->last_thread->object;
                return 0;
        }

        HASH_FIND(hh, r->threads, &id, sizeof(id), e);
        if (e) {
                r->last_thread = e;
                *ret = &e->object;
                return 0;
        }

        found = describe(
                        r, &r->describe_thread, "SELECT process_id, tid, host_tid, comm FROM thread WHERE id = ?1", id);
        if (found < 0)
                return found;
        k = get_process(r, found > 0 ? sqlite3_column_int64(r->describe_thread, 0) : 0, &process);
        if (k < 0)
                return k;

        e = ADD(r, r->threads, s->threads, s->n_threads, r->c_threads, ThreadEntry, id);
        if (!e)
                return -ENOMEM;

        t = &e->object;
        t->id = id;
        t->process = process;
        if (found > 0) {
                t->tid = sqlite3_column_int64(r->describe_thread, 1);
                t->host_tid = sqlite3_column_int64(r->describe_thread, 2);
                k = column_copy(r->describe_thread, 3, "?", &t->comm);
                if (k < 0)
                        return k;
        } else {
                t->comm = strdup("?");
                if (!t->comm)
                        return -ENOMEM;
        }

        r->last_thread = e;
        *ret = t;
        return 0;
}

static bool is_wanted(const Reader *r, const SharesThread *t) {
        const char *target = r->options->target;

        return !target || (t->process->target && streq(t->process->target, target));
}

static int get_resource(Reader *r, int64_t id, SharesResource **ret) {
        Shares *s = r->shares;
        ResourceEntry *e;
        SharesResource *o;
        int k, found;

        HASH_FIND(hh, r->resources, &id, sizeof(id), e);
        if (e) {
                *ret = &e->object;
                return 0;
        }

        found = describe(r, &r->describe_resource, "SELECT kind, ident, name FROM resource WHERE id = ?1", id);
        if (found < 0)
                return found;

        e = ADD(r, r->resources, s->resources, s->n_resources, r->c_resources, ResourceEntry, id);
        if (!e)
                return -ENOMEM;

        o = &e->object;
        o->id = id;
        if (found == 0) {
                o->kind = strdup("?");
                o->ident = strdup("?");
                if (!o->kind || !o->ident)
                        return -ENOMEM;
        } else {
                k = column_copy(r->describe_resource, 0, "?", &o->kind);
                if (k < 0)
                        return k;
                k = column_copy(r->describe_resource, 1, "?", &o->ident);
                if (k < 0)
                        return k;
                k = column_copy(r->describe_resource, 2, NULL, &o->name);
                if (k < 0)
                        return k;
        }

        *ret = o;
        return 0;
}

/* A query over the rows of a measurement table that reach into the range; its first two columns are ts_ns and dt_ns.
 * The bounds on the bare ts_ns are what the key's index can use. */
static int scan_begin(Reader *r, const char *table, const char *columns, sqlite3_stmt **ret) {
        Shares *s = r->shares;
        char sql[512];
        int k;

        snprintf(sql, sizeof(sql), "SELECT ts_ns, dt_ns, %s FROM %s WHERE ts_ns > ?1 AND ts_ns < ?2", columns, table);
        k = statement_prepare(r->store, sql, ret, r->ret_error);
        if (k < 0)
                return k;

        sqlite3_bind_int64(*ret, 1, s->start_ns);
        sqlite3_bind_int64(*ret, 2,
                        s->end_ns < INT64_MAX - CLIP_LONGEST_ROW_NS ? s->end_ns + CLIP_LONGEST_ROW_NS : INT64_MAX);
        return 0;
}

/* The next row that has a part in the range: 1, with *ret_clip; 0: no more. */
static int scan_next(Reader *r, sqlite3_stmt *q, Clip *ret_clip) {
        for (;;) {
                Clip c;
                int k;

                k = statement_step(r->store, q, r->ret_error);
                if (k <= 0)
                        return k;

                c = clip_row(sqlite3_column_int64(q, 0), sqlite3_column_int64(q, 1), r->shares->start_ns,
                                r->shares->end_ns);
                if (!clip_is_empty(c)) {
                        *ret_clip = c;
                        return 1;
                }
        }
}

static int read_thread_times(Reader *r) {
        _cleanup_(sqlite3_finalizep) sqlite3_stmt *q = NULL;
        Clip c;
        int k;

        k = scan_begin(r, "thread_time",
                        "thread_id, run_ns, runqueue_ns, sleep_ns, block_ns, iowait_ns, throttled_ns, healed_ns, "
                        "switches, preemptions",
                        &q);
        if (k < 0)
                return k;

        while ((k = scan_next(r, q, &c)) > 0) {
                SharesThread *t;

                k = get_thread(r, sqlite3_column_int64(q, 2), &t);
                if (k < 0)
                        return k;
                if (!is_wanted(r, t))
                        continue;

                share_times_add(&t->times,
                                &(ShareTimes){
                                                .total_ns = c.part,
                                                .run_ns = clip_value(c, column_u64(q, 3)),
                                                .runqueue_ns = clip_value(c, column_u64(q, 4)),
                                                .sleep_ns = clip_value(c, column_u64(q, 5)),
                                                .block_ns = clip_value(c, column_u64(q, 6)),
                                                .iowait_ns = clip_value(c, column_u64(q, 7)),
                                                .throttled_ns = clip_value(c, column_u64(q, 8)),
                                                .healed_ns = clip_value(c, column_u64(q, 9)),
                                                .switches = clip_value(c, column_u64(q, 10)),
                                                .preemptions = clip_value(c, column_u64(q, 11)),
                                });
        }
        return k;
}

static int read_waits(Reader *r) {
        _cleanup_(sqlite3_finalizep) sqlite3_stmt *q = NULL;
        Shares *s = r->shares;
        Clip c;
        int k;

        k = scan_begin(r, "wait",
                        r->options->histograms ? "thread_id, resource_id, op, count, total_ns, max_ns,"
                                                 " hist0, hist1, hist2, hist3, hist4, hist5, hist6, hist7"
                                               : "thread_id, resource_id, op, count, total_ns, max_ns",
                        &q);
        if (k < 0)
                return k;

        while ((k = scan_next(r, q, &c)) > 0) {
                WaitKey key = { .thread_id = sqlite3_column_int64(q, 2), .resource_id = sqlite3_column_int64(q, 3) };
                WaitEntry *e;
                SharesWait *w;
                SharesThread *t;

                k = get_thread(r, key.thread_id, &t);
                if (k < 0)
                        return k;
                if (!is_wanted(r, t))
                        continue;
                k = intern(r, (const char *) sqlite3_column_text(q, 4), &key.op);
                if (k < 0)
                        return k;

                HASH_FIND(hh, r->waits, &key, sizeof(key), e);
                if (!e) {
                        e = ADD(r, r->waits, s->waits, s->n_waits, r->c_waits, WaitEntry, key);
                        if (!e)
                                return -ENOMEM;
                        e->object.op = key.op;
                        e->object.thread = t;
                        k = get_resource(r, key.resource_id, &e->object.resource);
                        if (k < 0)
                                return k;
                }

                w = &e->object;
                w->count += clip_value(c, column_u64(q, 5));
                w->total_ns += clip_value(c, column_u64(q, 6));
                w->max_ns = MAX(w->max_ns, column_u64(q, 7));
                for (int i = 0; r->options->histograms && i < STORE_HISTOGRAM_BUCKETS; i++)
                        w->histogram[i] += clip_value(c, column_u64(q, 8 + i));
        }
        return k;
}

static int read_wakes(Reader *r) {
        _cleanup_(sqlite3_finalizep) sqlite3_stmt *q = NULL;
        Shares *s = r->shares;
        Clip c;
        int k;

        k = scan_begin(r, "wake", "thread_id, resource_id, waker_kind, waker_thread_id, count, total_ns", &q);
        if (k < 0)
                return k;

        while ((k = scan_next(r, q, &c)) > 0) {
                WakerKey key = {
                        .thread_id = sqlite3_column_int64(q, 2),
                        .resource_id = sqlite3_column_int64(q, 3),
                        .waker_id = sqlite3_column_int64(q, 5),
                };
                WakerEntry *e;
                SharesThread *t;

                k = get_thread(r, key.thread_id, &t);
                if (k < 0)
                        return k;
                if (!is_wanted(r, t))
                        continue;
                k = intern(r, (const char *) sqlite3_column_text(q, 4), &key.kind);
                if (k < 0)
                        return k;

                HASH_FIND(hh, r->wakers, &key, sizeof(key), e);
                if (!e) {
                        e = ADD(r, r->wakers, s->wakers, s->n_wakers, r->c_wakers, WakerEntry, key);
                        if (!e)
                                return -ENOMEM;
                        e->object.kind = key.kind;
                        e->object.waiter = t;
                        k = get_resource(r, key.resource_id, &e->object.resource);
                        if (k < 0)
                                return k;
                        if (key.waker_id != 0) {
                                k = get_thread(r, key.waker_id, &e->object.waker);
                                if (k < 0)
                                        return k;
                        }
                }

                e->object.count += clip_value(c, column_u64(q, 6));
                e->object.total_ns += clip_value(c, column_u64(q, 7));
        }
        return k;
}

static int read_instead(Reader *r) {
        _cleanup_(sqlite3_finalizep) sqlite3_stmt *q = NULL;
        Shares *s = r->shares;
        Clip c;
        int k;

        k = scan_begin(r, "ran_instead", "thread_id, process_id, total_ns", &q);
        if (k < 0)
                return k;

        while ((k = scan_next(r, q, &c)) > 0) {
                PairKey key = { .thread_id = sqlite3_column_int64(q, 2), .other_id = sqlite3_column_int64(q, 3) };
                uint64_t total_ns = clip_value(c, column_u64(q, 4));
                InsteadEntry *e;
                SharesThread *t;

                k = get_thread(r, key.thread_id, &t);
                if (k < 0)
                        return k;
                if (!is_wanted(r, t))
                        continue;

                t->instead_ns += total_ns;
                if (sqlite3_column_type(q, 3) == SQLITE_NULL) {
                        t->unnamed_ns += total_ns;
                        continue;
                }

                HASH_FIND(hh, r->instead, &key, sizeof(key), e);
                if (!e) {
                        e = ADD(r, r->instead, s->instead, s->n_instead, r->c_instead, InsteadEntry, key);
                        if (!e)
                                return -ENOMEM;
                        e->object.thread = t;
                        k = get_process(r, key.other_id, &e->object.process);
                        if (k < 0)
                                return k;
                }
                e->object.total_ns += total_ns;
        }
        return k;
}

static int read_losses(Reader *r) {
        _cleanup_(sqlite3_finalizep) sqlite3_stmt *q = NULL;
        Shares *s = r->shares;
        int k;

        k = statement_prepare(r->store,
                        "SELECT part, reason, sum(count) FROM loss WHERE ts_ns > ?1 AND ts_ns <= ?2"
                        " GROUP BY part, reason ORDER BY 3 DESC",
                        &q, r->ret_error);
        if (k < 0)
                return k;
        sqlite3_bind_int64(q, 1, s->start_ns);
        sqlite3_bind_int64(q, 2, s->end_ns);

        while ((k = statement_step(r->store, q, r->ret_error)) > 0) {
                SharesLoss *l;

                if (GROW(s->losses, s->n_losses, r->c_losses) < 0)
                        return -ENOMEM;
                l = calloc(1, sizeof(*l));
                if (!l)
                        return -ENOMEM;
                s->losses[s->n_losses++] = l;

                l->count = column_u64(q, 2);
                k = column_copy(q, 0, "?", &l->part);
                if (k < 0)
                        return k;
                k = column_copy(q, 1, "?", &l->reason);
                if (k < 0)
                        return k;
        }
        return k;
}

#define COMPARE(a, b) ((a) < (b) ? -1 : (a) > (b))

static int compare_times(const ShareTimes *a, const ShareTimes *b) {
        int k = COMPARE(b->total_ns > 0, a->total_ns > 0);

        if (k != 0)
                return k;
        k = COMPARE(share_times_active(b), share_times_active(a));
        return k != 0 ? k : COMPARE(b->total_ns, a->total_ns);
}

static int compare_processes(const void *a, const void *b) {
        const SharesProcess *x = *(SharesProcess *const *) a, *y = *(SharesProcess *const *) b;
        int k = compare_times(&x->times, &y->times);

        return k != 0 ? k : COMPARE(x->id, y->id);
}

static int compare_threads(const void *a, const void *b) {
        const SharesThread *x = *(SharesThread *const *) a, *y = *(SharesThread *const *) b;
        int k = compare_times(&x->times, &y->times);

        return k != 0 ? k : COMPARE(x->id, y->id);
}

static int compare_waits(const void *a, const void *b) {
        const SharesWait *x = *(SharesWait *const *) a, *y = *(SharesWait *const *) b;
        int k = COMPARE(y->total_ns, x->total_ns);

        if (k == 0)
                k = COMPARE(x->thread->id, y->thread->id);
        if (k == 0)
                k = COMPARE(x->resource->id, y->resource->id);
        return k != 0 ? k : strcmp(x->op, y->op);
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

static int compare_instead(const void *a, const void *b) {
        const SharesInstead *x = *(SharesInstead *const *) a, *y = *(SharesInstead *const *) b;
        int k = COMPARE(x->thread->id, y->thread->id);

        if (k == 0)
                k = COMPARE(y->total_ns, x->total_ns);
        return k != 0 ? k : COMPARE(x->process->id, y->process->id);
}

static void sort(void *array, size_t n, int (*compare)(const void *, const void *)) {
        if (n > 1)
                qsort(array, n, sizeof(void *), compare);
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

/* What can only be said when all rows are there: sums over threads, orders, who belongs to whom. */
static void conclude(Shares *s) {
        sort(s->wakers, s->n_wakers, compare_wakers);
        sort(s->instead, s->n_instead, compare_instead);
        sort(s->waits, s->n_waits, compare_waits);

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
        }

        for (size_t i = 0; i < s->n_threads; i++) {
                SharesThread *t = s->threads[i];

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

        sort(s->threads, s->n_threads, compare_threads);
        sort(s->processes, s->n_processes, compare_processes);
}

static int read_all(Reader *r) {
        int k;

        k = read_thread_times(r);
        if (k < 0)
                return k;
        k = read_waits(r);
        if (k < 0)
                return k;
        k = read_wakes(r);
        if (k < 0)
                return k;
        k = read_instead(r);
        if (k < 0)
                return k;
        return read_losses(r);
}

int shares_read(Store *store, int64_t start_ns, int64_t end_ns, const SharesOptions *options, Shares **ret,
                char **ret_error) {
        _cleanup_(shares_freep) Shares *s = NULL;
        _cleanup_(reader_done) Reader reader = { .store = store, .options = options, .ret_error = ret_error };
        int r;

        s = calloc(1, sizeof(*s));
        if (!s)
                return -ENOMEM;
        s->start_ns = start_ns;
        s->end_ns = end_ns;
        reader.shares = s;

        /* One view of all tables while prismd goes on writing. */
        if (sqlite3_exec(store_database(store), "BEGIN", NULL, NULL, NULL) != SQLITE_OK)
                return statement_error(store, ret_error);
        r = read_all(&reader);
        sqlite3_exec(store_database(store), "ROLLBACK", NULL, NULL, NULL);
        if (r < 0)
                return r;

        conclude(s);
        *ret = TAKE_PTR(s);
        return 0;
}

size_t shares_instead_of(const Shares *s, const SharesThread *t, SharesInstead *const **ret) {
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
