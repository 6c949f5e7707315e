/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "access.h"

#include <grp.h>
#include <sys/socket.h>

#include "../dbus/names.h"
#include "log.h"
#include "messages.h"

#define GROUPS_MAX 1024
/* Calls held at a time; those of one user who waits for polkit, so that a stranger cannot use all places. */
#define HELD_MAX 2048
#define HELD_PER_USER_MAX 32
/* A person may have to find a password first. */
#define POLKIT_TIMEOUT_USEC (120 * USEC_PER_SEC)

#define POLKIT_NAME "org.freedesktop.PolicyKit1"
#define POLKIT_PATH "/org/freedesktop/PolicyKit1/Authority"
#define POLKIT_INTERFACE "org.freedesktop.PolicyKit1.Authority"
#define POLKIT_ALLOW_USER_INTERACTION 1U

#define ONLY_WE_MAY "only root and members of group " ACCESS_GROUP " may do this"

/* A call that waits for an answer, or has it and waits to be processed again. */
typedef struct Held Held;
struct Held {
        Access *access;
        sd_bus_message *call;
        const char *action;
        sd_bus_slot *slot; /* the question on its way */
        uid_t uid;
        bool with_polkit, allowed;
        Held *next;
};

struct Access {
        sd_bus *bus; /* not ours */
        sd_bus_slot *filter;
        Held *held;
        unsigned n_held;
};

/* ---- Rules ---- */

const char *access_action(const char *interface, const char *member) {
        static const struct {
                const char *interface;
                const char *member; /* NULL: all */
                const char *action;
        } rules[] = {
                { "org.freedesktop.DBus.Peer", NULL, ACCESS_ANYONE },
                { "org.freedesktop.DBus.Introspectable", NULL, ACCESS_ANYONE },
                { "org.freedesktop.DBus.Properties", "Get", PRISM_BUS_NAME ".inspect" },
                { "org.freedesktop.DBus.Properties", "GetAll", PRISM_BUS_NAME ".inspect" },
                { "org.freedesktop.DBus.ObjectManager", "GetManagedObjects", PRISM_BUS_NAME ".inspect" },
                { PRISM_INTERFACE_MANAGER, "ListTargets", PRISM_BUS_NAME ".inspect" },
                { PRISM_INTERFACE_MANAGER, "ListRecordings", PRISM_BUS_NAME ".inspect" },
                { PRISM_INTERFACE_MANAGER, "GetStatus", PRISM_BUS_NAME ".inspect" },
                { PRISM_INTERFACE_MANAGER, "GetSnapshot", PRISM_BUS_NAME ".inspect" },
                { PRISM_INTERFACE_MANAGER, "TrackProcess", PRISM_BUS_NAME ".track" },
                { PRISM_INTERFACE_MANAGER, "TrackCgroup", PRISM_BUS_NAME ".track" },
                { PRISM_INTERFACE_MANAGER, "TrackUnit", PRISM_BUS_NAME ".track" },
                { PRISM_INTERFACE_MANAGER, "TrackCommand", PRISM_BUS_NAME ".track" },
                { PRISM_INTERFACE_MANAGER, "TrackContainer", PRISM_BUS_NAME ".track" },
                { PRISM_INTERFACE_MANAGER, "Untrack", PRISM_BUS_NAME ".track" },
                { PRISM_INTERFACE_MANAGER, "StartRecording", PRISM_BUS_NAME ".record" },
                { PRISM_INTERFACE_MANAGER, "StopRecording", PRISM_BUS_NAME ".record" },
                { PRISM_INTERFACE_MANAGER, "KeepRecording", PRISM_BUS_NAME ".record" },
                { PRISM_INTERFACE_MANAGER, "AddKpi", PRISM_BUS_NAME ".record" },
                { PRISM_INTERFACE_MANAGER, "DeleteRecording", PRISM_BUS_NAME ".delete" },
        };

        /* A call without an interface goes to whichever has such a method. */
        for (size_t i = 0; i < ELEMENTSOF(rules); i++)
                if ((!interface || streq(rules[i].interface, interface)) &&
                                (rules[i].member ? streq(rules[i].member, member) : interface != NULL))
                        return rules[i].action;
        return NULL;
}

