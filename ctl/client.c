/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The order in which prismd is looked for, and what its errors mean to a person. */
#include "client.h"

#include <stdarg.h>

static int sentence(char **ret_error, int error, const char *format, ...) _printf_(3, 4);

/* Sets the sentence, if it is wanted, and yields `error`. */
static int sentence(char **ret_error, int error, const char *format, ...) {
        char *s;
        va_list ap;
        int r;

        if (!ret_error)
                return error;

        va_start(ap, format);
        r = vasprintf(&s, format, ap);
        va_end(ap);
        if (r < 0)
                return -ENOMEM;
        *ret_error = s;
        return error;
}

Client *client_close(Client *c) {
        if (!c)
                return NULL;

        sd_bus_flush_close_unref(c->bus);
        free(c->address);
        free(c);
        return NULL;
}

static int client_new(const char *address, Client **ret) {
        _cleanup_(client_closep) Client *c = NULL;

        c = calloc(1, sizeof(*c));
        if (!c)
                return -ENOMEM;
        c->address = strdup(address);
        if (!c->address)
                return -ENOMEM;

        *ret = TAKE_PTR(c);
        return 0;
}

int client_open_private(const char *address, Client **ret) {
        _cleanup_(client_closep) Client *c = NULL;
        int r;

        r = client_new(address, &c);
        if (r < 0)
                return r;

        r = sd_bus_new(&c->bus);
        if (r < 0)
                return r;
        r = sd_bus_set_address(c->bus, address);
        if (r < 0)
                return r;
        r = sd_bus_negotiate_fds(c->bus, true);
        if (r < 0)
                return r;
        r = sd_bus_start(c->bus);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(c);
        return 0;
}

static int has_owner(sd_bus *bus) {
        _cleanup_message_ sd_bus_message *reply = NULL;
        int owned, r;

        r = sd_bus_call_method(bus, "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus",
                        "NameHasOwner", NULL, &reply, "s", PRISM_BUS_NAME);
        if (r < 0)
                return r;
        r = sd_bus_message_read(reply, "b", &owned);
        return r < 0 ? r : owned;
}

static int open_system(bool only_if_owned, Client **ret) {
        _cleanup_(client_closep) Client *c = NULL;
        int r;

        r = client_new("the system bus", &c);
        if (r < 0)
                return r;
        r = sd_bus_open_system(&c->bus);
        if (r < 0)
                return r;

        if (only_if_owned) {
                r = has_owner(c->bus);
                if (r < 0)
                        return r;
                if (r == 0)
                        return -ENOTCONN;
        }

        c->destination = PRISM_BUS_NAME;
        *ret = TAKE_PTR(c);
        return 0;
}

/* What a connection ends with whose peer may not use prismd: refused, or closed before the first answer. */
static bool is_refusal(int r) {
        return r == -EACCES || r == -EPERM || r == -EPIPE || r == -ECONNRESET;
}

int client_open(const Ctl *ctl, Client **ret, char **ret_error) {
        const char *address = ctl->address;
        int r;

        if (isempty(address))
                address = getenv("PRISM_ADDRESS");

        if (isempty(address)) {
                if (open_system(true, ret) >= 0)
                        return 0;

                r = client_open_private(PRISM_DEFAULT_ADDRESS, ret);
                if (r >= 0 || r == -ENOMEM)
                        return r;
                if (is_refusal(r))
                        return sentence(ret_error, -EACCES,
                                        "not allowed to connect to prismd at %s: be root or a member of the group "
                                        "prism",
                                        PRISM_DEFAULT_ADDRESS);
                return sentence(ret_error, -ENOTCONN,
                                "no prismd runs: it is neither on the system bus nor at %s (%s); start it with "
                                "`systemctl start prismd`"
                                " or, as root, `prismd`, or say where it listens with --address",
                                PRISM_DEFAULT_ADDRESS, strerror(-r));
        }

        if (streq(address, "system")) {
                r = open_system(false, ret);
                if (r >= 0 || r == -ENOMEM)
                        return r;
                return sentence(ret_error, -ENOTCONN, "cannot connect to the system bus: %s", strerror(-r));
        }

        r = strchr(address, ':') ? client_open_private(address, ret) : -EINVAL;
        if (r >= 0 || r == -ENOMEM)
                return r;
        if (is_refusal(r))
                return sentence(ret_error, -EACCES,
                                "not allowed to connect to prismd at %s: be root or a member of the group prism",
                                address);
        if (r == -EINVAL || r == -E2BIG)
                return sentence(ret_error, -EINVAL, "%s is not an address; one looks like %s", address,
                                PRISM_DEFAULT_ADDRESS);
        return sentence(ret_error, -ENOTCONN, "no prismd answers at %s (%s); start it with `prismd --address %s`",
                        address, strerror(-r), address);
}

int client_new_call(Client *c, const char *path, const char *interface, const char *member, sd_bus_message **ret) {
        _cleanup_message_ sd_bus_message *m = NULL;
        int r;

        r = sd_bus_message_new_method_call(c->bus, &m, c->destination, path, interface, member);
        if (r < 0)
                return r;
        if (c->no_auto_start) {
                r = sd_bus_message_set_auto_start(m, false);
                if (r < 0)
                        return r;
        }

        *ret = TAKE_PTR(m);
        return 0;
}

