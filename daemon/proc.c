/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "proc.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "basic/parse.h"

#define CMDLINE_LIMIT 4096
#define CHILDREN_LIMIT (1024 * 1024)
#define PF_KTHREAD 0x00200000UL

int read_file(const char *path, size_t limit, char **ret, size_t *ret_size) {
        _cleanup_free_ char *data = NULL;
        _cleanup_close_ int fd = -1;
        size_t size = 0;

        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        data = malloc(limit + 1);
        if (!data)
                return -ENOMEM;
        while (size < limit) {
                ssize_t n = read(fd, data + size, limit - size);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                size += (size_t) n;
        }
        data[size] = '\0';
        *ret = TAKE_PTR(data);
        if (ret_size)
                *ret_size = size;
        return 0;
}

/* The value of a "Name:\tvalue" line, or NULL. */
static const char *status_value(const char *text, const char *name) {
        size_t n = strlen(name);

        for (const char *line = text; line; line = strchr(line, '\n')) {
                if (*line == '\n')
                        line++;
                if (strncmp(line, name, n) == 0 && line[n] == ':') {
                        line += n + 1;
                        return line + strspn(line, " \t");
                }
        }
        return NULL;
}

static uint32_t status_number(const char *text, const char *name) {
        const char *value = status_value(text, name);

        return value ? (uint32_t) strtoul(value, NULL, 10) : 0;
}

int proc_status(uint32_t pid, ProcStatus *ret) {
        _cleanup_free_ char *text = NULL, *stat = NULL;
        ProcStatus s = {};
        char path[64];
        const char *p;
        unsigned long flags = 0;
        char state = 0;
        int r;

        snprintf(path, sizeof(path), "/proc/%u/status", pid);
        r = read_file(path, 8192, &text, NULL);
        if (r < 0)
                return r == -ENOENT ? -ESRCH : r;
        s.tgid = status_number(text, "Tgid");
        s.ppid = status_number(text, "PPid");
        s.uid = status_number(text, "Uid");
        s.threads = status_number(text, "Threads");

        /* comm may hold anything, also a newline: in `stat` it stands between the first and the last parenthesis. */
        snprintf(path, sizeof(path), "/proc/%u/stat", pid);
        r = read_file(path, 4096, &stat, NULL);
        if (r < 0)
                return r == -ENOENT ? -ESRCH : r;
        p = strrchr(stat, ')');
        if (p) {
                const char *name = strchr(stat, '(');
                size_t n = name ? MIN((size_t) (p - name - 1), sizeof(s.comm) - 1) : 0;

                if (n > 0)
                        memcpy(s.comm, name + 1, n);
                if (sscanf(p + 1, " %c %*d %*d %*d %*d %*d %lu", &state, &flags) == 2) {
                        s.kernel_thread = flags & PF_KTHREAD;
                        /* A leader can end before its threads do. */
                        s.ended = (state == 'Z' || state == 'X') && s.threads <= 1;
                }
        }
        *ret = s;
        return 0;
}

static char *read_cmdline(uint32_t pid) {
        _cleanup_free_ char *text = NULL;
        char path[64];
        size_t n;

        snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
        if (read_file(path, CMDLINE_LIMIT, &text, &n) < 0 || n == 0)
                return NULL;
        while (n > 0 && text[n - 1] == '\0')
                n--;
        for (size_t i = 0; i < n; i++)
                if (text[i] == '\0')
                        text[i] = ' ';
        text[n] = '\0';
        return n > 0 ? TAKE_PTR(text) : NULL;
}

/* Of the lines "ID:CONTROLLERS:PATH", the unified hierarchy's path if the process is in a group there, else systemd's
 * own, else the first that is not the root. */
static char *read_cgroup(uint32_t pid) {
        _cleanup_free_ char *text = NULL;
        const char *best = NULL;
        char path[64], *save = NULL;
        int rank = 0;

        snprintf(path, sizeof(path), "/proc/%u/cgroup", pid);
        if (read_file(path, 16384, &text, NULL) < 0)
                return NULL;
        for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
                char *controllers = strchr(line, ':'), *p;
                int this_rank;

                if (!controllers)
                        continue;
                p = strchr(++controllers, ':');
                if (!p)
                        continue;
                *p++ = '\0';
                if (streq(p, "/"))
                        this_rank = 1;
                else
                        this_rank = controllers[0] == '\0' ? 4 : streq(controllers, "name=systemd") ? 3 : 2;
                if (this_rank > rank) {
                        rank = this_rank;
                        best = p;
                }
        }
        return best ? strdup(best) : NULL;
}

