/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Waits that ended, who ended them, and who ran instead: from the kernel side's maps to rows. */
#include "collector-internal.h"
#include "describe.h"
#include "names.h"

Process *observed_process(Collector *c, uint32_t tgid, uint64_t start_ns, uint32_t user_tgid, const char *comm) {
        Identity id = { .start_boot_ns = start_ns, .number = tgid };
        char name[PRISM_COMM_LENGTH + 1] = {};
        Process *p;

        memcpy(name, comm, PRISM_COMM_LENGTH);
        p = registry_process(c->registry, &id);
        if (p) {
                /* One that is followed tells its name itself. */
                if (p->observed && *name && !streq(p->comm, name)) {
                        snprintf(p->comm, sizeof(p->comm), "%s", name);
                        process_refresh(p);
                }
                return p;
        }
        return process_observe(c, &id, user_tgid, name);
}

void collect_inline_insteads(Collector *c, Thread *t, const struct prism_thread_time *row) {
        emit_ran_instead(c, t, row->from_ns, row->until_ns, t->process, row->own_ns);
        for (unsigned i = 0; i < PRISM_INLINE_INSTEADS; i++) {
                const struct prism_instead_inline *e = &row->insteads[i];

                if (e->task)
                        emit_ran_instead(c, t, row->from_ns, row->until_ns,
                                        observed_process(c, e->tgid, e->process_start_ns, e->user_tgid, e->comm),
                                        e->total_ns);
        }
}

/* The thread that ended a wait. One that is not tracked is entered as observed, with what the kernel side saw of it. NULL if
 * it cannot be named: there is no room, or it came and went while there was none. */
static Thread *waker_of(Collector *c, const struct prism_wait_key *key, const struct prism_wait_value *value) {
        Identity id = { .start_boot_ns = key->waker, .number = key->waker_tid };
        Identity process_id = { .start_boot_ns = value->waker_process_start_ns, .number = value->waker_tgid };
        Thread *t;
        Process *p;

        if (key->waker_tid == 0)
                return registry_thread_by_handle(c->registry, key->waker);
        t = registry_thread(c->registry, &id);
        if (t)
                return t;
        p = registry_process(c->registry, &process_id);
        if (!p)
                p = process_observe(c, &process_id, value->waker_user_tgid, value->waker_comm);
        if (!p)
                return NULL;
        t = registry_add_thread(c->registry, &id, 0, p);
        if (!t) {
                note_failure(c, -ENOMEM);
                return NULL;
        }
        t->tid = value->waker_user_tid;
        snprintf(t->comm, sizeof(t->comm), "%s", value->waker_comm);
        return t;
}

/* Who ended it, and which watched file, are not part of what a row is for. */
typedef struct WaitEntry {
        const struct prism_wait_key *key;
        const struct prism_wait_value *value;
} WaitEntry;

static int compare_waits(const void *a, const void *b) {
        const struct prism_wait_key *x = ((const WaitEntry *) a)->key, *y = ((const WaitEntry *) b)->key;

        if (x->thread != y->thread)
                return x->thread < y->thread ? -1 : 1;
        return memcmp(&x->resource, &y->resource, sizeof(x->resource));
}

/* By the watched file within a row, so that each is written once. */
static int compare_waits_and_files(const void *a, const void *b) {
        const struct prism_wait_key *x = ((const WaitEntry *) a)->key, *y = ((const WaitEntry *) b)->key;
        int r = compare_waits(a, b);

        if (r != 0)
                return r;
        if (x->via_kind != y->via_kind)
                return x->via_kind < y->via_kind ? -1 : 1;
        if (x->via_space != y->via_space)
                return x->via_space < y->via_space ? -1 : 1;
        return x->via_address < y->via_address ? -1 : x->via_address > y->via_address;
}

static void emit_wake(Collector *c, Thread *t, Resource *resource, const WaitEntry *e) {
        Thread *waker = NULL;
        BatchWake row;

        if (e->key->waker_kind == PRISM_WAKER_THREAD) {
                waker = waker_of(c, e->key, e->value);
                if (waker)
                        waker->used_ns = waker->process->used_ns = t->row_until_ns;
        }
        row = (BatchWake){
                .ts_ns = clock_unix(&c->clock, t->row_until_ns),
                .dt_ns = (int64_t) (t->row_until_ns - t->row_from_ns),
                .waker_thread_key = waker ? waker->key : 0,
                .waker_kind = waker_kind_name(waker || e->key->waker_kind != PRISM_WAKER_THREAD ? e->key->waker_kind
                                                                                                : PRISM_WAKER_UNSEEN),
                .thread_key = t->key,
                .resource_key = resource->key,
                .count = e->value->count,
                .total_ns = e->value->ended_ns,
        };
        note_failure(c, batch_add_wake(c->live, &row));
        if (row_wanted(c, t->row_from_ns, t->row_until_ns)) {
                if (waker)
                        describe_thread(c->recorded, waker, &c->clock, c->epoch);
                describe_resource(c->recorded, resource, c->epoch);
                note_failure(c, batch_add_wake(c->recorded, &row));
        }
}

