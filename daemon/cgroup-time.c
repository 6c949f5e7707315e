/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cgroup-time.h"

#include <fcntl.h>

#define HASH_NONFATAL_OOM 1
/* Not the default one, whose switch falls through its labels in a way that clang warns of. */
#define HASH_FUNCTION HASH_OAT
#include <uthash.h>

#include "basic/parse.h"
#include "cgroup.h"
#include "proc.h"

/* A process can be moved: its groups are read again so often, and of so many processes a tick. */
#define MEMBER_REREAD_NS (10 * NSEC_PER_SEC)
#define MEMBER_READS_MAX 256
/* A controller can be enabled after its group was met: files that were missing are tried again so often. */
#define REOPEN_NS (10 * NSEC_PER_SEC)
#define FILE_LIMIT 8192

enum {
        SOURCE_CPU,     /* cpu.stat */
        SOURCE_CPUACCT, /* cpuacct.usage; with cgroup v2 a line of cpu.stat */
        SOURCE_MEMORY,
        _SOURCE_MAX,
};

static const char *const controllers[_SOURCE_MAX] = {
        [SOURCE_CPU] = "cpu",
        [SOURCE_CPUACCT] = "cpuacct",
        [SOURCE_MEMORY] = "memory",
};

/* Kept open: a read costs a quarter of what opening anew does, and fails once the group is removed, whatever is
 * made under its name. */
enum {
        FILE_CPU_STAT,
        FILE_CPUACCT,
        FILE_MEMORY,
        FILE_MEMORY_EVENTS,
        _FILE_MAX,
};

static const struct {
        unsigned source;
        const char *legacy, *unified;
} files[_FILE_MAX] = {
        [FILE_CPU_STAT] = { SOURCE_CPU, "cpu.stat", "cpu.stat" },
        [FILE_CPUACCT] = { SOURCE_CPUACCT, "cpuacct.usage", "cpu.stat" },
        [FILE_MEMORY] = { SOURCE_MEMORY, "memory.usage_in_bytes", "memory.current" },
        [FILE_MEMORY_EVENTS] = { SOURCE_MEMORY, "memory.failcnt", "memory.events" },
};

typedef struct Group Group;
struct Group {
        char *path;
        Group *parent;             /* NULL: the root */
        uint64_t tick;             /* in which a process was last seen in it or below it */
        bool sources[_SOURCE_MAX]; /* of which hierarchies, in that tick */
        bool holds;                /* a process itself, in that tick */
        bool known;                /* the next two are from the last tick */
        uint64_t read_ns;
        CgroupValues values;
        uint64_t open_ns; /* when files were opened, 0: not yet */
        int fds[_FILE_MAX];
        UT_hash_handle hh;
};

typedef struct MemberKey {
        uint64_t start_boot_ns;
        uint64_t pid;
} MemberKey;

/* Holds its groups: they are marked in each tick in which it is, and freed only in one in which they are not. */
typedef struct Member {
        MemberKey key;
        uint64_t tick;
        uint64_t read_ns;
        Group *groups[_SOURCE_MAX]; /* NULL: the root, or none that is mounted */
        UT_hash_handle hh;
} Member;

typedef struct Source {
        char *directory; /* NULL: not mounted */
        bool unified;
} Source;

struct CgroupTimes {
        Source sources[_SOURCE_MAX];
        Group *groups;
        Member *members;
        uint64_t tick;
        unsigned member_reads; /* in this tick */
};

/* ---- Pure parts ---- */

int cgroup_parse_number(const char *text, int64_t *ret) {
        char digits[32];
        uint64_t value;
        size_t n;

        n = strspn(text, "0123456789");
        if (n == 0 || n >= sizeof(digits) || (text[n] != '\0' && !(text[n] == '\n' && text[n + 1] == '\0')))
                return -EINVAL;
        memcpy(digits, text, n);
        digits[n] = '\0';
        if (parse_u64(digits, INT64_MAX, &value) < 0)
                return -EINVAL;
        *ret = (int64_t) value;
        return 0;
}

int cgroup_parse_field(const char *text, const char *name, int64_t *ret) {
        size_t size = strlen(name);

        for (const char *line = text; *line;) {
                size_t n = strcspn(line, "\n");

                if (n > size && strncmp(line, name, size) == 0 && line[size] == ' ') {
                        char number[32];

                        if (n - size - 1 >= sizeof(number))
                                return -EINVAL;
                        memcpy(number, line + size + 1, n - size - 1);
                        number[n - size - 1] = '\0';
                        return cgroup_parse_number(number, ret);
                }
                line += n;
                line += *line == '\n';
        }
        return -ENOENT;
}

