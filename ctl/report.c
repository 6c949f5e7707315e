/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* prismctl report: how the shares of a range are shown. What they are is counted in analysis/. */
#include "report.h"

#include <inttypes.h>

#include "analysis/contention.h"
#include "analysis/shares.h"
#include "database.h"
#include "json.h"
#include "label.h"
#include "signals.h"
#include "store/basic/parse.h"
#include "store/basic/text.h"
#include "store/ranges.h"
#include "table.h"

/* A thread's run queue time below this share of its time is not worth asking who ran instead. */
#define REPORT_RUNQUEUE_SHARE 100
/* 0.1 %: above it inferred time is mentioned, and sums that should be equal are said not to be. */
#define REPORT_ERROR_SHARE 1000

typedef struct Report {
        const Ctl *ctl;
        const Shares *shares;
        const ReportRange *range;
        uint64_t limit; /* UINT64_MAX: none */
        FILE *f;
} Report;

static int new_table(const Report *r, const TableColumn *columns, size_t n, Table **ret) {
        return table_new(columns, n, r->ctl->json, ret);
}

static void put_times(Table *t, const ShareTimes *times) {
        table_duration(t, times->total_ns);
        table_duration(t, times->run_ns);
        table_duration(t, times->runqueue_ns);
        table_duration(t, times->sleep_ns);
        table_duration(t, times->block_ns);
        table_duration(t, times->iowait_ns);
        table_duration(t, times->throttled_ns);
        table_duration(t, times->healed_ns);
        table_count(t, times->switches);
        table_count(t, times->preemptions);
}

/* The columns that put_times() fills; only some are shown to people. */
#define TIMES_COLUMNS(tracked, run, runqueue, sleep, block)                                                        \
        { "tracked_ns", tracked, true }, { "run_ns", run, true }, { "runqueue_ns", runqueue, true },               \
                        { "sleep_ns", sleep, true }, { "block_ns", block, true }, { "iowait_ns", NULL, true },     \
                        { "throttled_ns", NULL, true }, { "healed_ns", NULL, true }, { "switches", NULL, true }, { \
                "preemptions", NULL, true                                                                          \
        }

static bool is_beyond(uint64_t part, uint64_t whole) {
        return part > whole / REPORT_ERROR_SHARE;
}

static uint64_t difference(uint64_t a, uint64_t b) {
        return a > b ? a - b : b - a;
}

/* Threads whose waits do not add up to their sleep and block time, or whose run queue time is not all spoken of. */
static size_t count_unbalanced(const Shares *s) {
        size_t n = 0;

        for (size_t i = 0; i < s->n_timed_threads; i++) {
                const SharesThread *t = s->threads[i];

                if (is_beyond(difference(t->waited_ns, t->times.sleep_ns + t->times.block_ns), t->times.total_ns) ||
                                is_beyond(difference(t->instead_ns, t->times.runqueue_ns), t->times.total_ns))
                        n++;
        }
        return n;
}

static int print_losses(const Report *r) {
        const Shares *s = r->shares;

        if (s->n_losses == 0)
                fputs("losses: none\n", r->f);

        for (size_t i = 0; i < s->n_losses; i++) {
                const SharesLoss *l = s->losses[i];
                _cleanup_free_ char *part = text_escape(l->part), *reason = text_escape(l->reason);
                const char *meaning = label_loss(l->reason);

                if (!part || !reason)
                        return -ENOMEM;
                fprintf(r->f, "losses: %" PRIu64 " x %s/%s%s%s\n", l->count, part, reason, meaning ? ": " : "",
                                meaning ? meaning : "");
        }
        return 0;
}

