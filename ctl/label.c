/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Words for threads, waits, their enders and losses. */
#include "label.h"

#include <inttypes.h>

#include "json.h"
#include "store/basic/text.h"

/* How many are named in one cell. */
#define LABEL_FOREMOST 3

const char *label_resource(const Resource *r) {
        return !isempty(r->name) ? r->name : !isempty(r->ident) ? r->ident : "-";
}

/* Whether an operation alone does not say what was done: then the kind stands before it. */
static bool needs_kind(const char *kind, const char *op) {
        static const char *const kinds[] = { "futex", "kernel-lock", "page-fault", "aio", "io_uring" };

        if (strstr(op, kind))
                return false;
        for (size_t i = 0; i < ELEMENTSOF(kinds); i++)
                if (streq(kinds[i], kind))
                        return true;
        return false;
}

/* Operations that stand for waits of which no resource is known. */
static const char *describe_unknown(const char *op) {
        static const struct {
                const char *op, *words;
        } known[] = {
                { "lost", "unknown (lost)" },
                { "unknown", "unknown (began before it was followed)" },
                { "user", "outside system calls" },
                { "exit", "exiting" },
        };

        for (size_t i = 0; i < ELEMENTSOF(known); i++)
                if (streq(known[i].op, op))
                        return known[i].words;
        return op;
}

char *label_operation(const char *op, const Resource *r) {
        const char *kind = needs_kind(r->kind, op) ? r->kind : "", *object = r->name, *of = "";
        const char *words = streq(r->kind, "other") ? describe_unknown(op) : op;
        char *s;

        if (isempty(object)) {
                object = r->ident;
                /* "inode:12345" says little: "inet inode:12345" more. */
                if (isempty(kind) && !isempty(object) && !startswith(object, r->kind))
                        of = r->kind;
        }
        if (isempty(object) || streq(object, op) || streq(object, r->kind))
                object = of = "";
        if (streq(of, "other") || streq(of, "timer") || streq(of, "child") || streq(of, "signal"))
                of = "";

        if (asprintf(&s, "%s%s%s%s%s%s%s", kind, *kind ? " " : "", words, *of ? " " : "", of, *object ? " " : "",
                            object) < 0)
                return NULL;
        return s;
}

char *label_wait(const SharesWait *w) {
        _cleanup_free_ char *operation = label_operation(w->op, w->resource);
        const SharesWatched *foremost = NULL;
        char *s, share[32];

        for (size_t i = 0; i < w->n_watched && !foremost; i++)
                if (w->watched[i]->watched)
                        foremost = w->watched[i];
        if (!operation || !foremost || foremost->total_ns == 0)
                return TAKE_PTR(operation);

        /* Only what is not all of it needs a share. */
        if (foremost->total_ns < w->total_ns)
                snprintf(share, sizeof(share), " %.1f%%", 100.0 * (double) foremost->total_ns / (double) w->total_ns);
        else
                share[0] = '\0';
        if (asprintf(&s, "%s (%s%s)", operation, label_resource(foremost->watched), share) < 0)
                return NULL;
        return s;
}

char *label_wakers(SharesWaker *const *wakers, size_t n_wakers, uint64_t total_ns, const Process *own) {
        _cleanup_free_ char *s = NULL;
        uint64_t others_ns = total_ns;
        size_t n = 0;

        for (; n < n_wakers && n < LABEL_FOREMOST; n++) {
                const SharesWaker *o = wakers[n];
                char share[32], *next;
                int r;

                format_share(share, sizeof(share), o->total_ns, total_ns);
                others_ns -= o->total_ns;

                if (!o->waker)
                        r = asprintf(&next, "%s%s%s %s", s ? s : "", s ? ", " : "", o->kind, share);
                else if (o->waker->process == own)
                        r = asprintf(&next, "%s%s%s/%" PRId64 " %s", s ? s : "", s ? ", " : "", o->waker->comm,
                                        o->waker->tid, share);
                else
                        r = asprintf(&next, "%s%s%s/%" PRId64 " of %s/%" PRId64 " %s", s ? s : "", s ? ", " : "",
                                        o->waker->comm, o->waker->tid, o->waker->process->comm, o->waker->process->pid,
                                        share);
                if (r < 0)
                        return NULL;
                free(s);
                s = next;
        }

        if (n < n_wakers) {
                char share[32], *next;

                format_share(share, sizeof(share), others_ns, total_ns);
                if (asprintf(&next, "%s, %zu more %s", s, n_wakers - n, share) < 0)
                        return NULL;
                free(s);
                s = next;
        }

        return s ? TAKE_PTR(s) : strdup("-");
}

