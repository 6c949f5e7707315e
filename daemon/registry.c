/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "registry.h"

#include <limits.h>

#include "names.h"

/* Longer than the last minute that GetSnapshot gives. */
#define KEEP_ENDED_NS (90 * NSEC_PER_SEC)
#define KEEP_UNUSED_NS (600 * NSEC_PER_SEC)
/* Longer than the last rows of a thread that ended, and those that name it as a waker, need to come. */
#define KEEP_LEAST_NS (3 * NSEC_PER_SEC)

struct Registry {
        RegistryLimits limits;
        Process *processes, *by_pid;
        unsigned n_observed;
        Thread *by_identity, *by_handle;
        Resource *resources, *by_connection;
        uint64_t next_key;
};

int registry_new(const RegistryLimits *limits, Registry **ret) {
        Registry *r = calloc(1, sizeof(*r));

        if (!r)
                return -ENOMEM;
        r->limits = *limits;
        *ret = r;
        return 0;
}

static void process_free(Process *p) {
        free(p->exe);
        free(p->cmdline);
        free(p->cgroup);
        free(p->unit);
        free(p->target);
        free(p->targets);
        free(p);
}

static void resource_free(Resource *resource) {
        free(resource->ident);
        free(resource->name);
        free(resource->object);
        free(resource);
}

static void unlist_connection(Registry *r, Resource *resource) {
        if (resource->is_connection)
                HASH_DELETE(hh_connection, r->by_connection, resource);
        resource->is_connection = false;
}

static void remove_thread(Registry *r, Thread *t) {
        Thread *found = NULL;

        HASH_FIND(hh_identity, r->by_identity, &t->identity, sizeof(t->identity), found);
        if (found == t)
                HASH_DELETE(hh_identity, r->by_identity, t);
        if (t->handle)
                HASH_DELETE(hh_handle, r->by_handle, t);
        t->process->known_threads--;
        free(t);
}

Registry *registry_free(Registry *r) {
        Thread *t, *t_next;
        Process *p, *p_next;
        Resource *s, *s_next;

        if (!r)
                return NULL;
        HASH_ITER(hh_handle, r->by_handle, t, t_next)
                remove_thread(r, t);
        HASH_ITER(hh_identity, r->by_identity, t, t_next)
                remove_thread(r, t);
        HASH_ITER(hh, r->processes, p, p_next) {
                registry_unlist_process(r, p);
                HASH_DEL(r->processes, p);
                process_free(p);
        }
        HASH_ITER(hh, r->resources, s, s_next) {
                unlist_connection(r, s);
                HASH_DEL(r->resources, s);
                resource_free(s);
        }
        free(r);
        return NULL;
}

Process *registry_process(Registry *r, const Identity *id) {
        Process *p = NULL;

        HASH_FIND(hh, r->processes, id, sizeof(*id), p);
        return p;
}

Process *registry_process_by_pid(Registry *r, uint32_t pid) {
        Process *p = NULL;

        HASH_FIND(hh_pid, r->by_pid, &pid, sizeof(pid), p);
        return p;
}

bool registry_list_process(Registry *r, Process *p) {
        if (p->observed) {
                if (HASH_COUNT(r->processes) - r->n_observed >= r->limits.processes)
                        return false;
                p->observed = false;
                r->n_observed--;
        }
        if (!p->listed && p->pid && !registry_process_by_pid(r, p->pid)) {
                HASH_ADD(hh_pid, r->by_pid, pid, sizeof(p->pid), p);
                p->listed = true;
        }
        return true;
}

void registry_unlist_process(Registry *r, Process *p) {
        if (p->listed)
                HASH_DELETE(hh_pid, r->by_pid, p);
        p->listed = false;
}

Process *registry_processes(Registry *r) {
        return r->processes;
}

Process *registry_add_process(Registry *r, const Identity *id, bool observed) {
        unsigned n = observed ? r->n_observed : HASH_COUNT(r->processes) - r->n_observed;
        Process *p;

        if (n >= r->limits.processes) {
                errno = ENOSPC;
                return NULL;
        }
        p = calloc(1, sizeof(*p));
        if (!p)
                return NULL;
        p->identity = *id;
        p->key = ++r->next_key;
        p->found_by = "observed";
        p->observed = observed;
        HASH_ADD(hh, r->processes, identity, sizeof(p->identity), p);
        if (!p->hh.tbl) {
                process_free(p);
                errno = ENOMEM;
                return NULL;
        }
        r->n_observed += observed;
        return p;
}

