/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What probes.c (the running kernel side) and probes-load.c (how it is put together) share. */
#pragma once

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "probes.h"

#include PRISM_SKELETON

/* As many as the map `objects` has. */
#define OBJECTS 8192
/* Room for calls, as a share of that for waits. */
#define CALLS_SHARE 2
/* Different (submitter, cgroup, device, partition, operation) of block requests a tick, of the whole host. */
#define DISKS 4096
enum {
        PART_SWITCH,
        PART_WAKE,
        PART_MIGRATION,
        PART_LIFE,
        PART_TIMER_WAKES,
        PART_SHARED_FUTEX,
        PART_FILE_KINDS,
        PART_PAGE_FAULT,
        PART_KERNEL_LOCK,
        PART_RECLAIM,
        PART_CGROUP_RECLAIM,
        PART_URING,
        PART_SOCKET_CLOSE,
        PART_CALLS,
        PART_BLOCK,
        _PART_MAX,
};

struct Probes {
        struct prism_bpf *skeleton;
        ProbesLimits limits;
        Part parts[_PART_MAX];
        bool own_pid_namespace;
        bool reads_polls;  /* what a poll in flight watches can be read (5.18) */
        bool looks_at_one; /* iterators can be kept to one process */

        struct prism_thread_info *infos; /* [limits.threads], mapped */
        struct prism_thread_time *times; /* [2 * limits.threads], mapped */
        size_t infos_bytes, times_bytes;
        int wait_fds[2], instead_fds[2], call_fds[2], disk_fds[2];
        unsigned n_free_slots; /* an estimate: the kernel side pops them */

        struct ring_buffer *events;
        probes_event_handler handler;
        void *userdata;

        struct prism_wait_key *wait_keys;
        struct prism_wait_value *wait_values;
        struct prism_instead_key *instead_keys;
        struct prism_instead_value *instead_values;
        struct prism_call_key *call_keys;
        struct prism_call_value *call_values;
        struct prism_object_key *object_keys;
        struct prism_object *objects;
        struct prism_disk_key *disk_keys;
        struct prism_disk_value *disk_values;
        bool calls;
};

static inline unsigned calls_limit(const Probes *p) {
        return p->limits.waits / CALLS_SHARE;
}

/* How a part is, and why. */
_printf_(4, 5) void part_set(Probes *p, unsigned part, PartState state, const char *format, ...);
int probes_attach(struct bpf_program *program, struct bpf_link **ret_link, char **ret_error);
/* Where the skeleton keeps the link of a program; NULL if it has none of that name. */
struct bpf_link **probes_link_of(Probes *p, const char *program);
/* Runs an iterator over the tasks of one process (where the kernel can, 6.1) or all, and returns what it wrote. */
int probes_run_iterator(struct bpf_program *program, uint32_t pid, char **ret_data, size_t *ret_size);
