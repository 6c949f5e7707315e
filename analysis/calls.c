/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One pass over the table `call`. */
#include "calls.h"

#include "order.h"
#include "scan.h"

static int find_call(Reading *r, const ScanRow *row, void *userdata, void **ret) {
        Tally *calls = userdata;
        const char *op;
        void *object;
        Call *c;
        int k;

        k = scan_word(r, row, 2, &op);
        if (k < 0)
                return k;
        k = tally_get(calls, &(TallyKey){ { (uint64_t) row->thread->id, (uint64_t) scan_id(row, 1), (uintptr_t) op } },
                        &object);
        if (k < 0)
                return k;
        c = object;
        if (k > 0) {
                c->thread = row->thread;
                c->op = op;
                k = reading_resource(r, scan_id(row, 1), &c->resource, row->ret_error);
                if (k < 0)
                        return k;
        }
        *ret = c;
        return 0;
}

static int compare_calls(const void *a, const void *b) {
        const Call *x = *(Call *const *) a, *y = *(Call *const *) b;
        int k = COMPARE(y->total_ns, x->total_ns);

        if (k == 0)
                k = COMPARE(x->thread->id, y->thread->id);
        if (k == 0)
                k = COMPARE(x->resource->id, y->resource->id);
        return k != 0 ? k : strcmp(x->op, y->op);
}

int calls_read(Reading *r, bool histograms, Calls *ret, char **ret_error) {
        static const ScanColumn columns[] = {
                SCAN_COLUMN(Call, count),
                SCAN_COLUMN(Call, errors),
                SCAN_COLUMN(Call, bytes),
                SCAN_COLUMN(Call, total_ns),
                SCAN_COLUMN_MAXIMUM(Call, max_ns),
                SCAN_HISTOGRAM(Call),
        };
        const Scan s = { "call", "thread_id, resource_id, op", 3, true, columns,
                ELEMENTSOF(columns) - (histograms ? 0 : STORE_HISTOGRAM_BUCKETS), find_call };
        _cleanup_(tally_done) Tally tally = TALLY(Call);
        Coverage coverage;
        int k;

        k = coverage_read(r, CALLS_PART, &coverage, ret_error);
        if (k < 0)
                return k;
        k = scan(r, &s, &tally, ret_error);
        if (k < 0)
                return k;

        ret->coverage = coverage;
        ret->items = (Call **) tally_take(&tally, &ret->n);
        sort_pointers(ret->items, ret->n, compare_calls);
        return 0;
}

void calls_done(Calls *c) {
        free_pointers(c->items, c->n);
        *c = (Calls){};
}

Coverage call_coverage(const Calls *calls, const Call *c) {
        bool always = streq(c->resource->kind, "reclaim") ||
                        (streq(c->resource->kind, "io_uring") && (streq(c->op, "submit") || streq(c->op, "complete")));

        return always ? (Coverage){ calls->coverage.recorded_ns, calls->coverage.recorded_ns } : calls->coverage;
}
