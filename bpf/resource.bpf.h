/* SPDX-License-Identifier: GPL-2.0-only */
/* What a thread that leaves the CPU asleep waits for, read from its state and the registers of its system call at that
 * moment. A system call that does not block costs nothing here. */
#ifndef PRISM_RESOURCE_H
#define PRISM_RESOURCE_H

#include "futex.bpf.h"
#include "subject.bpf.h"

static __always_inline bool same_resource(const struct prism_resource *a, const struct prism_resource *b) {
        return a->kind == b->kind && a->op == b->op && a->space == b->space && a->address == b->address &&
                        a->shared == b->shared;
}

struct mapping_file {
        struct file_identity id;
        __u64 file;
        bool found;
};

static long file_in_mapping(struct task_struct *task, struct vm_area_struct *vma, void *data) {
        struct mapping_file *m = data;

        m->found = true;
        if (vma->vm_file) {
                m->file = (__u64) vma->vm_file;
                inode_identify(vma->vm_file->f_inode, &m->id);
        }
        return 0;
}

/* What is mapped at an address of the current thread. False: that cannot be seen, and nothing is changed. */
static __always_inline bool subject_set_mapping(
                struct task_struct *task, struct subject *s, __u64 address, bool fault) {
        struct mapping_file m = {};
        int r;

        if (!settings.has_find_vma)
                return true;
        r = bpf_find_vma(task, address, file_in_mapping, &m, 0);
        if (r != 0)
                return r == -ENOENT; /* nothing is mapped there */
        if (fault) {
                s->resource.kind = PRISM_KIND_PAGE_FAULT;
                s->resource.op = m.file ? PRISM_OP_FILE : PRISM_OP_SWAP;
        } else if (m.file)
                s->resource.kind = PRISM_KIND_FILE;
        s->resource.space = m.id.space;
        s->resource.address = m.id.address;
        s->file = m.file;
        s->user_address = NO_DESCRIPTOR;
        return true;
}

/* A page fault of the thread that runs now, in user mode or inside a system call. */
static __always_inline void subject_set_fault(
                struct task_struct *task, struct thread_state *st, bool current, struct subject *s) {
        s->resource.kind = PRISM_KIND_PAGE_FAULT;
        if (settings.has_page_fault && current && st->fault_address &&
                        !subject_set_mapping(task, s, st->fault_address, true))
                count_loss(PRISM_LOSS_MAPPING);
}

static __always_inline void subject_set_lock(struct task_struct *task, struct thread_state *st, struct subject *s) {
        __u32 flags = st->lock_flags;
        __u64 mm = (__u64) task->mm;

        s->resource.kind = PRISM_KIND_KERNEL_LOCK;
        s->resource.op = flags & LCB_F_MUTEX ? PRISM_OP_MUTEX
                        : flags & LCB_F_PERCPU
                        ? (flags & LCB_F_WRITE ? PRISM_OP_PERCPU_RWSEM_WRITE : PRISM_OP_PERCPU_RWSEM_READ)
                        : flags & LCB_F_RT    ? PRISM_OP_RT_LOCK
                        : flags & LCB_F_WRITE ? PRISM_OP_RWSEM_WRITE
                        : flags & LCB_F_READ  ? PRISM_OP_RWSEM_READ
                                              : PRISM_OP_LOCK;
        if (mm && st->lock == mm + bpf_core_field_offset(struct mm_struct, mmap_lock)) {
                s->resource.space = address_space(task);
                s->resource.address = 1;
        } else
                s->resource.space = number_of_address(st->lock);
}

/* subject_of_call(), and the question that it leaves open. */
static __always_inline __u32 subject_look_up(
                struct task_struct *task, struct thread_state *st, struct subject *s, struct call *c, __u32 how) {
        __u32 class;

        /* As a number: see file.bpf.h. The thread's own storage is where it lies as one. */
        class = subject_of_call(READ_ONCE(st->task), st, s, c, how);
        if (!s->look_at_mapping)
                return class;
        if (s->resource.kind == PRISM_KIND_FUTEX)
                futex_look_at_mapping(task, how & SUBJECT_CURRENT, s->user_address, &s->resource);
        else if (how & SUBJECT_CURRENT && !subject_set_mapping(task, s, s->user_address, false))
                count_loss(PRISM_LOSS_MAPPING);
        return class;
}

/* Whether a wait of a call of this class is never uninterruptible, whatever its object. */
static __always_inline bool class_waits_interruptibly(__u32 class) {
        switch (class) {
        case SYSCALL_FUTEX:
        case SYSCALL_FUTEX_WAITV:
        case SYSCALL_FUTEX2_WAIT:
        case SYSCALL_FUTEX2_WAKE:
        case SYSCALL_SLEEP:
        case SYSCALL_CHILD:
        case SYSCALL_SIGNAL:
        case SYSCALL_EPOLL:
        case SYSCALL_POLL:
        case SYSCALL_SELECT:
        case SYSCALL_AIO:
        case SYSCALL_SYSV:
                return true;
        }
        return false;
}

