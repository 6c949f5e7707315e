// SPDX-License-Identifier: GPL-2.0-only
/* What object.bpf.h declares, and iterators over open files: which operations belong to which kind of file, and what a
 * process has open. Those are run by prismd's main thread, one at a time. */
#include "object.bpf.h"

static __always_inline void describe_unix(struct sock *sk, struct prism_object *object) {
        struct unix_sock *unix_socket = (struct unix_sock *) sk;
        struct unix_address *address = KERNEL_READ(unix_socket, addr);
        struct sock *peer = KERNEL_READ(unix_socket, peer);
        int length;

        if (peer) {
                const char *socket = (const char *) KERNEL_READ(peer, sk_socket);

                if (socket) {
                        struct inode *inode = (struct inode *) (socket +
                                        bpf_core_field_offset(struct socket_alloc, vfs_inode) -
                                        bpf_core_field_offset(struct socket_alloc, socket));

                        object->peer_inode = KERNEL_READ(inode, i_ino);
                }
                /* The end that was accepted has no name of its own but the listener's; the other has none at all. */
                if (!address) {
                        struct unix_sock *other = (struct unix_sock *) peer;

                        address = KERNEL_READ(other, addr);
                }
        }
        if (!address)
                return;
        length = KERNEL_READ(address, len);
        length -= bpf_core_field_offset(struct sockaddr_un, sun_path);
        if (length <= 0)
                return;
        length &= 127; /* for the verifier; it is at most 108 */
        if (length > PRISM_UNIX_PATH_LENGTH)
                length = PRISM_UNIX_PATH_LENGTH;
        object->path_length = length;
        bpf_probe_read_kernel(object->path, length,
                        (const char *) address + bpf_core_field_offset(struct unix_address, name) +
                                        bpf_core_field_offset(struct sockaddr_un, sun_path));
}

static __always_inline void describe_inet(struct sock *sk, struct prism_object *object) {
        object->local_port = KERNEL_READ(sk, __sk_common.skc_num);
        if (!object->local_port) /* given back already, at the end of a connection */
                object->local_port = bpf_ntohs(KERNEL_READ((struct inet_sock *) sk, inet_sport));
        object->remote_port = bpf_ntohs(KERNEL_READ(sk, __sk_common.skc_dport));
        if (object->family == AF_INET) {
                bpf_core_read(object->local_address, 4, &sk->__sk_common.skc_rcv_saddr);
                bpf_core_read(object->remote_address, 4, &sk->__sk_common.skc_daddr);
        } else if (bpf_core_field_exists(sk->__sk_common.skc_v6_daddr)) {
                bpf_core_read(object->local_address, 16, &sk->__sk_common.skc_v6_rcv_saddr);
                bpf_core_read(object->remote_address, 16, &sk->__sk_common.skc_v6_daddr);
        }
        if (object->type == SOCK_STREAM && object->protocol == IPPROTO_TCP && object->state != TCP_LISTEN) {
                struct tcp_sock *tcp = (struct tcp_sock *) sk;

                object->has_counters = 1;
                object->bytes_in = KERNEL_READ(tcp, bytes_received);
                object->bytes_out = KERNEL_READ(tcp, bytes_acked);
                object->retransmits = KERNEL_READ(tcp, total_retrans);
                object->srtt_us = KERNEL_READ(tcp, srtt_us) >> 3;
                object->receive_queue = KERNEL_READ(tcp, rcv_nxt) - KERNEL_READ(tcp, copied_seq);
                object->send_queue = KERNEL_READ(tcp, write_seq) - KERNEL_READ(tcp, snd_una);
        }
}

static __always_inline void describe_socket(__u64 file, struct prism_object *object) {
        struct sock *sk = (struct sock *) socket_of_file(file);

        object->family = KERNEL_READ(sk, __sk_common.skc_family);
        object->type = KERNEL_READ(sk, sk_type);
        object->protocol = KERNEL_READ(sk, sk_protocol);
        object->state = KERNEL_READ(sk, __sk_common.skc_state);
        object->netns = KERNEL_READ(sk, __sk_common.skc_net.net, ns.inum);
        object->cookie = KERNEL_READ(sk, __sk_common.skc_cookie.counter);
        if (object->family == AF_UNIX)
                describe_unix(sk, object);
        else if (object->family == AF_INET || object->family == AF_INET6)
                describe_inet(sk, object);
}

