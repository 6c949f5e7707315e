/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the parts of the collector share: collector.c (threads, the tick), rows.c, waits.c, calls.c, objects.c. */
#pragma once

#include "cgroup-time.h"
#include "cgroup.h"
#include "collector.h"
#include "namer.h"

#define NAME_TRIES 3

/* A thread for whose process there was no room. It is tried again at each look, and counted when the first row of it is
 * lost. */
typedef struct Refused {
        uint64_t handle; /* 0: none */
        bool counted;
} Refused;

struct Collector {
        Probes *probes;
        Registry *registry;
        CollectorHooks hooks;
        Clock clock;
        Losses losses;

        Thread **by_slot; /* [n_by_slot], the thread that has the slot now */
        unsigned n_by_slot;
        /* Slots whose thread ended go back after one more turn of the generations, when no program can write them. */
        bool *on_its_way; /* [n_by_slot] */
        Refused *refused; /* [n_by_slot] */
        unsigned *ending, *ended;
        size_t n_ending, c_ending, n_ended, c_ended;

        Namer *namer;
        /* Resources that the store knows by a worse name: told again with the next tick. */
        ResourceKey *renamed;
        size_t n_renamed, c_renamed;
        CgroupNames *cgroups;
        CgroupTimes *cgroup_times;

        uint64_t tick;
        uint64_t generation_ns;   /* when the one that is running began */
        uint64_t looked_round_ns; /* when the round of looks at open files began that goes on, or is over */
        bool flushing;            /* this tick writes out all that is in flight */
        bool looking;             /* it goes on */
        /* When the calls tier was switched on and off last; until 0: it is on. from 0: never. */
        uint64_t calls_from_ns, calls_until_ns;
        unsigned n_missing;       /* threads with missing_ns */
        uint64_t clock_described; /* the epoch in which the store was told of the clock's offset as it is now */
        uint64_t names_until_ns;
        uint64_t kernel_losses[_PRISM_LOSS_MAX], recursion_misses; /* counted so far */

        /* During a tick. */
        Batch *live, *recorded; /* `recorded` is NULL during a peek */
        uint64_t epoch;
};

/* ---- rows.c ---- */

extern const struct prism_resource lost_resource;

/* Whether a row of (from, until] also goes to the recorder. */
bool row_wanted(Collector *c, uint64_t from, uint64_t until);
/* A row that cannot be had is counted, the others go on. */
void note_failure(Collector *c, int r);

void emit_thread_time(Collector *c, Thread *t, uint64_t from, uint64_t until, const BatchThreadTime *sums);
void emit_wait(Collector *c, Thread *t, uint64_t from, uint64_t until, Resource *resource, const BatchWait *sums);
void emit_ran_instead(Collector *c, Thread *t, uint64_t from, uint64_t until, Process *process, uint64_t total);

/* The part of a wait on a set that a watched file ended; NULL: none. */
void emit_mux_wait(Collector *c, Thread *t, uint64_t from, uint64_t until, Resource *set, Resource *watched,
                const char *op, uint64_t count, uint64_t total);
static inline bool is_mux(const Resource *resource) {
        return resource->id.kind == PRISM_KIND_EPOLL || resource->id.kind == PRISM_KIND_POLL;
}

/* The resource, with a name if one can be had in the time that is left for that in this tick. NULL: counted. */
Resource *resource_of(Collector *c, Thread *t, const struct prism_resource *id, uint64_t user_address);

/* A stretch in one state that ended nothing: a lead, or a state in flight. */
typedef struct Stretch {
        uint64_t from, wake, until; /* in `state` from `from` to `wake`, in the run queue to `until` */
        struct prism_resource resource;
        uint64_t user_address;
        unsigned state;
        bool iowait, throttled;
} Stretch;

void emit_stretch(Collector *c, Thread *t, const Stretch *s);

/* ---- collector.c ---- */

/* Reads again what it executes, and where. Of a process that is only named, what it was started with is nobody's business. */
void process_refresh(Process *p);
/* Enters one that is only named. NULL: counted. */
Process *process_observe(Collector *c, const Identity *id, uint32_t pid, const char *comm);

/* ---- waits.c ---- */

/* A process that is only named, entered as observed if it is not known. NULL: counted. */
Process *observed_process(Collector *c, uint32_t tgid, uint64_t start_ns, uint32_t user_tgid, const char *comm);
void collect_inline_insteads(Collector *c, Thread *t, const struct prism_thread_time *row);
int collect_waits(Collector *c, unsigned idle);
int collect_insteads(Collector *c, unsigned idle);

/* ---- calls.c ---- */

/* (from, until] is the generation. */
int collect_calls(Collector *c, unsigned idle, uint64_t from, uint64_t until);

/* ---- objects.c ---- */

int collect_objects(Collector *c, uint64_t boundary);
/* A name that was looked up elsewhere; takes it. */
void take_name(Collector *c, const ResourceKey *id, char *name);
/* The watched file is noted with the set. */
void note_watch(Collector *c, Resource *set, Resource *watched, uint64_t now);

/* ---- usage.c ---- */

/* Block requests of the host, and what control groups used. */
int collect_disks(Collector *c, unsigned idle, uint64_t from, uint64_t until);
int collect_cgroups(Collector *c, uint64_t boundary);
