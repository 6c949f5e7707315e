/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* daemon/object-name.c: what objects are called, and what /proc says of them. */
#include "object-name.h"
#include "daemon-unit.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

static void check_name(unsigned kind, const struct prism_object *object, const char *name, NameSource source) {
        NameSource found = NAME_IDENT;
        _cleanup_free_ char *s = object_name(kind, object, &found);

        ck_assert_ptr_nonnull(s);
        ck_assert_str_eq(s, name);
        ck_assert_int_eq(found, source);
}

static void set_address(unsigned char *to, int family, const char *text) {
        ck_assert_int_eq(inet_pton(family, text, to), 1);
}

START_TEST(test_inet_names) {
        struct prism_object o = { .family = AF_INET, .type = SOCK_STREAM, .protocol = IPPROTO_TCP, .state = 1 };

        set_address(o.local_address, AF_INET, "192.0.2.1");
        set_address(o.remote_address, AF_INET, "192.0.2.7");
        o.local_port = 40112;
        o.remote_port = 5432;
        check_name(PRISM_KIND_INET, &o, "tcp 192.0.2.7:5432", NAME_FULL);

        memset(o.local_address, 0, sizeof(o.local_address));
        o.remote_port = 0;
        o.local_port = 80;
        o.state = 10;
        check_name(PRISM_KIND_INET, &o, "tcp listen *:80", NAME_FULL);

        o = (struct prism_object){ .family = AF_INET6, .type = SOCK_DGRAM, .protocol = IPPROTO_UDP, .local_port = 53 };
        check_name(PRISM_KIND_INET, &o, "udp *:53", NAME_FULL);
        set_address(o.remote_address, AF_INET6, "2001:db8::5");
        o.remote_port = 443;
        check_name(PRISM_KIND_INET, &o, "udp [2001:db8::5]:443", NAME_FULL);

        set_address(o.remote_address, AF_INET6, "::ffff:192.0.2.9");
        check_name(PRISM_KIND_INET, &o, "udp 192.0.2.9:443", NAME_FULL);

        o = (struct prism_object){ .family = AF_INET, .type = SOCK_RAW, .protocol = 89 };
        check_name(PRISM_KIND_INET, &o, "raw-89 unbound", NAME_FULL);
}
END_TEST

START_TEST(test_unix_names) {
        struct prism_object o = { .family = AF_UNIX, .type = SOCK_STREAM };
        _cleanup_free_ char *path = NULL;

        o.path_length = sizeof("/run/x.sock");
        strcpy(o.path, "/run/x.sock");
        check_name(PRISM_KIND_UNIX, &o, "unix /run/x.sock", NAME_FULL);

        /* Abstract names need no 0 at their end, and may have some inside. */
        memcpy(o.path, "\0hidden", 7);
        o.path_length = 7;
        path = object_path(&o);
        ck_assert_str_eq(path, "@hidden");
        check_name(PRISM_KIND_UNIX, &o, "unix @hidden", NAME_FULL);

        /* All that fits, without a 0. */
        memset(o.path, 'x', sizeof(o.path));
        o.path_length = UINT32_MAX;
        free(path);
        path = object_path(&o);
        ck_assert_uint_eq(strlen(path), sizeof(o.path));

        o.path_length = 0;
        o.peer_inode = 77;
        o.type = SOCK_SEQPACKET;
        check_name(PRISM_KIND_UNIX, &o, "unix seqpacket to [77]", NAME_FULL);
        o.type = 999;
        check_name(PRISM_KIND_UNIX, &o, "unix socket to [77]", NAME_FULL);
}
END_TEST

START_TEST(test_other_names) {
        struct prism_object o = { .descriptor = 9, .poll_count = 3, .poll_descriptors = { 4, 7, 12 } };
        NameSource source = NAME_IDENT;

        check_name(PRISM_KIND_POLL, &o, "fd 4, 7, 12", NAME_FULL);
        o.poll_count = 1000;
        for (int i = 0; i < PRISM_POLL_FILES; i++)
                o.poll_descriptors[i] = INT32_MIN;
        check_name(PRISM_KIND_POLL, &o,
                        "fd -2147483648, -2147483648, -2147483648, -2147483648, -2147483648, -2147483648, -2147483648, "
                        "-2147483648, ...",
                        NAME_FULL);
        check_name(PRISM_KIND_EVENTFD, &o, "eventfd fd 9", NAME_COMPONENT);
        o.descriptor = -1;
        ck_assert_ptr_null(object_name(PRISM_KIND_EPOLL, &o, &source));
        ck_assert_ptr_null(object_name(PRISM_KIND_FILE, &o, &source));
        ck_assert_int_eq(source, NAME_IDENT);
        memset(o.name, 'n', sizeof(o.name));
        _cleanup_free_ char *name = object_name(PRISM_KIND_FILE, &o, &source);
        ck_assert_uint_eq(strlen(name), sizeof(o.name));
}
END_TEST

/* A descriptor that is another file by now gives no name. */
START_TEST(test_path_by_descriptor) {
        char path[] = "/tmp/prism-test-XXXXXX";
        _cleanup_close_ int fd = mkstemp(path), null = open("/dev/null", O_RDWR | O_CLOEXEC);
        ResourceKey id = { .kind = PRISM_KIND_FILE };
        _cleanup_free_ char *found = NULL, *device = NULL;
        struct stat st;

        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(fstat(fd, &st), 0);
        id.space = st.st_ino;
        found = object_path_by_descriptor((uint32_t) getpid(), fd, &id);
        ck_assert_str_eq(found, path);
        id.space++;
        ck_assert_ptr_null(object_path_by_descriptor((uint32_t) getpid(), fd, &id));
        ck_assert_ptr_null(object_path_by_descriptor((uint32_t) getpid(), 9999, &id));

        id = (ResourceKey){ .kind = PRISM_KIND_CHARDEV, .space = 1 << 20 | 3 };
        device = object_path_by_descriptor((uint32_t) getpid(), null, &id);
        ck_assert_str_eq(device, "/dev/null");
        unlink(path);
}
END_TEST

START_TEST(test_path_by_mapping) {
        char path[] = "/tmp/prism-test-XXXXXX";
        _cleanup_close_ int fd = mkstemp(path);
        _cleanup_free_ char *found = NULL;
        ResourceKey id = { .kind = PRISM_KIND_PAGE_FAULT };
        struct stat st;
        void *memory;

        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(ftruncate(fd, 4096), 0);
        ck_assert_int_eq(fstat(fd, &st), 0);
        id.space = st.st_ino;
        id.address = ((uint64_t) major(st.st_dev) << 20 | minor(st.st_dev)) << 32;
        ck_assert_ptr_null(object_path_by_mapping((uint32_t) getpid(), &id));
        memory = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
        ck_assert_ptr_ne(memory, MAP_FAILED);
        found = object_path_by_mapping((uint32_t) getpid(), &id);
        ck_assert_str_eq(found, path);
        /* The same number on another device. */
        if (major(st.st_dev) != 0) {
                id.address += 1ULL << 32;
                ck_assert_ptr_null(object_path_by_mapping((uint32_t) getpid(), &id));
        }
        munmap(memory, 4096);
        unlink(path);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("object-name");
        TCase *tests = tcase_create("object-name");

        tcase_add_test(tests, test_inet_names);
        tcase_add_test(tests, test_unix_names);
        tcase_add_test(tests, test_other_names);
        tcase_add_test(tests, test_path_by_descriptor);
        tcase_add_test(tests, test_path_by_mapping);
        suite_add_tcase(suite, tests);
        return run_suite(suite);
}
