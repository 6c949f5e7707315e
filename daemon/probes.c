/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "probes.h"

#include "clock.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>

#include PRISM_SKELETON

/* Inode number of the first pid namespace (include/linux/proc_ns.h). */
#define HOST_PID_NAMESPACE 0xEFFFFFFCU

#define DRAIN_CHUNK 4096
#define ITERATOR_CHUNK 65536
#define ITERATOR_TRIES_MAX 1000
#define UNMARK_TRIES_MAX 10
/* As many as the map `objects` has. */
#define OBJECTS 8192
/* Room for calls, as a share of that for waits. */
#define CALLS_SHARE 2
/* Different (submitter, cgroup, device, partition, operation) of block requests a tick, of the whole host. */
#define DISKS 4096

enum {
        PART_SWITCH,
        PART_WAKE,
        PART_MIGRATION,
        PART_LIFE,
        PART_TIMER_WAKES,
        PART_SHARED_FUTEX,
        PART_FILE_KINDS,
        PART_PAGE_FAULT,
        PART_KERNEL_LOCK,
        PART_RECLAIM,
        PART_CGROUP_RECLAIM,
        PART_URING,
        PART_CALLS,
        PART_BLOCK,
        _PART_MAX,
};

struct Probes {
        struct prism_bpf *skeleton;
        ProbesLimits limits;
        Part parts[_PART_MAX];
        bool own_pid_namespace;

        struct prism_thread_info *infos; /* [limits.threads], mapped */
        struct prism_thread_time *times; /* [2 * limits.threads], mapped */
        size_t infos_bytes, times_bytes;
        int wait_fds[2], instead_fds[2], call_fds[2], disk_fds[2];
        unsigned n_free_slots; /* an estimate: the kernel side pops them */

        struct ring_buffer *events;
        probes_event_handler handler;
        void *userdata;

        struct prism_wait_key *wait_keys;
        struct prism_wait_value *wait_values;
        struct prism_instead_key *instead_keys;
        struct prism_instead_value *instead_values;
        struct prism_call_key *call_keys;
        struct prism_call_value *call_values;
        struct prism_object_key *object_keys;
        struct prism_object *objects;
        struct prism_disk_key *disk_keys;
        struct prism_disk_value *disk_values;
        bool calls;
};

/* Programs that a kernel may lack. The part is unavailable without them, the rest goes on. */
typedef struct Optional {
        const char *program, *tracepoint;
        unsigned part;
        const char *consequence;
        bool on_demand; /* attached by probes_set_calls() */
} Optional;

static const Optional optional_programs[] = {
        { "sched_migrate_task", "sched_migrate_task", PART_MIGRATION,
                        "who ran instead is asked only of the CPU on which a wait for the CPU ended", false },
        { "task_newtask", "task_newtask", PART_LIFE,
                        "new threads are found once a minute only, and children not at all", false },
        { "task_rename", "task_rename", PART_LIFE, "changes of thread names are not followed", false },
        { "sched_process_exec", "sched_process_exec", PART_LIFE, "new program images are not noticed", false },
        { "page_fault_user", "page_fault_user", PART_PAGE_FAULT, "page faults do not say which file they read", false },
        { "page_fault_kernel", "page_fault_kernel", PART_PAGE_FAULT,
                        "page faults inside system calls do not say which file they read", false },
        { "contention_begin", "contention_begin", PART_KERNEL_LOCK,
                        "kernel locks are told by the system call only, not by their kind (5.19)", false },
        { "contention_end", "contention_end", PART_KERNEL_LOCK,
                        "kernel locks are told by the system call only, not by their kind (5.19)", false },
        { "direct_reclaim_begin", "mm_vmscan_direct_reclaim_begin", PART_RECLAIM,
                        "waits for memory to be freed are charged to what the thread did then", false },
        { "direct_reclaim_end", "mm_vmscan_direct_reclaim_end", PART_RECLAIM,
                        "waits for memory to be freed are charged to what the thread did then", false },
        { "cgroup_reclaim_begin", "mm_vmscan_memcg_reclaim_begin", PART_CGROUP_RECLAIM,
                        "waits for memory of a cgroup to be freed are charged to what the thread did then: this "
                        "kernel has no memory controller",
                        false },
        { "cgroup_reclaim_end", "mm_vmscan_memcg_reclaim_end", PART_CGROUP_RECLAIM,
                        "waits for memory of a cgroup to be freed are charged to what the thread did then: this "
                        "kernel has no memory controller",
                        false },
        { "io_uring_submit", "io_uring_submit_req", PART_URING, "requests to io_uring are not counted (6.1)", false },
        { "io_uring_complete", "io_uring_complete", PART_URING, "completions of io_uring are not counted", false },
        { "block_rq_complete", "block_rq_complete", PART_BLOCK, "requests to disks are not counted", false },
        { "block_rq_merge", "block_rq_merge", PART_BLOCK, "requests to disks are not counted", false },
        { "sys_enter", "sys_enter", PART_CALLS, "system calls that do not block are not counted", true },
        { "sys_exit", "sys_exit", PART_CALLS, "system calls that do not block are not counted", true },
};

