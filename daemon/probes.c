/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "probes-internal.h"

#include "clock.h"

#include <sys/mman.h>

#define DRAIN_CHUNK 4096
#define ITERATOR_CHUNK 65536
#define ITERATOR_TRIES_MAX 1000
#define UNMARK_TRIES_MAX 10

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
int probes_run_iterator(struct bpf_program *program, uint32_t pid, char **ret_data, size_t *ret_size) {
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

                r = probes_run_iterator(p->skeleton->progs.iter_mark, pid, &data, &n);
                if (r == -ESRCH)
                        break;
                if (r < 0)
                        return r;
                if (n == 0)
                        break;
                total += (int) n;
        }
        c->mark_tgid = 0;
        if (total > 0 && p->reads_polls) {
                _cleanup_free_ char *data = NULL;
                size_t n;

                /* Without it the wait that goes on has no name. */
                (void) probes_run_iterator(p->skeleton->progs.iter_read_polls, pid, &data, &n);
        }
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

                r = probes_run_iterator(p->skeleton->progs.iter_mark, all ? 0 : host_pid, &data, &left);
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
                if (r < 0 && count == 0) {
                        /* ENOSPC without progress: what is left of the arrays is smaller than a bucket. */
                        if (n == 0)
                                return -ENOSPC;
                        break;
                }
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

int probes_look_at_files(Probes *p, uint32_t pid, bool watches, struct prism_watch **ret, size_t *ret_n) {
        char *data = NULL;
        size_t size = 0;
        int r;

        p->skeleton->bss->control.look_at_watches = watches;
        r = probes_run_iterator(p->skeleton->progs.iter_files, pid, &data, &size);
        if (r < 0 && r != -ESRCH)
                return r;
        *ret = (struct prism_watch *) data;
        *ret_n = size / sizeof(struct prism_watch);
        return 0;
}

bool probes_look_at_one(const Probes *p) {
        return p->looks_at_one;
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
                struct bpf_link **link = probes_link_of(p, programs[i]);

                if (!on) {
                        bpf_link__destroy(*link);
                        *link = NULL;
                } else if (r >= 0)
                        r = probes_attach(bpf_object__find_program_by_name(p->skeleton->obj, programs[i]), link, NULL);
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

        r = probes_run_iterator(p->skeleton->progs.iter_threads, 0, &data, &size);
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
