/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cgroup.h"

#include <dirent.h>
#include <limits.h>
#include <mntent.h>
#include <sys/stat.h>

/* Deep enough for any container manager, and an end for a loop that should not exist. */
#define DEPTH_MAX 32

void cgroup_set_done(CgroupSet *s) {
        for (size_t i = 0; i < s->n; i++)
                free(s->directories[i]);
        free(s->directories);
        *s = (CgroupSet){};
}

static int set_add(CgroupSet *s, const char *directory) {
        char **grown = reallocarray(s->directories, s->n + 1, sizeof(*grown));

        if (!grown)
                return -ENOMEM;
        s->directories = grown;
        s->directories[s->n] = strdup(directory);
        if (!s->directories[s->n])
                return -ENOMEM;
        s->n++;
        return 0;
}

static bool is_group(const char *directory) {
        _cleanup_free_ char *procs = NULL;

        return asprintf(&procs, "%s/cgroup.procs", directory) >= 0 && access(procs, F_OK) == 0;
}

bool cgroup_set_exists(const CgroupSet *s) {
        for (size_t i = 0; i < s->n; i++)
                if (!is_group(s->directories[i]))
                        return false;
        return s->n > 0;
}

typedef struct Mount {
        char directory[PATH_MAX];
        bool unified, systemd;
        const struct mntent *entry;
} Mount;

/* Calls `found` for each mounted hierarchy; stops at the first nonzero return, which it returns. */
static int for_each_mount(int (*found)(const Mount *m, void *userdata), void *userdata) {
        char buffer[8192];
        struct mntent entry;
        int r = 0;
        FILE *f;

        f = setmntent("/proc/self/mounts", "re");
        if (!f)
                return -errno;
        while (r == 0 && getmntent_r(f, &entry, buffer, sizeof(buffer))) {
                Mount m = {
                        .unified = streq(entry.mnt_type, "cgroup2"),
                        .systemd = streq(entry.mnt_type, "cgroup") && strstr(entry.mnt_opts, "name=systemd"),
                        .entry = &entry,
                };

                if (!m.unified && !streq(entry.mnt_type, "cgroup"))
                        continue;
                snprintf(m.directory, sizeof(m.directory), "%s", entry.mnt_dir);
                r = found(&m, userdata);
        }
        endmntent(f);
        return r;
}

typedef struct Find {
        const char *path;
        bool unified; /* look in the unified hierarchy, or in the others */
        CgroupSet set;
} Find;

static int find_in_mount(const Mount *m, void *userdata) {
        _cleanup_free_ char *directory = NULL;
        Find *f = userdata;
        const char *rest = startswith(f->path, m->directory);

        if (rest && (rest[0] == '/' || rest[0] == '\0')) {
                /* A full path names one hierarchy. */
                if (!is_group(f->path))
                        return 0;
                return set_add(&f->set, f->path) ?: 1;
        }
        if (m->unified != f->unified)
                return 0;
        if (asprintf(&directory, "%s%s", m->directory, f->path) < 0)
                return -ENOMEM;
        return is_group(directory) ? set_add(&f->set, directory) : 0;
}

static bool path_is_clean(const char *path) {
        if (path[0] != '/' || strlen(path) >= PATH_MAX)
                return false;
        for (const char *p = path; *p;) {
                size_t n;

                p += strspn(p, "/");
                n = strcspn(p, "/");
                if ((n == 2 && strncmp(p, "..", 2) == 0) || (n == 1 && *p == '.'))
                        return false;
                p += n;
        }
        return true;
}

int cgroup_find(const char *path, CgroupSet *ret) {
        Find f = { .path = path, .unified = true };
        int r;

        if (!path_is_clean(path))
                return -EINVAL;
        r = for_each_mount(find_in_mount, &f);
        if (r == 0 && f.set.n == 0) {
                f.unified = false;
                r = for_each_mount(find_in_mount, &f);
        }
        if (r >= 0 && f.set.n == 0)
                r = -ENOENT;
        if (r < 0) {
                cgroup_set_done(&f.set);
                return r;
        }
        *ret = f.set;
        return 0;
}

/* Calls `found` for a group and all below it, the outer first. */
static int walk(const char *directory, unsigned depth,
                int (*found)(const char *directory, unsigned depth, void *userdata), void *userdata) {
        struct dirent *entry;
        DIR *d;
        int r;

        r = found(directory, depth, userdata);
        if (r != 0 || depth >= DEPTH_MAX)
                return r;
        d = opendir(directory);
        if (!d)
                return 0;
        while (r == 0 && (entry = readdir(d))) {
                _cleanup_free_ char *child = NULL;

                if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
                        continue;
                if (asprintf(&child, "%s/%s", directory, entry->d_name) < 0)
                        r = -ENOMEM;
                else
                        r = walk(child, depth + 1, found, userdata);
        }
        closedir(d);
        return r;
}

typedef struct FindUnit {
        const char *unit;
        unsigned depth; /* of the one in `set` */
        CgroupSet set;
} FindUnit;

/* A user can have a group of the same name below one that was delegated: systemd's own lies higher. */
static int is_unit(const char *directory, unsigned depth, void *userdata) {
        const char *name = strrchr(directory, '/') + 1;
        FindUnit *f = userdata;

        /* A leading underscore escapes names that a controller could claim. */
        if (!streq(name, f->unit) && !(name[0] == '_' && streq(name + 1, f->unit)))
                return 0;
        if (f->set.n > 0 && f->depth <= depth)
                return 0;
        cgroup_set_done(&f->set);
        f->depth = depth;
        return set_add(&f->set, directory);
}

