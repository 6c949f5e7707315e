/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* analysis/disks.c, sockets.c and cgroups.c: what is shared with others, and what limits it. */
#include "analysis/cgroups.h"
#include "analysis/disks.h"
#include "analysis/sockets.h"

#include "sample.h"

enum { DISK = 8 << 20, OTHER_DISK = 259 << 20 | 3, KWORKER = 500 };

static void add_disk(Batch *b, uint64_t process_key, uint64_t thread_key, uint32_t device, const char *cgroup,
                const char *op, uint64_t sectors, uint64_t total_ms) {
        ck_assert_int_eq(batch_add_disk(b,
                                         &(BatchDisk){ .ts_ns = SAMPLE_START + 2 * SECOND,
                                                         .dt_ns = SECOND,
                                                         .device = device,
                                                         .process_key = process_key,
                                                         .thread_key = thread_key,
                                                         .cgroup = cgroup,
                                                         .op = op,
                                                         .requests = 10,
                                                         .sectors = sectors,
                                                         .total_ns = total_ms * NSEC_PER_MSEC,
                                                         .max_ns = total_ms * NSEC_PER_MSEC / 5,
                                                         .histogram = { [4] = 10 } }),
                        0);
}

static Store *open_with_disks(void) {
        _cleanup_(batch_unrefp) Batch *b = batch_new();
        Store *s = sample_open();

        ck_assert_int_eq(batch_add_process(b,
                                         &(BatchProcess){ .key = KWORKER,
                                                         .start_boot_ns = 5,
                                                         .start_ns = SAMPLE_START,
                                                         .pid = 77,
                                                         .host_pid = 77,
                                                         .ppid = 2,
                                                         .comm = "kworker/u4:1",
                                                         .found_by = "observed" }),
                        0);
        /* Two threads of demo and two directions are one user; write-back for two groups is two. */
        add_disk(b, SAMPLE_DEMO, SAMPLE_HOLDER, DISK, "/a", "read", 100, 10);
        add_disk(b, SAMPLE_DEMO, SAMPLE_WAITER, DISK, "/b", "write", 300, 30);
        add_disk(b, SAMPLE_STRESS, 0, DISK, NULL, "read", 500, 50);
        add_disk(b, KWORKER, 0, DISK, "/a", "write", 50, 5);
        add_disk(b, KWORKER, 0, DISK, "/b", "write", 50, 5);
        add_disk(b, KWORKER, 0, OTHER_DISK, NULL, "flush", 0, 1);
        add_disk(b, SAMPLE_STRESS, 0, OTHER_DISK, NULL, "discard", 900, 2);
        assert_done(store_write(s, b, &error));
        return s;
}

START_TEST(test_disks) {
        _cleanup_(store_closep) Store *store = open_with_disks();
        /* A target's share of a disk is one of all users. */
        _cleanup_(reading_freep) Reading *r = sample_read(store, 0, 10, "pid:100");
        _cleanup_(disks_done) Disks d = {};
        const DiskUse *stress, *demo;

        assert_done(disks_read(r, &d, &error));
        ck_assert_uint_eq(d.n_disks, 2);
        ck_assert_uint_eq(d.disks[0]->device, DISK); /* most time first */
        ck_assert_uint_eq(disk_major(d.disks[1]->device), 259);
        ck_assert_uint_eq(disk_minor(d.disks[1]->device), 3);
        ck_assert_uint_eq(d.disks[0]->all.sectors, 1000);
        ck_assert_uint_eq(d.disks[0]->all.requests, 50);
        ck_assert_uint_eq(d.disks[0]->all.total_ns, 100 * NSEC_PER_MSEC);
        ck_assert_uint_eq(d.disks[0]->all.max_ns, 10 * NSEC_PER_MSEC);
        ck_assert_uint_eq(d.disks[0]->all.histogram[4], 50);

        ck_assert_uint_eq(d.n_uses, 6);
        stress = d.uses[0]; /* most sectors first */
        demo = d.uses[1];
        ck_assert_str_eq(stress->process->comm, "stress");
        ck_assert_uint_eq(stress->times.sectors, 500);
        ck_assert_str_eq(demo->process->comm, "demo");
        ck_assert(!demo->process->is_kernel);
        ck_assert_ptr_null(demo->cgroup);
        ck_assert_uint_eq(demo->times.sectors, 400);
        ck_assert_uint_eq(demo->times.requests, 20);
        ck_assert_uint_eq(demo->times.read_sectors, 100);
        ck_assert_uint_eq(demo->times.written_sectors, 300);
        ck_assert_uint_eq(demo->times.max_ns, 6 * NSEC_PER_MSEC);

        ck_assert(d.uses[2]->process->is_kernel);
        ck_assert_str_eq(d.uses[2]->cgroup, "/a");
        ck_assert_str_eq(d.uses[3]->cgroup, "/b");
        ck_assert_uint_eq(d.uses[3]->times.written_sectors, 50);
        ck_assert_ptr_null(d.uses[4]->cgroup);
        ck_assert_ptr_eq(d.uses[4]->disk, d.disks[1]);
        ck_assert_uint_eq(d.uses[4]->times.sectors, 900); /* of two that moved nothing the slower one is first */
        ck_assert_uint_eq(d.uses[4]->times.discarded_sectors, 900);
        ck_assert_uint_eq(disk_moved_sectors(&d.uses[4]->times), 0);
        ck_assert_uint_eq(d.uses[5]->times.sectors, 0);
}
END_TEST