bool process_in_target(const Process *p, uint32_t target) {
        for (size_t i = 0; i < p->n_targets; i++)
                if (p->targets[i] == target)
                        return true;
        return false;
}

int process_add_target(Process *p, uint32_t target) {
        uint32_t *grown;

        if (process_in_target(p, target))
                return 0;
        grown = reallocarray(p->targets, p->n_targets + 1, sizeof(*grown));
        if (!grown)
                return -ENOMEM;
        p->targets = grown;
        p->targets[p->n_targets++] = target;
        return 1;
}

void process_remove_target(Process *p, uint32_t target) {
        for (size_t i = 0; i < p->n_targets; i++)
                if (p->targets[i] == target) {
                        p->targets[i] = p->targets[--p->n_targets];
                        return;
                }
}

void process_set_text(char **field, const char *value) {
        char *copy;

        if (!value || (*field && streq(*field, value)))
                return;
        copy = strdup(value);
        if (!copy)
                return;
        free(*field);
        *field = copy;
}

Thread *registry_thread(Registry *r, const Identity *id) {
        Thread *t = NULL;

        HASH_FIND(hh_identity, r->by_identity, id, sizeof(*id), t);
        return t;
}

Thread *registry_thread_by_handle(Registry *r, uint64_t handle) {
        Thread *t = NULL;

        HASH_FIND(hh_handle, r->by_handle, &handle, sizeof(handle), t);
        return t;
}

Thread *registry_threads(Registry *r) {
        return r->by_handle;
}

void registry_for_each_thread(Registry *r, void (*found)(Thread *t, void *userdata), void *userdata) {
        for (Thread *t = r->by_handle; t; t = t->hh_handle.next)
                found(t, userdata);
        for (Thread *t = r->by_identity; t; t = t->hh_identity.next)
                if (!t->handle)
                        found(t, userdata);
}

Thread *registry_add_thread(Registry *r, const Identity *id, uint64_t handle, Process *process) {
        Thread *t, *older;

        t = calloc(1, sizeof(*t));
        if (!t)
                return NULL;
        t->identity = *id;
        t->handle = handle;
        t->key = ++r->next_key;
        t->process = process;
        process->known_threads++;

        older = registry_thread(r, id);
        if (older) {
                HASH_DELETE(hh_identity, r->by_identity, older);
                if (!older->handle) {
                        /* Rows of the last minute name it: it is the same thread. */
                        t->key = older->key;
                        older->process->known_threads--;
                        free(older);
                }
        }
        HASH_ADD(hh_identity, r->by_identity, identity, sizeof(t->identity), t);
        if (handle)
                HASH_ADD(hh_handle, r->by_handle, handle, sizeof(t->handle), t);
        return t;
}

/* What makes a resource unique within its boot and kind, as text. */
static char *resource_ident(const struct prism_resource *id) {
        unsigned long long space = id->space, address = id->address;
        char *text = NULL;
        int n;

        if (space == 0 && address == 0 && id->kind != PRISM_KIND_FUTEX)
                return strdup(op_name(id->kind, id->op));
        switch (id->kind) {
        case PRISM_KIND_FUTEX:
                n = id->shared == PRISM_FUTEX_SHARED
                                ? asprintf(&text, "shared:%llu+0x%llx", space, address)
                                : asprintf(&text, "%s:%llu:0x%llx",
                                                  id->shared == PRISM_FUTEX_UNSURE ? "unsure" : "private", space,
                                                  address);
                break;
        case PRISM_KIND_PIPE:
        case PRISM_KIND_UNIX:
        case PRISM_KIND_INET:
        case PRISM_KIND_SOCKET:
        case PRISM_KIND_IO_URING:
                n = asprintf(&text, "inode:%llu", space);
                break;
        case PRISM_KIND_FILE:
        case PRISM_KIND_FIFO:
        case PRISM_KIND_PAGE_FAULT:
                n = address & PRISM_BY_PATH ? asprintf(&text, "path:0x%llx:%llu", space, address & ~PRISM_BY_PATH)
                                            : asprintf(&text, "%llu:%llu:%llu:%llu", address >> 52,
                                                              address >> 32 & 0xfffff, space, address & 0xffffffff);
                break;
        case PRISM_KIND_CHARDEV:
                n = asprintf(&text, "%llu:%llu:0x%llx", space >> 20, space & 0xfffff, address);
                break;
        case PRISM_KIND_DISK:
                n = asprintf(&text, "%llu:%llu", space >> 20, space & 0xfffff);
                break;
        case PRISM_KIND_POLL:
                n = asprintf(&text, "set:0x%llx:%llu", space, address);
                break;
        case PRISM_KIND_AIO:
                n = asprintf(&text, "context:%llu:0x%llx", space, address);
                break;
        case PRISM_KIND_KERNEL_LOCK:
                n = address ? asprintf(&text, "mmap_lock:%llu", space) : asprintf(&text, "lock:0x%llx", space);
                break;
        case PRISM_KIND_OTHER:
                n = address ? asprintf(&text, "file:0x%llx:%llu", space, address)
                            : asprintf(&text, "%s:%llu", op_name(id->kind, id->op), space);
                break;
        default: /* files of the kernel that have no number of their own */
                n = asprintf(&text, "file:0x%llx:%llu", space, address);
        }
        return n < 0 ? NULL : text;
}

