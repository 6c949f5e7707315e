/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "names.h"

#include <asm/unistd.h>

#include "syscalls.h"

/* All numbers that fit into an operation; what is not used costs no memory. */
#define SYSCALLS_MAX PRISM_OP_COMPAT

static const char *const kinds[_PRISM_KIND_MAX] = {
        [PRISM_KIND_NONE] = "other",
        [PRISM_KIND_FUTEX] = "futex",
        [PRISM_KIND_PIPE] = "pipe",
        [PRISM_KIND_FIFO] = "fifo",
        [PRISM_KIND_CHARDEV] = "chardev",
        [PRISM_KIND_UNIX] = "unix",
        [PRISM_KIND_INET] = "inet",
        [PRISM_KIND_EPOLL] = "epoll",
        [PRISM_KIND_POLL] = "poll",
        [PRISM_KIND_EVENTFD] = "eventfd",
        [PRISM_KIND_TIMERFD] = "timerfd",
        [PRISM_KIND_SIGNALFD] = "signalfd",
        [PRISM_KIND_INOTIFY] = "inotify",
        [PRISM_KIND_FILE] = "file",
        [PRISM_KIND_DISK] = "disk",
        [PRISM_KIND_AIO] = "aio",
        [PRISM_KIND_IO_URING] = "io_uring",
        [PRISM_KIND_KERNEL_LOCK] = "kernel-lock",
        [PRISM_KIND_PAGE_FAULT] = "page-fault",
        [PRISM_KIND_RECLAIM] = "reclaim",
        [PRISM_KIND_TIMER] = "timer",
        [PRISM_KIND_CHILD] = "child",
        [PRISM_KIND_SIGNAL] = "signal",
        [PRISM_KIND_SOCKET] = "socket",
        [PRISM_KIND_OTHER] = "other",
};

static const char *const named_ops[_PRISM_OP_MAX - PRISM_OP_NAMED] = {
        [PRISM_OP_FUTEX_WAIT - PRISM_OP_NAMED] = "wait",
        [PRISM_OP_FUTEX_WAIT_BITSET - PRISM_OP_NAMED] = "wait_bitset",
        [PRISM_OP_FUTEX_LOCK_PI - PRISM_OP_NAMED] = "lock_pi",
        [PRISM_OP_FUTEX_WAIT_REQUEUE_PI - PRISM_OP_NAMED] = "wait_requeue_pi",
        [PRISM_OP_FUTEX_WAITV - PRISM_OP_NAMED] = "waitv",
        [PRISM_OP_FUTEX_WAITV_ANY - PRISM_OP_NAMED] = "waitv_any",
        [PRISM_OP_FUTEX2_WAIT - PRISM_OP_NAMED] = "futex2_wait",
        [PRISM_OP_STOPPED - PRISM_OP_NAMED] = "stopped",
        [PRISM_OP_TRACED - PRISM_OP_NAMED] = "traced",
        [PRISM_OP_FROZEN - PRISM_OP_NAMED] = "frozen",
        [PRISM_OP_USER - PRISM_OP_NAMED] = "user",
        [PRISM_OP_IO_WORKER - PRISM_OP_NAMED] = "io_worker",
        [PRISM_OP_EXIT - PRISM_OP_NAMED] = "exit",
        [PRISM_OP_LOST - PRISM_OP_NAMED] = "lost",
        [PRISM_OP_UNKNOWN - PRISM_OP_NAMED] = "unknown",
        [PRISM_OP_FUTEX_WAKE - PRISM_OP_NAMED] = "wake",
        [PRISM_OP_FILE - PRISM_OP_NAMED] = "file",
        [PRISM_OP_SWAP - PRISM_OP_NAMED] = "swap",
        [PRISM_OP_RECLAIM - PRISM_OP_NAMED] = "reclaim",
        [PRISM_OP_RECLAIM_CGROUP - PRISM_OP_NAMED] = "reclaim_cgroup",
        [PRISM_OP_MUTEX - PRISM_OP_NAMED] = "mutex",
        [PRISM_OP_RWSEM_READ - PRISM_OP_NAMED] = "rwsem_read",
        [PRISM_OP_RWSEM_WRITE - PRISM_OP_NAMED] = "rwsem_write",
        [PRISM_OP_RT_LOCK - PRISM_OP_NAMED] = "rt_lock",
        [PRISM_OP_PERCPU_RWSEM_READ - PRISM_OP_NAMED] = "percpu_rwsem_read",
        [PRISM_OP_PERCPU_RWSEM_WRITE - PRISM_OP_NAMED] = "percpu_rwsem_write",
        [PRISM_OP_LOCK - PRISM_OP_NAMED] = "lock",
        [PRISM_OP_SUBMIT - PRISM_OP_NAMED] = "submit",
        [PRISM_OP_COMPLETE - PRISM_OP_NAMED] = "complete",
};

