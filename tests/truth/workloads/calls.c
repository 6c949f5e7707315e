/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Known numbers of system calls on known files. "exact": threads that make so many of each kind, with so many bytes, and
 * so many that fail; says what each made. "steady SECONDS": one that writes to and reads from a pipe at an even pace. */
#include "address.h"
#include "pair.h"

#include <dirent.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

#define N_EXPECTED 16
#define STEADY_NS MSEC
#define STEADY_BYTES 64

/* What one thread did with one file by one kind of call. The file is known by its inode, or by its path. */
typedef struct Expected {
        const char *kind, *op;
        ino_t inode;
        const char *path;
        unsigned count, errors;
        uint64_t bytes;
} Expected;

typedef struct Caller {
        const char *name;
        void (*set_up)(struct Caller *);
        void (*play)(struct Caller *);
        Gate *gate;
        int fds[4];
        const char *paths[2];
        pid_t tid;
        Expected expected[N_EXPECTED];
        unsigned n_expected;
} Caller;

static Expected *expect(Caller *c, const char *kind, const char *op, int fd, const char *path) {
        CHECK(c->n_expected < N_EXPECTED);
        Expected *e = &c->expected[c->n_expected++];

        *e = (Expected){ .kind = kind, .op = op, .inode = fd >= 0 ? inode_of(fd) : 0, .path = path };
        return e;
}

static void count(Expected *e, ssize_t n) {
        e->count++;
        if (n > 0)
                e->bytes += (uint64_t) n;
}

/* Being told to try again later is no failure. */
static void count_again(Expected *e, ssize_t n) {
        CHECK(n < 0 && errno == EAGAIN);
        e->count++;
}

static void count_error(Expected *e, ssize_t n, int error) {
        CHECK(n < 0 && errno == error);
        e->count++;
        e->errors++;
}

static void set_up_pipe(Caller *c) {
        CHECK(pipe2(c->fds, O_CLOEXEC | O_NONBLOCK) == 0);
}

static void play_pipe(Caller *c) {
        Expected *reads = expect(c, "pipe", "read", c->fds[0], NULL);
        Expected *writes = expect(c, "pipe", "write", c->fds[1], NULL);
        char data[512] = { 0 };

        for (unsigned i = 0; i < 500; i++) {
                count(writes, write(c->fds[1], data, 100));
                count(reads, read(c->fds[0], data, sizeof(data)));
        }
        for (unsigned i = 0; i < 50; i++)
                count_again(reads, read(c->fds[0], data, sizeof(data)));
        CHECK(reads->bytes == 50000 && writes->bytes == 50000);
}

static void set_up_unix(Caller *c) {
        CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, c->fds) == 0);
}

static void play_unix(Caller *c) {
        Expected *sends = expect(c, "unix", "send", c->fds[0], NULL);
        Expected *receives = expect(c, "unix", "receive", c->fds[1], NULL);
        char data[512] = { 0 };

        for (unsigned i = 0; i < 300; i++) {
                count(sends, i % 2 ? write(c->fds[0], data, 200) : send(c->fds[0], data, 200, 0));
                count(receives, i % 2 ? read(c->fds[1], data, sizeof(data)) : recv(c->fds[1], data, sizeof(data), 0));
        }
        for (unsigned i = 0; i < 20; i++)
                count_again(receives, recv(c->fds[1], data, sizeof(data), MSG_DONTWAIT));
        CHECK(sends->bytes == 60000 && receives->bytes == 60000);
        CHECK(shutdown(c->fds[0], SHUT_WR) == 0);
        for (unsigned i = 0; i < 10; i++)
                count_error(sends, send(c->fds[0], data, 200, MSG_NOSIGNAL), EPIPE);
}

static void set_up_tcp(Caller *c) {
        Address a = loopback(AF_INET);

        c->fds[2] = bound_socket(SOCK_STREAM, &a);
        CHECK(listen(c->fds[2], 1) == 0);
        c->fds[0] = connected_socket(SOCK_STREAM, &a);
        c->fds[1] = accepted_socket(c->fds[2]);
}

static void play_tcp(Caller *c) {
        Expected *sends = expect(c, "inet", "send", c->fds[0], NULL);
        Expected *receives = expect(c, "inet", "receive", c->fds[1], NULL);
        char data[512] = { 0 };

        for (unsigned i = 0; i < 200; i++) {
                struct iovec part = { data, 150 };
                struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

                count(sends, i % 2 ? sendmsg(c->fds[0], &message, 0) : writev(c->fds[0], &part, 1));
                count(receives, i % 2 ? recvmsg(c->fds[1], &message, MSG_WAITALL) : readv(c->fds[1], &part, 1));
        }
        CHECK(sends->bytes == 30000 && receives->bytes == 30000);
}