static void parse_microseconds(const char *text, const char *name, int64_t *ret) {
        int64_t value;

        if (cgroup_parse_field(text, name, &value) >= 0 && value <= INT64_MAX / (int64_t) NSEC_PER_USEC)
                *ret = value * (int64_t) NSEC_PER_USEC;
}

void cgroup_parse_cpu_stat(const char *text, bool unified, CgroupValues *values) {
        (void) cgroup_parse_field(text, "nr_throttled", &values->throttled_periods);
        if (unified) {
                parse_microseconds(text, "usage_usec", &values->usage_ns);
                parse_microseconds(text, "throttled_usec", &values->throttled_ns);
        } else
                (void) cgroup_parse_field(text, "throttled_time", &values->throttled_ns);
}

int64_t cgroup_parse_memory_events(const char *text) {
        static const char *const names[] = { "high", "max", "oom" };
        int64_t sum = -1, value;

        for (unsigned i = 0; i < ELEMENTSOF(names); i++)
                if (cgroup_parse_field(text, names[i], &value) >= 0)
                        sum = value > INT64_MAX - MAX(sum, 0) ? INT64_MAX : MAX(sum, 0) + value;
        return sum;
}

/* Whether `controller` is one of a list that commas separate. */
static bool lists(const char *list, size_t size, const char *controller) {
        size_t n = strlen(controller);

        for (const char *p = list; p < list + size;) {
                const char *comma = memchr(p, ',', (size_t) (list + size - p));
                size_t word = (size_t) ((comma ?: list + size) - p);

                if (word == n && memcmp(p, controller, n) == 0)
                        return true;
                p += word + 1;
        }
        return false;
}

int cgroup_parse_path(const char *text, const char *controller, char **ret) {
        for (const char *line = text; *line;) {
                const char *end = strchrnul(line, '\n');
                const char *list = memchr(line, ':', (size_t) (end - line));
                const char *path = list ? memchr(list + 1, ':', (size_t) (end - list - 1)) : NULL;

                if (path) {
                        size_t size = (size_t) (path - list - 1);
                        bool found = controller ? lists(list + 1, size, controller) : size == 0;

                        path++;
                        if (found && *path == '/') {
                                char *copy = strndup(path, (size_t) (end - path));

                                if (!copy)
                                        return -ENOMEM;
                                *ret = copy;
                                return 0;
                        }
                }
                line = end + (*end == '\n');
        }
        return -ENOENT;
}

static void file_parse(unsigned file, const char *text, bool unified, CgroupValues *values) {
        switch (file) {
        case FILE_CPU_STAT:
                cgroup_parse_cpu_stat(text, unified, values);
                break;
        case FILE_CPUACCT:
                if (unified)
                        parse_microseconds(text, "usage_usec", &values->usage_ns);
                else
                        (void) cgroup_parse_number(text, &values->usage_ns);
                break;
        case FILE_MEMORY:
                (void) cgroup_parse_number(text, &values->memory_bytes);
                break;
        case FILE_MEMORY_EVENTS:
                if (unified)
                        values->memory_events = cgroup_parse_memory_events(text);
                else
                        (void) cgroup_parse_number(text, &values->memory_events);
                break;
        default:
                break;
        }
}

static int64_t difference(int64_t before, int64_t after) {
        return before < 0 || after < before ? -1 : after - before;
}

bool cgroup_values_difference(const CgroupValues *before, const CgroupValues *after, CgroupValues *ret) {
        *ret = (CgroupValues){
                .usage_ns = difference(before->usage_ns, after->usage_ns),
                .throttled_ns = difference(before->throttled_ns, after->throttled_ns),
                .throttled_periods = difference(before->throttled_periods, after->throttled_periods),
                .memory_bytes = after->memory_bytes,
                .memory_events = difference(before->memory_events, after->memory_events),
        };
        return ret->usage_ns > 0 || ret->throttled_ns > 0 || ret->throttled_periods > 0 || ret->memory_events > 0 ||
                        after->memory_bytes != before->memory_bytes;
}

/* ---- Who is where ---- */

