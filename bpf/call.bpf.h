/* SPDX-License-Identifier: GPL-2.0-only */
/* The system call that a task is in, copied out of its registers. */
#ifndef PRISM_CALL_H
#define PRISM_CALL_H

#include "kernel-read.h"
#include "prism.h"
#include "syscalls.bpf.h"

#define CALL_ARGUMENTS 5

/* Plain memory, so that global functions can be given one. */
struct call {
        __u32 number;
        __u32 compat; /* a 32-bit one */
        __u64 arguments[CALL_ARGUMENTS];
        __u64 files; /* address of the task's table of open files */
        __u32 max_files;
        __u32 padding;
};

/* False if the task is in none: every exception and interrupt from user mode leaves -1 in the number's place. */
static __always_inline bool call_read(struct task_struct *task, struct call *c) {
        struct pt_regs *r = (struct pt_regs *) bpf_task_pt_regs(task);
        struct files_struct *files = task->files;
        long number = (int) r->orig_ax;

        if (number < 0)
                return false;
        c->number = number & (SYSCALL_NUMBERS - 1);
        c->compat = !!(task->thread_info.status & TS_COMPAT);
        if (c->compat) {
                c->arguments[0] = (__u32) r->bx;
                c->arguments[1] = (__u32) r->cx;
                c->arguments[2] = (__u32) r->dx;
                c->arguments[3] = (__u32) r->si;
                c->arguments[4] = (__u32) r->di;
        } else {
                c->arguments[0] = r->di;
                c->arguments[1] = r->si;
                c->arguments[2] = r->dx;
                c->arguments[3] = r->r10;
                c->arguments[4] = r->r8;
        }
        c->files = 0;
        c->max_files = 0;
        if (files) {
                struct fdtable *table = files->fdt;

                if (table) {
                        c->files = (__u64) table->fd;
                        c->max_files = table->max_fds;
                }
        }
        return true;
}

/* The address of the struct file, 0 if there is no such descriptor. */
static __always_inline __u64 call_file(const struct call *c, __u32 descriptor) {
        return descriptor < c->max_files ? KERNEL_READ_AT(__u64, c->files + 8ULL * descriptor) : 0;
}

static __always_inline __u8 call_class(const struct call *c) {
        __u32 number = c->number & (SYSCALL_NUMBERS - 1);

        return c->compat ? syscall_class_32[number] : syscall_class_64[number];
}

static __always_inline __u16 call_op(const struct call *c) {
        return c->number | (c->compat ? PRISM_OP_COMPAT : 0);
}

#endif
