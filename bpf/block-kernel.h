/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel types and fields of the block layer and of control groups that block.bpf.c alone reads; see kernel.h. */
#ifndef PRISM_BLOCK_KERNEL_H
#define PRISM_BLOCK_KERNEL_H

#include "kernel-read.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct kernfs_node {
        __u64 id;
};

struct cgroup {
        struct kernfs_node *kn;
};

struct cgroup_subsys_state {
        struct cgroup *cgroup;
        struct cgroup_subsys_state *parent;
};

struct blkcg {
        struct cgroup_subsys_state css;
};

struct blkcg_gq {
        struct blkcg *blkcg;
};

struct gendisk {
        int major;
        int first_minor;
};

/* The kernel's atomic_t, under a name that no other header claims. */
struct block_device_flags {
        int counter;
};

struct block_device {
        struct gendisk *bd_disk;
        struct block_device_flags __bd_flags; /* 6.10: the partition's number in its low byte */
};
struct block_device___partno { /* 5.11 to 6.9 */
        __u8 bd_partno;
};

struct request_queue {
        struct gendisk *disk; /* 5.15 */
};

struct bvec_iter {
        unsigned int bi_size;
};

struct bio {
        struct bio *bi_next;
        struct block_device *bi_bdev;
        unsigned int bi_opf;
        struct bvec_iter bi_iter;
        struct blkcg_gq *bi_blkg; /* with CONFIG_BLK_CGROUP */
};

struct request {
        struct request_queue *q;
        unsigned int cmd_flags;
        unsigned int rq_flags;
        unsigned int __data_len; /* bytes that are left to do */
        struct bio *bio;         /* the first that is left to do */
};

#pragma clang attribute pop

/* Values are relocated too; those here are what they are where the kernel's BTF does not have the name. */
enum req_op {
        REQ_OP_READ = 0,
        REQ_OP_WRITE = 1,
        REQ_OP_FLUSH = 2,
        REQ_OP_DISCARD = 3,
        REQ_OP_SECURE_ERASE = 5,
        REQ_OP_ZONE_APPEND = 7, /* 13 before 6.0, where the enum has another name */
};
#define REQ_OP_MASK 0xff

enum req_flag_bits {
        __REQ_PREFLUSH = 18,
};

/* A name since 6.10, 1 << 4 before it. */
enum rqf_flags {
        __RQF_FLUSH_SEQ = 4,
};

#endif
