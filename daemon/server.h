/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where clients reach prismd: private sockets that need no bus daemon, and the system bus. Every connection serves the
 * same objects. */
#pragma once

#include <systemd/sd-bus.h>

#include "basic/macro.h"

typedef struct Manager Manager;
typedef struct Server Server;

/* Listens on the addresses ("unix:path=...", or "system"), or on the defaults if there is none: the system bus if there
 * is one, and the default socket. An address that was asked for and cannot be had fails. */
int server_new(Manager *m, const char *const *addresses, Server **ret, char **ret_error);
/* Drops connections whose peers do not read: at its end the event loop sends what is queued, and would wait for them. */
void server_prepare_end(Server *s);
/* Sends what is queued, closes all, removes the sockets. */
Server *server_free(Server *s);
DEFINE_CLEANUP(Server *, server_free);

/* Clients on private sockets. */
unsigned server_n_connections(const Server *s);
/* Calls `send` for each connection. */
void server_for_each_bus(Server *s, void (*send)(sd_bus *bus, void *userdata), void *userdata);
