// SPDX-License-Identifier: GPL-2.0-only
/* What file.bpf.h declares. */
#include "call.bpf.h"
#include "file.bpf.h"

#define PTMX (5U << 20 | 2)

static __always_inline void inode_identify_device(const struct inode *inode, struct file_identity *id) {
        struct super_block *sb = KERNEL_READ(inode, i_sb);

        id->address = (__u64) KERNEL_READ(sb, s_dev) << 32 | (__u32) KERNEL_READ(inode, i_ino);
}

__u64 file_of_task(__u64 address, __u32 descriptor) {
        struct task_struct *task = (struct task_struct *) address;
        struct fdtable *table = KERNEL_READ(task, files, fdt);

        if (!table || descriptor >= KERNEL_READ(table, max_fds))
                return 0;
        return KERNEL_READ_AT(__u64, (__u64) KERNEL_READ(table, fd) + 8ULL * descriptor);
}

static __always_inline __u32 kind_of_operations(__u64 operations) {
        if (!operations)
                return PRISM_KIND_OTHER;
        if (operations == control.file_operations[PRISM_FILE_EPOLL])
                return PRISM_KIND_EPOLL;
        if (operations == control.file_operations[PRISM_FILE_EVENTFD])
                return PRISM_KIND_EVENTFD;
        if (operations == control.file_operations[PRISM_FILE_TIMERFD])
                return PRISM_KIND_TIMERFD;
        if (operations == control.file_operations[PRISM_FILE_SIGNALFD])
                return PRISM_KIND_SIGNALFD;
        if (operations == control.file_operations[PRISM_FILE_INOTIFY])
                return PRISM_KIND_INOTIFY;
        if (operations == control.file_operations[PRISM_FILE_IO_URING])
                return PRISM_KIND_IO_URING;
        return PRISM_KIND_OTHER;
}

/* The struct inode of a socket's file lies behind the struct socket. */
static __always_inline struct inode *inode_of_socket(__u64 socket) {
        return (struct inode *) (socket + bpf_core_field_offset(struct socket_alloc, vfs_inode) -
                        bpf_core_field_offset(struct socket_alloc, socket));
}

static __always_inline int socket_identify(__u64 address, struct file_identity *id) {
        struct file *file = (struct file *) address;
        struct socket *socket = KERNEL_READ(file, private_data);
        __u64 head = socket_head((__u64) KERNEL_READ(socket, sk));
        __u32 family = HEAD_FAMILY(head);

        id->ports = head;
        id->kind = family == AF_UNIX                              ? PRISM_KIND_UNIX
                        : family == AF_INET || family == AF_INET6 ? PRISM_KIND_INET
                                                                  : PRISM_KIND_SOCKET;
        id->space = KERNEL_READ(inode_of_socket((__u64) socket), i_ino);
        return id->kind;
}

/* In the order of what is asked most, since each read costs some ten nanoseconds: sets and sockets are known by their
 * operations. */
int file_identify(__u64 address, __u64 process_start, struct file_identity *id) {
        struct file *file = (struct file *) address;
        __u64 operations = (__u64) KERNEL_READ(file, f_op);
        struct inode *inode;
        struct super_block *sb;
        unsigned long magic;
        __u32 mode;

        if (!id)
                return PRISM_KIND_NONE;
        id->kind = PRISM_KIND_NONE;
        id->address = id->space = 0;
        id->ports = 0;
        if (!operations)
                return id->kind;
        if (operations == control.file_operations[PRISM_FILE_SOCKET])
                return socket_identify(address, id);
        id->kind = kind_of_operations(operations);
        if (id->kind != PRISM_KIND_OTHER && id->kind != PRISM_KIND_IO_URING) {
                id->space = number_of_address(address);
                id->address = process_start;
                if (id->kind == PRISM_KIND_EPOLL)
                        id->set = (__u64) KERNEL_READ(file, private_data);
                return id->kind;
        }

        inode = KERNEL_READ(file, f_inode);
        if (!inode) {
                id->kind = PRISM_KIND_NONE;
                return id->kind;
        }
        mode = KERNEL_READ(inode, i_mode);
        switch (mode & S_IFMT) {
        case S_IFSOCK:
                return socket_identify(address, id);
        case S_IFCHR:
                id->kind = PRISM_KIND_CHARDEV;
                id->space = KERNEL_READ(inode, i_rdev);
                /* All masters of pseudo terminals are one special file; and each container has a first terminal. */
                if (id->space == PTMX)
                        id->address = number_of_address(address);
                else
                        inode_identify_device(inode, id);
                return id->kind;
        case S_IFBLK:
                id->kind = PRISM_KIND_DISK;
                id->space = KERNEL_READ(inode, i_rdev);
                return id->kind;
        }

        sb = KERNEL_READ(inode, i_sb);
        magic = KERNEL_READ(sb, s_magic);
        if ((mode & S_IFMT) == S_IFIFO) {
                if (magic != PIPEFS_MAGIC) {
                        id->kind = PRISM_KIND_FIFO;
                        inode_identify(inode, id);
                        return id->kind;
                }
                id->kind = PRISM_KIND_PIPE;
                id->space = KERNEL_READ(inode, i_ino);
                return id->kind;
        }
        if (magic == ANON_INODE_FS_MAGIC) {
                if (id->kind == PRISM_KIND_IO_URING) {
                        id->space = KERNEL_READ(inode, i_ino);
                        return id->kind;
                }
                id->space = number_of_address(address);
                id->address = process_start;
                return id->kind;
        }
        id->kind = PRISM_KIND_FILE;
        inode_identify(inode, id);
        return id->kind;
}

