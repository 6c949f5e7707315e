/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* daemon/futex-name.c: lines of maps, and the names of addresses of this very process. */
#include "futex-name.h"
#include "daemon-unit.h"

#include <dlfcn.h>
#include <elf.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static char **fixture_paths;
static int n_fixtures;

static int own_data[4] = { 1, 2, 3, 4 };
static int own_large_bss[65536];

START_TEST(test_lines) {
        static const struct {
                const char *line;
                uint64_t start, end, offset;
                bool shared;
                const char *path;
        } table[] = {
                { "55d0c0a00000-55d0c0a02000 r--p 00000000 fe:01 1234                       /usr/bin/x", 0x55d0c0a00000,
                                0x55d0c0a02000, 0, false, "/usr/bin/x" },
                { "7f00-8f00 rw-s 00003000 00:05 9                          /dev/shm/a b  c", 0x7f00, 0x8f00, 0x3000,
                                true, "/dev/shm/a b  c" },
                { "1000-2000 rw-p 00000000 00:00 0 ", 0x1000, 0x2000, 0, false, "" },
                { "1000-2000 rw-p 00000000 00:00 0", 0x1000, 0x2000, 0, false, "" },
                { "1000-2000 rw-s 00000000 00:01 55                         /memfd:x y (deleted)", 0x1000, 0x2000, 0,
                                true, "/memfd:x y (deleted)" },
                { "1000-2000 rw-s 00001000 00:01 55                         /dev/zero (deleted)", 0x1000, 0x2000,
                                0x1000, true, "/dev/zero (deleted)" },
                { "1000-2000 rw-p 00000000 00:00 0                          [heap]", 0x1000, 0x2000, 0, false,
                                "[heap]" },
                { "1000-2000 rw-p 00000000 00:00 0                          [anon:a b]", 0x1000, 0x2000, 0, false,
                                "[anon:a b]" },
                { "1000-2000 rw-s 00000000 00:01 32768                      /SYSV00000000 (deleted)", 0x1000, 0x2000, 0,
                                true, "/SYSV00000000 (deleted)" },
                { "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]",
                                0xffffffffff600000, 0xffffffffff601000, 0, false, "[vsyscall]" },
                { "1000-2000 rw-p ffffffffff000 00:00 18446744073709551615 /a\\012b", 0x1000, 0x2000, 0xffffffffff000,
                                false, "/a\\012b" },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_free_ char *line = strdup(table[i].line);
                Mapping m;

                ck_assert_msg(mapping_parse(line, &m), "%s", table[i].line);
                ck_assert_uint_eq(m.start, table[i].start);
                ck_assert_uint_eq(m.end, table[i].end);
                ck_assert_uint_eq(m.offset, table[i].offset);
                ck_assert_int_eq(m.shared, table[i].shared);
                ck_assert_str_eq(m.path, table[i].path);
        }
}
END_TEST

START_TEST(test_bad_lines) {
        static const char *const bad[] = { "", " ", "x", "1000", "1000-", "1000-2000", "1000-2000 rw-p",
                "1000-2000 rw-p 0", "1000-2000 rw-p 0 00:00", "zz-2000 rw-p 0 00:00 0", "Name:\tx" };
        static const char alphabet[] = "0123456789abcdef-rwxsp:/ []()\t\xff";
        uint32_t state = 9;

        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                _cleanup_free_ char *line = strdup(bad[i]);
                Mapping m = { .start = 77 };

                ck_assert_msg(!mapping_parse(line, &m), "\"%s\"", bad[i]);
                ck_assert_uint_eq(m.start, 77);
        }
        for (unsigned i = 0; i < 20000; i++) {
                size_t n = next_random(&state) % 80;
                char *line = malloc(n + 1);
                Mapping m;

                for (size_t k = 0; k < n; k++)
                        line[k] = alphabet[next_random(&state) % (sizeof(alphabet) - 1)];
                line[n] = '\0';
                if (mapping_parse(line, &m))
                        ck_assert(m.path >= line && m.path <= line + n);
                free(line);
        }
}
END_TEST

static char *name_of(const volatile void *address) {
        return futex_name((uint32_t) getpid(), (uint64_t) (uintptr_t) address);
}

