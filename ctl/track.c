/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* prismctl track and untrack. */
#include "client.h"
#include "json.h"
#include "objects.h"
#include "store/basic/parse.h"
#include "store/basic/text.h"
#include "table.h"

/* The kernel's own limit of pids (PID_MAX_LIMIT). */
#define PID_HIGHEST 4194304

enum {
        OPTION_PID = 1,
        OPTION_CGROUP,
        OPTION_UNIT,
        OPTION_COMMAND,
        OPTION_CONTAINER,
        OPTION_FOLLOW,
        OPTION_DEPTH,
        OPTION_ALL,
};

static const struct {
        int option;
        const char *method, *type;
} methods[] = {
        { OPTION_PID, "TrackProcess", "u" },
        { OPTION_CGROUP, "TrackCgroup", "s" },
        { OPTION_UNIT, "TrackUnit", "s" },
        { OPTION_COMMAND, "TrackCommand", "s" },
};

/* What the command line asks for, in its order. */
typedef struct Wish {
        int option;
        uint32_t pid;
        char *text; /* NULL for a pid */
} Wish;

typedef struct Wishes {
        Wish *items;
        size_t n, capacity;
} Wishes;

static void wishes_done(Wishes *w) {
        for (size_t i = 0; i < w->n; i++)
                free(w->items[i].text);
        free(w->items);
}

static int wishes_add(Wishes *w, int option, uint32_t pid, const char *text) {
        char *copy = NULL;

        if (GROW(w->items, w->n, w->capacity) < 0)
                return -ENOMEM;
        if (text) {
                copy = strdup(text);
                if (!copy)
                        return -ENOMEM;
        }
        w->items[w->n++] = (Wish){ .option = option, .pid = pid, .text = copy };
        return 0;
}

/* "12,34" as one wish each. -EINVAL: *ret_bad (malloc'd) is the part that is not a pid. */
static int wishes_add_pids(Wishes *w, const char *list, char **ret_bad) {
        for (;;) {
                _cleanup_free_ char *word = NULL;
                const char *end = strchrnul(list, ',');
                uint64_t pid;
                int r;

                word = strndup(list, (size_t) (end - list));
                if (!word)
                        return -ENOMEM;
                if (parse_u64(word, PID_HIGHEST, &pid) < 0 || pid == 0) {
                        *ret_bad = TAKE_PTR(word);
                        return -EINVAL;
                }
                r = wishes_add(w, OPTION_PID, (uint32_t) pid, NULL);
                if (r < 0)
                        return r;

                if (*end == '\0')
                        return 0;
                list = end + 1;
        }
}

/* Takes one of the options that name something to follow. An exit code, CTL_DONE if all is well. */
static int take_wish(Wishes *w, int option, const char *value) {
        _cleanup_free_ char *bad = NULL, *unit = NULL;
        int r;

        if (!utf8_is_valid(value))
                return ctl_fail(CTL_USAGE, "\"%s\" is not UTF-8, and only that can be said on the bus", value);

        switch (option) {
        case OPTION_PID:
                r = wishes_add_pids(w, value, &bad);
                if (r == -EINVAL)
                        return ctl_fail(CTL_USAGE, "\"%s\" is not a process id: one is a number from 1 to %d", bad,
                                        PID_HIGHEST);
                return r < 0 ? ctl_out_of_memory() : CTL_DONE;
        case OPTION_CONTAINER:
                return ctl_fail(CTL_USAGE, "--container cannot be used yet: name the container's cgroup with --cgroup");
        case OPTION_CGROUP:
                if (value[0] != '/')
                        return ctl_fail(CTL_USAGE,
                                        "\"%s\" is not the path of a cgroup: it starts with /, below the mount of the "
                                        "cgroups",
                                        value);
                break;
        case OPTION_UNIT:
                if (isempty(value))
                        return ctl_fail(CTL_USAGE, "the name of a unit cannot be empty");
                if (!strchr(value, '.')) {
                        if (asprintf(&unit, "%s.service", value) < 0) {
                                unit = NULL;
                                return ctl_out_of_memory();
                        }
                        value = unit;
                }
                break;
        default:
                if (isempty(value))
                        return ctl_fail(CTL_USAGE, "the pattern of a command cannot be empty");
        }

        return wishes_add(w, option, 0, value) < 0 ? ctl_out_of_memory() : CTL_DONE;
}

