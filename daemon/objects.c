/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is known of the objects that threads wait for and use: names, sockets and their counters, and what epoll sets
 * watch. */
#include "collector-internal.h"
#include "describe.h"
#include "object-name.h"

#include <sys/socket.h>

/* What each process has open is looked at for this long a tick, the others have their turn in the next. */
#define LOOK_TIME_NS (10 * NSEC_PER_MSEC)
/* What a set watches is asked anew after so long, if it is still used. */
#define WATCHES_EVERY_NS (10 * NSEC_PER_SEC)
/* A process whose sockets moved something within this time is looked at each tick. */
#define SOCKETS_RECENT_NS (2 * NSEC_PER_SEC)
/* The others that have any. */
#define REST_NS (5 * NSEC_PER_SEC)

static void set_name(Resource *s, char *name, NameSource source) {
        if (source < s->name_source || (s->name && streq(s->name, name))) {
                s->name_source = MAX(s->name_source, source);
                free(name);
                return;
        }
        free(s->name);
        s->name = name;
        s->name_source = source;
        s->described = 0;
}

void take_name(Collector *c, const ResourceKey *id, char *name) {
        Resource *s = registry_find(c->registry, id);
        bool told;

        if (!s) {
                free(name);
                return;
        }
        told = s->described != 0;
        set_name(s, name, NAME_FULL);
        if (told && s->described == 0 && GROW(c->renamed, c->n_renamed, c->c_renamed) >= 0)
                c->renamed[c->n_renamed++] = *id;
}

static bool names_a_path(const Resource *s) {
        switch (s->id.kind) {
        case PRISM_KIND_FILE:
        case PRISM_KIND_PAGE_FAULT:
        case PRISM_KIND_FIFO:
        case PRISM_KIND_CHARDEV:
        case PRISM_KIND_DISK:
                return s->name_source < NAME_FULL && !(s->id.address & PRISM_BY_PATH);
        default:
                return false;
        }
}

/* ---- Sockets ---- */

static bool is_socket(const Resource *s) {
        return s->id.kind == PRISM_KIND_UNIX || s->id.kind == PRISM_KIND_INET || s->id.kind == PRISM_KIND_SOCKET;
}

/* What changes with every packet does not make it another socket. */
static bool same_socket(const struct prism_object *a, const struct prism_object *b) {
        return a->state == b->state && a->netns == b->netns && a->local_port == b->local_port &&
                        a->remote_port == b->remote_port &&
                        memcmp(a->local_address, b->local_address, sizeof(a->local_address)) == 0 &&
                        memcmp(a->remote_address, b->remote_address, sizeof(a->remote_address)) == 0 &&
                        a->cookie == b->cookie && a->peer_inode == b->peer_inode && a->path_length == b->path_length &&
                        memcmp(a->path, b->path, sizeof(a->path)) == 0;
}

static void sample_socket(Collector *c, Resource *s, const struct prism_object *o, Process *p, uint64_t boundary) {
        SocketCounters *last = &s->counters;
        uint64_t now = MIN(o->seen_ns, boundary); /* a look comes a moment after the boundary that it is for */
        BatchSocketSample row;
        uint64_t from;

        if (!p || !o->has_counters || now <= last->seen_ns)
                return;
        /* One that was there at an earlier look has a cookie from it: what it moved before it was known here is not ours. */
        if (last->seen_ns == 0 && (!p->looked_at || o->cookie)) {
                *last = (SocketCounters){ now, o->bytes_in, o->bytes_out, o->retransmits };
                return;
        }
        from = last->seen_ns ? last->seen_ns : MIN(c->generation_ns, now - 1);
        row = (BatchSocketSample){
                .ts_ns = clock_unix(&c->clock, now),
                .dt_ns = (int64_t) (now - from),
                .resource_key = s->key,
                .bytes_in = o->bytes_in - MIN(last->bytes_in, o->bytes_in),
                .bytes_out = o->bytes_out - MIN(last->bytes_out, o->bytes_out),
                .retransmits = o->retransmits - MIN(last->retransmits, o->retransmits),
                .srtt_ns = (uint64_t) o->srtt_us * 1000,
                .send_queue = o->send_queue,
                .receive_queue = o->receive_queue,
        };
        *last = (SocketCounters){ now, o->bytes_in, o->bytes_out, o->retransmits };
        if (row.bytes_in == 0 && row.bytes_out == 0 && row.retransmits == 0)
                return;
        p->sockets_ns = boundary;
        note_failure(c, batch_add_socket_sample(c->live, &row));
        if (row_wanted(c, from, now)) {
                describe_resource(c->recorded, s, c->epoch);
                note_failure(c, batch_add_socket_sample(c->recorded, &row));
        }
}