static unsigned calls_limit(const Probes *p) {
        return p->limits.waits / CALLS_SHARE;
}

_printf_(4, 5) static void part_set(Probes *p, unsigned part, PartState state, const char *format, ...) {
        va_list ap;

        p->parts[part].state = state;
        va_start(ap, format);
        vsnprintf(p->parts[part].reason, sizeof(p->parts[part].reason), format, ap);
        va_end(ap);
}

__attribute__((format(printf, 2, 0))) static int silent(enum libbpf_print_level level, const char *format, va_list ap) {
        const char *debug = getenv("PRISM_LIBBPF_DEBUG");

        if (debug && debug[0] == '1')
                return vfprintf(stderr, format, ap);
        return 0;
}

/* Number of parameters that the kernel's tracepoint `name` passes (without its private first one); -ENOENT if it has
 * none. */
static int tracepoint_arguments(const struct btf *btf, const char *name) {
        char type_name[64];
        const struct btf_type *t;
        int id;

        snprintf(type_name, sizeof(type_name), "btf_trace_%s", name);
        id = btf__find_by_name_kind(btf, type_name, BTF_KIND_TYPEDEF);
        if (id < 0)
                return -ENOENT;
        t = btf__type_by_id(btf, btf__type_by_id(btf, (unsigned) id)->type);
        if (!btf_is_ptr(t))
                return -EINVAL;
        t = btf__type_by_id(btf, t->type);
        if (!btf_is_func_proto(t))
                return -EINVAL;
        return btf_vlen(t) - 1;
}

/* Where a per-CPU variable of the kernel lies in the per-CPU area. */
static int percpu_offset(const struct btf *btf, const char *variable, int64_t *ret_offset, uint32_t *ret_size) {
        const struct btf_var_secinfo *v;
        const struct btf_type *t;
        int id;

        id = btf__find_by_name_kind(btf, ".data..percpu", BTF_KIND_DATASEC);
        if (id < 0)
                return -ENOENT;
        t = btf__type_by_id(btf, (unsigned) id);
        v = btf_var_secinfos(t);
        for (unsigned i = 0; i < btf_vlen(t); i++, v++) {
                const struct btf_type *var = btf__type_by_id(btf, v->type);

                if (!streq(btf__name_by_offset(btf, var->name_off), variable))
                        continue;
                *ret_offset = v->offset;
                if (ret_size)
                        *ret_size = v->size;
                return 0;
        }
        return -ENOENT;
}

static int member_offset(const struct btf *btf, const char *type, const char *member, int64_t *ret) {
        const struct btf_member *m;
        const struct btf_type *t;
        int id;

        id = btf__find_by_name_kind(btf, type, BTF_KIND_STRUCT);
        if (id < 0)
                return -ENOENT;
        t = btf__type_by_id(btf, (unsigned) id);
        m = btf_members(t);
        for (unsigned i = 0; i < btf_vlen(t); i++, m++)
                if (streq(btf__name_by_offset(btf, m->name_off), member)) {
                        *ret = btf_member_bit_offset(t, i) / 8;
                        return 0;
                }
        return -ENOENT;
}

static int64_t struct_size(const struct btf *btf, const char *type) {
        int id = btf__find_by_name_kind(btf, type, BTF_KIND_STRUCT);

        return id < 0 ? id : btf__resolve_size(btf, (unsigned) id);
}

