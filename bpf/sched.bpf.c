// SPDX-License-Identifier: GPL-2.0-only
/* The thread state machine, on the scheduler's own tracepoints. A tracked thread is at every moment in one state; each
 * transition charges the time since the last one to the state that ends, in the current generation of the maps. One
 * transition has one writer: switches run under the run queue lock of the CPU, wakes and migrations under the thread's
 * wake-up or run queue lock.
 *
 * Build with -DPRISM_DROP_WAKING or -DPRISM_DROP_SWITCH_IN to get a broken side that the conservation check must find.
 * */
#include "maps.bpf.h"
#include "object.bpf.h"
#include "row.bpf.h"
#include "slices.bpf.h"
#include "waker.bpf.h"

/* How far a wake is ahead of the switch at most: the waker waits for the switch to end. */
#define EARLY_WAKE_NS 200000

#ifdef PRISM_DROP_SWITCH_IN
#define DROP_SWITCH_IN true
#else
#define DROP_SWITCH_IN false
#endif

/* Tells prismd of what the wait was on: once a generation for each entry of `wait`. False: there was no room. */
static __noinline bool wait_describe(struct thread_state *st, struct prism_wait_key *key) {
        struct prism_object_key object = {};
        bool full = false;

        if (!st || !key)
                return true;
        if (is_described(key->resource.kind) && (key->resource.space || key->resource.address)) {
                object.kind = key->resource.kind;
                object.space = key->resource.space;
                object.address = key->resource.address;
                full |= !object_describe(SCRATCH_SWITCH, &object, st->file, st, st->file ? (int) st->user_address : -1);
        }
        if (key->via_kind) {
                object.kind = key->via_kind;
                object.space = key->via_space;
                object.address = key->via_address;
                full |= !object_describe(SCRATCH_SWITCH, &object,
                                st->was_early || !st->via.kind ? st->early_via.file : st->via.file, st, -1);
        }
        return !full;
}

/* Enters a wait that ended: `inside` ns of it in this generation, `full` ns in all. One hash operation a wait; the
 * waker is part of the key, so that `wake` can be derived from the same entry, and so is the watched file that ended a
 * wait on many. */
static __noinline bool wait_add(struct thread_state *st, __u8 waker_kind, __u32 generation, __u64 inside, __u64 full) {
        void *map = bpf_map_lookup_elem(&wait_generations, &generation);
        struct prism_wait_key key = {};
        struct prism_wait_value *value;
        __u32 bucket = histogram_bucket(full) & (PRISM_HISTOGRAM_BUCKETS - 1);
        int r;

        if (!map)
                return false;
        key.thread = st->thread;
        key.resource = st->resource;
        key.waker_kind = waker_kind;
        if (waker_kind == PRISM_WAKER_THREAD) {
                key.waker_tid = st->waker_tid;
                key.waker = st->waker;
        }
        if (waker_kind != PRISM_WAKER_UNSEEN && waits_on_many(st)) {
                bool early = st->was_early || !st->via.kind;
                struct via *via = early ? &st->early_via : &st->via;

                if (via->kind == VIA_UNIDENTIFIED)
                        (void) epoll_via_identify(st, early);
                key.via_space = via->space;
                key.via_address = via->address;
                key.via_kind = via->kind;
                if (!key.via_kind)
                        key.via_space = key.via_address = 0;
        }

        value = bpf_map_lookup_elem(map, &key);
        if (!value) {
                struct work *w = work_of(WORK_SWITCH);
                struct prism_wait_value *fresh;

                if (!w)
                        return false;
                fresh = &w->wait;
                __builtin_memset(fresh, 0, sizeof(*fresh));
                fresh->total_ns = inside;
                fresh->ended_ns = fresh->max_ns = full;
                fresh->user_address = st->user_address;
                fresh->count = 1;
                fresh->histogram[bucket] = 1;
                if (waker_kind == PRISM_WAKER_THREAD && st->waker_tid) {
                        fresh->waker_tgid = st->waker_tgid;
                        fresh->waker_user_tgid = st->waker_user_tgid;
                        fresh->waker_user_tid = st->waker_user_tid;
                        fresh->waker_process_start_ns = st->waker_process_start_ns;
                        __builtin_memcpy(fresh->waker_comm, st->waker_comm, sizeof(fresh->waker_comm));
                }
                r = bpf_map_update_elem(map, &key, fresh, BPF_NOEXIST);
                if (r != 0) {
                        count_loss(r == -E2BIG ? PRISM_LOSS_WAIT_FULL : PRISM_LOSS_WAIT_BUSY);
                        return false;
                }
                if (!wait_describe(st, &key))
                        count_loss(PRISM_LOSS_OBJECT_FULL);
                return true;
        }

        value->total_ns += inside;
        value->ended_ns += full;
        value->count += 1;
        value->histogram[bucket] += 1;
        if (value->max_ns < full)
                value->max_ns = full;
        return true;
}

