// SPDX-License-Identifier: GPL-2.0-only
/* Which threads are tracked: marks by iterator for those that run already, inheritance for new ones, and what changes
 * in a thread's life (name, image). Also the iterator that reads states in flight. None of this is a hot path. */
#include "maps.bpf.h"
#include "object.bpf.h"
#include "resource.bpf.h"
#include "row.bpf.h"

/* A new thread's first state, which no stack has room for. One for each program that puts one together: they run with
 * preemption off and never inside themselves. */
enum fresh_use {
        FRESH_NEWTASK,
        FRESH_MARK,
        _FRESH_MAX,
};
struct {
        __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
        __uint(max_entries, _FRESH_MAX);
        __type(key, __u32);
        __type(value, struct thread_state);
} fresh_states SEC(".maps");

static __always_inline struct thread_state *fresh_state(enum fresh_use use) {
        __u32 index = use;
        struct thread_state *st = bpf_map_lookup_elem(&fresh_states, &index);

        if (st)
                __builtin_memset(st, 0, sizeof(*st));
        return st;
}

/* Makes `task` tracked with `st` as its first state; `st` needs state, since_ns, iowait and resource. */
static __always_inline bool thread_begin(struct task_struct *task, struct thread_state *st, __u64 now, __u32 follow,
                __u32 target, bool inherited) {
        int slot = slot_take();

        if (slot < 0)
                return false;

        st->thread = __sync_fetch_and_add(&next_thread, 1) + 1;
        st->task = (__u64) task;
        st->process_start_ns = KERNEL_READ(task, group_leader, start_boottime);
        st->tgid = KERNEL_READ(task, tgid);
        st->mark_cpu = NO_MARK;
        st->slot = slot;
        st->follow = follow;
        st->target = target;
        st->inherited = inherited;
        /* First the identity: as soon as the storage is there, another CPU may charge time to the slot. */
        info_write(task, st->thread, slot, KERNEL_READ(task, start_boottime), now, follow, target, inherited);
        if (!bpf_task_storage_get(&threads, task, st, BPF_LOCAL_STORAGE_GET_F_CREATE)) {
                struct prism_thread_info *info;
                __u32 index = slot;

                info = bpf_map_lookup_elem(&thread_info, &index);
                if (info)
                        info->thread = 0;
                slot_give_back(slot);
                count_loss(PRISM_LOSS_STORAGE_FULL);
                return false;
        }
        return true;
}

/* In the creator's context, with no lock held, for every new task, also the workers of io_uring. */
SEC("tp_btf/task_newtask")
int BPF_PROG(task_newtask, struct task_struct *task, unsigned long clone_flags) {
        struct task_struct *current = bpf_get_current_task_btf();
        struct thread_state *parent, *st;
        bool new_process = !(clone_flags & CLONE_THREAD);
        __u64 now;

        if (!control.active || !current->bpf_storage)
                return 0;
        parent = bpf_task_storage_get(&threads, current, 0, 0);
        if (!parent)
                return 0;
        if (new_process && parent->follow == PRISM_FOLLOW_NONE)
                return 0;

        st = fresh_state(FRESH_NEWTASK);
        if (!st)
                return 0;
        now = bpf_ktime_get_boot_ns();
        st->state = PRISM_STATE_RUNQUEUE;
        st->since_ns = st->ran_since_ns = now;
        if (thread_begin(task, st, now, parent->follow, parent->target, new_process || parent->inherited) &&
                        new_process)
                send_event(task, PRISM_EVENT_PROCESS);
        return 0;
}

SEC("tp_btf/task_rename")
int BPF_PROG(task_rename, struct task_struct *task, const char *comm) {
        struct prism_thread_info *info;
        struct thread_state *st;
        __u32 slot;

        st = state_of(task);
        if (!st)
                return 0;
        slot = st->slot;
        info = bpf_map_lookup_elem(&thread_info, &slot);
        if (!info)
                return 0;
        WRITE_ONCE(info->sequence, info->sequence | 1);
        barrier();
        bpf_probe_read_kernel_str(info->comm, sizeof(info->comm), comm);
        barrier();
        WRITE_ONCE(info->sequence, info->sequence + 1);
        return 0;
}

/* A thread other than the leader that executes a new image goes on under the leader's number and start. For us one thread
 * ends and another begins, which starts now: it is neither of the two. */