/* ---- Waits on many files ----
 *
 * epoll: the kernel has already put the item into the set's ready list. poll and select keep no such list: the files that
 * the call named (as many as struct thread_state has room for) are looked at, and the first that is ready is it. */

enum readiness {
        NOT_READY,
        READY,
        READINESS_UNKNOWN,
};

/* Whether a file has what a poll for `events` waits for, as far as it can be seen from outside. */
static __noinline int file_ready(__u64 address, __u32 kind, __u32 events) {
        struct file *file = (struct file *) address;
        void *private = KERNEL_READ(file, private_data);

        switch (kind) {
        case PRISM_KIND_PIPE:
        case PRISM_KIND_FIFO: {
                struct pipe_inode_info *pipe = private;
                __u32 used = KERNEL_READ(pipe, head) - KERNEL_READ(pipe, tail);

                if (events & POLLIN && (used || KERNEL_READ(pipe, writers) == 0))
                        return READY;
                if (events & POLLOUT && (used < KERNEL_READ(pipe, max_usage) || KERNEL_READ(pipe, readers) == 0))
                        return READY;
                return NOT_READY;
        }
        case PRISM_KIND_UNIX:
        case PRISM_KIND_INET:
        case PRISM_KIND_SOCKET: {
                struct socket *socket = private;
                struct sock *sk = KERNEL_READ(socket, sk);
                __u32 state = KERNEL_READ(sk, __sk_common.skc_state);

                if (events & POLLIN) {
                        if (KERNEL_READ(sk, sk_receive_queue.qlen) || KERNEL_READ(sk, sk_shutdown) & RCV_SHUTDOWN)
                                return READY;
                        if (kind == PRISM_KIND_INET && state == TCP_LISTEN) {
                                struct inet_connection_sock *icsk = (struct inet_connection_sock *) sk;

                                if (KERNEL_READ(icsk, icsk_accept_queue.rskq_accept_head))
                                        return READY;
                        }
                }
                /* What space is enough is for the protocol to say. */
                return events & POLLOUT ? READINESS_UNKNOWN : NOT_READY;
        }
        case PRISM_KIND_EVENTFD: {
                struct eventfd_ctx *context = private;

                if (events & POLLIN && KERNEL_READ(context, count))
                        return READY;
                return events & POLLOUT ? READINESS_UNKNOWN : NOT_READY;
        }
        case PRISM_KIND_TIMERFD: {
                struct timerfd_ctx *context = private;

                return events & POLLIN && KERNEL_READ(context, ticks) ? READY : NOT_READY;
        }
        case PRISM_KIND_EPOLL: {
                struct eventpoll *ep = private;
                void *list = (char *) ep + bpf_core_field_offset(struct eventpoll, rdllist);

                return (void *) KERNEL_READ(ep, rdllist.next) != list ? READY : NOT_READY;
        }
        }
        return READINESS_UNKNOWN;
}

#define EP_UNACTIVE_PTR ((__u64) -1)

/* The item that was put last (newest) or first into a set's ready list; 0 if there is none. */
static __always_inline __u64 epoll_ready_item(__u64 set, bool newest) {
        struct eventpoll *ep = (struct eventpoll *) set;
        __u64 list = set + bpf_core_field_offset(struct eventpoll, rdllist);
        __u64 link = (__u64) (newest ? KERNEL_READ(ep, rdllist.prev) : KERNEL_READ(ep, rdllist.next));
        __u64 item;

        if (!link)
                return 0;
        if (link != list)
                return link - bpf_core_field_offset(struct epitem, rdllink);
        /* While another thread carries events to its user they are collected here. */
        item = (__u64) KERNEL_READ(ep, ovflist);
        return item == EP_UNACTIVE_PTR ? 0 : item;
}

static __always_inline void via_set(struct via *via, __u64 file, __u64 process_start, struct file_identity *id) {
        via->kind = file_identify(file, process_start, id);
        via->ports = id->ports;
        via->space = id->space;
        via->address = id->address;
        via->file = file;
}

