/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "collector-internal.h"

#include "describe.h"
#include "names.h"
#include "proc.h"

/* Names are looked up in /proc for this long a tick: the others get theirs when they are next waited for. */
#define NAMES_TIME_NS (20 * NSEC_PER_MSEC)
/* Each takes long enough for a virtual CPU to come back. */
#define INFLIGHT_PASSES 5
#define COLLECT_EVERY_TICKS 10
/* Long enough for the last switch of a thread that has left the task list. */
#define MISSING_NS (5 * NSEC_PER_SEC)

static void on_name(const ResourceKey *id, char *name, void *userdata) {
        take_name(userdata, id, name);
}

int collector_new(sd_event *event, Probes *probes, const RegistryLimits *limits, const CollectorHooks *hooks,
                Collector **ret) {
        _cleanup_(collector_freep) Collector *c = NULL;
        int r;

        c = calloc(1, sizeof(*c));
        if (!c)
                return -ENOMEM;
        c->probes = probes;
        c->hooks = *hooks;
        r = registry_new(limits, &c->registry);
        if (r < 0)
                return r;
        r = namer_new(event, on_name, c, &c->namer);
        if (r >= 0)
                r = cgroup_names_new(&c->cgroups);
        if (r >= 0)
                r = cgroup_times_new(&c->cgroup_times);
        if (r < 0)
                return r;
        c->generation_ns = boot_now();
        clock_update(&c->clock, false);
        *ret = TAKE_PTR(c);
        return 0;
}

Collector *collector_free(Collector *c) {
        if (!c)
                return NULL;
        namer_free(c->namer);
        free(c->renamed);
        registry_free(c->registry);
        cgroup_names_free(c->cgroups);
        cgroup_times_free(c->cgroup_times);
        free(c->by_slot);
        free(c->on_its_way);
        free(c->refused);
        free(c->ending);
        free(c->ended);
        free(c);
        return NULL;
}

Registry *collector_registry(Collector *c) {
        return c->registry;
}

const Clock *collector_clock(const Collector *c) {
        return &c->clock;
}

Losses *collector_losses(Collector *c) {
        return &c->losses;
}

/* ---- Threads and processes ---- */

void process_refresh(Process *p) {
        ProcDetails d;

        if (!p->pid)
                return;
        proc_details(p->pid, !p->observed, &d);
        process_set_text(&p->exe, d.exe);
        process_set_text(&p->cmdline, d.cmdline);
        process_set_text(&p->cgroup, d.cgroup);
        process_set_text(&p->unit, d.unit);
        if (d.netns)
                p->netns = d.netns;
        proc_details_done(&d);
        p->described = 0;
}

/* NULL and errno, not counted. */
static Process *process_try_add(Collector *c, const Identity *id, uint32_t pid, const char *comm, bool observed) {
        Process *p = registry_add_process(c->registry, id, observed);

        if (!p)
                return NULL;
        p->pid = pid;
        snprintf(p->comm, sizeof(p->comm), "%s", comm);
        process_refresh(p);
        return p;
}

Process *process_observe(Collector *c, const Identity *id, uint32_t pid, const char *comm) {
        Process *p = process_try_add(c, id, pid, comm, true);
        ProcStatus status;

        if (!p) {
                losses_count(&c->losses, "collector", errno == ENOSPC ? "observed-limit" : "memory", 1);
                return NULL;
        }
        if (pid && proc_status(pid, &status) >= 0) {
                p->ppid = status.ppid;
                p->uid = status.uid;
        }
        return p;
}

/* NULL and errno, not counted: a thread without a process is tried again at each look. */
static Process *process_of_info(Collector *c, const struct prism_thread_info *info) {
        Identity id = { .start_boot_ns = info->process_start_ns, .number = info->tgid };
        Identity parent_id = { .start_boot_ns = info->parent_start_ns, .number = info->parent_tgid };
        Process *p = registry_process(c->registry, &id), *parent;
        bool first = !p || p->live_threads == 0;

        if (!p) {
                p = process_try_add(c, &id, info->user_tgid, info->comm, false);
                if (!p)
                        return NULL;
        }
        if (first && !registry_list_process(c->registry, p)) {
                errno = ENOSPC;
                return NULL;
        }
        p->ppid = info->user_parent_tgid;
        p->uid = info->uid;
        if (first) {
                parent = registry_process(c->registry, &parent_id);
                if (parent && parent->live_threads == 0 && parent->n_targets == 0)
                        parent = NULL;
                p->exit_boot_ns = 0;
                p->found_by = info->inherited ? "child" : "target";
                /* What it has from its parent is known from there. */
                p->looked_at = info->inherited;
                p->looked_ns = 0;
                p->found_from = info->inherited && parent ? parent->key : 0;
                p->described = 0;
                c->hooks.process_found(p, info->inherited ? parent : NULL, info, c->hooks.userdata);
        }
        return p;
}

