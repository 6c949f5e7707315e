/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* prismctl report: reads a range once and shows it section by section. What the numbers are is counted in analysis/. */
#include "report.h"

#include <fcntl.h>

#include "database.h"
#include "json.h"
#include "label.h"
#include "report-section.h"
#include "signals.h"
#include "store/basic/parse.h"
#include "store/ranges.h"

/* In the order in which people see them. */
static const ReportSection *const sections[] = {
        &report_processes,
        &report_threads,
        &report_resources,
        &report_waits,
        &report_watched,
        &report_calls,
        &report_instead,
        &report_disks,
        &report_sockets,
        &report_cgroups,
};

void report_put_thread(Table *t, const Thread *thread) {
        table_number(t, thread->process->pid);
        table_number(t, thread->tid);
        table_text(t, thread->comm);
}

void report_put_resource(Table *t, const Resource *resource) {
        table_text(t, table_is_json(t) ? resource->name : label_resource(resource));
        table_text(t, resource->ident);
}

int report_put_histogram(Table *t, const uint64_t *histogram) {
        _cleanup_json_ json_object *array = NULL;

        if (table_is_json(t)) {
                array = json_object_new_array();
                if (!array)
                        return -ENOMEM;
                for (int i = 0; i < STORE_HISTOGRAM_BUCKETS; i++)
                        if (json_object_array_add(array, json_object_new_uint64(histogram[i])) < 0)
                                return -ENOMEM;
        }
        table_custom(t, NULL, TAKE_PTR(array));
        return 0;
}

void report_put_lengths(Table *t, uint64_t count, uint64_t total_ns, uint64_t max_ns) {
        if (count > 0) {
                table_duration(t, total_ns / count);
                table_duration(t, max_ns);
        } else {
                table_null(t);
                table_null(t);
        }
}

static int make_section(const Report *r, const ReportSection *section, Table **ret, size_t *ret_n) {
        _cleanup_(table_freep) Table *t = NULL;
        int k;

        k = table_new(section->columns, section->n_columns, r->ctl->json, &t);
        if (k < 0)
                return k;
        k = section->fill(r, t, ret_n);
        if (k < 0)
                return k;
        *ret = TAKE_PTR(t);
        return 0;
}

static int print_section(const Report *r, const ReportSection *section) {
        _cleanup_(table_freep) Table *t = NULL;
        char more[256] = "";
        size_t n, n_shown;
        int k;

        k = make_section(r, section, &t, &n);
        if (k < 0)
                return k;
        n_shown = table_rows(t);
        if (n_shown == 0)
                return 0;

        if (section->describe_title)
                section->describe_title(r, more, sizeof(more));
        fprintf(r->f, "\n%s%s\n", section->title, more);
        k = table_print(t, r->ctl->no_legend, r->f);
        if (k < 0)
                return k;

        if (n_shown < n) {
                more[0] = '\0';
                if (section->describe_rest)
                        section->describe_rest(r, n_shown, more, sizeof(more));
                fprintf(r->f, "and %zu more %s%s (--limit 0 shows all)\n", n - n_shown, section->unit, more);
        }
        return 0;
}

static int print_text(const Report *r) {
        int k;

        k = report_print_head(r);
        for (size_t i = 0; i < ELEMENTSOF(sections) && k >= 0; i++)
                k = print_section(r, sections[i]);
        return k;
}

static int print_json(const Report *r) {
        _cleanup_json_ json_object *root = json_object_new_object();
        int k;

        if (!root)
                return -ENOMEM;
        k = report_add_head(r, root);
        if (k < 0)
                return k;

        for (size_t i = 0; i < ELEMENTSOF(sections); i++) {
                _cleanup_(table_freep) Table *t = NULL;
                json_object *array;
                size_t n;

                k = make_section(r, sections[i], &t, &n);
                if (k < 0)
                        return k;
                k = table_take_json(t, &array);
                if (k < 0)
                        return k;
                k = json_add(root, sections[i]->key, array);
                if (k < 0)
                        return k;
        }

        json_print(root, r->f);
        return 0;
}

static void report_done(Report *r) {
        shares_free(r->shares);
        calls_done(&r->calls);
        disks_done(&r->disks);
        sockets_done(&r->sockets);
        cgroups_done(&r->cgroups);
        reading_free(r->reading);
}

/* Whether the database speaks of the boot that the machine we run on is in. */
static int read_is_this_boot(Report *r, char **ret_error) {
        _cleanup_(sqlite3_finalizep) sqlite3_stmt *q = NULL;
        _cleanup_close_ int fd = -1;
        char text[64], id[64];
        size_t length = 0;
        ssize_t n;
        int k;

        fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
        n = fd >= 0 ? read(fd, text, sizeof(text)) : -1;
        for (ssize_t i = 0; i < n; i++)
                if (text[i] != '-' && text[i] != '\n')
                        id[length++] = text[i];

        k = statement_prepare(r->reading->store, "SELECT 1 FROM boot WHERE boot_id = ?1", &q, ret_error);
        if (k < 0)
                return k;
        sqlite3_bind_text(q, 1, id, (int) length, SQLITE_STATIC);
        k = statement_step(r->reading->store, q, ret_error);
        if (k < 0)
                return k;
        r->is_this_boot = k > 0;
        return 0;
}

