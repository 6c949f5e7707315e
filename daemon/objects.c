/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is known of the objects that threads wait for and use: names, sockets and their counters, and what epoll sets
 * watch. */
#include "collector-internal.h"
#include "describe.h"
#include "object-name.h"

/* What each process has open is looked at for this long a tick, the others have their turn in the next. */
#define LOOK_TIME_NS (10 * NSEC_PER_MSEC)
/* A set's list is read anew after so long, if it is still used; and so much of it. */
#define WATCHES_EVERY_NS (10 * NSEC_PER_SEC)
#define WATCHES_LINES_MAX 4096
#define NAME_TRIES 3
/* A process whose sockets moved something within this time is looked at each tick. */
#define SOCKETS_RECENT_NS (2 * NSEC_PER_SEC)

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
        return a->state == b->state && a->local_port == b->local_port && a->remote_port == b->remote_port &&
                        memcmp(a->local_address, b->local_address, sizeof(a->local_address)) == 0 &&
                        memcmp(a->remote_address, b->remote_address, sizeof(a->remote_address)) == 0 &&
                        a->cookie == b->cookie && a->peer_inode == b->peer_inode && a->path_length == b->path_length &&
                        memcmp(a->path, b->path, sizeof(a->path)) == 0;
}

static void sample_socket(Collector *c, Resource *s, const struct prism_object *o, bool from_birth) {
        SocketCounters *last = &s->counters;
        BatchSocketSample row;
        uint64_t from;

        if (!o->has_counters || o->seen_ns <= last->seen_ns)
                return;
        /* One that was there before its process was followed has moved bytes that are not ours. */
        if (last->seen_ns == 0 && !from_birth) {
                *last = (SocketCounters){ o->seen_ns, o->bytes_in, o->bytes_out, o->retransmits };
                return;
        }
        from = last->seen_ns ? last->seen_ns : MIN(c->generation_ns, o->seen_ns - 1);
        row = (BatchSocketSample){
                .ts_ns = clock_unix(&c->clock, o->seen_ns),
                .dt_ns = (int64_t) (o->seen_ns - from),
                .resource_key = s->key,
                .bytes_in = o->bytes_in - MIN(last->bytes_in, o->bytes_in),
                .bytes_out = o->bytes_out - MIN(last->bytes_out, o->bytes_out),
                .retransmits = o->retransmits - MIN(last->retransmits, o->retransmits),
                .srtt_ns = (uint64_t) o->srtt_us * 1000,
                .send_queue = o->send_queue,
                .receive_queue = o->receive_queue,
        };
        *last = (SocketCounters){ o->seen_ns, o->bytes_in, o->bytes_out, o->retransmits };
        note_failure(c, batch_add_socket_sample(c->live, &row));
        if (row_wanted(c, from, o->seen_ns)) {
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

/* Both ends of a connection within a network namespace know each other by their addresses. */
static void pair_connection(Collector *c, Resource *s, const struct prism_object *o) {
        ConnectionKey key = {
                .netns = o->netns,
                .local_port = o->local_port,
                .remote_port = o->remote_port,
                .protocol = o->protocol,
                .family = o->family,
        };
        ConnectionKey reverse = key;
        Resource *peer;

        memcpy(key.local_address, o->local_address, sizeof(key.local_address));
        memcpy(key.remote_address, o->remote_address, sizeof(key.remote_address));
        registry_note_connection(c->registry, s, &key);
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

static void learn_socket(Collector *c, Resource *s, const struct prism_object *o, const Process *p, uint64_t boundary) {
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
                }
        } else if (s->id.kind == PRISM_KIND_INET && o->remote_port && o->local_port)
                pair_connection(c, s, o);
        sample_socket(c, s, o, p && p->looked_at);
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

/* What a set watches, also what it was given before it was followed: as /proc says it. Files without a number of their own
 * are found by their descriptor, as the kernel side last described it. */
static void read_watches(Collector *c, Resource *set, uint32_t pid, int descriptor, uint64_t boundary) {
        _cleanup_fclose_ FILE *f = NULL;
        char path[64], line[256];
        unsigned n = 0;

        set->looked_ns = boundary;
        snprintf(path, sizeof(path), "/proc/%u/fdinfo/%d", pid, descriptor);
        f = fopen(path, "re");
        if (!f)
                return;
        while (n < WATCHES_LINES_MAX && fgets(line, sizeof(line), f)) {
                static const unsigned kinds[] = { PRISM_KIND_INET, PRISM_KIND_UNIX, PRISM_KIND_PIPE,
                        PRISM_KIND_SOCKET };
                Resource *watched = NULL;
                WatchedFile w;

                if (!watched_file_parse(line, &w))
                        continue;
                n++;
                for (size_t i = 0; i < ELEMENTSOF(kinds) && !watched; i++)
                        watched = registry_find_object(c->registry, kinds[i], w.inode, 0);
                if (!watched)
                        watched = registry_opened(c->registry, pid, w.descriptor);
                if (watched)
                        note_watch(c, set, watched, boundary);
        }
        if (n == WATCHES_LINES_MAX)
                losses_count(&c->losses, "collector", "epoll-watches", 1);
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
        if (t && o->descriptor >= 0)
                registry_note_opened(c->registry, s, t->process->pid, o->descriptor);
        name = object_name(key->kind, o, &source);
        if (name)
                set_name(s, name, source);
        if (is_socket(s))
                learn_socket(c, s, o, t ? t->process : NULL, boundary);
        if (names_a_path(s) && t && t->process->pid && s->name_tries < NAME_TRIES && boot_now() < c->names_until_ns) {
                s->name_tries++;
                name = o->descriptor >= 0 ? object_path_by_descriptor(t->process->pid, o->descriptor, &s->id)
                                : s->id.kind == PRISM_KIND_PAGE_FAULT
                                ? object_path_by_mapping(t->process->pid, s->id.space)
                                : NULL;
                if (name)
                        set_name(s, name, NAME_FULL);
        }
}

/* Looks at what processes have open: of those that are new, and of those whose sockets moved something lately. One round
 * may take several ticks. */
static void look_at_files(Collector *c, uint64_t boundary) {
        uint64_t until = boot_now() + LOOK_TIME_NS;

        if (!c->looking)
                c->looked_round_ns = boundary;
        c->looking = true;
        for (Process *p = registry_processes(c->registry); p; p = p->hh.next) {
                if (p->live_threads == 0 || p->pid == 0 || p->looked_ns >= c->looked_round_ns)
                        continue;
                if (p->looked_ns != 0 && p->sockets_ns + SOCKETS_RECENT_NS < boundary)
                        continue;
                if (boot_now() >= until)
                        return;
                note_failure(c, probes_look_at_files(c->probes, p->pid));
                p->looked_ns = boundary;
        }
        c->looking = false;
}

int collect_objects(Collector *c, uint64_t boundary) {
        const struct prism_object_key *keys;
        const struct prism_object *objects;
        size_t n;
        int r;

        look_at_files(c, boundary);
        r = probes_drain_objects(c->probes, &keys, &objects, &n);
        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++) {
                Thread *t = registry_thread_by_handle(c->registry, objects[i].thread);

                learn(c, &keys[i], &objects[i], boundary);
                if (t && keys[i].kind == PRISM_KIND_INET)
                        t->process->sockets_ns = boundary;
        }
        for (size_t i = 0; i < n; i++) {
                Thread *t = registry_thread_by_handle(c->registry, objects[i].thread);
                Resource *s;

                if (keys[i].kind != PRISM_KIND_EPOLL || !t || t->process->pid == 0 || objects[i].descriptor < 0 ||
                                boot_now() >= c->names_until_ns)
                        continue;
                s = registry_find_object(c->registry, keys[i].kind, keys[i].space, keys[i].address);
                if (s && (s->looked_ns == 0 || s->looked_ns + WATCHES_EVERY_NS < boundary))
                        read_watches(c, s, t->process->pid, objects[i].descriptor, boundary);
        }
        /* What was open before counts from here; what comes is followed from its birth. */
        for (Process *p = registry_processes(c->registry); p; p = p->hh.next)
                if (p->looked_ns != 0)
                        p->looked_at = true;
        return 0;
}