/* Decides what this kernel has, before loading: settings are constants for the verifier. */
static void probes_settle(Probes *p, const struct btf *btf) {
        struct prism_settings *s = (struct prism_settings *) &p->skeleton->rodata->settings;
        int64_t rq, offset, member;
        struct stat st;
        uint32_t size;

        s->thread_slots = p->limits.threads;
        if (stat("/proc/self/ns/pid", &st) == 0)
                s->pid_namespace = (unsigned) st.st_ino;
        p->own_pid_namespace = s->pid_namespace != HOST_PID_NAMESPACE;

        s->has_prev_state = tracepoint_arguments(btf, "sched_switch") >= 4;
        s->has_page_fault = tracepoint_arguments(btf, "page_fault_user") >= 0;
        if (getrandom(&s->secret, sizeof(s->secret), 0) < 0)
                s->secret = boot_now();
        s->has_find_vma = btf__find_by_name_kind(btf, "bpf_find_vma", BTF_KIND_FUNC) > 0;
        if (!s->has_find_vma)
                part_set(p, PART_SHARED_FUTEX, PART_DEGRADED,
                                "a futex shared between processes counts as one resource in each of them: bpf_find_vma "
                                "came with Linux 5.17");

        if (percpu_offset(btf, "runqueues", &rq, NULL) < 0 ||
                        member_offset(btf, "sched_entity", "cfs_rq", &member) < 0) {
                part_set(p, PART_TIMER_WAKES, PART_UNAVAILABLE,
                                "wakes from interrupts are charged to the thread they interrupt: the kernel's BTF does "
                                "not describe per-CPU variables");
                return;
        }
        if (percpu_offset(btf, "__preempt_count", &offset, NULL) == 0) {
                s->preempt_count_offset = offset - rq;
                s->has_preempt_count = 1;
        } else if (percpu_offset(btf, "pcpu_hot", &offset, NULL) == 0 &&
                        member_offset(btf, "pcpu_hot", "preempt_count", &member) == 0) {
                /* 6.2 to 6.14; an anonymous union holds it, which member_offset() does not look into */
                s->preempt_count_offset = offset + member - rq;
                s->has_preempt_count = 1;
        } else if (percpu_offset(btf, "pcpu_hot", &offset, NULL) == 0) {
                s->preempt_count_offset = offset + 8 - rq; /* behind the pointer to the current task */
                s->has_preempt_count = 1;
        }
        if (!s->has_preempt_count)
                part_set(p, PART_TIMER_WAKES, PART_UNAVAILABLE,
                                "wakes from interrupts are charged to the thread they interrupt: the kernel's BTF does "
                                "not say where preempt_count is");

        if (percpu_offset(btf, "hrtimer_bases", &offset, NULL) == 0 &&
                        member_offset(btf, "hrtimer_clock_base", "running", &member) == 0) {
                s->hrtimer_bases_offset = offset - rq;
                s->has_hrtimer_bases = 1;
        }
        if (percpu_offset(btf, "timer_bases", &offset, &size) == 0 && struct_size(btf, "timer_base") > 0 &&
                        member_offset(btf, "timer_base", "running_timer", &member) == 0) {
                s->timer_bases_offset = offset - rq;
                s->timer_bases_number = size / (unsigned) struct_size(btf, "timer_base");
                s->has_timer_bases = 1;
        }
        if (s->has_preempt_count && !(s->has_hrtimer_bases && s->has_timer_bases))
                part_set(p, PART_TIMER_WAKES, PART_DEGRADED,
                                "some wakes by timers are shown as irq: the kernel's BTF does not describe its timer "
                                "bases");
}

static int inner_map_new(const char *name, size_t key, size_t value, unsigned entries) {
        int fd = bpf_map_create(BPF_MAP_TYPE_HASH, name, (unsigned) key, (unsigned) value, entries, NULL);

        return fd < 0 ? -errno : fd;
}

static int generations_fill(struct bpf_map *outer, const char *name, size_t key, size_t value, unsigned entries,
                int ret_fds[static 2]) {
        for (unsigned i = 0; i < 2; i++) {
                ret_fds[i] = inner_map_new(name, key, value, entries);
                if (ret_fds[i] < 0)
                        return ret_fds[i];
                if (bpf_map__update_elem(outer, &i, sizeof(i), &ret_fds[i], sizeof(ret_fds[i]), BPF_ANY) < 0)
                        return -errno;
        }
        return 0;
}

static int map_array(struct bpf_map *map, size_t element, size_t n, void **ret, size_t *ret_bytes) {
        size_t page = (size_t) sysconf(_SC_PAGESIZE), bytes = (element * n + page - 1) / page * page;
        void *memory;

        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
        if (memory == MAP_FAILED)
                return -errno;
        *ret = memory;
        *ret_bytes = bytes;
        return 0;
}

/* Attaches one program. */
static int attach(struct bpf_program *program, struct bpf_link **ret_link, char **ret_error) {
        struct bpf_link *link;
        int r;

        link = bpf_program__attach(program);
        if (!link) {
                r = -errno;
                if (ret_error &&
                                asprintf(ret_error, "cannot attach %s: %s", bpf_program__name(program), strerror(-r)) <
                                                0)
                        *ret_error = NULL;
                return r;
        }
        *ret_link = link;
        return 0;
}

/* Where the skeleton keeps the link of a program. */
static struct bpf_link **link_of(Probes *p, const char *program) {
        const struct bpf_object_skeleton *s = p->skeleton->skeleton;

        for (int i = 0; i < s->prog_cnt; i++)
                if (streq(s->progs[i].name, program))
                        return s->progs[i].link;
        return NULL;
}

/* Where a request to a disk begins: the program for it, as the kernel has it since 6.5, or the one that sees the bio for
 * which a request is made. */
static const char *const block_beginnings[] = { "block_io_start", "block_getrq" };

static void choose_block_beginning(Probes *p, const struct btf *btf) {
        bool found = p->parts[PART_BLOCK].state == PART_UNAVAILABLE;

        for (size_t i = 0; i < ELEMENTSOF(block_beginnings); i++) {
                bool use = !found && tracepoint_arguments(btf, block_beginnings[i]) >= 0;

                (void) bpf_program__set_autoload(
                                bpf_object__find_program_by_name(p->skeleton->obj, block_beginnings[i]), use);
                found = found || use;
        }
        if (!found)
                part_set(p, PART_BLOCK, PART_UNAVAILABLE,
                                "requests to disks are not counted: this kernel has no tracepoint where they begin");
}

static void attach_block_beginning(Probes *p) {
        for (size_t i = 0; i < ELEMENTSOF(block_beginnings); i++) {
                struct bpf_program *program = bpf_object__find_program_by_name(p->skeleton->obj, block_beginnings[i]);
                int r;

                if (!bpf_program__autoload(program))
                        continue;
                r = attach(program, link_of(p, block_beginnings[i]), NULL);
                if (r < 0)
                        part_set(p, PART_BLOCK, PART_UNAVAILABLE, "requests to disks are not counted: %s",
                                        strerror(-r));
        }
}

