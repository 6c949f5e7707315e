/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The report's sockets and control groups: where the other side, the network or a limit sets the pace. */
#include "report-section.h"

static const TableColumn socket_columns[] = {
        { "kind", NULL, false },
        { "name", "SOCKET", false, true },
        { "ident", NULL, false },
        { "local", "LOCAL", false },
        { "remote", NULL, false },
        { "bytes_in", "IN", true },
        { "bytes_out", "OUT", true },
        { "retransmits", "RETRANSMITS", true },
        { "mean_rtt_ns", "RTT", true },
        { "max_rtt_ns", "MAX RTT", true },
        { "max_send_queue_bytes", "SEND QUEUE", true },
        { "max_receive_queue_bytes", "RECEIVE QUEUE", true },
};

static bool was_used(const Socket *s) {
        return s->bytes_in > 0 || s->bytes_out > 0 || s->retransmits > 0 || s->send_queue > 0 || s->receive_queue > 0;
}

static int fill_sockets(const Report *r, Table *t, size_t *ret_n) {
        size_t n = 0;

        for (size_t i = 0; i < r->sockets.n; i++) {
                const Socket *s = r->sockets.items[i];

                if ((!r->ctl->json && !was_used(s)) || n++ >= r->limit)
                        continue;

                table_row(t);
                table_text(t, s->resource->kind);
                report_put_resource(t, s->resource);
                table_text(t, s->local);
                table_text(t, s->remote);
                table_bytes(t, s->bytes_in);
                table_bytes(t, s->bytes_out);
                table_count(t, s->retransmits);
                if (s->n_rtt > 0) {
                        table_duration(t, s->rtt_sum_ns / s->n_rtt);
                        table_duration(t, s->rtt_max_ns);
                } else {
                        table_null(t);
                        table_null(t);
                }
                table_bytes(t, s->send_queue);
                table_bytes(t, s->receive_queue);
        }

        *ret_n = n;
        return 0;
}

const ReportSection report_sockets = {
        .key = "sockets",
        .title = "Sockets, most bytes first",
        .unit = "sockets",
        .columns = socket_columns,
        .n_columns = ELEMENTSOF(socket_columns),
        .fill = fill_sockets,
};

static const TableColumn cgroup_columns[] = {
        { "cgroup", "CGROUP", false, true },
        { "usage_ns", NULL, true },
        { "cpus", "CPUS", true },
        { "throttled_ns", "THROTTLED", true },
        { "throttled_share", "SHARE", true },
        { "throttled_periods", "PERIODS", true },
        { "max_memory_bytes", "MEMORY", true },
        { "memory_events", "MEMORY EVENTS", true },
};

static void put_cgroup(Table *t, const Cgroup *c) {
        table_row(t);
        table_text(t, c->cgroup);
        if (c->knows_cpu && c->length_ns > 0) {
                table_duration(t, c->usage_ns);
                table_rate(t, (double) c->usage_ns / (double) c->length_ns);
        } else {
                table_null(t);
                table_null(t);
        }
        if (c->knows_throttling) {
                table_duration(t, c->throttled_ns);
                table_share(t, c->throttled_ns, c->length_ns);
                table_count(t, c->throttled_periods);
        } else
                for (int i = 0; i < 3; i++)
                        table_null(t);
        if (c->knows_memory)
                table_bytes(t, c->memory_bytes);
        else
                table_null(t);
        if (c->knows_events)
                table_count(t, c->memory_events);
        else
                table_null(t);
}

static int fill_cgroups(const Report *r, Table *t, size_t *ret_n) {
        size_t n = 0;

        for (size_t i = 0; i < r->cgroups.n; i++) {
                const Cgroup *c = r->cgroups.items[i];

                if ((r->ctl->json || cgroup_was_limited(c)) && n++ < r->limit)
                        put_cgroup(t, c);
        }
        *ret_n = n;
        return 0;
}

const ReportSection report_cgroups = {
        .key = "cgroups",
        .title = "CPU limits and memory",
        .unit = "control groups",
        .columns = cgroup_columns,
        .n_columns = ELEMENTSOF(cgroup_columns),
        .fill = fill_cgroups,
};