/* What it is called until something better is known. */
static char *resource_first_name(const struct prism_resource *id, const char *ident) {
        unsigned long long space = id->space;
        char *text = NULL;
        int n;

        if (space == 0 && id->address == 0)
                return strdup(ident);
        switch (id->kind) {
        case PRISM_KIND_FUTEX:
                return NULL;
        case PRISM_KIND_PIPE:
                n = asprintf(&text, "pipe:[%llu]", space);
                break;
        case PRISM_KIND_UNIX:
        case PRISM_KIND_INET:
        case PRISM_KIND_SOCKET:
                n = asprintf(&text, "socket:[%llu]", space);
                break;
        case PRISM_KIND_IO_URING:
                n = asprintf(&text, "io_uring:[%llu]", space);
                break;
        case PRISM_KIND_AIO:
                return strdup("context");
        case PRISM_KIND_KERNEL_LOCK:
                if (id->address)
                        return strdup("mmap_lock");
                n = asprintf(&text, "lock %08llx", space & 0xffffffff);
                break;
        case PRISM_KIND_EPOLL:
        case PRISM_KIND_EVENTFD:
        case PRISM_KIND_TIMERFD:
        case PRISM_KIND_SIGNALFD:
        case PRISM_KIND_INOTIFY:
        case PRISM_KIND_POLL:
                return strdup(kind_name(id->kind));
        default:
                return strdup(ident);
        }
        return n < 0 ? NULL : text;
}

static ResourceKey resource_key(const struct prism_resource *id) {
        ResourceKey key = { .space = id->space, .address = id->address, .kind = id->kind };

        if (id->kind == PRISM_KIND_FUTEX)
                key.detail = id->shared;
        else if ((id->space == 0 && id->address == 0) || (id->kind == PRISM_KIND_OTHER && id->address == 0))
                key.detail = id->op;
        return key;
}

Resource *registry_resource(Registry *r, const struct prism_resource *id, bool *created) {
        ResourceKey key = resource_key(id);
        Resource *resource = NULL;

        *created = false;
        HASH_FIND(hh, r->resources, &key, sizeof(key), resource);
        if (resource)
                return resource;

        if (HASH_COUNT(r->resources) >= r->limits.resources && (id->space || id->address)) {
                errno = ENOSPC;
                return NULL;
        }
        resource = calloc(1, sizeof(*resource));
        if (!resource)
                return NULL;
        resource->id = key;
        resource->key = ++r->next_key;
        resource->kind = kind_name(id->kind);
        resource->ident = resource_ident(id);
        if (!resource->ident) {
                resource_free(resource);
                errno = ENOMEM;
                return NULL;
        }
        resource->name = resource_first_name(id, resource->ident);
        if (id->space == 0 && id->address == 0) {
                resource->name_source = NAME_FULL;
                resource->name_tries = UINT_MAX;
        }
        HASH_ADD(hh, r->resources, id, sizeof(resource->id), resource);
        if (!resource->hh.tbl) {
                resource_free(resource);
                errno = ENOMEM;
                return NULL;
        }
        *created = true;
        return resource;
}

Resource *registry_object(Registry *r, unsigned kind, uint64_t space, uint64_t address, bool *created) {
        struct prism_resource id = { .space = space, .address = address, .kind = (unsigned char) kind };

        return registry_resource(r, &id, created);
}

Resource *registry_find(Registry *r, const ResourceKey *id) {
        Resource *resource = NULL;

        HASH_FIND(hh, r->resources, id, sizeof(*id), resource);
        return resource;
}

Resource *registry_find_object(Registry *r, unsigned kind, uint64_t space, uint64_t address) {
        return registry_find(r, &(ResourceKey){ .space = space, .address = address, .kind = kind });
}

