// SPDX-License-Identifier: GPL-2.0-only
/* Block requests, by who submitted them: how many, how large, how long, of which device, for which control group.
 * All of the host, so that a share of a device can be told; threads that are tracked one by one, the others by
 * process.
 *
 * A request begins in its submitter's context, where block_io_start says so (6.5), and ends at the completion that
 * leaves nothing to do, on any CPU, mostly in an interrupt. Bios that are merged into a request later count for
 * whoever began it. What a thread submits, but a throttle holds back, is begun by the kernel thread that lets it
 * go: the control group says for whom. */
#include "block-kernel.h"
#include "identity.bpf.h"
#include "row.bpf.h"

/* How deep a request's first bio can lie behind others that were merged in front of it. */
#define FRONT_MERGES_MAX 8
/* Attempts to raise a maximum against other CPUs. */
#define MAXIMUM_TRIES 4
/* Requests in flight at a time on the whole host. */
#define REQUESTS_MAX 8192

struct disk_request {
        struct prism_disk_key key;
        __u64 start_ns;
        __u64 bytes;
        __u32 user_tgid;
        __u32 kernel_thread;
        char comm[PRISM_COMM_LENGTH];
};

/* Requests in flight. Key: address of the request; where block_io_start is missing, of its first bio until the
 * first completion. Inserted when a request begins, deleted when it has ended, is merged into another one, or ends
 * after prismd stopped looking. One whose end is never seen stays until the address is used again. Full: the
 * request is not counted, the loss is. */
struct {
        __uint(type, BPF_MAP_TYPE_HASH);
        __uint(max_entries, REQUESTS_MAX);
        __type(key, __u64);
        __type(value, struct disk_request);
} requests SEC(".maps");

/* Per generation: struct prism_disk_key -> struct prism_disk_value. Inserted at the end of a request, drained by
 * prismd from the idle generation. Several CPUs add to one entry, hence the atomic operations. Full or busy: the
 * request is not counted, the loss is. The inner maps are made by prismd. */
struct disk_map {
        __uint(type, BPF_MAP_TYPE_HASH);
        __uint(max_entries, 1);
        __uint(key_size, sizeof(struct prism_disk_key)); /* by size: see maps.bpf.h */
        __uint(value_size, sizeof(struct prism_disk_value));
};
struct disk_generations_map {
        __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
        __uint(max_entries, 2);
        __type(key, __u32);
        __array(values, struct disk_map);
};
struct disk_generations_map disk_generations SEC(".maps");

/* Who submits: nobody that can be named when it is done from an interrupt. */
static __always_inline void read_submitter(struct disk_request *request) {
        struct task_struct *current = bpf_get_current_task_btf();
        struct thread_state *st;

        if (interrupt_count(current)) {
                request->kernel_thread = 1;
                __builtin_memcpy(request->comm, "kernel", sizeof("kernel"));
                return;
        }
        st = state_of(current);
        if (st)
                request->key.thread = st->thread;
        request->key.process_start_ns = KERNEL_READ(current, group_leader, start_boottime);
        request->key.tgid = current->tgid;
        request->user_tgid = user_process_number(current);
        request->kernel_thread = current->flags & PF_KTHREAD ? 1 : 0;
        BPF_CORE_READ_STR_INTO(&request->comm, current, group_leader, comm);
}

/* The control group to which the kernel charges a bio; the root counts as none. */
static __always_inline __u64 block_cgroup(struct bio *bio) {
        struct blkcg *group;

        if (!bpf_core_field_exists(bio->bi_blkg))
                return 0;
        group = KERNEL_READ(bio, bi_blkg, blkcg);
        if (!group || !KERNEL_READ(group, css.parent))
                return 0;
        return KERNEL_READ(group, css.cgroup, kn, id);
}

