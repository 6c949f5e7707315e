/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The report's calls. Under sampling they are estimates, and say so. */
#include "label.h"
#include "json.h"
#include "report-section.h"
#include "store/basic/text.h"

static const TableColumn columns[] = {
        { "pid", NULL, true },
        { "tid", "TID", true },
        { "comm", "THREAD", false },
        { "kind", "KIND", false },
        { "op", "OPERATION", false },
        { "name", "RESOURCE", false, true },
        { "ident", NULL, false },
        { "count", "COUNT", true },
        { "count_per_second", "PER SECOND", true },
        { "errors", "ERRORS", true },
        { "bytes", "BYTES", true },
        { "bytes_per_second", NULL, true },
        { "total_ns", "TOTAL", true },
        { "mean_ns", "MEAN", true },
        { "max_ns", "MAX", true },
        { "histogram", NULL, true },
        { "estimate", NULL, false },
        { "raw", NULL, false },
};

/* What was seen, beside what is made of it. */
static int put_raw(Table *t, const Call *c) {
        _cleanup_json_ json_object *o = NULL;

        if (table_is_json(t)) {
                o = json_object_new_object();
                if (!o || json_add(o, "count", json_object_new_uint64(c->count)) < 0 ||
                                json_add(o, "errors", json_object_new_uint64(c->errors)) < 0 ||
                                json_add(o, "bytes", json_object_new_uint64(c->bytes)) < 0 ||
                                json_add(o, "total_ns", json_object_new_uint64(c->total_ns)) < 0)
                        return -ENOMEM;
        }
        table_custom(t, NULL, TAKE_PTR(o));
        return 0;
}

static int fill(const Report *r, Table *t, size_t *ret_n) {
        *ret_n = r->calls.n;
        for (size_t i = 0; i < r->calls.n && table_rows(t) < r->limit; i++) {
                const Call *c = r->calls.items[i];
                const Coverage seen = call_coverage(&r->calls, c), *coverage = &seen;
                char woken[64];
                int k;

                table_row(t);
                report_put_thread(t, c->thread);
                table_text(t, c->resource->kind);
                table_text(t, c->op);
                report_put_resource(t, c->resource);
                table_count(t, coverage_scale(coverage, c->count));
                table_rate(t, coverage_rate(coverage, c->count));
                table_count(t, coverage_scale(coverage, c->errors));
                if (streq(c->resource->kind, "futex")) {
                        /* What a wake returns is threads. */
                        snprintf(woken, sizeof(woken), "%llu woken",
                                        (unsigned long long) coverage_scale(coverage, c->bytes));
                        table_custom(t, c->bytes ? woken : NULL,
                                        table_is_json(t) ? json_object_new_uint64(coverage_scale(coverage, c->bytes))
                                                         : NULL);
                } else
                        table_bytes(t, coverage_scale(coverage, c->bytes));
                table_rate(t, coverage_rate(coverage, c->bytes));
                table_duration(t, coverage_scale(coverage, c->total_ns));
                report_put_lengths(t, c->count, c->total_ns, c->max_ns);
                k = report_put_histogram(t, c->histogram);
                if (k < 0)
                        return k;
                table_boolean(t, coverage_is_estimate(coverage));
                k = put_raw(t, c);
                if (k < 0)
                        return k;
        }
        return 0;
}

static void describe_title(const Report *r, char *buffer, size_t size) {
        const Coverage *c = &r->calls.coverage;
        char a[64], b[64];

        if (coverage_is_estimate(c))
                snprintf(buffer, size, " (estimated from %s of %s)", format_duration(a, sizeof(a), c->covered_ns),
                                format_duration(b, sizeof(b), c->recorded_ns));
}

const ReportSection report_calls = {
        .key = "calls",
        .title = "Calls, most time first",
        .unit = "calls",
        .columns = columns,
        .n_columns = ELEMENTSOF(columns),
        .fill = fill,
        .describe_title = describe_title,
};
