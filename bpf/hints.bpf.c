// SPDX-License-Identifier: GPL-2.0-only
/* What a thread says of itself on its way, for the wait that may follow: the address of a page fault, the kernel lock that
 * it contends for, that it has to free memory first. And what it gives to io_uring, and what a socket has moved when it is
 * closed. Each program is optional; all run in
 * the thread that they are about, and leave at once for one that is not tracked. */
#include "calls.bpf.h"
#include "object.bpf.h"

static __always_inline struct thread_state *current_state(void) {
        return state_of(bpf_get_current_task_btf());
}

/* Each page fault of the host, minor ones too. */
SEC("tp_btf/page_fault_user")
int BPF_PROG(page_fault_user, unsigned long address, struct pt_regs *regs, unsigned long error_code) {
        struct thread_state *st = current_state();

        if (st)
                st->fault_address = address;
        return 0;
}

/* Of memory of the thread that the kernel reads or writes for it. */
SEC("tp_btf/page_fault_kernel")
int BPF_PROG(page_fault_kernel, unsigned long address, struct pt_regs *regs, unsigned long error_code) {
        struct thread_state *st = current_state();

        if (st)
                st->fault_address = address;
        return 0;
}

/* Each kernel lock that is not free at once, spin locks too. One that first spins says so, and says it again without the
 * flag when it is about to sleep. */
SEC("tp_btf/contention_begin")
int BPF_PROG(contention_begin, void *lock, unsigned int flags) {
        struct thread_state *st;

        if (flags & LCB_F_SPIN)
                return 0;
        st = current_state();
        if (!st)
                return 0;
        st->lock_flags = flags;
        st->lock = (__u64) lock;
        return 0;
}

SEC("tp_btf/contention_end")
int BPF_PROG(contention_end, void *lock, int result) {
        struct thread_state *st = current_state();

        /* A spin lock taken meanwhile ends here too. */
        if (st && st->lock == (__u64) lock)
                st->lock = 0;
        return 0;
}

static __always_inline void reclaim_begin(enum prism_op op) {
        struct thread_state *st = current_state();

        if (!st)
                return;
        st->reclaim_ns = bpf_ktime_get_boot_ns();
        st->reclaim = op;
}

static __always_inline void reclaim_end(void) {
        struct thread_state *st = current_state();
        struct prism_resource resource = { .kind = PRISM_KIND_RECLAIM };
        struct call_result result = { .count = 1 };

        if (!st || !st->reclaim)
                return;
        resource.op = st->reclaim;
        result.length_ns = bpf_ktime_get_boot_ns() - st->reclaim_ns;
        st->reclaim = 0;
        (void) call_add(st, &resource, 0, 0, &result);
}

SEC("tp_btf/mm_vmscan_direct_reclaim_begin")
int BPF_PROG(direct_reclaim_begin) {
        reclaim_begin(PRISM_OP_RECLAIM);
        return 0;
}

SEC("tp_btf/mm_vmscan_direct_reclaim_end")
int BPF_PROG(direct_reclaim_end) {
        reclaim_end();
        return 0;
}

SEC("tp_btf/mm_vmscan_memcg_reclaim_begin")
int BPF_PROG(cgroup_reclaim_begin) {
        reclaim_begin(PRISM_OP_RECLAIM_CGROUP);
        return 0;
}

SEC("tp_btf/mm_vmscan_memcg_reclaim_end")
int BPF_PROG(cgroup_reclaim_end) {
        reclaim_end();
        return 0;
}

static __always_inline void uring_count(enum prism_op op) {
        struct thread_state *st = current_state();
        struct prism_resource resource = { .kind = PRISM_KIND_IO_URING, .op = op };
        struct call_result result = { .count = 1 };

        if (st)
                (void) call_add(st, &resource, 0, 0, &result);
}

SEC("tp_btf/io_uring_submit_req")
int BPF_PROG(io_uring_submit) {
        uring_count(PRISM_OP_SUBMIT);
        return 0;
}

/* In whichever thread the completion is seen: the waiter, or a kernel worker. */
SEC("tp_btf/io_uring_complete")
int BPF_PROG(io_uring_complete) {
        uring_count(PRISM_OP_COMPLETE);
        return 0;
}

/* A socket that a thread shuts down or closes: the last look at its counters, which are gone with it. */
SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(socket_closing, struct sock *sk, int old_state, int new_state) {
        struct prism_object_key key = {};
        struct file_identity id = {};
        struct thread_state *st;
        __u64 file;

        if (new_state != TCP_FIN_WAIT1 && new_state != TCP_LAST_ACK && new_state != TCP_CLOSE)
                return 0;
        st = current_state();
        /* An interrupt may close any socket, and the thread it interrupts has nothing to do with it. */
        if (!st || interrupt_count(bpf_get_current_task_btf()))
                return 0;
        WRITE_ONCE(st->closing_file, (__u64) KERNEL_READ(sk, sk_socket, file));
        file = READ_ONCE(st->closing_file);
        if (!file)
                return 0;
        key.kind = file_identify(file, st->process_start_ns, &id);
        if (key.kind != PRISM_KIND_INET ||
                        KERNEL_READ((struct file *) file, private_data) != KERNEL_READ(sk, sk_socket))
                return 0;
        key.space = id.space;
        key.address = id.address;
        if (!object_describe(SCRATCH_CLOSING, &key, file, st, -1))
                count_loss(PRISM_LOSS_OBJECT_FULL);
        return 0;
}
