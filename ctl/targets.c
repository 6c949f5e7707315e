/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* prismctl targets, processes and threads: what is followed now. */
#include "analysis/contents.h"
#include "analysis/shares.h"
#include "client.h"
#include "label.h"
#include "objects.h"
#include "table.h"

/* Takes only the common options. With CTL_DONE, *ret_operand is the only operand or NULL. */
static int take_options(Ctl *ctl, int argc, char **argv, bool operand, const char **ret_operand, int *ret_status) {
        _cleanup_(arguments_done) Arguments a = {};
        int r;

        if (arguments_init(&a, argc, argv, false) < 0) {
                *ret_status = ctl_out_of_memory();
                return -ENOMEM;
        }
        r = ctl_next_option(ctl, &a, NULL, 0);
        if (r < 0) {
                *ret_status = ctl_option_status(r);
                return r;
        }
        if (a.n_operands > operand) {
                *ret_status = ctl_fail(CTL_USAGE, "%s does not take \"%s\"", ctl->verb->name, a.operands[operand]);
                return -EINVAL;
        }

        *ret_operand = a.n_operands > 0 ? a.operands[0] : NULL;
        return 0;
}

static int read_targets(const Ctl *ctl, Client **ret_client, Targets *ret) {
        _cleanup_(client_closep) Client *c = NULL;
        _cleanup_free_ char *error = NULL;
        int r;

        r = client_open(ctl, &c, &error);
        if (r >= 0)
                r = targets_read(c, ret, &error);
        if (r < 0)
                return ctl_fail_with(CTL_FAILED, r, error);

        if (ret_client)
                *ret_client = TAKE_PTR(c);
        return CTL_DONE;
}

/* Prints the table; an empty one is CTL_NOTHING with a sentence. */
static int show(const Ctl *ctl, Table *t, const char *nothing) {
        int r;

        r = table_print(t, ctl->no_legend, stdout);
        if (r < 0)
                return ctl_fail_with(CTL_FAILED, r, NULL);
        return table_rows(t) == 0 ? ctl_fail(CTL_NOTHING, "%s", nothing) : CTL_DONE;
}

/* A verb that shows something of each target. */
static int list_targets(Ctl *ctl, int argc, char **argv, const TableColumn *columns, size_t n_columns,
                void (*put)(Table *t, const Target *target), const char *nothing) {
        _cleanup_(targets_done) Targets targets = {};
        _cleanup_(table_freep) Table *t = NULL;
        const char *operand;
        int r, status;

        if (take_options(ctl, argc, argv, false, &operand, &status) < 0)
                return status;
        r = read_targets(ctl, NULL, &targets);
        if (r != CTL_DONE)
                return r;
        if (table_new(columns, n_columns, ctl->json, &t) < 0)
                return ctl_out_of_memory();

        for (size_t i = 0; i < targets.n; i++)
                put(t, targets.items + i);
        return show(ctl, t, targets.n == 0 ? "nothing is followed; see prismctl track --help" : nothing);
}

static void put_target(Table *t, const Target *target) {
        table_row(t);
        table_text(t, target->name);
        table_text(t, target->kind);
        table_text(t, target->follow);
        table_count(t, target->depth);
        table_count(t, target->n_processes);
        table_count(t, target->threads);
}

int verb_targets(Ctl *ctl, int argc, char **argv) {
        static const TableColumn columns[] = {
                { "target", "TARGET", false },
                { "kind", "KIND", false },
                { "follow", "FOLLOW", false },
                { "depth", NULL, true },
                { "processes", "PROCESSES", true },
                { "threads", "THREADS", true },
        };

        return list_targets(ctl, argc, argv, columns, ELEMENTSOF(columns), put_target, NULL);
}

static void put_processes(Table *t, const Target *target) {
        for (size_t i = 0; i < target->n_processes; i++) {
                const TargetProcess *p = target->processes + i;

                table_row(t);
                table_count(t, p->pid);
                table_text(t, p->comm);
                table_count(t, p->threads);
                table_text(t, p->found_by);
                table_text(t, target->name);
        }
}

