/* SPDX-License-Identifier: GPL-2.0-only */
/* What a thread that leaves the CPU asleep waits for, read from its state and the registers of its system call at that
 * moment. A system call that does not block costs nothing here. */
#ifndef PRISM_RESOURCE_H
#define PRISM_RESOURCE_H

#include "futex.bpf.h"
#include "syscalls.bpf.h"

struct futex_waitv {
        __u64 value;
        __u64 address;
        __u32 flags;
        __u32 reserved;
};
#define FUTEX2_PRIVATE 128

struct call {
        bool compat;
        __u32 number;
        struct pt_regs *regs;
};

static __always_inline bool call_read(struct task_struct *task, struct call *c) {
        long number;

        c->regs = (struct pt_regs *) bpf_task_pt_regs(task);
        number = (int) c->regs->orig_ax;
        /* Every exception and interrupt from user mode leaves -1 here. */
        if (number < 0)
                return false;

        c->number = number & (SYSCALL_NUMBERS - 1);
        c->compat = task->thread_info.status & TS_COMPAT;
        return true;
}

/* The first to fourth argument; a system call without arguments of interest never reads them. */
static __always_inline __u64 call_argument(const struct call *c, int n) {
        const struct pt_regs *r = c->regs;

        if (c->compat)
                return (__u32) (n == 0 ? r->bx : n == 1 ? r->cx : n == 2 ? r->dx : r->si);
        return n == 0 ? r->di : n == 1 ? r->si : n == 2 ? r->dx : r->r10;
}

static __always_inline __u8 call_class(const struct call *c) {
        __u32 number = c->number & (SYSCALL_NUMBERS - 1);

        return c->compat ? syscall_class_32[number] : syscall_class_64[number];
}

static __always_inline bool same_resource(const struct prism_resource *a, const struct prism_resource *b) {
        return a->kind == b->kind && a->op == b->op && a->space == b->space && a->address == b->address &&
                        a->shared == b->shared;
}

/* Sets st->resource and st->user_address. `current` says that task runs right now, so that its memory can be read.
 *
 * The order matters: kernel workers carry registers that are not theirs; a stop hides the call it interrupted; and a
 * wait that is interruptible by nature (futex, sleep, child, signal) seen in uninterruptible state is not that wait but
 * a page fault or a lock taken on the way into it. */
static __always_inline void resource_resolve(
                struct task_struct *task, __u32 task_state, bool current, struct thread_state *st) {
        bool uninterruptible = task_state & TASK_UNINTERRUPTIBLE;
        __u32 flags = task->flags;
        struct prism_resource r = { .kind = PRISM_KIND_OTHER };
        __u64 user_address = 0;
        struct call c = {};
        __u8 class;

        if (task_state & (TASK_STOPPED_BIT | TASK_TRACED_BIT | TASK_FROZEN)) {
                r.kind = PRISM_KIND_SIGNAL;
                r.op = task_state & TASK_STOPPED_BIT           ? PRISM_OP_STOPPED
                                : task_state & TASK_TRACED_BIT ? PRISM_OP_TRACED
                                                               : PRISM_OP_FROZEN;
                goto done;
        }
        if (flags & PF_EXITING) {
                r.op = PRISM_OP_EXIT;
                goto done;
        }
        if (flags & (PF_IO_WORKER | PF_USER_WORKER)) {
                r.kind = PRISM_KIND_IO_URING;
                r.op = PRISM_OP_IO_WORKER;
                goto done;
        }
        /* The bit is set for a parent that waits in vfork() too, as it may be frozen there; but that is uninterruptible. */
        if (!uninterruptible && bpf_core_field_exists(task->frozen) && BPF_CORE_READ_BITFIELD(task, frozen)) {
                r.kind = PRISM_KIND_SIGNAL;
                r.op = PRISM_OP_FROZEN;
                goto done;
        }
        if (!call_read(task, &c)) {
                r.kind = uninterruptible && !st->iowait ? PRISM_KIND_KERNEL_LOCK : PRISM_KIND_PAGE_FAULT;
                r.op = PRISM_OP_USER;
                goto done;
        }

        r.op = c.number | (c.compat ? PRISM_OP_COMPAT : 0);
        class = call_class(&c);
        if (class == SYSCALL_OTHER)
                goto call;

        if (class == SYSCALL_RESTART) {
                /* Same arguments, but the number is lost: it goes on with the wait that a signal interrupted. */
                if (st->call.kind) {
                        r = st->call;
                        user_address = st->call_address;
                }
                goto done;
        }

        if (uninterruptible && class != SYSCALL_VFORK && class != SYSCALL_CLONE && class != SYSCALL_CLONE3) {
                r.kind = st->iowait ? PRISM_KIND_PAGE_FAULT : PRISM_KIND_KERNEL_LOCK;
                goto done;
        }

        switch (class) {
        case SYSCALL_FUTEX:
                r.kind = PRISM_KIND_FUTEX;
                r.op = futex_op(call_argument(&c, 1));
                user_address = call_argument(&c, 0);
                futex_identify(task, current, user_address, call_argument(&c, 1) & FUTEX_PRIVATE_FLAG, &r);
                break;
        case SYSCALL_FUTEX2_WAKE: /* does not wait; what it blocks on now is on the way */
                break;
        case SYSCALL_FUTEX2_WAIT:
                r.kind = PRISM_KIND_FUTEX;
                r.op = PRISM_OP_FUTEX2_WAIT;
                user_address = call_argument(&c, 0);
                futex_identify(task, current, user_address, call_argument(&c, 3) & FUTEX2_PRIVATE, &r);
                break;
        case SYSCALL_FUTEX_WAITV: {
                struct futex_waitv first = {};

                /* Until a waker shows which one it was. */
                if (!current || bpf_probe_read_user(&first, sizeof(first), (void *) call_argument(&c, 0)) != 0)
                        break;
                r.kind = PRISM_KIND_FUTEX;
                r.op = PRISM_OP_FUTEX_WAITV_ANY;
                user_address = first.address;
                futex_identify(task, current, user_address, first.flags & FUTEX2_PRIVATE, &r);
                break;
        }
        case SYSCALL_SLEEP:
                r.kind = PRISM_KIND_TIMER;
                break;
        case SYSCALL_CHILD:
                r.kind = PRISM_KIND_CHILD;
                break;
        case SYSCALL_SIGNAL:
                r.kind = PRISM_KIND_SIGNAL;
                break;
        case SYSCALL_VFORK:
        case SYSCALL_CLONE:
        case SYSCALL_CLONE3: {
                __u64 clone_flags = class == SYSCALL_VFORK ? CLONE_VFORK : call_argument(&c, 0);

                if (class == SYSCALL_CLONE3) {
                        clone_flags = 0;
                        if (current)
                                bpf_probe_read_user(&clone_flags, sizeof(clone_flags), (void *) call_argument(&c, 0));
                }
                if (clone_flags & CLONE_VFORK)
                        r.kind = PRISM_KIND_CHILD;
                else if (uninterruptible)
                        r.kind = st->iowait ? PRISM_KIND_PAGE_FAULT : PRISM_KIND_KERNEL_LOCK;
                break;
        }
        }

call:
        /* What the call itself waits for, which a restart after a signal goes on with. */
        if (same_resource(&st->resource, &r) && st->user_address == user_address)
                return; /* as last time: nothing to write, and `call` is the same already */
        st->call = r;
        st->call_address = user_address;
done:
        st->resource = r;
        st->user_address = user_address;
}

#endif
