/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel types and fields that the kernel side reads, declared by hand so that the build needs no BTF of the
 * machine that builds. Every access is relocated at load time (CO-RE): order and offsets here mean nothing, names do.
 * */
#ifndef PRISM_KERNEL_H
#define PRISM_KERNEL_H

#include <stdbool.h>
#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
        unsigned int inum;
};

struct pid_namespace {
        struct ns_common ns;
};

struct upid {
        int nr;
        struct pid_namespace *ns;
};

struct pid {
        unsigned int level;
        struct upid numbers[1];
};

typedef struct {
        unsigned int val;
} kuid_t;

struct cred {
        kuid_t uid;
};

typedef struct {
        __u64 ctx_id;
} mm_context_t;

struct mm_struct {
        mm_context_t context;
};

typedef struct {
        __s64 counter;
} atomic64_t;

struct inode {
        atomic64_t i_sequence;
};

struct file {
        struct inode *f_inode;
};

struct vm_area_struct {
        unsigned long vm_start;
        unsigned long vm_flags;
        unsigned long vm_pgoff;
        struct file *vm_file;
};

struct rq {
        __u64 clock;
        int cpu;
        struct task_struct *curr;
};

struct cfs_rq {
        struct rq *rq;
        int throttle_count;
};

struct sched_entity {
        __u64 sum_exec_runtime;
        __u64 prev_sum_exec_runtime;
        struct cfs_rq *cfs_rq; /* with CONFIG_FAIR_GROUP_SCHED */
};

struct sched_info {
        unsigned long long run_delay;   /* all time in run queues, of stays that ended */
        unsigned long long last_queued; /* rq->clock when it came into the queue it is in, 0 if it is in none */
};

struct thread_info {
        __u32 status;
};

struct task_struct {
        struct thread_info thread_info;
        unsigned int __state;
        unsigned int flags;
        int on_cpu;
        struct sched_entity se;
        struct sched_info sched_info; /* with CONFIG_SCHED_INFO, which CONFIG_SCHEDSTATS and delay accounting bring */
        struct mm_struct *mm;
        unsigned in_iowait : 1;
        unsigned frozen : 1; /* with CONFIG_CGROUPS */
        int pid;
        int tgid;
        struct task_struct *real_parent;
        struct task_struct *group_leader;
        struct pid *thread_pid;
        __u64 start_boottime;
        __u64 self_exec_id;
        const struct cred *cred;
        char comm[16];
        struct bpf_local_storage *bpf_storage;
};

struct linux_binprm {
        int argc;
};

struct pt_regs {
        unsigned long bx, cx, dx, si, di, bp, ax, orig_ax, ip, r8, r10;
};

struct hrtimer;
struct hrtimer_clock_base {
        struct hrtimer *running;
};
struct hrtimer_cpu_base {
        struct hrtimer_clock_base clock_base[1];
};

struct timer_list;
struct timer_base {
        struct timer_list *running_timer;
};

struct seq_file;
struct bpf_iter_meta {
        struct seq_file *seq;
        __u64 session_id;
        __u64 seq_num;
};
struct bpf_iter__task {
        struct bpf_iter_meta *meta;
        struct task_struct *task;
};

#pragma clang attribute pop

/* include/linux/sched.h; stable since long before the floor, except where noted. */
#define TASK_INTERRUPTIBLE 0x01
#define TASK_UNINTERRUPTIBLE 0x02
#define TASK_STOPPED_BIT 0x04
#define TASK_TRACED_BIT 0x08
#define TASK_DEAD 0x80
#define TASK_WAKING 0x200
#define TASK_FROZEN 0x8000 /* 6.1 */

#define PF_IO_WORKER 0x10
#define PF_EXITING 0x04
#define PF_KTHREAD 0x00200000
#define PF_USER_WORKER 0x4000 /* 6.4; before it the bit is unused for user threads */

#define TS_COMPAT 0x02 /* arch/x86 thread_info.status: in a 32-bit system call */

#define NMI_MASK 0x00f00000
#define HARDIRQ_MASK 0x000f0000
#define SOFTIRQ_OFFSET 0x00000100 /* serving one; the rest of the softirq byte only says that they are disabled */

#define VM_MAYSHARE 0x80 /* mapped shared; VM_SHARED is cleared where the descriptor cannot be written */
#define PAGE_SHIFT 12

#define CLONE_VFORK 0x00004000
#define CLONE_THREAD 0x00010000

#ifndef EBUSY
#define EBUSY 16
#define E2BIG 7
#define ENOENT 2
#define EEXIST 17
#endif

#define barrier() asm volatile("" ::: "memory")
#define READ_ONCE(x) (*(const volatile typeof(x) *) &(x))
#define WRITE_ONCE(x, v) (*(volatile typeof(x) *) &(x) = (v))

#endif
