/* SPDX-License-Identifier: GPL-2.0-only */
/* What the arguments of a system call name, by number: one table for 64-bit calls, one for 32-bit ones on the same kernel
 * (x86). syscall-classes.sh has the list. */
#ifndef PRISM_SYSCALLS_H
#define PRISM_SYSCALLS_H

#include <linux/types.h>

#define SYSCALL_NUMBERS 512 /* a power of two above the last one */

enum syscall_class {
        SYSCALL_OTHER,
        SYSCALL_FUTEX,
        SYSCALL_FUTEX_WAITV,
        SYSCALL_FUTEX2_WAIT,
        SYSCALL_FUTEX2_WAKE,
        SYSCALL_SLEEP,
        SYSCALL_CHILD,
        SYSCALL_VFORK,
        SYSCALL_CLONE,  /* waits for the child only with CLONE_VFORK in its first argument */
        SYSCALL_CLONE3, /* the same, in memory */
        SYSCALL_SIGNAL,
        SYSCALL_RESTART,    /* goes on with the call that a signal interrupted */
        SYSCALL_DESCRIPTOR, /* 1: descriptor */
        SYSCALL_SENDFILE,   /* 1: to, 2: from */
        SYSCALL_SPLICE,     /* 1: from, 3: to */
        SYSCALL_COPY,       /* 1: from, 3: to, both regular files */
        SYSCALL_EPOLL,      /* 1: descriptor of the set */
        SYSCALL_POLL,       /* 1: struct pollfd, 2: their count */
        SYSCALL_SELECT,     /* 1: highest descriptor + 1; 2, 3, 4: sets */
        SYSCALL_AIO,        /* 1: context */
        SYSCALL_AIO_SUBMIT, /* 1: context; returns how many */
        SYSCALL_IO_URING,   /* 1: descriptor of the ring, or its index with a flag in 4 */
        SYSCALL_OPEN,       /* 1: path; returns a descriptor */
        SYSCALL_OPEN_AT,    /* 2: path; returns a descriptor */
        SYSCALL_PATH,       /* 1: path */
        SYSCALL_PATH_AT,    /* 2: path */
        SYSCALL_SYSV,       /* 1: id */
        SYSCALL_MAPPING,    /* 1: address in the mapping of a file */
        SYSCALL_SYNC,       /* all file systems */
};

#include "syscall-classes.h"

#endif
