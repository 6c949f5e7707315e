/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Loading the kernel side part by part: what this kernel has, which programs are chosen, what is missing without them. */
#include "probes-internal.h"
#include "probe_reads.skel.h"

#include "clock.h"

#include <bpf/btf.h>
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
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>

#define KERNEL_TYPES "/sys/kernel/btf/vmlinux"
/* Inode number of the first pid namespace (include/linux/proc_ns.h). */
#define HOST_PID_NAMESPACE 0xEFFFFFFCU

/* Programs that a kernel may lack. The part is unavailable without them, the rest goes on. */
typedef struct Optional {
        const char *program, *tracepoint;
        unsigned part;
        const char *consequence;
        bool on_demand; /* attached by probes_set_calls() */
        bool paired;    /* of no use, and harmful, without the others of its part */
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
        { "contention_end", "contention_end", PART_KERNEL_LOCK,
                        "kernel locks are told by the system call only, not by their kind (5.19)", false, true },
        { "contention_begin", "contention_begin", PART_KERNEL_LOCK,
                        "kernel locks are told by the system call only, not by their kind (5.19)", false, true },
        { "direct_reclaim_end", "mm_vmscan_direct_reclaim_end", PART_RECLAIM,
                        "waits for memory to be freed are charged to what the thread did then", false, true },
        { "direct_reclaim_begin", "mm_vmscan_direct_reclaim_begin", PART_RECLAIM,
                        "waits for memory to be freed are charged to what the thread did then", false, true },
        { "cgroup_reclaim_end", "mm_vmscan_memcg_reclaim_end", PART_CGROUP_RECLAIM,
                        "waits for memory of a cgroup to be freed are charged to what the thread did then: this "
                        "kernel has no memory controller",
                        false, true },
        { "cgroup_reclaim_begin", "mm_vmscan_memcg_reclaim_begin", PART_CGROUP_RECLAIM,
                        "waits for memory of a cgroup to be freed are charged to what the thread did then: this "
                        "kernel has no memory controller",
                        false, true },
        { "io_uring_submit", "io_uring_submit_req", PART_URING, "requests to io_uring are not counted (6.4)", false },
        { "io_uring_complete", "io_uring_complete", PART_URING, "completions of io_uring are not counted", false },
        { "block_rq_complete", "block_rq_complete", PART_BLOCK, "requests to disks are not counted", false },
        { "block_rq_merge", "block_rq_merge", PART_BLOCK, "requests to disks are not counted", false },
        { "socket_closing", "inet_sock_set_state", PART_SOCKET_CLOSE,
                        "what a socket moved in its last second is missing from its bytes", false },
        { "sys_enter", "sys_enter", PART_CALLS, "system calls that do not block are not counted", true },
        { "sys_exit", "sys_exit", PART_CALLS, "system calls that do not block are not counted", true },
};

