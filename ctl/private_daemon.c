/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds, starts, watches and ends a prismd of our own. */
#include "private_daemon.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "client.h"

#define START_TIMEOUT_NS (10 * NSEC_PER_SEC)
#define STOP_TIMEOUT_NS (10 * NSEC_PER_SEC)
#define POLL_NS (20 * NSEC_PER_MSEC)

static bool is_executable(const char *path) {
        struct stat st;

        return stat(path, &st) >= 0 && S_ISREG(st.st_mode) && access(path, X_OK) >= 0;
}

/* PRISM_PRISMD, or beside prismctl (where it is installed or was built), or by PATH. */
static int find_prismd(char **ret) {
        static const char *const beside[] = { "prismd", "../daemon/prismd", "../sbin/prismd" };
        const char *named = getenv("PRISM_PRISMD");
        char self[PATH_MAX], *path, *slash;
        ssize_t n;

        if (!isempty(named)) {
                if (!is_executable(named))
                        return -ENOENT;
                path = strdup(named);
                if (!path)
                        return -ENOMEM;
                *ret = path;
                return 0;
        }

        n = readlink("/proc/self/exe", self, sizeof(self) - 1);
        if (n > 0) {
                self[n] = '\0';
                slash = strrchr(self, '/');
                for (size_t i = 0; slash && i < ELEMENTSOF(beside); i++) {
                        if (asprintf(&path, "%.*s/%s", (int) (slash - self), self, beside[i]) < 0)
                                return -ENOMEM;
                        if (is_executable(path)) {
                                *ret = path;
                                return 0;
                        }
                        free(path);
                }
        }

        for (const char *entry = getenv("PATH"); !isempty(entry);) {
                const char *end = strchrnul(entry, ':');

                if (entry[0] == '/') {
                        if (asprintf(&path, "%.*s/prismd", (int) (end - entry), entry) < 0)
                                return -ENOMEM;
                        if (is_executable(path)) {
                                *ret = path;
                                return 0;
                        }
                        free(path);
                }
                entry = *end ? end + 1 : NULL;
        }
        return -ENOENT;
}

/* Whether a socket's address can be made of it as it is, and is short enough for one. */
static bool is_good_parent(const char *directory) {
        return !isempty(directory) && directory[0] == '/' && strlen(directory) < 64 &&
                        directory[strspn(directory,
                                        "/._-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")] == '\0';
}

static int make_directory(char **ret) {
        const char *parents[] = { getenv("XDG_RUNTIME_DIR"), "/run", "/tmp" };
        int r = -ENOENT;

        for (size_t i = 0; i < ELEMENTSOF(parents); i++) {
                char *path;

                if (!is_good_parent(parents[i]))
                        continue;
                if (asprintf(&path, "%s/prism-run-XXXXXX", parents[i]) < 0)
                        return -ENOMEM;
                if (mkdtemp(path)) {
                        *ret = path;
                        return 0;
                }
                r = -errno;
                free(path);
        }
        return r;
}

/* The directory is flat: a socket, a lock, the database and its companions, the log. */
static void remove_directory(const char *path) {
        DIR *d = opendir(path);
        struct dirent *e;

        while (d && (e = readdir(d)))
                if (!streq(e->d_name, ".") && !streq(e->d_name, ".."))
                        unlinkat(dirfd(d), e->d_name, 0);
        if (d)
                closedir(d);
        rmdir(path);
}

/* In the child; does not return. */
static void execute(const char *prismd, const PrivateDaemon *d, const Signals *signals, pid_t parent)
                __attribute__((noreturn));

static void execute(const char *prismd, const PrivateDaemon *d, const Signals *signals, pid_t parent) {
        static const char *const environment[] = { "PRISM_ADDRESS", "PRISM_STATE_DIR", "NOTIFY_SOCKET", "WATCHDOG_USEC",
                "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID" };
        int null, log;

        sigprocmask(SIG_SETMASK, &signals->before, NULL);
        /* Away from the terminal's Ctrl-C, which is for the command: prismd is needed until the end. But not without
         * us. */
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent)
                _exit(1);

        null = open("/dev/null", O_RDWR | O_CLOEXEC);
        log = chdir(d->directory) < 0 ? -1 : open("log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        if (null < 0 || log < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
                        dup2(log, STDERR_FILENO) < 0)
                _exit(1);
        for (size_t i = 0; i < ELEMENTSOF(environment); i++)
                unsetenv(environment[i]);

        execl(prismd, prismd, "--address", d->address, "--state-dir", d->directory, (char *) NULL);
        dprintf(STDERR_FILENO, "cannot execute %s: %s\n", prismd, strerror(errno));
        _exit(1);
}