static void thread_comm(Thread *t, const char *comm) {
        if (streq(t->comm, comm))
                return;
        snprintf(t->comm, sizeof(t->comm), "%s", comm);
        t->described = 0;
        if (t->identity.number == t->process->identity.number) {
                snprintf(t->process->comm, sizeof(t->process->comm), "%s", comm);
                t->process->described = 0;
        }
}

static void slot_end(Collector *c, unsigned slot) {
        if (slot >= c->n_by_slot || c->on_its_way[slot])
                return;
        c->by_slot[slot] = NULL;
        if (GROW(c->ending, c->n_ending, c->c_ending) < 0) {
                losses_count(&c->losses, "collector", "memory", 1);
                return;
        }
        c->on_its_way[slot] = true;
        c->ending[c->n_ending++] = slot;
}

static void thread_end(Collector *c, Thread *t, uint64_t exit_ns, bool exited) {
        Process *p = t->process;
        bool recorded;

        if (!t->live)
                return;
        t->live = false;
        t->used_ns = exit_ns;
        /* exit_boot_ns is what decides when it is forgotten; a thread that was only released has not exited. */
        t->exit_boot_ns = exited ? exit_ns : 0;
        recorded = c->recorded && t->described == c->epoch;
        t->described = 0;
        if (t->slot < c->n_by_slot && c->by_slot[t->slot] == t)
                slot_end(c, t->slot);

        p->used_ns = exit_ns;
        if (p->live_threads > 0 && --p->live_threads == 0) {
                if (exited)
                        p->exit_boot_ns = exit_ns;
                p->described = 0;
                registry_unlist_process(c->registry, p);
                c->hooks.process_gone(p, c->hooks.userdata);
        }
        /* No row may follow that would bring the end with it. */
        if (recorded)
                describe_thread(c->recorded, t, &c->clock, c->epoch);
}

static int slots_grow(Collector *c, unsigned n) {
        Thread **threads;
        Refused *refused;
        bool *flags;

        if (n <= c->n_by_slot)
                return 0;
        n = MAX(n, c->n_by_slot * 2);
        threads = reallocarray(c->by_slot, n, sizeof(*threads));
        if (!threads)
                return -ENOMEM;
        c->by_slot = threads;
        flags = reallocarray(c->on_its_way, n, sizeof(*flags));
        if (!flags)
                return -ENOMEM;
        c->on_its_way = flags;
        refused = reallocarray(c->refused, n, sizeof(*refused));
        if (!refused)
                return -ENOMEM;
        c->refused = refused;
        memset(refused + c->n_by_slot, 0, (n - c->n_by_slot) * sizeof(*refused));
        memset(threads + c->n_by_slot, 0, (n - c->n_by_slot) * sizeof(*threads));
        memset(flags + c->n_by_slot, 0, (n - c->n_by_slot) * sizeof(*flags));
        c->n_by_slot = n;
        return 0;
}

static void scan_slot(Collector *c, unsigned slot) {
        Thread *t = c->by_slot[slot];
        struct prism_thread_info info;
        Process *p;
        bool late;

        if (c->on_its_way[slot] || (t && t->info_sequence == probes_info_sequence(c->probes, slot)))
                return;
        if (!probes_thread_info(c->probes, slot, &info) || info.thread == 0)
                return;
        info.comm[sizeof(info.comm) - 1] = '\0';

        if (!t || t->handle != info.thread) {
                Identity id = { .start_boot_ns = info.start_ns, .number = info.tid };

                t = registry_thread_by_handle(c->registry, info.thread);
                if (t) /* it has gone on to another slot, as the leader of its process */
                        return;
                p = process_of_info(c, &info);
                if (!p) {
                        if (errno != ENOSPC)
                                losses_count(&c->losses, "collector", "memory", 1);
                        else if (c->refused[slot].handle != info.thread)
                                c->refused[slot] = (Refused){ .handle = info.thread };
                        return;
                }
                t = registry_add_thread(c->registry, &id, info.thread, p);
                if (!t) {
                        losses_count(&c->losses, "collector", "memory", 1);
                        return;
                }
                t->tid = info.user_tid;
                t->slot = slot;
                /* What was lost before is counted: it begins with its next row. */
                late = c->refused[slot].handle == info.thread && c->refused[slot].counted;
                t->accounted_ns = late ? 0 : info.tracked_ns;
                t->used_ns = info.tracked_ns;
                t->live = true;
                p->live_threads++;
                if (p->live_threads == 1)
                        p->execs = info.execs;
                else if (info.tid == info.tgid) {
                        /* A thread that executed an image took the leader's place. */
                        p->execs = info.execs;
                        process_refresh(p);
                }
                c->by_slot[slot] = t;
        }
        t->info_sequence = info.sequence;
        thread_comm(t, info.comm);
        if (info.execs != t->process->execs && info.tid == info.tgid) {
                t->process->execs = info.execs;
                t->process->uid = info.uid;
                process_refresh(t->process);
        }
}