static bool is_our_group(gid_t gid) {
        struct group group, *found = NULL;
        char buffer[16384];

        return getgrnam_r(ACCESS_GROUP, &group, buffer, sizeof(buffer), &found) == 0 && found && found->gr_gid == gid;
}

static bool is_our_user(uid_t uid) {
        return uid == 0 || uid == geteuid();
}

int access_check_peer(int fd) {
        socklen_t size = sizeof(struct ucred);
        gid_t groups[GROUPS_MAX];
        struct ucred peer;

        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
                return -errno;
        if (is_our_user(peer.uid) || is_our_group(peer.gid))
                return 0;
        size = sizeof(groups);
        if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size) < 0)
                return -errno;
        for (size_t i = 0; i < size / sizeof(groups[0]); i++)
                if (is_our_group(groups[i]))
                        return 0;
        return -EACCES;
}

/* ---- Held calls ---- */

static void held_remove(Held *h) {
        for (Held **p = &h->access->held; *p; p = &(*p)->next)
                if (*p == h) {
                        *p = h->next;
                        break;
                }
        h->access->n_held--;
        sd_bus_slot_unref(h->slot);
        sd_bus_message_unref(h->call);
        free(h);
}

static void allow(Held *h) {
        h->allowed = true;
        if (sd_bus_enqueue_for_read(h->access->bus, h->call) < 0) {
                (void) sd_bus_reply_method_errorf(
                                h->call, PRISM_ERROR_LIMIT_REACHED, "too many calls are waiting; try again");
                held_remove(h);
        }
}

static void deny(Held *h, const char *name, const char *sentence) {
        if (streq(name, PRISM_ERROR_ACCESS_DENIED))
                log_event(LOG_INFO, &(LogFields){ .id = PRISM_MESSAGE_CLIENT_REFUSED }, "refused %s to user %u: %s",
                                sd_bus_message_get_member(h->call), h->uid, sentence);
        (void) sd_bus_reply_method_errorf(h->call, name, "%s", sentence);
        held_remove(h);
}

static int on_polkit(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        int authorized = false, challenge = false;
        Held *h = userdata;

        if (sd_bus_message_is_method_error(reply, NULL))
                deny(h, PRISM_ERROR_ACCESS_DENIED, ONLY_WE_MAY ": polkit could not be asked");
        else if (sd_bus_message_enter_container(reply, 'r', "bba{ss}") < 0 ||
                        sd_bus_message_read(reply, "bb", &authorized, &challenge) < 0)
                deny(h, PRISM_ERROR_ACCESS_DENIED, ONLY_WE_MAY ": polkit gave no clear answer");
        else if (authorized)
                allow(h);
        else if (challenge)
                deny(h, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED,
                                "this needs an administrator's password, and nobody can be asked here; be root or a "
                                "member of "
                                "group " ACCESS_GROUP);
        else
                deny(h, PRISM_ERROR_ACCESS_DENIED, ONLY_WE_MAY ", or whom a rule of polkit lets");
        return 0;
}

static int ask_polkit(Held *h) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *question = NULL;
        bool interactive = sd_bus_message_get_allow_interactive_authorization(h->call) > 0;
        int r;

        r = sd_bus_message_new_method_call(
                        h->access->bus, &question, POLKIT_NAME, POLKIT_PATH, POLKIT_INTERFACE, "CheckAuthorization");
        if (r >= 0)
                r = sd_bus_message_append(question, "(sa{sv})s", "system-bus-name", 1, "name", "s",
                                sd_bus_message_get_sender(h->call), h->action);
        if (r >= 0)
                r = sd_bus_message_append(question, "a{ss}us", 0, interactive ? POLKIT_ALLOW_USER_INTERACTION : 0U, "");
        h->slot = sd_bus_slot_unref(h->slot);
        if (r >= 0)
                r = sd_bus_call_async(h->access->bus, &h->slot, question, on_polkit, h, POLKIT_TIMEOUT_USEC);
        return r;
}

