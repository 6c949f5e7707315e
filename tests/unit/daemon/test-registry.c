/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* daemon/registry.c and daemon/describe.c: who is who, what is forgotten when, and what a batch is told. */
#include "registry.h"
#include "daemon-unit.h"

#include "describe.h"
#include "names.h"

static Registry *registry(unsigned processes, unsigned resources) {
        Registry *r = NULL;

        ck_assert_int_eq(registry_new(&(RegistryLimits){ .processes = processes,
                                                      .resources = resources,
                                                      .threads = 100 },
                                         &r),
                        0);
        return r;
}

static Identity identity(uint64_t number, uint64_t start_ns) {
        return (Identity){ .start_boot_ns = start_ns, .number = number };
}

static Process *add_process(Registry *r, uint64_t number, uint64_t start_ns) {
        Identity id = identity(number, start_ns);
        Process *p = registry_add_process(r, &id, false);

        ck_assert_ptr_nonnull(p);
        p->pid = (uint32_t) number;
        return p;
}

static Thread *add_thread(Registry *r, Process *p, uint64_t number, uint64_t start_ns, uint64_t handle) {
        Identity id = identity(number, start_ns);
        Thread *t = registry_add_thread(r, &id, handle, p);

        ck_assert_ptr_nonnull(t);
        if (handle) {
                t->live = true;
                p->live_threads++;
        }
        return t;
}

static void end_thread(Thread *t, uint64_t now) {
        t->live = false;
        t->exit_boot_ns = now;
        t->used_ns = now;
        t->process->live_threads--;
}

START_TEST(test_reused_pid) {
        _cleanup_(registry_freep) Registry *r = registry(100, 100);
        Identity first = identity(7, 100), second = identity(7, 200), neither = identity(7, 300);
        Process *a, *b;

        a = add_process(r, 7, 100);
        b = add_process(r, 7, 200);
        ck_assert_ptr_ne(a, b);
        ck_assert_uint_ne(a->key, b->key);
        ck_assert_ptr_eq(registry_process(r, &first), a);
        ck_assert_ptr_eq(registry_process(r, &second), b);
        ck_assert_ptr_null(registry_process(r, &neither));
        ck_assert_uint_eq(registry_n_known_processes(r), 2);

        /* By the number alone, the one that is followed. */
        ck_assert_ptr_null(registry_process_by_pid(r, 7));
        ck_assert(registry_list_process(r, a));
        ck_assert(registry_list_process(r, a));
        ck_assert_ptr_eq(registry_process_by_pid(r, 7), a);
        registry_unlist_process(r, a);
        registry_unlist_process(r, a);
        ck_assert_ptr_null(registry_process_by_pid(r, 7));
        ck_assert(registry_list_process(r, b));
        ck_assert_ptr_eq(registry_process_by_pid(r, 7), b);
        add_thread(r, b, 7, 200, 1);
        ck_assert_uint_eq(registry_n_processes(r), 1);
        ck_assert_str_eq(a->found_by, "observed");
}
END_TEST

START_TEST(test_superseded_thread) {
        _cleanup_(registry_freep) Registry *r = registry(100, 100);
        Identity id = identity(8, 100);
        Process *p = add_process(r, 7, 100);
        Thread *waker, *older, *newer;
        uint64_t older_key, waker_key;

        /* First only named as a waker, then tracked. */
        waker = add_thread(r, p, 8, 100, 0);
        waker_key = waker->key;
        ck_assert_ptr_eq(registry_thread(r, &id), waker);
        ck_assert_ptr_null(registry_threads(r));
        older = add_thread(r, p, 8, 100, 41);
        older_key = older->key;
        ck_assert_uint_eq(older_key, waker_key); /* rows that named it then mean the same thread */
        ck_assert_ptr_eq(registry_thread(r, &id), older);
        ck_assert_ptr_eq(registry_thread_by_handle(r, 41), older);

        /* Released and tracked again: rows of the old handle still find the old one. */
        newer = add_thread(r, p, 8, 100, 42);
        ck_assert_ptr_eq(registry_thread(r, &id), newer);
        ck_assert_ptr_eq(registry_thread_by_handle(r, 41), older);
        ck_assert_ptr_eq(registry_thread_by_handle(r, 42), newer);
        ck_assert_ptr_null(registry_thread_by_handle(r, 43));
        ck_assert_ptr_null(registry_thread_by_handle(r, 0));
        ck_assert_uint_ne(newer->key, older_key);

        /* When the old one goes, the new one stays. */
        end_thread(older, 1000 * NSEC_PER_SEC);
        registry_collect(r, 2000 * NSEC_PER_SEC, 0, NULL);
        ck_assert_ptr_null(registry_thread_by_handle(r, 41));
        ck_assert_ptr_eq(registry_thread(r, &id), newer);
        ck_assert_uint_eq(registry_n_threads(r), 1);
}
END_TEST