static int print_head(const Report *r) {
        const Shares *s = r->shares;
        uint64_t length_ns = (uint64_t) (s->end_ns - s->start_ns);
        _cleanup_free_ char *name = NULL;
        char a[64], b[64], c[64];
        size_t unbalanced;

        name = text_escape(r->range->name ? r->range->name : "range");
        if (!name)
                return -ENOMEM;
        fprintf(r->f, "%s: %s to %s UTC, %s%s\n", name, format_moment(a, sizeof(a), s->start_ns),
                        format_moment(b, sizeof(b), s->end_ns), format_duration(c, sizeof(c), length_ns),
                        r->range->running ? "; still running: threads that stay in one state come later" : "");

        for (size_t i = 0; i < s->n_machines; i++) {
                _cleanup_free_ char *host = text_escape(s->machines[i]->hostname),
                                    *kernel = text_escape(s->machines[i]->kernel);

                if (!host || !kernel)
                        return -ENOMEM;
                fprintf(r->f, "host: %s, kernel %s, %u CPUs\n", host, kernel, s->machines[i]->cpus);
        }

        if (print_losses(r) < 0)
                return -ENOMEM;
        if (is_beyond(s->times.healed_ns, s->times.total_ns))
                fprintf(r->f, "inferred: %s of the time (%s) was inferred because a switch or wake was missed\n",
                                format_duration(a, sizeof(a), s->times.healed_ns),
                                format_share(b, sizeof(b), s->times.healed_ns, s->times.total_ns));
        unbalanced = count_unbalanced(s);
        if (unbalanced > 0)
                fprintf(r->f,
                                "unbalanced: the waits of %zu threads do not add up to the time in which they did not "
                                "run\n",
                                unbalanced);
        return 0;
}

/* Ends a section: its table, and what was left out of it. */
static int finish(const Report *r, const char *title, Table *t, size_t n_all, const char *folded) {
        size_t n = table_rows(t);
        int k;

        if (n == 0)
                return 0;

        fprintf(r->f, "\n%s\n", title);
        k = table_print(t, r->ctl->no_legend, r->f);
        if (k < 0)
                return k;
        if (n < n_all)
                fprintf(r->f, "and %zu more%s (--limit 0 shows all)\n", n_all - n, folded);
        return 0;
}

static void put_process(Table *t, const Report *r, const SharesProcess *p) {
        table_row(t);
        table_number(t, p->machine_id);
        table_number(t, p->pid);
        table_number(t, p->host_pid);
        table_text(t, p->comm);
        table_text(t, p->cmdline);
        table_text(t, p->unit);
        table_text(t, p->target);
        table_count(t, p->n_threads);
        table_share(t, p->times.run_ns, (uint64_t) (r->shares->end_ns - r->shares->start_ns));
        put_times(t, &p->times);
}

static int make_processes(const Report *r, Table **ret) {
        static const TableColumn columns[] = {
                { "machine_id", NULL, true },
                { "pid", "PID", true },
                { "host_pid", NULL, true },
                { "comm", "COMMAND", false },
                { "cmdline", NULL, false },
                { "unit", NULL, false },
                { "target", NULL, false },
                { "threads", "THREADS", true },
                { "cpu_share", "CPU", true },
                TIMES_COLUMNS(NULL, "RUN", "RUNQUEUE", "SLEEP", "BLOCK"),
        };
        _cleanup_(table_freep) Table *t = NULL;
        int k;

        k = new_table(r, columns, ELEMENTSOF(columns), &t);
        if (k < 0)
                return k;

        for (size_t i = 0; i < r->shares->n_timed_processes && table_rows(t) < r->limit; i++)
                put_process(t, r, r->shares->processes[i]);

        *ret = TAKE_PTR(t);
        return 0;
}

