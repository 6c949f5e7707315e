/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "server.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-event.h>
#include <systemd/sd-id128.h>

#include "../dbus/names.h"
#include "access.h"
#include "log.h"
#include "manager-bus.h"
#include "manager.h"
#include "messages.h"

#define BACKLOG 128
/* Messages that wait for a client to read them. One that asks for more while so many answers wait is dropped. Signals are left
 * out while so many wait, since a burst of processes that come and go is no fault of the client; it is dropped when it has
 * read none of them for so long. */
#define ANSWERS_MAX 32
#define SIGNALS_MAX 512
#define DEAF_USEC (5 * USEC_PER_SEC)
#define SEND_BUFFER (128 * 1024)
/* How long until the system bus is looked for again; doubled each time. */
#define REJOIN_USEC (1 * USEC_PER_SEC)
#define REJOIN_MAX_USEC (30 * USEC_PER_SEC)

typedef struct Connection Connection;
struct Connection {
        Server *server;
        sd_bus *bus;
        bool private, doomed, begun;
        uint64_t full_since_usec; /* signals are left out since then; 0: they are not */
        uint64_t full_with;       /* how many messages waited then */
        Access *access;           /* on the system bus */
        Connection *next;
};

typedef struct Listener Listener;
struct Listener {
        Server *server;
        int fd;
        char *path;
        sd_event_source *source;
        Listener *next;
};

struct Server {
        Manager *manager;
        Connection *connections;
        unsigned n_private;
        Listener *listeners;
        bool refusing;           /* said so already */
        sd_event_source *reaper; /* drops doomed connections, from the loop and not from within their callbacks */
        sd_event_source *starter;
        sd_event_source *rejoin_timer;
        uint64_t rejoin_usec;
};

static void schedule_rejoin(Server *s);

/* Whether what is queued can be sent without waiting for a peer that has not said hello, or does not read. */
static bool connection_can_flush(Connection *c) {
        struct pollfd poll_fd = { .events = POLLOUT };

        if (!c->bus || sd_bus_is_ready(c->bus) <= 0)
                return false;
        poll_fd.fd = sd_bus_get_fd(c->bus);
        return poll_fd.fd >= 0 && poll(&poll_fd, 1, 0) > 0 && (poll_fd.revents & POLLOUT);
}

static Connection *connection_free(Connection *c) {
        if (!c)
                return NULL;
        access_free(c->access);
        if (connection_can_flush(c))
                (void) sd_bus_flush(c->bus);
        sd_bus_close_unref(c->bus);
        free(c);
        return NULL;
}
DEFINE_CLEANUP(Connection *, connection_free);

static void connection_drop(Connection *c) {
        Server *s = c->server;

        for (Connection **p = &s->connections; *p; p = &(*p)->next)
                if (*p == c) {
                        *p = c->next;
                        break;
                }
        if (c->private)
                s->n_private--;
        access_free(c->access);
        /* Not flushed: the peer is gone, or does not read. */
        sd_bus_close(c->bus);
        sd_bus_unref(c->bus);
        free(c);
}

static int on_disconnected(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        Connection *c = userdata;
        Server *s = c->server;
        bool private = c->private;

        connection_drop(c);
        if (!private) {
                log_event(LOG_WARNING, &(LogFields){ .id = PRISM_MESSAGE_BUS_LOST },
                                "the connection to the system bus is gone; trying to come back");
                schedule_rejoin(s);
        }
        return 0;
}

static int on_reap(sd_event_source *source, void *userdata) {
        Connection *next;
        Server *s = userdata;

        for (Connection *c = s->connections; c; c = next) {
                next = c->next;
                if (c->doomed)
                        connection_drop(c);
        }
        return 0;
}

/* Clients send their first call right behind the end of the authentication, and sd-bus may have read both at once. It
 * looks at the call when the next byte comes, which may be never: so it is made to look. */
static int on_start(sd_event_source *source, void *userdata) {
        Connection *next;
        Server *s = userdata;

        for (Connection *c = s->connections; c; c = next) {
                sd_bus *bus;

                next = c->next;
                if (!c->begun)
                        continue;
                c->begun = false;
                bus = sd_bus_ref(c->bus); /* it may be dropped meanwhile */
                for (int i = 0; i < 8 && sd_bus_process(bus, NULL) > 0; i++)
                        ;
                sd_bus_unref(bus);
        }
        return 0;
}

static int on_authenticated(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        Connection *c = userdata;

        c->begun = true;
        return sd_event_source_set_enabled(c->server->starter, SD_EVENT_ONESHOT);
}