static void count_thread(Thread *t, void *userdata) {
        unsigned *counts = userdata;

        counts[t->identity.number]++;
}

START_TEST(test_for_each_thread) {
        _cleanup_(registry_freep) Registry *r = registry(100, 100);
        unsigned counts[8] = {};
        Process *p = add_process(r, 1, 1);

        add_thread(r, p, 1, 1, 11);
        add_thread(r, p, 2, 1, 0);
        add_thread(r, p, 3, 1, 0);
        add_thread(r, p, 3, 1, 13); /* takes the place of the waker */
        add_thread(r, p, 4, 1, 14);
        add_thread(r, p, 4, 1, 15); /* both are there */
        registry_for_each_thread(r, count_thread, counts);
        ck_assert_uint_eq(counts[1], 1);
        ck_assert_uint_eq(counts[2], 1);
        ck_assert_uint_eq(counts[3], 1);
        ck_assert_uint_eq(counts[4], 2);
}
END_TEST

START_TEST(test_limits) {
        _cleanup_(registry_freep) Registry *r = registry(3, 2);
        struct prism_resource futex = { .kind = PRISM_KIND_FUTEX, .space = 1 };
        Identity id = identity(9, 9);
        Process *observed = NULL;
        bool created = true;
        Resource *first;

        for (unsigned i = 0; i < 3; i++)
                add_process(r, i + 1, 1);
        errno = 0;
        ck_assert_ptr_null(registry_add_process(r, &id, false));
        ck_assert_int_eq(errno, ENOSPC);
        ck_assert_uint_eq(registry_n_known_processes(r), 3);

        /* As many again that are only named; one of them cannot become more than that while there is no room. */
        for (unsigned i = 0; i < 3; i++) {
                id = identity(20 + i, 1);
                observed = registry_add_process(r, &id, true);
                ck_assert_ptr_nonnull(observed);
                observed->pid = 20 + i;
        }
        id = identity(9, 9);
        errno = 0;
        ck_assert_ptr_null(registry_add_process(r, &id, true));
        ck_assert_int_eq(errno, ENOSPC);
        ck_assert(!registry_list_process(r, observed));
        ck_assert_ptr_null(registry_process_by_pid(r, 22));
        ck_assert_uint_eq(registry_n_known_processes(r), 6);

        first = registry_resource(r, &futex, &created);
        ck_assert(created);
        futex.address = 1;
        ck_assert_ptr_nonnull(registry_resource(r, &futex, &created));
        futex.address = 2;
        errno = 0;
        created = true;
        ck_assert_ptr_null(registry_resource(r, &futex, &created));
        ck_assert_int_eq(errno, ENOSPC);
        ck_assert(!created);
        /* What is known stays usable, and what is not a futex is always there: there are few. */
        futex.address = 0;
        ck_assert_ptr_eq(registry_resource(r, &futex, &created), first);
        ck_assert(!created);
        ck_assert_ptr_nonnull(registry_resource(
                        r, &(struct prism_resource){ .kind = PRISM_KIND_TIMER, .op = 230 }, &created));
        ck_assert(created);

        /* Room comes with time. */
        futex.address = 2;
        registry_collect(r, 1000 * NSEC_PER_SEC, 0, NULL);
        ck_assert_uint_eq(registry_n_resources(r), 0);
        ck_assert_uint_eq(registry_n_known_processes(r), 0);
        ck_assert_ptr_nonnull(registry_resource(r, &futex, &created));
        observed = registry_add_process(r, &id, true);
        ck_assert_ptr_nonnull(observed);
        observed->pid = 9;

        /* Followed from now on, it leaves its place to another one. */
        ck_assert(registry_list_process(r, observed));
        ck_assert_ptr_eq(registry_process_by_pid(r, 9), observed);
        for (unsigned i = 0; i < 3; i++) {
                id = identity(30 + i, 1);
                ck_assert_ptr_nonnull(registry_add_process(r, &id, true));
        }
        for (unsigned i = 0; i < 2; i++)
                add_process(r, 40 + i, 1);
        id = identity(50, 1);
        ck_assert_ptr_null(registry_add_process(r, &id, false));

        /* What was collected is not found by its number. */
        registry_collect(r, 2000 * NSEC_PER_SEC, 0, NULL);
        ck_assert_ptr_null(registry_process_by_pid(r, 9));
        ck_assert_uint_eq(registry_n_known_processes(r), 0);
}
END_TEST