/* Reads what the bus knows of the sender: its user, and whether one of its groups is ours. */
static int read_credentials(sd_bus_message *reply, uid_t *ret_uid, bool *ret_in_group) {
        bool known = false, in_group = false;
        uint32_t uid = 0;
        const char *key;
        int r;

        r = sd_bus_message_enter_container(reply, 'a', "{sv}");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(reply, 'e', "sv")) > 0) {
                r = sd_bus_message_read(reply, "s", &key);
                if (r >= 0 && streq(key, "UnixUserID")) {
                        r = sd_bus_message_read(reply, "v", "u", &uid);
                        known = r >= 0;
                } else if (r >= 0 && streq(key, "UnixGroupIDs")) {
                        const void *groups;
                        size_t size;

                        r = sd_bus_message_enter_container(reply, 'v', "au");
                        if (r >= 0)
                                r = sd_bus_message_read_array(reply, 'u', &groups, &size);
                        for (size_t i = 0; r >= 0 && i < size / sizeof(uint32_t); i++)
                                in_group = in_group || is_our_group(((const uint32_t *) groups)[i]);
                        if (r >= 0)
                                r = sd_bus_message_exit_container(reply);
                } else if (r >= 0)
                        r = sd_bus_message_skip(reply, "v");
                if (r >= 0)
                        r = sd_bus_message_exit_container(reply);
                if (r < 0)
                        return r;
        }
        if (r < 0)
                return r;
        if (!known)
                return -ENODATA;
        *ret_uid = uid;
        *ret_in_group = in_group;
        return 0;
}

static int on_credentials(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        unsigned n = 0;
        Held *h = userdata;
        bool in_group;

        if (sd_bus_message_is_method_error(reply, NULL) || read_credentials(reply, &h->uid, &in_group) < 0) {
                /* It is gone, most likely. */
                h->uid = (uid_t) -1;
                deny(h, PRISM_ERROR_ACCESS_DENIED, "the bus does not say who you are");
                return 0;
        }
        if (is_our_user(h->uid) || in_group) {
                allow(h);
                return 0;
        }
        if (!h->action) {
                deny(h, PRISM_ERROR_ACCESS_DENIED, ONLY_WE_MAY);
                return 0;
        }
        for (Held *other = h->access->held; other; other = other->next)
                n += other->with_polkit && other->uid == h->uid;
        if (n >= HELD_PER_USER_MAX) {
                deny(h, PRISM_ERROR_LIMIT_REACHED, "too many of your calls wait for polkit; answer it, or try later");
                return 0;
        }
        h->with_polkit = true;
        if (ask_polkit(h) < 0)
                deny(h, PRISM_ERROR_ACCESS_DENIED, ONLY_WE_MAY ": polkit could not be asked");
        return 0;
}

static int hold(Access *a, sd_bus_message *call, const char *action) {
        Held *h;
        int r;

        h = calloc(1, sizeof(*h));
        if (!h)
                return -ENOMEM;
        h->access = a;
        h->call = sd_bus_message_ref(call);
        h->action = action;
        h->next = a->held;
        a->held = h;
        a->n_held++;
        /* It says what was true when the sender connected, which no later change of its process can make untrue. */
        r = sd_bus_call_method_async(a->bus, &h->slot, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                        "org.freedesktop.DBus", "GetConnectionCredentials", on_credentials, h, "s",
                        sd_bus_message_get_sender(call));
        if (r < 0)
                held_remove(h);
        return r;
}

static int on_message(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        const char *action;
        Access *a = userdata;
        uint8_t type;
        int r;

        if (sd_bus_message_get_type(message, &type) < 0 || type != SD_BUS_MESSAGE_METHOD_CALL)
                return 0;
        for (Held *h = a->held; h; h = h->next)
                if (h->call == message && h->allowed) {
                        held_remove(h);
                        return 0;
                }
        action = access_action(sd_bus_message_get_interface(message), sd_bus_message_get_member(message));
        if (action && streq(action, ACCESS_ANYONE))
                return 0;
        if (a->n_held >= HELD_MAX)
                return sd_bus_error_set(error, PRISM_ERROR_LIMIT_REACHED, "too many calls are waiting; try again");
        r = hold(a, message, action);
        return r < 0 ? r : 1;
}

int access_new(sd_bus *bus, Access **ret) {
        _cleanup_(access_freep) Access *a = NULL;
        int r;

        a = calloc(1, sizeof(*a));
        if (!a)
                return -ENOMEM;
        a->bus = bus;
        r = sd_bus_add_filter(bus, &a->filter, on_message, a);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(a);
        return 0;
}

Access *access_free(Access *a) {
        if (!a)
                return NULL;
        while (a->held)
                held_remove(a->held);
        sd_bus_slot_unref(a->filter);
        free(a);
        return NULL;
}