void part_set(Probes *p, unsigned part, PartState state, const char *format, ...) {
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
                s->secret[0] = s->secret[1] = boot_now();
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
int probes_attach(struct bpf_program *program, struct bpf_link **ret_link, char **ret_error) {
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
struct bpf_link **probes_link_of(Probes *p, const char *program) {
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
                r = probes_attach(program, probes_link_of(p, block_beginnings[i]), NULL);
                if (r < 0)
                        part_set(p, PART_BLOCK, PART_UNAVAILABLE, "requests to disks are not counted: %s",
                                        strerror(-r));
        }
}

/* Those that this kernel has no tracepoint for are not loaded. */
static void choose_programs(Probes *p, const struct btf *btf) {
        p->reads_polls = btf__find_by_name_kind(btf, "bpf_copy_from_user_task", BTF_KIND_FUNC) > 0;
        (void) bpf_program__set_autoload(p->skeleton->progs.iter_read_polls, p->reads_polls);
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
                struct bpf_link **link = probes_link_of(p, o->program);
                int r;

                if (o->on_demand || !program || !link || !bpf_program__autoload(program))
                        continue;
                /* Ends stand before beginnings: without its end, what begins would never be over. */
                if (o->paired && p->parts[o->part].state == PART_UNAVAILABLE)
                        continue;
                r = probes_attach(program, link, NULL);
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

/* Shows the kernel side one file of each kind that has no mark of its own, so that it knows their operations. */
static void learn_kinds(Probes *p) {
        union bpf_iter_link_info one = { .task.pid = (uint32_t) getpid() };
        LIBBPF_OPTS(bpf_iter_attach_opts, options, .link_info = &one, .link_info_len = sizeof(one));
        struct bpf_link *link;
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
        c->file_descriptors[PRISM_FILE_SOCKET] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        /* May be switched off for the whole host: then nobody has one. */
        c->file_descriptors[PRISM_FILE_IO_URING] = (int) syscall(SYS_io_uring_setup, 1U, &params);

        link = bpf_program__attach_iter(p->skeleton->progs.iter_kinds, &options);
        p->looks_at_one = link;
        bpf_link__destroy(link);
        r = probes_run_iterator(p->skeleton->progs.iter_kinds, (uint32_t) getpid(), &data, &size);
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
        else if (access(KERNEL_TYPES, R_OK) < 0)
                help = "this kernel has no BTF (CONFIG_DEBUG_INFO_BTF); prism needs Linux 5.15 or newer with it";
        else
                help = "prism needs Linux 5.15 or newer; run prismd with PRISM_LIBBPF_DEBUG=1 to see what the kernel "
                       "says";
        if (asprintf(ret_error, "cannot load the eBPF programs: %s; %s", strerror(-r), help) < 0)
                *ret_error = NULL;
        return r;
}

#ifdef PRISM_ALWAYS_PROBE_READS
#define ALWAYS_PROBE_READS true
#else
#define ALWAYS_PROBE_READS false
#endif

/* As prism_bpf__open_opts() does, with the variant that this kernel can load: bpf/kernel-read.h. They differ in code only. */
static int skeleton_open(const struct btf *btf, const struct bpf_object_open_opts *options, struct prism_bpf **ret) {
        struct prism_bpf *skeleton;
        int r;

        skeleton = calloc(1, sizeof(*skeleton));
        if (!skeleton)
                return -ENOMEM;
        r = prism_bpf__create_skeleton(skeleton);
        if (r < 0) {
                free(skeleton);
                return r;
        }
        if (ALWAYS_PROBE_READS || btf__find_by_name_kind(btf, "bpf_rdonly_cast", BTF_KIND_FUNC) < 0)
                skeleton->skeleton->data = (void *) prism_probe_reads__elf_bytes(&skeleton->skeleton->data_sz);
        r = bpf_object__open_skeleton(skeleton->skeleton, options);
        if (r < 0) {
                prism_bpf__destroy(skeleton);
                return r;
        }
        *ret = skeleton;
        return 0;
}

static int probes_load(Probes *p, char **ret_error) {
        LIBBPF_OPTS(bpf_object_open_opts, options);
        struct btf *btf;
        int r, cpus;

        btf = btf__load_vmlinux_btf();
        if (!btf)
                return load_error(-errno, ret_error);

        /* Named, it is all that libbpf looks at: for a type that this kernel lacks it would go through those of modules too, which
         * needs CAP_SYS_ADMIN, and fail the whole load without it. */
        if (access(KERNEL_TYPES, R_OK) == 0)
                options.btf_custom_path = KERNEL_TYPES;
        r = skeleton_open(btf, &options, &p->skeleton);
        if (r < 0) {
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

                r = probes_run_iterator(p->skeleton->progs.iter_mark, 0, &data, &size);
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
                [PART_SOCKET_CLOSE] = "closed-sockets",
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
        r = probes_attach(s->progs.sched_switch, &s->links.sched_switch, ret_error);
        if (r < 0)
                return r;
#ifdef PRISM_WITHOUT_WAKING
        part_set(p, PART_WAKE, PART_UNAVAILABLE, "left out of this build, to test that it is noticed");
#else
        r = probes_attach(s->progs.sched_waking, &s->links.sched_waking, ret_error);
        if (r < 0)
                return r;
#endif
        attach_optional(p);
        attach_block_beginning(p);

        *ret = TAKE_PTR(p);
        return 0;
}
