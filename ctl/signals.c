/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Signals by signalfd, and the clocks that waiting needs. */
#include "signals.h"

#include <poll.h>
#include <time.h>

int signals_catch(Signals *s, const int *list) {
        sigset_t set;
        int fd;

        sigemptyset(&set);
        for (; *list; list++)
                sigaddset(&set, *list);

        if (sigprocmask(SIG_BLOCK, &set, &s->before) < 0)
                return -errno;

        fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
        if (fd < 0) {
                int r = -errno;

                sigprocmask(SIG_SETMASK, &s->before, NULL);
                return r;
        }

        s->fd = fd;
        s->blocked = true;
        return 0;
}

void signals_release(Signals *s) {
        if (s->fd >= 0)
                close(TAKE_FD(s->fd));
        if (s->blocked)
                sigprocmask(SIG_SETMASK, &s->before, NULL);
        s->blocked = false;
}

int signals_read(Signals *s, struct signalfd_siginfo *ret) {
        ssize_t n = read(s->fd, ret, sizeof(*ret));

        if (n == (ssize_t) sizeof(*ret))
                return 1;
        return n < 0 && errno != EAGAIN && errno != EINTR ? -errno : 0;
}

int signals_wait(Signals *s, uint64_t timeout_ns, struct signalfd_siginfo *ret) {
        struct pollfd p = { .fd = s->fd, .events = POLLIN };
        struct timespec t = { .tv_sec = (time_t) (timeout_ns / NSEC_PER_SEC),
                .tv_nsec = (long) (timeout_ns % NSEC_PER_SEC) };

        if (ppoll(&p, 1, timeout_ns == UINT64_MAX ? NULL : &t, NULL) < 0 && errno != EINTR)
                return -errno;
        return signals_read(s, ret);
}

static int64_t now_ns(clockid_t clock) {
        struct timespec t;

        clock_gettime(clock, &t);
        return (int64_t) t.tv_sec * (int64_t) NSEC_PER_SEC + t.tv_nsec;
}

uint64_t now_monotonic_ns(void) {
        return (uint64_t) now_ns(CLOCK_MONOTONIC);
}

int64_t now_unix_ns(void) {
        return now_ns(CLOCK_REALTIME);
}