static int track(Client *c, const Wish *w, const char *follow, uint32_t depth, char **ret_name, char **ret_path,
                char **ret_error) {
        _cleanup_message_ sd_bus_message *m = NULL, *reply = NULL;
        _cleanup_free_ char *path = NULL;
        const char *object;
        size_t i = 0;
        int r;

        while (methods[i].option != w->option)
                i++;

        r = client_new_call(c, PRISM_PATH, PRISM_INTERFACE_MANAGER, methods[i].method, &m);
        if (r < 0)
                return r;
        r = w->text ? sd_bus_message_append(m, "s", w->text) : sd_bus_message_append(m, "u", w->pid);
        if (r < 0)
                return r;

        r = sd_bus_message_open_container(m, 'a', "{sv}");
        if (r < 0)
                return r;
        if (follow) {
                r = sd_bus_message_append(m, "{sv}", "follow", "s", follow);
                if (r < 0)
                        return r;
        }
        if (depth > 0) {
                r = sd_bus_message_append(m, "{sv}", "depth", "u", depth);
                if (r < 0)
                        return r;
        }
        r = sd_bus_message_close_container(m);
        if (r < 0)
                return r;

        r = client_send(c, m, CLIENT_TIMEOUT_USEC, &reply, ret_error);
        if (r < 0)
                return r;
        r = sd_bus_message_read(reply, "o", &object);
        if (r < 0)
                return r;

        path = strdup(object);
        if (!path)
                return -ENOMEM;
        r = client_get_text(c, path, PRISM_INTERFACE_TARGET, "Name", ret_name, ret_error);
        if (r < 0)
                return r;
        *ret_path = TAKE_PTR(path);
        return 0;
}

static int track_all(const Ctl *ctl, const Wishes *wishes, const char *follow, uint32_t depth) {
        static const TableColumn columns[] = { { "target", "TARGET", false }, { "path", NULL, false } };
        _cleanup_(client_closep) Client *c = NULL;
        _cleanup_(table_freep) Table *t = NULL;
        _cleanup_free_ char *error = NULL;
        int r, status = CTL_DONE;

        r = client_open(ctl, &c, &error);
        if (r < 0)
                return ctl_fail_with(CTL_FAILED, r, error);
        if (table_new(columns, ELEMENTSOF(columns), ctl->json, &t) < 0)
                return ctl_out_of_memory();

        for (size_t i = 0; i < wishes->n; i++) {
                _cleanup_free_ char *name = NULL, *path = NULL, *sentence = NULL;

                r = track(c, wishes->items + i, follow, depth, &name, &path, &sentence);
                if (r < 0) {
                        status = ctl_fail_with(CTL_FAILED, r, sentence);
                        if (r == -ENOTCONN || r == -ETIMEDOUT)
                                break;
                        continue;
                }
                table_row(t);
                table_text(t, name);
                table_text(t, path);
        }

        /* For people and scripts these are just names: no title above them. */
        r = table_print(t, true, stdout);
        return r < 0 ? ctl_fail_with(CTL_FAILED, r, NULL) : status;
}