int cgroup_times_new(CgroupTimes **ret) {
        _cleanup_(cgroup_times_freep) CgroupTimes *t = NULL;

        t = calloc(1, sizeof(*t));
        if (!t)
                return -ENOMEM;
        for (unsigned i = 0; i < _SOURCE_MAX; i++) {
                int r = cgroup_controller_directory(controllers[i], &t->sources[i].directory, &t->sources[i].unified);

                if (r < 0 && r != -ENOENT)
                        return r;
        }
        if (t->sources[SOURCE_CPU].unified && t->sources[SOURCE_CPUACCT].unified) {
                /* One file says both, and the kernel sums it up over all CPUs each time it is read. */
                free(t->sources[SOURCE_CPUACCT].directory);
                t->sources[SOURCE_CPUACCT].directory = NULL;
        }
        *ret = TAKE_PTR(t);
        return 0;
}

static void group_free(CgroupTimes *t, Group *g) {
        HASH_DEL(t->groups, g);
        for (unsigned i = 0; i < _FILE_MAX; i++)
                if (g->fds[i] >= 0)
                        close(g->fds[i]);
        free(g->path);
        free(g);
}

CgroupTimes *cgroup_times_free(CgroupTimes *t) {
        Group *g, *next_group;
        Member *m, *next_member;

        if (!t)
                return NULL;
        HASH_ITER(hh, t->members, m, next_member) {
                HASH_DEL(t->members, m);
                free(m);
        }
        HASH_ITER(hh, t->groups, g, next_group)
                group_free(t, g);
        for (unsigned i = 0; i < _SOURCE_MAX; i++)
                free(t->sources[i].directory);
        free(t);
        return NULL;
}

void cgroup_times_begin(CgroupTimes *t) {
        t->tick++;
        t->member_reads = 0;
}

/* The group and those above it. NULL with errno 0 for the root. */
static Group *group_of(CgroupTimes *t, const char *path) {
        _cleanup_free_ char *above = NULL;
        char *slash;
        Group *g;

        errno = 0;
        if (path[0] != '/' || path[1] == '\0' || startswith(path, "/.."))
                return NULL;
        HASH_FIND_STR(t->groups, path, g);
        if (g)
                return g;

        above = strdup(path);
        g = calloc(1, sizeof(*g));
        if (!above || !g)
                goto failed;
        for (unsigned i = 0; i < _FILE_MAX; i++)
                g->fds[i] = -1;
        slash = strrchr(above, '/');
        *slash = '\0';
        errno = 0;
        g->parent = isempty(above) ? NULL : group_of(t, above);
        if (!g->parent && errno != 0)
                goto failed;
        g->path = strdup(path);
        if (!g->path)
                goto failed;
        HASH_ADD_KEYPTR(hh, t->groups, g->path, strlen(g->path), g);
        if (!g->hh.tbl)
                goto failed;
        return g;

failed:
        if (g)
                free(g->path);
        free(g);
        errno = ENOMEM;
        return NULL;
}

static void group_mark(CgroupTimes *t, Group *g, unsigned source) {
        bool holds = true;

        for (; g; g = g->parent, holds = false) {
                if (g->tick != t->tick) {
                        g->tick = t->tick;
                        memset(g->sources, 0, sizeof(g->sources));
                        g->holds = false;
                }
                g->sources[source] = true;
                g->holds = g->holds || holds;
        }
}

/* Leaves it as it was where it cannot be read: then the process is ending. */
static int member_read(CgroupTimes *t, Member *m, uint32_t pid) {
        _cleanup_free_ char *text = NULL;
        char path[64];

        snprintf(path, sizeof(path), "/proc/%u/cgroup", pid);
        if (read_file(path, 16384, &text, NULL) < 0)
                return 0;
        for (unsigned i = 0; i < _SOURCE_MAX; i++) {
                _cleanup_free_ char *group = NULL;
                int r;

                m->groups[i] = NULL;
                if (!t->sources[i].directory)
                        continue;
                r = cgroup_parse_path(text, t->sources[i].unified ? NULL : controllers[i], &group);
                if (r == -ENOENT)
                        continue;
                if (r < 0)
                        return r;
                m->groups[i] = group_of(t, group);
                if (!m->groups[i] && errno != 0)
                        return -errno;
        }
        return 0;
}