static void set_peer(Resource *s, const Resource *peer) {
        if (s->peer_key == peer->key)
                return;
        s->peer_key = peer->key;
        s->described = 0;
}

/* As IPv6 has it: one end of a connection over IPv4 may be a socket of either family. */
static void connection_address(unsigned family, const unsigned char *from, unsigned char to[static 16]) {
        if (family == AF_INET6) {
                memcpy(to, from, 16);
                return;
        }
        to[10] = to[11] = 0xff;
        memcpy(to + 12, from, 4);
}

/* Both ends of a connection within a network namespace know each other by their addresses. */
static void pair_connection(Collector *c, Resource *s, const struct prism_object *o) {
        ConnectionKey key = {
                .netns = o->netns,
                .local_port = o->local_port,
                .remote_port = o->remote_port,
                .protocol = o->protocol,
        };
        ConnectionKey reverse;
        Resource *peer;

        connection_address(o->family, o->local_address, key.local_address);
        connection_address(o->family, o->remote_address, key.remote_address);
        registry_note_connection(c->registry, s, &key);
        reverse = key;
        reverse.local_port = key.remote_port;
        reverse.remote_port = key.local_port;
        memcpy(reverse.local_address, key.remote_address, sizeof(key.remote_address));
        memcpy(reverse.remote_address, key.local_address, sizeof(key.local_address));
        peer = registry_connection(c->registry, &reverse);
        if (!peer || peer == s)
                return;
        set_peer(s, peer);
        set_peer(peer, s);
}

static void learn_socket(Collector *c, Resource *s, const struct prism_object *o, Process *p, uint64_t boundary) {
        if (!s->object || !same_socket(s->object, o))
                s->described = 0;
        if (!s->object)
                s->object = malloc(sizeof(*s->object));
        if (!s->object) {
                note_failure(c, -ENOMEM);
                return;
        }
        *s->object = *o;
        if (s->id.kind == PRISM_KIND_UNIX && o->peer_inode) {
                bool created;
                Resource *peer = registry_object(c->registry, PRISM_KIND_UNIX, o->peer_inode, 0, &created);

                if (peer) {
                        peer->used_ns = boundary;
                        set_peer(s, peer);
                        /* Nothing else may ever speak of it: it is its number, and a row to point to. */
                        if (peer->described != c->epoch && row_wanted(c, boundary, boundary)) {
                                describe_resource(c->recorded, peer, c->epoch);
                                s->described = 0;
                        }
                }
        } else if (s->id.kind == PRISM_KIND_INET && o->remote_port && o->local_port)
                pair_connection(c, s, o);
        sample_socket(c, s, o, p, boundary);
}

/* ---- epoll ---- */

void note_watch(Collector *c, Resource *set, Resource *watched, uint64_t now) {
        BatchEpollWatch row = {
                .resource_key = set->key,
                .watched_key = watched->key,
                .first_ns = clock_unix(&c->clock, now),
                .last_ns = clock_unix(&c->clock, now),
        };

        watched->used_ns = MAX(watched->used_ns, now);
        note_failure(c, batch_add_epoll_watch(c->live, &row));
        if (c->recorded && row_wanted(c, now, now)) {
                describe_resource(c->recorded, set, c->epoch);
                describe_resource(c->recorded, watched, c->epoch);
                note_failure(c, batch_add_epoll_watch(c->recorded, &row));
        }
}

/* ---- All objects ---- */

static void learn(Collector *c, const struct prism_object_key *key, const struct prism_object *o, uint64_t boundary) {
        Thread *t = registry_thread_by_handle(c->registry, o->thread);
        NameSource source = NAME_IDENT;
        Resource *s;
        bool created;
        char *name;

        s = registry_object(c->registry, key->kind, key->space, key->address, &created);
        if (!s) {
                losses_count(&c->losses, "collector", errno == ENOSPC ? "resource-limit" : "memory", 1);
                return;
        }
        s->used_ns = MAX(s->used_ns, boundary);
        if (t && key->kind == PRISM_KIND_EPOLL)
                t->process->sets_ns = boundary;
        if (t && key->kind == PRISM_KIND_INET)
                t->process->has_inet = true;
        name = object_name(key->kind, o, &source);
        if (name)
                set_name(s, name, source);
        if (is_socket(s))
                learn_socket(c, s, o, t ? t->process : NULL, boundary);
        if (names_a_path(s) && t && t->process->pid && s->name_tries < NAME_TRIES && boot_now() < c->names_until_ns) {
                s->name_tries++;
                name = o->descriptor >= 0 ? object_path_by_descriptor(t->process->pid, o->descriptor, &s->id) : NULL;
                if (name)
                        set_name(s, name, NAME_FULL);
                else if (s->id.kind == PRISM_KIND_PAGE_FAULT)
                        (void) namer_ask(c->namer, &s->id, t->process->pid, 0);
        }
}

