/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What control groups that hold followed processes used and were refused: CPU time, throttling, memory. Read from the
 * mounted hierarchies once a tick, cgroup v1 and v2. Owned and used by the main thread. */
#pragma once

#include "basic/macro.h"

/* At most so many groups are read a tick. */
#define CGROUP_TIMES_MAX 256

/* Totals since the group was made, or what came to them in an interval. -1: unknown. */
typedef struct CgroupValues {
        int64_t usage_ns, throttled_ns, throttled_periods;
        int64_t memory_bytes;  /* now, never a difference */
        int64_t memory_events; /* how often the group met a limit of its memory */
} CgroupValues;

#define CGROUP_VALUES_UNKNOWN ((CgroupValues){ -1, -1, -1, -1, -1 })

typedef struct CgroupTimes CgroupTimes;

int cgroup_times_new(CgroupTimes **ret);
CgroupTimes *cgroup_times_free(CgroupTimes *t);
DEFINE_CLEANUP(CgroupTimes *, cgroup_times_free);

/* A tick is: begin, then one call for each followed process that is alive (pid as prismd's namespace numbers it), then
 * collect. */
void cgroup_times_begin(CgroupTimes *t);
int cgroup_times_process(CgroupTimes *t, uint32_t pid, uint64_t start_boot_ns, uint64_t now_ns);

/* What a group used in (from_ns, until_ns]. Negative: the error is passed on, the other groups are read all the
 * same. */
typedef int (*cgroup_times_emit)(
                const char *path, uint64_t from_ns, uint64_t until_ns, const CgroupValues *values, void *userdata);

/* Reads the groups of the processes named since begin, and those above them. A group that is met for the first
 * time only gives the values to compare with. After that it is emitted when something changed; one that only lies
 * above others, when it met a limit. The root, whose numbers are the machine's, never is. *ret_left_out: groups
 * that were not read because there are more than CGROUP_TIMES_MAX. */
int cgroup_times_collect(
                CgroupTimes *t, uint64_t boundary_ns, cgroup_times_emit emit, void *userdata, unsigned *ret_left_out);

/* ---- Pure parts ---- */

/* The number behind `name` in a file of lines "name number". -ENOENT; -EINVAL for what is not a number or does not
 * fit. */
int cgroup_parse_field(const char *text, const char *name, int64_t *ret);
/* A file that is one number. -EINVAL. */
int cgroup_parse_number(const char *text, int64_t *ret);
/* cpu.stat as `unified` has it. What is missing stays as it is in *values. */
void cgroup_parse_cpu_stat(const char *text, bool unified, CgroupValues *values);
/* memory.events of cgroup v2: how often a limit (high, max) was met or the OOM killer was asked. -1 if it has none. */
int64_t cgroup_parse_memory_events(const char *text);
/* A process's group as its /proc/PID/cgroup says it: of the v1 hierarchy with this controller, or, with NULL, of the
 * unified one. -ENOENT; the caller frees. */
int cgroup_parse_path(const char *text, const char *controller, char **ret);
/* What changed from `before` to `after`; false if nothing did. A total that went down belongs to another group of
 * the same name: unknown. */
bool cgroup_values_difference(const CgroupValues *before, const CgroupValues *after, CgroupValues *ret);