char *label_instead(const Shares *shares, const Thread *t) {
        _cleanup_free_ char *s = NULL;
        SharesInstead *const *instead;
        uint64_t named_ns = t->instead_ns - t->unnamed_ns, others_ns = named_ns;
        size_t n_instead = shares_instead_of(shares, t, &instead), n = 0;

        for (; n < n_instead && n < LABEL_FOREMOST; n++) {
                char share[32], *next;

                format_share(share, sizeof(share), instead[n]->total_ns, named_ns);
                others_ns -= instead[n]->total_ns;
                if (asprintf(&next, "%s%s%s/%" PRId64 " %s", s ? s : "", s ? ", " : "", instead[n]->process->comm,
                                    instead[n]->process->pid ? instead[n]->process->pid : instead[n]->process->host_pid,
                                    share) < 0)
                        return NULL;
                free(s);
                s = next;
        }

        if (n < n_instead) {
                char share[32], *next;

                format_share(share, sizeof(share), others_ns, named_ns);
                if (asprintf(&next, "%s, %zu more %s", s, n_instead - n, share) < 0)
                        return NULL;
                free(s);
                s = next;
        }

        return s ? TAKE_PTR(s) : strdup("-");
}

const char *label_loss(const char *reason) {
        static const struct {
                const char *reason, *meaning;
        } known[] = {
                { "thread-limit", "threads that were not followed, because the limit of threads was reached" },
                { "storage-full", "threads that were not followed, because the kernel had no memory for them" },
                { "wait-map-full",
                                "waits whose time is kept but not their resource, because the map of waits was full" },
                { "wait-map-busy",
                                "waits whose time is kept but not their resource, because the map of waits was in "
                                "use" },
                { "ran-instead-map-full",
                                "times in the run queue for which nobody is named, because the map was full" },
                { "ran-instead-map-busy",
                                "times in the run queue for which nobody is named, because the map was in use" },
                { "missed-switch", "switches that the kernel did not show; its own accounts place them" },
                { "missed-wake",
                                "wakes that the kernel did not show; its own accounts place them, the waker is "
                                "unseen" },
                { "call-map-full", "calls that were not counted, because the map of calls was full" },
                { "call-map-busy", "calls that were not counted, because the map of calls was in use" },
                { "object-map-full",
                                "names and addresses of files and sockets that come later, because the map was full" },
                { "mapping-busy", "page faults of which the file is not known, because the mapping was being changed" },
                { "epoll-watches", "epoll sets that watch more files than were read" },
                { "cgroup-limit", "control groups whose use was not read, because there were too many" },
                { "block-request-map-full", "block requests that were not counted, because too many were in flight" },
                { "disk-map-full", "block requests that were not counted, because the map of disks was full" },
                { "disk-map-busy", "block requests that were not counted, because the map of disks was in use" },
                { "event-buffer-full", "forks and executions that were noticed late" },
                { "futex-key", "waits for a shared futex that could not be told from others" },
                { "snapshot-race", "threads whose present state changed faster than it could be read" },
                { "recursion",
                                "switches or wakes that the kernel did not show, because a program was running on that "
                                "CPU" },
                { "resource-limit", "waits without their resource, because the limit of resources was reached" },
                { "process-limit", "threads that were not recorded, because the limit of processes was reached" },
                { "observed-limit",
                                "wakers and users of a CPU that could not be named, because the limit of processes was "
                                "reached" },
                { "thread-found-late", "threads that were followed only some time after their start" },
                { "map-not-drained", "times at which a map of the kernel side could not be read" },
                { "memory", "rows that were dropped, because prismd had no memory" },
                { "gap", "intervals of a thread that do not follow on the one before" },
                { "overlap", "intervals of a thread that overlap the one before" },
                { "wait-without-interval", "waits of a thread whose times were lost" },
                { "exit-unseen", "ends of threads that were noticed late" },
                { "write-failed", "rows that could not be written to the database" },
                { "queue-full", "rows that were dropped, because the disk was too slow" },
        };

        for (size_t i = 0; i < ELEMENTSOF(known); i++)
                if (streq(known[i].reason, reason))
                        return known[i].meaning;
        return NULL;
}

void label_states(Table *t, const ShareTimes *times) {
        table_share(t, times->run_ns, times->total_ns);
        table_share(t, times->runqueue_ns, times->total_ns);
        table_share(t, times->sleep_ns, times->total_ns);
        table_share(t, times->block_ns, times->total_ns);
}

void label_top_wait(Table *t, const Thread *thread) {
        _cleanup_free_ char *label = NULL, *cell = NULL;
        const SharesWait *w = thread->top_wait;
        char share[32];

        if (!w) {
                table_null(t);
                table_null(t);
                return;
        }

        format_share(share, sizeof(share), w->total_ns, thread->times.total_ns);
        label = label_wait(w);
        if (!label || asprintf(&cell, "%s %s", share, label) < 0)
                cell = NULL;
        table_custom(t, cell, table_is_json(t) ? json_text(label) : NULL);
        table_share(t, w->total_ns, thread->times.total_ns);
}
