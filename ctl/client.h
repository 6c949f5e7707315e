/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The connection to prismd: finding it, calling it, and turning its errors into an errno and one sentence. */
#pragma once

#include <systemd/sd-bus.h>

#include "ctl.h"
#include "dbus/names.h"

#define CLIENT_TIMEOUT_USEC (25 * USEC_PER_SEC)
/* For what takes as long as the disk needs. */
#define CLIENT_LONG_TIMEOUT_USEC (15 * 60 * USEC_PER_SEC)

typedef struct Client {
        sd_bus *bus;
        const char *destination; /* NULL on a private socket, which has no names */
        char *address;           /* for sentences */
        bool no_auto_start;      /* do not let the system bus start prismd */
} Client;

static inline void sd_bus_message_unreffer(sd_bus_message **m) {
        sd_bus_message_unref(*m);
}
#define _cleanup_message_ _cleanup_(sd_bus_message_unreffer)

/* Looks at --address, PRISM_ADDRESS, the system bus (only when prismd is there), and the default socket. -ENOTCONN:
 * there is none; -EACCES: there is one, but not for this user. */
int client_open(const Ctl *ctl, Client **ret, char **ret_error);
/* A private socket. Returns what connecting gave, and the address in no sentence: for those who expect to fail. */
int client_open_private(const char *address, Client **ret);
Client *client_close(Client *c); /* returns NULL */
DEFINE_CLEANUP(Client *, client_close);

int client_new_call(Client *c, const char *path, const char *interface, const char *member, sd_bus_message **ret);

/* Sends and waits. Errors of prismd: -ESRCH no such process, cgroup or unit; -ENOENT no such object, or nothing known
 * by that name; -EEXIST, -EALREADY already tracked, -EDQUOT a limit, -EOPNOTSUPP, -EINVAL, -EACCES, -EIO (store);
 * -ETIMEDOUT no answer; -ENOTCONN the connection is gone. */
int client_send(Client *c, sd_bus_message *call, uint64_t timeout_usec, sd_bus_message **ret_reply, char **ret_error);

/* A method of the manager that takes only options, and is given none. */
int client_call_manager(Client *c, const char *method, sd_bus_message **ret_reply, char **ret_error);
/* A method of the manager that takes an object path, and options that are given none. */
int client_call_with_path(Client *c, const char *method, const char *path, uint64_t timeout_usec, char **ret_error);

/* All properties; the reply's cursor stands at the a{sv}. */
int client_get_all(Client *c, const char *path, const char *interface, sd_bus_message **ret_reply, char **ret_error);
/* A property of type s. */
int client_get_text(
                Client *c, const char *path, const char *interface, const char *property, char **ret, char **ret_error);