START_TEST(test_collect) {
        _cleanup_(registry_freep) Registry *r = registry(100, 100);
        const uint64_t now = 100000 * NSEC_PER_SEC;
        struct prism_resource futex = { .kind = PRISM_KIND_FUTEX };
        Process *ended, *recent, *live, *of_waker;
        Thread *old_waker;
        Identity id;
        bool created;

        ended = add_process(r, 1, 1);
        end_thread(add_thread(r, ended, 1, 1, 11), now - 91 * NSEC_PER_SEC);
        recent = add_process(r, 2, 1);
        end_thread(add_thread(r, recent, 2, 1, 12), now - 60 * NSEC_PER_SEC);
        live = add_process(r, 3, 1);
        add_thread(r, live, 3, 1, 13); /* idle since ever */
        of_waker = add_process(r, 4, 1);
        add_thread(r, of_waker, 4, 1, 0)->used_ns = now - 60 * NSEC_PER_SEC;
        old_waker = add_thread(r, of_waker, 5, 1, 0);
        old_waker->used_ns = now - 91 * NSEC_PER_SEC;
        add_process(r, 6, 1)->used_ns = now - 91 * NSEC_PER_SEC;
        add_process(r, 7, 1)->used_ns = now - 60 * NSEC_PER_SEC;
        registry_resource(r, &futex, &created)->used_ns = now - 601 * NSEC_PER_SEC;
        futex.address = 1;
        registry_resource(r, &futex, &created)->used_ns = now - 500 * NSEC_PER_SEC;

        registry_collect(r, now, 0, NULL);
        ck_assert_ptr_null(registry_thread_by_handle(r, 11));
        ck_assert_ptr_nonnull(registry_thread_by_handle(r, 12));
        ck_assert_ptr_nonnull(registry_thread_by_handle(r, 13));
        id = identity(4, 1);
        ck_assert_ptr_nonnull(registry_thread(r, &id));
        id = identity(5, 1);
        ck_assert_ptr_null(registry_thread(r, &id));
        for (uint64_t number = 1; number <= 7; number++) {
                bool gone = number == 1 || number == 5 || number == 6;

                id = identity(number, 1);
                ck_assert_msg((registry_process(r, &id) == NULL) == gone, "process %u", (unsigned) number);
        }
        ck_assert_uint_eq(registry_n_resources(r), 1);

        registry_collect(r, now + 200 * NSEC_PER_SEC, 0, NULL);
        ck_assert_uint_eq(registry_n_known_processes(r), 1);
        ck_assert_uint_eq(registry_n_threads(r), 1);
        ck_assert_uint_eq(registry_n_resources(r), 0);
        ck_assert_ptr_eq(registry_threads(r)->process, live);
}
END_TEST

typedef struct Forgotten {
        unsigned processes, threads, resources;
} Forgotten;

static void forget_process(const Process *p, void *userdata) {
        ((Forgotten *) userdata)->processes++;
}

static void forget_thread(const Thread *t, void *userdata) {
        ((Forgotten *) userdata)->threads++;
}

static void forget_resource(const Resource *s, void *userdata) {
        ((Forgotten *) userdata)->resources++;
}