/* How long the thread has stood in run queues since it left the CPU, by the scheduler's own account: the way to know
 * when a wake was that the tracepoint did not deliver. -1 where the kernel keeps none. `queued`: it still stands in one
 * now. */
static __always_inline long scheduler_delay(struct task_struct *task, const struct thread_state *st, bool queued) {
        __u64 delay;

        if (!bpf_core_field_exists(task->sched_info.run_delay))
                return -1;
        delay = task->sched_info.run_delay - st->run_delay;
        if (queued && bpf_core_field_exists(task->se.cfs_rq) && task->sched_info.last_queued) {
                __u64 clock = task->se.cfs_rq->rq->clock;

                if (clock > task->sched_info.last_queued)
                        delay += clock - task->sched_info.last_queued;
        }
        return delay;
}

/* The part of a stay in the run queue for which the limit held the thread back; without the kernel's account (6.6) all of it,
 * also what it waits after that. */
static __always_inline __u64 throttled_part(struct task_struct *task, const struct thread_state *st, __u64 waited) {
        __u64 part;

        if (!bpf_core_field_exists(task->se.cfs_rq->throttled_clock_self_time))
                return waited;
        part = task->se.cfs_rq->throttled_clock_self_time - st->throttled_ns;
        return part < waited ? part : waited;
}

/* Charges all time since the last transition of a thread that is not on the CPU up to `now`: the wait, if it was in
 * one, and the run queue. Afterwards it stands in the run queue since `now`. `cpu` is the one whose queue it was in;
 * `running` is the task that has that CPU for running_ns already and goes on (NULL at a switch, where the last slice
 * has just ended). */
