/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* prismctl run: start a command tracked, record it, report. The command's stdout stays its own; all of prismctl goes to
 * stderr. */
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <time.h>

#include "command.h"
#include "database.h"
#include "json.h"
#include "private_daemon.h"
#include "progress.h"
#include "record.h"
#include "report.h"
#include "store/basic/text.h"
#include "store/ranges.h"

#define EXIT_NOT_FOUND 127
#define EXIT_NOT_EXECUTABLE 126
/* Names that the clock gives twice in a second get a number. */
#define NAME_TRIES 20

DEFINE_CLEANUP(sqlite3_stmt *, sqlite3_finalize);

typedef struct Run {
        Ctl *ctl;
        char **command; /* ends with NULL */
        const char *name, *output, *follow, *calls;

        PrivateDaemon daemon;
        Client *client;
        Signals signals;
        Command child;
        bool output_made; /* by us, and empty so far */
        char *recording_name;
        char *target_path, *target_name, *recording_path;
} Run;

static void run_done(Run *r) {
        command_done(&r->child);
        client_close(r->client);
        private_daemon_done(&r->daemon);
        if (r->output_made)
                unlink(r->output);
        signals_release(&r->signals);
        free(r->recording_name);
        free(r->target_path);
        free(r->target_name);
        free(r->recording_path);
}

/* The running prismd, or one of our own. An exit code. */
static int find_daemon(Run *run) {
        _cleanup_free_ char *error = NULL;
        int r;

        r = client_open(run->ctl, &run->client, &error);
        if (r >= 0) {
                if (run->output)
                        return ctl_fail(CTL_USAGE,
                                        "--output keeps the database of a prismd started for the command only, but a "
                                        "prismd runs:"
                                        " leave it out, the recording stays in that one's database");
                return CTL_DONE;
        }
        /* Only where nobody listens, and unless the user said where somebody should. */
        if (r != -ENOTCONN || run->ctl->address)
                return ctl_fail_with(CTL_FAILED, r, error);

        if (run->output) {
                int fd = open(run->output, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);

                if (fd < 0)
                        return ctl_fail(CTL_FAILED, "cannot make %s: %s", run->output, strerror(errno));
                close(fd);
                run->output_made = true;
        }

        free(TAKE_PTR(error));
        r = private_daemon_start(&run->daemon, &run->signals, &error);
        if (r >= 0)
                r = client_open_private(run->daemon.address, &run->client);
        return r < 0 ? ctl_fail_with(CTL_FAILED, r, error) : CTL_DONE;
}

static int track_child(Run *run, char **ret_error) {
        _cleanup_message_ sd_bus_message *m = NULL, *reply = NULL;
        const char *path;
        int r;

        r = client_new_call(run->client, PRISM_PATH, PRISM_INTERFACE_MANAGER, "TrackProcess", &m);
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "u", (uint32_t) run->child.pid);
        if (r < 0)
                return r;
        r = run->follow ? sd_bus_message_append(m, "a{sv}", 1, "follow", "s", run->follow)
                        : sd_bus_message_append(m, "a{sv}", 0);
        if (r < 0)
                return r;
        r = client_send(run->client, m, CLIENT_TIMEOUT_USEC, &reply, ret_error);
        if (r < 0)
                return r;
        r = sd_bus_message_read(reply, "o", &path);
        if (r < 0)
                return r;

        run->target_path = strdup(path);
        if (!run->target_path)
                return -ENOMEM;
        return client_get_text(
                        run->client, run->target_path, PRISM_INTERFACE_TARGET, "Name", &run->target_name, ret_error);
}

/* "run-COMMAND-20261130T120000". */
static int make_name(const char *command, int number, char **ret) {
        const char *slash = strrchr(command, '/'), *base = slash ? slash + 1 : command;
        time_t now = time(NULL);
        char *name, stamp[32], suffix[16] = "";
        struct tm tm;

        localtime_r(&now, &tm);
        strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%S", &tm);
        if (number > 1)
                snprintf(suffix, sizeof(suffix), "-%d", number);

        if (asprintf(&name, "run-%s-%s%s", base, stamp, suffix) < 0)
                return -ENOMEM;
        if (!recording_name_is_valid(name)) {
                free(name);
                if (asprintf(&name, "run-command-%s%s", stamp, suffix) < 0)
                        return -ENOMEM;
        }
        *ret = name;
        return 0;
}