/* What rows of the last minute name is given up when there is no room for what is new, and then it is shown first. */
START_TEST(test_collect_when_crowded) {
        _cleanup_(registry_freep) Registry *r = registry(100, 100);
        uint64_t now = 1000 * NSEC_PER_SEC, generation = now - NSEC_PER_SEC;
        Forgotten forgotten = {};
        const RegistryForget forget = { forget_process, forget_thread, forget_resource, &forgotten };
        bool created;

        for (uint64_t i = 1; i <= 50; i++) {
                end_thread(add_thread(r, add_process(r, i, 1), i, 1, i), now - i * NSEC_PER_SEC);
                registry_object(r, PRISM_KIND_INET, i, 0, &created)->used_ns = now - i * NSEC_PER_SEC;
        }
        ck_assert(!registry_is_crowded(r));
        registry_collect(r, now, generation, &forget);
        ck_assert_uint_eq(registry_n_known_processes(r), 50);
        ck_assert_uint_eq(registry_n_resources(r), 50);
        ck_assert_uint_eq(forgotten.resources, 0);

        /* The oldest are enough. */
        add_process(r, 51, 1)->used_ns = now;
        registry_object(r, PRISM_KIND_INET, 51, 0, &created)->used_ns = now;
        ck_assert(registry_is_crowded(r));
        registry_collect(r, now, generation, &forget);
        ck_assert_uint_eq(registry_n_known_processes(r), 31);
        ck_assert_uint_eq(registry_n_resources(r), 31);
        ck_assert_uint_eq(forgotten.processes, 20);
        ck_assert_uint_eq(forgotten.threads, 20);
        ck_assert_uint_eq(forgotten.resources, 20);

        /* Never what is in use, nor threads of which a row may still come. */
        for (uint64_t i = 100; i < 160; i++) {
                end_thread(add_thread(r, add_process(r, i, 1), i, 1, i), now - NSEC_PER_SEC);
                registry_object(r, PRISM_KIND_INET, i, 0, &created)->used_ns = now;
        }
        registry_collect(r, now, generation, &forget);
        ck_assert_uint_ge(registry_n_known_processes(r), 60);
        ck_assert_uint_eq(registry_n_resources(r), 62); /* and what was used a second ago */
        ck_assert(registry_is_crowded(r));
}
END_TEST

/* prismd may start with the machine: the boot clock is near 0 then. */
START_TEST(test_collect_after_boot) {
        _cleanup_(registry_freep) Registry *r = registry(100, 100);
        Identity id = identity(4, 1);
        Process *p = add_process(r, 4, 1);

        for (uint64_t second = 1; second < 400; second++) {
                Thread *waker = registry_thread(r, &id);

                if (!waker)
                        waker = add_thread(r, p, 4, 1, 0);
                waker->used_ns = second * NSEC_PER_SEC;
                registry_collect(r, second * NSEC_PER_SEC, 0, NULL);
                ck_assert_ptr_eq(registry_process(r, &id), p);
        }
        registry_collect(r, 1000 * NSEC_PER_SEC, 0, NULL);
        ck_assert_ptr_null(registry_thread(r, &id));
        registry_collect(r, 2000 * NSEC_PER_SEC, 0, NULL);
        ck_assert_uint_eq(registry_n_known_processes(r), 0);
}
END_TEST

/* The two ends of a connection, and one that has taken the addresses of another. */
START_TEST(test_connections) {
        _cleanup_(registry_freep) Registry *r = registry(100, 100);
        ConnectionKey here = { .netns = 1, .local_port = 80, .remote_port = 4000 };
        ConnectionKey there = { .netns = 1, .local_port = 4000, .remote_port = 80 };
        bool created;
        Resource *a = registry_object(r, PRISM_KIND_INET, 1, 0, &created);
        Resource *b = registry_object(r, PRISM_KIND_INET, 2, 0, &created);
        Resource *c = registry_object(r, PRISM_KIND_INET, 3, 0, &created);

        ck_assert(created);
        ck_assert_ptr_eq(registry_find_object(r, PRISM_KIND_INET, 1, 0), a);
        ck_assert_ptr_null(registry_find_object(r, PRISM_KIND_UNIX, 1, 0));
        registry_note_connection(r, a, &here);
        ck_assert_ptr_null(registry_connection(r, &there));
        registry_note_connection(r, b, &there);
        ck_assert_ptr_eq(registry_connection(r, &here), a);
        ck_assert_ptr_eq(registry_connection(r, &there), b);
        registry_note_connection(r, c, &there);
        ck_assert_ptr_eq(registry_connection(r, &there), c);
        registry_note_connection(r, c, &here);
        ck_assert_ptr_null(registry_connection(r, &there));
        ck_assert_ptr_eq(registry_connection(r, &here), c);
        /* What is forgotten is not found. */
        registry_collect(r, 1000 * NSEC_PER_SEC, 0, NULL);
        ck_assert_ptr_null(registry_connection(r, &here));
        ck_assert_uint_eq(registry_n_resources(r), 0);
}
END_TEST