static void connection_doom(Connection *c) {
        log_event(LOG_WARNING, &(LogFields){ .id = PRISM_MESSAGE_CLIENT_DROPPED },
                        "a client that does not read its messages was disconnected");
        c->doomed = true;
        (void) sd_event_source_set_enabled(c->server->reaper, SD_EVENT_ONESHOT);
}

/* Whether a private client has let so many answers pile up that it must go. */
static bool connection_is_stuck(Connection *c) {
        uint64_t queued;

        if (!c->private || c->doomed)
                return c->doomed;
        if (sd_bus_get_n_queued_write(c->bus, &queued) < 0 || queued <= ANSWERS_MAX)
                return false;
        connection_doom(c);
        return true;
}

/* Whether a signal can be given to it. */
static bool connection_takes_signals(Connection *c) {
        uint64_t queued, now;

        if (!c->private || c->doomed)
                return !c->doomed;
        if (sd_bus_get_n_queued_write(c->bus, &queued) < 0 || queued <= SIGNALS_MAX) {
                c->full_since_usec = 0;
                return true;
        }
        if (sd_event_now(c->server->manager->event, CLOCK_MONOTONIC, &now) < 0)
                return false;
        if (c->full_since_usec == 0 || queued < c->full_with) {
                c->full_since_usec = now;
                c->full_with = queued;
        } else if (now - c->full_since_usec > DEAF_USEC)
                connection_doom(c);
        return false;
}

static int connection_serve(Connection *c) {
        int r;

        r = manager_bus_install(c->server->manager, c->bus);
        if (r >= 0)
                r = sd_bus_match_signal_async(c->bus, NULL, "org.freedesktop.DBus.Local", "/org/freedesktop/DBus/Local",
                                "org.freedesktop.DBus.Local", "Disconnected", on_disconnected, NULL, c);
        if (r >= 0)
                r = sd_bus_attach_event(c->bus, c->server->manager->event, SD_EVENT_PRIORITY_NORMAL);
        return r;
}

/* ---- Private sockets ---- */

/* busctl greets a bus daemon first; we answer as if we were one. */
static int on_private_message(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        if (connection_is_stuck(userdata))
                return 1;
        if (sd_bus_message_is_method_call(message, "org.freedesktop.DBus", "Hello") <= 0)
                return 0;
        return sd_bus_reply_method_return(message, "s", ":1.1") ?: 1;
}

static int connection_new_private(Server *s, int fd) {
        _cleanup_(connection_freep) Connection *c = NULL;
        sd_id128_t id;
        int r;

        c = calloc(1, sizeof(*c));
        if (!c) {
                close(fd);
                return -ENOMEM;
        }
        c->server = s;
        c->private = true;
        r = sd_bus_new(&c->bus);
        if (r >= 0)
                r = sd_bus_set_fd(c->bus, fd, fd);
        if (r < 0) {
                close(fd);
                return r;
        }
        r = sd_id128_randomize(&id);
        if (r >= 0)
                r = sd_bus_set_server(c->bus, 1, id);
        if (r >= 0)
                r = sd_bus_negotiate_fds(c->bus, 1);
        if (r >= 0)
                r = sd_bus_set_connected_signal(c->bus, 1);
        if (r >= 0)
                r = sd_bus_start(c->bus);
        /* sd-bus asks for 8 MiB, and root gets them: too much for each of many clients that may not read. */
        if (r >= 0)
                (void) setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &(int){ SEND_BUFFER }, sizeof(int));
        if (r >= 0)
                r = sd_bus_add_filter(c->bus, NULL, on_private_message, c);
        if (r >= 0)
                r = sd_bus_match_signal_async(c->bus, NULL, "org.freedesktop.DBus.Local", "/org/freedesktop/DBus/Local",
                                "org.freedesktop.DBus.Local", "Connected", on_authenticated, NULL, c);
        if (r >= 0)
                r = connection_serve(c);
        if (r < 0)
                return r;

        c->next = s->connections;
        s->connections = c;
        s->n_private++;
        TAKE_PTR(c);
        return 0;
}

