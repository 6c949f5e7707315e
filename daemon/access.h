/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who may. On private sockets the peer's credentials decide when it connects; on the system bus each call is held until
 * the bus has said who sent it and, unless that is root or a member of group prism, polkit has said what it may.
 * Nothing here waits: a held call is processed again when the answers are there. */
#pragma once

#include <systemd/sd-bus.h>

#include "basic/macro.h"

#define ACCESS_GROUP "prism"

typedef struct Access Access;

/* Holds method calls that come over this connection to a bus daemon, from now on. It must end before the connection. */
int access_new(sd_bus *bus, Access **ret);
Access *access_free(Access *a);
DEFINE_CLEANUP(Access *, access_free);

/* What polkit is asked about a call; interface may be NULL. ACCESS_ANYONE: it tells nothing. NULL: only root and group
 * prism, which is what a method without an entry gets. */
#define ACCESS_ANYONE ""
const char *access_action(const char *interface, const char *member);

/* Whether the peer of a private socket may use prism: root, prismd's own user, group prism. -EACCES if not. */
int access_check_peer(int fd);