START_TEST(test_resources) {
        static const struct {
                struct prism_resource id;
                const char *kind, *ident;
        } table[] = {
                { { .kind = PRISM_KIND_FUTEX, .space = 5, .address = 0x1000 }, "futex", "private:5:0x1000" },
                { { .kind = PRISM_KIND_FUTEX, .space = 5, .address = 0x1004 }, "futex", "private:5:0x1004" },
                { { .kind = PRISM_KIND_FUTEX, .space = 6, .address = 0x1000 }, "futex", "private:6:0x1000" },
                { { .kind = PRISM_KIND_FUTEX, .space = 5, .address = 0x1000, .shared = 1 }, "futex",
                                "shared:5+0x1000" },
                { { .kind = PRISM_KIND_FUTEX, .space = UINT64_MAX, .address = UINT64_MAX }, "futex",
                                "private:18446744073709551615:0xffffffffffffffff" },
                { { .kind = PRISM_KIND_TIMER, .op = 35 }, "timer", "nanosleep" },
                { { .kind = PRISM_KIND_TIMER, .op = 230 }, "timer", "clock_nanosleep" },
                { { .kind = PRISM_KIND_OTHER, .op = 0 }, "other", "read" },
                { { .kind = PRISM_KIND_OTHER, .op = 600 }, "other", "syscall-600" },
                { { .kind = PRISM_KIND_OTHER, .op = 88 + 512 * 2 }, "other", "syscall-1112" },
                { { .kind = PRISM_KIND_SIGNAL, .op = PRISM_OP_STOPPED }, "signal", "stopped" },
                { { .kind = PRISM_KIND_SIGNAL, .op = PRISM_OP_FROZEN }, "signal", "frozen" },
                { { .kind = PRISM_KIND_CHILD, .op = 61 }, "child", "wait4" },
                { { .kind = PRISM_KIND_PIPE, .space = 42, .op = 0 }, "pipe", "inode:42" },
                { { .kind = PRISM_KIND_INET, .space = 42, .op = 45 }, "inet", "inode:42" },
                { { .kind = PRISM_KIND_UNIX, .space = 42, .op = 45 }, "unix", "inode:42" },
                { { .kind = PRISM_KIND_FILE, .space = 7, .address = (254ULL << 20 | 1) << 32 | 9 }, "file",
                                "254:1:7:9" },
                { { .kind = PRISM_KIND_FILE, .space = 7, .address = (254ULL << 20 | 1) << 32 | 10 }, "file",
                                "254:1:7:10" },
                { { .kind = PRISM_KIND_PAGE_FAULT, .space = 7, .address = (254ULL << 20 | 1) << 32 | 9 }, "page-fault",
                                "254:1:7:9" },
                { { .kind = PRISM_KIND_PAGE_FAULT, .op = PRISM_OP_USER }, "page-fault", "user" },
                { { .kind = PRISM_KIND_FILE, .space = 0xabc, .address = PRISM_BY_PATH | 1234 }, "file",
                                "path:0xabc:1234" },
                { { .kind = PRISM_KIND_CHARDEV, .space = 136 << 20 | 3 }, "chardev", "136:3:0x0" },
                { { .kind = PRISM_KIND_EPOLL, .space = 0xfeed, .address = 99 }, "epoll", "file:0xfeed:99" },
                { { .kind = PRISM_KIND_EVENTFD, .space = 0xfeed, .address = 99 }, "eventfd", "file:0xfeed:99" },
                { { .kind = PRISM_KIND_POLL, .space = 0xfeed, .address = 99 }, "poll", "set:0xfeed:99" },
                { { .kind = PRISM_KIND_AIO, .space = 5, .address = 0x7000 }, "aio", "context:5:0x7000" },
                { { .kind = PRISM_KIND_KERNEL_LOCK, .space = 5, .address = 1 }, "kernel-lock", "mmap_lock:5" },
                { { .kind = PRISM_KIND_KERNEL_LOCK, .space = 0xbeef }, "kernel-lock", "lock:0xbeef" },
                { { .kind = PRISM_KIND_OTHER, .space = 3, .op = 65 }, "other", "semop:3" },
                { { .kind = PRISM_KIND_OTHER, .space = 3, .op = 70 }, "other", "msgrcv:3" },
        };
        _cleanup_(registry_freep) Registry *r = registry(100, 100);
        Resource *known[ELEMENTSOF(table)];
        bool created;

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                known[i] = registry_resource(r, &table[i].id, &created);
                ck_assert_ptr_nonnull(known[i]);
                ck_assert(created);
                ck_assert_str_eq(known[i]->kind, table[i].kind);
                ck_assert_str_eq(known[i]->ident, table[i].ident);
                /* A futex's name is still to be looked up. */
                ck_assert_int_eq(known[i]->name == NULL, table[i].id.kind == PRISM_KIND_FUTEX);
                ck_assert_int_eq(known[i]->name_tries == 0, table[i].id.space || table[i].id.address);
                for (size_t k = 0; k < i; k++)
                        ck_assert(!streq(known[k]->kind, known[i]->kind) || !streq(known[k]->ident, known[i]->ident));
        }
        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                struct prism_resource again = table[i].id;

                /* How an object is waited for does not make it another one. */
                if (again.kind != PRISM_KIND_OTHER && (again.space || again.address))
                        again.op = PRISM_OP_FUTEX_LOCK_PI;
                again.padding = 0xffffffff;
                ck_assert_ptr_eq(registry_resource(r, &again, &created), known[i]);
                ck_assert(!created);
        }
        ck_assert_uint_eq(registry_n_resources(r), ELEMENTSOF(table));
}
END_TEST

