/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The report's processes and threads, and who ran instead of them. */
#include "label.h"
#include "report-section.h"
#include "store/basic/text.h"

/* A thread's run queue time below this share of its time is not worth asking who ran instead. */
#define REPORT_RUNQUEUE_SHARE 100

static void put_times(Table *t, const ShareTimes *times) {
        table_duration(t, times->total_ns);
        table_duration(t, times->run_ns);
        table_duration(t, times->runqueue_ns);
        table_duration(t, times->sleep_ns);
        table_duration(t, times->block_ns);
        table_duration(t, times->iowait_ns);
        table_duration(t, times->throttled_ns);
        table_duration(t, times->healed_ns);
        table_count(t, times->switches);
        table_count(t, times->preemptions);
}

/* The columns that put_times() fills; only some are shown to people. */
#define TIMES_COLUMNS(tracked, run, runqueue, sleep, block)                                                        \
        { "tracked_ns", tracked, true }, { "run_ns", run, true }, { "runqueue_ns", runqueue, true },               \
                        { "sleep_ns", sleep, true }, { "block_ns", block, true }, { "iowait_ns", NULL, true },     \
                        { "throttled_ns", NULL, true }, { "healed_ns", NULL, true }, { "switches", NULL, true }, { \
                "preemptions", NULL, true                                                                          \
        }

static const TableColumn process_columns[] = {
        { "machine_id", NULL, true },
        { "pid", "PID", true },
        { "host_pid", NULL, true },
        { "comm", "COMMAND", false },
        { "cmdline", NULL, false },
        { "unit", NULL, false },
        { "target", NULL, false },
        { "threads", "THREADS", true },
        { "cpu_share", "CPU", true },
        TIMES_COLUMNS(NULL, "RUN", "RUNQUEUE", "SLEEP", "BLOCK"),
};

static int fill_processes(const Report *r, Table *t, size_t *ret_n) {
        *ret_n = r->shares->n_timed_processes;

        for (size_t i = 0; i < r->shares->n_timed_processes && table_rows(t) < r->limit; i++) {
                const Process *p = r->shares->processes[i];

                table_row(t);
                table_number(t, p->machine_id);
                table_number(t, p->pid);
                table_number(t, p->host_pid);
                table_text(t, p->comm);
                table_text(t, p->cmdline);
                table_text(t, p->unit);
                table_text(t, p->target);
                table_count(t, p->n_threads);
                table_share(t, p->times.run_ns, report_length_ns(r));
                put_times(t, &p->times);
        }
        return 0;
}

const ReportSection report_processes = {
        .key = "processes",
        .title = "Processes, most active first",
        .unit = "processes",
        .columns = process_columns,
        .n_columns = ELEMENTSOF(process_columns),
        .fill = fill_processes,
};

static const TableColumn thread_columns[] = {
        { "pid", "PID", true },
        { "tid", "TID", true },
        { "host_tid", NULL, true },
        { "comm", "THREAD", false },
        LABEL_STATE_COLUMNS,
        TIMES_COLUMNS("TRACKED", NULL, NULL, NULL, NULL),
        { "waited_ns", NULL, true },
        { "ran_instead_ns", NULL, true },
        LABEL_TOP_WAIT_COLUMNS,
};

static int fill_threads(const Report *r, Table *t, size_t *ret_n) {
        *ret_n = r->shares->n_timed_threads;

        for (size_t i = 0; i < r->shares->n_timed_threads && table_rows(t) < r->limit; i++) {
                const Thread *o = r->shares->threads[i];

                table_row(t);
                table_number(t, o->process->pid);
                table_number(t, o->tid);
                table_number(t, o->host_tid);
                table_text(t, o->comm);
                label_states(t, &o->times);
                put_times(t, &o->times);
                table_duration(t, o->waited_ns);
                table_duration(t, o->instead_ns);
                label_top_wait(t, o);
        }
        return 0;
}

