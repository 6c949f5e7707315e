/* SPDX-License-Identifier: GPL-2.0-only */
/* What a system call waits for, by number: one table for 64-bit calls, one for 32-bit ones on the same kernel (x86). */
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
        SYSCALL_RESTART, /* goes on with the call that a signal interrupted */
};

static const volatile __u8 syscall_class_64[SYSCALL_NUMBERS] = {
        [202] = SYSCALL_FUTEX,
        [449] = SYSCALL_FUTEX_WAITV,
        [455] = SYSCALL_FUTEX2_WAIT,
        [454] = SYSCALL_FUTEX2_WAKE,
        [35] = SYSCALL_SLEEP,
        [230] = SYSCALL_SLEEP, /* nanosleep, clock_nanosleep */
        [61] = SYSCALL_CHILD,
        [247] = SYSCALL_CHILD, /* wait4, waitid */
        [58] = SYSCALL_VFORK,
        [56] = SYSCALL_CLONE,
        [435] = SYSCALL_CLONE3,
        [34] = SYSCALL_SIGNAL,
        [128] = SYSCALL_SIGNAL,
        [130] = SYSCALL_SIGNAL, /* pause, rt_sigtimedwait, rt_sigsuspend */
        [219] = SYSCALL_RESTART,
};

static const volatile __u8 syscall_class_32[SYSCALL_NUMBERS] = {
        [240] = SYSCALL_FUTEX,
        [422] = SYSCALL_FUTEX, /* futex, futex_time64 */
        [449] = SYSCALL_FUTEX_WAITV,
        [455] = SYSCALL_FUTEX2_WAIT,
        [454] = SYSCALL_FUTEX2_WAKE,
        [162] = SYSCALL_SLEEP,
        [267] = SYSCALL_SLEEP,
        [407] = SYSCALL_SLEEP,
        [7] = SYSCALL_CHILD,
        [114] = SYSCALL_CHILD,
        [284] = SYSCALL_CHILD, /* waitpid, wait4, waitid */
        [190] = SYSCALL_VFORK,
        [120] = SYSCALL_CLONE,
        [435] = SYSCALL_CLONE3,
        [29] = SYSCALL_SIGNAL,
        [177] = SYSCALL_SIGNAL,
        [179] = SYSCALL_SIGNAL,
        [421] = SYSCALL_SIGNAL,
        [72] = SYSCALL_SIGNAL, /* rt_sigtimedwait_time64, sigsuspend */
        [0] = SYSCALL_RESTART,
};

#endif