int verb_processes(Ctl *ctl, int argc, char **argv) {
        static const TableColumn columns[] = {
                { "pid", "PID", true },
                { "comm", "COMMAND", false },
                { "threads", "THREADS", true },
                { "found_by", "FOUND BY", false },
                { "target", "TARGET", false },
        };

        return list_targets(ctl, argc, argv, columns, ELEMENTSOF(columns), put_processes,
                        "no process of the targets lives");
}

/* The image of the last minute. */
static int open_snapshot(Client *c, Store **ret, char **ret_error) {
        _cleanup_message_ sd_bus_message *reply = NULL;
        int fd, r;

        r = client_call_manager(c, "GetSnapshot", &reply, ret_error);
        if (r < 0)
                return r;
        r = sd_bus_message_read(reply, "h", &fd); /* the message's own */
        if (r < 0)
                return r;
        return store_open_image(fd, ret, ret_error);
}

static bool is_process_of(const Process *p, const Target *t) {
        if (p->target && streq(p->target, t->name))
                return true;
        /* One that several targets include bears the name of the first only. */
        for (size_t i = 0; i < t->n_processes; i++)
                if (p->pid == t->processes[i].pid)
                        return true;
        return false;
}

static int show_threads(const Ctl *ctl, const Shares *s, const Target *target) {
        static const TableColumn columns[] = {
                { "pid", "PID", true },
                { "process", "PROCESS", false },
                { "tid", "TID", true },
                { "comm", "THREAD", false },
                { "tracked_ns", "TRACKED", true },
                LABEL_STATE_COLUMNS,
                LABEL_TOP_WAIT_COLUMNS,
        };
        _cleanup_(table_freep) Table *t = NULL;

        if (table_new(columns, ELEMENTSOF(columns), ctl->json, &t) < 0)
                return ctl_out_of_memory();

        for (size_t i = 0; i < s->n_timed_threads; i++) {
                const Thread *o = s->threads[i];

                if (target && !is_process_of(o->process, target))
                        continue;

                table_row(t);
                table_number(t, o->process->pid);
                table_text(t, o->process->comm);
                table_number(t, o->tid);
                table_text(t, o->comm);
                table_duration(t, o->times.total_ns);
                label_states(t, &o->times);
                label_top_wait(t, o);
        }
        return show(ctl, t, "there is no time of threads in the last minute yet; try again in a few seconds");
}

int verb_threads(Ctl *ctl, int argc, char **argv) {
        _cleanup_(client_closep) Client *c = NULL;
        _cleanup_(targets_done) Targets targets = {};
        _cleanup_(store_closep) Store *store = NULL;
        _cleanup_(reading_freep) Reading *reading = NULL;
        _cleanup_(shares_freep) Shares *shares = NULL;
        _cleanup_free_ char *error = NULL;
        const Target *target = NULL;
        int64_t start_ns, end_ns;
        const char *name;
        int r, status;

        if (take_options(ctl, argc, argv, true, &name, &status) < 0)
                return status;
        r = read_targets(ctl, &c, &targets);
        if (r != CTL_DONE)
                return r;
        if (name) {
                target = targets_find(&targets, name);
                if (!target)
                        return ctl_fail(CTL_NOTHING, "%s is not a target; prismctl targets lists them", name);
        }

        r = open_snapshot(c, &store, &error);
        if (r < 0)
                return ctl_fail_with(CTL_FAILED, r, error);

        r = contents_extent(store, &start_ns, &end_ns, &error);
        if (r == -ENODATA)
                start_ns = end_ns = 0;
        else if (r < 0)
                return ctl_fail_with(CTL_FAILED, r, error);
        else
                start_ns = MAX(start_ns, end_ns - (int64_t) (60 * NSEC_PER_SEC));

        r = reading_begin(store, start_ns, end_ns, NULL, &reading, &error);
        if (r >= 0)
                r = shares_read(reading, false, &shares, &error);
        if (r < 0)
                return ctl_fail_with(CTL_FAILED, r, error);
        return show_threads(ctl, shares, target);
}
