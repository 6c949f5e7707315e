/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* prismctl: what people and scripts use to talk with prismd and to read what it recorded. This file only finds the
 * verb. */
#include <locale.h>

#include "ctl.h"

static int verb_help(Ctl *ctl, int argc, char **argv);

static const char range_details[] = "R is the name of a recording, or START..END with moments such as "
                                    "2026-11-30T12:00:00Z, 12:00:05 or -10m\n"
                                    "(ten minutes ago).\n";

static const Verb verbs[] = {
        { "status", verb_status, "status", "Features, limits, losses and prism's own cost", NULL },
        { "track", verb_track,
                        "track [--pid P[,P...]]... [--cgroup PATH]... [--unit U]... [--command PATTERN]...\n"
                        "      [--follow none|children|peers] [--depth N]",
                        "Follow processes, cgroups, units or commands",
                        "PATTERN is a regular expression that must match the whole name of a command.\n"
                        "--follow children is the default: processes that a followed one forks are followed, too.\n" },
        { "untrack", verb_untrack, "untrack TARGET... | --all", "Stop following targets",
                        "TARGET is what prismctl targets prints, such as pid:1234.\n" },
        { "targets", verb_targets, "targets", "What is followed", NULL },
        { "processes", verb_processes, "processes", "The processes of all targets", NULL },
        { "threads", verb_threads, "threads [TARGET]", "Where the time of threads went over the last minute", NULL },
        { "record", verb_record,
                        "record start NAME [--for TIME] [--calls none|sampled|full]\n"
                        "record stop NAME\n"
                        "record list\n"
                        "record show NAME\n"
                        "record delete NAME",
                        "Keep what is measured in the database",
                        "With --for, waits until the recording has ended; Ctrl-C ends it early.\n"
                        "--calls says whether system calls are counted, those that do not block, too: sampled, the "
                        "default, does so for\n"
                        "one second in ten, and reports call the numbers estimates; full costs more.\n" },
        { "run", verb_run,
                        "run [--name NAME] [--output FILE.db] [--follow none|children] [--calls none|sampled|full]\n"
                        "    [--] COMMAND [ARGUMENT...]",
                        "Run a command, record it from its first instruction, and report",
                        "The report goes to stderr; the exit code is that of the command. When no prismd runs, one is "
                        "started for the\n"
                        "command only; --output keeps its database.\n" },
        { "report", verb_report, "report R [--target TARGET] [--limit N]",
                        "Where the time went, per process and thread, with the top waits", range_details },
        { "query", verb_query, "query [--baseline R]... [--compare R]... [--var NAME=VALUE]... SQL | --file F",
                        "Run one SQL query on the database, read only",
                        "{{ NAME }} stands for the value of a variable; {{ baseline_filter(\"ts\") }} and {{ "
                        "compare_filter(\"ts\") }} for\n"
                        "conditions on a column of times. R is a recording's name or START..END.\n" },
        { "wait", verb_wait, "wait recording NAME | process PID | target TARGET [--timeout TIME]",
                        "Wait until a recording, process or target has ended", NULL },
        { "help", verb_help, "help [VERB]", "This text, or more about a verb", NULL },
};

static const Verb *find_verb(const char *name) {
        for (size_t i = 0; i < ELEMENTSOF(verbs); i++)
                if (streq(verbs[i].name, name))
                        return verbs + i;
        return NULL;
}

void verb_print_help(const Verb *v, FILE *f) {
        const char *line = v->synopsis;

        fprintf(f, "%s.\n\n", v->summary);
        while (line) {
                const char *end = strchrnul(line, '\n');

                fprintf(f, "  %s%.*s\n", line[0] == ' ' ? "         " : "prismctl ", (int) (end - line), line);
                line = *end ? end + 1 : NULL;
        }
        if (v->details)
                fprintf(f, "\n%s", v->details);
}

static void print_help(FILE *f) {
        fputs("prismctl [OPTION...] VERB\n"
              "Shows which thread waits for what, and who holds it up.\n"
              "\n"
              "Verbs:\n",
                        f);
        for (size_t i = 0; i < ELEMENTSOF(verbs); i++)
                fprintf(f, "  %-10s %s\n", verbs[i].name, verbs[i].summary);
        fputs("\n"
              "Options:\n"
              "  --address ADDRESS  Where prismd listens, such as unix:path=/run/prism/bus; \"system\" is the system "
              "bus\n"
              "                     (also PRISM_ADDRESS)\n"
              "  --state-dir DIR    Where the database lies (also PRISM_STATE_DIR)\n"
              "  --db FILE          Read this database\n"
              "  --json             Print JSON\n"
              "  --no-legend        Print no column titles\n"
              "  --help, --version\n"
              "\n"
              "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 nothing found.\n"
              "prismctl VERB --help says more about a verb.\n",
                        f);
}

static int verb_help(Ctl *ctl, int argc, char **argv) {
        _cleanup_(arguments_done) Arguments a = {};
        const Verb *v;
        int r;

        if (arguments_init(&a, argc, argv, false) < 0)
                return ctl_out_of_memory();
        r = ctl_next_option(ctl, &a, NULL, 0);
        if (r < 0)
                return ctl_option_status(r);

        if (a.n_operands == 0) {
                print_help(stdout);
                return CTL_DONE;
        }

        v = find_verb(a.operands[0]);
        if (!v || a.n_operands > 1)
                return ctl_fail(CTL_USAGE, "there is no verb %s; see prismctl help", a.operands[a.n_operands - 1]);
        verb_print_help(v, stdout);
        return CTL_DONE;
}

static int run(int argc, char **argv) {
        _cleanup_(arguments_done) Arguments a = {};
        Ctl ctl = {};
        int r;

        if (arguments_init(&a, argc, argv, true) < 0)
                return ctl_out_of_memory();

        r = ctl_next_option(&ctl, &a, NULL, 0);
        if (r < 0)
                return ctl_option_status(r);

        if (ctl.version) {
                printf("prismctl %s\n", PRISM_VERSION);
                return CTL_DONE;
        }
        if (ctl.help) {
                print_help(stdout);
                return CTL_DONE;
        }
        if (a.n_operands == 0) {
                print_help(stderr);
                return CTL_USAGE;
        }

        ctl.verb = find_verb(a.operands[0]);
        if (!ctl.verb)
                return ctl_fail(CTL_USAGE, "there is no verb %s; see prismctl help", a.operands[0]);

        return ctl.verb->run(&ctl, a.n_operands - 1, a.operands + 1);
}

int main(int argc, char **argv) {
        /* Only what characters are: numbers look the same everywhere. */
        setlocale(LC_CTYPE, "");

        return ctl_flush(run(argc > 0 ? argc - 1 : 0, argv + 1));
}