static int start_recording(Run *run, char **ret_error) {
        int r = -EEXIST;

        for (int i = 1; r == -EEXIST && i <= NAME_TRIES; i++) {
                free(TAKE_PTR(run->recording_name));
                free(TAKE_PTR(*ret_error));

                if (run->name) {
                        run->recording_name = strdup(run->name);
                        if (!run->recording_name)
                                return -ENOMEM;
                } else {
                        r = make_name(run->command[0], i, &run->recording_name);
                        if (r < 0)
                                return r;
                }

                r = record_start(run->client, run->recording_name, 0, run->calls, &run->recording_path, ret_error);
                if (run->name)
                        break;
        }
        return r;
}

/* A signal that came to prismctl goes on to the command. One that the terminal sent has reached it already. */
static void forward(const Run *run, const struct signalfd_siginfo *signal) {
        if (signal->ssi_signo != SIGCHLD && signal->ssi_code != SI_KERNEL && run->child.pid > 0)
                kill(run->child.pid, (int) signal->ssi_signo);
}

static void wait_for_child(Run *run) {
        uint64_t start_ns = now_monotonic_ns(), shown_ns = 0;
        _cleanup_(progress_clear) Progress progress = {};
        bool reachable = true;

        while (!command_has_ended(&run->child)) {
                struct signalfd_siginfo signal;
                uint64_t now_ns = now_monotonic_ns();
                RecordCounters counters;

                if (reachable && now_ns - start_ns >= NSEC_PER_SEC && now_ns - shown_ns >= NSEC_PER_SEC &&
                                progress_is_wanted()) {
                        shown_ns = now_ns;
                        reachable = record_read_counters(run->client, &counters) >= 0;
                        if (reachable)
                                progress_show(&progress, "%s: %" PRIu64 " s, %" PRIu64 " threads, %" PRIu64 " losses",
                                                run->recording_name, (now_ns - start_ns) / NSEC_PER_SEC,
                                                counters.threads, counters.losses);
                }

                if (signals_wait(&run->signals, NSEC_PER_SEC, &signal) > 0)
                        forward(run, &signal);
        }
}

/* The command is over, or never came to run: nothing of it is to be followed any more. */
static int end_recording(Run *run, bool keep) {
        _cleanup_free_ char *error = NULL;
        int r, status = CTL_DONE;

        r = record_stop(run->client, run->recording_path, &error);
        if (r < 0 && r != -ENOENT)
                status = ctl_fail_with(CTL_FAILED, r, error);
        if (!keep)
                client_call_with_path(
                                run->client, "DeleteRecording", run->recording_path, CLIENT_LONG_TIMEOUT_USEC, NULL);
        /* That it has gone with its process is well. */
        client_call_with_path(run->client, "Untrack", run->target_path, CLIENT_TIMEOUT_USEC, NULL);
        return status;
}

/* One complete file of the database, where the user wants it. */
static int save_output(Run *run, Store *store) {
        _cleanup_(sqlite3_finalizep) sqlite3_stmt *q = NULL;
        sqlite3 *db = store_database(store);

        /* Into the empty file that was made before anything ran. */
        if (sqlite3_prepare_v2(db, "VACUUM INTO ?1", -1, &q, NULL) != SQLITE_OK ||
                        sqlite3_bind_text(q, 1, run->output, -1, SQLITE_STATIC) != SQLITE_OK ||
                        sqlite3_step(q) != SQLITE_DONE)
                return ctl_fail(CTL_FAILED, "cannot write %s: %s", run->output, sqlite3_errmsg(db));

        run->output_made = false;
        return CTL_DONE;
}

