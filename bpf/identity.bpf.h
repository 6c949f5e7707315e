/* SPDX-License-Identifier: GPL-2.0-only */
/* Who a task is: its numbers here and in prismd's pid namespace, and the slot that a tracked thread owns. */
#ifndef PRISM_IDENTITY_H
#define PRISM_IDENTITY_H

#include "maps.bpf.h"

/* The number of a thread in prismd's pid namespace; 0 if it has none there, or none any more. */
static __always_inline __u32 user_number(struct task_struct *task) {
        struct pid *pid;
        struct pid_namespace *ns;
        unsigned int level;
        struct upid *upid;

        if (control.pid_namespace_level == 0)
                return KERNEL_READ(task, pid);

        pid = KERNEL_READ(task, thread_pid);
        if (!pid)
                return 0;
        level = control.pid_namespace_level;
        if (KERNEL_READ(pid, level) < level)
                return 0;
        upid = (struct upid *) ((const char *) pid + bpf_core_field_offset(struct pid, numbers) +
                        level * bpf_core_type_size(struct upid));
        ns = KERNEL_READ(upid, ns);
        if (!ns || KERNEL_READ(ns, ns.inum) != settings.pid_namespace)
                return 0;
        return KERNEL_READ(upid, nr);
}

static __always_inline __u32 user_process_number(struct task_struct *task) {
        if (control.pid_namespace_level == 0)
                return KERNEL_READ(task, tgid);
        return user_number(KERNEL_READ(task, group_leader));
}

/* Whether this CPU serves an interrupt, of which kinds: bits of preempt_count; 0 where that cannot be seen. */
static __always_inline __u32 interrupt_count(struct task_struct *current) {
        __u32 count;

        if (!settings.has_preempt_count)
                return 0;
        count = KERNEL_READ_AT(__u32, (__u64) current->se.cfs_rq->rq + settings.preempt_count_offset);
        return count & (NMI_MASK | HARDIRQ_MASK | SOFTIRQ_OFFSET);
}

/* A number that no other address space of this boot has. */
static __always_inline __u64 address_space(struct task_struct *task) {
        struct mm_struct *mm = KERNEL_READ(task, mm);

        if (!mm)
                return 0;
        if (bpf_core_field_exists(mm->context.ctx_id))
                return KERNEL_READ(mm, context.ctx_id);
        /* A process and the images it executed; vfork children that have not executed one yet count as the parent's
         * copy, not the parent. */
        return KERNEL_READ(task, group_leader, start_boottime) ^ (KERNEL_READ(task, self_exec_id) << 56);
}

/* Returns a slot, or -1 with the loss counted. */
static __always_inline int slot_take(void) {
        __u32 slot;

        if (bpf_map_pop_elem(&free_slots, &slot) == 0)
                return slot;
        if (READ_ONCE(next_slot) < settings.thread_slots) {
                slot = __sync_fetch_and_add(&next_slot, 1);
                if (slot < settings.thread_slots)
                        return slot;
        }
        count_loss(PRISM_LOSS_THREAD_LIMIT);
        return -1;
}

static __always_inline void slot_give_back(__u32 slot) {
        bpf_map_push_elem(&free_slots, &slot, BPF_ANY);
}

/* Fills the identity of a thread that becomes tracked under `thread` in `slot`. */
static __always_inline void info_write(struct task_struct *task, __u64 thread, __u32 slot, __u64 start, __u64 now,
                __u32 follow, __u32 target, bool inherited) {
        struct prism_thread_info *info = bpf_map_lookup_elem(&thread_info, &slot);
        struct task_struct *leader = KERNEL_READ(task, group_leader);
        struct task_struct *parent = KERNEL_READ(task, real_parent);

        if (!info)
                return;

        WRITE_ONCE(info->sequence, info->sequence | 1);
        barrier();
        info->thread = thread;
        info->start_ns = start;
        info->process_start_ns = KERNEL_READ(leader, start_boottime);
        info->tracked_ns = now;
        info->parent_start_ns = KERNEL_READ(parent, group_leader, start_boottime);
        info->tid = KERNEL_READ(task, pid);
        info->tgid = KERNEL_READ(task, tgid);
        info->user_tid = user_number(task);
        info->user_tgid = user_process_number(task);
        info->parent_tgid = KERNEL_READ(parent, tgid);
        info->user_parent_tgid = user_process_number(parent);
        info->uid = KERNEL_READ(task, cred, uid.val);
        info->follow = follow;
        info->target = target;
        info->inherited = inherited;
        info->execs = 0;
        bpf_probe_read_kernel_str(info->comm, sizeof(info->comm), task->comm);
        barrier();
        WRITE_ONCE(info->sequence, info->sequence + 1);
}

static __always_inline void send_event(struct task_struct *task, enum prism_event_kind kind) {
        struct prism_event *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);

        if (!event) {
                count_loss(PRISM_LOSS_EVENT_FULL);
                return;
        }
        event->kind = kind;
        event->padding = 0;
        event->tgid = KERNEL_READ(task, tgid);
        event->user_tgid = user_process_number(task);
        event->process_start_ns = KERNEL_READ(task, group_leader, start_boottime);
        bpf_ringbuf_submit(event, 0);
}

#endif