int object_describe(__u32 scratch, struct prism_object_key *key, __u64 file, struct thread_state *st, int descriptor) {
        struct file_identity id = {};
        struct prism_object_key copy;
        struct prism_object *object = bpf_map_lookup_elem(&object_scratch, &scratch), *known;
        int r;

        if (!object || !key || !st)
                return true;
        copy = *key; /* older kernels want the key of a map on the function's own stack */
        __builtin_memset(object, 0, sizeof(*object));
        object->descriptor = descriptor;
        object->thread = st->thread;
        object->seen_ns = bpf_ktime_get_boot_ns();

        if (file) {
                struct file *f = (struct file *) file;
                struct dentry *dentry;

                if (file_identify(file, st->process_start_ns, &id) !=
                                                (key->kind == PRISM_KIND_PAGE_FAULT ? PRISM_KIND_FILE : key->kind) ||
                                id.space != key->space || id.address != key->address)
                        return true;
                switch (id.kind) {
                case PRISM_KIND_UNIX:
                case PRISM_KIND_INET:
                case PRISM_KIND_SOCKET:
                        describe_socket(file, object);
                        break;
                default:
                        if (st->opened_file == file && st->path[0] == '/') {
                                __builtin_memcpy(object->name, st->path, sizeof(object->name));
                                break;
                        }
                        dentry = KERNEL_READ(f, f_path.dentry);
                        bpf_probe_read_kernel_str(object->name, sizeof(object->name), KERNEL_READ(dentry, d_name.name));
                }
        } else if (key->kind == PRISM_KIND_POLL) {
                int i;

                object->poll_count = st->poll_count;
                for (i = 0; i < PRISM_POLL_FILES; i++)
                        object->poll_descriptors[i] = i < st->poll_count ? st->poll[i].descriptor : -1;
        } else if (key->address & PRISM_BY_PATH)
                __builtin_memcpy(object->name, st->path, sizeof(object->name));

        /* A path that was seen once is not given up for its last component. */
        known = bpf_map_lookup_elem(&objects, &copy);
        if (known && known->name[0] == '/' && object->name[0] != '/')
                __builtin_memcpy(object->name, known->name, sizeof(object->name));
        r = bpf_map_update_elem(&objects, &copy, object, BPF_ANY);
        return r == 0;
}

/* Learns the kinds from prismd's own descriptors, which are control.file_descriptors. */
SEC("iter/task_file")
int iter_kinds(struct bpf_iter__task_file *ctx) {
        struct task_struct *task = ctx->task;
        struct file *file = ctx->file;
        int i;

        if (!task || !file || task->tgid != (int) (bpf_get_current_pid_tgid() >> 32))
                return 0;
        for (i = 0; i < _PRISM_FILE_MAX; i++)
                if (control.file_descriptors[i] == (int) ctx->fd)
                        control.file_operations[i] = (__u64) file->f_op;
        return 0;
}

/* The node of a red-black tree that follows `node`, 0 if it is the last. Bounded, since the tree may change meanwhile. */
#define TREE_DEPTH_MAX 48
__noinline __u64 tree_next(__u64 address) {
        struct rb_node *node = (struct rb_node *) address, *other;
        int i;

        other = KERNEL_READ(node, rb_right);
        if (other) {
                for (i = 0; i < TREE_DEPTH_MAX; i++) {
                        node = other;
                        other = KERNEL_READ(node, rb_left);
                        if (!other)
                                return (__u64) node;
                }
                return 0;
        }
        for (i = 0; i < TREE_DEPTH_MAX; i++) {
                other = (struct rb_node *) (KERNEL_READ(node, __rb_parent_color) & ~3UL);
                if (!other)
                        return 0;
                if (KERNEL_READ(other, rb_right) != node)
                        return (__u64) other;
                node = other;
        }
        return 0;
}

/* Not from /proc/PID/fdinfo: that waits for a lock which a thread holds while it writes events to its own memory. */
#define WATCHES_MAX 256
static __always_inline void write_watches(struct bpf_iter__task_file *ctx, __u64 file, struct thread_state *st,
                const struct prism_object_key *set) {
        struct file *f = (struct file *) file;
        struct eventpoll *ep = KERNEL_READ(f, private_data);
        struct prism_watch watch = { .set_space = set->space, .set_address = set->address };
        __u64 node = (__u64) KERNEL_READ(ep, rbr.rb_leftmost);
        int i;

        for (i = 0; i < WATCHES_MAX && node; i++) {
                struct epitem *item = (struct epitem *) (node - bpf_core_field_offset(struct epitem, rbn));
                struct file_identity id = {};

                watch.kind = file_identify((__u64) KERNEL_READ(item, ffd.file), st->process_start_ns, &id);
                watch.space = id.space;
                watch.address = id.address;
                bpf_seq_write(ctx->meta->seq, &watch, sizeof(watch));
                node = tree_next(node);
        }
        if (node)
                count_loss(PRISM_LOSS_WATCHES);
}

/* Describes what tracked processes can talk through: sockets, pipes and the files without a name. */
SEC("iter/task_file")
int iter_files(struct bpf_iter__task_file *ctx) {
        struct task_struct *task = ctx->task;
        struct file *opened = ctx->file;
        struct prism_object_key key = {};
        struct file_identity id = {};
        struct thread_state *st;
        __u64 file;

        if (!task || !opened || !task->bpf_storage)
                return 0;
        st = bpf_task_storage_get(&threads, task, 0, 0);
        if (!st)
                return 0;
        file = file_of_task(READ_ONCE(st->task), ctx->fd); /* as a number: see file.bpf.h */
        key.kind = file_identify(file, st->process_start_ns, &id);
        if (id.kind == PRISM_KIND_FILE || id.kind == PRISM_KIND_DISK || id.kind == PRISM_KIND_CHARDEV ||
                        id.kind == PRISM_KIND_OTHER || id.kind == PRISM_KIND_NONE)
                return 0;
        key.space = id.space;
        key.address = id.address;
        if (!object_describe(SCRATCH_ITERATOR, &key, file, st, ctx->fd))
                count_loss(PRISM_LOSS_OBJECT_FULL);
        if (key.kind == PRISM_KIND_EPOLL && control.look_at_watches)
                write_watches(ctx, file, st, &key);
        /* Only after it was described: a socket without a cookie is one that was not there at the last look. */
        if (key.kind == PRISM_KIND_INET) {
                struct socket *socket = bpf_sock_from_file(opened);

                if (socket && socket->sk)
                        bpf_get_socket_cookie(socket->sk);
        }
        return 0;
}