static void set_up_file(Caller *c) {
        c->paths[0] = full_path("contents");
        c->fds[0] = open(c->paths[0], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        c->fds[1] = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        CHECK(c->fds[0] >= 0 && c->fds[1] >= 0);
}

static void play_file(Caller *c) {
        int fd = c->fds[0];
        Expected *writes = expect(c, "file", "write", fd, c->paths[0]),
                 *reads = expect(c, "file", "read", fd, c->paths[0]);
        Expected *cuts = expect(c, "file", "truncate", fd, c->paths[0]),
                 *syncs = expect(c, "file", "fsync", fd, c->paths[0]);
        Expected *of_directory = expect(c, "file", "read", c->fds[1], NULL);
        char data[1024] = { 0 };
        struct iovec parts[] = { { data, 100 }, { data, 60 } };

        for (unsigned i = 0; i < 100; i++)
                count(writes, write(fd, data, 1000));
        for (unsigned i = 0; i < 50; i++)
                count(writes, pwrite(fd, data, 500, i * 500));
        for (unsigned i = 0; i < 20; i++) {
                count(writes, writev(fd, parts, 2));
                count(writes, pwritev(fd, parts, 2, i * 10));
        }
        for (unsigned i = 0; i < 80; i++)
                count(reads, pread(fd, data, 700, i * 700));
        CHECK(lseek(fd, 0, SEEK_SET) == 0);
        for (unsigned i = 0; i < 40; i++) {
                count(reads, read(fd, data, 300));
                count(reads, readv(fd, parts, 2));
                count(reads, preadv(fd, parts, 2, i));
        }
        CHECK(writes->bytes == 100000 + 25000 + 40 * 160 && reads->bytes == 56000 + 12000 + 80 * 160);
        for (unsigned i = 0; i < 7; i++) {
                CHECK(ftruncate(fd, 50000 - i) == 0);
                count(cuts, 0);
        }
        for (unsigned i = 0; i < 3; i++) {
                CHECK(fsync(fd) == 0);
                count(syncs, 0);
        }
        for (unsigned i = 0; i < 9; i++)
                count_error(of_directory, read(c->fds[1], data, sizeof(data)), EISDIR);
}

static void set_up_names(Caller *c) {
        c->paths[0] = full_path("opened");
        c->paths[1] = full_path("absent");
        int fd = open(c->paths[0], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        CHECK(fd >= 0);
        close(fd);
        c->fds[0] = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        CHECK(c->fds[0] >= 0);
}

static void play_names(Caller *c) {
        Expected *opens = expect(c, "file", "open", -1, c->paths[0]),
                 *failures = expect(c, "file", "open", -1, "open"); /* what is not there is no object */
        Expected *cuts = expect(c, "file", "truncate", -1, c->paths[0]);
        Expected *renames = expect(c, "file", "rename", -1, c->paths[0]);
        Expected *back = expect(c, "file", "rename", -1, c->paths[1]);
        Expected *lists = expect(c, "file", "getdents", c->fds[0], NULL);
        char entries[4096];

        for (unsigned i = 0; i < 60; i++) {
                int fd = open(c->paths[0], O_RDONLY | O_CLOEXEC);
                CHECK(fd >= 0);
                close(fd);
                count(opens, 0);
        }
        for (unsigned i = 0; i < 15; i++)
                count_error(failures, open(c->paths[1], O_RDONLY | O_CLOEXEC), ENOENT);
        for (unsigned i = 0; i < 10; i++) {
                CHECK(truncate(c->paths[0], 10 + i) == 0);
                count(cuts, 0);
        }
        for (unsigned i = 0; i < 20; i++) {
                CHECK(rename(c->paths[0], c->paths[1]) == 0);
                count(renames, 0);
                CHECK(rename(c->paths[1], c->paths[0]) == 0);
                count(back, 0);
        }
        for (unsigned i = 0; i < 12; i++) {
                CHECK(lseek(c->fds[0], 0, SEEK_SET) == 0);
                CHECK(syscall(SYS_getdents64, c->fds[0], entries, sizeof(entries)) > 0);
                count(lists, 0);
        }
}

static void set_up_copies(Caller *c) {
        char block[4096] = { 1 };

        c->paths[0] = full_path("source");
        c->paths[1] = full_path("copy");
        c->fds[0] = open(c->paths[0], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        c->fds[1] = open(c->paths[1], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        CHECK(c->fds[0] >= 0 && c->fds[1] >= 0 && pipe2(c->fds + 2, O_CLOEXEC) == 0);
        for (unsigned i = 0; i < 16; i++)
                CHECK(write(c->fds[0], block, sizeof(block)) == sizeof(block));
}

/* What a call with two files is about: where sendfile() writes to, the pipe of a splice(), where copy_file_range() reads. */
static void play_copies(Caller *c) {
        Expected *sends = expect(c, "file", "sendfile", c->fds[1], c->paths[1]);
        Expected *splices = expect(c, "pipe", "splice", c->fds[2], NULL);
        Expected *copies = expect(c, "file", "copy_file_range", c->fds[0], c->paths[0]);
        char block[4096];

        for (unsigned i = 0; i < 10; i++) {
                off_t from = i * 100, to = i * 1000;

                count(sends, sendfile(c->fds[1], c->fds[0], &from, 4096));
                from = i * 50;
                count(splices, splice(c->fds[0], &from, c->fds[3], NULL, 2000, 0));
                CHECK(read(c->fds[2], block, sizeof(block)) == 2000);
                from = i * 4096;
                count(copies, copy_file_range(c->fds[0], &from, c->fds[1], &to, 1000, 0));
        }
        CHECK(sends->bytes == 40960 && splices->bytes == 20000 && copies->bytes == 10000);
}

static Caller callers[] = {
        { .name = "on-pipe", .set_up = set_up_pipe, .play = play_pipe },
        { .name = "on-unix", .set_up = set_up_unix, .play = play_unix },
        { .name = "on-tcp", .set_up = set_up_tcp, .play = play_tcp },
        { .name = "on-file", .set_up = set_up_file, .play = play_file },
        { .name = "on-names", .set_up = set_up_names, .play = play_names },
        { .name = "on-two-files", .set_up = set_up_copies, .play = play_copies },
};

static void *run_caller(void *argument) {
        Caller *c = argument;

        name_thread(c->name);
        c->tid = thread_id();
        gate_pass(c->gate);
        c->play(c);
        return NULL;
}

static void print_expected(const Expected *e) {
        printf("{\"kind\":\"%s\",\"op\":\"%s\",\"inode\":%llu,\"path\":\"%s\",\"count\":%u,\"errors\":%u,\"bytes\":%"
               "llu}",
                        e->kind, e->op, (unsigned long long) e->inode, e->path ? e->path : "", e->count, e->errors,
                        (unsigned long long) e->bytes);
}

static void play_exact(void) {
        pthread_t threads[ELEMENTSOF(callers)];
        Gate gate;

        gate_init(&gate);
        for (size_t i = 0; i < ELEMENTSOF(callers); i++) {
                callers[i].gate = &gate;
                callers[i].set_up(&callers[i]);
                threads[i] = start_thread(run_caller, &callers[i]);
        }
        ready();
        gate_open(&gate, ELEMENTSOF(callers));
        for (size_t i = 0; i < ELEMENTSOF(callers); i++) {
                const Caller *c = &callers[i];

                join_thread(threads[i]);
                printf("%c\"%s\":{\"tid\":%d,\"calls\":[", i == 0 ? '{' : ',', c->name, c->tid);
                for (unsigned j = 0; j < c->n_expected; j++) {
                        if (j > 0)
                                putchar(',');
                        print_expected(&c->expected[j]);
                }
                printf("]}");
        }
        putchar('}');
}

typedef struct Steady {
        Gate gate;
        int fds[2];
        uint64_t length_ns, elapsed_ns;
        pid_t tid;
        unsigned count;
} Steady;

static void *run_steady(void *argument) {
        Steady *s = argument;
        char data[STEADY_BYTES] = { 0 };

        name_thread("steady");
        s->tid = thread_id();
        gate_pass(&s->gate);
        uint64_t start_ns = now_ns();
        while (now_ns() < start_ns + s->length_ns) {
                CHECK(write(s->fds[1], data, sizeof(data)) == sizeof(data));
                CHECK(read(s->fds[0], data, sizeof(data)) == sizeof(data));
                s->count++;
                sleep_ns(STEADY_NS);
        }
        s->elapsed_ns = now_ns() - start_ns;
        return NULL;
}

static void play_steady(unsigned seconds) {
        Steady s = { .length_ns = seconds * SEC };

        gate_init(&s.gate);
        CHECK(pipe2(s.fds, O_CLOEXEC) == 0);
        pthread_t thread = start_thread(run_steady, &s);
        ready();
        gate_open(&s.gate, 1);
        join_thread(thread);
        printf("{\"tid\":%d,\"inode\":%llu,\"count\":%u,\"bytes\":%u,\"elapsed_ns\":%llu}", s.tid,
                        (unsigned long long) inode_of(s.fds[0]), s.count, s.count * STEADY_BYTES,
                        (unsigned long long) s.elapsed_ns);
}

int main(int argc, char *argv[]) {
        CHECK(argc >= 2);
        if (argc == 3)
                play_steady((unsigned) atoi(argv[2]));
        else
                play_exact();
        finish();
        return EXIT_SUCCESS;
}
