/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What sockets themselves counted in a range. Borrows from its Reading. */
#pragma once

#include "reading.h"

typedef struct Socket {
        Resource *resource;
        char *local, *remote; /* "10.0.0.1:5432", "[::1]:80", the path of a unix socket; NULL: unknown */
        uint64_t bytes_in, bytes_out, retransmits;
        uint64_t rtt_sum_ns, n_rtt; /* over the samples that have one */
        uint64_t rtt_max_ns;
        uint64_t send_queue, receive_queue; /* the longest that were seen */
} Socket;

typedef struct Sockets {
        Socket **items; /* most bytes first */
        size_t n;
} Sockets;

/* When the Reading is limited to a target: only those that analyses before this one have met, as its threads waited for
 * them or used them. */
int sockets_read(Reading *r, Sockets *ret, char **ret_error);
void sockets_done(Sockets *s);