static int make_threads(const Report *r, Table **ret) {
        static const TableColumn columns[] = {
                { "pid", "PID", true },
                { "tid", "TID", true },
                { "host_tid", NULL, true },
                { "comm", "THREAD", false },
                { "run_share", "RUN", true },
                { "runqueue_share", "RUNQUEUE", true },
                { "sleep_share", "SLEEP", true },
                { "block_share", "BLOCK", true },
                TIMES_COLUMNS("TRACKED", NULL, NULL, NULL, NULL),
                { "waited_ns", NULL, true },
                { "ran_instead_ns", NULL, true },
                { "top_wait", "TOP WAIT", false },
                { "top_wait_share", NULL, true },
        };
        _cleanup_(table_freep) Table *t = NULL;
        int k;

        k = new_table(r, columns, ELEMENTSOF(columns), &t);
        if (k < 0)
                return k;

        for (size_t i = 0; i < r->shares->n_timed_threads && table_rows(t) < r->limit; i++) {
                const SharesThread *o = r->shares->threads[i];

                table_row(t);
                table_number(t, o->process->pid);
                table_number(t, o->tid);
                table_number(t, o->host_tid);
                table_text(t, o->comm);
                table_share(t, o->times.run_ns, o->times.total_ns);
                table_share(t, o->times.runqueue_ns, o->times.total_ns);
                table_share(t, o->times.sleep_ns, o->times.total_ns);
                table_share(t, o->times.block_ns, o->times.total_ns);
                put_times(t, &o->times);
                table_duration(t, o->waited_ns);
                table_duration(t, o->instead_ns);
                label_top_wait(t, o);
        }

        *ret = TAKE_PTR(t);
        return 0;
}

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