static int explain(Client *c, sd_bus_message *call, int error, const sd_bus_error *e, char **ret_error) {
        static const struct {
                const char *name;
                int error;
        } known[] = {
                { PRISM_ERROR_NO_SUCH_PROCESS, -ESRCH },
                { PRISM_ERROR_NO_SUCH_CGROUP, -ESRCH },
                { PRISM_ERROR_NO_SUCH_UNIT, -ESRCH },
                { PRISM_ERROR_ALREADY_TRACKED, -EALREADY },
                { PRISM_ERROR_ALREADY_EXISTS, -EEXIST },
                { PRISM_ERROR_NOT_FOUND, -ENOENT },
                { PRISM_ERROR_LIMIT_REACHED, -EDQUOT },
                { PRISM_ERROR_UNSUPPORTED, -EOPNOTSUPP },
                { PRISM_ERROR_STORE_FAILED, -EIO },
                { PRISM_ERROR_INVALID_ARGS, -EINVAL },
                { PRISM_ERROR_ACCESS_DENIED, -EACCES },
                { SD_BUS_ERROR_UNKNOWN_OBJECT, -ENOENT },
                { SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED, -EACCES },
        };

        for (size_t i = 0; i < ELEMENTSOF(known); i++)
                if (sd_bus_error_has_name(e, known[i].name))
                        return sentence(ret_error, known[i].error, "%s",
                                        isempty(e->message) ? known[i].name : e->message);

        if (sd_bus_error_has_name(e, SD_BUS_ERROR_SERVICE_UNKNOWN) ||
                        sd_bus_error_has_name(e, SD_BUS_ERROR_NAME_HAS_NO_OWNER))
                return sentence(ret_error, -ENOTCONN,
                                "no prismd is on the system bus; start it with `systemctl start prismd`");

        if (sd_bus_error_has_names(e, SD_BUS_ERROR_UNKNOWN_METHOD, SD_BUS_ERROR_UNKNOWN_INTERFACE,
                            SD_BUS_ERROR_UNKNOWN_PROPERTY))
                return sentence(ret_error, -EOPNOTSUPP,
                                "the prismd at %s cannot do %s: it is of another version than this prismctl",
                                c->address, sd_bus_message_get_member(call));

        switch (error) {
        case -ETIMEDOUT:
                return sentence(ret_error, -ETIMEDOUT, "prismd at %s did not answer in time", c->address);
        case -ECONNRESET:
        case -ECONNABORTED:
        case -ENOTCONN:
        case -EPIPE:
        case -ESHUTDOWN:
                return sentence(ret_error, -ENOTCONN,
                                "prismd at %s closed the connection: it ended, or it serves only root and the group "
                                "prism",
                                c->address);
        case -EACCES:
        case -EPERM:
                return sentence(ret_error, -EACCES, "prismd at %s refused: be root or a member of the group prism",
                                c->address);
        case -ENOMEM:
                return error;
        default:
                return sentence(ret_error, error, "%s of prismd at %s failed: %s", sd_bus_message_get_member(call),
                                c->address, isempty(e->message) ? strerror(-error) : e->message);
        }
}

int client_send(Client *c, sd_bus_message *call, uint64_t timeout_usec, sd_bus_message **ret_reply, char **ret_error) {
        sd_bus_error e = SD_BUS_ERROR_NULL;
        int r;

        r = sd_bus_call(c->bus, call, timeout_usec, &e, ret_reply);
        if (r < 0)
                r = explain(c, call, r, &e, ret_error);
        sd_bus_error_free(&e);
        return r < 0 ? r : 0;
}

int client_call_manager(Client *c, const char *method, sd_bus_message **ret_reply, char **ret_error) {
        _cleanup_message_ sd_bus_message *m = NULL;
        int r;

        r = client_new_call(c, PRISM_PATH, PRISM_INTERFACE_MANAGER, method, &m);
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "a{sv}", 0);
        if (r < 0)
                return r;
        return client_send(c, m, CLIENT_TIMEOUT_USEC, ret_reply, ret_error);
}

int client_call_with_path(Client *c, const char *method, const char *path, uint64_t timeout_usec, char **ret_error) {
        _cleanup_message_ sd_bus_message *m = NULL;
        int r;

        r = client_new_call(c, PRISM_PATH, PRISM_INTERFACE_MANAGER, method, &m);
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "oa{sv}", path, 0);
        if (r < 0)
                return r;
        return client_send(c, m, timeout_usec, NULL, ret_error);
}

int client_get_all(Client *c, const char *path, const char *interface, sd_bus_message **ret_reply, char **ret_error) {
        _cleanup_message_ sd_bus_message *m = NULL;
        int r;

        r = client_new_call(c, path, "org.freedesktop.DBus.Properties", "GetAll", &m);
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "s", interface);
        if (r < 0)
                return r;
        return client_send(c, m, CLIENT_TIMEOUT_USEC, ret_reply, ret_error);
}

int client_get_text(Client *c, const char *path, const char *interface, const char *property, char **ret,
                char **ret_error) {
        _cleanup_message_ sd_bus_message *m = NULL, *reply = NULL;
        const char *text;
        char *copy;
        int r;

        r = client_new_call(c, path, "org.freedesktop.DBus.Properties", "Get", &m);
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "ss", interface, property);
        if (r < 0)
                return r;
        r = client_send(c, m, CLIENT_TIMEOUT_USEC, &reply, ret_error);
        if (r < 0)
                return r;
        r = sd_bus_message_read(reply, "v", "s", &text);
        if (r < 0)
                return r;

        copy = strdup(text);
        if (!copy)
                return -ENOMEM;
        *ret = copy;
        return 0;
}
