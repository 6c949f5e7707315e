/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* ctl/label.c and ctl/table.c: how waits and their enders are called, and one description that makes a table and JSON.
 */
#include "ctl/label.h"

#include <json-c/json.h>

#include "sample.h"

#define assert_label(expression, expected)           \
        do {                                         \
                char *_label_ = (expression);        \
                ck_assert_str_eq(_label_, expected); \
                free(_label_);                       \
        } while (0)

static char *label_waits_wakers(const SharesWait *w) {
        return label_wakers(w->wakers, w->n_wakers, w->wakers_total_ns, w->thread->process);
}

START_TEST(test_labels) {
        _cleanup_(store_closep) Store *store = sample_open();
        _cleanup_(reading_freep) Reading *reading = sample_read(store, 0, 10, NULL);
        _cleanup_(shares_freep) Shares *s = NULL;

        assert_done(shares_read(reading, true, &s, &error));

        /* Sorted by time: the sleeper's epoll, the lock, the timer. */
        assert_label(label_wait(s->waits[0]), "epoll_wait eventpoll:5 (tcp 10.0.0.2:5432 75.0%)");
        assert_label(label_wait(s->waits[1]), "futex wait heap+0x10");
        assert_label(label_wait(s->waits[2]), "clock_nanosleep");
        assert_label(label_waits_wakers(s->waits[0]), "-");
        assert_label(label_waits_wakers(s->waits[1]), "holder/101 75.0%, timer 25.0%");
        /* Of another process, it is named with that. */
        assert_label(label_wakers(s->waits[1]->wakers, 1, s->waits[1]->wakers[0]->total_ns, NULL),
                        "holder/101 of demo/100 100.0%");
        assert_label(label_instead(s, s->threads[0]), "stress/900 100.0%");
        assert_label(label_instead(s, s->threads[1]), "-");
        ck_assert_str_eq(label_resource(s->waits[1]->resource), "heap+0x10");
        ck_assert_str_eq(label_resource(s->waits[2]->resource), "-");
}
END_TEST