static bool names_unit(const char *component, size_t n) {
        static const char *const suffixes[] = { ".service", ".scope" };

        for (unsigned i = 0; i < ELEMENTSOF(suffixes); i++) {
                size_t s = strlen(suffixes[i]);

                if (n > s && strncmp(component + n - s, suffixes[i], s) == 0)
                        return true;
        }
        return false;
}

char *unit_of_cgroup(const char *cgroup) {
        const char *best = NULL;
        size_t best_size = 0;

        for (const char *p = cgroup; *p;) {
                size_t n;

                p += strspn(p, "/");
                n = strcspn(p, "/");
                if (names_unit(p, n)) {
                        /* A leading underscore escapes names that a controller could claim. */
                        best = p[0] == '_' ? p + 1 : p;
                        best_size = p[0] == '_' ? n - 1 : n;
                }
                p += n;
        }
        return best ? strndup(best, best_size) : NULL;
}

void proc_details(uint32_t pid, bool program, ProcDetails *ret) {
        ProcDetails d = {};
        char path[64], target[PATH_MAX];
        struct stat st;
        ssize_t n;

        snprintf(path, sizeof(path), "/proc/%u/exe", pid);
        n = program ? readlink(path, target, sizeof(target) - 1) : 0;
        if (n > 0) {
                target[n] = '\0';
                d.exe = strdup(target);
        }
        if (program)
                d.cmdline = read_cmdline(pid);
        d.cgroup = read_cgroup(pid);
        if (d.cgroup)
                d.unit = unit_of_cgroup(d.cgroup);
        snprintf(path, sizeof(path), "/proc/%u/ns/net", pid);
        if (stat(path, &st) == 0)
                d.netns = st.st_ino;
        *ret = d;
}

void proc_details_done(ProcDetails *d) {
        free(d->exe);
        free(d->cmdline);
        free(d->cgroup);
        free(d->unit);
        *d = (ProcDetails){};
}

char *proc_argv0_name(uint32_t pid) {
        _cleanup_free_ char *text = NULL;
        const char *slash, *name;
        char path[64];
        size_t n;

        snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
        if (read_file(path, CMDLINE_LIMIT, &text, &n) < 0 || n == 0)
                return NULL;
        slash = strrchr(text, '/');
        name = slash ? slash + 1 : text;
        return isempty(name) ? NULL : strdup(name);
}

int proc_for_each(int (*found)(uint32_t pid, void *userdata), void *userdata) {
        struct dirent *entry;
        DIR *d;
        int r = 0;

        d = opendir("/proc");
        if (!d)
                return -errno;
        while (r >= 0 && (entry = readdir(d))) {
                uint64_t pid;

                if (isdigit((unsigned char) entry->d_name[0]) && parse_u64(entry->d_name, UINT32_MAX, &pid) >= 0)
                        r = found((uint32_t) pid, userdata);
        }
        closedir(d);
        return r < 0 ? r : 0;
}

int proc_for_each_child(uint32_t pid, int (*found)(uint32_t pid, void *userdata), void *userdata) {
        struct dirent *entry;
        char path[64];
        int r = 0;
        DIR *d;

        snprintf(path, sizeof(path), "/proc/%u/task", pid);
        d = opendir(path);
        if (!d)
                return 0;
        while (r >= 0 && (entry = readdir(d))) {
                _cleanup_free_ char *text = NULL;
                char file[sizeof(path) + sizeof(entry->d_name) + 16], *save = NULL;

                if (!isdigit((unsigned char) entry->d_name[0]))
                        continue;
                snprintf(file, sizeof(file), "%s/%s/children", path, entry->d_name);
                if (read_file(file, CHILDREN_LIMIT, &text, NULL) < 0)
                        continue;
                for (char *word = strtok_r(text, " ", &save); word && r >= 0; word = strtok_r(NULL, " ", &save)) {
                        uint64_t child;

                        if (parse_u64(word, UINT32_MAX, &child) >= 0)
                                r = found((uint32_t) child, userdata);
                }
        }
        closedir(d);
        return r;
}