static __always_inline void charge_off_cpu(struct task_struct *task, struct thread_state *st, __u32 generation,
                __u64 now, bool queued_now, __u32 cpu, struct task_struct *running, __u64 running_ns) {
        struct prism_thread_time *row = time_row(generation, st->slot);
        __u64 from, queued, ran;

        if (!row)
                return;
        from = row_open(row, st, generation);
        if (now < from)
                now = from;

        ran = task->se.sum_exec_runtime - st->exec_runtime;
        if (ran) {
                /* It has had the CPU since it left it: a switch to it and the one away again were not delivered. */
                if (ran > now - from)
                        ran = now - from;
                row->run_ns += ran;
                from += ran;
                if (st->settled)
                        count_loss(PRISM_LOSS_MISSED_SWITCH);
        }
        queued = from;

        if (st->state == PRISM_STATE_SLEEP || st->state == PRISM_STATE_BLOCK) {
                __u64 wake = READ_ONCE(st->wake_ns), inside;
                __u8 waker_kind = st->waker_kind;

                if (wake < st->since_ns && wake >= st->ran_since_ns && now - st->since_ns > EARLY_WAKE_NS) {
                        long delay = scheduler_delay(task, st, queued_now);

                        /* The waker was ahead of the switch, in the run that led to this sleep; then the thread has been
                         * in the queue all the while. If not, that wake was for nothing, and the real one was missed. */
                        if (delay >= 0 && now - st->since_ns > delay + EARLY_WAKE_NS)
                                wake = 0;
                }
                if (wake < st->ran_since_ns) {
                        long delay = scheduler_delay(task, st, queued_now);

                        /* The wake was not delivered. The scheduler's account says when it was; without one, all of the
                         * time counts as the wait, and as inferred. */
                        if (delay < 0)
                                row->healed_ns += now - from;
                        wake = delay > 0 ? (now - st->since_ns > delay ? now - delay : st->since_ns) : now;
                        waker_kind = PRISM_WAKER_UNSEEN;
                        if (st->settled)
                                count_loss(PRISM_LOSS_MISSED_WAKE);
                }
                st->was_early = wake < st->since_ns;
                if (wake < st->since_ns)
                        wake = st->since_ns;
                if (wake > now)
                        wake = now;

                queued = wake > from ? wake : from;
                inside = queued - from;
                if (st->state == PRISM_STATE_SLEEP)
                        row->sleep_ns += inside;
                else {
                        row->block_ns += inside;
                        if (st->iowait)
                                row->iowait_ns += inside;
                }
                if (wake < st->since_ns + ran)
                        wake = st->since_ns + ran;
                if (!wait_add(st, waker_kind, generation, inside, wake - st->since_ns - ran))
                        row->lost_ns += inside;
        }

        row->runqueue_ns += now - queued;
        st->queued_ns = now - queued;
        if (st->throttled)
                row->throttled_ns += throttled_part(task, st, now - queued);
        if (now > queued) {
                __u64 waited = now - queued;

                if (running && running_ns) {
                        if (running_ns > waited)
                                running_ns = waited;
                        WRITE_ONCE(st->running, (__u64) running);
                        if (instead_note(row, generation, READ_ONCE(st->running), running->tgid, st->tgid, running_ns))
                                row->named_ns += running_ns;
                        waited -= running_ns;
                }
                if (waited)
                        row->named_ns += instead_charge(row, st, generation, cpu, waited);
        }
        row->until_ns = now;

        st->state = PRISM_STATE_RUNQUEUE;
        st->since_ns = now;
        st->mark_cpu = NO_MARK;
}

/* A switch from the CPU was not delivered. The scheduler's accounts say how much of the time the thread had the CPU and
 * how much it stood in run queues; the rest was a wait for something that nobody saw. */
static __always_inline void heal_missed_switch_out(
                struct thread_state *st, struct task_struct *task, __u32 generation, __u64 now) {
        struct prism_thread_time *row = time_row(generation, st->slot);
        __u64 run = task->se.sum_exec_runtime - st->exec_runtime, from, rest;
        long delay = scheduler_delay(task, st, true);

        /* The account has the stay before the run too, which was charged when the run began. */
        if (delay >= 0)
                delay = delay > st->queued_ns ? delay - st->queued_ns : 0;
        if (!row)
                return;
        from = row_open(row, st, generation);
        if (now < from)
                now = from;
        rest = now - from;
        if (run > rest)
                run = rest;
        row->run_ns += run;
        rest -= run;
        row->healed_ns += rest;
        if (delay < 0 || delay > rest)
                delay = rest;
        row->runqueue_ns += delay;
        rest -= delay;
        if (rest) {
                st->resource.space = st->resource.address = 0;
                st->resource.kind = PRISM_KIND_OTHER;
                st->resource.op = PRISM_OP_UNKNOWN;
                st->resource.shared = 0;
                row->sleep_ns += rest;
                if (!wait_add(st, PRISM_WAKER_UNSEEN, generation, rest, rest))
                        row->lost_ns += rest;
        }
        row->until_ns = now;
        st->state = PRISM_STATE_RUNQUEUE;
        st->since_ns = now;
        if (st->settled)
                count_loss(PRISM_LOSS_MISSED_SWITCH);
}

