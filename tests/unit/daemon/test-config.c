/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* daemon/config.c: what is taken from a file, and what is said, with file and line, of what is not. */
#include "config.h"
#include "daemon-unit.h"

#include "log.h"

/* What reading this text says; *c holds what it set over the defaults. The caller frees. */
static char *read_text(Config *c, const char *text, size_t size) {
        const char *path = in_directory("prismd.conf");
        Capture capture;
        int r;

        write_file(path, text, size);
        config_defaults(c);
        capture = capture_begin();
        r = config_read(c, path);
        {
                char *said = capture_end(&capture);

                ck_assert_msg(r == 0, "%d: %s", r, said);
                return said;
        }
}

/* A file that sets Targets to this and says nothing, or the text that it says in the line given. */
static void assert_targets(const char *text, unsigned expected, const char *line, const char *part) {
        Config c;
        _cleanup_free_ char *said = read_text(&c, text, strlen(text));

        ck_assert_msg(c.targets == expected, "%s: %u", text, c.targets);
        if (!part) {
                ck_assert_msg(said[0] == '\0', "%s: %s", text, said);
                return;
        }
        assert_contains(said, part);
        assert_contains(said, line);
}

START_TEST(test_good) {
        static const char all[] = "# comment\n"
                                  "; comment\n"
                                  "\n"
                                  "[Limits]\n"
                                  "Targets=1\n"
                                  "Threads = 16\n"
                                  "Processes=17 ; why\n"
                                  "Resources=18\n"
                                  "Waits=19\n"
                                  "RanInstead=20\n"
                                  "Connections=2\n"
                                  "Recordings=3";
        _cleanup_free_ char *said = NULL;
        Config c;

        said = read_text(&c, all, strlen(all));
        ck_assert_str_eq(said, "");
        ck_assert_uint_eq(c.targets, 1);
        ck_assert_uint_eq(c.threads, 16);
        ck_assert_uint_eq(c.processes, 17);
        ck_assert_uint_eq(c.resources, 18);
        ck_assert_uint_eq(c.waits, 19);
        ck_assert_uint_eq(c.ran_instead, 20);
        ck_assert_uint_eq(c.connections, 2);
        ck_assert_uint_eq(c.recordings, 3);

        assert_targets("", 512, NULL, NULL);
        assert_targets("[Limits]\nTargets=100000\n", 100000, NULL, NULL);
        assert_targets("[Limits]\r\nTargets=9\r\n", 9, NULL, NULL);
        assert_targets("\xef\xbb\xbf[Limits]\nTargets=9\n", 9, NULL, NULL);
        /* The later one counts, as in the files of systemd. */
        assert_targets("[Limits]\nTargets=8\nTargets=9\n", 9, NULL, NULL);
        assert_targets("[Limits]\nTargets=8\n[Limits]\nTargets=9\n", 9, NULL, NULL);
}
END_TEST

START_TEST(test_bad_keys) {
        assert_targets("[Limits]\nTargets=7\nNoSuch=1\n", 7, "prismd.conf:3:", "no key NoSuch= in section [Limits]");
        assert_targets("[NoSuch]\n\nTargets=7\n", 512, "prismd.conf:3:", "no key Targets= in section [NoSuch]");
        assert_targets("Targets=7\n", 512, "prismd.conf:1:", "no key Targets= in section []");
        assert_targets("[limits]\nTargets=7\n", 512, "prismd.conf:2:", "[limits]");
        assert_targets("[Limits]\ntargets=7\n", 512, "prismd.conf:2:", "targets=");
}
END_TEST

START_TEST(test_bad_values) {
        static const char *const bad[] = { "0", "-1", "100001", "4294967297", "18446744073709551617", "x", "7x", "0x10",
                "1e3", "+7", "7 8", "7.5", "", "\"7\"", "\xff" };

        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                char text[128];

                (void) snprintf(text, sizeof(text), "[Limits]\nTargets=9\n# comment\nTargets=%s\n", bad[i]);
                assert_targets(text, 9, "prismd.conf:4:", "wants a number from 1 to 100000");
                assert_targets(text, 9, "prismd.conf:4:", "keeping 9");
        }
}
END_TEST

START_TEST(test_bad_lines) {
        assert_targets("[Limits]\nTargets=7\nrubbish\n", 7, "prismd.conf:3:", "not a section, a key or a comment");
        assert_targets("[Limits]\nrubbish\nTargets=7\n", 7, "prismd.conf:2:", "not a section, a key or a comment");
        assert_targets("[Limits\nTargets=7\n", 512, "prismd.conf:1:", "not a section");
        /* What is not a terminal's is not sent to one. */
        assert_targets("[Limits]\nTargets=\x1b[31m\n", 512, "prismd.conf:2:", "\\x1b[31m");
}
END_TEST

/* A comment may be as long as it likes and is never taken for a key; a key in a line too long is not taken by half. */
START_TEST(test_long_lines) {
        static const int lengths[] = { 150, 185, 186, 187, 188, 189, 190, 191, 192, 199, 200, 201, 399, 400, 1000 };

        for (size_t i = 0; i < ELEMENTSOF(lengths); i++) {
                char text[2048];
                int n = lengths[i];

                (void) snprintf(text, sizeof(text), "[Limits]\n#%*sTargets=7\n#%*sTargets=7", n, "", 2 * n, "");
                assert_targets(text, 512, NULL, NULL);
                (void) snprintf(text, sizeof(text), "[Limits]\nThreads=%*s7\nTargets=8\n", n, "");
                assert_targets(text, 8, "prismd.conf:2:", n < 190 ? "wants a number" : "");
                (void) snprintf(text, sizeof(text), "[Limits]\n%0*d=1\nTargets=8\n", n, 0);
                assert_targets(text, 8, "prismd.conf:2:", n < 199 ? "there is no key" : "longer than");
        }
        assert_targets("[Limits]\nTargets=        9", 9, NULL, NULL);
}
END_TEST

