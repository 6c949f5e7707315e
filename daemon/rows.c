/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Rows of thread states, waits and run queues, into the batches of a tick; and the resources that they name. */
#include "collector-internal.h"
#include "describe.h"
#include "futex-name.h"
#include "names.h"

/* Whether this row also goes to the recorder. */
bool row_wanted(Collector *c, uint64_t from, uint64_t until) {
        return c->recorded && c->hooks.wanted(from, until, c->hooks.userdata);
}

/* A row that cannot be had is counted, the others go on. */
void note_failure(Collector *c, int r) {
        if (r < 0)
                losses_count(&c->losses, "collector", r == -ENOMEM ? "memory" : "map-not-drained", 1);
}

void emit_thread_time(Collector *c, Thread *t, uint64_t from, uint64_t until, const BatchThreadTime *sums) {
        BatchThreadTime row = *sums;

        row.ts_ns = clock_unix(&c->clock, until);
        row.dt_ns = (int64_t) (until - from);
        row.thread_key = t->key;
        t->used_ns = until;
        note_failure(c, batch_add_thread_time(c->live, &row));
        if (row_wanted(c, from, until)) {
                describe_thread(c->recorded, t, &c->clock, c->epoch);
                note_failure(c, batch_add_thread_time(c->recorded, &row));
        }
}

void emit_wait(Collector *c, Thread *t, uint64_t from, uint64_t until, Resource *resource, const BatchWait *sums) {
        BatchWait row = *sums;

        row.ts_ns = clock_unix(&c->clock, until);
        row.dt_ns = (int64_t) (until - from);
        row.thread_key = t->key;
        row.resource_key = resource->key;
        resource->used_ns = until;
        note_failure(c, batch_add_wait(c->live, &row));
        if (row_wanted(c, from, until)) {
                describe_resource(c->recorded, resource, c->epoch);
                note_failure(c, batch_add_wait(c->recorded, &row));
        }
}

void emit_mux_wait(Collector *c, Thread *t, uint64_t from, uint64_t until, Resource *set, Resource *watched,
                const char *op, uint64_t count, uint64_t total) {
        BatchMuxWait row = {
                .ts_ns = clock_unix(&c->clock, until),
                .dt_ns = (int64_t) (until - from),
                .thread_key = t->key,
                .resource_key = set->key,
                .watched_key = watched ? watched->key : 0,
                .op = op,
                .count = count,
                .total_ns = total,
        };

        if (watched)
                watched->used_ns = until;
        note_failure(c, batch_add_mux_wait(c->live, &row));
        if (row_wanted(c, from, until)) {
                describe_resource(c->recorded, set, c->epoch);
                if (watched)
                        describe_resource(c->recorded, watched, c->epoch);
                note_failure(c, batch_add_mux_wait(c->recorded, &row));
        }
}

void emit_ran_instead(Collector *c, Thread *t, uint64_t from, uint64_t until, Process *process, uint64_t total) {
        BatchRanInstead row = {
                .ts_ns = clock_unix(&c->clock, until),
                .dt_ns = (int64_t) (until - from),
                .thread_key = t->key,
                .process_key = process ? process->key : 0,
                .total_ns = total,
        };

        if (total == 0)
                return;
        if (process)
                process->used_ns = until;
        note_failure(c, batch_add_ran_instead(c->live, &row));
        if (row_wanted(c, from, until)) {
                if (process)
                        describe_process(c->recorded, process, &c->clock, c->epoch);
                note_failure(c, batch_add_ran_instead(c->recorded, &row));
        }
}

/* ---- Resources ---- */

const struct prism_resource lost_resource = { .kind = PRISM_KIND_OTHER, .op = PRISM_OP_LOST };

static void look_up_name(Collector *c, Resource *resource, const Thread *t, uint64_t user_address) {
        if (resource->id.kind != PRISM_KIND_FUTEX || resource->name || resource->name_tries >= NAME_TRIES ||
                        !t->process->pid || t->process->exit_boot_ns)
                return;
        /* At most once a tick, or what is waited for often would have used all of its tries before the first answer. */
        if (resource->asked_tick == c->tick)
                return;
        resource->asked_tick = c->tick;
        if (namer_ask(c->namer, &resource->id, t->process->pid, user_address) >= 0)
                resource->name_tries++;
}

Resource *resource_of(Collector *c, Thread *t, const struct prism_resource *id, uint64_t user_address) {
        struct prism_resource sure = *id;
        Resource *resource;
        bool created;

        resource = registry_resource(c->registry, id, &created);
        if (resource && id->kind == PRISM_KIND_FUTEX && id->shared == PRISM_FUTEX_UNSURE) {
                /* Nearly always private memory after all. A shared one stays a resource of its own, and a counted loss. */
                if (created)
                        resource->is_private = t->process->pid && futex_is_private(t->process->pid, user_address) > 0;
                if (resource->is_private) {
                        sure.shared = PRISM_FUTEX_PRIVATE;
                        resource->used_ns = boot_now();
                        resource = registry_resource(c->registry, &sure, &created);
                } else
                        losses_count(&c->losses, "kernel", "futex-key", 1);
        }
        if (!resource && errno == ENOSPC) {
                losses_count(&c->losses, "collector", "resource-limit", 1);
                resource = registry_resource(c->registry, &lost_resource, &created);
        }
        if (!resource) {
                note_failure(c, -ENOMEM);
                return NULL;
        }
        look_up_name(c, resource, t, user_address);
        return resource;
}

/* ---- A stretch in one state that ended nothing ---- */

/* What of it has been written out already is left out. */
void emit_stretch(Collector *c, Thread *t, const Stretch *s) {
        uint64_t from = MAX(s->from, t->accounted_ns), wake = MIN(MAX(s->wake, from), s->until);
        BatchThreadTime sums = {};
        uint64_t waited;

        if (from >= s->until)
                return;

        if (s->state == PRISM_STATE_RUN) {
                sums.run_ns = s->until - from;
                emit_thread_time(c, t, from, s->until, &sums);
                if (c->recorded)
                        t->accounted_ns = s->until;
                return;
        }

        if (s->state == PRISM_STATE_RUNQUEUE || s->state == PRISM_STATE_NONE)
                wake = from;
        waited = wake - from;
        if (s->state == PRISM_STATE_BLOCK) {
                sums.block_ns = waited;
                sums.iowait_ns = s->iowait ? waited : 0;
        } else
                sums.sleep_ns = waited;
        sums.runqueue_ns = s->until - wake;
        sums.throttled_ns = s->throttled ? sums.runqueue_ns : 0;
        emit_thread_time(c, t, from, s->until, &sums);
        if (waited > 0) {
                Resource *resource = resource_of(c, t, &s->resource, s->user_address);

                if (resource) {
                        const char *op = op_name(s->resource.kind, s->resource.op);

                        emit_wait(c, t, from, s->until, resource, &(BatchWait){ .op = op, .total_ns = waited });
                        /* Nothing has ended it yet. */
                        if (is_mux(resource))
                                emit_mux_wait(c, t, from, s->until, resource, NULL, op, 0, waited);
                }
        }
        emit_ran_instead(c, t, from, s->until, NULL, sums.runqueue_ns);
        if (c->recorded)
                t->accounted_ns = s->until;
}
