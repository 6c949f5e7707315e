/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "describe.h"

#include <netinet/in.h>

#include "object-name.h"

int redescribe_process(Batch *b, const Process *p, const Clock *clock) {
        return batch_add_process(b,
                        &(BatchProcess){
                                        .key = p->key,
                                        .parent_key = p->found_from,
                                        .start_boot_ns = (int64_t) p->identity.start_boot_ns,
                                        .start_ns = clock_unix(clock, p->identity.start_boot_ns),
                                        .exit_ns = p->exit_boot_ns ? clock_unix(clock, p->exit_boot_ns) : 0,
                                        .pid = p->pid,
                                        .host_pid = (uint32_t) p->identity.number,
                                        .ppid = p->ppid,
                                        .uid = p->uid,
                                        .netns = p->netns,
                                        .comm = p->comm,
                                        .exe = p->exe,
                                        .cmdline = p->cmdline,
                                        .cgroup = p->cgroup,
                                        .unit = p->unit,
                                        .found_by = p->found_by,
                                        .target = p->target,
                        });
}

int redescribe_thread(Batch *b, const Thread *t, const Clock *clock) {
        return batch_add_thread(b,
                        &(BatchThread){
                                        .key = t->key,
                                        .process_key = t->process->key,
                                        .start_boot_ns = (int64_t) t->identity.start_boot_ns,
                                        .start_ns = clock_unix(clock, t->identity.start_boot_ns),
                                        .exit_ns = t->exit_boot_ns ? clock_unix(clock, t->exit_boot_ns) : 0,
                                        .tid = t->tid,
                                        .host_tid = (uint32_t) t->identity.number,
                                        .comm = t->comm,
                        });
}

static int add_socket(Batch *b, const Resource *s) {
        char local[INET6_ADDRSTRLEN], remote[INET6_ADDRSTRLEN];
        const struct prism_object *o = s->object;
        _cleanup_free_ char *path = object_path(o);
        bool inet = s->id.kind == PRISM_KIND_INET;

        if (inet) {
                object_address(o->family, o->local_address, local, sizeof(local));
                object_address(o->family, o->remote_address, remote, sizeof(remote));
        }
        return batch_add_socket(b,
                        &(BatchSocket){
                                        .resource_key = s->key,
                                        .family = o->family,
                                        .type = o->type,
                                        .protocol = o->protocol,
                                        .state = o->state,
                                        .netns = o->netns,
                                        .local_addr = inet ? local : NULL,
                                        .remote_addr = inet && o->remote_port ? remote : NULL,
                                        .local_port = o->local_port,
                                        .remote_port = o->remote_port,
                                        .path = path,
                                        .cookie = o->cookie,
                                        .peer_resource_key = s->peer_key,
                        });
}

int redescribe_resource(Batch *b, const Resource *s) {
        int r;

        r = batch_add_resource(b,
                        &(BatchResource){
                                        .key = s->key,
                                        .kind = s->kind,
                                        .ident = s->ident,
                                        .name = s->name,
                        });
        if (r >= 0 && s->object)
                r = add_socket(b, s);
        return r;
}

void describe_process(Batch *b, Process *p, const Clock *clock, uint64_t epoch) {
        if (p->described != epoch && redescribe_process(b, p, clock) >= 0)
                p->described = epoch;
}

void describe_thread(Batch *b, Thread *t, const Clock *clock, uint64_t epoch) {
        describe_process(b, t->process, clock, epoch);
        if (t->described != epoch && redescribe_thread(b, t, clock) >= 0)
                t->described = epoch;
}

void describe_resource(Batch *b, Resource *s, uint64_t epoch) {
        if (s->described != epoch && redescribe_resource(b, s) >= 0)
                s->described = epoch;
}

typedef struct DescribeAll {
        Batch *batch;
        const Clock *clock;
        int r;
} DescribeAll;

static void describe_one_thread(Thread *t, void *userdata) {
        DescribeAll *d = userdata;

        if (d->r >= 0)
                d->r = redescribe_thread(d->batch, t, d->clock);
}

int describe_all(Batch *b, Registry *registry, const Clock *clock) {
        DescribeAll d = { .batch = b, .clock = clock };
        int r;

        for (Process *p = registry_processes(registry); p; p = p->hh.next) {
                r = redescribe_process(b, p, clock);
                if (r < 0)
                        return r;
        }
        registry_for_each_thread(registry, describe_one_thread, &d);
        if (d.r < 0)
                return d.r;
        for (Resource *s = registry_resources(registry); s; s = s->hh.next) {
                r = redescribe_resource(b, s);
                if (r < 0)
                        return r;
        }
        return 0;
}
