/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the user asked to follow. A target says which processes it wants; following them is the manager's work. */
#pragma once

#include "cgroup.h"
#include "pattern.h"
#include "../bpf/prism.h"

typedef enum TargetKind {
        TARGET_PROCESS,
        TARGET_CGROUP,
        TARGET_UNIT,
        TARGET_COMMAND,
} TargetKind;

typedef struct Target Target;
struct Target {
        struct Manager *manager; /* set when it is linked; for its bus object */
        uint32_t number;         /* never used twice; what the kernel side and processes know it by */
        TargetKind kind;
        char *name; /* "pid:1234", "cgroup:/a/b", "unit:x.service", "command:PATTERN" */
        enum prism_follow follow;
        uint32_t depth;

        uint32_t pid;      /* TARGET_PROCESS */
        char *argument;    /* the cgroup's path, the unit's name */
        CgroupSet cgroups; /* TARGET_CGROUP, TARGET_UNIT: where it is now; empty while the unit is down */
        Pattern *pattern;  /* TARGET_COMMAND */
        Target *next;
};

const char *target_kind_name(TargetKind kind);
/* The name that a target with this argument has; NULL on OOM. */
char *target_make_name(TargetKind kind, const char *argument);
/* Takes the argument apart as the kind wants: -EINVAL with a sentence, -ENOENT (no such cgroup or unit). */
int target_new(TargetKind kind, const char *argument, enum prism_follow follow, uint32_t depth, Target **ret,
                char **ret_error);
Target *target_free(Target *t);
DEFINE_CLEANUP(Target *, target_free);

/* Whether new processes can come in other than by fork. */
bool target_is_open(const Target *t);
/* TARGET_COMMAND: whether one of a process's names matches; argv0 may be NULL. */
bool target_matches(const Target *t, const char *comm, const char *argv0);
/* Calls `found` for each process that the target wants now (and may have already). Looks a unit's group up again, since
 * it changes at each start. */
int target_for_each_process(Target *t, int (*found)(uint32_t pid, void *userdata), void *userdata);