static __always_inline void switch_in(
                struct task_struct *next, struct thread_state *st, __u32 generation, __u64 now, __u32 cpu) {
        WRITE_ONCE(st->version, st->version + 1);
        barrier();
        if (st->state == PRISM_STATE_RUN)
                heal_missed_switch_out(st, next, generation, now);
        else
                charge_off_cpu(next, st, generation, now, true, cpu, NULL, 0);
        st->state = PRISM_STATE_RUN;
        st->throttled = 0;
        st->settled = 1;
        st->ran_since_ns = now;
        st->exec_runtime = next->se.sum_exec_runtime;
        barrier();
        WRITE_ONCE(st->version, st->version + 1);
}

static __always_inline void switch_out(struct task_struct *prev, struct thread_state *st, __u32 generation, __u64 now,
                bool preempt, __u32 prev_state, struct slices *s, __u32 cpu) {
        struct prism_thread_time *row = time_row(generation, st->slot);
        struct work *w = work_of(WORK_SWITCH);
        __u64 from;

        if (!row)
                return;
        WRITE_ONCE(st->version, st->version + 1);
        barrier();

        if (st->state != PRISM_STATE_RUN) {
                /* It was not seen coming in, but the scheduler knows for how long it has had the CPU since it left it. */
                __u64 run = prev->se.sum_exec_runtime - st->exec_runtime, in = now - run;

                if (in < st->since_ns || run > now)
                        in = st->since_ns;
                if (in < control.generation_start_ns[generation & 1])
                        in = control.generation_start_ns[generation & 1];
                st->exec_runtime = prev->se.sum_exec_runtime;
                charge_off_cpu(prev, st, generation, in, false, cpu, NULL, 0);
                if (st->settled)
                        count_loss(PRISM_LOSS_MISSED_SWITCH);
                st->state = PRISM_STATE_RUN;
                st->ran_since_ns = st->since_ns;
                st->settled = 1;
        }

        from = row_open(row, st, generation);
        if (now < from)
                now = from;
        row->run_ns += now - from;
        row->until_ns = now;

        st->since_ns = now;
        st->exec_runtime = prev->se.sum_exec_runtime;
        if (bpf_core_field_exists(prev->sched_info.run_delay))
                st->run_delay = prev->sched_info.run_delay;

        if (prev_state & TASK_DEAD)
                row->exit_ns = now;
        else if (!preempt && prev_state != 0 && prev->__state != 0) {
                __u32 state = prev_state & TASK_UNINTERRUPTIBLE ? PRISM_STATE_BLOCK : PRISM_STATE_SLEEP;

                st->iowait = state == PRISM_STATE_BLOCK && BPF_CORE_READ_BITFIELD(prev, in_iowait);
                if (w)
                        resource_resolve(prev, prev_state, true, st, w);
                /* Only now: a waker that sees it asleep reads what it waits for. */
                barrier();
                WRITE_ONCE(st->state, state);
                barrier();
                if (waits_on_many(st)) {
                        /* The wake may have come before the switch: then the file is ready now. */
                        st->early_via.kind = PRISM_KIND_NONE;
                        if (READ_ONCE(st->wake_ns) >= st->ran_since_ns) {
                                if (st->resource.kind == PRISM_KIND_EPOLL)
                                        (void) epoll_via(st, true);
                                else
                                        (void) poll_via(READ_ONCE(st->task), st, true, true);
                        }
                }
                row->switches++;
        } else {
                st->state = PRISM_STATE_RUNQUEUE;
                if (s)
                        slice_mark(st, s, cpu);
                st->throttled = bpf_core_field_exists(prev->se.cfs_rq->throttle_count) &&
                                prev->se.cfs_rq->throttle_count > 0;
                if (st->throttled && bpf_core_field_exists(prev->se.cfs_rq->throttled_clock_self_time))
                        st->throttled_ns = prev->se.cfs_rq->throttled_clock_self_time;
                row->preemptions++;
        }

        barrier();
        WRITE_ONCE(st->version, st->version + 1);
}

