/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The report's waits: per thread, per resource, and what ended those on many files at once. */
#include "analysis/contention.h"
#include "analysis/order.h"
#include "label.h"
#include "report-section.h"

static int make_wakers_json(SharesWaker *const *wakers, size_t n, uint64_t total_ns, json_object **ret) {
        static const TableColumn columns[] = {
                { "kind", NULL, false },
                { "pid", NULL, false },
                { "process", NULL, false },
                { "tid", NULL, false },
                { "comm", NULL, false },
                { "count", NULL, false },
                { "total_ns", NULL, false },
                { "share", NULL, false },
        };
        _cleanup_(table_freep) Table *t = NULL;
        int k;

        k = table_new(columns, ELEMENTSOF(columns), true, &t);
        if (k < 0)
                return k;

        for (size_t i = 0; i < n; i++) {
                const SharesWaker *o = wakers[i];

                table_row(t);
                table_text(t, o->kind);
                if (o->waker) {
                        table_number(t, o->waker->process->pid);
                        table_text(t, o->waker->process->comm);
                        table_number(t, o->waker->tid);
                        table_text(t, o->waker->comm);
                } else
                        for (int empty = 0; empty < 4; empty++)
                                table_null(t);
                table_count(t, o->count);
                table_count(t, o->total_ns);
                table_share(t, o->total_ns, total_ns);
        }
        return table_take_json(t, ret);
}

static int put_wakers(Table *t, SharesWaker *const *wakers, size_t n, uint64_t total_ns, const Process *own) {
        _cleanup_free_ char *label = NULL;
        json_object *array = NULL;
        int k;

        if (table_is_json(t)) {
                k = make_wakers_json(wakers, n, total_ns, &array);
                if (k < 0)
                        return k;
        } else {
                label = label_wakers(wakers, n, total_ns, own);
                if (!label)
                        return -ENOMEM;
        }
        table_custom(t, label, array);
        return 0;
}

static const TableColumn wait_columns[] = {
        { "pid", NULL, true },
        { "tid", "TID", true },
        { "comm", "THREAD", false },
        { "kind", "KIND", false },
        { "op", "OPERATION", false },
        { "name", "RESOURCE", false, true },
        { "ident", NULL, false },
        { "count", "COUNT", true },
        { "total_ns", "TOTAL", true },
        { "share", "SHARE", true },
        { "mean_ns", "MEAN", true },
        { "max_ns", "MAX", true },
        { "histogram", NULL, true },
        { "ended_by", "ENDED BY", false },
};

static int fill_waits(const Report *r, Table *t, size_t *ret_n) {
        *ret_n = r->shares->n_waits;

        for (size_t i = 0; i < r->shares->n_waits && table_rows(t) < r->limit; i++) {
                const SharesWait *w = r->shares->waits[i];
                int k;

                table_row(t);
                report_put_thread(t, w->thread);
                table_text(t, w->resource->kind);
                table_text(t, w->op);
                report_put_resource(t, w->resource);
                table_count(t, w->count);
                table_duration(t, w->total_ns);
                table_share(t, w->total_ns, w->thread->times.total_ns);
                report_put_lengths(t, w->count, w->total_ns, w->max_ns);
                k = report_put_histogram(t, w->histogram);
                if (k < 0)
                        return k;
                k = put_wakers(t, w->wakers, w->n_wakers, w->wakers_total_ns, w->thread->process);
                if (k < 0)
                        return k;
        }
        return 0;
}

const ReportSection report_waits = {
        .key = "waits",
        .title = "Waits, longest first",
        .unit = "waits",
        .columns = wait_columns,
        .n_columns = ELEMENTSOF(wait_columns),
        .fill = fill_waits,
};

/* What threads wait for together: not a timer or a signal, of which each has its own. */
static bool is_shared(const Contention *c) {
        static const char *const own[] = { "timer", "signal", "child", "poll", "other" };

        for (size_t i = 0; i < ELEMENTSOF(own); i++)
                if (streq(c->resource->kind, own[i]))
                        return false;
        return c->n_threads > 1;
}

