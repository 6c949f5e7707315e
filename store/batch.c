/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The growing arrays of a batch and the arena of its strings. */
#include "batch.h"

/* Big enough that a tick's strings need few of them; a longer string gets a chunk of its own. */
#define CHUNK_SIZE (16U * 1024U)

struct BatchChunk {
        struct BatchChunk *next;
        size_t used, size;
        char data[];
};

Batch *batch_new(void) {
        Batch *b = calloc(1, sizeof(Batch));

        if (b)
                b->n_ref = 1;
        return b;
}

Batch *batch_ref(Batch *b) {
        __atomic_fetch_add(&b->n_ref, 1, __ATOMIC_RELAXED);
        return b;
}

Batch *batch_unref(Batch *b) {
        if (!b || __atomic_sub_fetch(&b->n_ref, 1, __ATOMIC_ACQ_REL) > 0)
                return NULL;

        free(b->processes);
        free(b->threads);
        free(b->resources);
        free(b->thread_times);
        free(b->waits);
        free(b->wakes);
        free(b->ran_instead);
        free(b->calls);
        free(b->mux_waits);
        free(b->sockets);
        free(b->socket_samples);
        free(b->epoll_watches);
        free(b->disks);
        free(b->cgroup_times);
        free(b->coverages);
        free(b->losses);
        free(b->clocks);

        for (struct BatchChunk *c = b->arena; c;) {
                struct BatchChunk *next = c->next;

                free(c);
                c = next;
        }

        free(b);
        return NULL;
}

/* Replaces *text by a copy in the arena. NULL stays NULL. */
static int arena_copy(Batch *b, const char **text) {
        struct BatchChunk *c = b->arena;
        size_t n;

        if (!*text)
                return 0;

        n = strlen(*text) + 1;
        if (!c || c->size - c->used < n) {
                size_t size = MAX(n, CHUNK_SIZE);

                c = malloc(sizeof(*c) + size);
                if (!c)
                        return -ENOMEM;
                c->used = 0;
                c->size = size;
                c->next = b->arena;
                b->arena = c;
                b->arena_bytes += sizeof(*c) + size;
        }

        *text = memcpy(c->data + c->used, *text, n);
        c->used += n;
        return 0;
}

/* Replaces each of the texts by a copy. */
static int arena_copy_all(Batch *b, const char **const *texts, size_t n) {
        int r = 0;

        for (size_t i = 0; r >= 0 && i < n; i++)
                r = arena_copy(b, texts[i]);
        return r;
}

/* Appends a copy of *row to one of the arrays: 0 or -ENOMEM. */
#define APPEND(array, n, capacity, row)                        \
        ({                                                     \
                int _append_ = GROW((array), (n), (capacity)); \
                if (_append_ >= 0)                             \
                        (array)[(n)++] = *(row);               \
                _append_;                                      \
        })

int batch_add_process(Batch *b, const BatchProcess *row) {
        BatchProcess p = *row;
        const char **const texts[] = { &p.comm, &p.exe, &p.cmdline, &p.cgroup, &p.unit, &p.found_by, &p.target };
        int r;

        r = arena_copy_all(b, texts, ELEMENTSOF(texts));
        if (r < 0)
                return r;
        return APPEND(b->processes, b->n_processes, b->c_processes, &p);
}

int batch_add_thread(Batch *b, const BatchThread *row) {
        BatchThread t = *row;
        int r;

        r = arena_copy(b, &t.comm);
        if (r < 0)
                return r;
        return APPEND(b->threads, b->n_threads, b->c_threads, &t);
}

int batch_add_resource(Batch *b, const BatchResource *row) {
        BatchResource resource = *row;
        const char **const texts[] = { &resource.kind, &resource.ident, &resource.name };
        int r;

        r = arena_copy_all(b, texts, ELEMENTSOF(texts));
        if (r < 0)
                return r;
        return APPEND(b->resources, b->n_resources, b->c_resources, &resource);
}

int batch_add_thread_time(Batch *b, const BatchThreadTime *row) {
        return APPEND(b->thread_times, b->n_thread_times, b->c_thread_times, row);
}

int batch_add_wait(Batch *b, const BatchWait *row) {
        return APPEND(b->waits, b->n_waits, b->c_waits, row);
}

