/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The processes, threads and resources that prismd knows, by identity. What is gone is kept for a while, since rows of
 * the last minute still name it. Owned and used by the main thread. */
#pragma once

#define HASH_NONFATAL_OOM 1
/* Not the default one, whose switch falls through its labels in a way that clang warns of. */
#define HASH_FUNCTION HASH_OAT
#include <uthash.h>

#include "batch.h"
#include "../bpf/prism.h"

typedef struct Registry Registry;
typedef struct Process Process;
typedef struct Thread Thread;
typedef struct Resource Resource;

typedef struct Identity {
        uint64_t start_boot_ns; /* 0: unknown */
        uint64_t number;        /* the kernel's own pid or tid */
} Identity;

struct Process {
        Identity identity;
        uint64_t key;
        uint32_t pid, ppid, uid;
        char comm[64];
        char *exe, *cmdline, *cgroup, *unit;
        uint64_t netns;
        uint64_t exit_boot_ns; /* 0: alive, as far as is known */
        const char *found_by;  /* target, child, observed */
        uint64_t found_from;   /* key of a process, 0 if none */
        char *target;          /* name of the target that brought it in */
        uint32_t *targets;     /* numbers of the targets that include it */
        size_t n_targets;
        unsigned live_threads;  /* tracked ones */
        unsigned known_threads; /* those that point here */
        uint32_t execs;
        uint64_t described; /* the epoch in which the store was told of it as it is now */
        uint64_t used_ns;
        uint64_t looked_ns;  /* when its open files were looked at, 0: not yet */
        uint64_t sockets_ns; /* when a socket of it last moved something */
        uint64_t sets_ns;    /* when it last waited on an epoll set */
        uint64_t watches_ns; /* when it was last asked what its sets watch */
        bool has_inet;       /* it was seen with an inet socket */
        bool looked_at;      /* what it had open when it was first followed is known */
        bool observed;       /* counts against the limit of those that are only named */
        bool listed;         /* by its number, as a tracked one */
        UT_hash_handle hh, hh_pid;
};

struct Thread {
        Identity identity;
        uint64_t handle; /* of the kernel side; 0: not tracked, only named as a waker */
        uint64_t key;
        Process *process;
        uint32_t tid;
        unsigned slot;
        uint32_t info_sequence;
        char comm[64];
        bool live;             /* tracked now */
        uint64_t accounted_ns; /* all of its time until here has been written out */
        uint64_t seen_ns;      /* when an iterator last met it */
        uint64_t missing_ns;   /* when an iterator first did not, 0 if it did */
        uint64_t exit_boot_ns;
        uint64_t described, used_ns;
        /* Its interval of this tick, which its waits refer to. */
        uint64_t row_tick, row_from_ns, row_until_ns;
        UT_hash_handle hh_identity, hh_handle;
};

typedef struct ResourceKey {
        uint64_t space, address;
        uint32_t kind;
        /* futex: enum prism_futex_sharing; without space and address: the operation, which is all that tells them apart */
        uint32_t detail;
} ResourceKey;

/* Where a name comes from: a better one replaces it. */
typedef enum NameSource {
        NAME_IDENT,     /* made of the identity */
        NAME_COMPONENT, /* the last component of a path, or a descriptor */
        NAME_FULL,
} NameSource;

/* What one descriptor of a socket was last seen to have moved. */
typedef struct SocketCounters {
        uint64_t seen_ns;
        uint64_t bytes_in, bytes_out;
        uint32_t retransmits;
} SocketCounters;

/* A connection as one end sees it. */
typedef struct ConnectionKey {
        unsigned char local_address[16], remote_address[16];
        uint32_t netns;
        uint16_t local_port, remote_port, protocol, family;
} ConnectionKey;