/* Divides the waits on one set by the file that ended each. Entries are in the order of those. */
static void emit_watched(Collector *c, Thread *t, Resource *set, const char *op, const WaitEntry *entries, size_t n) {
        for (size_t i = 0; i < n;) {
                const struct prism_wait_key *key = entries[i].key;
                uint64_t count = 0, total = 0;
                Resource *watched = NULL;
                bool created;
                size_t first = i;

                for (; i < n && compare_waits_and_files(&entries[first], &entries[i]) == 0; i++) {
                        count += entries[i].value->count;
                        total += entries[i].value->total_ns;
                }
                if (key->via_kind != PRISM_KIND_NONE) {
                        watched = registry_object(
                                        c->registry, key->via_kind, key->via_space, key->via_address, &created);
                        if (!watched)
                                losses_count(&c->losses, "collector", errno == ENOSPC ? "resource-limit" : "memory", 1);
                }
                if (watched && set->id.kind == PRISM_KIND_EPOLL)
                        note_watch(c, set, watched, t->row_until_ns);
                emit_mux_wait(c, t, t->row_from_ns, t->row_until_ns, set, watched, op, count, total);
        }
}

int collect_waits(Collector *c, unsigned idle) {
        _cleanup_free_ WaitEntry *entries = NULL;
        const struct prism_wait_key *keys;
        const struct prism_wait_value *values;
        size_t n;
        int r;

        r = probes_drain_waits(c->probes, idle, &keys, &values, &n);
        if (r < 0)
                return r;
        if (n == 0)
                return 0;
        entries = calloc(n, sizeof(*entries));
        if (!entries)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                entries[i] = (WaitEntry){ &keys[i], &values[i] };
        /* One row for a thread, resource and operation, however many wakers it had. */
        qsort(entries, n, sizeof(*entries), compare_waits_and_files);

        for (size_t i = 0; i < n;) {
                Thread *t = registry_thread_by_handle(c->registry, entries[i].key->thread);
                BatchWait sums = { .op = op_name(entries[i].key->resource.kind, entries[i].key->resource.op) };
                Resource *resource;
                size_t end = i;

                while (end < n && compare_waits(&entries[i], &entries[end]) == 0)
                        end++;
                if (!t || t->row_tick != c->tick || t->row_until_ns <= t->row_from_ns) {
                        if (t && t->live)
                                losses_count(&c->losses, "collector", "wait-without-interval", end - i);
                        i = end;
                        continue;
                }
                resource = resource_of(c, t, &entries[i].key->resource, entries[i].value->user_address);
                if (!resource) {
                        i = end;
                        continue;
                }
                if (streq(resource->ident, op_name(PRISM_KIND_OTHER, PRISM_OP_LOST)))
                        sums.op = op_name(PRISM_KIND_OTHER, PRISM_OP_LOST);
                if (is_mux(resource))
                        emit_watched(c, t, resource, sums.op, entries + i, end - i);
                for (; i < end; i++) {
                        const struct prism_wait_value *v = entries[i].value;

                        sums.count += v->count;
                        sums.total_ns += v->total_ns;
                        sums.max_ns = MAX(sums.max_ns, v->max_ns);
                        for (unsigned bucket = 0; bucket < PRISM_HISTOGRAM_BUCKETS; bucket++)
                                sums.histogram[bucket] += v->histogram[bucket];
                        emit_wake(c, t, resource, &entries[i]);
                }
                emit_wait(c, t, t->row_from_ns, t->row_until_ns, resource, &sums);
        }
        return 0;
}

int collect_insteads(Collector *c, unsigned idle) {
        const struct prism_instead_key *keys;
        const struct prism_instead_value *values;
        size_t n;
        int r;

        r = probes_drain_insteads(c->probes, idle, &keys, &values, &n);
        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++) {
                Thread *t = registry_thread_by_handle(c->registry, keys[i].thread);
                Process *p;

                if (!t || t->row_tick != c->tick)
                        continue;
                p = observed_process(c, keys[i].tgid, keys[i].process_start_ns, values[i].user_tgid, values[i].comm);
                emit_ran_instead(c, t, t->row_from_ns, t->row_until_ns, p, values[i].total_ns);
        }
        return 0;
}
