/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A 32-bit program without any library: a child that writes the time to a pipe every 10 ms, and its parent that waits for
 * it in read() and poll(), and sleeps, all through the 32-bit system calls. */
#define N_ROUNDS 40
#define ROUND_NS 10000000
#define CLOCK_BOOT 7

enum {
        SYS_EXIT = 1,
        SYS_FORK = 2,
        SYS_READ = 3,
        SYS_WRITE = 4,
        SYS_GETPID = 20,
        SYS_PIPE = 42,
        SYS_POLL = 168,
        SYS_NANOSLEEP = 162,
        SYS_CLOCK_GETTIME64 = 403
};

struct time64 {
        long long seconds, nanoseconds;
};

struct poll_entry {
        int fd;
        short events, revents;
};

static int call(int number, long a, long b, long c) {
        int result;

        __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory");
        return result;
}

static _Noreturn void leave(int code) {
        for (;;)
                call(SYS_EXIT, code, 0, 0);
}

static void check(int fine) {
        if (!fine)
                leave(1);
}

static long long now_ns(void) {
        struct time64 t;

        check(call(SYS_CLOCK_GETTIME64, CLOCK_BOOT, (long) &t, 0) == 0);
        return t.seconds * 1000000000LL + t.nanoseconds;
}

static void sleep_round(void) {
        long t[2] = { 0, ROUND_NS };

        check(call(SYS_NANOSLEEP, (long) t, 0, 0) == 0);
}

static void print(const char *text) {
        long n = 0;

        while (text[n])
                n++;
        check(call(SYS_WRITE, 1, (long) text, n) == n);
}

/* By subtraction: 64-bit division would need a library. */
static void print_number(long long value) {
        static const long long powers[] = { 1000000000000LL, 100000000000LL, 10000000000LL, 1000000000LL, 100000000LL,
                10000000LL, 1000000LL, 100000LL, 10000LL, 1000LL, 100LL, 10LL, 1LL };
        char text[sizeof(powers) / sizeof(powers[0]) + 1];
        unsigned n = 0;

        for (unsigned i = 0; i < sizeof(powers) / sizeof(powers[0]); i++) {
                char digit = '0';

                for (; value >= powers[i]; value -= powers[i])
                        digit++;
                if (n > 0 || digit != '0' || powers[i] == 1)
                        text[n++] = digit;
        }
        text[n] = '\0';
        print(text);
}

static void read_line(void) {
        char c = 0;

        while (c != '\n')
                check(call(SYS_READ, 0, (long) &c, 1) == 1);
}

static void print_member(const char *name, long long total_ns) {
        print(name);
        print(":{\"total_ns\":");
        print_number(total_ns);
        print(",\"count\":");
        print_number(N_ROUNDS);
        print("}");
}

static void tell_time(int fd) {
        for (unsigned i = 0; i < 2 * N_ROUNDS; i++) {
                sleep_round();
                long long ns = now_ns();
                check(call(SYS_WRITE, fd, (long) &ns, sizeof(ns)) == sizeof(ns));
        }
        leave(0);
}

static long long hear_time(int fd, int polled) {
        struct poll_entry entry = { .fd = fd, .events = 1 };
        long long start_ns = now_ns(), woken_ns;

        if (polled)
                check(call(SYS_POLL, (long) &entry, 1, -1) == 1);
        check(call(SYS_READ, fd, (long) &woken_ns, sizeof(woken_ns)) == sizeof(woken_ns));
        check(woken_ns > start_ns);
        return woken_ns - start_ns;
}

_Noreturn void _start(void);
_Noreturn void _start(void) {
        long long reads_ns = 0, polls_ns = 0, sleeps_ns = 0;
        int fds[2], pid = call(SYS_GETPID, 0, 0, 0);

        check(call(SYS_PIPE, (long) fds, 0, 0) == 0);
        print("ready ");
        print_number(pid);
        print("\n");
        read_line();
        for (unsigned i = 0; i < N_ROUNDS; i++) {
                long long start_ns = now_ns();
                sleep_round();
                sleeps_ns += now_ns() - start_ns;
        }
        int child = call(SYS_FORK, 0, 0, 0);
        check(child >= 0);
        if (child == 0)
                tell_time(fds[1]);
        for (unsigned i = 0; i < N_ROUNDS; i++)
                reads_ns += hear_time(fds[0], 0);
        for (unsigned i = 0; i < N_ROUNDS; i++)
                polls_ns += hear_time(fds[0], 1);
        print("{\"tid\":");
        print_number(pid);
        print(",\"child\":");
        print_number(child);
        print(",");
        print_member("\"read\"", reads_ns);
        print(",");
        print_member("\"poll\"", polls_ns);
        print(",");
        print_member("\"sleep\"", sleeps_ns);
        print("}\n");
        read_line();
        leave(0);
}