struct Resource {
        ResourceKey id;
        uint64_t key;
        const char *kind;
        char *ident, *name;
        bool is_private;     /* of a futex of which the kernel side was not sure: it is the private one */
        unsigned name_tries; /* how often it was looked up; enough when there is one */
        uint64_t asked_tick; /* when it was asked for last */
        NameSource name_source;
        struct prism_object *object; /* what the kernel side saw of it last; NULL: nothing */
        SocketCounters counters;     /* as of its last sample */
        uint64_t peer_key;           /* a socket's: the resource at the other end, 0: not known */
        ConnectionKey connection;    /* inet: as which registry_connection() finds it */
        bool is_connection;
        uint64_t described, used_ns;
        UT_hash_handle hh_connection;
        UT_hash_handle hh;
};

typedef struct RegistryLimits {
        unsigned processes; /* tracked ones; and as many again that are only named */
        unsigned resources;
        unsigned threads; /* tracked ones, which others see to; here, of those that have ended or are only named */
} RegistryLimits;

/* Is shown each thing that is forgotten although rows of the last minute may name it. */
typedef struct RegistryForget {
        void (*process)(const Process *p, void *userdata);
        void (*thread)(const Thread *t, void *userdata);
        void (*resource)(const Resource *s, void *userdata);
        void *userdata;
} RegistryForget;

int registry_new(const RegistryLimits *limits, Registry **ret);
Registry *registry_free(Registry *r);
DEFINE_CLEANUP(Registry *, registry_free);

Process *registry_process(Registry *r, const Identity *id);
Process *registry_process_by_pid(Registry *r, uint32_t pid); /* a live one that is tracked */
Process *registry_processes(Registry *r);                    /* iterate with ->hh.next */
/* NULL and errno: ENOMEM, or ENOSPC when the limit is reached. `observed`: it is only named, not followed. */
Process *registry_add_process(Registry *r, const Identity *id, bool observed);
/* Whether it is followed now: what registry_process_by_pid() finds. False if the limit is reached. */
bool registry_list_process(Registry *r, Process *p);
void registry_unlist_process(Registry *r, Process *p);
bool process_in_target(const Process *p, uint32_t target);
int process_add_target(Process *p, uint32_t target);
void process_remove_target(Process *p, uint32_t target);
void process_set_text(char **field, const char *value);

Thread *registry_thread(Registry *r, const Identity *id);
Thread *registry_thread_by_handle(Registry *r, uint64_t handle);
Thread *registry_threads(Registry *r); /* iterate with ->hh_handle.next: those with a handle */
/* Each once, also those that are only named as wakers. `found` must not add or remove any. */
void registry_for_each_thread(Registry *r, void (*found)(Thread *t, void *userdata), void *userdata);
/* handle 0 for a waker that is not tracked. A newer thread of the same identity takes the older one's place in lookups
 * by it. */
Thread *registry_add_thread(Registry *r, const Identity *id, uint64_t handle, Process *process);

/* *created tells that it is new. NULL: ENOMEM or ENOSPC. */
Resource *registry_resource(Registry *r, const struct prism_resource *id, bool *created);
/* The same for an object that is only looked at, not waited for. */
Resource *registry_object(Registry *r, unsigned kind, uint64_t space, uint64_t address, bool *created);
Resource *registry_find(Registry *r, const ResourceKey *id);
Resource *registry_find_object(Registry *r, unsigned kind, uint64_t space, uint64_t address);
/* The socket that was last seen as this end of a connection. */
void registry_note_connection(Registry *r, Resource *resource, const ConnectionKey *key);
Resource *registry_connection(Registry *r, const ConnectionKey *key);
Resource *registry_resources(Registry *r); /* iterate with ->hh.next */

/* Whether more than half of a limit is used up, so that registry_collect() is due. */
bool registry_is_crowded(const Registry *r);
/* Removes what ended, or was last used, so long before `now` that no row of the last minute names it. While that leaves the
 * registry crowded, also what is younger, down to what was used since `generation_ns`: the next tick may bring as much that
 * is new. Whoever holds a pointer to anything here must have let go of it. */
void registry_collect(Registry *r, uint64_t now, uint64_t generation_ns, const RegistryForget *forget);

unsigned registry_n_processes(const Registry *r); /* tracked and alive */
unsigned registry_n_threads(const Registry *r);   /* tracked and alive */
unsigned registry_n_known_processes(const Registry *r);
unsigned registry_n_resources(const Registry *r);