static int put_wakers(Table *t, SharesWaker *const *wakers, size_t n, uint64_t total_ns, const SharesProcess *own) {
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

static int put_histogram(Table *t, const SharesWait *w) {
        json_object *array = NULL;

        if (table_is_json(t)) {
                array = json_object_new_array();
                if (!array)
                        return -ENOMEM;
                for (int i = 0; i < STORE_HISTOGRAM_BUCKETS; i++)
                        if (json_object_array_add(array, json_object_new_uint64(w->histogram[i])) < 0) {
                                json_object_put(array);
                                return -ENOMEM;
                        }
        }
        table_custom(t, NULL, array);
        return 0;
}

/* Cells for count, total, share of *whole_ns (none if NULL), mean and maximum. */
static void put_wait_lengths(Table *t, uint64_t count, uint64_t total_ns, uint64_t max_ns, const uint64_t *whole_ns) {
        table_count(t, count);
        table_duration(t, total_ns);
        if (whole_ns)
                table_share(t, total_ns, *whole_ns);
        if (count > 0) {
                table_duration(t, total_ns / count);
                table_duration(t, max_ns);
        } else {
                /* None has ended: it has no length yet. */
                table_null(t);
                table_null(t);
        }
}

static int make_waits(const Report *r, Table **ret) {
        static const TableColumn columns[] = {
                { "pid", NULL, true },
                { "tid", "TID", true },
                { "comm", "THREAD", false },
                { "kind", "KIND", false },
                { "op", "OPERATION", false },
                { "name", "RESOURCE", false },
                { "ident", NULL, false },
                { "count", "COUNT", true },
                { "total_ns", "TOTAL", true },
                { "share", "SHARE", true },
                { "mean_ns", "MEAN", true },
                { "max_ns", "MAX", true },
                { "histogram", NULL, true },
                { "ended_by", "ENDED BY", false },
        };
        _cleanup_(table_freep) Table *t = NULL;
        int k;

        k = new_table(r, columns, ELEMENTSOF(columns), &t);
        if (k < 0)
                return k;

        for (size_t i = 0; i < r->shares->n_waits && table_rows(t) < r->limit; i++) {
                const SharesWait *w = r->shares->waits[i];

                table_row(t);
                table_number(t, w->thread->process->pid);
                table_number(t, w->thread->tid);
                table_text(t, w->thread->comm);
                table_text(t, w->resource->kind);
                table_text(t, w->op);
                if (table_is_json(t))
                        table_text(t, w->resource->name);
                else
                        table_text(t, label_resource(w->resource));
                table_text(t, w->resource->ident);
                put_wait_lengths(t, w->count, w->total_ns, w->max_ns, &w->thread->times.total_ns);
                k = put_histogram(t, w);
                if (k < 0)
                        return k;
                k = put_wakers(t, w->wakers, w->n_wakers, w->wakers_total_ns, w->thread->process);
                if (k < 0)
                        return k;
        }

        *ret = TAKE_PTR(t);
        return 0;
}

/* What threads wait for together: not a timer or a signal, of which each has its own. */
static bool is_shared(const Contention *c) {
        static const char *const own[] = { "timer", "signal", "child", "other" };

        for (size_t i = 0; i < ELEMENTSOF(own); i++)
                if (streq(c->resource->kind, own[i]))
                        return false;
        return c->n_threads > 1;
}

/* How many resources several threads waited for goes to *ret_n. */
static int make_contentions(const Report *r, Table **ret, size_t *ret_n) {
        static const TableColumn columns[] = {
                { "pid", "PID", true },
                { "kind", "KIND", false },
                { "name", "RESOURCE", false },
                { "ident", NULL, false },
                { "threads", "THREADS", true },
                { "count", "COUNT", true },
                { "total_ns", "TOTAL", true },
                { "mean_ns", "MEAN", true },
                { "max_ns", "MAX", true },
                { "ended_by", "ENDED BY", false },
        };
        _cleanup_(contentions_done) Contentions contentions = {};
        _cleanup_(table_freep) Table *t = NULL;
        size_t n = 0;
        int k;

        k = new_table(r, columns, ELEMENTSOF(columns), &t);
        if (k < 0)
                return k;
        k = contentions_make(r->shares, &contentions);
        if (k < 0)
                return k;

        for (size_t i = 0; i < contentions.n; i++) {
                const Contention *c = contentions.items + i;

                if (!table_is_json(t) && !is_shared(c))
                        continue;
                if (n++ >= r->limit)
                        continue;

                table_row(t);
                if (c->process)
                        table_number(t, c->process->pid);
                else
                        table_custom(t, "several", NULL);
                table_text(t, c->resource->kind);
                if (table_is_json(t))
                        table_text(t, c->resource->name);
                else
                        table_text(t, label_resource(c->resource));
                table_text(t, c->resource->ident);
                table_count(t, c->n_threads);
                put_wait_lengths(t, c->count, c->total_ns, c->max_ns, NULL);
                k = put_wakers(t, c->wakers, c->n_wakers, c->wakers_total_ns, c->process);
                if (k < 0)
                        return k;
        }

        *ret = TAKE_PTR(t);
        *ret_n = n;
        return 0;
}

static int put_instead(Table *t, const Shares *s, const SharesThread *thread) {
        static const TableColumn columns[] = { { "pid", NULL, false }, { "host_pid", NULL, false },
                { "comm", NULL, false }, { "total_ns", NULL, false }, { "share", NULL, false } };
        _cleanup_(table_freep) Table *inner = NULL;
        _cleanup_free_ char *label = NULL;
        SharesInstead *const *instead;
        json_object *array;
        size_t n;
        int k;

        if (!table_is_json(t)) {
                label = label_instead(s, thread);
                if (!label)
                        return -ENOMEM;
                table_custom(t, label, NULL);
                return 0;
        }

        k = table_new(columns, ELEMENTSOF(columns), true, &inner);
        if (k < 0)
                return k;
        n = shares_instead_of(s, thread, &instead);
        for (size_t i = 0; i < n; i++) {
                table_row(inner);
                table_number(inner, instead[i]->process->pid);
                table_number(inner, instead[i]->process->host_pid);
                table_text(inner, instead[i]->process->comm);
                table_count(inner, instead[i]->total_ns);
                table_share(inner, instead[i]->total_ns, thread->instead_ns - thread->unnamed_ns);
        }
        k = table_take_json(inner, &array);
        if (k < 0)
                return k;
        table_custom(t, NULL, array);
        return 0;
}

/* How many threads stood in a run queue long enough to be shown goes to *ret_n. */
static int make_instead(const Report *r, Table **ret, size_t *ret_n) {
        static const TableColumn columns[] = {
                { "pid", "PID", true },
                { "tid", "TID", true },
                { "comm", "THREAD", false },
                { "runqueue_ns", "RUNQUEUE", true },
                { "share", "SHARE", true },
                { "ran", "WHO RAN INSTEAD", false },
                { "unnamed_ns", NULL, true },
                { "unnamed_share", "NOT NAMED", true },
        };
        _cleanup_(table_freep) Table *t = NULL;
        size_t n = 0;
        int k;

        k = new_table(r, columns, ELEMENTSOF(columns), &t);
        if (k < 0)
                return k;

        for (size_t i = 0; i < r->shares->n_timed_threads; i++) {
                const SharesThread *o = r->shares->threads[i];

                if (table_is_json(t) ? o->times.runqueue_ns == 0
                                     : o->times.runqueue_ns < o->times.total_ns / REPORT_RUNQUEUE_SHARE ||
                                                                o->times.runqueue_ns < NSEC_PER_MSEC)
                        continue;
                if (n++ >= r->limit)
                        continue;

                table_row(t);
                table_number(t, o->process->pid);
                table_number(t, o->tid);
                table_text(t, o->comm);
                table_duration(t, o->times.runqueue_ns);
                table_share(t, o->times.runqueue_ns, o->times.total_ns);
                k = put_instead(t, r->shares, o);
                if (k < 0)
                        return k;
                table_duration(t, o->unnamed_ns);
                table_share(t, o->unnamed_ns, o->instead_ns);
        }

        *ret = TAKE_PTR(t);
        *ret_n = n;
        return 0;
}

/* What the folded threads did, in a few words. */
static char *describe_folded_threads(char *buffer, size_t size, const Report *r, size_t from) {
        ShareTimes sum = {};
        char a[64], b[64], c[64];

        for (size_t i = from; i < r->shares->n_timed_threads; i++)
                share_times_add(&sum, &r->shares->threads[i]->times);
        snprintf(buffer, size, " threads, which together ran for %s, stood in a run queue for %s and blocked for %s",
                        format_duration(a, sizeof(a), sum.run_ns), format_duration(b, sizeof(b), sum.runqueue_ns),
                        format_duration(c, sizeof(c), sum.block_ns));
        return buffer;
}

static int print_text(const Report *r) {
        _cleanup_(table_freep) Table *processes = NULL, *threads = NULL, *resources = NULL, *waits = NULL,
                                     *instead = NULL;
        char folded[256];
        size_t n_resources, n_instead;
        int k;

        k = print_head(r);
        if (k < 0)
                return k;

        k = make_processes(r, &processes);
        if (k < 0)
                return k;
        k = finish(r, "Processes, most active first", processes, r->shares->n_timed_processes, " processes");
        if (k < 0)
                return k;

        k = make_threads(r, &threads);
        if (k < 0)
                return k;
        k = finish(r, "Threads, most active first", threads, r->shares->n_timed_threads,
                        describe_folded_threads(folded, sizeof(folded), r, table_rows(threads)));
        if (k < 0)
                return k;

        k = make_contentions(r, &resources, &n_resources);
        if (k < 0)
                return k;
        k = finish(r, "Resources that several threads waited for", resources, n_resources, " resources");
        if (k < 0)
                return k;

        k = make_waits(r, &waits);
        if (k < 0)
                return k;
        k = finish(r, "Waits, longest first", waits, r->shares->n_waits, " waits");
        if (k < 0)
                return k;

        k = make_instead(r, &instead, &n_instead);
        if (k < 0)
                return k;
        return finish(r, "Waiting for a CPU", instead, n_instead, " threads");
}

static int add_table(json_object *root, const char *key, Table *t) {
        json_object *array;
        int k;

        k = table_take_json(t, &array);
        return k < 0 ? k : json_add(root, key, array);
}

static int make_range_json(const Report *r, json_object **ret) {
        _cleanup_json_ json_object *o = json_object_new_object();
        const Shares *s = r->shares;

        if (!o || json_add(o, "name", json_text(r->range->name)) < 0 ||
                        json_add(o, "start", json_moment(s->start_ns)) < 0 ||
                        json_add(o, "end", json_moment(s->end_ns)) < 0 ||
                        json_add(o, "start_ns", json_object_new_int64(s->start_ns)) < 0 ||
                        json_add(o, "end_ns", json_object_new_int64(s->end_ns)) < 0 ||
                        json_add(o, "length_ns", json_object_new_int64(s->end_ns - s->start_ns)) < 0 ||
                        json_add(o, "running", json_object_new_boolean(r->range->running)) < 0)
                return -ENOMEM;
        *ret = TAKE_PTR(o);
        return 0;
}

static int add_machines_and_losses(const Report *r, json_object *root) {
        static const TableColumn machine_columns[] = { { "machine_id", NULL, false }, { "hostname", NULL, false },
                { "kernel", NULL, false }, { "cpus", NULL, false } };
        static const TableColumn loss_columns[] = { { "part", NULL, false }, { "reason", NULL, false },
                { "meaning", NULL, false }, { "count", NULL, false } };
        _cleanup_(table_freep) Table *machines = NULL, *losses = NULL;
        const Shares *s = r->shares;
        int k;

        k = table_new(machine_columns, ELEMENTSOF(machine_columns), true, &machines);
        if (k < 0)
                return k;
        for (size_t i = 0; i < s->n_machines; i++) {
                table_row(machines);
                table_number(machines, s->machines[i]->id);
                table_text(machines, s->machines[i]->hostname);
                table_text(machines, s->machines[i]->kernel);
                table_count(machines, s->machines[i]->cpus);
        }
        k = add_table(root, "machines", machines);
        if (k < 0)
                return k;

        k = table_new(loss_columns, ELEMENTSOF(loss_columns), true, &losses);
        if (k < 0)
                return k;
        for (size_t i = 0; i < s->n_losses; i++) {
                table_row(losses);
                table_text(losses, s->losses[i]->part);
                table_text(losses, s->losses[i]->reason);
                table_text(losses, label_loss(s->losses[i]->reason));
                table_count(losses, s->losses[i]->count);
        }
        return add_table(root, "losses", losses);
}

static int print_json(const Report *r) {
        _cleanup_json_ json_object *root = json_object_new_object();
        _cleanup_(table_freep) Table *processes = NULL, *threads = NULL, *resources = NULL, *waits = NULL,
                                     *instead = NULL;
        json_object *range;
        size_t n_resources, n_instead;
        int k;

        if (!root)
                return -ENOMEM;

        k = make_range_json(r, &range);
        if (k < 0)
                return k;
        k = json_add(root, "range", range);
        if (k < 0)
                return k;
        k = add_machines_and_losses(r, root);
        if (k < 0)
                return k;
        if (json_add(root, "healed_ns", json_object_new_uint64(r->shares->times.healed_ns)) < 0 ||
                        json_add(root, "unbalanced_threads", json_object_new_uint64(count_unbalanced(r->shares))) < 0)
                return -ENOMEM;

        k = make_processes(r, &processes);
        if (k < 0)
                return k;
        k = add_table(root, "processes", processes);
        if (k < 0)
                return k;
        k = make_threads(r, &threads);
        if (k < 0)
                return k;
        k = add_table(root, "threads", threads);
        if (k < 0)
                return k;
        k = make_contentions(r, &resources, &n_resources);
        if (k < 0)
                return k;
        k = add_table(root, "resources", resources);
        if (k < 0)
                return k;
        k = make_waits(r, &waits);
        if (k < 0)
                return k;
        k = add_table(root, "waits", waits);
        if (k < 0)
                return k;
        k = make_instead(r, &instead, &n_instead);
        if (k < 0)
                return k;
        k = add_table(root, "ran_instead", instead);
        if (k < 0)
                return k;

        json_print(root, r->f);
        return 0;
}

int report_print(const Ctl *ctl, Store *store, const ReportRange *range, uint64_t limit, FILE *f) {
        SharesOptions options = { .histograms = ctl->json, .target = range->target };
        _cleanup_(shares_freep) Shares *shares = NULL;
        _cleanup_free_ char *error = NULL;
        Report report;
        int r;

        r = shares_read(store, range->start_ns, range->end_ns, &options, &shares, &error);
        if (r >= 0 && shares->n_timed_threads == 0 && range->target_or_all) {
                options.target = NULL;
                shares = shares_free(shares);
                r = shares_read(store, range->start_ns, range->end_ns, &options, &shares, &error);
        }
        if (r < 0)
                return ctl_fail_with(CTL_FAILED, r, error);

        report = (Report){
                .ctl = ctl,
                .shares = shares,
                .range = range,
                .limit = limit == 0 || ctl->json ? UINT64_MAX : limit,
                .f = f,
        };
        r = ctl->json ? print_json(&report) : print_text(&report);
        if (r < 0)
                return ctl_fail_with(CTL_FAILED, r, NULL);

        if (shares->n_timed_threads == 0)
                return ctl_fail(CTL_NOTHING, "%s holds no time of any thread: was anything tracked then?",
                                range->name ? range->name : "the range");
        return CTL_DONE;
}

/* Whether a recording of that name has not ended. */
static int is_running(Store *s, const char *name, bool *ret, char **ret_error) {
        StoreRecording *recordings;
        size_t n;
        int r;

        r = store_recordings(s, &recordings, &n, ret_error);
        if (r < 0)
                return r;

        for (size_t i = 0; i < n; i++) {
                if (streq(recordings[i].name, name))
                        *ret = streq(recordings[i].state, "running");
                store_recording_done(recordings + i);
        }
        free(recordings);
        return 0;
}

int verb_report(Ctl *ctl, int argc, char **argv) {
        enum {
                OPTION_LIMIT = 1,
                OPTION_TARGET,
                OPTION_BASELINE,
                OPTION_HTML,
        };
        static const Option options[] = {
                { "limit", OPTION_LIMIT, true },
                { "target", OPTION_TARGET, true },
                { "baseline", OPTION_BASELINE, true },
                { "html", OPTION_HTML, true },
        };
        _cleanup_(arguments_done) Arguments a = {};
        _cleanup_(store_closep) Store *store = NULL;
        _cleanup_free_ char *name = NULL, *error = NULL;
        uint64_t limit = REPORT_LIMIT;
        ReportRange range = {};
        int r;

        if (arguments_init(&a, argc, argv, false) < 0)
                return ctl_out_of_memory();
        while ((r = ctl_next_option(ctl, &a, options, ELEMENTSOF(options))) > 0)
                switch (r) {
                case OPTION_LIMIT:
                        if (parse_u64(a.value, 1000000, &limit) < 0)
                                return ctl_fail(CTL_USAGE, "--limit takes a number of rows, 0 for all, not \"%s\"",
                                                a.value);
                        break;
                case OPTION_TARGET:
                        range.target = a.value;
                        break;
                default:
                        return ctl_fail(CTL_USAGE, "report cannot take --%s yet",
                                        r == OPTION_BASELINE ? "baseline" : "html");
                }
        if (r < 0)
                return ctl_option_status(r);
        if (a.n_operands != 1)
                return ctl_fail(CTL_USAGE, "say which period to report: the name of a recording, or START..END");

        r = database_open(ctl, &store, &error);
        if (r < 0)
                return ctl_fail_with(CTL_FAILED, r, error);
        r = store_resolve_range(store, a.operands[0], now_unix_ns(), &range.start_ns, &range.end_ns, &name, &error);
        if (r < 0)
                return ctl_fail_with(r == -ENOENT                              ? CTL_NOTHING
                                                : r == -EINVAL || r == -ERANGE ? CTL_USAGE
                                                                               : CTL_FAILED,
                                r, error);
        range.name = name;
        if (name) {
                r = is_running(store, name, &range.running, &error);
                if (r < 0)
                        return ctl_fail_with(CTL_FAILED, r, error);
        }

        return report_print(ctl, store, &range, limit, stdout);
}