_printf_(2, 3) static void assert_name(const volatile void *address, const char *format, ...) {
        _cleanup_free_ char *name = name_of(address), *expected = NULL;
        va_list ap;

        va_start(ap, format);
        ck_assert_int_ge(vasprintf(&expected, format, ap), 0);
        va_end(ap);
        ck_assert_msg(name && streq(name, expected), "\"%s\", not \"%s\"", name ?: "none", expected);
}

START_TEST(test_own_variables) {
        _cleanup_free_ char *exe = realpath("/proc/self/exe", NULL);

        own_data[1]++;
        own_large_bss[1]++;
        assert_name(own_data, "%s:own_data", exe);
        assert_name(own_data + 2, "%s:own_data+0x8", exe);
        assert_name(own_large_bss, "%s:own_large_bss", exe);
        assert_name(own_large_bss + 65535, "%s:own_large_bss+0x3fffc", exe);
}
END_TEST

START_TEST(test_library) {
        _cleanup_free_ char *name = name_of(stdout);

        ck_assert_ptr_nonnull(name);
        assert_contains(name, "/libc");
        assert_contains(name, ":_IO_2_1_stdout_");
}
END_TEST

START_TEST(test_fixtures) {
        static const char *const symbols[] = { "fixture_data", "fixture_bss", "fixture_large_bss",
                "fixture_constants" };

        ck_assert_int_ge(n_fixtures, 1);
        for (int i = 0; i < n_fixtures; i++) {
                _cleanup_free_ char *path = realpath(fixture_paths[i], NULL);
                void *library;

                ck_assert_ptr_nonnull(path);
                library = dlopen(path, RTLD_NOW);
                ck_assert_msg(library != NULL, "%s", dlerror());
                for (size_t k = 0; k < ELEMENTSOF(symbols); k++) {
                        const char *address = dlsym(library, symbols[k]);

                        ck_assert_ptr_nonnull(address);
                        assert_name(address, "%s:%s", path, symbols[k]);
                        assert_name(address + 12, "%s:%s+0xc", path, symbols[k]);
                }
                ck_assert_int_eq(dlclose(library), 0);
        }
}
END_TEST

START_TEST(test_heap_and_stack) {
        _cleanup_free_ char *of_stack = NULL, *of_heap = NULL;
        volatile int local = 0;
        char *brk;

        brk = sbrk(8192);
        ck_assert_ptr_ne(brk, (void *) -1);
        of_heap = name_of(brk + 64);
        ck_assert_ptr_nonnull(of_heap);
        ck_assert_ptr_nonnull(startswith(of_heap, "[heap]+0x"));
        of_stack = name_of(&local);
        ck_assert_ptr_nonnull(of_stack);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__clang__) /* which may keep locals elsewhere */
        ck_assert_ptr_nonnull(startswith(of_stack, "[stack]+0x"));
#endif
}
END_TEST

typedef struct Sleeper {
        pthread_t thread;
        pid_t tid;
        volatile void *frame;
        int ready[2], end[2];
} Sleeper;

static void *sleeper_main(void *userdata) {
        Sleeper *s = userdata;
        char byte;

        (void) prctl(PR_SET_NAME, "sleeper (1)");
        s->tid = (pid_t) syscall(SYS_gettid);
        s->frame = __builtin_frame_address(0);
        if (write(s->ready[1], "", 1) != 1 || read(s->end[0], &byte, 1) < 0)
                return NULL;
        return s;
}

static void sleeper_start(Sleeper *s) {
        char byte;

        ck_assert_int_eq(pipe(s->ready), 0);
        ck_assert_int_eq(pipe(s->end), 0);
        ck_assert_int_eq(pthread_create(&s->thread, NULL, sleeper_main, s), 0);
        ck_assert_int_eq(read(s->ready[0], &byte, 1), 1);
        /* Until it is asleep in read(): its stack pointer cannot be read before. */
        for (;;) {
                char path[64], text[64] = {};
                int fd;

                (void) snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", s->tid);
                fd = open(path, O_RDONLY | O_CLOEXEC);
                if (fd < 0 && errno == ENOENT && access("/proc/self/syscall", F_OK) < 0)
                        return;
                ck_assert_int_ge(fd, 0);
                ck_assert_int_gt(read(fd, text, sizeof(text) - 1), 0);
                close(fd);
                if (startswith(text, "0 "))
                        return;
                (void) usleep(1000);
        }
}