/* The last line that prismd wrote, which says why it ended. NULL if there is none. */
static char *read_last_line(const PrivateDaemon *d) {
        _cleanup_free_ char *path = NULL, *last = NULL;
        _cleanup_fclose_ FILE *f = NULL;
        char line[1024];

        if (asprintf(&path, "%s/log", d->directory) < 0) {
                path = NULL;
                return NULL;
        }
        f = fopen(path, "re");
        if (!f)
                return NULL;
        while (fgets(line, sizeof(line), f)) {
                line[strcspn(line, "\n")] = '\0';
                if (line[0] == '\0')
                        continue;
                free(last);
                last = strdup(line);
        }
        return TAKE_PTR(last);
}

static bool has_ended(PrivateDaemon *d) {
        if (d->pid > 0 && waitpid(d->pid, NULL, WNOHANG) == 0)
                return false;
        d->pid = 0;
        return true;
}

static bool answers(const PrivateDaemon *d) {
        _cleanup_(client_closep) Client *c = NULL;
        _cleanup_free_ char *version = NULL;

        return client_open_private(d->address, &c) >= 0 &&
                        client_get_text(c, PRISM_PATH, PRISM_INTERFACE_MANAGER, "Version", &version, NULL) >= 0;
}

static int wait_until_it_answers(PrivateDaemon *d, Signals *signals, char **ret_error) {
        uint64_t deadline_ns = now_monotonic_ns() + START_TIMEOUT_NS;

        while (!answers(d)) {
                struct signalfd_siginfo signal;

                if (has_ended(d)) {
                        _cleanup_free_ char *line = read_last_line(d);

                        return asprintf(ret_error, "prismd could not start: %s", line ? line : "it said nothing") < 0
                                        ? -ENOMEM
                                        : -EIO;
                }
                if (now_monotonic_ns() > deadline_ns)
                        return asprintf(ret_error, "prismd was started but does not answer at %s", d->address) < 0
                                        ? -ENOMEM
                                        : -ETIMEDOUT;
                if (signals_wait(signals, POLL_NS, &signal) > 0 && signal.ssi_signo != SIGCHLD)
                        return asprintf(ret_error, "interrupted before the command was started") < 0 ? -ENOMEM : -EINTR;
        }
        return 0;
}

int private_daemon_start(PrivateDaemon *d, Signals *signals, char **ret_error) {
        _cleanup_free_ char *prismd = NULL;
        pid_t parent = getpid(), pid;
        int r;

        r = find_prismd(&prismd);
        if (r == -ENOENT)
                return asprintf(ret_error,
                                       "no prismd runs, and none was found to start: install it, or say where it is in "
                                       "PRISM_PRISMD") < 0
                                ? -ENOMEM
                                : r;
        if (r < 0)
                return r;

        r = make_directory(&d->directory);
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return asprintf(ret_error, "cannot make a directory for prismd in /run or /tmp: %s", strerror(-r)) < 0
                                ? -ENOMEM
                                : r;

        if (asprintf(&d->address, "unix:path=%s/bus", d->directory) < 0) {
                d->address = NULL;
                return -ENOMEM;
        }
        if (asprintf(&d->database, "%s/%s", d->directory, PRISM_DATABASE_FILE) < 0) {
                d->database = NULL;
                return -ENOMEM;
        }

        pid = fork();
        if (pid < 0) {
                r = -errno;
                return asprintf(ret_error, "cannot start prismd: %s", strerror(-r)) < 0 ? -ENOMEM : r;
        }
        if (pid == 0)
                execute(prismd, d, signals, parent);
        d->pid = pid;

        return wait_until_it_answers(d, signals, ret_error);
}

int private_daemon_stop(PrivateDaemon *d) {
        uint64_t deadline_ns = now_monotonic_ns() + STOP_TIMEOUT_NS;
        bool killed = false;
        int status = 0;

        if (d->pid <= 0)
                return -EIO;

        kill(d->pid, SIGTERM);
        while (waitpid(d->pid, &status, WNOHANG) == 0) {
                if (!killed && now_monotonic_ns() > deadline_ns) {
                        kill(d->pid, SIGKILL);
                        killed = true;
                }
                usleep(POLL_NS / NSEC_PER_USEC);
        }
        d->pid = 0;
        return !killed && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EIO;
}

void private_daemon_done(PrivateDaemon *d) {
        if (d->pid > 0)
                private_daemon_stop(d);
        if (d->directory)
                remove_directory(d->directory);
        free(d->directory);
        free(d->address);
        free(d->database);
        *d = (PrivateDaemon){};
}