/* Each switch of the host. Measured above an empty program (docs/cost.md): 5 ns while nothing is tracked, some 50 ns for
 * threads that are not, 320 ns for a tracked one at 230,000 switches a second, up to 700 ns at rates at which its cache
 * lines have gone cold.
 *
 * Not BPF_PROG(): that reads all arguments first, and reading the fourth fails the load before 5.18, also in a branch that is
 * never taken. (preempt, prev, next, prev_state) */
SEC("tp_btf/sched_switch")
int sched_switch(__u64 *ctx) {
        bool preempt = ctx[0];
        struct task_struct *prev = (struct task_struct *) ctx[1];
        struct task_struct *next = (struct task_struct *) ctx[2];
        __u32 cpu = bpf_get_smp_processor_id(), generation;
        struct thread_state *st;
        struct slices *s;
        __u64 now;

        if (!control.active)
                return 0;

        s = bpf_map_lookup_elem(&slices, &cpu);
        if (s)
                slice_push(s, prev, next);

        if (!prev->bpf_storage && !next->bpf_storage)
                return 0;

        generation = current_generation();
        now = bpf_ktime_get_boot_ns();

        if (prev->bpf_storage) {
                st = bpf_task_storage_get(&threads, prev, 0, 0);
                if (st) {
                        /* The state as sched_switch saw it, where the kernel passes it (5.18); __state may have been
                         * changed since. */
                        __u32 prev_state = prev->__state;

                        if (settings.has_prev_state)
                                prev_state = READ_ONCE(ctx[3]);

                        switch_out(prev, st, generation, now, preempt, prev_state, s, cpu);
                }
        }
        if (!DROP_SWITCH_IN && next->bpf_storage) {
                st = bpf_task_storage_get(&threads, next, 0, 0);
                if (st)
                        switch_in(next, st, generation, now, cpu);
        }
        return 0;
}

/* Each wake of the host, in the waker. Measured above an empty program: less than 5 ns for threads that are not tracked, 190
 * to 300 ns for a tracked one. */
#ifndef PRISM_DROP_WAKING
SEC("tp_btf/sched_waking")
int BPF_PROG(sched_waking, struct task_struct *task) {
        struct thread_state *st;

        st = state_of(task);
        if (!st)
                return 0;

        /* The first wake of a sleep ends it. A running thread is woken when it is about to sleep: charge_off_cpu() finds that
         * wake in the run before the sleep. */
        if (st->state >= PRISM_STATE_SLEEP && was_woken(st))
                return 0;
        WRITE_ONCE(st->wake_version, st->wake_version + 1);
        barrier();
        waker_note(task, st);
        WRITE_ONCE(st->wake_ns, bpf_ktime_get_boot_ns());
        barrier();
        WRITE_ONCE(st->wake_version, st->wake_version + 1);
        return 0;
}
#endif

/* A thread that waits in a run queue is moved to another CPU: what it waited for so far ran on the old one. A thread
 * that is being woken (TASK_WAKING) is only choosing its queue. */
SEC("tp_btf/sched_migrate_task")
int BPF_PROG(sched_migrate_task, struct task_struct *task, int destination) {
        struct task_struct *running;
        struct thread_state *st;
        __u32 generation, cpu;
        __u64 running_ns = 0;
        struct slices *s;
        struct rq *rq;
        __u64 now;

        if (!task->bpf_storage || task->__state != 0)
                return 0;
        st = bpf_task_storage_get(&threads, task, 0, 0);
        if (!st)
                return 0;
        if (st->state != PRISM_STATE_RUNQUEUE && !(st->state >= PRISM_STATE_SLEEP && was_woken(st)))
                return 0;

        generation = current_generation();
        now = bpf_ktime_get_boot_ns();
        rq = task->se.cfs_rq->rq;
        running = rq->curr;

        cpu = rq->cpu;
        s = bpf_map_lookup_elem(&slices, &cpu);
        if (s && running->pid != 0)
                running_ns = slice_length(s, running);

        WRITE_ONCE(st->version, st->version + 1);
        barrier();
        charge_off_cpu(task, st, generation, now, true, cpu, running, running_ns);
        barrier();
        WRITE_ONCE(st->version, st->version + 1);
        return 0;
}