/* Those that this kernel has no tracepoint for are not loaded. */
static void choose_programs(Probes *p, const struct btf *btf) {
        for (size_t i = 0; i < ELEMENTSOF(optional_programs); i++) {
                const Optional *o = &optional_programs[i];
                struct bpf_program *program = bpf_object__find_program_by_name(p->skeleton->obj, o->program);
                int64_t member;

                if (program && tracepoint_arguments(btf, o->tracepoint) >= 0 &&
                                (!streq(o->program, "sched_migrate_task") ||
                                                member_offset(btf, "sched_entity", "cfs_rq", &member) >= 0))
                        continue;
                part_set(p, o->part, PART_UNAVAILABLE, "%s: this kernel has no tracepoint %s", o->consequence,
                                o->tracepoint);
                if (program)
                        (void) bpf_program__set_autoload(program, false);
        }
        choose_block_beginning(p, btf);
}

static void attach_optional(Probes *p) {
        for (size_t i = 0; i < ELEMENTSOF(optional_programs); i++) {
                const Optional *o = &optional_programs[i];
                struct bpf_program *program = bpf_object__find_program_by_name(p->skeleton->obj, o->program);
                struct bpf_link **link = link_of(p, o->program);
                int r;

                if (o->on_demand || !program || !link || !bpf_program__autoload(program))
                        continue;
                r = attach(program, link, NULL);
                if (r < 0)
                        part_set(p, o->part, PART_UNAVAILABLE, "%s: %s", o->consequence, strerror(-r));
        }
}

static int handle_event(void *userdata, void *data, size_t size) {
        Probes *p = userdata;

        if (size >= sizeof(struct prism_event) && p->handler)
                p->handler(data, p->userdata);
        return 0;
}

static int run_iterator(struct bpf_program *program, uint32_t pid, char **ret_data, size_t *ret_size);

/* Shows the kernel side one file of each kind that has no mark of its own, so that it knows their operations. */
static void learn_kinds(Probes *p) {
        struct prism_control *c = &p->skeleton->bss->control;
        struct io_uring_params params = {};
        _cleanup_free_ char *data = NULL;
        sigset_t signals;
        size_t size;
        int r;

        sigemptyset(&signals);
        c->file_descriptors[PRISM_FILE_EPOLL] = epoll_create1(EPOLL_CLOEXEC);
        c->file_descriptors[PRISM_FILE_EVENTFD] = eventfd(0, EFD_CLOEXEC);
        c->file_descriptors[PRISM_FILE_TIMERFD] = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
        c->file_descriptors[PRISM_FILE_SIGNALFD] = signalfd(-1, &signals, SFD_CLOEXEC);
        c->file_descriptors[PRISM_FILE_INOTIFY] = inotify_init1(IN_CLOEXEC);
        /* May be switched off for the whole host: then nobody has one. */
        c->file_descriptors[PRISM_FILE_IO_URING] = (int) syscall(SYS_io_uring_setup, 1U, &params);

        r = run_iterator(p->skeleton->progs.iter_kinds, (uint32_t) getpid(), &data, &size);
        for (unsigned i = 0; i < _PRISM_FILE_MAX; i++) {
                if (c->file_descriptors[i] >= 0)
                        close(c->file_descriptors[i]);
                if (r >= 0 && c->file_descriptors[i] >= 0 && c->file_operations[i] == 0)
                        r = -ENOENT;
                c->file_descriptors[i] = -1;
        }
        if (r < 0)
                part_set(p, PART_FILE_KINDS, PART_DEGRADED,
                                "epoll, eventfd, timerfd, signalfd and inotify files are shown as other: %s",
                                strerror(-r));
}

static int load_error(int r, char **ret_error) {
        const char *help;

        if (!ret_error)
                return r;
        if (r == -EPERM || r == -EACCES)
                help = "it needs root, or CAP_BPF and CAP_PERFMON; in a container also a seccomp profile that allows "
                       "bpf()";
        else if (access("/sys/kernel/btf/vmlinux", R_OK) < 0)
                help = "this kernel has no BTF (CONFIG_DEBUG_INFO_BTF); prism needs Linux 5.15 or newer with it";
        else
                help = "prism needs Linux 5.15 or newer; run prismd with PRISM_LIBBPF_DEBUG=1 to see what the kernel "
                       "says";
        if (asprintf(ret_error, "cannot load the eBPF programs: %s; %s", strerror(-r), help) < 0)
                *ret_error = NULL;
        return r;
}

