/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who used which disk in a range: all processes of the host, tracked threads summed to theirs. Write-back by kernel threads
 * is told apart by the cgroup that it was done for. Not limited to a target: a share of a device is one of all users.
 * Borrows from its Reading. */
#pragma once

#include "reading.h"

typedef struct DiskTimes {
        uint64_t requests, sectors; /* sectors of 512 bytes */
        uint64_t total_ns;          /* from the start of each request to its end */
        uint64_t max_ns;
        uint64_t histogram[STORE_HISTOGRAM_BUCKETS];
        uint64_t read_sectors, written_sectors, discarded_sectors; /* parts of sectors */
} DiskTimes;

typedef struct Disk {
        uint64_t device; /* major << 20 | minor */
        DiskTimes all;
} Disk;

typedef struct DiskUse {
        Disk *disk;
        Process *process;
        const char *cgroup; /* for which a kernel thread wrote; NULL: unknown, or not a kernel thread */
        DiskTimes times;
} DiskUse;

typedef struct Disks {
        Disk **disks;   /* most time first */
        DiskUse **uses; /* by disk, in that order, then most sectors read and written first */
        size_t n_disks, n_uses;
} Disks;

/* What had to be moved: discarding costs no bandwidth. */
static inline uint64_t disk_moved_sectors(const DiskTimes *t) {
        return t->read_sectors + t->written_sectors;
}

int disks_read(Reading *r, Disks *ret, char **ret_error);
void disks_done(Disks *d);

static inline unsigned disk_major(uint64_t device) {
        return (unsigned) (device >> 20);
}

static inline unsigned disk_minor(uint64_t device) {
        return (unsigned) (device & ((1 << 20) - 1));
}