START_TEST(test_disks_clipped) {
        _cleanup_(store_closep) Store *store = open_with_disks();
        _cleanup_(reading_freep) Reading *half = sample_read(store, 1.5, 10, NULL), *later = NULL;
        _cleanup_(disks_done) Disks d = {}, none = {};

        assert_done(disks_read(half, &d, &error));
        ck_assert_uint_eq(d.disks[0]->all.sectors, 500);
        ck_assert_uint_eq(d.uses[1]->times.read_sectors, 50);
        ck_assert_uint_eq(d.disks[0]->all.max_ns, 10 * NSEC_PER_MSEC);

        reading_end(half);
        later = sample_read(store, 2, 10, NULL);
        assert_done(disks_read(later, &none, &error));
        ck_assert_uint_eq(none.n_disks + none.n_uses, 0);
}
END_TEST

enum { OTHER_SOCKET = 600 };

static Store *open_with_sockets(void) {
        _cleanup_(batch_unrefp) Batch *b = batch_new();
        Store *s = sample_open();

        ck_assert_int_eq(batch_add_resource(b,
                                         &(BatchResource){ .key = OTHER_SOCKET, .kind = "unix", .ident = "inode:78" }),
                        0);
        ck_assert_int_eq(batch_add_socket(b,
                                         &(BatchSocket){ .resource_key = SAMPLE_SOCKET,
                                                         .family = 10,
                                                         .type = 1,
                                                         .protocol = 6,
                                                         .local_addr = "::1",
                                                         .local_port = 40112,
                                                         .remote_addr = "10.0.0.2",
                                                         .remote_port = 5432 }),
                        0);
        ck_assert_int_eq(batch_add_socket(b,
                                         &(BatchSocket){ .resource_key = OTHER_SOCKET,
                                                         .family = 1,
                                                         .type = 1,
                                                         .path = "/run/x.sock" }),
                        0);
        for (int64_t i = 1; i <= 3; i++)
                ck_assert_int_eq(batch_add_socket_sample(b,
                                                 &(BatchSocketSample){ .ts_ns = SAMPLE_START + i * SECOND,
                                                                 .dt_ns = SECOND,
                                                                 .resource_key = SAMPLE_SOCKET,
                                                                 .bytes_in = 1000,
                                                                 .bytes_out = 10,
                                                                 .retransmits = 2,
                                                                 .srtt_ns = i == 1 ? 0 : (uint64_t) i * NSEC_PER_MSEC,
                                                                 .send_queue = i == 2 ? 700 : 0,
                                                                 .receive_queue = 50 }),
                                0);
        ck_assert_int_eq(batch_add_socket_sample(b,
                                         &(BatchSocketSample){ .ts_ns = SAMPLE_START + SECOND,
                                                         .dt_ns = SECOND,
                                                         .resource_key = OTHER_SOCKET,
                                                         .bytes_in = 5000 }),
                        0);
        assert_done(store_write(s, b, &error));
        return s;
}