/* What is read or written; false if it has no disk. `queue` is for requests without a bio. */
static __always_inline bool read_device(struct disk_request *request, struct bio *bio, struct request_queue *queue) {
        struct block_device *device = NULL;
        struct gendisk *disk = NULL;

        if (bio) {
                device = KERNEL_READ(bio, bi_bdev);
                request->key.cgroup = block_cgroup(bio);
        }
        if (device) {
                disk = KERNEL_READ(device, bd_disk);
                if (bpf_core_field_exists(device->__bd_flags))
                        request->key.partition = KERNEL_READ(device, __bd_flags.counter) & 0xff;
                else
                        request->key.partition = KERNEL_READ((struct block_device___partno *) device, bd_partno);
        } else if (queue && bpf_core_field_exists(queue->disk))
                disk = KERNEL_READ(queue, disk);
        if (!disk)
                return false;
        request->key.device = KERNEL_READ(disk, major) << 20 | KERNEL_READ(disk, first_minor);
        return true;
}

/* From the flags of a request or bio. A request to flush is a write without data that asks for a flush before it. */
static __always_inline enum prism_disk_op disk_op(__u32 flags, bool empty) {
        __u32 op = flags & REQ_OP_MASK;

        if (op == REQ_OP_READ)
                return PRISM_DISK_READ;
        if (op == REQ_OP_WRITE) {
                if (empty && (flags & (1U << bpf_core_enum_value(enum req_flag_bits, __REQ_PREFLUSH))))
                        return PRISM_DISK_FLUSH;
                return PRISM_DISK_WRITE;
        }
        if (op == REQ_OP_FLUSH)
                return PRISM_DISK_FLUSH;
        if (op == REQ_OP_DISCARD || op == REQ_OP_SECURE_ERASE)
                return PRISM_DISK_DISCARD;
        if (bpf_core_enum_value_exists(enum req_op, REQ_OP_ZONE_APPEND) &&
                        op == bpf_core_enum_value(enum req_op, REQ_OP_ZONE_APPEND))
                return PRISM_DISK_WRITE;
        return PRISM_DISK_OTHER;
}

static __always_inline void request_begin(__u64 id, struct disk_request *request) {
        int r;

        read_submitter(request);
        request->start_ns = bpf_ktime_get_boot_ns();
        r = bpf_map_update_elem(&requests, &id, request, BPF_ANY);
        if (r < 0)
                count_loss(PRISM_LOSS_REQUEST_FULL);
}

SEC("tp_btf/block_io_start")
int BPF_PROG(block_io_start, struct request *rq) {
        struct disk_request request = {};
        struct bio *bio;

        if (!control.active)
                return 0;
        bio = KERNEL_READ(rq, bio);
        if (!read_device(&request, bio, KERNEL_READ(rq, q)))
                return 0;
        request.key.op = disk_op(rq->cmd_flags, rq->__data_len == 0);
        request_begin((__u64) rq, &request);
        return 0;
}

/* Before 6.5: the request is not known yet, but the bio that it is made for is. */
SEC("tp_btf/block_getrq")
int BPF_PROG(block_getrq, struct bio *bio) {
        struct disk_request request = {};

        if (!control.active || !bio)
                return 0;
        if (!read_device(&request, bio, NULL))
                return 0;
        request.key.op = disk_op(bio->bi_opf, bio->bi_iter.bi_size == 0);
        request_begin((__u64) bio, &request);
        return 0;
}

/* What is known of a request in flight, and the key it stands under. */
static __always_inline struct disk_request *request_find(struct request *rq, __u64 *id) {
        struct disk_request *request;
        struct bio *bio;
        int i;

        *id = (__u64) rq;
        request = bpf_map_lookup_elem(&requests, id);
        if (request)
                return request;
        bio = KERNEL_READ(rq, bio);
        for (i = 0; i < FRONT_MERGES_MAX && bio; i++) {
                *id = (__u64) bio;
                request = bpf_map_lookup_elem(&requests, id);
                if (request)
                        return request;
                bio = KERNEL_READ(bio, bi_next);
        }
        return NULL;
}