START_TEST(test_targets_of_process) {
        _cleanup_(registry_freep) Registry *r = registry(100, 100);
        Process *p = add_process(r, 1, 1);

        ck_assert(!process_in_target(p, 5));
        ck_assert_int_eq(process_add_target(p, 5), 1);
        ck_assert_int_eq(process_add_target(p, 5), 0);
        ck_assert_int_eq(process_add_target(p, 6), 1);
        ck_assert_int_eq(process_add_target(p, 7), 1);
        process_remove_target(p, 5);
        process_remove_target(p, 99);
        ck_assert(!process_in_target(p, 5));
        ck_assert(process_in_target(p, 6));
        ck_assert(process_in_target(p, 7));
        ck_assert_uint_eq(p->n_targets, 2);

        process_set_text(&p->exe, "/a");
        process_set_text(&p->exe, NULL);
        ck_assert_str_eq(p->exe, "/a");
        process_set_text(&p->exe, p->exe);
        process_set_text(&p->exe, "/b");
        ck_assert_str_eq(p->exe, "/b");
}
END_TEST

START_TEST(test_many) {
        _cleanup_(registry_freep) Registry *r = registry(20000, 20000);
        Process *p = NULL;
        bool created;

        for (uint64_t i = 1; i <= 20000; i++) {
                if (i % 10 == 1)
                        p = add_process(r, i, i);
                add_thread(r, p, i, i, i % 3 ? i : 0);
                ck_assert_ptr_nonnull(registry_resource(r,
                                &(struct prism_resource){ .kind = PRISM_KIND_FUTEX, .space = i % 7, .address = i },
                                &created));
        }
        for (uint64_t i = 1; i <= 20000; i++) {
                Identity id = identity(i, i);

                ck_assert_uint_eq(registry_thread(r, &id)->identity.number, i);
                if (i % 3)
                        ck_assert_ptr_eq(registry_thread_by_handle(r, i), registry_thread(r, &id));
        }
        for (Thread *t = registry_threads(r); t; t = t->hh_handle.next)
                end_thread(t, 1);
        ck_assert_uint_eq(registry_n_threads(r), 0);
        registry_collect(r, 10000 * NSEC_PER_SEC, 0, NULL);
        registry_collect(r, 20000 * NSEC_PER_SEC, 0, NULL);
        ck_assert_uint_eq(registry_n_known_processes(r), 0);
        ck_assert_uint_eq(registry_n_resources(r), 0);
        ck_assert_ptr_null(registry_threads(r));
}
END_TEST