void collector_scan(Collector *c) {
        unsigned n = probes_slots(c->probes);

        if (slots_grow(c, n) < 0) {
                losses_count(&c->losses, "collector", "memory", 1);
                return;
        }
        for (unsigned slot = 0; slot < n; slot++)
                scan_slot(c, slot);
}

void collector_forget_all(Collector *c, uint64_t boundary_ns) {
        unsigned n = MIN(probes_slots(c->probes), c->n_by_slot);

        for (unsigned slot = 0; slot < n; slot++) {
                struct prism_thread_info info;

                if (c->by_slot[slot])
                        thread_end(c, c->by_slot[slot], boundary_ns, false);
                else if (probes_thread_info(c->probes, slot, &info) && info.thread != 0)
                        slot_end(c, slot);
        }
}

void collector_forget_process(Collector *c, Process *p, uint64_t boundary_ns) {
        for (unsigned slot = 0; slot < c->n_by_slot; slot++) {
                Thread *t = c->by_slot[slot];

                if (t && t->process == p)
                        thread_end(c, t, boundary_ns, false);
        }
}

/* ---- A tick ---- */

static void collect_row(Collector *c, unsigned idle, unsigned slot) {
        struct prism_thread_time *row = probes_thread_time(c->probes, idle, slot);
        BatchThreadTime sums;
        uint64_t exit_ns;
        Thread *t;

        if (row->thread == 0)
                return;
        t = registry_thread_by_handle(c->registry, row->thread);
        if (!t || !t->live) {
                Refused *refused = &c->refused[slot];

                if (!t && refused->handle == row->thread && !refused->counted) {
                        losses_count(&c->losses, "collector", "process-limit", 1);
                        refused->counted = true;
                }
                /* It could not be entered; or it was released while its last time was being added, and then its slot is
                 * on its way back already. */
                if (!t && row->exit_ns)
                        slot_end(c, slot);
                memset(row, 0, sizeof(*row));
                return;
        }

        if (row->lead_until_ns)
                emit_stretch(c, t,
                                &(Stretch){
                                                .from = row->lead_from_ns,
                                                .wake = row->lead_wake_ns,
                                                .until = row->lead_until_ns,
                                                .resource = row->lead_resource,
                                                .user_address = row->lead_user_address,
                                                .state = row->lead_state,
                                                .iowait = row->lead_iowait,
                                                .throttled = row->lead_throttled,
                                });

        t->row_tick = c->tick;
        t->row_from_ns = row->from_ns;
        t->row_until_ns = row->until_ns;
        if (t->accounted_ns == 0)
                t->accounted_ns = row->from_ns;
        if (row->from_ns != t->accounted_ns) {
                /* Each interval must begin where the last one ended. */
                losses_count(&c->losses, "collector", row->from_ns > t->accounted_ns ? "gap" : "overlap", 1);
        }
        sums = (BatchThreadTime){
                .run_ns = row->run_ns,
                .runqueue_ns = row->runqueue_ns,
                .sleep_ns = row->sleep_ns,
                .block_ns = row->block_ns,
                .iowait_ns = row->iowait_ns,
                .throttled_ns = row->throttled_ns,
                .healed_ns = row->healed_ns,
                .switches = row->switches,
                .preemptions = row->preemptions,
        };
        if (row->until_ns > row->from_ns) {
                emit_thread_time(c, t, row->from_ns, row->until_ns, &sums);
                collect_inline_insteads(c, t, row);
                emit_ran_instead(c, t, row->from_ns, row->until_ns, NULL,
                                row->runqueue_ns - MIN(row->named_ns, row->runqueue_ns));
                if (row->lost_ns > 0) {
                        Resource *lost = resource_of(c, t, &lost_resource, 0);

                        if (lost)
                                emit_wait(c, t, row->from_ns, row->until_ns, lost,
                                                &(BatchWait){ .op = op_name(PRISM_KIND_OTHER, PRISM_OP_LOST),
                                                                .total_ns = row->lost_ns });
                }
        }
        t->accounted_ns = MAX(t->accounted_ns, row->until_ns);
        exit_ns = row->exit_ns;
        memset(row, 0, sizeof(*row));
        if (exit_ns)
                thread_end(c, t, exit_ns, true);
}

