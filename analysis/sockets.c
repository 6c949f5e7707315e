/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One pass over `socket_sample`, and a look into `socket` for each that it names. */
#include "sockets.h"

#include "order.h"
#include "scan.h"

typedef struct Counting {
        Tally sockets;
        bool only_known;
} Counting;

static void counting_done(Counting *c) {
        tally_done(&c->sockets);
}

static int find_socket(Reading *r, const ScanRow *row, void *userdata, void **ret) {
        enum { RESOURCE, RTT };
        uint64_t rtt_ns = scan_value(row, RTT);
        Counting *c = userdata;
        void *object;
        Socket *s;
        int k;

        if (c->only_known && !reading_knows_resource(r, scan_id(row, RESOURCE)))
                return 0;

        k = tally_get(&c->sockets, &(TallyKey){ { (uint64_t) scan_id(row, RESOURCE) } }, &object);
        if (k < 0)
                return k;
        s = object;
        if (k > 0) {
                k = reading_resource(r, scan_id(row, RESOURCE), &s->resource, row->ret_error);
                if (k < 0)
                        return k;
        }
        if (rtt_ns > 0) {
                s->rtt_sum_ns += rtt_ns;
                s->n_rtt++;
                s->rtt_max_ns = MAX(s->rtt_max_ns, rtt_ns);
        }
        *ret = s;
        return 0;
}

static int join_address(const char *address, int64_t port, char **ret) {
        char *joined;

        if (!address)
                return 0;
        if (asprintf(&joined, strchr(address, ':') ? "[%s]:%lld" : "%s:%lld", address, (long long) port) < 0)
                return -ENOMEM;
        *ret = joined;
        return 0;
}

static int describe(Reading *r, const Sockets *sockets, char **ret_error) {
        _cleanup_(sqlite3_finalizep) sqlite3_stmt *q = NULL;
        int k;

        k = statement_prepare(r->store,
                        "SELECT local_addr, local_port, remote_addr, remote_port, path FROM socket WHERE resource_id = "
                        "?1",
                        &q, ret_error);
        if (k < 0)
                return k;

        for (size_t i = 0; i < sockets->n; i++) {
                Socket *s = sockets->items[i];

                sqlite3_reset(q);
                sqlite3_bind_int64(q, 1, s->resource->id);
                k = statement_step(r->store, q, ret_error);
                if (k < 0)
                        return k;
                if (k == 0)
                        continue;

                k = join_address((const char *) sqlite3_column_text(q, 0), sqlite3_column_int64(q, 1), &s->local);
                if (k >= 0)
                        k = join_address((const char *) sqlite3_column_text(q, 2), sqlite3_column_int64(q, 3),
                                        &s->remote);
                if (k < 0)
                        return k;
                if (!s->local && sqlite3_column_type(q, 4) != SQLITE_NULL) {
                        s->local = strdup((const char *) sqlite3_column_text(q, 4));
                        if (!s->local)
                                return -ENOMEM;
                }
        }
        return 0;
}

static int compare_sockets(const void *a, const void *b) {
        const Socket *x = *(Socket *const *) a, *y = *(Socket *const *) b;
        int k = COMPARE(y->bytes_in + y->bytes_out, x->bytes_in + x->bytes_out);

        return k != 0 ? k : COMPARE(x->resource->id, y->resource->id);
}

int sockets_read(Reading *r, Sockets *ret, char **ret_error) {
        static const ScanColumn columns[] = {
                SCAN_COLUMN(Socket, bytes_in),
                SCAN_COLUMN(Socket, bytes_out),
                SCAN_COLUMN(Socket, retransmits),
                SCAN_COLUMN_MAXIMUM(Socket, send_queue),
                SCAN_COLUMN_MAXIMUM(Socket, receive_queue),
        };
        static const Scan s = { "socket_sample", "resource_id, srtt_ns", 2, false, columns, ELEMENTSOF(columns),
                find_socket };
        _cleanup_(counting_done) Counting counting = { .sockets = TALLY(Socket), .only_known = r->target };
        _cleanup_(sockets_done) Sockets sockets = {};
        int k;

        k = scan(r, &s, &counting, ret_error);
        if (k < 0)
                return k;
        sockets.items = (Socket **) tally_take(&counting.sockets, &sockets.n);
        k = describe(r, &sockets, ret_error);
        if (k < 0)
                return k;
        sort_pointers(sockets.items, sockets.n, compare_sockets);

        *ret = sockets;
        sockets = (Sockets){};
        return 0;
}

void sockets_done(Sockets *s) {
        for (size_t i = 0; i < s->n; i++) {
                free(s->items[i]->local);
                free(s->items[i]->remote);
        }
        free_pointers(s->items, s->n);
        *s = (Sockets){};
}