static void sleeper_end(Sleeper *s) {
        close(s->end[1]);
        ck_assert_int_eq(pthread_join(s->thread, NULL), 0);
        close(s->end[0]);
        close(s->ready[0]);
        close(s->ready[1]);
}

START_TEST(test_stack_of_thread) {
        _cleanup_free_ char *first = NULL, *second = NULL;
        Sleeper a = {}, b = {};
        char expected[64];

        if (access("/proc/self/syscall", R_OK) < 0)
                skip_test("this kernel does not show stack pointers");
        sleeper_start(&a);
        sleeper_start(&b);
        first = name_of(a.frame);
        second = name_of(b.frame);
        (void) snprintf(expected, sizeof(expected), "stack of sleeper (1)/%d -0x", a.tid);
        assert_contains(first, expected);
        (void) snprintf(expected, sizeof(expected), "stack of sleeper (1)/%d -0x", b.tid);
        assert_contains(second, expected);
        sleeper_end(&a);
        sleeper_end(&b);
}
END_TEST

static char *map(int fd, off_t offset, int flags) {
        char *p = mmap(NULL, 16384, PROT_READ | PROT_WRITE, flags, fd, offset);

        ck_assert_ptr_ne(p, MAP_FAILED);
        return p;
}

START_TEST(test_shared_memory) {
        char name[64], *p;
        int fd;

        p = map(-1, 0, MAP_SHARED | MAP_ANONYMOUS);
        assert_name(p, "shared memory+0x0");
        assert_name(p + 4096 + 8, "shared memory+0x1008");
        ck_assert_int_eq(munmap(p, 4096), 0); /* what is left begins at an offset, and is the same memory */
        assert_name(p + 4096 + 8, "shared memory+0x1008");
        ck_assert_int_eq(munmap(p + 4096, 12288), 0);

        fd = memfd_create("pool a", MFD_CLOEXEC);
        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(ftruncate(fd, 32768), 0);
        p = map(fd, 8192, MAP_SHARED);
        assert_name(p + 64, "/memfd:pool a (deleted)+0x2040");
        ck_assert_int_eq(munmap(p, 16384), 0);
        close(fd);

        (void) snprintf(name, sizeof(name), "/prism unit-%d", getpid());
        fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
        if (fd < 0)
                skip_test("no /dev/shm that can be written");
        ck_assert_int_eq(ftruncate(fd, 32768), 0);
        p = map(fd, 4096, MAP_SHARED);
        assert_name(p + 4, "/dev/shm%s+0x1004", name);
        ck_assert_int_eq(shm_unlink(name), 0);
        assert_name(p + 4, "/dev/shm%s (deleted)+0x1004", name);
        ck_assert_int_eq(munmap(p, 16384), 0);
        close(fd);
}
END_TEST

/* Private mappings of files that are no programs, or were cut short: named by their offset, and nothing crashes. */
START_TEST(test_private_files) {
        static const char *const contents[] = { "", "\x7f",
                "\x7f"
                "ELF",
                "text",
                "\x7f"
                "ELF\x02\x01\x01" };
        _cleanup_free_ char *exe = NULL;
        size_t size = 0;
        char *p;
        int fd;

        directory_make();
        for (size_t i = 0; i < ELEMENTSOF(contents); i++) {
                const char *path = in_directory("private file");

                write_file(path, contents[i], strlen(contents[i]));
                ck_assert_int_eq(truncate(path, 32768), 0);
                fd = open(path, O_RDWR | O_CLOEXEC);
                ck_assert_int_ge(fd, 0);
                p = map(fd, 4096, MAP_PRIVATE);
                assert_name(p + 16, "%s+0x1010", path);
                ck_assert_int_eq(munmap(p, 16384), 0);
                close(fd);
        }

        /* This program, with bytes changed at random. */
        exe = unit_read_file("/proc/self/exe", &size);
        {
                const char *path = in_directory("broken");
                uint32_t state = 3;

                for (unsigned i = 0; i < 200; i++) {
                        _cleanup_free_ char *copy = malloc(size), *name = NULL;
                        /* Its headers at the beginning, and the section headers at the end. */
                        for (size_t k = 0; k < size; k++)
                                copy[k] = exe[k];
                        for (unsigned k = 0; k < 8; k++) {
                                copy[next_random(&state) % 1024] = (char) next_random(&state);
                                copy[size - 1 - next_random(&state) % 3000] = (char) next_random(&state);
                        }
                        copy[0] = '\x7f';
                        write_file(path, copy, size);
                        fd = open(path, O_RDWR | O_CLOEXEC);
                        ck_assert_int_ge(fd, 0);
                        p = map(fd, 4096 * (off_t) (next_random(&state) % (size / 4096)), MAP_PRIVATE);
                        name = name_of(p + 128);
                        ck_assert_ptr_nonnull(name);
                        ck_assert_ptr_nonnull(startswith(name, path));
                        ck_assert_int_eq(munmap(p, 16384), 0);
                        close(fd);
                }
        }
        directory_remove();
}
END_TEST