static const TableColumn resource_columns[] = {
        { "pid", "PID", true },
        { "kind", "KIND", false },
        { "name", "RESOURCE", false, true },
        { "ident", NULL, false },
        { "threads", "THREADS", true },
        { "count", "COUNT", true },
        { "total_ns", "TOTAL", true },
        { "mean_ns", "MEAN", true },
        { "max_ns", "MAX", true },
        { "ended_by", "ENDED BY", false },
};

static int fill_resources(const Report *r, Table *t, size_t *ret_n) {
        _cleanup_(contentions_done) Contentions contentions = {};
        size_t n = 0;
        int k;

        k = contentions_make(r->shares, &contentions);
        if (k < 0)
                return k;

        for (size_t i = 0; i < contentions.n; i++) {
                const Contention *c = contentions.items + i;

                if ((!r->ctl->json && !is_shared(c)) || n++ >= r->limit)
                        continue;

                table_row(t);
                if (c->process)
                        table_number(t, c->process->pid);
                else
                        table_custom(t, "several", NULL);
                table_text(t, c->resource->kind);
                report_put_resource(t, c->resource);
                table_count(t, c->n_threads);
                table_count(t, c->count);
                table_duration(t, c->total_ns);
                report_put_lengths(t, c->count, c->total_ns, c->max_ns);
                k = put_wakers(t, c->wakers, c->n_wakers, c->wakers_total_ns, c->process);
                if (k < 0)
                        return k;
        }

        *ret_n = n;
        return 0;
}

const ReportSection report_resources = {
        .key = "resources",
        .title = "Resources that several threads waited for",
        .unit = "resources",
        .columns = resource_columns,
        .n_columns = ELEMENTSOF(resource_columns),
        .fill = fill_resources,
};

static const TableColumn watched_columns[] = {
        { "pid", NULL, true },
        { "tid", "TID", true },
        { "comm", "THREAD", false },
        { "kind", NULL, false },
        { "op", "OPERATION", false },
        { "name", "SET", false, true },
        { "ident", NULL, false },
        { "watched_kind", "KIND", false },
        { "watched_name", "WATCHED FILE", false, true },
        { "watched_ident", NULL, false },
        { "count", "COUNT", true },
        { "total_ns", "TOTAL", true },
        { "share", "SHARE", true },
};

static int compare_totals(const void *a, const void *b) {
        const SharesWatched *x = *(SharesWatched *const *) a, *y = *(SharesWatched *const *) b;
        int k = COMPARE(y->total_ns, x->total_ns);

        if (k == 0)
                k = COMPARE(x->wait->thread->id, y->wait->thread->id);
        return k != 0 ? k : COMPARE(x->wait->resource->id, y->wait->resource->id);
}

static void put_watched(Table *t, const SharesWatched *w) {
        table_row(t);
        report_put_thread(t, w->wait->thread);
        table_text(t, w->wait->resource->kind);
        table_text(t, w->wait->op);
        report_put_resource(t, w->wait->resource);
        if (w->watched) {
                table_text(t, w->watched->kind);
                report_put_resource(t, w->watched);
        } else {
                table_null(t);
                table_custom(t, "none: a timeout, a signal, not over, or not seen", NULL);
                table_null(t);
        }
        table_count(t, w->count);
        table_duration(t, w->total_ns);
        table_share(t, w->total_ns, w->wait->total_ns);
}

static int fill_watched(const Report *r, Table *t, size_t *ret_n) {
        _cleanup_free_ const SharesWatched **sorted = NULL;
        size_t n = r->shares->n_watched;
        bool any = false;

        sorted = calloc(n + 1, sizeof(*sorted));
        if (!sorted)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                sorted[i] = r->shares->watched[i];
                any |= sorted[i]->watched != NULL;
        }
        sort_pointers(sorted, n, compare_totals);

        /* People learn nothing from timeouts alone. */
        if (!any && !r->ctl->json)
                n = 0;
        for (size_t i = 0; i < n && table_rows(t) < r->limit; i++)
                put_watched(t, sorted[i]);
        *ret_n = n;
        return 0;
}

const ReportSection report_watched = {
        .key = "mux_waits",
        .title = "What ended epoll and poll waits",
        .unit = "parts of waits",
        .columns = watched_columns,
        .n_columns = ELEMENTSOF(watched_columns),
        .fill = fill_watched,
};
