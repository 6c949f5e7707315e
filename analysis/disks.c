/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One pass over the table `disk`; what a device did is the sum over its users. */
#include "disks.h"

#include "order.h"
#include "scan.h"

typedef struct Counting {
        Tally disks, uses;
} Counting;

static void counting_done(Counting *c) {
        tally_done(&c->disks);
        tally_done(&c->uses);
}

static int find_use(Reading *r, const ScanRow *row, void *userdata, void **ret) {
        enum { DEVICE, PROCESS, CGROUP, OP, SECTORS };
        uint64_t sectors = clip_value(row->clip, scan_value(row, SECTORS));
        void *disk_object, *use_object;
        const char *cgroup, *op;
        Counting *c = userdata;
        Process *process;
        DiskUse *u;
        int k;

        k = reading_process(r, scan_id(row, PROCESS), &process, row->ret_error);
        if (k < 0)
                return k;
        k = scan_word(r, row, CGROUP, &cgroup);
        if (k < 0)
                return k;
        k = scan_word(r, row, OP, &op);
        if (k < 0)
                return k;
        if (!process->is_kernel || isempty(cgroup))
                cgroup = NULL;

        k = tally_get(&c->disks, &(TallyKey){ { (uint64_t) scan_id(row, DEVICE) } }, &disk_object);
        if (k < 0)
                return k;
        ((Disk *) disk_object)->device = (uint64_t) scan_id(row, DEVICE);

        k = tally_get(&c->uses, &(TallyKey){ { (uintptr_t) disk_object, (uint64_t) process->id, (uintptr_t) cgroup } },
                        &use_object);
        if (k < 0)
                return k;
        u = use_object;
        u->disk = disk_object;
        u->process = process;
        u->cgroup = cgroup;
        if (streq(op, "read"))
                u->times.read_sectors += sectors;
        else if (streq(op, "write"))
                u->times.written_sectors += sectors;
        else if (streq(op, "discard"))
                u->times.discarded_sectors += sectors;

        *ret = &u->times;
        return 0;
}

static void add_times(DiskTimes *sum, const DiskTimes *t) {
        sum->requests += t->requests;
        sum->sectors += t->sectors;
        sum->total_ns += t->total_ns;
        sum->max_ns = MAX(sum->max_ns, t->max_ns);
        sum->read_sectors += t->read_sectors;
        sum->written_sectors += t->written_sectors;
        sum->discarded_sectors += t->discarded_sectors;
        for (int i = 0; i < STORE_HISTOGRAM_BUCKETS; i++)
                sum->histogram[i] += t->histogram[i];
}

static int compare_two_disks(const Disk *x, const Disk *y) {
        int k = COMPARE(y->all.total_ns, x->all.total_ns);

        return k != 0 ? k : COMPARE(x->device, y->device);
}

static int compare_disks(const void *a, const void *b) {
        return compare_two_disks(*(Disk *const *) a, *(Disk *const *) b);
}

static int compare_uses(const void *a, const void *b) {
        const DiskUse *x = *(DiskUse *const *) a, *y = *(DiskUse *const *) b;
        int k = compare_two_disks(x->disk, y->disk);

        if (k == 0)
                k = COMPARE(disk_moved_sectors(&y->times), disk_moved_sectors(&x->times));
        if (k == 0)
                k = COMPARE(y->times.total_ns, x->times.total_ns);
        if (k == 0)
                k = COMPARE(x->process->id, y->process->id);
        return k != 0 ? k : strcmp(x->cgroup ? x->cgroup : "", y->cgroup ? y->cgroup : "");
}

int disks_read(Reading *r, Disks *ret, char **ret_error) {
        static const ScanColumn columns[] = {
                SCAN_COLUMN(DiskTimes, requests),
                SCAN_COLUMN(DiskTimes, sectors),
                SCAN_COLUMN(DiskTimes, total_ns),
                SCAN_COLUMN_MAXIMUM(DiskTimes, max_ns),
                SCAN_HISTOGRAM(DiskTimes),
        };
        static const Scan s = { "disk", "device, process_id, cgroup, op, sectors", 5, false, columns,
                ELEMENTSOF(columns), find_use };
        _cleanup_(counting_done) Counting counting = { .disks = TALLY(Disk), .uses = TALLY(DiskUse) };
        int k;

        k = scan(r, &s, &counting, ret_error);
        if (k < 0)
                return k;

        ret->disks = (Disk **) tally_take(&counting.disks, &ret->n_disks);
        ret->uses = (DiskUse **) tally_take(&counting.uses, &ret->n_uses);
        for (size_t i = 0; i < ret->n_uses; i++)
                add_times(&ret->uses[i]->disk->all, &ret->uses[i]->times);
        sort_pointers(ret->disks, ret->n_disks, compare_disks);
        sort_pointers(ret->uses, ret->n_uses, compare_uses);
        return 0;
}

void disks_done(Disks *d) {
        free_pointers(d->disks, d->n_disks);
        free_pointers(d->uses, d->n_uses);
        *d = (Disks){};
}