int cgroup_times_process(CgroupTimes *t, uint32_t pid, uint64_t start_boot_ns, uint64_t now_ns) {
        MemberKey key = { .start_boot_ns = start_boot_ns, .pid = pid };
        Member *m;
        int r = 0;

        HASH_FIND(hh, t->members, &key, sizeof(key), m);
        if (!m) {
                m = calloc(1, sizeof(*m));
                if (!m)
                        return -ENOMEM;
                m->key = key;
                HASH_ADD(hh, t->members, key, sizeof(m->key), m);
                if (!m->hh.tbl) {
                        free(m);
                        return -ENOMEM;
                }
        }
        if ((m->read_ns == 0 || m->read_ns + MEMBER_REREAD_NS <= now_ns) && t->member_reads < MEMBER_READS_MAX) {
                t->member_reads++;
                m->read_ns = now_ns;
                r = member_read(t, m, pid);
        }
        m->tick = t->tick;
        for (unsigned i = 0; i < _SOURCE_MAX; i++)
                group_mark(t, m->groups[i], i);
        return r;
}

/* ---- Reading ---- */

static void group_close(Group *g) {
        for (unsigned i = 0; i < _FILE_MAX; i++) {
                if (g->fds[i] >= 0)
                        close(g->fds[i]);
                g->fds[i] = -1;
        }
        g->open_ns = 0;
        g->known = false;
}

/* Those that are not open and that the group has: a controller can be enabled later. */
static int group_open(CgroupTimes *t, Group *g, uint64_t now_ns) {
        if (g->open_ns != 0 && g->open_ns + REOPEN_NS > now_ns)
                return 0;
        g->open_ns = now_ns;
        for (unsigned i = 0; i < _FILE_MAX; i++) {
                const Source *s = &t->sources[files[i].source];
                _cleanup_free_ char *path = NULL;

                if (g->fds[i] >= 0 || !s->directory || !g->sources[files[i].source])
                        continue;
                if (asprintf(&path, "%s%s/%s", s->directory, g->path, s->unified ? files[i].unified : files[i].legacy) <
                                0)
                        return -ENOMEM;
                g->fds[i] = open(path, O_RDONLY | O_CLOEXEC);
        }
        return 0;
}

/* -ENODEV: the group was removed, even if there is a new one of this name. */
static int group_read_file(CgroupTimes *t, Group *g, unsigned file, CgroupValues *values) {
        unsigned source = files[file].source;
        char text[FILE_LIMIT];
        ssize_t n;

        /* A process can have left the group in this hierarchy and be in it in another one. */
        if (g->fds[file] < 0 || !g->sources[source])
                return 0;
        n = pread(g->fds[file], text, sizeof(text) - 1, 0);
        if (n < 0)
                return errno == ENODEV ? -ENODEV : 0;
        text[n] = '\0';
        file_parse(file, text, t->sources[source].unified, values);
        return 0;
}

static int group_read(CgroupTimes *t, Group *g, uint64_t boundary_ns, cgroup_times_emit emit, void *userdata) {
        CgroupValues now = CGROUP_VALUES_UNKNOWN, before = g->values, changed;
        bool known = g->known, limited;
        uint64_t from_ns = g->read_ns;
        int r;

        r = group_open(t, g, boundary_ns);
        if (r < 0)
                return r;
        for (unsigned i = 0; i < _FILE_MAX; i++)
                if (group_read_file(t, g, i, &now) < 0) {
                        group_close(g);
                        return 0;
                }
        g->known = true;
        g->read_ns = boundary_ns;
        g->values = now;
        if (!known || boundary_ns <= from_ns || !cgroup_values_difference(&before, &now, &changed))
                return 0;
        limited = changed.throttled_ns > 0 || changed.throttled_periods > 0 || changed.memory_events > 0;
        if (!g->holds && !limited)
                return 0;
        return emit(g->path, from_ns, boundary_ns, &changed, userdata);
}

int cgroup_times_collect(
                CgroupTimes *t, uint64_t boundary_ns, cgroup_times_emit emit, void *userdata, unsigned *ret_left_out) {
        unsigned n = 0, left_out = 0;
        Group *g, *next_group;
        Member *m, *next_member;
        int r = 0;

        HASH_ITER(hh, t->members, m, next_member)
                if (m->tick != t->tick) {
                        HASH_DEL(t->members, m);
                        free(m);
                }
        HASH_ITER(hh, t->groups, g, next_group) {
                int k;

                if (g->tick != t->tick) {
                        group_free(t, g);
                        continue;
                }
                if (n >= CGROUP_TIMES_MAX) {
                        left_out++;
                        continue;
                }
                n++;
                k = group_read(t, g, boundary_ns, emit, userdata);
                if (k < 0 && r == 0)
                        r = k;
        }
        *ret_left_out = left_out;
        return r;
}
