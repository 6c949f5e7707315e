/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "target.h"

#include "basic/parse.h"
#include "basic/text.h"
#include "proc.h"

#define NAME_MAX_BYTES 1024

static const char *const kinds[] = {
        [TARGET_PROCESS] = "process",
        [TARGET_CGROUP] = "cgroup",
        [TARGET_UNIT] = "unit",
        [TARGET_COMMAND] = "command",
};

const char *target_kind_name(TargetKind kind) {
        return kinds[kind];
}

char *target_make_name(TargetKind kind, const char *argument) {
        static const char *const prefixes[] = {
                [TARGET_PROCESS] = "pid",
                [TARGET_CGROUP] = "cgroup",
                [TARGET_UNIT] = "unit",
                [TARGET_COMMAND] = "command",
        };
        char *name;

        return asprintf(&name, "%s:%s", prefixes[kind], argument) < 0 ? NULL : name;
}

static int refuse(int r, char **ret_error, const char *sentence) {
        if (ret_error)
                *ret_error = strdup(sentence);
        return r;
}

/* Whether text may become part of a target's name, which clients show and put on command lines. */
static bool argument_is_clean(const char *s) {
        if (isempty(s) || strlen(s) > NAME_MAX_BYTES || !utf8_is_valid(s))
                return false;
        for (const char *p = s; *p; p++)
                if ((unsigned char) *p < ' ' || *p == 0x7f ||
                                (p[0] == '\xc2' && (unsigned char) p[1] < 0xa0)) /* U+0080 to U+009F */
                        return false;
        return true;
}

static int find_groups(Target *t, char **ret_error) {
        int r;

        if (t->kind == TARGET_CGROUP) {
                r = cgroup_find(t->argument, &t->cgroups);
                if (r == -EINVAL)
                        return refuse(r, ret_error,
                                        "a cgroup is named by its absolute path below the cgroup mount, without . and "
                                        "..");
                return r;
        }
        if (strchr(t->argument, '/') || !strchr(t->argument, '.'))
                return refuse(-EINVAL, ret_error,
                                "a unit's name has no slash and ends in its type, such as nginx.service");
        return cgroup_find_unit(t->argument, &t->cgroups);
}

int target_new(TargetKind kind, const char *argument, enum prism_follow follow, uint32_t depth, Target **ret,
                char **ret_error) {
        _cleanup_(target_freep) Target *t = NULL;
        uint64_t pid;
        int r = 0;

        if (!argument_is_clean(argument))
                return refuse(-EINVAL, ret_error,
                                "the name is empty, over 1024 bytes, not UTF-8, or has control characters in it");

        t = calloc(1, sizeof(*t));
        if (!t)
                return -ENOMEM;
        t->kind = kind;
        t->follow = follow;
        t->depth = depth;
        t->argument = strdup(argument);
        t->name = target_make_name(kind, argument);
        if (!t->argument || !t->name)
                return -ENOMEM;

        switch (kind) {
        case TARGET_PROCESS:
                if (parse_u64(argument, UINT32_MAX, &pid) < 0)
                        return refuse(-EINVAL, ret_error, "a process is named by its number, from 0 to 4294967295");
                t->pid = (uint32_t) pid;
                break;
        case TARGET_CGROUP:
        case TARGET_UNIT:
                r = find_groups(t, ret_error);
                break;
        case TARGET_COMMAND:
                r = pattern_new(argument, &t->pattern, ret_error);
                break;
        }
        if (r < 0)
                return r;
        *ret = TAKE_PTR(t);
        return 0;
}

Target *target_free(Target *t) {
        if (!t)
                return NULL;
        cgroup_set_done(&t->cgroups);
        pattern_free(t->pattern);
        free(t->argument);
        free(t->name);
        free(t);
        return NULL;
}

bool target_is_open(const Target *t) {
        return t->kind != TARGET_PROCESS;
}

bool target_matches(const Target *t, const char *comm, const char *argv0) {
        return pattern_matches(t->pattern, comm) || (argv0 && pattern_matches(t->pattern, argv0));
}

typedef struct Match {
        const Target *target;
        int (*found)(uint32_t pid, void *userdata);
        void *userdata;
} Match;

static int match_command(uint32_t pid, void *userdata) {
        _cleanup_free_ char *argv0 = NULL;
        Match *m = userdata;
        ProcStatus status;

        if (proc_status(pid, &status) < 0 || status.kernel_thread)
                return 0;
        argv0 = proc_argv0_name(pid);
        return target_matches(m->target, status.comm, argv0) ? m->found(pid, m->userdata) : 0;
}

int target_for_each_process(Target *t, int (*found)(uint32_t pid, void *userdata), void *userdata) {
        Match m = { t, found, userdata };

        switch (t->kind) {
        case TARGET_PROCESS:
                return found(t->pid, userdata);
        case TARGET_COMMAND:
                return proc_for_each(match_command, &m);
        case TARGET_CGROUP:
        case TARGET_UNIT:
                /* A unit's group changes with each start. */
                if (!cgroup_set_exists(&t->cgroups)) {
                        cgroup_set_done(&t->cgroups);
                        (void) find_groups(t, NULL);
                }
                return cgroup_for_each_process(&t->cgroups, found, userdata);
        }
        return 0;
}