int epoll_via(struct thread_state *st, bool early) {
        struct via *via;
        __u64 item;

        if (!st)
                return PRISM_KIND_NONE;
        via = early ? &st->early_via : &st->via;
        item = epoll_ready_item(st->set, !early);
        via->kind = PRISM_KIND_NONE;
        via->ports = 0;
        if (!item)
                return PRISM_KIND_NONE;
        via->item = item;
        via->file = (__u64) KERNEL_READ((struct epitem *) item, ffd.file);
        via->kind = VIA_UNIDENTIFIED;
        return via->kind;
}

int epoll_via_identify(struct thread_state *st, bool early) {
        struct file_identity id = {};
        struct via *via;
        __u64 item;

        if (!st)
                return PRISM_KIND_NONE;
        via = early ? &st->early_via : &st->via;
        via_set(via, via->file, st->process_start_ns, &id);
        /* A set in a set: what woke it is behind it. Two levels are looked at, deeper ones count as the second set. */
        if (via->kind == PRISM_KIND_EPOLL) {
                item = epoll_ready_item(id.set, false);
                if (item)
                        via_set(via, (__u64) KERNEL_READ((struct epitem *) item, ffd.file), st->process_start_ns, &id);
        }
        return via->kind;
}

int poll_via(__u64 task, struct thread_state *st, bool other, bool early) {
        __u64 process_start, unknown = 0;
        struct file_identity last = {};
        struct via *via;
        __u32 n, i, unknowns = 0;

        if (!st)
                return PRISM_KIND_NONE;
        process_start = st->process_start_ns;
        via = early ? &st->early_via : &st->via;
        n = st->poll_count;
        via->kind = PRISM_KIND_NONE;
        for (i = 0; i < PRISM_POLL_FILES; i++) {
                struct file_identity id = {};
                __u64 file;
                int ready;

                if (i >= n)
                        break;
                file = file_of_task(task, st->poll[i].descriptor);
                if (!file)
                        continue;
                ready = file_ready(file, file_identify(file, process_start, &id), st->poll[i].events);
                if (ready == READY) {
                        via_set(via, file, process_start, &id);
                        return via->kind;
                }
                if (ready == READINESS_UNKNOWN) {
                        unknown = file;
                        unknowns++;
                }
        }
        /* The only one that it can have been. */
        if (unknowns == 1 && n <= PRISM_POLL_FILES && !early && !other)
                via_set(via, unknown, process_start, &last);
        return via->kind;
}

/* ---- The other end ---- */

/* arch/x86/include/asm/unistd_64.h */
#define NR_SENDTO 44
#define NR_SENDMSG 46
#define NR_SENDMMSG 307

int is_other_end(__u32 ports, __u64 item, struct call *c) {
        __u32 wakee_port, wakee_remote, port, remote;
        struct file *file;
        __u64 head;

        if (!c)
                return 0;
        if (item) {
                /* The head of the queue that the item waits in lies in the struct socket, if it is one. */
                struct eppoll_entry *entry = KERNEL_READ((struct epitem *) item, pwqlist);
                struct socket *socket = (struct socket *) ((__u64) KERNEL_READ(entry, whead) -
                                bpf_core_field_offset(struct socket, wq) -
                                bpf_core_field_offset(struct socket_wq, wait));

                ports = socket_head((__u64) KERNEL_READ(socket, sk));
        }
        wakee_port = HEAD_LOCAL_PORT(ports);
        wakee_remote = HEAD_REMOTE_PORT(ports);
        if (!wakee_port)
                return 0;
        file = (struct file *) call_file(c, c->arguments[0]);
        if (!file || (__u64) KERNEL_READ(file, f_op) != control.file_operations[PRISM_FILE_SOCKET])
                return 0;
        head = socket_head(socket_of_file((__u64) file));
        port = HEAD_LOCAL_PORT(head);
        remote = HEAD_REMOTE_PORT(head);

        if (remote == 0) {
                /* A datagram: where to stands in the call. */
                __u64 pointer = 0;
                __u16 to = 0;

                if (!c->compat && c->number == NR_SENDTO)
                        pointer = c->arguments[4];
                else if (!c->compat && (c->number == NR_SENDMSG || c->number == NR_SENDMMSG))
                        bpf_probe_read_user(&pointer, sizeof(pointer), (void *) c->arguments[1]);
                if (!pointer || bpf_probe_read_user(&to, sizeof(to), (void *) (pointer + 2)) != 0)
                        return 0;
                remote = bpf_ntohs(to);
        }
        /* A listener, or a datagram socket that takes from anybody, has no remote port. */
        return remote == wakee_port && (wakee_remote == 0 || wakee_remote == port);
}
