/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* daemon/disk.c: entries of the kernel side become rows. */
#include "disk.h"
#include "daemon-unit.h"

#define DEVICE (254U << 20 | 16)

typedef struct Result {
        Registry *registry;
        BatchDisk rows[8];
        Process *processes[8];
        Thread *threads[8];
        char cgroups[8][64];
        unsigned n, asked;
        bool refuse; /* no room for another process */
        int answer;
} Result;

static Process *enter(const struct prism_disk_key *key, const struct prism_disk_value *value, void *userdata) {
        Identity id = { .start_boot_ns = key->process_start_ns, .number = key->tgid };
        Result *r = userdata;

        r->asked++;
        if (r->refuse)
                return NULL;
        return registry_process(r->registry, &id) ?: registry_add_process(r->registry, &id, true);
}

static int keep(const BatchDisk *row, Process *process, Thread *thread, void *userdata) {
        Result *r = userdata;

        ck_assert_uint_lt(r->n, ELEMENTSOF(r->rows));
        r->rows[r->n] = *row;
        r->processes[r->n] = process;
        r->threads[r->n] = thread;
        (void) snprintf(r->cgroups[r->n], sizeof(r->cgroups[0]), "%s", row->cgroup ?: "none");
        r->n++;
        return r->answer;
}

START_TEST(test_ops) {
        ck_assert_str_eq(disk_op_name(PRISM_DISK_READ), "read");
        ck_assert_str_eq(disk_op_name(PRISM_DISK_WRITE), "write");
        ck_assert_str_eq(disk_op_name(PRISM_DISK_FLUSH), "flush");
        ck_assert_str_eq(disk_op_name(PRISM_DISK_DISCARD), "discard");
        ck_assert_str_eq(disk_op_name(PRISM_DISK_OTHER), "other");
        ck_assert_str_eq(disk_op_name(_PRISM_DISK_MAX), "other");
        ck_assert_str_eq(disk_op_name(UINT32_MAX), "other");
}
END_TEST

START_TEST(test_rows) {
        static const struct prism_disk_key keys[] = {
                /* A tracked thread, one that is gone from the registry, a process, a group that nobody knows. */
                { .thread = 7,
                                .process_start_ns = 100,
                                .tgid = 50,
                                .device = DEVICE,
                                .partition = 2,
                                .op = PRISM_DISK_READ },
                { .thread = 8, .process_start_ns = 100, .tgid = 50, .device = DEVICE, .op = PRISM_DISK_WRITE },
                { .process_start_ns = 200, .tgid = 60, .device = DEVICE, .op = PRISM_DISK_FLUSH },
                { .process_start_ns = 200,
                                .tgid = 60,
                                .cgroup = UINT64_MAX,
                                .device = DEVICE,
                                .op = PRISM_DISK_DISCARD },
        };
        static const struct prism_disk_value values[ELEMENTSOF(keys)] = {
                { .sectors = 80, .total_ns = 5000, .max_ns = 4000, .requests = 2, .histogram = { 1, 1 } },
                { .sectors = 8, .total_ns = 10, .max_ns = 10, .requests = 1, .histogram = { 1 } },
                { .total_ns = 2000000000,
                                .max_ns = 2000000000,
                                .requests = 1,
                                .histogram = { [7] = 1 },
                                .comm = "other" },
                { .sectors = 4096, .total_ns = 1, .max_ns = 1, .requests = 1, .histogram = { 1 } },
        };
        _cleanup_(registry_freep) Registry *registry = NULL;
        _cleanup_(cgroup_names_freep) CgroupNames *names = NULL;
        Identity owner_id = { .start_boot_ns = 100, .number = 50 }, thread_id = { .start_boot_ns = 110, .number = 51 };
        RegistryLimits limits = { .processes = 8, .resources = 8 };
        Result result = {};
        DiskHooks hooks = { .process = enter, .emit = keep, .userdata = &result };
        Process *owner;
        Thread *thread;

        ck_assert_int_eq(registry_new(&limits, &registry), 0);
        ck_assert_int_eq(cgroup_names_new(&names), 0);
        result.registry = registry;
        owner = registry_add_process(registry, &owner_id, false);
        thread = registry_add_thread(registry, &thread_id, 7, owner);
        ck_assert_ptr_nonnull(thread);

        ck_assert_int_eq(disk_collect(keys, values, ELEMENTSOF(keys), registry, names, 1000, 900, 5, &hooks), 0);
        ck_assert_uint_eq(result.n, 4);
        ck_assert_uint_eq(result.asked, 3);
        for (unsigned i = 0; i < result.n; i++) {
                const BatchDisk *row = &result.rows[i];

                ck_assert_int_eq(row->ts_ns, 1000);
                ck_assert_int_eq(row->dt_ns, 900);
                ck_assert_uint_eq(row->device, DEVICE);
                ck_assert_uint_eq(row->requests, values[i].requests);
                ck_assert_uint_eq(row->sectors, values[i].sectors);
                ck_assert_uint_eq(row->total_ns, values[i].total_ns);
                ck_assert_uint_eq(row->max_ns, values[i].max_ns);
                ck_assert_mem_eq(row->histogram, values[i].histogram, sizeof(row->histogram));
                ck_assert_uint_eq(row->process_key, result.processes[i]->key);
                ck_assert_str_eq(row->op, disk_op_name(keys[i].op));
        }
        ck_assert_ptr_eq(result.threads[0], thread);
        ck_assert_uint_eq(result.rows[0].thread_key, thread->key);
        ck_assert_uint_eq(result.rows[0].partition, 2);
        ck_assert_ptr_eq(result.processes[0], owner);
        ck_assert_ptr_null(result.threads[1]);
        ck_assert_uint_eq(result.rows[1].thread_key, 0);
        ck_assert_ptr_eq(result.processes[1], owner);
        ck_assert_ptr_ne(result.processes[2], owner);
        ck_assert_ptr_eq(result.processes[2], result.processes[3]);
        ck_assert_str_eq(result.cgroups[0], "none");
        ck_assert_str_eq(result.cgroups[3], "id:18446744073709551615");

        /* A process that there is no room for: no row, and the others are not affected. */
        result.n = 0;
        result.refuse = true;
        ck_assert_int_eq(disk_collect(keys, values, ELEMENTSOF(keys), registry, names, 1000, 900, 5, &hooks), 0);
        ck_assert_uint_eq(result.n, 1);

        result = (Result){ .registry = registry, .answer = -ENOMEM };
        ck_assert_int_eq(disk_collect(keys, values, ELEMENTSOF(keys), registry, names, 1000, 900, 5, &hooks), -ENOMEM);
        ck_assert_uint_eq(result.n, 1);
        ck_assert_int_eq(disk_collect(keys, values, 0, registry, names, 1000, 900, 5, &hooks), 0);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("disk");
        TCase *tests = tcase_create("disk");

        tcase_add_test(tests, test_ops);
        tcase_add_test(tests, test_rows);
        suite_add_tcase(suite, tests);
        return run_suite(suite);
}