static int learn_objects(Collector *c, uint64_t boundary) {
        const struct prism_object_key *keys;
        const struct prism_object *objects;
        size_t n;
        int r;

        r = probes_drain_objects(c->probes, &keys, &objects, &n);
        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++)
                learn(c, &keys[i], &objects[i], boundary);
        return 0;
}

static void learn_watches(Collector *c, const struct prism_watch *watches, size_t n, uint64_t boundary) {
        for (size_t i = 0; i < n; i++) {
                const struct prism_watch *w = &watches[i];
                Resource *set = registry_find_object(c->registry, PRISM_KIND_EPOLL, w->set_space, w->set_address);
                Resource *watched;
                bool created;

                if (!set || w->kind == PRISM_KIND_NONE)
                        continue;
                watched = registry_object(c->registry, w->kind, w->space, w->address, &created);
                if (watched)
                        note_watch(c, set, watched, boundary);
        }
}

/* What a process, or with 0 each, has open. Whether that was all of it. */
static bool look_at_process(Collector *c, uint32_t pid, bool watches, uint64_t boundary) {
        _cleanup_free_ struct prism_watch *found = NULL;
        uint64_t full = probes_loss(c->probes, PRISM_LOSS_OBJECT_FULL);
        size_t n = 0;
        int r;

        r = probes_look_at_files(c->probes, pid, watches, &found, &n);
        if (r < 0) {
                note_failure(c, r);
                return false;
        }
        /* Sets are known first. */
        note_failure(c, learn_objects(c, boundary));
        learn_watches(c, found, n, boundary);
        return probes_loss(c->probes, PRISM_LOSS_OBJECT_FULL) == full;
}

static bool wants_look(const Collector *c, const Process *p, uint64_t boundary, bool *ret_watches) {
        if (p->live_threads == 0 || p->pid == 0)
                return false;
        /* What never waits is seen by nothing else; and a recording begins and ends with an account. */
        if (p->has_inet && (c->flushing || p->looked_ns + REST_NS < boundary)) {
                *ret_watches = false;
                return true;
        }
        *ret_watches = p->sets_ns + WATCHES_EVERY_NS > boundary && p->watches_ns + WATCHES_EVERY_NS < boundary;
        return p->looked_ns == 0 || *ret_watches || p->sockets_ns + SOCKETS_RECENT_NS > boundary;
}

/* Looks at what processes have open: of those that are new, and of those whose sockets moved something lately. One round
 * may take several ticks. */
static void look_at_files(Collector *c, uint64_t boundary) {
        uint64_t until = boot_now() + (c->flushing ? 10 : 1) * LOOK_TIME_NS;
        bool watches, any = false, all = true;

        if (!c->looking)
                c->looked_round_ns = boundary;
        c->looking = true;
        if (!probes_look_at_one(c->probes)) {
                /* Then one pass over the host is as dear as each of many. */
                for (Process *p = registry_processes(c->registry); p && !any; p = p->hh.next)
                        any = wants_look(c, p, boundary, &watches);
                all = any && look_at_process(c, 0, true, boundary);
        }
        for (Process *p = registry_processes(c->registry); p; p = p->hh.next) {
                if (p->looked_ns >= c->looked_round_ns || !wants_look(c, p, boundary, &watches))
                        continue;
                if (probes_look_at_one(c->probes)) {
                        if (boot_now() >= until)
                                return;
                        all = look_at_process(c, p->pid, watches, boundary);
                }
                p->looked_ns = boundary;
                if (watches)
                        p->watches_ns = boundary;
                /* What was open before counts from here; what comes is followed from its birth. */
                p->looked_at = p->looked_at || all;
        }
        c->looking = false;
}

int collect_objects(Collector *c, uint64_t boundary) {
        int r;

        /* What was seen since the last tick, then what is open now. */
        r = learn_objects(c, boundary);
        look_at_files(c, boundary);
        return r;
}