static void describe_other_threads(const Report *r, size_t n_shown, char *buffer, size_t size) {
        ShareTimes sum = {};
        char a[64], b[64], c[64];

        for (size_t i = n_shown; i < r->shares->n_timed_threads; i++)
                share_times_add(&sum, &r->shares->threads[i]->times);
        snprintf(buffer, size, ", which together ran for %s, stood in a run queue for %s and blocked for %s",
                        format_duration(a, sizeof(a), sum.run_ns), format_duration(b, sizeof(b), sum.runqueue_ns),
                        format_duration(c, sizeof(c), sum.block_ns));
}

const ReportSection report_threads = {
        .key = "threads",
        .title = "Threads, most active first",
        .unit = "threads",
        .columns = thread_columns,
        .n_columns = ELEMENTSOF(thread_columns),
        .fill = fill_threads,
        .describe_rest = describe_other_threads,
};

static int put_instead(Table *t, const Shares *s, const Thread *thread) {
        static const TableColumn columns[] = { { "pid", NULL, false }, { "host_pid", NULL, false },
                { "comm", NULL, false }, { "total_ns", NULL, false }, { "share", NULL, false } };
        _cleanup_(table_freep) Table *inner = NULL;
        _cleanup_free_ char *label = NULL;
        SharesInstead *const *instead;
        json_object *array;
        size_t n;
        int k;

        if (!table_is_json(t)) {
                label = label_instead(s, thread);
                if (!label)
                        return -ENOMEM;
                table_custom(t, label, NULL);
                return 0;
        }

        k = table_new(columns, ELEMENTSOF(columns), true, &inner);
        if (k < 0)
                return k;
        n = shares_instead_of(s, thread, &instead);
        for (size_t i = 0; i < n; i++) {
                table_row(inner);
                table_number(inner, instead[i]->process->pid);
                table_number(inner, instead[i]->process->host_pid);
                table_text(inner, instead[i]->process->comm);
                table_count(inner, instead[i]->total_ns);
                table_share(inner, instead[i]->total_ns, thread->instead_ns - thread->unnamed_ns);
        }
        k = table_take_json(inner, &array);
        if (k < 0)
                return k;
        table_custom(t, NULL, array);
        return 0;
}

static const TableColumn instead_columns[] = {
        { "pid", "PID", true },
        { "tid", "TID", true },
        { "comm", "THREAD", false },
        { "runqueue_ns", "RUNQUEUE", true },
        { "share", "SHARE", true },
        { "throttled_ns", "THROTTLED", true },
        { "ran", "WHO RAN INSTEAD", false },
        { "unnamed_ns", NULL, true },
        { "unnamed_share", "NOT NAMED", true },
};

static bool is_worth_asking(const Report *r, const Thread *t) {
        if (r->ctl->json)
                return t->times.runqueue_ns > 0;
        return t->times.runqueue_ns >= t->times.total_ns / REPORT_RUNQUEUE_SHARE &&
                        t->times.runqueue_ns >= NSEC_PER_MSEC;
}

static int fill_instead(const Report *r, Table *t, size_t *ret_n) {
        size_t n = 0;

        for (size_t i = 0; i < r->shares->n_timed_threads; i++) {
                const Thread *o = r->shares->threads[i];
                int k;

                if (!is_worth_asking(r, o) || n++ >= r->limit)
                        continue;

                table_row(t);
                report_put_thread(t, o);
                table_duration(t, o->times.runqueue_ns);
                table_share(t, o->times.runqueue_ns, o->times.total_ns);
                table_duration(t, o->times.throttled_ns);
                k = put_instead(t, r->shares, o);
                if (k < 0)
                        return k;
                table_duration(t, o->unnamed_ns);
                table_share(t, o->unnamed_ns, o->instead_ns);
        }

        *ret_n = n;
        return 0;
}

const ReportSection report_instead = {
        .key = "ran_instead",
        .title = "Waiting for a CPU",
        .unit = "threads",
        .columns = instead_columns,
        .n_columns = ELEMENTSOF(instead_columns),
        .fill = fill_instead,
};