static __always_inline void raise_maximum(__u64 *maximum, __u64 value) {
        int i;

        for (i = 0; i < MAXIMUM_TRIES; i++) {
                __u64 now = READ_ONCE(*maximum);

                if (now >= value || __sync_val_compare_and_swap(maximum, now, value) == now)
                        return;
        }
}

static __always_inline void request_end(const struct disk_request *request) {
        __u32 generation = READ_ONCE(control.generation) & 1;
        struct prism_disk_key key = request->key;
        struct prism_disk_value *value;
        __u64 length = 0, now;
        void *map;
        int r = 0;

        /* The clock is read after the generation: see struct prism_control. */
        barrier();
        now = bpf_ktime_get_boot_ns();
        if (now > request->start_ns)
                length = now - request->start_ns;

        map = bpf_map_lookup_elem(&disk_generations, &generation);
        if (!map)
                return;
        value = bpf_map_lookup_elem(map, &key);
        if (!value) {
                struct prism_disk_value fresh = {
                        .user_tgid = request->user_tgid,
                        .kernel_thread = request->kernel_thread,
                };

                __builtin_memcpy(fresh.comm, request->comm, sizeof(fresh.comm));
                /* Another CPU may have been faster: its entry is as good. */
                r = bpf_map_update_elem(map, &key, &fresh, BPF_NOEXIST);
                value = bpf_map_lookup_elem(map, &key);
        }
        if (!value) {
                count_loss(r == -E2BIG ? PRISM_LOSS_DISK_FULL : PRISM_LOSS_DISK_BUSY);
                return;
        }
        __sync_fetch_and_add(&value->sectors, request->bytes >> 9);
        __sync_fetch_and_add(&value->total_ns, length);
        __sync_fetch_and_add(&value->requests, 1);
        __sync_fetch_and_add(&value->histogram[histogram_bucket(length) & (PRISM_HISTOGRAM_BUCKETS - 1)], 1);
        raise_maximum(&value->max_ns, length);
}

/* Each call says that so many bytes are done, which are not yet taken off what is left. A request whose flush is a
 * step of its own comes here once more when that is done as well, with nothing left. */
SEC("tp_btf/block_rq_complete")
int BPF_PROG(block_rq_complete, struct request *rq, int error, unsigned int bytes) {
        __u32 flush_step = bpf_core_enum_value_exists(enum rqf_flags, __RQF_FLUSH_SEQ)
                        ? 1U << bpf_core_enum_value(enum rqf_flags, __RQF_FLUSH_SEQ)
                        : 1U << 4;
        struct disk_request *request;
        __u64 id, rq_id = (__u64) rq;

        request = request_find(rq, &id);
        if (!request)
                return 0;
        if (!control.active) {
                /* So that a later request at this address does not meet an old beginning. */
                bpf_map_delete_elem(&requests, &id);
                return 0;
        }

        request->bytes += bytes;
        if (bytes < rq->__data_len || (rq->rq_flags & flush_step)) {
                if (id != rq_id) {
                        /* This bio may be done now, but the request is not. */
                        struct disk_request copy = *request;
                        int r;

                        r = bpf_map_update_elem(&requests, &rq_id, &copy, BPF_ANY);
                        if (r < 0)
                                count_loss(PRISM_LOSS_REQUEST_FULL);
                        bpf_map_delete_elem(&requests, &id);
                }
                return 0;
        }
        request_end(request);
        bpf_map_delete_elem(&requests, &id);
        return 0;
}

/* A request that becomes part of another one never ends by itself. */
SEC("tp_btf/block_rq_merge")
int BPF_PROG(block_rq_merge, struct request *rq) {
        __u64 id;

        if (request_find(rq, &id))
                bpf_map_delete_elem(&requests, &id);
        return 0;
}
