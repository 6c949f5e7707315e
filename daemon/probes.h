/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The kernel side as prismd sees it: loading part by part, marking threads, turning generations over, reading maps.
 * Knows nothing of processes or rows. All calls from the main thread. */
#pragma once

#include "basic/macro.h"
#include "../bpf/prism.h"

typedef struct Probes Probes;

typedef struct ProbesLimits {
        unsigned threads;  /* tracked at a time */
        unsigned waits;    /* different (thread, resource, operation, waker) a tick; and half as many calls */
        unsigned insteads; /* different (thread, process that ran instead) a tick */
} ProbesLimits;

typedef enum PartState {
        PART_OK,
        PART_DEGRADED,
        PART_UNAVAILABLE,
} PartState;

/* One part of what prism measures, and whether this kernel can give it. */
typedef struct Part {
        const char *name;
        PartState state;
        char reason[200]; /* why not "ok", and what helps; empty when it is */
} Part;

/* Loads and attaches. -EPERM, -EOPNOTSUPP (no BTF, too old) and others come with a sentence in *ret_error. A part that
 * this kernel lacks does not fail it. */
int probes_new(const ProbesLimits *limits, Probes **ret, char **ret_error);
Probes *probes_free(Probes *p);
DEFINE_CLEANUP(Probes *, probes_free);

const Part *probes_parts(const Probes *p, size_t *ret_n);
bool probes_in_own_pid_namespace(const Probes *p);
uint64_t probes_map_bytes(const Probes *p);

/* Whether programs do anything at all, and whether each exec on the host is reported. */
void probes_set_active(Probes *p, bool active, bool report_execs);

/* Makes all threads of the process tracked, under `follow` and `target` from now on also those that were; returns how many
 * were new. pid as prismd's namespace numbers it. */
int probes_mark(Probes *p, uint32_t pid, enum prism_follow follow, uint32_t target);
/* Releases the threads of the process with that number of the kernel's own, or of all with PRISM_UNMARK_ALL. Their last
 * state is not written out: flush first. -EBUSY if some could not be released. */
int probes_unmark(Probes *p, uint32_t host_pid);

/* Starts a new generation and waits until no program uses the old one. *ret_idle is the old one's index, *ret_start_ns
 * the moment at which the new one began. `flush`: the caller will write out all states in flight at that moment
 * (probes_inflight()). */
int probes_flip(Probes *p, bool flush, unsigned *ret_idle, uint64_t *ret_start_ns);

/* Slots that were ever used; indexes of the arrays below. */
unsigned probes_slots(const Probes *p);
unsigned probes_free_slots(const Probes *p);
/* The element of a slot in the idle generation; the caller clears it after reading. */
struct prism_thread_time *probes_thread_time(Probes *p, unsigned idle, unsigned slot);
/* A consistent copy; false while it is being written. */
bool probes_thread_info(Probes *p, unsigned slot, struct prism_thread_info *ret);
unsigned probes_info_sequence(const Probes *p, unsigned slot);
void probes_slot_release(Probes *p, unsigned slot);

/* Removes all entries of an idle generation's map. The arrays belong to Probes and are valid until the next call. */
int probes_drain_waits(Probes *p, unsigned idle, const struct prism_wait_key **ret_keys,
                const struct prism_wait_value **ret_values, size_t *ret_n);
int probes_drain_insteads(Probes *p, unsigned idle, const struct prism_instead_key **ret_keys,
                const struct prism_instead_value **ret_values, size_t *ret_n);

int probes_drain_calls(Probes *p, unsigned idle, const struct prism_call_key **ret_keys,
                const struct prism_call_value **ret_values, size_t *ret_n);
/* What the kernel side has seen of objects since the last call; belongs to no generation. */
int probes_drain_objects(Probes *p, const struct prism_object_key **ret_keys, const struct prism_object **ret_objects,
                size_t *ret_n);
/* Block requests of the whole host that ended in the generation. */
int probes_drain_disks(Probes *p, unsigned idle, const struct prism_disk_key **ret_keys,
                const struct prism_disk_value **ret_values, size_t *ret_n);
/* Has the kernel side describe the sockets, pipes and the like that a tracked process has open (with 0: all of them); with
 * `watches` also says what its epoll sets watch. The caller frees *ret. */
int probes_look_at_files(Probes *p, uint32_t pid, bool watches, struct prism_watch **ret, size_t *ret_n);
/* Whether a look at one process costs no more than that (6.1). */
bool probes_look_at_one(const Probes *p);

/* The calls tier: costs every system call of the host while it is on. -EOPNOTSUPP if this kernel cannot. */
int probes_set_calls(Probes *p, bool on);
bool probes_calls(const Probes *p);
bool probes_can_count_calls(const Probes *p);

/* The state that each tracked thread is in now. The caller frees *ret. */
int probes_inflight(Probes *p, struct prism_inflight **ret, size_t *ret_n);

/* Rare events: a descriptor to poll, and a call that hands over what is there. */
int probes_events_fd(const Probes *p);
typedef void (*probes_event_handler)(const struct prism_event *event, void *userdata);
int probes_events_consume(Probes *p, probes_event_handler handler, void *userdata);

/* Counters since start, by enum prism_loss. */
uint64_t probes_loss(const Probes *p, enum prism_loss reason);
/* Runs that the kernel left out because the same program was running on that CPU. */
uint64_t probes_recursion_misses(const Probes *p);
