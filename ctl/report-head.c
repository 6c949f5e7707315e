/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The head of the report: what it is about, and all that it does not know. */
#include <inttypes.h>

#include "json.h"
#include "label.h"
#include "report-section.h"
#include "store/basic/text.h"

/* 0.1 %: above it inferred time is mentioned, and sums that should be equal are said not to be. */
#define REPORT_ERROR_SHARE 1000
/* 1 %: above it waiting without a resource is mentioned. */
#define REPORT_UNNAMED_SHARE 100

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
                const Thread *t = s->threads[i];

                if (is_beyond(difference(t->waited_ns, t->times.sleep_ns + t->times.block_ns), t->times.total_ns) ||
                                is_beyond(difference(t->instead_ns, t->times.runqueue_ns), t->times.total_ns))
                        n++;
        }
        return n;
}

/* Waiting of which not even the kind of resource is known. */
static uint64_t count_unnamed_ns(const Shares *s) {
        uint64_t ns = 0;

        for (size_t i = 0; i < s->n_waits; i++)
                if (streq(s->waits[i]->resource->kind, "other"))
                        ns += s->waits[i]->total_ns;
        return ns;
}

static bool has_io_workers(const Shares *s) {
        for (size_t i = 0; i < s->n_waits; i++)
                if (streq(s->waits[i]->op, "io_worker"))
                        return true;
        return false;
}

/* Where prism was blind or had to guess, a sentence each, handed to say(). */
static int for_each_note(const Report *r, int (*say)(const char *note, void *userdata), void *userdata) {
        const Shares *s = r->shares;
        const Coverage *c = &r->calls.coverage;
        uint64_t waited_ns = s->times.sleep_ns + s->times.block_ns, unnamed_ns = count_unnamed_ns(s);
        size_t unbalanced = count_unbalanced(s);
        char note[256], a[64], b[64];
        int k = 0;

        if (is_beyond(s->times.healed_ns, s->times.total_ns)) {
                snprintf(note, sizeof(note),
                                "inferred: %s of the time (%s) was inferred because a switch or wake was missed",
                                format_duration(a, sizeof(a), s->times.healed_ns),
                                format_share(b, sizeof(b), s->times.healed_ns, s->times.total_ns));
                k = say(note, userdata);
        }
        if (k >= 0 && unbalanced > 0) {
                snprintf(note, sizeof(note),
                                "unbalanced: the waits of %zu threads do not add up to the time in which they did not "
                                "run",
                                unbalanced);
                k = say(note, userdata);
        }
        if (k >= 0 && unnamed_ns > waited_ns / REPORT_UNNAMED_SHARE) {
                snprintf(note, sizeof(note), "unnamed: %s of the waiting (%s) was for something that has no name",
                                format_duration(a, sizeof(a), unnamed_ns),
                                format_share(b, sizeof(b), unnamed_ns, waited_ns));
                k = say(note, userdata);
        }
        if (k >= 0 && has_io_workers(s))
                k = say("io_uring: what its kernel workers waited for is shown as theirs, not as that of the thread "
                        "that "
                        "submitted it",
                                userdata);
        if (k >= 0 && c->covered_ns == 0)
                k = say("calls: not recorded", userdata);
        else if (k >= 0 && is_beyond(c->recorded_ns - c->covered_ns, c->recorded_ns)) {
                snprintf(note, sizeof(note), "calls: recorded for %s of %s%s",
                                format_duration(a, sizeof(a), c->covered_ns),
                                format_duration(b, sizeof(b), c->recorded_ns),
                                coverage_is_estimate(c) ? "; numbers of calls are estimates" : "");
                k = say(note, userdata);
        }
        return k;
}

static int print_losses(const Report *r) {
        const Shares *s = r->shares;

        if (s->n_losses == 0)
                fputs("losses: none\n", r->f);

        for (size_t i = 0; i < s->n_losses; i++) {
                const SharesLoss *l = s->losses + i;
                _cleanup_free_ char *part = text_escape(l->part), *reason = text_escape(l->reason);
                const char *meaning = label_loss(l->reason);

                if (!part || !reason)
                        return -ENOMEM;
                fprintf(r->f, "losses: %" PRIu64 " x %s/%s%s%s\n", l->count, part, reason, meaning ? ": " : "",
                                meaning ? meaning : "");
        }
        return 0;
}

