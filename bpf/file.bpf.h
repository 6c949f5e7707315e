/* SPDX-License-Identifier: GPL-2.0-only */
/* What a descriptor leads to: the identity of an open file, as struct prism_resource describes it, and which of many watched
 * files ends a wait. All reads are such that a file which goes away meanwhile gives a wrong answer at worst, never a
 * fault; object.bpf.c checks the answer where that matters.
 *
 * Here and elsewhere in bpf/ what several programs need and is large is a global function: the verifier then looks at it
 * once, and not again for each way that leads to it; __noinline, since all of bpf/ is one unit. Such functions are given numbers, and memory of maps or of the
 * caller's stack; never kernel pointers. */
#ifndef PRISM_FILE_H
#define PRISM_FILE_H

#include "identity.bpf.h"

/* What a file is; `space` and `address` as in struct prism_resource. */
struct file_identity {
        __u64 space, address;
        __u32 kind;
        __u32 ports; /* inet: the lower half of socket_head() */
        __u64 set;   /* epoll: address of the struct eventpoll */
};

/* A number in place of a kernel address, one to one, that says nothing of it to those who read it. */
static __always_inline __u64 number_of_address(__u64 n) {
        n = (n ^ settings.secret[0]) * 0x9E3779B97F4A7C15ULL;
        n ^= n >> 32;
        n = (n + settings.secret[1]) * 0xBF58476D1CE4E5B9ULL;
        n ^= n >> 29;
        n = (n ^ settings.secret[0]) * 0x94D049BB133111EBULL;
        return n ^ n >> 32;
}

static __always_inline __u64 socket_of_file(__u64 address) {
        struct file *file = (struct file *) address;
        struct socket *socket = KERNEL_READ(file, private_data);

        return (__u64) KERNEL_READ(socket, sk);
}

/* What of a socket stands together: remote port (network byte order), local port, family, state. */
static __always_inline __u64 socket_head(__u64 address) {
        struct sock *sk = (struct sock *) address;

        /* One read, since each may be dear. */
        if (bpf_core_field_offset(struct sock_common, skc_num) - bpf_core_field_offset(struct sock_common, skc_dport) ==
                                        2 &&
                        bpf_core_field_offset(struct sock_common, skc_family) -
                                                        bpf_core_field_offset(struct sock_common, skc_dport) ==
                                        4)
                return KERNEL_READ_AT(__u64, address + bpf_core_field_offset(struct sock_common, skc_dport));
        return KERNEL_READ(sk, __sk_common.skc_dport) | (__u64) KERNEL_READ(sk, __sk_common.skc_num) << 16 |
                        (__u64) KERNEL_READ(sk, __sk_common.skc_family) << 32;
}
#define HEAD_REMOTE_PORT(head) bpf_ntohs((__u16) (head))
#define HEAD_LOCAL_PORT(head) ((__u16) ((head) >> 16))
#define HEAD_FAMILY(head) ((__u16) ((head) >> 32))

static __always_inline void inode_identify(const struct inode *inode, struct file_identity *id) {
        struct super_block *sb = KERNEL_READ(inode, i_sb);

        id->space = KERNEL_READ(inode, i_ino);
        id->address = (__u64) KERNEL_READ(sb, s_dev) << 32 | KERNEL_READ(inode, i_generation);
        id->address &= ~PRISM_BY_PATH;
}

/* The address of the struct file, 0 if the task at `task` has no such descriptor. */
extern __noinline __u64 file_of_task(__u64 task, __u32 descriptor);
/* What the file at `address` is; returns its kind. `process_start` makes the number of those unique that have none of their
 * own. */
extern __noinline int file_identify(__u64 address, __u64 process_start, struct file_identity *id);

/* Which watched file ends a wait in epoll_wait, poll or select: asked at the wake, into st->via; or, if the wake was ahead of
 * the switch, at the switch, into st->early_via. Both return its kind. The whole wait is charged to the file whose event
 * came first; later ones cost the waiter nothing. */
extern __noinline int epoll_via(struct thread_state *st, bool early);
/* What an item that epoll_via() left unidentified is. */
extern __noinline int epoll_via_identify(struct thread_state *st, bool early);
/* `other`: the wake may have nothing to do with a file: the end of the call's own time, or a signal. */
extern __noinline int poll_via(__u64 task, struct thread_state *st, bool other, bool early);

static __always_inline bool waits_on_many(const struct thread_state *st) {
        return st->resource.kind == PRISM_KIND_EPOLL || st->resource.kind == PRISM_KIND_POLL;
}

#endif
