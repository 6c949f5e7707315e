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
#include <bpf/bpf_endian.h>

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

struct rw_semaphore {
        int count;
};

struct mm_struct {
        mm_context_t context;
        struct rw_semaphore mmap_lock;
};

typedef struct {
        __s64 counter;
} atomic64_t;

struct super_block {
        __u32 s_dev;
        unsigned long s_magic;
};

struct inode {
        unsigned short i_mode;
        __u32 i_rdev;
        __u32 i_generation;
        unsigned long i_ino;
        struct super_block *i_sb;
        atomic64_t i_sequence;
};

struct qstr {
        const unsigned char *name;
};

struct dentry {
        struct qstr d_name;
};

struct path {
        struct dentry *dentry;
};

struct file_operations;
struct file {
        struct inode *f_inode;
        const struct file_operations *f_op;
        void *private_data;
        struct path f_path;
};

struct fdtable {
        unsigned int max_fds;
        struct file **fd;
};

struct files_struct {
        struct fdtable *fdt;
};

struct list_head {
        struct list_head *next, *prev;
};

struct rb_node {
        unsigned long __rb_parent_color;
        struct rb_node *rb_right, *rb_left;
};

struct rb_root_cached {
        struct rb_node *rb_leftmost;
};

struct epoll_filefd {
        struct file *file;
        int fd;
};

struct wait_queue_head {
        int lock;
};

struct eppoll_entry {
        struct wait_queue_head *whead;
};

struct epitem {
        struct rb_node rbn;
        struct eppoll_entry *pwqlist;
        struct list_head rdllink;
        struct epoll_filefd ffd;
};

struct eventpoll {
        struct rb_root_cached rbr;
        struct list_head rdllist;
        struct epitem *ovflist;
};

struct eventfd_ctx {
        __u64 count;
};

struct timerfd_ctx {
        __u64 ticks;
};

struct pipe_inode_info {
        unsigned int head, tail;
        unsigned int max_usage;
        unsigned int readers, writers;
};

struct net {
        struct ns_common ns;
};

typedef struct {
        struct net *net;
} possible_net_t;

struct in6_addr {
        union {
                __u8 u6_addr8[16];
        } in6_u;
};

struct sock_common {
        __u32 skc_daddr, skc_rcv_saddr;
        __u16 skc_dport; /* network byte order */
        __u16 skc_num;
        unsigned short skc_family;
        unsigned char skc_state;
        possible_net_t skc_net;
        struct in6_addr skc_v6_daddr, skc_v6_rcv_saddr;
        atomic64_t skc_cookie;
};

struct sk_buff_head {
        __u32 qlen;
};

typedef struct {
        int counter;
} atomic_t;

typedef struct {
        atomic_t refs;
} refcount_t;

struct sock {
        struct sock_common __sk_common;
        struct sk_buff_head sk_receive_queue;
        refcount_t sk_wmem_alloc;
        __u8 sk_shutdown;
        __u16 sk_type, sk_protocol;
        struct socket *sk_socket;
};

struct inet_sock {
        __u16 inet_sport; /* network byte order */
};

struct request_sock_queue {
        void *rskq_accept_head;
};

struct inet_connection_sock {
        struct request_sock_queue icsk_accept_queue;
};

struct tcp_sock {
        __u32 rcv_nxt, copied_seq, write_seq, snd_una;
        __u64 bytes_received, bytes_acked;
        __u32 total_retrans, srtt_us;
};

struct timespec64 {
        __s64 tv_sec;
};

struct sockaddr_un {
        unsigned short sun_family;
        char sun_path[108];
};

struct unix_address {
        int len;
        struct sockaddr_un name[0];
};

struct unix_sock {
        struct unix_address *addr;
        struct sock *peer;
};

struct socket_wq {
        struct wait_queue_head wait;
};

struct socket {
        struct file *file;
        struct sock *sk;
        struct socket_wq wq;
};

struct socket_alloc {
        struct socket socket;
        struct inode vfs_inode;
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
        __u64 throttled_clock_self_time; /* 6.6 */
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
        unsigned long flags;
        __u32 status;
};

struct mnt_namespace {
        struct ns_common ns;
};

struct nsproxy {
        struct mnt_namespace *mnt_ns;
};

struct task_struct {
        struct thread_info thread_info;
        unsigned int __state;
        unsigned int flags;
        int on_cpu;
        struct sched_entity se;
        struct sched_info sched_info; /* with CONFIG_SCHED_INFO, which CONFIG_SCHEDSTATS and delay accounting bring */
        struct mm_struct *mm;
        struct files_struct *files;
        unsigned in_iowait : 1;
        unsigned frozen : 1;      /* with CONFIG_CGROUPS */
        unsigned in_memstall : 1; /* with CONFIG_PSI */
        int pid;
        int tgid;
        struct task_struct *real_parent;
        struct task_struct *group_leader;
        struct pid *thread_pid;
        __u64 start_boottime;
        __u64 self_exec_id;
        const struct cred *cred;
        struct nsproxy *nsproxy;
        char comm[16];
        struct bpf_local_storage *bpf_storage;
};

struct io_kiocb;
struct io_ring_ctx;

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
struct bpf_iter__task_file {
        struct bpf_iter_meta *meta;
        struct task_struct *task;
        __u32 fd;
        struct file *file;
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

#define TIF_SIGPENDING (1U << 2) /* arch/x86 thread_info.flags */
#define TS_COMPAT 0x02           /* arch/x86 thread_info.status: in a 32-bit system call */

#define NMI_MASK 0x00f00000
#define HARDIRQ_MASK 0x000f0000
#define SOFTIRQ_OFFSET 0x00000100 /* serving one; the rest of the softirq byte only says that they are disabled */

#define VM_MAYSHARE 0x80 /* mapped shared; VM_SHARED is cleared where the descriptor cannot be written */
#define PAGE_SHIFT 12

/* include/uapi/linux/stat.h, magic.h, poll.h, socket.h */
#define S_IFMT 0170000
#define S_IFSOCK 0140000
#define S_IFBLK 0060000
#define S_IFCHR 0020000
#define S_IFIFO 0010000
#define PIPEFS_MAGIC 0x50495045
#define ANON_INODE_FS_MAGIC 0x09041934
#define POLLIN 0x0001
#define POLLOUT 0x0004
#define AF_UNIX 1
#define AF_INET 2
#define AF_INET6 10
#define SOCK_STREAM 1
#define IPPROTO_TCP 6
#define TCP_FIN_WAIT1 4
#define TCP_CLOSE 7
#define TCP_LAST_ACK 9
#define TCP_LISTEN 10
#define RCV_SHUTDOWN 1

/* enum lock contention flags of contention_begin */
#define LCB_F_SPIN (1U << 0)
#define LCB_F_READ (1U << 1)
#define LCB_F_WRITE (1U << 2)
#define LCB_F_RT (1U << 3)
#define LCB_F_PERCPU (1U << 4)
#define LCB_F_MUTEX (1U << 5)

#define CLONE_VFORK 0x00004000
#define CLONE_THREAD 0x00010000

#ifndef EBUSY
#define EBUSY 16
#define E2BIG 7
#define ENOENT 2
#define EEXIST 17
#endif

#define __maybe_unused __attribute__((unused))
#define barrier() asm volatile("" ::: "memory")
#define READ_ONCE(x) (*(const volatile typeof(x) *) &(x))
#define WRITE_ONCE(x, v) (*(volatile typeof(x) *) &(x) = (v))

#endif
