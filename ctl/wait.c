/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* prismctl wait: until a recording, a process or a target has ended. */
#include <poll.h>
#include <sys/syscall.h>
#include <time.h>

#include "database.h"
#include "objects.h"
#include "signals.h"
#include "store/basic/parse.h"

#define WAIT_POLL_NS (200 * NSEC_PER_MSEC)

typedef struct Wait {
        const Ctl *ctl;
        const char *name;
        uint64_t deadline_ns; /* CLOCK_MONOTONIC; UINT64_MAX: none */
} Wait;

/* Sleeps until it is worth looking again. false: the time is over. */
static bool sleep_a_little(const Wait *w) {
        uint64_t now_ns = now_monotonic_ns(), length_ns;
        struct timespec t;

        if (now_ns >= w->deadline_ns)
                return false;
        length_ns = MIN(WAIT_POLL_NS, w->deadline_ns - now_ns);
        t = (struct timespec){ .tv_sec = 0, .tv_nsec = (long) length_ns };
        nanosleep(&t, NULL);
        return true;
}

static int fail_timeout(const Wait *w, const char *what) {
        return ctl_fail(CTL_FAILED, "%s %s has not ended within the timeout", what, w->name);
}

/* Without prismd only a recording that has ended can be spoken of. */
static int wait_recording_in_database(const Wait *w, const char *why_no_client) {
        _cleanup_(store_closep) Store *store = NULL;
        StoreRecording *rows;
        bool found = false, running = false;
        size_t n;
        int r;

        r = database_open(w->ctl, &store, NULL);
        if (r >= 0)
                r = store_recordings(store, &rows, &n, NULL);
        if (r < 0)
                return ctl_fail(CTL_FAILED, "%s", why_no_client);

        for (size_t i = 0; i < n; i++) {
                if (streq(rows[i].name, w->name)) {
                        found = true;
                        running = streq(rows[i].state, "running");
                }
                store_recording_done(rows + i);
        }
        free(rows);

        if (!found)
                return ctl_fail(CTL_NOTHING, "there is no recording %s", w->name);
        return running ? ctl_fail(CTL_FAILED, "%s", why_no_client) : CTL_DONE;
}

static int wait_recording(const Wait *w) {
        _cleanup_(client_closep) Client *c = NULL;
        _cleanup_(recordings_done) Recordings recordings = {};
        _cleanup_free_ char *error = NULL;
        const Recording *o;
        int r;

        r = client_open(w->ctl, &c, &error);
        if (r == -ENOTCONN)
                return wait_recording_in_database(w, error);
        if (r >= 0)
                r = recordings_read(c, &recordings, &error);
        if (r < 0)
                return ctl_fail_with(CTL_FAILED, r, error);

        o = recordings_find(&recordings, w->name);
        if (!o)
                return ctl_fail(CTL_NOTHING, "there is no recording %s", w->name);

        for (;;) {
                _cleanup_free_ char *state = NULL, *sentence = NULL;

                r = client_get_text(c, o->path, PRISM_INTERFACE_RECORDING, "State", &state, &sentence);
                if (r == -ENOENT) /* deleted, which needs that it has ended */
                        return CTL_DONE;
                if (r < 0)
                        return ctl_fail_with(CTL_FAILED, r, sentence);
                if (!streq(state, "running"))
                        return CTL_DONE;
                if (!sleep_a_little(w))
                        return fail_timeout(w, "the recording");
        }
}

static int wait_target(const Wait *w) {
        _cleanup_(client_closep) Client *c = NULL;
        _cleanup_free_ char *error = NULL;
        bool found = false;
        int r;

        r = client_open(w->ctl, &c, &error);
        if (r < 0)
                return ctl_fail_with(CTL_FAILED, r, error);

        for (;;) {
                _cleanup_(targets_done) Targets targets = {};
                const Target *t;

                r = targets_read(c, &targets, &error);
                if (r < 0)
                        return ctl_fail_with(CTL_FAILED, r, error);
                t = targets_find(&targets, w->name);
                if (!t && !found)
                        return ctl_fail(CTL_NOTHING, "%s is not a target; prismctl targets lists them", w->name);
                /* A process does not come back; a unit, cgroup or command may, so these are there until they are
                 * untracked. */
                if (!t || (streq(t->kind, "process") && t->n_processes == 0))
                        return CTL_DONE;
                found = true;
                if (!sleep_a_little(w))
                        return fail_timeout(w, "the target");
        }
}

static int wait_process(const Wait *w) {
        _cleanup_close_ int fd = -1;
        uint64_t pid;

        if (strchr(w->name, ':'))
                return ctl_fail(CTL_USAGE,
                                "only processes of this machine can be waited for: say the process id alone");
        if (parse_u64(w->name, INT32_MAX, &pid) < 0 || pid == 0)
                return ctl_fail(CTL_USAGE, "\"%s\" is not a process id", w->name);

        fd = (int) syscall(SYS_pidfd_open, (pid_t) pid, 0);
        if (fd < 0) {
                if (errno == ESRCH || errno == EINVAL) /* EINVAL: a thread, which is no process */
                        return ctl_fail(CTL_NOTHING, "there is no process %s", w->name);
                return ctl_fail(CTL_FAILED, "cannot wait for the process %s: %s", w->name, strerror(errno));
        }

        for (;;) {
                struct pollfd p = { .fd = fd, .events = POLLIN };
                uint64_t now_ns = now_monotonic_ns(), left_ns = w->deadline_ns > now_ns ? w->deadline_ns - now_ns : 0;
                struct timespec t = { .tv_sec = (time_t) (left_ns / NSEC_PER_SEC),
                        .tv_nsec = (long) (left_ns % NSEC_PER_SEC) };
                int r = ppoll(&p, 1, w->deadline_ns == UINT64_MAX ? NULL : &t, NULL);

                if (r > 0)
                        return CTL_DONE;
                if (r == 0)
                        return fail_timeout(w, "the process");
                if (errno != EINTR)
                        return ctl_fail(CTL_FAILED, "cannot wait for the process %s: %s", w->name, strerror(errno));
        }
}

int verb_wait(Ctl *ctl, int argc, char **argv) {
        enum {
                OPTION_TIMEOUT = 1,
        };
        static const Option options[] = { { "timeout", OPTION_TIMEOUT, true } };
        _cleanup_(arguments_done) Arguments a = {};
        Wait w = { .ctl = ctl, .deadline_ns = UINT64_MAX };
        const char *what;
        uint64_t timeout_ns;
        int r;

        if (arguments_init(&a, argc, argv, false) < 0)
                return ctl_out_of_memory();
        while ((r = ctl_next_option(ctl, &a, options, ELEMENTSOF(options))) > 0) {
                if (parse_duration(a.value, &timeout_ns) < 0)
                        return ctl_fail(CTL_USAGE, "--timeout takes a length of time such as 30s or 5m, not \"%s\"",
                                        a.value);
                w.deadline_ns = now_monotonic_ns() + timeout_ns;
        }
        if (r < 0)
                return ctl_option_status(r);
        if (a.n_operands != 2)
                return ctl_fail(CTL_USAGE, "say what to wait for: recording NAME, process PID or target TARGET");

        what = a.operands[0];
        w.name = a.operands[1];
        if (streq(what, "recording"))
                return wait_recording(&w);
        if (streq(what, "process"))
                return wait_process(&w);
        if (streq(what, "target"))
                return wait_target(&w);
        return ctl_fail(CTL_USAGE, "wait does not know what \"%s\" is: say recording, process or target", what);
}