typedef struct Shrinking {
        int fd;
        const char *content;
        size_t size;
        _Atomic unsigned cycles;
        _Atomic bool stop;
} Shrinking;

static void *shrink(void *userdata) {
        Shrinking *s = userdata;

        for (; !s->stop; s->cycles++)
                if (pwrite(s->fd, s->content, s->size, 0) < 0 || ftruncate(s->fd, 4096) < 0)
                        return NULL;
        return s;
}

/* The file is the target's: it can cut it while it is being read. */
START_TEST(test_shrinking_file) {
        _cleanup_free_ char *exe = NULL;
        Shrinking shrinking = {};
        const char *path;
        pthread_t thread;
        unsigned named = 0, asked = 0;
        void *result;
        char *p;

        directory_make();
        exe = unit_read_file("/proc/self/exe", &shrinking.size);
        shrinking.content = exe;
        path = in_directory("shrinking");
        write_file(path, exe, shrinking.size);
        shrinking.fd = open(path, O_RDWR | O_CLOEXEC);
        ck_assert_int_ge(shrinking.fd, 0);
        p = map(shrinking.fd, 4096, MAP_PRIVATE);
        ck_assert_int_eq(pthread_create(&thread, NULL, shrink, &shrinking), 0);
        for (; asked < 300 || shrinking.cycles < 500; asked++) {
                _cleanup_free_ char *name = name_of(p + 128);

                named += name && startswith(name, path);
        }
        shrinking.stop = true;
        ck_assert_int_eq(pthread_join(thread, &result), 0);
        ck_assert_ptr_eq(result, &shrinking);
        ck_assert_uint_eq(named, asked);
        ck_assert_int_eq(munmap(p, 16384), 0);
        close(shrinking.fd);
        directory_remove();
}
END_TEST

/* Where own_data lies in this program's file. */
static uint64_t offset_of_own_data(const char *exe) {
        const Elf64_Phdr *segments = (const Elf64_Phdr *) (exe + ((const Elf64_Ehdr *) exe)->e_phoff);
        uint64_t address;
        Dl_info info;

        ck_assert_int_ne(dladdr(own_data, &info), 0);
        address = (uint64_t) (uintptr_t) own_data - (uint64_t) (uintptr_t) info.dli_fbase;
        for (unsigned i = 0; i < ((const Elf64_Ehdr *) exe)->e_phnum; i++)
                if (segments[i].p_type == PT_LOAD && address - segments[i].p_vaddr < segments[i].p_filesz)
                        return address - segments[i].p_vaddr + segments[i].p_offset;
        ck_abort_msg("own_data is in no segment");
}