int batch_add_wake(Batch *b, const BatchWake *row) {
        return APPEND(b->wakes, b->n_wakes, b->c_wakes, row);
}

int batch_add_ran_instead(Batch *b, const BatchRanInstead *row) {
        return APPEND(b->ran_instead, b->n_ran_instead, b->c_ran_instead, row);
}

int batch_add_call(Batch *b, const BatchCall *row) {
        return APPEND(b->calls, b->n_calls, b->c_calls, row);
}

int batch_add_mux_wait(Batch *b, const BatchMuxWait *row) {
        return APPEND(b->mux_waits, b->n_mux_waits, b->c_mux_waits, row);
}

int batch_add_socket(Batch *b, const BatchSocket *row) {
        BatchSocket socket = *row;
        const char **const texts[] = { &socket.local_addr, &socket.remote_addr, &socket.path };
        int r;

        r = arena_copy_all(b, texts, ELEMENTSOF(texts));
        if (r < 0)
                return r;
        return APPEND(b->sockets, b->n_sockets, b->c_sockets, &socket);
}

int batch_add_socket_sample(Batch *b, const BatchSocketSample *row) {
        return APPEND(b->socket_samples, b->n_socket_samples, b->c_socket_samples, row);
}

int batch_add_epoll_watch(Batch *b, const BatchEpollWatch *row) {
        return APPEND(b->epoll_watches, b->n_epoll_watches, b->c_epoll_watches, row);
}

int batch_add_disk(Batch *b, const BatchDisk *row) {
        BatchDisk disk = *row;
        int r;

        r = arena_copy(b, &disk.cgroup);
        if (r < 0)
                return r;
        return APPEND(b->disks, b->n_disks, b->c_disks, &disk);
}

int batch_add_cgroup_time(Batch *b, const BatchCgroupTime *row) {
        BatchCgroupTime time = *row;
        int r;

        r = arena_copy(b, &time.cgroup);
        if (r < 0)
                return r;
        return APPEND(b->cgroup_times, b->n_cgroup_times, b->c_cgroup_times, &time);
}

int batch_add_coverage(Batch *b, const BatchCoverage *row) {
        return APPEND(b->coverages, b->n_coverages, b->c_coverages, row);
}

int batch_add_loss(Batch *b, const BatchLoss *row) {
        return APPEND(b->losses, b->n_losses, b->c_losses, row);
}

int batch_add_clock(Batch *b, const BatchClock *row) {
        return APPEND(b->clocks, b->n_clocks, b->c_clocks, row);
}

bool batch_is_empty(const Batch *b) {
        return batch_rows(b) + b->n_processes + b->n_threads + b->n_resources + b->n_sockets + b->n_epoll_watches +
                        b->n_coverages ==
                        0;
}

size_t batch_rows(const Batch *b) {
        return b->n_thread_times + b->n_waits + b->n_wakes + b->n_ran_instead + b->n_calls + b->n_mux_waits +
                        b->n_socket_samples + b->n_disks + b->n_cgroup_times + b->n_losses + b->n_clocks;
}

size_t batch_bytes(const Batch *b) {
        return sizeof(*b) + b->arena_bytes + b->c_processes * sizeof(*b->processes) +
                        b->c_threads * sizeof(*b->threads) + b->c_resources * sizeof(*b->resources) +
                        b->c_thread_times * sizeof(*b->thread_times) + b->c_waits * sizeof(*b->waits) +
                        b->c_wakes * sizeof(*b->wakes) + b->c_ran_instead * sizeof(*b->ran_instead) +
                        b->c_calls * sizeof(*b->calls) + b->c_mux_waits * sizeof(*b->mux_waits) +
                        b->c_sockets * sizeof(*b->sockets) + b->c_socket_samples * sizeof(*b->socket_samples) +
                        b->c_epoll_watches * sizeof(*b->epoll_watches) + b->c_disks * sizeof(*b->disks) +
                        b->c_cgroup_times * sizeof(*b->cgroup_times) + b->c_coverages * sizeof(*b->coverages) +
                        b->c_losses * sizeof(*b->losses) + b->c_clocks * sizeof(*b->clocks);
}