static int probes_load(Probes *p, char **ret_error) {
        struct btf *btf;
        int r, cpus;

        btf = btf__load_vmlinux_btf();
        if (!btf)
                return load_error(-errno, ret_error);

        p->skeleton = prism_bpf__open();
        if (!p->skeleton) {
                r = -errno;
                btf__free(btf);
                return load_error(r, ret_error);
        }
        probes_settle(p, btf);
        choose_programs(p, btf);
        btf__free(btf);

        cpus = libbpf_num_possible_cpus();
        if (cpus < 1)
                cpus = 1;
        bpf_map__set_max_entries(p->skeleton->maps.thread_info, p->limits.threads);
        bpf_map__set_max_entries(p->skeleton->maps.thread_time, 2 * p->limits.threads);
        bpf_map__set_max_entries(p->skeleton->maps.free_slots, p->limits.threads);
        bpf_map__set_max_entries(p->skeleton->maps.slices, (unsigned) cpus);

        r = prism_bpf__load(p->skeleton);
        if (r < 0)
                return load_error(r, ret_error);

        r = generations_fill(p->skeleton->maps.wait_generations, "prism_wait", sizeof(struct prism_wait_key),
                        sizeof(struct prism_wait_value), p->limits.waits, p->wait_fds);
        if (r >= 0)
                r = generations_fill(p->skeleton->maps.instead_generations, "prism_instead",
                                sizeof(struct prism_instead_key), sizeof(struct prism_instead_value),
                                p->limits.insteads, p->instead_fds);
        if (r >= 0)
                r = generations_fill(p->skeleton->maps.call_generations, "prism_call", sizeof(struct prism_call_key),
                                sizeof(struct prism_call_value), calls_limit(p), p->call_fds);
        if (r >= 0)
                r = generations_fill(p->skeleton->maps.disk_generations, "prism_disk", sizeof(struct prism_disk_key),
                                sizeof(struct prism_disk_value), DISKS, p->disk_fds);
        if (r >= 0)
                r = map_array(p->skeleton->maps.thread_info, sizeof(struct prism_thread_info), p->limits.threads,
                                (void **) &p->infos, &p->infos_bytes);
        if (r >= 0)
                r = map_array(p->skeleton->maps.thread_time, sizeof(struct prism_thread_time), 2 * p->limits.threads,
                                (void **) &p->times, &p->times_bytes);
        if (r < 0)
                return load_error(r, ret_error);

        p->events = ring_buffer__new(bpf_map__fd(p->skeleton->maps.events), handle_event, p, NULL);
        if (!p->events)
                return load_error(-errno, ret_error);

        p->skeleton->bss->control.generation_start_ns[0] = boot_now();
        learn_kinds(p);
        if (p->own_pid_namespace) {
                char *data = NULL;
                size_t size;

                r = run_iterator(p->skeleton->progs.iter_mark, 0, &data, &size);
                free(data);
                if (r < 0)
                        return load_error(r, ret_error);
        }
        return 0;
}

int probes_new(const ProbesLimits *limits, Probes **ret, char **ret_error) {
        static const char *const names[_PART_MAX] = {
                [PART_SWITCH] = "thread-states",
                [PART_WAKE] = "wakers",
                [PART_MIGRATION] = "ran-instead-migration",
                [PART_LIFE] = "follow-children",
                [PART_TIMER_WAKES] = "interrupt-wakes",
                [PART_SHARED_FUTEX] = "shared-futexes",
                [PART_FILE_KINDS] = "file-kinds",
                [PART_PAGE_FAULT] = "page-fault-files",
                [PART_KERNEL_LOCK] = "kernel-locks",
                [PART_RECLAIM] = "reclaim",
                [PART_CGROUP_RECLAIM] = "cgroup-reclaim",
                [PART_URING] = "io_uring-requests",
                [PART_CALLS] = "calls",
                [PART_BLOCK] = "block-io",
        };
        _cleanup_(probes_freep) Probes *p = NULL;
        struct prism_bpf *s;
        int r;

        p = calloc(1, sizeof(*p));
        if (!p)
                return -ENOMEM;
        p->limits = *limits;
        p->wait_fds[0] = p->wait_fds[1] = p->instead_fds[0] = p->instead_fds[1] = -1;
        p->call_fds[0] = p->call_fds[1] = p->disk_fds[0] = p->disk_fds[1] = -1;
        for (unsigned i = 0; i < _PART_MAX; i++)
                p->parts[i].name = names[i];

        p->wait_keys = calloc(limits->waits, sizeof(*p->wait_keys));
        p->wait_values = calloc(limits->waits, sizeof(*p->wait_values));
        p->instead_keys = calloc(limits->insteads, sizeof(*p->instead_keys));
        p->instead_values = calloc(limits->insteads, sizeof(*p->instead_values));
        p->call_keys = calloc(limits->waits / CALLS_SHARE, sizeof(*p->call_keys));
        p->call_values = calloc(limits->waits / CALLS_SHARE, sizeof(*p->call_values));
        p->object_keys = calloc(OBJECTS, sizeof(*p->object_keys));
        p->objects = calloc(OBJECTS, sizeof(*p->objects));
        p->disk_keys = calloc(DISKS, sizeof(*p->disk_keys));
        p->disk_values = calloc(DISKS, sizeof(*p->disk_values));
        if (!p->wait_keys || !p->wait_values || !p->instead_keys || !p->instead_values || !p->call_keys ||
                        !p->call_values || !p->object_keys || !p->objects || !p->disk_keys || !p->disk_values)
                return -ENOMEM;

        libbpf_set_print(silent);
        r = probes_load(p, ret_error);
        if (r < 0)
                return r;

        s = p->skeleton;
        r = attach(s->progs.sched_switch, &s->links.sched_switch, ret_error);
        if (r < 0)
                return r;
#ifdef PRISM_WITHOUT_WAKING
        part_set(p, PART_WAKE, PART_UNAVAILABLE, "left out of this build, to test that it is noticed");
#else
        r = attach(s->progs.sched_waking, &s->links.sched_waking, ret_error);
        if (r < 0)
                return r;
#endif
        attach_optional(p);
        attach_block_beginning(p);

        *ret = TAKE_PTR(p);
        return 0;
}