/* Wherever the end of the library's buffer falls into a number, the number is taken whole or not at all. */
START_TEST(test_no_half_numbers) {
        for (int n = 180; n < 205; n++) {
                _cleanup_free_ char *said = NULL;
                char text[1024];
                Config c;

                (void) snprintf(text, sizeof(text), "[Limits]\nTargets=%*s\n", n, "7777");
                said = read_text(&c, text, strlen(text));
                ck_assert_msg(c.targets == 7777 || (c.targets == 512 && strstr(said, "longer than")), "%d: %u, %s", n,
                                c.targets, said);
        }
}
END_TEST

/* The main file, then the drop-ins in the order of their names. */
START_TEST(test_drop_ins) {
        const char *path;
        Config c;

        config_defaults(&c);
        path = in_directory("main.conf");
        ck_assert_int_eq(config_load(&c, path), -ENOENT);
        ck_assert_int_eq(mkdir(in_directory("main.conf.d"), 0755), 0);
        write_file(in_directory("main.conf.d/20-b.conf"), "[Limits]\nTargets=20\nThreads=20\n", 31);
        write_file(in_directory("main.conf.d/10-a.conf"), "[Limits]\nTargets=10\nWaits=10000", 31);
        write_file(in_directory("main.conf.d/.hidden.conf"), "[Limits]\nTargets=30\n", 20);
        write_file(in_directory("main.conf.d/30-c.conf~"), "[Limits]\nTargets=40\n", 20);
        write_file(in_directory("main.conf.d/.conf"), "[Limits]\nTargets=50\n", 20);
        path = in_directory("main.conf");
        ck_assert_int_eq(config_load(&c, path), 0);
        ck_assert_uint_eq(c.targets, 20);
        ck_assert_uint_eq(c.threads, 20);
        ck_assert_uint_eq(c.waits, 10000);

        write_file(path, "[Limits]\nTargets=5\nResources=500\n", 33);
        config_defaults(&c);
        ck_assert_int_eq(config_load(&c, path), 0);
        ck_assert_uint_eq(c.targets, 20);
        ck_assert_uint_eq(c.resources, 500);
}
END_TEST

START_TEST(test_apply) {
        Config now, wanted;

        config_defaults(&now);
        wanted = now;
        wanted.targets = 7;
        wanted.connections = 8;
        wanted.recordings = 9;
        ck_assert(!config_restart_needed(&now, &wanted));
        wanted.threads++;
        ck_assert(config_restart_needed(&now, &wanted));
        config_apply(&now, &wanted);
        ck_assert_uint_eq(now.targets, 7);
        ck_assert_uint_eq(now.connections, 8);
        ck_assert_uint_eq(now.recordings, 9);
        ck_assert_uint_eq(now.threads, wanted.threads - 1); /* as the running one has it */
        ck_assert(config_restart_needed(&now, &wanted));
}
END_TEST

START_TEST(test_files) {
        Config before, c;

        config_defaults(&before);
        c = before;
        ck_assert_int_eq(config_read(&c, in_directory("missing")), -ENOENT);
        ck_assert_int_lt(config_read(&c, directory), 0);
        ck_assert_mem_eq(&c, &before, sizeof(c));
        if (geteuid() != 0) {
                write_file(in_directory("secret"), "", 0);
                ck_assert_int_eq(chmod(in_directory("secret"), 0), 0);
                ck_assert_int_eq(config_read(&c, in_directory("secret")), -EACCES);
        }
}
END_TEST

/* Whatever stands in the file, settings stay within their bounds and it is read to its end. */
START_TEST(test_random) {
        static const char *const pieces[] = { "[", "]", "Limits", "Targets", "Threads", "=", ":", "\n", "\n", "7",
                "99999999999", " ", ";", "#", "\t", "\r", "\\", "\xff", "\"",
                "[Limits]\nTargets=", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" };
        uint32_t state = 5;

        for (unsigned i = 0; i < 500; i++) {
                _cleanup_free_ char *said = NULL;
                char text[4096];
                size_t size = 0;
                Config c;

                while (size < 3000 && next_random(&state) % 200) {
                        const char *piece = pieces[next_random(&state) % ELEMENTSOF(pieces)];
                        size_t n = strlen(piece);

                        memcpy(text + size, piece, n);
                        size += n;
                        if (next_random(&state) % 100 == 0)
                                text[size++] = '\0';
                }
                said = read_text(&c, text, size);
                ck_assert_uint_ge(c.targets, 1);
                ck_assert_uint_le(c.targets, 100000);
                ck_assert_uint_ge(c.threads, 16);
                ck_assert_uint_le(c.threads, 1000000);
        }
}
END_TEST

int main(void) {
        Suite *suite = suite_create("config");
        TCase *tests = tcase_create("config");

        tcase_add_checked_fixture(tests, directory_make, directory_remove);
        tcase_set_timeout(tests, 30);
        tcase_add_test(tests, test_good);
        tcase_add_test(tests, test_bad_keys);
        tcase_add_test(tests, test_bad_values);
        tcase_add_test(tests, test_bad_lines);
        tcase_add_test(tests, test_long_lines);
        tcase_add_test(tests, test_no_half_numbers);
        tcase_add_test(tests, test_files);
        tcase_add_test(tests, test_drop_ins);
        tcase_add_test(tests, test_apply);
        /* Last: it uses up the lines that may be logged. */
        tcase_add_test(tests, test_random);
        suite_add_tcase(suite, tests);
        return run_suite(suite);
}
