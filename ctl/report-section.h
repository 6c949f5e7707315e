/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of the report share: all that was read, and the form of a section. One file a subject. */
#pragma once

#include "analysis/calls.h"
#include "analysis/cgroups.h"
#include "analysis/disks.h"
#include "analysis/shares.h"
#include "analysis/sockets.h"
#include "report.h"
#include "table.h"

typedef struct Report {
        const Ctl *ctl;
        const ReportRange *range;
        uint64_t limit; /* rows of a table for people; UINT64_MAX: all */
        FILE *f;

        Reading *reading;
        Shares *shares;
        Calls calls;
        Disks disks;
        Sockets sockets;
        Cgroups cgroups;
        bool is_this_boot; /* the machine still runs as it did then: its devices have the same names */
} Report;

/* A table of the report. People see it when it has rows; in JSON it is there always, with all rows. */
typedef struct ReportSection {
        const char *key; /* in JSON */
        const char *title;
        const char *unit; /* what the rows are, as in "and 5 more waits" */
        const TableColumn *columns;
        size_t n_columns;
        /* Adds the rows, at most report->limit. How many there are goes to *ret_n. */
        int (*fill)(const Report *r, Table *t, size_t *ret_n);
        /* What goes on behind the title, or behind the unit of the rows that are not shown; may be NULL. */
        void (*describe_title)(const Report *r, char *buffer, size_t size);
        void (*describe_rest)(const Report *r, size_t n_shown, char *buffer, size_t size);
} ReportSection;

extern const ReportSection report_processes, report_threads, report_instead; /* report-threads.c */
extern const ReportSection report_resources, report_waits, report_watched;   /* report-waits.c */
extern const ReportSection report_calls;                                     /* report-calls.c */
extern const ReportSection report_disks;                                     /* report-disks.c */
extern const ReportSection report_sockets, report_cgroups;                   /* report-limits.c */

/* report-head.c: the period, the machine, and how far the numbers can be trusted. */
int report_print_head(const Report *r);
int report_add_head(const Report *r, json_object *root);

/* Cells. */
void report_put_thread(Table *t, const Thread *thread);       /* pid, tid, comm */
void report_put_resource(Table *t, const Resource *resource); /* name (for people: or else the ident), ident */
int report_put_histogram(Table *t, const uint64_t *histogram);
/* Mean and maximum; none when nothing has ended. */
void report_put_lengths(Table *t, uint64_t count, uint64_t total_ns, uint64_t max_ns);

static inline uint64_t report_length_ns(const Report *r) {
        return (uint64_t) r->shares->end_ns - (uint64_t) r->shares->start_ns;
}