Probes *probes_free(Probes *p) {
        if (!p)
                return NULL;
        ring_buffer__free(p->events);
        if (p->infos)
                munmap(p->infos, p->infos_bytes);
        if (p->times)
                munmap(p->times, p->times_bytes);
        for (unsigned i = 0; i < 2; i++) {
                if (p->wait_fds[i] >= 0)
                        close(p->wait_fds[i]);
                if (p->instead_fds[i] >= 0)
                        close(p->instead_fds[i]);
                if (p->call_fds[i] >= 0)
                        close(p->call_fds[i]);
                if (p->disk_fds[i] >= 0)
                        close(p->disk_fds[i]);
        }
        prism_bpf__destroy(p->skeleton);
        free(p->wait_keys);
        free(p->wait_values);
        free(p->instead_keys);
        free(p->instead_values);
        free(p->call_keys);
        free(p->call_values);
        free(p->object_keys);
        free(p->objects);
        free(p->disk_keys);
        free(p->disk_values);
        free(p);
        return NULL;
}

const Part *probes_parts(const Probes *p, size_t *ret_n) {
        *ret_n = _PART_MAX;
        return p->parts;
}

bool probes_in_own_pid_namespace(const Probes *p) {
        return p->own_pid_namespace;
}

uint64_t probes_map_bytes(const Probes *p) {
        /* A preallocated hash element: key and value rounded up to 8, and about 48 bytes of its own; a bucket has 16.
         * */
        uint64_t wait = sizeof(struct prism_wait_key) + sizeof(struct prism_wait_value) + 48 + 16;
        uint64_t instead = sizeof(struct prism_instead_key) + sizeof(struct prism_instead_value) + 48 + 16;

        uint64_t call = sizeof(struct prism_call_key) + sizeof(struct prism_call_value) + 48 + 16;
        uint64_t object = sizeof(struct prism_object_key) + sizeof(struct prism_object) + 48 + 16;
        uint64_t disk = sizeof(struct prism_disk_key) + sizeof(struct prism_disk_value) + 48 + 16;
        /* The map of those in flight has one value more, what is known of the submitter. */
        uint64_t request = 8 + sizeof(struct prism_disk_key) + 40 + 48 + 16;

        return p->infos_bytes + p->times_bytes +
                        2 * (wait * p->limits.waits + instead * p->limits.insteads + call * calls_limit(p)) +
                        object * OBJECTS + 2 * disk * DISKS +
                        request * bpf_map__max_entries(p->skeleton->maps.requests) +
                        bpf_map__max_entries(p->skeleton->maps.events) + 4ULL * p->limits.threads;
}

void probes_set_active(Probes *p, bool active, bool report_execs) {
        p->skeleton->bss->control.report_execs = report_execs;
        p->skeleton->bss->control.active = active;
}

static void link_destroy(struct bpf_link *link) {
        bpf_link__destroy(link);
}
DEFINE_CLEANUP(struct bpf_link *, link_destroy);

/* Runs an iterator over the tasks of one process (where the kernel can, 6.1) or all, and returns what it wrote. */
static int run_iterator(struct bpf_program *program, uint32_t pid, char **ret_data, size_t *ret_size) {
        union bpf_iter_link_info info = { .task.pid = pid };
        LIBBPF_OPTS(bpf_iter_attach_opts, options, .link_info = &info, .link_info_len = sizeof(info));
        _cleanup_(link_destroyp) struct bpf_link *link = NULL;
        _cleanup_free_ char *data = NULL;
        _cleanup_close_ int fd = -1;
        size_t size = 0, capacity = 0;
        unsigned tries = 0;

        link = bpf_program__attach_iter(program, pid ? &options : NULL);
        if (!link && pid && errno != ESRCH)
                link = bpf_program__attach_iter(program, NULL);
        if (!link)
                return -errno;
        fd = bpf_iter_create(bpf_link__fd(link));
        if (fd < 0)
                return -errno;
        for (;;) {
                ssize_t n;

                if (capacity - size < ITERATOR_CHUNK) {
                        char *grown = realloc(data, capacity + 4 * ITERATOR_CHUNK);

                        if (!grown)
                                return -ENOMEM;
                        data = grown;
                        capacity += 4 * ITERATOR_CHUNK;
                }
                n = read(fd, data + size, capacity - size);
                /* EAGAIN: a million tasks went by without output; go on from there. */
                if (n < 0 && (errno == EINTR || errno == EAGAIN) && ++tries < ITERATOR_TRIES_MAX)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                size += (size_t) n;
        }
        *ret_data = TAKE_PTR(data);
        *ret_size = size;
        return 0;
}