START_TEST(test_describe) {
        _cleanup_(registry_freep) Registry *r = registry(100, 100);
        _cleanup_(batch_unrefp) Batch *b = batch_new(), *all = batch_new();
        Clock clock = { .offset_ns = 1000 * SECOND, .known = true };
        Resource *resource;
        Process *p, *observed;
        Thread *t;
        bool created;

        p = add_process(r, 7, 5 * NSEC_PER_SEC);
        strcpy(p->comm, "server");
        process_set_text(&p->unit, "x.service");
        p->exit_boot_ns = 9 * NSEC_PER_SEC;
        t = add_thread(r, p, 8, 6 * NSEC_PER_SEC, 1);
        t->tid = 3;
        resource = registry_resource(r, &(struct prism_resource){ .kind = PRISM_KIND_TIMER, .op = 230 }, &created);
        observed = add_process(r, 9, 1);

        /* A thread brings its process; each once an epoch. */
        for (unsigned i = 0; i < 2; i++) {
                describe_thread(b, t, &clock, 1);
                describe_resource(b, resource, 1);
        }
        ck_assert_uint_eq(b->n_processes, 1);
        ck_assert_uint_eq(b->n_threads, 1);
        ck_assert_uint_eq(b->n_resources, 1);
        ck_assert_uint_eq(b->processes[0].key, p->key);
        ck_assert_uint_eq(b->processes[0].host_pid, 7);
        ck_assert_int_eq(b->processes[0].start_ns, 1005 * SECOND);
        ck_assert_int_eq(b->processes[0].exit_ns, 1009 * SECOND);
        ck_assert_str_eq(b->processes[0].comm, "server");
        ck_assert_str_eq(b->processes[0].unit, "x.service");
        ck_assert_ptr_null(b->processes[0].exe);
        ck_assert_uint_eq(b->threads[0].process_key, p->key);
        ck_assert_uint_eq(b->threads[0].tid, 3);
        ck_assert_uint_eq(b->threads[0].host_tid, 8);
        ck_assert_int_eq(b->threads[0].exit_ns, 0);
        ck_assert_str_eq(b->resources[0].kind, "timer");
        ck_assert_str_eq(b->resources[0].name, "clock_nanosleep");

        describe_thread(b, t, &clock, 2);
        ck_assert_uint_eq(b->n_processes, 2);
        p->described = 0; /* it changed */
        describe_thread(b, t, &clock, 2);
        ck_assert_uint_eq(b->n_processes, 3);
        ck_assert_uint_eq(b->n_threads, 2);

        /* A snapshot has all and changes nothing of this. */
        add_thread(r, observed, 9, 1, 0);
        ck_assert_int_eq(describe_all(all, r, &clock), 0);
        ck_assert_uint_eq(all->n_processes, 2);
        ck_assert_uint_eq(all->n_threads, 2);
        ck_assert_uint_eq(all->n_resources, 1);
        ck_assert_uint_eq(observed->described, 0);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("registry");
        TCase *tests = tcase_create("registry");

        tcase_set_timeout(tests, 30);
        tcase_add_test(tests, test_reused_pid);
        tcase_add_test(tests, test_superseded_thread);
        tcase_add_test(tests, test_for_each_thread);
        tcase_add_test(tests, test_limits);
        tcase_add_test(tests, test_collect);
        tcase_add_test(tests, test_collect_when_crowded);
        tcase_add_test(tests, test_collect_after_boot);
        tcase_add_test(tests, test_connections);
        tcase_add_test(tests, test_resources);
        tcase_add_test(tests, test_targets_of_process);
        tcase_add_test(tests, test_many);
        tcase_add_test(tests, test_describe);
        suite_add_tcase(suite, tests);
        return run_suite(suite);
}