/* One pass of emit_inflight(). Returns how many states could not be read. */
static int emit_inflight_once(Collector *c, uint64_t boundary) {
        _cleanup_free_ struct prism_inflight *states = NULL;
        int r, unread = 0;
        size_t n;

        r = probes_inflight(c->probes, &states, &n);
        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++) {
                const struct prism_inflight *s = &states[i];
                Thread *t = registry_thread_by_handle(c->registry, s->thread);

                if (!t || !t->live)
                        continue;
                t->seen_ns = boundary;
                if (s->state == PRISM_STATE_NONE)
                        unread++;
                else if (s->since_ns < boundary)
                        emit_stretch(c, t,
                                        &(Stretch){
                                                        .from = s->since_ns,
                                                        .wake = s->wake_ns && s->wake_ns < boundary ? s->wake_ns
                                                                                                    : boundary,
                                                        .until = boundary,
                                                        .resource = s->resource,
                                                        .user_address = s->user_address,
                                                        .state = s->state,
                                                        .iowait = s->iowait,
                                                        .throttled = s->throttled,
                                        });
        }
        return unread;
}

/* Writes out the state that each thread has been in since before `boundary`. What was written out by an earlier pass is not
 * written again. */
static int emit_inflight(Collector *c, uint64_t boundary) {
        int unread = 0;

        for (unsigned i = 0; i < INFLIGHT_PASSES; i++) {
                unread = emit_inflight_once(c, boundary);
                if (unread <= 0 || !c->recorded)
                        return MIN(unread, 0);
        }
        losses_count(&c->losses, "collector", "snapshot-race", (uint64_t) unread);
        return 0;
}

/* A thread that the iterator of a flush did not meet has just ended, and its last row comes with the next tick. If it does
 * not, the kernel did not deliver its last switch. */
static void note_missing(Collector *c, uint64_t boundary) {
        for (Thread *t = registry_threads(c->registry); t; t = t->hh_handle.next)
                if (t->live && t->seen_ns != boundary && t->accounted_ns < boundary && !t->missing_ns) {
                        t->missing_ns = boundary;
                        c->n_missing++;
                }
}

static void end_missing(Collector *c, uint64_t boundary) {
        if (c->n_missing == 0)
                return;
        c->n_missing = 0;
        for (Thread *t = registry_threads(c->registry); t; t = t->hh_handle.next) {
                if (!t->missing_ns || !t->live)
                        continue;
                if (t->seen_ns > t->missing_ns || t->accounted_ns > t->missing_ns)
                        t->missing_ns = 0;
                else if (t->missing_ns + MISSING_NS > boundary)
                        c->n_missing++;
                else {
                        losses_count(&c->losses, "collector", "exit-unseen", 1);
                        thread_end(c, t, t->missing_ns, true);
                }
        }
}

int collector_peek(Collector *c, Batch *b) {
        int r;

        c->live = b;
        c->recorded = NULL;
        r = emit_inflight(c, boot_now());
        c->live = NULL;
        return r;
}

static void collect_losses(Collector *c, uint64_t boundary) {
        uint64_t misses = probes_recursion_misses(c->probes);
        int64_t ts = clock_unix(&c->clock, boundary);

        for (unsigned i = 0; i < _PRISM_LOSS_MAX; i++) {
                uint64_t total = probes_loss(c->probes, i);

                losses_count(&c->losses, "kernel", loss_name(i), total - c->kernel_losses[i]);
                c->kernel_losses[i] = total;
        }
        losses_count(&c->losses, "kernel", "recursion", misses - c->recursion_misses);
        c->recursion_misses = misses;

        for (size_t i = 0; i < c->losses.n; i++) {
                Loss *l = &c->losses.entries[i];
                BatchLoss row = { .ts_ns = ts, .part = l->part, .reason = l->reason, .count = l->total - l->reported };

                if (row.count == 0)
                        continue;
                note_failure(c, batch_add_loss(c->live, &row));
                note_failure(c, batch_add_loss(c->recorded, &row));
                l->reported = l->total;
        }
}