int probes_mark(Probes *p, uint32_t pid, enum prism_follow follow, uint32_t target) {
        struct prism_control *c = &p->skeleton->bss->control;
        int total = 0;

        c->unmark_tgid = 0;
        c->mark_tgid = pid;
        c->mark_follow = follow;
        c->mark_target = target;

        /* A thread that is not marked yet can start another behind the iterator's back: go on until nothing is new. */
        for (unsigned i = 0; i < 5; i++) {
                _cleanup_free_ char *data = NULL;
                size_t n = 0;
                int r;

                r = run_iterator(p->skeleton->progs.iter_mark, pid, &data, &n);
                if (r == -ESRCH)
                        break;
                if (r < 0)
                        return r;
                if (n == 0)
                        break;
                total += (int) n;
        }
        c->mark_tgid = 0;
        return total;
}

int probes_unmark(Probes *p, uint32_t host_pid) {
        struct prism_control *c = &p->skeleton->bss->control;
        bool all = host_pid == PRISM_UNMARK_ALL || p->own_pid_namespace;
        size_t left = 0;
        int r = 0;

        c->mark_tgid = 0;
        c->unmark_tgid = host_pid;
        /* Up to 6.1 a deletion fails while the same CPU is inside another storage operation. */
        for (unsigned i = 0; i < UNMARK_TRIES_MAX; i++) {
                _cleanup_free_ char *data = NULL;

                r = run_iterator(p->skeleton->progs.iter_mark, all ? 0 : host_pid, &data, &left);
                if (r < 0 || left == 0)
                        break;
        }
        c->unmark_tgid = 0;
        if (r == -ESRCH)
                return 0;
        return r < 0 ? r : left > 0 ? -EBUSY : 0;
}

int probes_flip(Probes *p, bool flush, unsigned *ret_idle, uint64_t *ret_start_ns) {
        struct prism_control *c = &p->skeleton->bss->control;
        unsigned idle = c->generation & 1, next = idle ^ 1;
        uint64_t now;

        now = boot_now();
        c->generation_start_ns[next] = now;
        if (flush)
                c->flush_ns = now;
        __atomic_store_n(&c->generation, c->generation + 1, __ATOMIC_SEQ_CST);

        /* An update of an outer map returns only when the programs that run now have ended. */
        if (bpf_map__update_elem(p->skeleton->maps.wait_generations, &idle, sizeof(idle), &p->wait_fds[idle],
                            sizeof(p->wait_fds[idle]), BPF_ANY) < 0)
                return -errno;

        *ret_idle = idle;
        *ret_start_ns = now;
        return 0;
}

unsigned probes_slots(const Probes *p) {
        return MIN(__atomic_load_n(&p->skeleton->bss->next_slot, __ATOMIC_RELAXED), p->limits.threads);
}

unsigned probes_free_slots(const Probes *p) {
        unsigned used = 0, slots = probes_slots(p);

        for (unsigned i = 0; i < slots; i++)
                used += p->infos[i].thread != 0;
        return p->limits.threads - used;
}

struct prism_thread_time *probes_thread_time(Probes *p, unsigned idle, unsigned slot) {
        return &p->times[idle * p->limits.threads + slot];
}

unsigned probes_info_sequence(const Probes *p, unsigned slot) {
        return __atomic_load_n(&p->infos[slot].sequence, __ATOMIC_ACQUIRE);
}

bool probes_thread_info(Probes *p, unsigned slot, struct prism_thread_info *ret) {
        for (unsigned i = 0; i < 100; i++) {
                unsigned before = probes_info_sequence(p, slot);

                if (before & 1)
                        continue;
                memcpy(ret, &p->infos[slot], sizeof(*ret));
                __atomic_thread_fence(__ATOMIC_ACQUIRE);
                if (probes_info_sequence(p, slot) == before)
                        return true;
        }
        return false;
}

void probes_slot_release(Probes *p, unsigned slot) {
        p->infos[slot].thread = 0;
        (void) bpf_map__update_elem(p->skeleton->maps.free_slots, NULL, 0, &slot, sizeof(slot), BPF_ANY);
}

/* Lookup-and-delete in chunks: larger ones are slower (fresh pages are copied to), and ENOSPC means that one bucket did
 * not fit into what was left of the arrays. */
static int drain(int fd, void *keys, size_t key_size, void *values, size_t value_size, unsigned limit, size_t *ret_n) {
        LIBBPF_OPTS(bpf_map_batch_opts, options);
        uint64_t position = 0;
        bool first = true;
        size_t n = 0;

        while (n < limit) {
                uint32_t count = (uint32_t) MIN((size_t) DRAIN_CHUNK, limit - n);
                int r;

                r = bpf_map_lookup_and_delete_batch(fd, first ? NULL : &position, &position,
                                (char *) keys + n * key_size, (char *) values + n * value_size, &count, &options);
                if (r < 0 && errno != ENOENT && errno != ENOSPC)
                        return -errno;
                n += count;
                if (r < 0 && errno == ENOENT)
                        break;
                if (r < 0 && count == 0) /* ENOSPC without progress */
                        return -ENOSPC;
                first = false;
        }
        *ret_n = n;
        return 0;
}