static int print_note(const char *note, void *userdata) {
        FILE *f = userdata;

        fprintf(f, "%s\n", note);
        return 0;
}

int report_print_head(const Report *r) {
        const Shares *s = r->shares;
        _cleanup_free_ char *name = NULL;
        char a[64], b[64], c[64];
        int k;

        name = text_escape(r->range->name ? r->range->name : "range");
        if (!name)
                return -ENOMEM;
        fprintf(r->f, "%s: %s to %s UTC, %s%s\n", name, format_moment(a, sizeof(a), s->start_ns),
                        format_moment(b, sizeof(b), s->end_ns), format_duration(c, sizeof(c), report_length_ns(r)),
                        r->range->running ? "; still running: threads that stay in one state come later" : "");

        for (size_t i = 0; i < r->reading->machines.n; i++) {
                const Machine *m = r->reading->machines.objects[i];
                _cleanup_free_ char *host = text_escape(m->hostname), *kernel = text_escape(m->kernel);

                if (!host || !kernel)
                        return -ENOMEM;
                fprintf(r->f, "host: %s, kernel %s, %u CPUs\n", host, kernel, m->cpus);
        }

        k = print_losses(r);
        return k < 0 ? k : for_each_note(r, print_note, r->f);
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

static int add_machines(const Report *r, json_object *root) {
        static const TableColumn columns[] = { { "machine_id", NULL, false }, { "hostname", NULL, false },
                { "kernel", NULL, false }, { "cpus", NULL, false } };
        _cleanup_(table_freep) Table *t = NULL;

        if (table_new(columns, ELEMENTSOF(columns), true, &t) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < r->reading->machines.n; i++) {
                const Machine *m = r->reading->machines.objects[i];

                table_row(t);
                table_number(t, m->id);
                table_text(t, m->hostname);
                table_text(t, m->kernel);
                table_count(t, m->cpus);
        }
        return add_table(root, "machines", t);
}

static int add_losses(const Report *r, json_object *root) {
        static const TableColumn columns[] = { { "part", NULL, false }, { "reason", NULL, false },
                { "meaning", NULL, false }, { "count", NULL, false } };
        _cleanup_(table_freep) Table *t = NULL;

        if (table_new(columns, ELEMENTSOF(columns), true, &t) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < r->shares->n_losses; i++) {
                const SharesLoss *l = r->shares->losses + i;

                table_row(t);
                table_text(t, l->part);
                table_text(t, l->reason);
                table_text(t, label_loss(l->reason));
                table_count(t, l->count);
        }
        return add_table(root, "losses", t);
}

static int add_coverage(const Report *r, json_object *root) {
        static const TableColumn columns[] = { { "part", NULL, false }, { "coverage_ns", NULL, false },
                { "recorded_ns", NULL, false }, { "estimate", NULL, false } };
        _cleanup_(table_freep) Table *t = NULL;
        const Coverage *c = &r->calls.coverage;

        if (table_new(columns, ELEMENTSOF(columns), true, &t) < 0)
                return -ENOMEM;
        table_row(t);
        table_text(t, CALLS_PART);
        table_count(t, c->covered_ns);
        table_count(t, c->recorded_ns);
        table_boolean(t, coverage_is_estimate(c));
        return add_table(root, "coverage", t);
}

static int add_note(const char *note, void *userdata) {
        json_object *text = json_object_new_string(note);

        if (!text || json_object_array_add(userdata, text) < 0) {
                json_object_put(text);
                return -ENOMEM;
        }
        return 0;
}

int report_add_head(const Report *r, json_object *root) {
        json_object *range, *notes;
        int k;

        k = make_range_json(r, &range);
        if (k >= 0)
                k = json_add(root, "range", range);
        if (k >= 0)
                k = add_machines(r, root);
        if (k >= 0)
                k = add_losses(r, root);
        if (k >= 0)
                k = add_coverage(r, root);
        if (k < 0)
                return k;

        notes = json_object_new_array();
        if (!notes || json_add(root, "notes", notes) < 0)
                return -ENOMEM;
        k = for_each_note(r, add_note, notes);
        if (k < 0)
                return k;
        if (json_add(root, "healed_ns", json_object_new_uint64(r->shares->times.healed_ns)) < 0 ||
                        json_add(root, "unbalanced_threads", json_object_new_uint64(count_unbalanced(r->shares))) < 0)
                return -ENOMEM;
        return 0;
}