static int report(Run *run) {
        _cleanup_(store_closep) Store *store = NULL;
        _cleanup_free_ char *name = NULL, *error = NULL;
        ReportRange range = {};
        int r;

        if (run->daemon.database) {
                /* Its files are complete when it has ended. */
                run->client = client_close(run->client);
                if (private_daemon_stop(&run->daemon) < 0)
                        ctl_fail(CTL_FAILED, "prismd did not end well; what follows may lack the last moments");
                r = store_open_readonly(run->daemon.database, &store, &error);
        } else
                r = database_open(run->ctl, &store, &error);
        if (r >= 0)
                r = store_resolve_range(store, run->recording_name, now_unix_ns(), &range.start_ns, &range.end_ns,
                                &name, &error);
        if (r < 0)
                return ctl_fail_with(CTL_FAILED, r, error);

        range.name = name;
        /* A prismd that ran before may have recorded others, too. That one may also have followed the command for
         * another target's sake, in whose name it then is. */
        range.target = run->target_name;
        range.target_or_all = true;
        r = report_print(run->ctl, store, &range, REPORT_LIMIT, stderr);
        if (run->output && save_output(run, store) != CTL_DONE)
                r = CTL_FAILED;
        return r;
}

static int run_command(Run *run) {
        static const int caught[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD, 0 };
        _cleanup_free_ char *error = NULL;
        int r;

        r = signals_catch(&run->signals, caught);
        if (r < 0)
                return ctl_fail_with(CTL_FAILED, r, NULL);
        r = find_daemon(run);
        if (r != CTL_DONE)
                return r;

        r = command_hold(&run->child, run->command, &run->signals);
        if (r < 0)
                return ctl_fail(CTL_FAILED, "cannot start %s: %s", run->command[0], strerror(-r));
        r = track_child(run, &error);
        if (r < 0)
                return ctl_fail_with(CTL_FAILED, r, error);
        r = start_recording(run, &error);
        if (r < 0) {
                client_call_with_path(run->client, "Untrack", run->target_path, CLIENT_TIMEOUT_USEC, NULL);
                return ctl_fail_with(CTL_FAILED, r, error);
        }

        r = command_release(&run->child);
        if (r < 0) {
                end_recording(run, false);
                return ctl_fail(r == -ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE, "cannot execute %s: %s",
                                run->command[0], strerror(-r));
        }

        wait_for_child(run);
        if (end_recording(run, true) == CTL_DONE || run->daemon.database)
                report(run);
        return command_exit_code(&run->child);
}

int verb_run(Ctl *ctl, int argc, char **argv) {
        enum {
                OPTION_NAME = 1,
                OPTION_OUTPUT,
                OPTION_FOLLOW,
                OPTION_CALLS,
        };
        static const Option options[] = {
                { "name", OPTION_NAME, true },
                { "output", OPTION_OUTPUT, true },
                { "follow", OPTION_FOLLOW, true },
                { "calls", OPTION_CALLS, true },
        };
        _cleanup_(arguments_done) Arguments a = {};
        _cleanup_(run_done) Run run = { .ctl = ctl, .signals = SIGNALS_NONE, .child = COMMAND_NONE };
        int r;

        if (arguments_init(&a, argc, argv, true) < 0)
                return ctl_out_of_memory();
        while ((r = ctl_next_option(ctl, &a, options, ELEMENTSOF(options))) > 0)
                switch (r) {
                case OPTION_NAME:
                        run.name = a.value;
                        if (!recording_name_is_valid(run.name))
                                return ctl_fail(CTL_USAGE, "\"%s\" cannot be the name of a recording", run.name);
                        break;
                case OPTION_OUTPUT:
                        run.output = a.value;
                        if (isempty(run.output))
                                return ctl_fail(CTL_USAGE, "--output takes the name of a file");
                        break;
                case OPTION_FOLLOW:
                        run.follow = a.value;
                        if (!streq(run.follow, "none") && !streq(run.follow, "children") && !streq(run.follow, "peers"))
                                return ctl_fail(CTL_USAGE, "--follow takes none, children or peers, not \"%s\"",
                                                run.follow);
                        break;
                case OPTION_CALLS:
                        run.calls = a.value;
                        if (!record_calls_are_valid(run.calls))
                                return ctl_fail(CTL_USAGE, "--calls takes none, sampled or full, not \"%s\"",
                                                run.calls);
                        break;
                }
        if (r < 0)
                return ctl_option_status(r);
        if (a.n_operands == 0 || isempty(a.operands[0]))
                return ctl_fail(CTL_USAGE, "say which command to run");

        /* The operands end with the NULL that execvp() needs. */
        run.command = a.operands;
        return run_command(&run);
}