/* A file that claims to have more sections, segments or symbols than memory has room for. Holes cost its owner nothing. */
START_TEST(test_immodest_files) {
        static const off_t large = (off_t) 1 << 32;
        struct rlimit before, bounded;
        const char *path;
        uint64_t offset;
        size_t size;
        char *exe;

        directory_make();
        exe = unit_read_file("/proc/self/exe", &size);
        offset = offset_of_own_data(exe);
        path = in_directory("immodest");
        ck_assert_int_eq(getrlimit(RLIMIT_CPU, &before), 0);
        bounded = before;
        bounded.rlim_cur = 30;
        ck_assert_int_eq(setrlimit(RLIMIT_CPU, &bounded), 0);
        for (unsigned i = 0; i < 5; i++) {
                _cleanup_free_ char *copy = calloc(1, size + 65536), *name = NULL;
                struct rusage usage_before, usage_after;
                Elf64_Ehdr *header = (Elf64_Ehdr *) copy;
                Elf64_Shdr *sections;
                char *p;
                int fd;

                ck_assert_ptr_nonnull(copy);
                memcpy(copy, exe, size);
                sections = (Elf64_Shdr *) (copy + header->e_shoff);
                switch (i) {
                case 0: /* the number of sections stands in the first of them */
                        header->e_shnum = 0;
                        sections[0].sh_size = (Elf64_Xword) large / 100;
                        break;
                case 1: /* the number of segments, too */
                        header->e_phnum = PN_XNUM;
                        sections[0].sh_info = 1 << 30;
                        break;
                case 2: /* a symbol table without end */
                        for (unsigned k = 0; k < header->e_shnum; k++)
                                if (sections[k].sh_type == SHT_SYMTAB || sections[k].sh_type == SHT_DYNSYM)
                                        sections[k].sh_size = (Elf64_Xword) large / 2 / 24 * 24;
                        break;
                case 3: /* and its names */
                        for (unsigned k = 0; k < header->e_shnum; k++)
                                if (sections[k].sh_type == SHT_STRTAB)
                                        sections[k].sh_size = (Elf64_Xword) large / 2;
                        break;
                default: /* nothing but a hole at its end */
                        break;
                }
                write_file(path, copy, size);
                if (truncate(path, large) < 0)
                        skip_test("no file can be this large here: %s", strerror(errno));
                fd = open(path, O_RDWR | O_CLOEXEC);
                ck_assert_int_ge(fd, 0);
                p = map(fd, (off_t) (offset & ~UINT64_C(4095)), MAP_PRIVATE);
                ck_assert_int_eq(getrusage(RUSAGE_SELF, &usage_before), 0);
                name = name_of(p + (offset & 4095));
                ck_assert_int_eq(getrusage(RUSAGE_SELF, &usage_after), 0);
                ck_assert_ptr_nonnull(name);
                ck_assert_ptr_nonnull(startswith(name, path));
                ck_assert_msg((strstr(name, ":own_data") != NULL) == (i == 4), "%u: %s", i, name);
                ck_assert_int_lt(usage_after.ru_maxrss - usage_before.ru_maxrss, 200L * 1024);
                ck_assert_int_eq(munmap(p, 16384), 0);
                close(fd);
        }
        ck_assert_int_eq(setrlimit(RLIMIT_CPU, &before), 0);
        free(exe);
        directory_remove();
}
END_TEST

START_TEST(test_nowhere) {
        _cleanup_free_ char *anonymous = NULL;
        pid_t pid;
        char *p;

        p = map(-1, 0, MAP_PRIVATE | MAP_ANONYMOUS);
        anonymous = name_of(p + 8);
        ck_assert_ptr_nonnull(anonymous);
        ck_assert_int_eq(munmap(p, 16384), 0);
        ck_assert_ptr_null(name_of((void *) 16));
        ck_assert_ptr_null(name_of((void *) UINT64_MAX));

        pid = child_start("gone");
        {
                _cleanup_free_ char *name = futex_name((uint32_t) pid, (uint64_t) (uintptr_t) own_data);

                ck_assert_ptr_nonnull(name);
                assert_contains(name, ":own_data");
        }
        child_end(pid);
        ck_assert_ptr_null(futex_name((uint32_t) pid, (uint64_t) (uintptr_t) own_data));
        ck_assert_ptr_null(futex_name(0, 4096));
        ck_assert_ptr_null(futex_name(2, 4096)); /* most often a kernel thread */
}
END_TEST

int main(int argc, char *argv[]) {
        Suite *suite = suite_create("futex-name");
        TCase *tests = tcase_create("futex-name");

        fixture_paths = argv + 1;
        n_fixtures = argc - 1;
        tcase_set_timeout(tests, 30);
        tcase_add_test(tests, test_lines);
        tcase_add_test(tests, test_bad_lines);
        tcase_add_test(tests, test_own_variables);
        tcase_add_test(tests, test_library);
        tcase_add_test(tests, test_fixtures);
        tcase_add_test(tests, test_heap_and_stack);
        tcase_add_test(tests, test_stack_of_thread);
        tcase_add_test(tests, test_shared_memory);
        tcase_add_test(tests, test_private_files);
        tcase_add_test(tests, test_shrinking_file);
        tcase_add_test(tests, test_immodest_files);
        tcase_add_test(tests, test_nowhere);
        suite_add_tcase(suite, tests);
        return run_suite(suite);
}