/* What was recorded under a worse name than is known now; and asks for more. */
static void tell_names(Collector *c) {
        for (size_t i = 0; i < c->n_renamed; i++) {
                Resource *s = registry_find(c->registry, &c->renamed[i]);

                if (s && row_wanted(c, c->generation_ns - 1, c->generation_ns))
                        describe_resource(c->recorded, s, c->epoch);
        }
        c->n_renamed = 0;
        namer_flush(c->namer);
}

void collector_wait_for_names(Collector *c) {
        namer_wait(c->namer);
}

static void release_slots(Collector *c) {
        unsigned *array = c->ended;
        size_t capacity = c->c_ended;

        for (size_t i = 0; i < c->n_ended; i++) {
                c->on_its_way[c->ended[i]] = false;
                probes_slot_release(c->probes, c->ended[i]);
        }
        c->ended = c->ending;
        c->n_ended = c->n_ending;
        c->c_ended = c->c_ending;
        c->ending = array;
        c->n_ending = 0;
        c->c_ending = capacity;
}

static void forget_process(const Process *p, void *userdata) {
        Collector *c = userdata;

        note_failure(c, redescribe_process(c->live, p, &c->clock));
}

static void forget_thread(const Thread *t, void *userdata) {
        Collector *c = userdata;

        note_failure(c, redescribe_thread(c->live, t, &c->clock));
}

static void forget_resource(const Resource *s, void *userdata) {
        Collector *c = userdata;

        note_failure(c, redescribe_resource(c->live, s));
}

/* Makes room in the registry. What the rows of the last minute still name leaves its description in the newest batch, which
 * is kept longer than they are. */
static void forget(Collector *c, uint64_t boundary, uint64_t generation_ns) {
        const RegistryForget hooks = {
                .process = forget_process,
                .thread = forget_thread,
                .resource = forget_resource,
                .userdata = c,
        };

        if (c->tick % COLLECT_EVERY_TICKS == 0 || registry_is_crowded(c->registry))
                registry_collect(c->registry, boundary, generation_ns, &hooks);
}

int collector_tick(Collector *c, bool flush, bool recording, Batch **ret_live, Batch **ret_recorded,
                uint64_t *ret_boundary_ns) {
        _cleanup_(batch_unrefp) Batch *live = NULL, *recorded = NULL;
        uint64_t boundary;
        unsigned idle, n;
        int r;

        live = batch_new();
        recorded = batch_new();
        if (!live || !recorded)
                return -ENOMEM;

        if (clock_update(&c->clock, recording))
                c->clock_described = 0;
        r = probes_flip(c->probes, flush, &idle, &boundary);
        if (r < 0)
                return r;

        c->live = live;
        c->recorded = recorded;
        c->flushing = flush;
        c->epoch = c->hooks.epoch(c->hooks.userdata);
        c->tick++;
        c->names_until_ns = boot_now() + NAMES_TIME_NS;

        release_slots(c);
        collector_scan(c);
        note_failure(c, collect_objects(c, boundary));
        n = MIN(probes_slots(c->probes), c->n_by_slot);
        for (unsigned slot = 0; slot < n; slot++)
                collect_row(c, idle, slot);
        note_failure(c, collect_waits(c, idle));
        note_failure(c, collect_insteads(c, idle));
        note_failure(c, collect_calls(c, idle, c->generation_ns, boundary));
        note_failure(c, collect_disks(c, idle, c->generation_ns, boundary));
        note_failure(c, collect_cgroups(c, boundary));
        if (flush) {
                note_failure(c, emit_inflight(c, boundary));
                note_missing(c, boundary);
        }
        end_missing(c, boundary);
        tell_names(c);
        forget(c, boundary, c->generation_ns);
        c->generation_ns = boundary;
        collect_losses(c, boundary);
        if (recorded->n_thread_times > 0 && c->clock_described != c->epoch) {
                note_failure(c,
                                batch_add_clock(recorded,
                                                &(BatchClock){ (int64_t) boundary, clock_unix(&c->clock, boundary) }));
                c->clock_described = c->epoch;
        }
        c->live = c->recorded = NULL;
        *ret_live = TAKE_PTR(live);
        *ret_recorded = TAKE_PTR(recorded);
        *ret_boundary_ns = boundary;
        return 0;
}