static __always_inline void become_leader(struct task_struct *task, struct thread_state *st) {
        __u32 generation = current_generation();
        struct prism_thread_time *row = time_row(generation, st->slot);
        __u64 now = bpf_ktime_get_boot_ns(), from;
        int slot;

        if (!row)
                return;
        slot = slot_take();
        if (slot < 0)
                return;

        /* It runs: this is what a last switch away would charge. */
        from = row_open(row, st, generation);
        if (now > from)
                row->run_ns += now - from;
        row->until_ns = now;
        row->exit_ns = now;

        WRITE_ONCE(st->version, st->version + 1);
        barrier();
        st->thread = __sync_fetch_and_add(&next_thread, 1) + 1;
        st->slot = slot;
        st->since_ns = now;
        barrier();
        WRITE_ONCE(st->version, st->version + 1);
        info_write(task, st->thread, slot, now, now, st->follow, st->target, st->inherited);
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(sched_process_exec, struct task_struct *task, int old_pid, struct linux_binprm *bprm) {
        struct prism_thread_info *info;
        struct thread_state *st;
        __u32 slot;

        if (control.report_execs)
                send_event(task, PRISM_EVENT_EXEC);
        st = state_of(task);
        if (!st)
                return 0;

        if (old_pid != task->pid)
                become_leader(task, st);

        slot = st->slot;
        info = bpf_map_lookup_elem(&thread_info, &slot);
        if (!info)
                return 0;
        WRITE_ONCE(info->sequence, info->sequence | 1);
        barrier();
        info->execs++;
        info->uid = KERNEL_READ(task, cred, uid.val);
        barrier();
        WRITE_ONCE(info->sequence, info->sequence + 1);
        if (!control.report_execs)
                send_event(task, PRISM_EVENT_PROCESS);
        return 0;
}

/* What state a task is in right now, as good as can be seen from outside: the state machine corrects a wrong guess at
 * the first switch (`settled` is 0). */
static __always_inline void first_state(struct task_struct *task, struct thread_state *st, __u64 now) {
        __u32 task_state = KERNEL_READ(task, __state);
        struct work *w;

        st->since_ns = st->ran_since_ns = now;
        if (bpf_core_field_exists(task->sched_info.run_delay))
                st->run_delay = KERNEL_READ(task, sched_info.run_delay);
        st->exec_runtime = KERNEL_READ(task, se.sum_exec_runtime);
        if (task_state &
                        (TASK_INTERRUPTIBLE | TASK_UNINTERRUPTIBLE | TASK_STOPPED_BIT | TASK_TRACED_BIT |
                                        TASK_FROZEN)) {
                st->state = task_state & TASK_UNINTERRUPTIBLE ? PRISM_STATE_BLOCK : PRISM_STATE_SLEEP;
                st->iowait = st->state == PRISM_STATE_BLOCK && BPF_CORE_READ_BITFIELD_PROBED(task, in_iowait);
                w = work_of(WORK_ITERATOR);
                if (w)
                        resource_resolve(task, task_state, false, st, w);
                return;
        }
        st->state = KERNEL_READ(task, on_cpu) ? PRISM_STATE_RUN : PRISM_STATE_RUNQUEUE;
        st->resource.kind = PRISM_KIND_OTHER;
        st->resource.op = PRISM_OP_UNKNOWN;
}

/* Marks the threads of process control.mark_tgid and gives the reader one byte for each that was not tracked before; those
 * that were follow as control.mark_follow says from now on. Or releases those of control.unmark_tgid (all for
 * PRISM_UNMARK_ALL) and gives a byte for each that could not be. Sees the pid namespace of the task that created the
 * iterator. */
SEC("iter/task")
int iter_mark(struct bpf_iter__task *ctx) {
        struct task_struct *task = ctx->task;
        struct thread_state *st, *fresh;
        __u8 one = 1;
        __u64 now;
        int r;

        if (!task)
                return 0;

        if (!control.mark_tgid && !control.unmark_tgid) {
                control.pid_namespace_level = KERNEL_READ(bpf_get_current_task_btf(), thread_pid, level);
                return 0;
        }
        if (control.unmark_tgid) {
                if (!task->bpf_storage ||
                                (control.unmark_tgid != PRISM_UNMARK_ALL && task->tgid != control.unmark_tgid))
                        return 0;
                r = bpf_task_storage_delete(&threads, task);
                if (r != 0 && r != -ENOENT)
                        bpf_seq_write(ctx->meta->seq, &one, sizeof(one));
                return 0;
        }

        if (task->flags & PF_KTHREAD || user_process_number(task) != control.mark_tgid)
                return 0;

        st = bpf_task_storage_get(&threads, task, 0, 0);
        if (st) {
                st->follow = control.mark_follow;
                st->target = control.mark_target;
                return 0;
        }
        if (task->flags & PF_EXITING && task->__state & TASK_DEAD)
                return 0;

        fresh = fresh_state(FRESH_MARK);
        if (!fresh)
                return 0;
        now = bpf_ktime_get_boot_ns();
        /* What first_state() asks by them. */
        fresh->task = (__u64) task;
        fresh->process_start_ns = KERNEL_READ(task, group_leader, start_boottime);
        first_state(task, fresh, now);
        if (thread_begin(task, fresh, now, control.mark_follow, control.mark_target, false))
                bpf_seq_write(ctx->meta->seq, &one, sizeof(one));
        return 0;
}

/* Which files a poll or select watches that was going on when its thread became tracked: its memory could not be read then,
 * since that may have to wait. Optional: bpf_copy_from_user_task came with 5.18. */
SEC("iter.s/task")
int iter_read_polls(struct bpf_iter__task *ctx) {
        struct task_struct *task = ctx->task;
        struct prism_object_key key = { .kind = PRISM_KIND_POLL };
        struct poll_descriptor polled[PRISM_POLL_FILES] = {};
        struct select_sets sets = {};
        struct subject s = {};
        struct thread_state *st;
        struct call c = {};
        __u32 kind, n;
        int i;

        if (!task || !task->bpf_storage)
                return 0;
        st = bpf_task_storage_get(&threads, task, 0, 0);
        if (!st || st->settled || st->resource.kind != PRISM_KIND_POLL || st->resource.space || !call_read(task, &c))
                return 0;

        n = c.arguments[1];
        if (call_class(&c) == SYSCALL_POLL) {
                __u32 bytes = (n > PRISM_POLL_FILES ? PRISM_POLL_FILES : n) * sizeof(polled[0]);

                bytes &= 127;
                if (bytes > sizeof(polled))
                        bytes = sizeof(polled);
                if (bpf_copy_from_user_task(polled, bytes, (void *) c.arguments[0], task, 0) != 0)
                        return 0;
        } else
                for (i = 0; i < 3; i++)
                        if (c.arguments[1 + i] &&
                                        bpf_copy_from_user_task(&sets.set[i], sizeof(sets.set[i]),
                                                        (void *) c.arguments[1 + i], task, 0) != 0)
                                return 0;
        /* It has gone on meanwhile: its next wait is read as it begins. */
        if (READ_ONCE(st->settled))
                return 0;
        if (call_class(&c) == SYSCALL_POLL) {
                __builtin_memcpy(st->poll, polled, sizeof(polled));
                kind = subject_of_poll(st, &s, n);
        } else
                kind = subject_of_select(st, &s, c.arguments[0], &sets);
        if (kind != PRISM_KIND_POLL)
                return 0;
        st->resource.address = st->call.address = key.address = s.resource.address;
        st->resource.space = st->call.space = key.space = s.resource.space;
        if (!object_describe(SCRATCH_ITERATOR, &key, 0, st, -1))
                count_loss(PRISM_LOSS_OBJECT_FULL);
        return 0;
}

/* Writes a struct prism_inflight for each tracked thread. Reads a state that its programs may be changing: `version`
 * tells. */
SEC("iter/task")
int iter_threads(struct bpf_iter__task *ctx) {
        struct task_struct *task = ctx->task;
        struct prism_inflight out = {};
        struct thread_state *st;
        __u32 before, wake_before;
        int i;

        if (!task || !task->bpf_storage)
                return 0;
        st = bpf_task_storage_get(&threads, task, 0, 0);
        if (!st)
                return 0;

        for (i = 0; i < 16; i++) {
                before = READ_ONCE(st->version);
                wake_before = READ_ONCE(st->wake_version);
                barrier();
                out.thread = st->thread;
                out.since_ns = st->since_ns;
                out.wake_ns = st->wake_ns >= st->since_ns ? st->wake_ns : 0;
                out.user_address = st->user_address;
                out.resource = st->resource;
                out.slot = st->slot;
                out.state = st->state;
                out.iowait = st->iowait;
                out.throttled = st->throttled;
                out.settled = st->settled;
                barrier();
                if (!((before | wake_before) & 1) && before == READ_ONCE(st->version) &&
                                wake_before == READ_ONCE(st->wake_version))
                        break;
        }
        if (i == 16)
                /* Its writer may stand still, on a CPU that a hypervisor has taken away: the reader asks again. */
                out.state = PRISM_STATE_NONE;
        bpf_seq_write(ctx->meta->seq, &out, sizeof(out));
        return 0;
}
