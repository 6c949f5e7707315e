/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* System calls, also those that did not block, and when they were counted. */
#include "collector-internal.h"
#include "describe.h"
#include "names.h"

static void emit_call(
                Collector *c, Thread *t, Resource *resource, uint64_t from, uint64_t until, const BatchCall *sums) {
        BatchCall row = *sums;

        row.ts_ns = clock_unix(&c->clock, until);
        row.dt_ns = (int64_t) (until - from);
        row.thread_key = t->key;
        row.resource_key = resource->key;
        resource->used_ns = t->used_ns = until;
        note_failure(c, batch_add_call(c->live, &row));
        if (row_wanted(c, from, until)) {
                describe_thread(c->recorded, t, &c->clock, c->epoch);
                describe_resource(c->recorded, resource, c->epoch);
                note_failure(c, batch_add_call(c->recorded, &row));
        }
}

static void emit_coverage(Collector *c, uint64_t from, uint64_t until) {
        BatchCoverage row = {
                .ts_ns = clock_unix(&c->clock, until),
                .dt_ns = (int64_t) (until - from),
                .part = "calls",
        };

        if (from >= until)
                return;
        note_failure(c, batch_add_coverage(c->live, &row));
        if (row_wanted(c, from, until))
                note_failure(c, batch_add_coverage(c->recorded, &row));
}

int collect_calls(Collector *c, unsigned idle, uint64_t from, uint64_t until) {
        const struct prism_call_key *keys;
        const struct prism_call_value *values;
        size_t n;
        int r;

        if (c->calls_from_ns)
                emit_coverage(c, MAX(from, c->calls_from_ns),
                                c->calls_until_ns ? MIN(until, c->calls_until_ns) : until);
        r = probes_drain_calls(c->probes, idle, &keys, &values, &n);
        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++) {
                Thread *t = registry_thread_by_handle(c->registry, keys[i].thread);
                const struct prism_call_value *v = &values[i];
                BatchCall sums = {
                        .op = op_name(keys[i].resource.kind, keys[i].resource.op),
                        .count = v->count,
                        .errors = v->errors,
                        .bytes = v->bytes,
                        .total_ns = v->total_ns,
                        .max_ns = v->max_ns,
                };
                Resource *resource;

                if (!t)
                        continue;
                memcpy(sums.histogram, v->histogram, sizeof(sums.histogram));
                resource = resource_of(c, t, &keys[i].resource, v->user_address);
                if (!resource)
                        continue;
                /* A thread that never left the CPU has no interval of its own. */
                if (t->row_tick == c->tick && t->row_until_ns > t->row_from_ns)
                        emit_call(c, t, resource, t->row_from_ns, t->row_until_ns, &sums);
                else
                        emit_call(c, t, resource, from, until, &sums);
        }
        return 0;
}

int collector_set_calls(Collector *c, bool on) {
        int r;

        if (on == probes_calls(c->probes))
                return 0;
        if (on) {
                r = probes_set_calls(c->probes, true);
                if (r < 0)
                        return r;
                c->calls_from_ns = boot_now();
                c->calls_until_ns = 0;
                return 0;
        }
        c->calls_until_ns = boot_now();
        return probes_set_calls(c->probes, false);
}