int probes_drain_waits(Probes *p, unsigned idle, const struct prism_wait_key **ret_keys,
                const struct prism_wait_value **ret_values, size_t *ret_n) {
        *ret_keys = p->wait_keys;
        *ret_values = p->wait_values;
        return drain(p->wait_fds[idle], p->wait_keys, sizeof(*p->wait_keys), p->wait_values, sizeof(*p->wait_values),
                        p->limits.waits, ret_n);
}

int probes_drain_insteads(Probes *p, unsigned idle, const struct prism_instead_key **ret_keys,
                const struct prism_instead_value **ret_values, size_t *ret_n) {
        *ret_keys = p->instead_keys;
        *ret_values = p->instead_values;
        return drain(p->instead_fds[idle], p->instead_keys, sizeof(*p->instead_keys), p->instead_values,
                        sizeof(*p->instead_values), p->limits.insteads, ret_n);
}

int probes_drain_calls(Probes *p, unsigned idle, const struct prism_call_key **ret_keys,
                const struct prism_call_value **ret_values, size_t *ret_n) {
        *ret_keys = p->call_keys;
        *ret_values = p->call_values;
        return drain(p->call_fds[idle], p->call_keys, sizeof(*p->call_keys), p->call_values, sizeof(*p->call_values),
                        calls_limit(p), ret_n);
}

int probes_drain_objects(Probes *p, const struct prism_object_key **ret_keys, const struct prism_object **ret_objects,
                size_t *ret_n) {
        *ret_keys = p->object_keys;
        *ret_objects = p->objects;
        return drain(bpf_map__fd(p->skeleton->maps.objects), p->object_keys, sizeof(*p->object_keys), p->objects,
                        sizeof(*p->objects), OBJECTS, ret_n);
}

int probes_drain_disks(Probes *p, unsigned idle, const struct prism_disk_key **ret_keys,
                const struct prism_disk_value **ret_values, size_t *ret_n) {
        *ret_keys = p->disk_keys;
        *ret_values = p->disk_values;
        return drain(p->disk_fds[idle], p->disk_keys, sizeof(*p->disk_keys), p->disk_values, sizeof(*p->disk_values),
                        DISKS, ret_n);
}

int probes_look_at_files(Probes *p, uint32_t pid) {
        _cleanup_free_ char *data = NULL;
        size_t size;
        int r;

        r = run_iterator(p->skeleton->progs.iter_files, pid, &data, &size);
        return r == -ESRCH ? 0 : r;
}

bool probes_calls(const Probes *p) {
        return p->calls;
}

bool probes_can_count_calls(const Probes *p) {
        return p->parts[PART_CALLS].state != PART_UNAVAILABLE;
}

int probes_set_calls(Probes *p, bool on) {
        static const char *const programs[] = { "sys_exit", "sys_enter" };
        int r = 0;

        if (on == p->calls)
                return 0;
        if (on && !probes_can_count_calls(p))
                return -EOPNOTSUPP;
        if (on)
                /* A call that began the last time does not end now. */
                p->skeleton->bss->control.calls_epoch++;
        for (size_t i = 0; i < ELEMENTSOF(programs); i++) {
                struct bpf_link **link = link_of(p, programs[i]);

                if (!on) {
                        bpf_link__destroy(*link);
                        *link = NULL;
                } else if (r >= 0)
                        r = attach(bpf_object__find_program_by_name(p->skeleton->obj, programs[i]), link, NULL);
        }
        if (r < 0) {
                p->calls = true;
                (void) probes_set_calls(p, false);
                return r;
        }
        p->calls = on;
        return 0;
}

int probes_inflight(Probes *p, struct prism_inflight **ret, size_t *ret_n) {
        char *data = NULL;
        size_t size = 0;
        int r;

        r = run_iterator(p->skeleton->progs.iter_threads, 0, &data, &size);
        if (r < 0)
                return r;
        *ret = (struct prism_inflight *) data;
        *ret_n = size / sizeof(struct prism_inflight);
        return 0;
}

int probes_events_fd(const Probes *p) {
        return ring_buffer__epoll_fd(p->events);
}

int probes_events_consume(Probes *p, probes_event_handler handler, void *userdata) {
        p->handler = handler;
        p->userdata = userdata;
        return ring_buffer__consume(p->events);
}

uint64_t probes_loss(const Probes *p, enum prism_loss reason) {
        return __atomic_load_n(&p->skeleton->bss->losses[reason], __ATOMIC_RELAXED);
}

uint64_t probes_recursion_misses(const Probes *p) {
        struct bpf_program *program;
        uint64_t total = 0;

        bpf_object__for_each_program(program, p->skeleton->obj) {
                struct bpf_prog_info info = {};
                uint32_t size = sizeof(info);
                int fd = bpf_program__fd(program);

                if (fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &size) == 0)
                        total += info.recursion_misses;
        }
        return total;
}
