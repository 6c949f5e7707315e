/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Turns what the kernel side has summed up into rows, once a tick. Owns the registry. The accounts are kept on the boot
 * clock; rows carry Unix time. */
#pragma once

#include <systemd/sd-event.h>

#include "batch.h"
#include "clock.h"
#include "losses.h"
#include "probes.h"
#include "registry.h"

typedef struct Collector Collector;

typedef struct CollectorHooks {
        /* Whether a row that covers (from, until] belongs into a recording. */
        bool (*wanted)(uint64_t from_boot_ns, uint64_t until_boot_ns, void *userdata);
        /* Grows when the store may have missed descriptions: all is described again. Never 0. */
        uint64_t (*epoch)(void *userdata);
        /* A process was seen for the first time as a tracked one: decides which targets it belongs to; without any it
         * will be released. `parent` is its parent if that is known. */
        void (*process_found)(Process *p, Process *parent, const struct prism_thread_info *info, void *userdata);
        void (*process_gone)(Process *p, void *userdata);
        void *userdata;
} CollectorHooks;

int collector_new(sd_event *event, Probes *probes, const RegistryLimits *limits, const CollectorHooks *hooks,
                Collector **ret);
Collector *collector_free(Collector *c);
DEFINE_CLEANUP(Collector *, collector_free);

Registry *collector_registry(Collector *c);
const Clock *collector_clock(const Collector *c);
/* The owner counts its own losses here too. */
Losses *collector_losses(Collector *c);

/* Switches the calls tier; rows of coverage follow. -EOPNOTSUPP if this kernel cannot. */
int collector_set_calls(Collector *c, bool on);

/* Looks for new threads, names and images without waiting for the tick. */
void collector_scan(Collector *c);

/* Closes the current interval at *ret_boundary_ns. With `flush` the states in flight are written out too, so that what
 * is known of every thread reaches to the boundary; the very few that changed state in between follow with the next
 * tick. *ret_live gets all rows; *ret_recorded those that a recording wants, with descriptions. Either may be without
 * rows. `recording`: something is recorded, see clock_update(). */
int collector_tick(Collector *c, bool flush, bool recording, Batch **ret_live, Batch **ret_recorded,
                uint64_t *ret_boundary_ns);

/* Gives names that are being looked up a moment to come with the next tick: it is the last of a recording. */
void collector_wait_for_names(Collector *c);

/* Rows of the states in flight right now, without closing an interval: for a look at this moment. They are not counted as
 * written out. */
int collector_peek(Collector *c, Batch *b);

/* Ends a process's threads here, after the kernel side released them. */
void collector_forget_process(Collector *c, Process *p, uint64_t boundary_ns);
/* The same for all, and for slots that never made it to a thread. */
void collector_forget_all(Collector *c, uint64_t boundary_ns);