void registry_note_connection(Registry *r, Resource *resource, const ConnectionKey *key) {
        Resource *other = registry_connection(r, key);

        if (other == resource)
                return;
        if (other)
                unlist_connection(r, other);
        unlist_connection(r, resource);
        resource->connection = *key;
        HASH_ADD(hh_connection, r->by_connection, connection, sizeof(resource->connection), resource);
        resource->is_connection = resource->hh_connection.tbl != NULL;
}

Resource *registry_connection(Registry *r, const ConnectionKey *key) {
        Resource *resource = NULL;

        HASH_FIND(hh_connection, r->by_connection, key, sizeof(*key), resource);
        return resource;
}

Resource *registry_resources(Registry *r) {
        return r->resources;
}

static bool ended_are_crowded(const Registry *r) {
        unsigned followed = HASH_COUNT(r->processes) - r->n_observed;

        return followed > r->limits.processes / 2 || r->n_observed > r->limits.processes / 2 ||
                        HASH_CNT(hh_identity, r->by_identity) > r->limits.threads + r->limits.threads / 2;
}

static bool resources_are_crowded(const Registry *r) {
        return HASH_COUNT(r->resources) > r->limits.resources / 2;
}

bool registry_is_crowded(const Registry *r) {
        return ended_are_crowded(r) || resources_are_crowded(r);
}

/* Threads that ended, or were last seen to wake, before; and the processes that are left without any. */
static void remove_ended(Registry *r, uint64_t before, const RegistryForget *forget) {
        Thread *t, *t_next;
        Process *p, *p_next;

        HASH_ITER(hh_handle, r->by_handle, t, t_next)
                if (!t->live && t->exit_boot_ns < before && t->used_ns < before) {
                        t->process->used_ns = MAX(t->process->used_ns, t->used_ns);
                        if (forget)
                                forget->thread(t, forget->userdata);
                        remove_thread(r, t);
                }
        HASH_ITER(hh_identity, r->by_identity, t, t_next)
                if (!t->handle && t->used_ns < before) {
                        if (forget)
                                forget->thread(t, forget->userdata);
                        remove_thread(r, t);
                }
        HASH_ITER(hh, r->processes, p, p_next)
                if (p->live_threads == 0 && p->known_threads == 0 && p->used_ns < before) {
                        if (forget)
                                forget->process(p, forget->userdata);
                        registry_unlist_process(r, p);
                        r->n_observed -= p->observed;
                        HASH_DEL(r->processes, p);
                        process_free(p);
                }
}

static void remove_unused(Registry *r, uint64_t before, uint64_t futexes_before, const RegistryForget *forget) {
        Resource *s, *s_next;

        HASH_ITER(hh, r->resources, s, s_next)
                if (s->used_ns < (s->id.kind == PRISM_KIND_FUTEX ? futexes_before : before)) {
                        if (forget)
                                forget->resource(s, forget->userdata);
                        unlist_connection(r, s);
                        HASH_DEL(r->resources, s);
                        resource_free(s);
                }
}

/* Soon after boot the clock is below the time to keep. */
static uint64_t ago(uint64_t now, uint64_t ns) {
        return now > ns ? now - ns : 0;
}

void registry_collect(Registry *r, uint64_t now, uint64_t generation_ns, const RegistryForget *forget) {
        remove_ended(r, ago(now, KEEP_ENDED_NS), NULL);
        /* A futex comes back; what was closed does not. */
        remove_unused(r, ago(now, KEEP_ENDED_NS), ago(now, KEEP_UNUSED_NS), NULL);

        for (uint64_t keep = KEEP_ENDED_NS / 3; keep >= KEEP_LEAST_NS && registry_is_crowded(r); keep /= 3) {
                if (ended_are_crowded(r))
                        remove_ended(r, ago(now, keep), forget);
                if (resources_are_crowded(r))
                        remove_unused(r, ago(now, keep), ago(now, keep), forget);
        }
        if (resources_are_crowded(r))
                remove_unused(r, generation_ns, generation_ns, forget);
}

unsigned registry_n_processes(const Registry *r) {
        unsigned n = 0;

        for (Process *p = r->processes; p; p = p->hh.next)
                n += p->live_threads > 0;
        return n;
}

unsigned registry_n_threads(const Registry *r) {
        unsigned n = 0;

        for (Thread *t = r->by_handle; t; t = t->hh_handle.next)
                n += t->live;
        return n;
}

unsigned registry_n_known_processes(const Registry *r) {
        return HASH_COUNT(r->processes);
}

unsigned registry_n_resources(const Registry *r) {
        return HASH_COUNT(r->resources);
}