int verb_track(Ctl *ctl, int argc, char **argv) {
        static const Option options[] = {
                { "pid", OPTION_PID, true },
                { "cgroup", OPTION_CGROUP, true },
                { "unit", OPTION_UNIT, true },
                { "command", OPTION_COMMAND, true },
                { "container", OPTION_CONTAINER, true },
                { "follow", OPTION_FOLLOW, true },
                { "depth", OPTION_DEPTH, true },
        };
        _cleanup_(arguments_done) Arguments a = {};
        _cleanup_(wishes_done) Wishes wishes = {};
        const char *follow = NULL;
        uint64_t depth = 0;
        int r;

        if (arguments_init(&a, argc, argv, false) < 0)
                return ctl_out_of_memory();

        while ((r = ctl_next_option(ctl, &a, options, ELEMENTSOF(options))) > 0)
                switch (r) {
                case OPTION_FOLLOW:
                        follow = a.value;
                        if (!streq(follow, "none") && !streq(follow, "children") && !streq(follow, "peers"))
                                return ctl_fail(CTL_USAGE, "--follow takes none, children or peers, not \"%s\"",
                                                follow);
                        break;
                case OPTION_DEPTH:
                        if (parse_u64(a.value, 100, &depth) < 0 || depth == 0)
                                return ctl_fail(CTL_USAGE, "--depth takes a number from 1 to 100, not \"%s\"", a.value);
                        break;
                default:
                        r = take_wish(&wishes, r, a.value);
                        if (r != CTL_DONE)
                                return r;
                }
        if (r < 0)
                return ctl_option_status(r);

        if (a.n_operands > 0)
                return ctl_fail(CTL_USAGE,
                                "track does not know what \"%s\" is: say --pid, --cgroup, --unit or --command before "
                                "it",
                                a.operands[0]);
        if (wishes.n == 0)
                return ctl_fail(CTL_USAGE, "say what to follow: --pid, --cgroup, --unit or --command");
        if (depth > 0 && (!follow || !streq(follow, "peers")))
                return ctl_fail(CTL_USAGE, "--depth says how far to follow peers: it needs --follow peers");

        return track_all(ctl, &wishes, follow, (uint32_t) depth);
}

static int untrack(Client *c, const Target *t) {
        _cleanup_free_ char *error = NULL;
        int r;

        r = client_call_with_path(c, "Untrack", t->path, CLIENT_TIMEOUT_USEC, &error);
        if (r < 0)
                return ctl_fail_with(r == -ENOENT ? CTL_NOTHING : CTL_FAILED, r, error);
        return CTL_DONE;
}

int verb_untrack(Ctl *ctl, int argc, char **argv) {
        static const Option options[] = { { "all", OPTION_ALL, false } };
        _cleanup_(arguments_done) Arguments a = {};
        _cleanup_(client_closep) Client *c = NULL;
        _cleanup_(targets_done) Targets targets = {};
        _cleanup_free_ char *error = NULL;
        int r, status = CTL_DONE;
        bool all = false;

        if (arguments_init(&a, argc, argv, false) < 0)
                return ctl_out_of_memory();
        while ((r = ctl_next_option(ctl, &a, options, ELEMENTSOF(options))) > 0)
                all = true;
        if (r < 0)
                return ctl_option_status(r);
        if (all == (a.n_operands > 0))
                return ctl_fail(CTL_USAGE,
                                "say which targets to stop following (prismctl targets lists them), or --all");

        r = client_open(ctl, &c, &error);
        if (r < 0)
                return ctl_fail_with(CTL_FAILED, r, error);
        r = targets_read(c, &targets, &error);
        if (r < 0)
                return ctl_fail_with(CTL_FAILED, r, error);

        if (all && targets.n == 0)
                return ctl_fail(CTL_NOTHING, "nothing is followed");
        if (all)
                for (size_t i = 0; i < targets.n; i++)
                        if (untrack(c, targets.items + i) == CTL_FAILED)
                                status = CTL_FAILED;

        for (int i = 0; i < a.n_operands; i++) {
                const Target *t = targets_find(&targets, a.operands[i]);

                r = t ? untrack(c, t)
                      : ctl_fail(CTL_NOTHING, "%s is not a target; prismctl targets lists them", a.operands[i]);
                /* A failure tells more than something that is not there. */
                if (status != CTL_FAILED && r != CTL_DONE)
                        status = r;
        }
        return status;
}