static int on_connection(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        Listener *l = userdata;
        Server *s = l->server;
        int peer, r;

        peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (peer < 0)
                return 0;
        if (s->n_private >= s->manager->config.connections) {
                if (!s->refusing)
                        log_event(LOG_WARNING, &(LogFields){ .id = PRISM_MESSAGE_CLIENTS_LIMIT },
                                        "refusing connections: there are %u, which is the limit (Connections= in "
                                        "prismd.conf)",
                                        s->n_private);
                s->refusing = true;
                close(peer);
                return 0;
        }
        s->refusing = false;
        r = access_check_peer(peer);
        if (r < 0) {
                log_event(LOG_INFO, &(LogFields){ .id = PRISM_MESSAGE_CLIENT_REFUSED },
                                "a client that is neither root nor in group " ACCESS_GROUP " was refused on %s",
                                l->path);
                close(peer);
                return 0;
        }
        r = connection_new_private(s, peer);
        if (r < 0)
                log_warning("cannot serve a client on %s: %s", l->path, strerror(-r));
        return 0;
}

static Listener *listener_free(Listener *l) {
        if (!l)
                return NULL;
        sd_event_source_disable_unref(l->source);
        if (l->fd >= 0) {
                close(l->fd);
                (void) unlink(l->path);
        }
        free(l->path);
        free(l);
        return NULL;
}
DEFINE_CLEANUP(Listener *, listener_free);

static int make_parent(const char *path) {
        _cleanup_free_ char *directory = strdup(path);

        if (!directory)
                return -ENOMEM;
        for (char *p = directory + 1; (p = strchr(p, '/')); p++) {
                *p = '\0';
                if (mkdir(directory, 0750) < 0 && errno != EEXIST)
                        return -errno;
                *p = '/';
        }
        return 0;
}

/* A socket on which nobody listens any more is in the way of ours. */
static int remove_stale(const struct sockaddr_un *address) {
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct stat st;

        if (lstat(address->sun_path, &st) < 0)
                return 0;
        if (!S_ISSOCK(st.st_mode))
                return -EEXIST;
        if (fd >= 0 && connect(fd, (const struct sockaddr *) address, sizeof(*address)) < 0 && errno == ECONNREFUSED)
                return unlink(address->sun_path) < 0 ? -errno : 0;
        return -EADDRINUSE;
}

static int listen_on(Server *s, const char *path) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        _cleanup_(listener_freep) Listener *l = NULL;
        struct group group, *found = NULL;
        char buffer[16384];
        int r;

        if (path[0] != '/' || strlen(path) >= sizeof(address.sun_path))
                return -EINVAL;
        strcpy(address.sun_path, path);
        l = calloc(1, sizeof(*l));
        if (!l)
                return -ENOMEM;
        l->server = s;
        l->fd = -1;
        l->path = strdup(path);
        if (!l->path)
                return -ENOMEM;
        r = make_parent(path);
        if (r >= 0)
                r = remove_stale(&address);
        if (r < 0)
                return r;

        l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (l->fd < 0)
                return -errno;
        if (bind(l->fd, (struct sockaddr *) &address, sizeof(address)) < 0) {
                r = -errno;
                close(TAKE_FD(l->fd)); /* not ours to unlink */
                return r;
        }
        /* Who may is decided by credentials; the mode only keeps others from knocking. */
        (void) chmod(path, 0660);
        if (getgrnam_r(ACCESS_GROUP, &group, buffer, sizeof(buffer), &found) == 0 && found)
                (void) chown(path, (uid_t) -1, found->gr_gid);
        if (listen(l->fd, BACKLOG) < 0)
                return -errno;
        r = sd_event_add_io(s->manager->event, &l->source, l->fd, EPOLLIN, on_connection, l);
        if (r < 0)
                return r;
        l->next = s->listeners;
        s->listeners = l;
        TAKE_PTR(l);
        return 0;
}

/* ---- The system bus ---- */

static int on_name(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        Connection *c = userdata;
        Server *s = c->server;
        uint32_t answer = 0;

        /* 1: it is ours. Whatever else is tried again later. */
        if (!sd_bus_message_is_method_error(reply, NULL) && sd_bus_message_read(reply, "u", &answer) >= 0 &&
                        answer == 1) {
                log_info("back on the system bus");
                s->rejoin_usec = 0;
                return 0;
        }
        c->doomed = true;
        (void) sd_event_source_set_enabled(s->reaper, SD_EVENT_ONESHOT);
        schedule_rejoin(s);
        return 0;
}

/* Waits for the bus's answers only with `wait`. */
static int join_system_bus(Server *s, bool wait) {
        _cleanup_(connection_freep) Connection *c = NULL;
        int r;

        c = calloc(1, sizeof(*c));
        if (!c)
                return -ENOMEM;
        c->server = s;
        r = sd_bus_open_system(&c->bus);
        if (r >= 0)
                r = access_new(c->bus, &c->access);
        if (r >= 0)
                r = connection_serve(c);
        if (r >= 0)
                r = wait ? sd_bus_request_name(c->bus, PRISM_BUS_NAME, 0)
                         : sd_bus_request_name_async(c->bus, NULL, PRISM_BUS_NAME, 0, on_name, c);
        if (r < 0)
                return r;
        c->next = s->connections;
        s->connections = c;
        TAKE_PTR(c);
        return 0;
}