/* Calls that do the same are one operation, which has the name of the first. */
static const char *const same_calls[][12] = {
        { "read", "pread64", "readv", "preadv", "preadv2" },
        { "write", "pwrite64", "writev", "pwritev", "pwritev2" },
        { "receive", "recvfrom", "recv", "recvmsg", "recvmmsg", "recvmmsg_time64" },
        { "send", "sendto", "sendmsg", "sendmmsg" },
        { "accept", "accept4" },
        { "open", "openat", "openat2", "creat" },
        { "rename", "renameat", "renameat2" },
        { "truncate", "truncate64", "ftruncate", "ftruncate64" },
        { "getdents", "getdents64" },
        { "unlink", "unlinkat" },
        { "mkdir", "mkdirat" },
        { "link", "linkat" },
        { "symlink", "symlinkat" },
        { "readlink", "readlinkat" },
        { "access", "faccessat", "faccessat2" },
        { "stat", "lstat", "fstat", "stat64", "lstat64", "fstat64", "newfstatat", "fstatat64", "statx" },
        { "statfs", "fstatfs", "statfs64", "fstatfs64" },
        { "chmod", "fchmod", "fchmodat", "fchmodat2" },
        { "chown", "fchown", "lchown", "fchownat", "chown32", "fchown32", "lchown32" },
        { "utimensat", "utimensat_time64", "utime", "utimes", "futimesat" },
        { "execve", "execveat" },
        { "lseek", "_llseek" },
        { "fcntl", "fcntl64" },
        { "sendfile", "sendfile64" },
        { "fadvise64", "fadvise64_64" },
        { "epoll_wait", "epoll_pwait", "epoll_pwait2" },
        { "poll", "ppoll", "ppoll_time64" },
        { "select", "pselect6", "_newselect", "pselect6_time64" },
        { "io_getevents", "io_pgetevents", "io_pgetevents_time64" },
        { "clock_nanosleep", "clock_nanosleep_time64" },
        { "rt_sigtimedwait", "rt_sigtimedwait_time64" },
        { "semop", "semtimedop", "semtimedop_time64" },
        { "mq_timedsend", "mq_timedsend_time64" },
        { "mq_timedreceive", "mq_timedreceive_time64" },
        { "timerfd_settime", "timerfd_settime64" },
        { "timerfd_gettime", "timerfd_gettime64" },
};

static const char *const wakers[] = {
        [PRISM_WAKER_UNSEEN] = "unseen",
        [PRISM_WAKER_THREAD] = "thread",
        [PRISM_WAKER_IRQ] = "irq",
        [PRISM_WAKER_TIMER] = "timer",
};

