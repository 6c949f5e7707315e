/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Control groups as directories: finding one by its path or a unit by its name, and the processes in it. */
#pragma once

#include "basic/macro.h"

/* Directories that together are one group: with cgroup v1 a path may exist in several hierarchies. */
typedef struct CgroupSet {
        char **directories;
        size_t n;
} CgroupSet;

void cgroup_set_done(CgroupSet *s);
/* Whether it is not empty and all its directories are still there. */
bool cgroup_set_exists(const CgroupSet *s);

/* `path` is below a cgroup mount ("/system.slice/x.service"), or a full path into one. The unified hierarchy wins, then
 * all v1 hierarchies that have it. -ENOENT if none has; -EINVAL for a path that is not absolute or has "..". */
int cgroup_find(const char *path, CgroupSet *ret);
/* The group of a running systemd unit. -ENOENT. */
int cgroup_find_unit(const char *unit, CgroupSet *ret);

/* Calls `found` for each process of the group and those below it; a process can come up twice. Stops at the first
 * negative return. Groups that vanish meanwhile are left out. */
int cgroup_for_each_process(const CgroupSet *s, int (*found)(uint32_t pid, void *userdata), void *userdata);

/* Where the groups of a controller lie: in its v1 hierarchy if that is mounted, else in the unified one, whether
 * or not it is enabled there. -ENOENT if neither is mounted; the caller frees. */
int cgroup_controller_directory(const char *controller, char **ret, bool *ret_unified);

/* Paths of the groups to which the kernel charges block IO, by its numbers of them, which are the inode numbers of
 * their directories. */
typedef struct CgroupNames CgroupNames;

/* So many at most, read anew when an unknown number comes up, at most so often. */
#define CGROUP_NAMES_MAX 16384
#define CGROUP_NAMES_SCAN_NS (10 * NSEC_PER_SEC)

int cgroup_names_new(CgroupNames **ret);
CgroupNames *cgroup_names_free(CgroupNames *c);
DEFINE_CLEANUP(CgroupNames *, cgroup_names_free);

/* NULL if it is not known (yet). Valid until the next call. */
const char *cgroup_names_find(CgroupNames *c, uint64_t id, uint64_t now_ns);