START_TEST(test_sockets) {
        _cleanup_(store_closep) Store *store = open_with_sockets();
        _cleanup_(reading_freep) Reading *r = sample_read(store, 0, 10, NULL);
        _cleanup_(sockets_done) Sockets s = {};
        const Socket *tcp;

        assert_done(sockets_read(r, &s, &error));
        ck_assert_uint_eq(s.n, 2);
        ck_assert_str_eq(s.items[0]->resource->kind, "unix"); /* most bytes first */
        ck_assert_str_eq(s.items[0]->local, "/run/x.sock");
        ck_assert_ptr_null(s.items[0]->remote);
        ck_assert_uint_eq(s.items[0]->n_rtt, 0);

        tcp = s.items[1];
        ck_assert_str_eq(tcp->local, "[::1]:40112");
        ck_assert_str_eq(tcp->remote, "10.0.0.2:5432");
        ck_assert_uint_eq(tcp->bytes_in, 3000);
        ck_assert_uint_eq(tcp->bytes_out, 30);
        ck_assert_uint_eq(tcp->retransmits, 6);
        ck_assert_uint_eq(tcp->n_rtt, 2); /* one had none yet */
        ck_assert_uint_eq(tcp->rtt_sum_ns, 5 * NSEC_PER_MSEC);
        ck_assert_uint_eq(tcp->rtt_max_ns, 3 * NSEC_PER_MSEC);
        ck_assert_uint_eq(tcp->send_queue, 700);
        ck_assert_uint_eq(tcp->receive_queue, 50);
}
END_TEST

START_TEST(test_sockets_of_a_target) {
        _cleanup_(store_closep) Store *store = open_with_sockets();
        _cleanup_(reading_freep) Reading *r = sample_read(store, 0, 10, "pid:100"), *other = NULL;
        _cleanup_(sockets_done) Sockets mine = {}, none = {};
        int64_t id = number(store, "SELECT id FROM resource WHERE ident = 'inode:77'");
        Resource *known;

        /* As the analysis of its waits or calls would have. */
        assert_done(reading_resource(r, id, &known, &error));
        assert_done(sockets_read(r, &mine, &error));
        ck_assert_uint_eq(mine.n, 1);
        ck_assert_ptr_eq(mine.items[0]->resource, known);

        reading_end(r);
        other = sample_read(store, 0, 10, "x");
        assert_done(sockets_read(other, &none, &error));
        ck_assert_uint_eq(none.n, 0);
}
END_TEST

START_TEST(test_cgroups) {
        _cleanup_(batch_unrefp) Batch *b = batch_new();
        _cleanup_(store_closep) Store *store = sample_open();
        _cleanup_(reading_freep) Reading *r = NULL;
        _cleanup_(cgroups_done) Cgroups c = {};
        static const BatchCgroupTime rows[] = {
                { SAMPLE_START + SECOND, SECOND, "/quiet", 1000000, 0, 0, 4096, 0 },
                { SAMPLE_START + SECOND, SECOND, "/limited", 500000000, 400000000, 4, 8192, -1 },
                { SAMPLE_START + 2 * SECOND, SECOND, "/limited", 500000000, 200000000, 2, 4096, -1 },
                { SAMPLE_START + SECOND, SECOND, "/full", -1, -1, -1, -1, 7 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                ck_assert_int_eq(batch_add_cgroup_time(b, rows + i), 0);
        assert_done(store_write(store, b, &error));
        r = sample_read(store, 0.5, 10, NULL);
        assert_done(cgroups_read(r, &c, &error));

        ck_assert_uint_eq(c.n, 3);
        ck_assert_str_eq(c.items[0]->cgroup, "/limited"); /* most throttled first */
        ck_assert_uint_eq(c.items[0]->length_ns, 1500 * NSEC_PER_MSEC);
        ck_assert_uint_eq(c.items[0]->usage_ns, 750 * NSEC_PER_MSEC);
        ck_assert_uint_eq(c.items[0]->throttled_ns, 400 * NSEC_PER_MSEC);
        ck_assert_uint_eq(c.items[0]->throttled_periods, 4);
        ck_assert_uint_eq(c.items[0]->memory_bytes, 8192);
        ck_assert(c.items[0]->knows_throttling && c.items[0]->knows_memory && !c.items[0]->knows_events);
        ck_assert(cgroup_was_limited(c.items[0]));

        ck_assert_str_eq(c.items[1]->cgroup, "/full");
        ck_assert(!c.items[1]->knows_cpu && !c.items[1]->knows_throttling && c.items[1]->knows_events);
        ck_assert_uint_eq(c.items[1]->memory_events, 4); /* half of it is in the range */
        ck_assert(cgroup_was_limited(c.items[1]));
        ck_assert(!cgroup_was_limited(c.items[2]));
}
END_TEST

int main(void) {
        Suite *suite = suite_create("devices");
        TCase *c = tcase_create("devices");

        tcase_add_test(c, test_disks);
        tcase_add_test(c, test_disks_clipped);
        tcase_add_test(c, test_sockets);
        tcase_add_test(c, test_sockets_of_a_target);
        tcase_add_test(c, test_cgroups);
        suite_add_tcase(suite, c);
        return run_suite(suite);
}