/* Sets what st waits for: st->resource, user_address, file.
 *
 * The order matters: kernel workers carry registers that are not theirs; a stop hides the call it interrupted; what the
 * thread itself said on its way (reclaim, a contended lock) is nearer than its call; and a wait that is interruptible by
 * nature (futex, sleep, child, signal, pipe, socket) seen in uninterruptible state is not that wait but a page fault or a
 * lock taken on the way into it. */
static __always_inline void resource_resolve(
                struct task_struct *task, __u32 task_state, bool current, struct thread_state *st, struct work *w) {
        bool uninterruptible = task_state & TASK_UNINTERRUPTIBLE, in_call;
        __u32 flags = task->flags;
        struct subject *s = &w->subject;
        struct call *c = &w->call;
        __u8 class;

        __builtin_memset(s, 0, sizeof(*s));
        s->resource.kind = PRISM_KIND_OTHER;
        if (task_state & (TASK_STOPPED_BIT | TASK_TRACED_BIT | TASK_FROZEN)) {
                s->resource.kind = PRISM_KIND_SIGNAL;
                s->resource.op = task_state & TASK_STOPPED_BIT ? PRISM_OP_STOPPED
                                : task_state & TASK_TRACED_BIT ? PRISM_OP_TRACED
                                                               : PRISM_OP_FROZEN;
                goto done;
        }
        /* The bit is set for a parent that waits in vfork() too, as it may be frozen there; but that is uninterruptible. */
        if (!uninterruptible && bpf_core_field_exists(task->frozen) && BPF_CORE_READ_BITFIELD(task, frozen)) {
                s->resource.kind = PRISM_KIND_SIGNAL;
                s->resource.op = PRISM_OP_FROZEN;
                goto done;
        }
        if (st->reclaim) {
                s->resource.kind = PRISM_KIND_RECLAIM;
                s->resource.op = st->reclaim;
                goto done;
        }
        /* Over memory.high: the thread is made to wait on its way to user mode, outside of reclaim itself. */
        if (uninterruptible && !st->iowait && bpf_core_field_exists(task->in_memstall) &&
                        BPF_CORE_READ_BITFIELD(task, in_memstall)) {
                s->resource.kind = PRISM_KIND_RECLAIM;
                s->resource.op = PRISM_OP_RECLAIM_CGROUP;
                goto done;
        }
        if (st->lock) {
                subject_set_lock(task, st, s);
                goto done;
        }
        if (flags & PF_EXITING) {
                s->resource.op = PRISM_OP_EXIT;
                goto done;
        }
        if (flags & (PF_IO_WORKER | PF_USER_WORKER)) {
                s->resource.kind = PRISM_KIND_IO_URING;
                s->resource.op = PRISM_OP_IO_WORKER;
                goto done;
        }
        in_call = call_read(task, c);
        if (!in_call) {
                s->resource.op = PRISM_OP_USER;
                if (uninterruptible && !st->iowait)
                        s->resource.kind = PRISM_KIND_KERNEL_LOCK;
                else if (uninterruptible)
                        subject_set_fault(task, st, current, s);
                else
                        s->resource.kind = PRISM_KIND_PAGE_FAULT;
                goto done;
        }

        s->resource.op = call_op(c);
        class = call_class(c);
        if (class == SYSCALL_OTHER)
                goto call;

        if (class == SYSCALL_RESTART) {
                /* Same arguments, but the number is lost: it goes on with the wait that a signal interrupted. */
                if (st->call.kind) {
                        s->resource = st->call;
                        s->user_address = st->call_address;
                }
                goto done;
        }

        if (!(uninterruptible && class_waits_interruptibly(class)))
                class = subject_look_up(task, st, s, c,
                                (current ? SUBJECT_CURRENT : 0) | (uninterruptible ? SUBJECT_UNINTERRUPTIBLE : 0));
        if (uninterruptible &&
                        (class_waits_interruptibly(class) || waits_interruptibly(s->resource.kind) ||
                                        ((class == SYSCALL_CLONE || class == SYSCALL_CLONE3) &&
                                                        s->resource.kind == PRISM_KIND_OTHER))) {
                s->resource.space = s->resource.address = s->file = 0;
                s->resource.shared = 0;
                s->user_address = 0;
                s->resource.op = call_op(c);
                if (st->iowait)
                        subject_set_fault(task, st, current, s);
                else
                        s->resource.kind = PRISM_KIND_KERNEL_LOCK;
                goto done;
        }

call:
        /* What the call itself waits for, which a restart after a signal goes on with. */
        st->file = s->file;
        st->ports = s->ports;
        st->set = s->set;
        if (same_resource(&st->resource, &s->resource) && st->user_address == s->user_address)
                return; /* as last time: nothing to write, and `call` is the same already */
        st->call = s->resource;
        st->call_address = s->user_address;
done:
        st->file = s->file;
        st->resource = s->resource;
        st->user_address = s->user_address;
}

#endif