static int on_rejoin(sd_event_source *source, uint64_t usec, void *userdata) {
        Server *s = userdata;

        if (join_system_bus(s, false) < 0)
                schedule_rejoin(s);
        return 0;
}

static void schedule_rejoin(Server *s) {
        s->rejoin_usec = s->rejoin_usec ? MIN(s->rejoin_usec * 2, REJOIN_MAX_USEC) : REJOIN_USEC;
        (void) sd_event_source_set_time_relative(s->rejoin_timer, s->rejoin_usec);
        (void) sd_event_source_set_enabled(s->rejoin_timer, SD_EVENT_ONESHOT);
}

/* ---- */

static int serve_address(Server *s, const char *address) {
        const char *path;

        if (streq(address, "system"))
                return join_system_bus(s, true);
        path = startswith(address, "unix:path=");
        return path ? listen_on(s, path) : -EINVAL;
}

int server_new(Manager *m, const char *const *addresses, Server **ret, char **ret_error) {
        _cleanup_(server_freep) Server *s = NULL;
        int r, r_socket;

        s = calloc(1, sizeof(*s));
        if (!s)
                return -ENOMEM;
        s->manager = m;
        r = sd_event_add_defer(m->event, &s->reaper, on_reap, s);
        if (r >= 0)
                r = sd_event_source_set_enabled(s->reaper, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_add_defer(m->event, &s->starter, on_start, s);
        if (r >= 0)
                r = sd_event_source_set_enabled(s->starter, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_add_time(m->event, &s->rejoin_timer, CLOCK_BOOTTIME, 0, 0, on_rejoin, s);
        if (r >= 0)
                r = sd_event_source_set_enabled(s->rejoin_timer, SD_EVENT_OFF);
        if (r < 0)
                return r;

        for (size_t i = 0; addresses && addresses[i]; i++) {
                r = serve_address(s, addresses[i]);
                if (r < 0) {
                        if (ret_error &&
                                        asprintf(ret_error, "cannot listen on \"%s\": %s%s", addresses[i], strerror(-r),
                                                        r == -EINVAL ? "; an address is unix:path=/ABSOLUTE/PATH (at "
                                                                       "most 107 bytes) or system"
                                                                     : "") < 0)
                                *ret_error = NULL;
                        return r;
                }
        }
        if (!addresses || !addresses[0]) {
                r = join_system_bus(s, true);
                if (r < 0)
                        log_info("not on the system bus: %s", strerror(-r));
                r_socket = serve_address(s, PRISM_DEFAULT_ADDRESS);
                if (r_socket < 0)
                        log_warning("cannot listen on %s: %s", PRISM_DEFAULT_ADDRESS, strerror(-r_socket));
                if (r < 0 && r_socket < 0) {
                        if (ret_error &&
                                        asprintf(ret_error,
                                                        "neither the system bus (%s) nor %s (%s) can be had; give "
                                                        "another with --address",
                                                        strerror(-r), PRISM_DEFAULT_ADDRESS, strerror(-r_socket)) < 0)
                                *ret_error = NULL;
                        return r_socket;
                }
        }
        *ret = TAKE_PTR(s);
        return 0;
}

Server *server_free(Server *s) {
        if (!s)
                return NULL;
        while (s->listeners) {
                Listener *l = s->listeners;

                s->listeners = l->next;
                listener_free(l);
        }
        while (s->connections) {
                Connection *c = s->connections;

                s->connections = c->next;
                connection_free(c);
        }
        sd_event_source_disable_unref(s->reaper);
        sd_event_source_disable_unref(s->starter);
        sd_event_source_disable_unref(s->rejoin_timer);
        free(s);
        return NULL;
}

unsigned server_n_connections(const Server *s) {
        return s->n_private;
}

void server_prepare_end(Server *s) {
        Connection *next;

        for (Connection *c = s->connections; c; c = next) {
                next = c->next;
                if (!connection_can_flush(c))
                        connection_drop(c);
        }
}

void server_for_each_bus(Server *s, void (*send)(sd_bus *bus, void *userdata), void *userdata) {
        Connection *next;

        if (!s)
                return;
        for (Connection *c = s->connections; c; c = next) {
                next = c->next;
                if (connection_takes_signals(c))
                        send(c->bus, userdata);
        }
}