static int read_report(Report *r, Store *store, const char *target, char **ret_error) {
        bool json = r->ctl->json;
        int k;

        k = reading_begin(store, r->range->start_ns, r->range->end_ns, target, &r->reading, ret_error);
        if (k >= 0)
                k = shares_read(r->reading, json, &r->shares, ret_error);
        if (k >= 0)
                k = calls_read(r->reading, json, &r->calls, ret_error);
        if (k >= 0)
                k = disks_read(r->reading, &r->disks, ret_error);
        if (k >= 0)
                k = sockets_read(r->reading, &r->sockets, ret_error);
        if (k >= 0)
                k = cgroups_read(r->reading, &r->cgroups, ret_error);
        if (k >= 0)
                k = read_is_this_boot(r, ret_error);
        if (k >= 0)
                reading_end(r->reading);
        return k;
}

int report_print(const Ctl *ctl, Store *store, const ReportRange *range, uint64_t limit, FILE *f) {
        const Report empty = {
                .ctl = ctl,
                .range = range,
                .limit = limit == 0 || ctl->json ? UINT64_MAX : limit,
                .f = f,
        };
        _cleanup_(report_done) Report report = empty;
        _cleanup_free_ char *error = NULL;
        int r;

        r = read_report(&report, store, range->target, &error);
        if (r >= 0 && report.shares->n_timed_threads == 0 && range->target_or_all) {
                report_done(&report);
                report = empty;
                r = read_report(&report, store, NULL, &error);
        }
        if (r < 0)
                return ctl_fail_with(CTL_FAILED, r, error);

        r = ctl->json ? print_json(&report) : print_text(&report);
        if (r < 0)
                return ctl_fail_with(CTL_FAILED, r, NULL);

        if (report.shares->n_timed_threads == 0)
                return ctl_fail(CTL_NOTHING, "%s holds no time of any thread: was anything tracked then?",
                                range->name ? range->name : "the range");
        return CTL_DONE;
}

/* Whether a recording of that name has not ended. */
static int is_running(Store *s, const char *name, bool *ret, char **ret_error) {
        StoreRecording *recordings;
        size_t n;
        int r;

        r = store_recordings(s, &recordings, &n, ret_error);
        if (r < 0)
                return r;

        for (size_t i = 0; i < n; i++) {
                if (streq(recordings[i].name, name))
                        *ret = streq(recordings[i].state, "running");
                store_recording_done(recordings + i);
        }
        free(recordings);
        return 0;
}

int verb_report(Ctl *ctl, int argc, char **argv) {
        enum {
                OPTION_LIMIT = 1,
                OPTION_TARGET,
                OPTION_BASELINE,
                OPTION_HTML,
        };
        static const Option options[] = {
                { "limit", OPTION_LIMIT, true },
                { "target", OPTION_TARGET, true },
                { "baseline", OPTION_BASELINE, true },
                { "html", OPTION_HTML, true },
        };
        _cleanup_(arguments_done) Arguments a = {};
        _cleanup_(store_closep) Store *store = NULL;
        _cleanup_free_ char *name = NULL, *error = NULL;
        uint64_t limit = REPORT_LIMIT;
        ReportRange range = {};
        int r;

        if (arguments_init(&a, argc, argv, false) < 0)
                return ctl_out_of_memory();
        while ((r = ctl_next_option(ctl, &a, options, ELEMENTSOF(options))) > 0)
                switch (r) {
                case OPTION_LIMIT:
                        if (parse_u64(a.value, 1000000, &limit) < 0)
                                return ctl_fail(CTL_USAGE, "--limit takes a number of rows, 0 for all, not \"%s\"",
                                                a.value);
                        break;
                case OPTION_TARGET:
                        range.target = a.value;
                        break;
                default:
                        return ctl_fail(CTL_USAGE, "report cannot take --%s yet",
                                        r == OPTION_BASELINE ? "baseline" : "html");
                }
        if (r < 0)
                return ctl_option_status(r);
        if (a.n_operands != 1)
                return ctl_fail(CTL_USAGE, "say which period to report: the name of a recording, or START..END");

        r = database_open(ctl, &store, &error);
        if (r < 0)
                return ctl_fail_with(CTL_FAILED, r, error);
        r = store_resolve_range(store, a.operands[0], now_unix_ns(), &range.start_ns, &range.end_ns, &name, &error);
        if (r < 0)
                return ctl_fail_with(r == -ENOENT                              ? CTL_NOTHING
                                                : r == -EINVAL || r == -ERANGE ? CTL_USAGE
                                                                               : CTL_FAILED,
                                r, error);
        range.name = name;
        if (name) {
                r = is_running(store, name, &range.running, &error);
                if (r < 0)
                        return ctl_fail_with(CTL_FAILED, r, error);
        }

        return report_print(ctl, store, &range, limit, stdout);
}
