/* SPDX-License-Identifier: GPL-2.0-only */
/* Which futex a thread waits on. Identity is the kernel's own key: (address space, address) for a private one, (inode
 * sequence number, offset) for one in a shared mapping, so that two processes meet at one resource wherever they map
 * it. */
#ifndef PRISM_FUTEX_H
#define PRISM_FUTEX_H

#include "identity.bpf.h"

/* include/uapi/linux/futex.h */
#define FUTEX_COMMAND_MASK 0x7f
#define FUTEX_PRIVATE_FLAG 128
#define FUTEX2_PRIVATE 128
#define FUTEX_WAIT 0
#define FUTEX_WAKE 1
#define FUTEX_REQUEUE 3
#define FUTEX_CMP_REQUEUE 4
#define FUTEX_WAKE_OP 5
#define FUTEX_LOCK_PI 6
#define FUTEX_WAIT_BITSET 9
#define FUTEX_WAKE_BITSET 10
#define FUTEX_WAIT_REQUEUE_PI 11
#define FUTEX_LOCK_PI2 13

struct futex_mapping {
        unsigned long address;
        __u64 sequence; /* 0: private */
        __u64 offset;
};

static __maybe_unused long futex_in_mapping(struct task_struct *task, struct vm_area_struct *vma, void *data) {
        struct futex_mapping *m = data;

        if (!(vma->vm_flags & VM_MAYSHARE))
                return 0;
        if (vma->vm_file) {
                m->sequence = vma->vm_file->f_inode->i_sequence.counter;
                m->offset = m->address - vma->vm_start + (vma->vm_pgoff << PAGE_SHIFT);
        }
        return 0;
}

/* A call without the private flag may still be on private memory (glibc joins threads that way), so the mapping decides:
 * corrects *r, which is the private one. Where it cannot be asked (before 5.17, while the mmap lock is held for writing,
 * and for a task that is not current, since nothing keeps its mm while we look) prismd has to ask /proc. */
static __always_inline void futex_look_at_mapping(
                struct task_struct *task, bool current, __u64 address, struct prism_resource *r) {
        struct futex_mapping mapping = { .address = address };

        if (!settings.has_find_vma || !current ||
                        (int) bpf_find_vma(task, address, futex_in_mapping, &mapping, 0) != 0) {
                r->shared = PRISM_FUTEX_UNSURE;
                return;
        }
        if (mapping.sequence) {
                r->space = mapping.sequence;
                r->address = mapping.offset;
                r->shared = PRISM_FUTEX_SHARED;
        }
}

static __always_inline __u16 futex_op(__u32 command) {
        switch (command & FUTEX_COMMAND_MASK) {
        case FUTEX_WAIT_BITSET:
                return PRISM_OP_FUTEX_WAIT_BITSET;
        case FUTEX_LOCK_PI:
        case FUTEX_LOCK_PI2:
                return PRISM_OP_FUTEX_LOCK_PI;
        case FUTEX_WAIT_REQUEUE_PI:
                return PRISM_OP_FUTEX_WAIT_REQUEUE_PI;
        default:
                return PRISM_OP_FUTEX_WAIT;
        }
}

static __always_inline bool futex_command_wakes(__u32 command) {
        switch (command & FUTEX_COMMAND_MASK) {
        case FUTEX_WAKE:
        case FUTEX_WAKE_BITSET:
        case FUTEX_WAKE_OP:
        case FUTEX_REQUEUE:
        case FUTEX_CMP_REQUEUE:
                return true;
        default:
                return false;
        }
}

#endif
