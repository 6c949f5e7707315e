/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* prismctl status: what works, how much is used, what was lost, what prism itself costs. */
#include <inttypes.h>

#include "client.h"
#include "json.h"
#include "label.h"
#include "signals.h"
#include "store/basic/text.h"
#include "table.h"

static const char *text(json_object *status, const char *key) {
        const char *s = json_get_text(status, key);

        return s ? s : "unknown";
}

static int print_escaped(const char *s) {
        _cleanup_free_ char *safe = text_escape(s);

        if (!safe)
                return -ENOMEM;
        fputs(safe, stdout);
        return 0;
}

static json_object *member(json_object *status, const char *key) {
        json_object *o;

        return json_object_object_get_ex(status, key, &o) && json_object_is_type(o, json_type_object) ? o : NULL;
}

static int print_losses(json_object *status) {
        json_object *losses = member(status, "Losses");
        int r;

        if (!losses || json_object_object_length(losses) == 0) {
                puts("losses:   none since it started");
                return 0;
        }

        json_object_object_foreach(losses, key, value) {
                const char *slash = strchr(key, '/'), *meaning = label_loss(slash ? slash + 1 : key);

                printf("losses:   %" PRIu64 " x ", json_object_get_uint64(value));
                r = print_escaped(key);
                if (r < 0)
                        return r;
                printf("%s%s\n", meaning ? ": " : "", meaning ? meaning : "");
        }
        return 0;
}

static void print_calls(json_object *status) {
        static const struct {
                const char *calls, *words;
        } known[] = {
                { "none", "not recorded now" },
                { "sampled", "recorded for one second in ten" },
                { "full", "recorded" },
        };
        const char *calls = json_get_text(status, "Calls");

        for (size_t i = 0; calls && i < ELEMENTSOF(known); i++)
                if (streq(known[i].calls, calls))
                        printf("calls:    %s, %s\n", calls, known[i].words);
}

static int print_head(json_object *status) {
        char a[64], b[64], c[64];
        uint64_t start_ns = json_get_u64(status, "StartTime"), now_ns = (uint64_t) now_unix_ns();
        uint64_t uptime_ns = now_ns > start_ns ? now_ns - start_ns : 0, cpu_ns = json_get_u64(status, "CpuTime");
        int r;

        fputs("prismd:   version ", stdout);
        r = print_escaped(text(status, "Version"));
        if (r < 0)
                return r;
        printf(", since %s UTC, machine %" PRIu64 ", kernel ", format_moment(a, sizeof(a), (int64_t) start_ns),
                        json_get_u64(status, "MachineId"));
        r = print_escaped(text(status, "Kernel"));
        if (r < 0)
                return r;
        if (streq(text(status, "PidNamespace"), "own"))
                fputs("; it sees only the processes of its own pid namespace", stdout);

        fputs("\nstore:    ", stdout);
        r = print_escaped(text(status, "StorePath"));
        if (r < 0)
                return r;
        printf(", %s, ", format_bytes(a, sizeof(a), json_get_u64(status, "StoreBytes")));
        r = print_escaped(text(status, "StoreState"));
        if (r < 0)
                return r;

        printf("\ntracking: %" PRIu64 " targets, %" PRIu64 " processes, %" PRIu64 " threads; %" PRIu64
               " recordings running\n",
                        json_get_u64(status, "Targets"), json_get_u64(status, "Processes"),
                        json_get_u64(status, "Threads"), json_get_u64(status, "Recordings"));

        print_calls(status);
        printf("cost:     %s of CPU time (%s of one CPU), %s resident", format_duration(a, sizeof(a), cpu_ns),
                        format_share(b, sizeof(b), cpu_ns, uptime_ns),
                        format_bytes(c, sizeof(c), json_get_u64(status, "ResidentBytes")));
        printf(", %s of kernel maps\n", format_bytes(a, sizeof(a), json_get_u64(status, "BpfMapBytes")));

        return print_losses(status);
}

static int print_features(const Ctl *ctl, json_object *status) {
        static const TableColumn columns[] = { { NULL, "PART", false }, { NULL, "STATE", false },
                { NULL, "WHY", false } };
        _cleanup_(table_freep) Table *t = NULL;
        json_object *features = member(status, "Features");
        int r;

        if (!features)
                return 0;
        r = table_new(columns, ELEMENTSOF(columns), false, &t);
        if (r < 0)
                return r;

        json_object_object_foreach(features, key, value) {
                _cleanup_free_ char *state = NULL;
                const char *s = json_object_get_string(value), *why = strstr(s, ": ");

                state = strndup(s, why ? (size_t) (why - s) : strlen(s));
                if (!state)
                        return -ENOMEM;
                table_row(t);
                table_text(t, key);
                table_text(t, state);
                table_text(t, why ? why + 2 : "");
        }

        putchar('\n');
        return table_print(t, ctl->no_legend, stdout);
}

static int print_limits(const Ctl *ctl, json_object *status) {
        static const TableColumn columns[] = {
                { NULL, "LIMIT OF", false },
                { NULL, "USED", true },
                { NULL, "MOST", true },
                { NULL, "SHARE", true },
        };
        _cleanup_(table_freep) Table *t = NULL;
        json_object *limits = member(status, "Limits"), *usage = member(status, "Usage");
        int r;

        if (!limits)
                return 0;
        r = table_new(columns, ELEMENTSOF(columns), false, &t);
        if (r < 0)
                return r;

        json_object_object_foreach(limits, key, value) {
                uint64_t used = usage ? json_get_u64(usage, key) : 0, most = json_object_get_uint64(value);

                table_row(t);
                table_text(t, key);
                table_count(t, used);
                table_count(t, most);
                table_share(t, used, most);
        }

        putchar('\n');
        return table_print(t, ctl->no_legend, stdout);
}

int verb_status(Ctl *ctl, int argc, char **argv) {
        _cleanup_(arguments_done) Arguments a = {};
        _cleanup_(client_closep) Client *c = NULL;
        _cleanup_message_ sd_bus_message *reply = NULL;
        _cleanup_json_ json_object *status = NULL;
        _cleanup_free_ char *error = NULL;
        int r;

        if (arguments_init(&a, argc, argv, false) < 0)
                return ctl_out_of_memory();
        r = ctl_next_option(ctl, &a, NULL, 0);
        if (r < 0)
                return ctl_option_status(r);
        if (a.n_operands > 0)
                return ctl_fail(CTL_USAGE, "status does not take \"%s\"", a.operands[0]);

        r = client_open(ctl, &c, &error);
        if (r < 0)
                return ctl_fail_with(CTL_FAILED, r, error);
        c->no_auto_start = true;

        r = client_call_manager(c, "GetStatus", &reply, &error);
        if (r >= 0)
                r = json_from_message(reply, &status);
        if (r < 0)
                return ctl_fail_with(CTL_FAILED, r, error);

        if (ctl->json) {
                json_print(status, stdout);
                return CTL_DONE;
        }

        r = print_head(status);
        if (r >= 0)
                r = print_features(ctl, status);
        if (r >= 0)
                r = print_limits(ctl, status);
        return r < 0 ? ctl_fail_with(CTL_FAILED, r, NULL) : CTL_DONE;
}
