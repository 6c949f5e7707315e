/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One pass over the table `cgroup_time`. */
#include "cgroups.h"

#include "order.h"
#include "scan.h"

static int find_cgroup(Reading *r, const ScanRow *row, void *userdata, void **ret) {
        enum { CGROUP, USAGE, THROTTLED, MEMORY, EVENTS };
        Tally *cgroups = userdata;
        const char *cgroup;
        void *object;
        Cgroup *c;
        int k;

        k = scan_word(r, row, CGROUP, &cgroup);
        if (k < 0)
                return k;
        k = tally_get(cgroups, &(TallyKey){ { (uintptr_t) cgroup } }, &object);
        if (k < 0)
                return k;
        c = object;
        c->cgroup = cgroup;
        c->length_ns += row->clip.part;
        c->knows_cpu |= !scan_is_null(row, USAGE);
        c->knows_throttling |= !scan_is_null(row, THROTTLED);
        c->knows_memory |= !scan_is_null(row, MEMORY);
        c->knows_events |= !scan_is_null(row, EVENTS);
        *ret = c;
        return 0;
}

static int compare_cgroups(const void *a, const void *b) {
        const Cgroup *x = *(Cgroup *const *) a, *y = *(Cgroup *const *) b;
        int k = COMPARE(y->throttled_ns, x->throttled_ns);

        if (k == 0)
                k = COMPARE(y->memory_events, x->memory_events);
        return k != 0 ? k : strcmp(x->cgroup, y->cgroup);
}

int cgroups_read(Reading *r, Cgroups *ret, char **ret_error) {
        static const ScanColumn columns[] = {
                SCAN_COLUMN(Cgroup, usage_ns),
                SCAN_COLUMN(Cgroup, throttled_ns),
                SCAN_COLUMN(Cgroup, throttled_periods),
                SCAN_COLUMN_MAXIMUM(Cgroup, memory_bytes),
                SCAN_COLUMN(Cgroup, memory_events),
        };
        static const Scan s = { "cgroup_time", "cgroup, usage_ns, throttled_ns, memory_bytes, memory_events", 5, false,
                columns, ELEMENTSOF(columns), find_cgroup };
        _cleanup_(tally_done) Tally tally = TALLY(Cgroup);
        int k;

        k = scan(r, &s, &tally, ret_error);
        if (k < 0)
                return k;
        ret->items = (Cgroup **) tally_take(&tally, &ret->n);
        sort_pointers(ret->items, ret->n, compare_cgroups);
        return 0;
}

void cgroups_done(Cgroups *c) {
        free_pointers(c->items, c->n);
        *c = (Cgroups){};
}
