/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What /proc says of a process. Numbers are those of prismd's pid namespace. */
#pragma once

#include "basic/macro.h"

typedef struct ProcStatus {
        char comm[64];
        uint32_t tgid; /* differs from the number asked for when that is a thread's */
        uint32_t ppid, uid;
        unsigned threads;
        bool kernel_thread;
        bool ended; /* a zombie: all of its threads have ended, only its parent has not asked yet */
} ProcStatus;

typedef struct ProcDetails {
        char *exe, *cmdline, *cgroup, *unit; /* each may be NULL */
        uint64_t netns;
} ProcDetails;

/* -ESRCH if there is none. */
int proc_status(uint32_t pid, ProcStatus *ret);
/* Reads what it can; never fails for a process that goes away meanwhile. Without `program` exe and cmdline are left out. */
void proc_details(uint32_t pid, bool program, ProcDetails *ret);
void proc_details_done(ProcDetails *d);
/* The base name of argv[0], NULL if it has none. */
char *proc_argv0_name(uint32_t pid);

/* Calls `found` for each child of a process, whichever of its threads forked it. None where the kernel does not list them
 * (CONFIG_PROC_CHILDREN). */
int proc_for_each_child(uint32_t pid, int (*found)(uint32_t pid, void *userdata), void *userdata);
/* Calls `found` for each process; stops at the first negative return, which it returns. */
int proc_for_each(int (*found)(uint32_t pid, void *userdata), void *userdata);

/* The unit that a cgroup path lies in: the innermost component that names a service or scope. NULL if there is none. */
char *unit_of_cgroup(const char *cgroup);

/* Reads a small file whole (at most `limit` bytes); *ret_size without the terminating NUL that is added. */
int read_file(const char *path, size_t limit, char **ret, size_t *ret_size);
