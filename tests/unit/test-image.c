/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* store/image.c: a database in a descriptor that nobody can change. */
#include <sys/mman.h>

#include "unit.h"

static int make_image(unsigned n_batches) {
        Batch *batches[4] = {};
        int fd = -1;

        for (unsigned i = 0; i < n_batches; i++) {
                batches[i] = batch_new();
                if (i == 0) {
                        assert_done(batch_add_process(batches[i],
                                        &(BatchProcess){ .key = 1,
                                                        .pid = 7,
                                                        .host_pid = 7,
                                                        .comm = "p",
                                                        .found_by = "target" }));
                        assert_done(batch_add_thread(batches[i],
                                        &(BatchThread){ .key = 1,
                                                        .process_key = 1,
                                                        .tid = 7,
                                                        .host_tid = 7,
                                                        .comm = "t" }));
                }
                for (unsigned row = 0; row < 2000; row++)
                        assert_done(batch_add_thread_time(batches[i],
                                        &(BatchThreadTime){ .ts_ns = i * SECOND + row,
                                                        .dt_ns = 1,
                                                        .thread_key = 1,
                                                        .run_ns = 1 }));
        }
        assert_done(store_image(&test_machine, batches, n_batches, &fd, &error));
        for (unsigned i = 0; i < n_batches; i++)
                batches[i] = batch_unref(batches[i]);
        return fd;
}

START_TEST(test_round_trip) {
        _cleanup_(store_closep) Store *s = NULL;
        int fd = make_image(3);

        assert_done(store_open_image(fd, &s, &error));
        close(fd);
        ck_assert_int_eq(number(s, "SELECT count(*) FROM thread_time"), 6000);
        ck_assert_int_eq(number(s, "SELECT sum(run_ns) FROM thread_time"), 6000);
        assert_text(s, "SELECT comm FROM taskstats_view LIMIT 1", "t");
        assert_text(s, "SELECT hostname FROM machine", "host");
        assert_text(s, "PRAGMA integrity_check", "ok");
        ck_assert_int_eq(sqlite3_exec(store_database(s), "DELETE FROM thread_time", NULL, NULL, NULL) & 0xff,
                        SQLITE_READONLY);
}
END_TEST

START_TEST(test_empty) {
        _cleanup_(store_closep) Store *s = NULL;
        int fd = -1;

        assert_done(store_image(&test_machine, NULL, 0, &fd, &error));
        assert_done(store_open_image(fd, &s, &error));
        close(fd);
        ck_assert_int_eq(number(s, "SELECT count(*) FROM thread_time"), 0);
        ck_assert_int_eq(number(s, "SELECT count(*) FROM machine"), 1);
}
END_TEST

START_TEST(test_seals) {
        int fd = make_image(1);
        struct stat st;
        void *map;

        ck_assert_int_eq(fcntl(fd, F_GET_SEALS), F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
        ck_assert_int_eq(fstat(fd, &st), 0);
        ck_assert_int_lt(pwrite(fd, "x", 1, 0), 0);
        ck_assert_int_eq(errno, EPERM);
        ck_assert_int_lt(ftruncate(fd, 0), 0);
        ck_assert_int_lt(ftruncate(fd, st.st_size + 1), 0);
        map = mmap(NULL, (size_t) st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        ck_assert_ptr_eq(map, MAP_FAILED);
        ck_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        close(fd);
}
END_TEST

START_TEST(test_unknown_key) {
        _cleanup_(batch_unrefp) Batch *b = batch_new();
        int fd = -1;

        assert_done(batch_add_thread_time(b, &(BatchThreadTime){ .ts_ns = 1, .dt_ns = 1, .thread_key = 5 }));
        assert_fails(store_image(&test_machine, &b, 1, &fd, &error), -ENOKEY, "thread 5");
        ck_assert_int_eq(fd, -1);
}
END_TEST

static int make_file(const void *data, size_t size) {
        int fd = memfd_create("test", MFD_CLOEXEC);

        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(pwrite(fd, data, size, 0), (ssize_t) size);
        return fd;
}

START_TEST(test_bad_images) {
        Store *s = NULL;
        char *data;
        struct stat st;
        int fd, bad, pipes[2];

        fd = make_image(1);
        ck_assert_int_eq(fstat(fd, &st), 0);
        data = malloc((size_t) st.st_size);
        ck_assert_int_eq(pread(fd, data, (size_t) st.st_size, 0), st.st_size);
        close(fd);

        bad = make_file(data, 0);
        assert_fails(store_open_image(bad, &s, &error), -EMEDIUMTYPE, "not a database image");
        close(bad);

        bad = make_file(data, 5000);
        assert_fails(store_open_image(bad, &s, &error), -EUCLEAN, "damaged");
        close(bad);

        bad = make_file(data, 60);
        assert_fails(store_open_image(bad, &s, &error), -EMEDIUMTYPE, "not a database image");
        close(bad);

        data[63] = 9; /* the lowest byte of its version */
        bad = make_file(data, (size_t) st.st_size);
        assert_fails(store_open_image(bad, &s, &error), -EPROTO, "another version");
        close(bad);
        data[63] = STORE_VERSION;

        data[68] ^= 1; /* the highest byte of its application id */
        bad = make_file(data, (size_t) st.st_size);
        assert_fails(store_open_image(bad, &s, &error), -EMEDIUMTYPE, "not a database image");
        close(bad);
        data[68] ^= 1;

        /* Damage behind the first page shows when it is read, not as a crash. */
        memset(data + 4096, 0xa5, (size_t) st.st_size - 4096);
        bad = make_file(data, (size_t) st.st_size);
        if (store_open_image(bad, &s, NULL) >= 0) {
                ck_assert_int_ne(sqlite3_exec(store_database(s), "SELECT count(*) FROM thread_time", NULL, NULL, NULL),
                                SQLITE_OK);
                s = store_close(s);
        }
        close(bad);

        ck_assert_int_eq(pipe(pipes), 0);
        assert_fails(store_open_image(pipes[0], &s, &error), -EMEDIUMTYPE, "not a database image");
        close(pipes[0]);
        close(pipes[1]);
        assert_fails(store_open_image(-1, &s, &error), -EBADF, "cannot be read");
        ck_assert_ptr_null(s);
        free(data);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("image");
        TCase *tests = tcase_create("image");

        tcase_add_test(tests, test_round_trip);
        tcase_add_test(tests, test_empty);
        tcase_add_test(tests, test_seals);
        tcase_add_test(tests, test_unknown_key);
        tcase_add_test(tests, test_bad_images);
        suite_add_tcase(suite, tests);
        return run_suite(suite);
}
