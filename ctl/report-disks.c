/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The report's disks: who used how much of each. */
#include "json.h"
#include "report-section.h"
#include "store/basic/text.h"

#define SECTOR_BYTES 512

static const TableColumn columns[] = {
        { "device", NULL, false },
        { "device_name", "DISK", false },
        { "pid", "PID", true },
        { "comm", "COMMAND", false },
        { "is_kernel", NULL, false },
        { "cgroup", "WRITE-BACK FOR", false, true },
        { "requests", "REQUESTS", true },
        { "requests_share", "SHARE", true },
        { "read_bytes", "READ", true },
        { "written_bytes", "WRITTEN", true },
        { "discarded_bytes", NULL, true },
        { "sectors", NULL, true },
        { "sectors_share", "SHARE", true },
        { "total_ns", "TIME", true },
        { "time_share", "SHARE", true },
        { "mean_ns", "MEAN", true },
        { "max_ns", "MAX", true },
        { "histogram", NULL, true },
};

/* Two cells: the numbers, and the name that the machine gives it; for people one of them. */
static void put_device(const Report *r, Table *t, uint64_t device) {
        char number[32], path[64], link[256];
        const char *name = NULL;
        ssize_t n;

        snprintf(number, sizeof(number), "%u:%u", disk_major(device), disk_minor(device));
        if (r->is_this_boot) {
                snprintf(path, sizeof(path), "/sys/dev/block/%s", number);
                n = readlink(path, link, sizeof(link) - 1);
                if (n > 0) {
                        const char *slash;

                        link[n] = '\0';
                        slash = strrchr(link, '/');
                        name = slash ? slash + 1 : link;
                }
        }

        table_text(t, number);
        table_text(t, name || table_is_json(t) ? name : number);
}

static int fill(const Report *r, Table *t, size_t *ret_n) {
        *ret_n = r->disks.n_uses;

        for (size_t i = 0; i < r->disks.n_uses && table_rows(t) < r->limit; i++) {
                const DiskUse *u = r->disks.uses[i];
                const DiskTimes *all = &u->disk->all;
                int k;

                table_row(t);
                put_device(r, t, u->disk->device);
                table_number(t, u->process->pid ? u->process->pid : u->process->host_pid);
                table_text(t, u->process->comm);
                table_boolean(t, u->process->is_kernel);
                table_text(t, u->cgroup);
                table_count(t, u->times.requests);
                table_share(t, u->times.requests, all->requests);
                table_bytes(t, u->times.read_sectors * SECTOR_BYTES);
                table_bytes(t, u->times.written_sectors * SECTOR_BYTES);
                table_bytes(t, u->times.discarded_sectors * SECTOR_BYTES);
                table_count(t, u->times.sectors);
                table_share(t, disk_moved_sectors(&u->times), disk_moved_sectors(all));
                table_duration(t, u->times.total_ns);
                table_share(t, u->times.total_ns, all->total_ns);
                report_put_lengths(t, u->times.requests, u->times.total_ns, u->times.max_ns);
                k = report_put_histogram(t, u->times.histogram);
                if (k < 0)
                        return k;
        }
        return 0;
}

const ReportSection report_disks = {
        .key = "disks",
        .title = "Disks, by who used them (all processes of the host)",
        .unit = "users",
        .columns = columns,
        .n_columns = ELEMENTSOF(columns),
        .fill = fill,
};