static int find_unit_in_mount(const Mount *m, void *userdata) {
        if (!m->unified && !m->systemd)
                return 0;
        return walk(m->directory, 0, is_unit, userdata);
}

int cgroup_find_unit(const char *unit, CgroupSet *ret) {
        FindUnit f = { .unit = unit };
        int r;

        r = for_each_mount(find_unit_in_mount, &f);
        if (r >= 0 && f.set.n == 0)
                r = -ENOENT;
        if (r < 0) {
                cgroup_set_done(&f.set);
                return r;
        }
        *ret = f.set;
        return 0;
}

typedef struct Visit {
        int (*found)(uint32_t pid, void *userdata);
        void *userdata;
} Visit;

static int visit_group(const char *directory, unsigned depth, void *userdata) {
        _cleanup_fclose_ FILE *f = NULL;
        _cleanup_free_ char *path = NULL;
        Visit *v = userdata;
        unsigned pid;

        if (asprintf(&path, "%s/cgroup.procs", directory) < 0)
                return -ENOMEM;
        f = fopen(path, "re");
        if (!f)
                return 0;
        while (fscanf(f, "%u", &pid) == 1) {
                int r;

                if (pid == 0) /* outside of our pid namespace */
                        continue;
                r = v->found(pid, v->userdata);
                if (r < 0)
                        return r;
        }
        return 0;
}

int cgroup_for_each_process(const CgroupSet *s, int (*found)(uint32_t pid, void *userdata), void *userdata) {
        Visit v = { found, userdata };

        for (size_t i = 0; i < s->n; i++) {
                int r = walk(s->directories[i], 0, visit_group, &v);

                if (r < 0)
                        return r;
        }
        return 0;
}

typedef struct FindController {
        const char *controller;
        char *directory;
        bool unified;
} FindController;

static int find_controller_in_mount(const Mount *m, void *userdata) {
        FindController *f = userdata;
        bool own = !m->unified && hasmntopt(m->entry, f->controller);

        if (!own && (!m->unified || f->directory))
                return 0;
        free(f->directory);
        f->directory = strdup(m->directory);
        f->unified = m->unified;
        return !f->directory ? -ENOMEM : own ? 1 : 0;
}

int cgroup_controller_directory(const char *controller, char **ret, bool *ret_unified) {
        FindController f = { .controller = controller };
        int r;

        r = for_each_mount(find_controller_in_mount, &f);
        if (r < 0) {
                free(f.directory);
                return r;
        }
        if (!f.directory)
                return -ENOENT;
        *ret = f.directory;
        *ret_unified = f.unified;
        return 0;
}

/* ---- Names of block control groups ---- */

typedef struct CgroupName {
        uint64_t id;
        char *path;
} CgroupName;

struct CgroupNames {
        char *directory; /* NULL: no hierarchy is mounted */
        CgroupName *names;
        size_t n, capacity;
        uint64_t next_scan_ns;
};

int cgroup_names_new(CgroupNames **ret) {
        _cleanup_(cgroup_names_freep) CgroupNames *c = NULL;
        bool unified;
        int r;

        c = calloc(1, sizeof(*c));
        if (!c)
                return -ENOMEM;
        r = cgroup_controller_directory("blkio", &c->directory, &unified);
        if (r < 0 && r != -ENOENT)
                return r;
        *ret = TAKE_PTR(c);
        return 0;
}

static void names_clear(CgroupNames *c) {
        for (size_t i = 0; i < c->n; i++)
                free(c->names[i].path);
        c->n = 0;
}

CgroupNames *cgroup_names_free(CgroupNames *c) {
        if (!c)
                return NULL;
        names_clear(c);
        free(c->names);
        free(c->directory);
        free(c);
        return NULL;
}

static int name_add(const char *directory, unsigned depth, void *userdata) {
        CgroupNames *c = userdata;
        struct stat st;
        char *path;

        /* The kernel counts the root as no group at all. */
        if (depth == 0 || stat(directory, &st) < 0)
                return 0;
        if (c->n >= CGROUP_NAMES_MAX)
                return -ENOSPC;
        path = strdup(directory + strlen(c->directory));
        if (!path)
                return -ENOMEM;
        if (GROW(c->names, c->n, c->capacity) < 0) {
                free(path);
                return -ENOMEM;
        }
        c->names[c->n++] = (CgroupName){ .id = st.st_ino, .path = path };
        return 0;
}

static int compare_names(const void *a, const void *b) {
        uint64_t x = ((const CgroupName *) a)->id, y = ((const CgroupName *) b)->id;

        return x < y ? -1 : x > y;
}

static const char *name_known(const CgroupNames *c, uint64_t id) {
        CgroupName wanted = { .id = id }, *found;

        found = c->n > 0 ? bsearch(&wanted, c->names, c->n, sizeof(*c->names), compare_names) : NULL;
        return found ? found->path : NULL;
}

const char *cgroup_names_find(CgroupNames *c, uint64_t id, uint64_t now_ns) {
        const char *path = name_known(c, id);

        if (path || !c->directory || now_ns < c->next_scan_ns)
                return path;
        c->next_scan_ns = now_ns + CGROUP_NAMES_SCAN_NS;
        names_clear(c);
        /* Cut short by lack of room or memory: what was found is right. */
        (void) walk(c->directory, 0, name_add, c);
        if (c->n > 0)
                qsort(c->names, c->n, sizeof(*c->names), compare_names);
        return name_known(c, id);
}
