/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* block DEVICE MODE COUNT BYTES [OTHERS]: a thread that does COUNT transfers of BYTES each, one after the other
 * and past the page cache where it can. Modes: read, write, buffered (write, then fsync). OTHERS: a child process,
 * which is not to be followed, reads OTHERS times as many at the same time. Says how long each transfer took, and
 * what /proc says of the process. */
#include "workload.h"

#include <sys/stat.h>

typedef struct Transfers {
        const char *device;
        bool direct, writes;
        size_t count, bytes;
        off_t start;
        pid_t tid;
        Tally tally;
        uint64_t sync_ns;
} Transfers;

static void transfer(Transfers *t) {
        char *buffer = NULL;
        int fd;

        fd = open(t->device, (t->writes ? O_WRONLY : O_RDONLY) | (t->direct ? O_DIRECT : 0) | O_CLOEXEC);
        CHECK(fd >= 0);
        CHECK_THREAD(posix_memalign((void **) &buffer, 4096, t->bytes));
        memset(buffer, 1, t->bytes);
        for (size_t i = 0; i < t->count; i++) {
                off_t at = t->start + (off_t) (i * t->bytes);
                uint64_t start_ns = now_ns();
                ssize_t n;

                n = t->writes ? pwrite(fd, buffer, t->bytes, at) : pread(fd, buffer, t->bytes, at);
                CHECK(n == (ssize_t) t->bytes);
                tally_add(&t->tally, now_ns() - start_ns);
        }
        if (!t->direct) {
                uint64_t start_ns = now_ns();

                CHECK(fsync(fd) == 0);
                t->sync_ns = now_ns() - start_ns;
        }
        /* Closing a device flushes it. */
        CHECK(close(fd) == 0);
        free(buffer);
}

/* What the kernel says that this process had read from and written to disks. */
static void disk_bytes(unsigned long long *ret_read, unsigned long long *ret_written) {
        char line[128];
        FILE *f = fopen("/proc/self/io", "re");

        CHECK(f);
        *ret_read = *ret_written = 0;
        while (fgets(line, sizeof(line), f))
                if (sscanf(line, "read_bytes: %llu", ret_read) != 1)
                        (void) sscanf(line, "write_bytes: %llu", ret_written);
        fclose(f);
}

static void *run_transfers(void *argument) {
        Transfers *t = argument;

        name_thread("transfers");
        t->tid = thread_id();
        transfer(t);
        return NULL;
}

int main(int argc, char *argv[]) {
        CHECK(argc >= 5);
        Transfers own = {
                .device = argv[1],
                .direct = strcmp(argv[2], "buffered") != 0,
                .writes = strcmp(argv[2], "read") != 0,
                .count = (size_t) atoi(argv[3]),
                .bytes = (size_t) atoi(argv[4]),
        };
        unsigned long long read_before, written_before, read_after, written_after;
        pid_t other = 0;
        Gate gate;
        int status;

        gate_init(&gate);
        if (argc > 5) {
                other = fork();
                CHECK(other >= 0);
                if (other == 0) {
                        Transfers more = own;

                        CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
                        name_thread("neighbour");
                        more.count = own.count * (size_t) atoi(argv[5]);
                        more.writes = false;
                        more.start = (off_t) (own.count * own.bytes);
                        gate_pass(&gate);
                        transfer(&more);
                        _exit(EXIT_SUCCESS);
                }
        }

        ready();
        disk_bytes(&read_before, &written_before);
        gate_open(&gate, 1);
        join_thread(start_thread(run_transfers, &own));
        disk_bytes(&read_after, &written_after);
        if (other > 0) {
                CHECK(waitpid(other, &status, 0) == other);
                CHECK(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS);
        }
        printf("{\"tid\":%d,\"other\":%d,\"sync_ns\":%llu,\"read_bytes\":%llu,\"write_bytes\":%llu,", own.tid, other,
                        (unsigned long long) own.sync_ns, read_after - read_before, written_after - written_before);
        print_tally(&own.tally);
        putchar('}');
        finish();
        return EXIT_SUCCESS;
}