static const char *const reasons[_PRISM_LOSS_MAX] = {
        [PRISM_LOSS_THREAD_LIMIT] = "thread-limit",
        [PRISM_LOSS_STORAGE_FULL] = "storage-full",
        [PRISM_LOSS_WAIT_FULL] = "wait-map-full",
        [PRISM_LOSS_WAIT_BUSY] = "wait-map-busy",
        [PRISM_LOSS_INSTEAD_FULL] = "ran-instead-map-full",
        [PRISM_LOSS_INSTEAD_BUSY] = "ran-instead-map-busy",
        [PRISM_LOSS_MISSED_SWITCH] = "missed-switch",
        [PRISM_LOSS_MISSED_WAKE] = "missed-wake",
        [PRISM_LOSS_EVENT_FULL] = "event-buffer-full",
        [PRISM_LOSS_CALL_FULL] = "call-map-full",
        [PRISM_LOSS_CALL_BUSY] = "call-map-busy",
        [PRISM_LOSS_OBJECT_FULL] = "object-map-full",
        [PRISM_LOSS_REQUEST_FULL] = "block-request-map-full",
        [PRISM_LOSS_DISK_FULL] = "disk-map-full",
        [PRISM_LOSS_DISK_BUSY] = "disk-map-busy",
        [PRISM_LOSS_WATCHES] = "epoll-watches",
        [PRISM_LOSS_MAPPING] = "mapping-busy",
};

static const char *const follows[] = {
        [PRISM_FOLLOW_NONE] = "none",
        [PRISM_FOLLOW_CHILDREN] = "children",
};

/* Names for numbers without one, made once, so that they live as long as the program. Main thread only. */
static const char *unnamed_syscall(unsigned number) {
        static char names[SYSCALLS_MAX][sizeof("syscall-16383")];

        number &= SYSCALLS_MAX - 1;
        if (names[number][0] == '\0')
                snprintf(names[number], sizeof(names[number]), "syscall-%u", number);
        return names[number];
}

const char *kind_name(unsigned kind) {
        return kind < _PRISM_KIND_MAX ? kinds[kind] : "other";
}

static const char *syscall_name(unsigned op) {
        unsigned number = op & ~(unsigned) PRISM_OP_COMPAT;

        if (op & PRISM_OP_COMPAT) {
                if (number < ELEMENTSOF(syscalls_32) && syscalls_32[number])
                        return syscalls_32[number];
        } else if (number < ELEMENTSOF(syscalls_64) && syscalls_64[number])
                return syscalls_64[number];
        return unnamed_syscall(number);
}

/* Looked up once for each number. Main thread only. */
static const char *syscall_word(unsigned op) {
        static const char *words[PRISM_OP_NAMED];
        const char *name;

        if (words[op])
                return words[op];
        name = syscall_name(op);
        for (size_t i = 0; i < ELEMENTSOF(same_calls) && !words[op]; i++)
                for (size_t k = 1; k < ELEMENTSOF(same_calls[i]) && same_calls[i][k]; k++)
                        if (streq(name, same_calls[i][k]))
                                words[op] = same_calls[i][0];
        if (!words[op])
                words[op] = name;
        return words[op];
}

const char *op_name(unsigned kind, unsigned op) {
        const char *word;

        if (op >= PRISM_OP_NAMED)
                return op < _PRISM_OP_MAX ? named_ops[op - PRISM_OP_NAMED] : "unknown";
        word = syscall_word(op);
        if (kind == PRISM_KIND_UNIX || kind == PRISM_KIND_INET || kind == PRISM_KIND_SOCKET) {
                if (streq(word, "read"))
                        return "receive";
                if (streq(word, "write"))
                        return "send";
        }
        return word;
}

const char *waker_kind_name(unsigned kind) {
        return kind < ELEMENTSOF(wakers) ? wakers[kind] : "unseen";
}

const char *loss_name(unsigned reason) {
        return reason < _PRISM_LOSS_MAX ? reasons[reason] : "unknown";
}

const char *follow_name(unsigned follow) {
        return follow < ELEMENTSOF(follows) ? follows[follow] : "none";
}

int follow_from_name(const char *name) {
        for (unsigned i = 0; i < ELEMENTSOF(follows); i++)
                if (streq(follows[i], name))
                        return (int) i;
        return -EINVAL;
}
