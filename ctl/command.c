/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Two pipes hold the child and tell whether it could execute. */
#include "command.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* In the child; does not return. */
static void execute(char *const *argv, const Signals *signals, int go_fd, int failure_fd) __attribute__((noreturn));

static void execute(char *const *argv, const Signals *signals, int go_fd, int failure_fd) {
        char go;
        ssize_t n;
        int error;

        /* While it is held the signals stay blocked: prismctl decides what becomes of it. */
        do
                n = read(go_fd, &go, 1);
        while (n < 0 && errno == EINTR);
        if (n != 1)
                _exit(127);

        sigprocmask(SIG_SETMASK, &signals->before, NULL);
        execvp(argv[0], argv);

        error = errno;
        n = write(failure_fd, &error, sizeof(error));
        _exit(n == (ssize_t) sizeof(error) ? 127 : 126);
}

int command_hold(Command *c, char *const *argv, const Signals *signals) {
        _cleanup_close_ int go_read = -1, go_write = -1, failure_read = -1, failure_write = -1;
        int fds[2];
        pid_t pid;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        go_read = fds[0];
        go_write = fds[1];
        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        failure_read = fds[0];
        failure_write = fds[1];

        pid = fork();
        if (pid < 0)
                return -errno;
        if (pid == 0) {
                /* Its own copy would keep the pipe open when prismctl dies. */
                close(go_write);
                execute(argv, signals, go_read, failure_write);
        }

        c->pid = pid;
        c->go_fd = TAKE_FD(go_write);
        c->failure_fd = TAKE_FD(failure_read);
        return 0;
}

static void reap(Command *c) {
        while (waitpid(c->pid, &c->status, 0) < 0 && errno == EINTR)
                ;
        c->pid = 0;
}

int command_release(Command *c) {
        ssize_t n;
        int error;

        do
                n = write(c->go_fd, "", 1);
        while (n < 0 && errno == EINTR);
        close(TAKE_FD(c->go_fd));

        /* Ends with the end of file when the command executes, as the other end closes then. */
        do
                n = read(c->failure_fd, &error, sizeof(error));
        while (n < 0 && errno == EINTR);
        close(TAKE_FD(c->failure_fd));

        if (n != (ssize_t) sizeof(error))
                return 0;
        reap(c);
        return -error;
}

bool command_has_ended(Command *c) {
        int status;

        if (c->pid > 0 && waitpid(c->pid, &status, WNOHANG) == c->pid) {
                c->pid = 0;
                c->status = status;
        }
        return c->pid == 0;
}

int command_exit_code(const Command *c) {
        return WIFSIGNALED(c->status) ? 128 + WTERMSIG(c->status) : WEXITSTATUS(c->status);
}

void command_done(Command *c) {
        if (c->go_fd >= 0) {
                close(TAKE_FD(c->go_fd));
                if (c->pid > 0)
                        reap(c);
        }
        if (c->failure_fd >= 0)
                close(TAKE_FD(c->failure_fd));
}