START_TEST(test_operations) {
        static const struct {
                const char *kind, *op, *ident, *name, *label;
        } cases[] = {
                { "inet", "receive", "inode:12345", "tcp 10.0.0.2:5432", "receive tcp 10.0.0.2:5432" },
                { "inet", "receive", "inode:12345", NULL, "receive inet inode:12345" },
                { "inet", "accept", "inode:1", "tcp listen *:5432", "accept tcp listen *:5432" },
                { "unix", "send", "inode:7", "unix /run/x.sock", "send unix /run/x.sock" },
                { "file", "fsync", "8:1:99:0", "/var/lib/x", "fsync /var/lib/x" },
                { "pipe", "read", "inode:123", "pipe:[123]", "read pipe:[123]" },
                { "pipe", "read", "pipe:[123]", NULL, "read pipe:[123]" },
                { "chardev", "read", "136:3", "/dev/pts/3", "read /dev/pts/3" },
                { "epoll", "epoll_wait", "1:5", "eventpoll:3", "epoll_wait eventpoll:3" },
                { "eventfd", "read", "9", "", "read eventfd 9" },
                { "poll", "select", "1:2", "poll", "select" },
                { "futex", "wait", "private:1:7f00", "server:lock", "futex wait server:lock" },
                { "futex", "futex2_wait", "private:1:7f00", "server:lock", "futex2_wait server:lock" },
                { "timer", "clock_nanosleep", "clock_nanosleep", NULL, "clock_nanosleep" },
                { "child", "wait4", "", NULL, "wait4" },
                { "signal", "stopped", "stopped", NULL, "stopped" },
                { "kernel-lock", "rwsem_read", "1f", "mmap lock", "kernel-lock rwsem_read mmap lock" },
                { "page-fault", "file", "8:1:99:0", "/usr/bin/x", "page-fault file /usr/bin/x" },
                { "reclaim", "reclaim_cgroup", "", NULL, "reclaim_cgroup" },
                { "aio", "io_getevents", "1:2", NULL, "aio io_getevents 1:2" },
                { "io_uring", "io_uring_enter", "inode:4", "io_uring:9", "io_uring_enter io_uring:9" },
                { "io_uring", "submit", "inode:4", "io_uring:9", "io_uring submit io_uring:9" },
                { "other", "semtimedop", "sem:4", NULL, "semtimedop sem:4" },
                { "other", "lost", "lost", NULL, "unknown (lost)" },
                { "other", "membarrier", "membarrier", NULL, "membarrier" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                const Resource r = {
                        .kind = (char *) cases[i].kind, .ident = (char *) cases[i].ident, .name = (char *) cases[i].name
                };

                assert_label(label_operation(cases[i].op, &r), cases[i].label);
        }
}
END_TEST

START_TEST(test_shorten) {
        assert_label(table_shorten("fsync /var/lib/x", 16), "fsync /var/lib/x");
        assert_label(table_shorten("/var/lib/postgresql/15/main/base/16384/2619", 24), "/var/li...ase/16384/2619");
        /* Characters, not bytes: äöüäöü. */
        assert_label(table_shorten("\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc", 5), "...\xc3\xb6\xc3\xbc");
        assert_label(table_shorten("abcdef", 3), "abcdef"); /* too narrow to show anything */
}
END_TEST

static const TableColumn columns[] = {
        { "name", "NAME", false },
        { "length_ns", "LENGTH", true },
        { "secret", NULL, false },
        { NULL, "SHARE", true },
        { "count", "COUNT", true },
};

static Table *make_table(bool json) {
        Table *t = NULL;

        ck_assert_int_eq(table_new(columns, ELEMENTSOF(columns), json, &t), 0);
        table_row(t);
        table_text(t, "a\n\xff\"b");
        table_duration(t, 1500000000);
        table_number(t, -5);
        table_share(t, 1, 4);
        table_count(t, UINT64_MAX);
        table_row(t);
        table_null(t);
        table_duration(t, 0);
        table_null(t);
        table_share(t, 0, 0);
        table_count(t, 0);
        /* More cells than columns are dropped. */
        table_count(t, 7);
        return t;
}

START_TEST(test_table) {
        _cleanup_(table_freep) Table *t = make_table(false);
        _cleanup_free_ char *out = NULL;
        size_t size;
        FILE *f = open_memstream(&out, &size);

        ck_assert_ptr_nonnull(f);
        ck_assert_uint_eq(table_rows(t), 2);
        ck_assert_int_eq(table_print(t, false, f), 0);
        fclose(f);
        ck_assert_ptr_nonnull(strstr(out, "NAME"));
        ck_assert_ptr_nonnull(strstr(out, "a\\n\\xff\"b"));
        ck_assert_ptr_nonnull(strstr(out, "25.0%"));
        ck_assert_ptr_nonnull(strstr(out, "18446744073709551615"));
        ck_assert_ptr_null(strstr(out, "-5"));
        ck_assert_ptr_null(strstr(out, "secret"));
}
END_TEST

START_TEST(test_table_no_legend) {
        _cleanup_(table_freep) Table *t = make_table(false);
        _cleanup_free_ char *out = NULL;
        size_t size;
        FILE *f = open_memstream(&out, &size);

        ck_assert_int_eq(table_print(t, true, f), 0);
        fclose(f);
        ck_assert_ptr_null(strstr(out, "NAME"));
        ck_assert_ptr_nonnull(strstr(out, "25.0%"));
}
END_TEST

START_TEST(test_table_empty) {
        _cleanup_(table_freep) Table *t = NULL, *json = NULL;
        _cleanup_free_ char *out = NULL;
        size_t size;
        FILE *f = open_memstream(&out, &size);

        ck_assert_int_eq(table_new(columns, ELEMENTSOF(columns), false, &t), 0);
        ck_assert_int_eq(table_new(columns, ELEMENTSOF(columns), true, &json), 0);
        ck_assert_int_eq(table_print(t, true, f), 0);
        ck_assert_int_eq(table_print(t, false, f), 0);
        ck_assert_int_eq(table_print(json, false, f), 0);
        fclose(f);
        ck_assert_str_eq(out, "NAME LENGTH SHARE COUNT\n[\n]\n");
}
END_TEST

START_TEST(test_json) {
        _cleanup_(table_freep) Table *t = make_table(true);
        json_object *array = NULL, *row, *o;

        ck_assert_int_eq(table_take_json(t, &array), 0);
        ck_assert_uint_eq(json_object_array_length(array), 2);

        row = json_object_array_get_idx(array, 0);
        ck_assert_int_eq(json_object_object_length(row), 4);
        ck_assert(json_object_object_get_ex(row, "name", &o));
        ck_assert_str_eq(json_object_get_string(o), "a\n\xef\xbf\xbd\"b");
        ck_assert(json_object_object_get_ex(row, "length_ns", &o));
        ck_assert_int_eq(json_object_get_int64(o), 1500000000);
        ck_assert(json_object_object_get_ex(row, "secret", &o));
        ck_assert_int_eq(json_object_get_int64(o), -5);
        ck_assert(json_object_object_get_ex(row, "count", &o));
        ck_assert_uint_eq(json_object_get_uint64(o), UINT64_MAX);

        row = json_object_array_get_idx(array, 1);
        ck_assert(json_object_object_get_ex(row, "name", &o));
        ck_assert_ptr_null(o);
        json_object_put(array);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("label");
        TCase *c = tcase_create("label");

        tcase_add_test(c, test_labels);
        tcase_add_test(c, test_operations);
        tcase_add_test(c, test_shorten);
        tcase_add_test(c, test_table);
        tcase_add_test(c, test_table_no_legend);
        tcase_add_test(c, test_table_empty);
        tcase_add_test(c, test_json);
        suite_add_tcase(suite, c);
        return run_suite(suite);
}
