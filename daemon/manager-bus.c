/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "manager-bus.h"

#include <fcntl.h>
#include <sys/resource.h>

#include "../dbus/names.h"
#include "basic/text.h"
#include "log.h"
#include "names.h"
#include "server.h"

#define KPI_POINTS_MAX 1000000

/* ---- Targets ---- */

static int read_follow_options(
                sd_bus_message *message, enum prism_follow *ret_follow, uint32_t *ret_depth, sd_bus_error *error) {
        const char *follow = "children";
        uint32_t depth = 0;
        const BusOption options[] = {
                { "follow", 's', &follow },
                { "depth", 'u', &depth },
        };
        int r;

        r = bus_read_options(message, options, ELEMENTSOF(options), error);
        if (r < 0)
                return r;
        if (streq(follow, "peers"))
                return sd_bus_error_set(error, PRISM_ERROR_UNSUPPORTED,
                                "this version cannot follow peers yet; follow children, and track the peers by name");
        r = follow_from_name(follow);
        if (r < 0)
                return sd_bus_error_setf(error, PRISM_ERROR_INVALID_ARGS,
                                "\"follow\" is none, children or peers, not \"%s\"", follow);
        if (depth != 0)
                return sd_bus_error_set(
                                error, PRISM_ERROR_INVALID_ARGS, "\"depth\" has a meaning with follow=peers only");
        *ret_follow = (enum prism_follow) r;
        *ret_depth = depth;
        return 0;
}

static int reply_target(sd_bus_message *message, Target *t) {
        _cleanup_free_ char *path = target_path(t);

        return path ? sd_bus_reply_method_return(message, "o", path) : -ENOMEM;
}

static int track(sd_bus_message *message, Manager *m, TargetKind kind, const char *argument, sd_bus_error *error) {
        enum prism_follow follow = PRISM_FOLLOW_CHILDREN;
        uint32_t depth = 0;
        Target *t;
        int r;

        r = read_follow_options(message, &follow, &depth, error);
        if (r < 0)
                return r;
        r = manager_track(m, kind, argument, follow, depth, &t, error);
        if (r < 0)
                return r;
        return reply_target(message, t);
}

static int track_by_name(sd_bus_message *message, Manager *m, TargetKind kind, sd_bus_error *error) {
        const char *argument;
        int r;

        r = sd_bus_message_read(message, "s", &argument);
        return r < 0 ? r : track(message, m, kind, argument, error);
}

static int method_track_process(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        char number[16];
        uint32_t pid;
        int r;

        r = sd_bus_message_read(message, "u", &pid);
        if (r < 0)
                return r;
        if (pid == 0)
                return sd_bus_error_set(error, PRISM_ERROR_INVALID_ARGS, "a process has a number above 0");
        snprintf(number, sizeof(number), "%u", pid);
        return track(message, userdata, TARGET_PROCESS, number, error);
}

static int method_track_cgroup(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        return track_by_name(message, userdata, TARGET_CGROUP, error);
}

static int method_track_unit(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        return track_by_name(message, userdata, TARGET_UNIT, error);
}

static int method_track_command(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        return track_by_name(message, userdata, TARGET_COMMAND, error);
}

static int method_track_container(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        return sd_bus_error_set(error, PRISM_ERROR_UNSUPPORTED,
                        "this version does not know containers by name yet; track the container's cgroup");
}

static int method_untrack(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        Manager *m = userdata;
        void *found = NULL;
        const char *path;
        int r;

        r = sd_bus_message_read(message, "o", &path);
        if (r >= 0)
                r = bus_read_options(message, NULL, 0, error);
        if (r >= 0)
                r = target_find(NULL, path, NULL, m, &found, error);
        if (r < 0)
                return r;
        if (!found)
                return sd_bus_error_setf(error, PRISM_ERROR_NOT_FOUND, "there is no target %s", path);
        r = manager_untrack(m, found, error);
        return r < 0 ? r : sd_bus_reply_method_return(message, NULL);
}

static int reply_paths(sd_bus_message *message, char **paths) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        int r;

        r = sd_bus_message_new_method_return(message, &reply);
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "o");
        for (size_t i = 0; paths && paths[i]; i++) {
                if (r >= 0)
                        r = sd_bus_message_append(reply, "o", paths[i]);
                free(paths[i]);
        }
        free(paths);
        if (r >= 0)
                r = sd_bus_message_close_container(reply);
        return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

static int method_list_targets(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        char **paths = NULL;
        int r;

        r = bus_read_options(message, NULL, 0, error);
        if (r >= 0)
                r = target_enumerate(NULL, NULL, userdata, &paths, error);
        return r < 0 ? r : reply_paths(message, paths);
}

/* ---- Recordings ---- */

/* A call that is answered when the store has answered. */
static void reply_store(sd_bus_message *message, Recording *recording, int r, const char *error, bool with_path) {
        _cleanup_free_ char *path = NULL;

        if (r >= 0 && with_path) {
                path = recording_path(recording);
                r = path ? sd_bus_reply_method_return(message, "o", path) : -ENOMEM;
        } else if (r >= 0)
                r = sd_bus_reply_method_return(message, NULL);
        else
                r = sd_bus_reply_method_errorf(message,
                                r == -EEXIST                   ? PRISM_ERROR_ALREADY_EXISTS
                                                : r == -EINVAL ? PRISM_ERROR_INVALID_ARGS
                                                               : PRISM_ERROR_STORE_FAILED,
                                "%s", error ?: strerror(-r));
        if (r < 0)
                log_debug("cannot answer a client: %s", strerror(-r));
        sd_bus_message_unref(message);
}

static void answer_begin(Recording *recording, int r, const char *error, void *userdata) {
        reply_store(userdata, recording, r, error, true);
}

static void answer_done(Recording *recording, int r, const char *error, void *userdata) {
        reply_store(userdata, recording, r, error, false);
}

static int method_start_recording(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        const char *name, *calls = NULL;
        uint64_t duration = 0;
        const BusOption options[] = {
                { "duration", 't', &duration },
                { "calls", 's', &calls },
        };
        Manager *m = userdata;
        int r;

        r = sd_bus_message_read(message, "s", &name);
        if (r >= 0)
                r = bus_read_options(message, options, ELEMENTSOF(options), error);
        if (r < 0)
                return r;
        if (!calls)
                calls = calls_mode_name(probes_can_count_calls(m->probes) ? CALLS_SAMPLED : CALLS_NONE);
        else if (calls_mode_from_name(calls) < 0)
                return sd_bus_error_setf(error, PRISM_ERROR_INVALID_ARGS,
                                "\"calls\" is none, sampled or full, not \"%s\"", calls);
        else if (!streq(calls, "none") && !probes_can_count_calls(m->probes))
                return sd_bus_error_set(error, PRISM_ERROR_UNSUPPORTED,
                                "this kernel cannot count system calls; leave \"calls\" out or say none, and see "
                                "prismctl status for the reason");
        if (duration > 3650ULL * 24 * 3600 * NSEC_PER_SEC)
                return sd_bus_error_set(error, PRISM_ERROR_INVALID_ARGS,
                                "\"duration\" is in nanoseconds and at most ten years");

        r = manager_record_start(m, name, calls, duration, answer_begin, message, error);
        if (r < 0)
                return r;
        sd_bus_message_ref(message);
        return 1;
}

static int find_recording(sd_bus_message *message, Manager *m, Recording **ret, sd_bus_error *error) {
        void *found = NULL;
        const char *path;
        int r;

        r = sd_bus_message_read(message, "o", &path);
        if (r >= 0)
                r = bus_read_options(message, NULL, 0, error);
        if (r >= 0)
                r = recording_find(NULL, path, NULL, m, &found, error);
        if (r < 0)
                return r;
        if (!found)
                return sd_bus_error_setf(error, PRISM_ERROR_NOT_FOUND, "there is no recording %s", path);
        *ret = found;
        return 0;
}

/* A call about one recording that is answered when the store has answered. */
static int act_on_recording(sd_bus_message *message, Manager *m,
                int (*act)(Manager *m, Recording *recording, recorder_answer answer, void *userdata,
                                sd_bus_error *error),
                sd_bus_error *error) {
        Recording *recording = NULL;
        int r;

        r = find_recording(message, m, &recording, error);
        if (r >= 0)
                r = act(m, recording, answer_done, message, error);
        if (r < 0)
                return r;
        sd_bus_message_ref(message);
        return 1;
}

static int method_stop_recording(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        return act_on_recording(message, userdata, manager_record_stop, error);
}

static int method_delete_recording(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        return act_on_recording(message, userdata, manager_record_delete, error);
}

static int method_keep_recording(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        return sd_bus_error_set(error, PRISM_ERROR_UNSUPPORTED,
                        "this version has no flight recorder to keep anything from; start a recording while it "
                        "happens");
}

static int read_kpi_points(sd_bus_message *message, StoreKpi **ret, size_t *ret_n, sd_bus_error *error) {
        _cleanup_free_ StoreKpi *points = NULL;
        size_t n = 0, capacity = 0;
        uint64_t ts;
        double value;
        int r;

        r = sd_bus_message_enter_container(message, 'a', "(td)");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_read(message, "(td)", &ts, &value)) > 0) {
                if (n == KPI_POINTS_MAX)
                        return sd_bus_error_setf(error, PRISM_ERROR_LIMIT_REACHED,
                                        "at most %d points can be added at a time; send the rest in another call",
                                        KPI_POINTS_MAX);
                if (ts == 0 || ts > INT64_MAX)
                        return sd_bus_error_setf(error, PRISM_ERROR_INVALID_ARGS,
                                        "point %zu is not at a time in nanoseconds since 1970", n + 1);
                if (GROW(points, n, capacity) < 0)
                        return -ENOMEM;
                points[n++] = (StoreKpi){ (int64_t) ts, value };
        }
        if (r < 0)
                return r;
        if (n == 0)
                return sd_bus_error_set(error, PRISM_ERROR_INVALID_ARGS, "there is no point to add");
        *ret = TAKE_PTR(points);
        *ret_n = n;
        return sd_bus_message_exit_container(message);
}

static int method_add_kpi(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        _cleanup_free_ StoreKpi *points = NULL;
        Manager *m = userdata;
        const char *name;
        size_t n = 0;
        int r;

        r = sd_bus_message_read(message, "s", &name);
        if (r >= 0)
                r = read_kpi_points(message, &points, &n, error);
        if (r >= 0)
                r = bus_read_options(message, NULL, 0, error);
        if (r < 0)
                return r;
        if (!recording_name_is_valid(name))
                return sd_bus_error_set(error, PRISM_ERROR_INVALID_ARGS,
                                "this cannot be an indicator's name: 1 to 200 bytes of UTF-8 without control "
                                "characters or slashes, "
                                "not starting with a dash or dot");
        r = recorder_add_kpi(m->recorder, name, points, n, answer_done, message);
        if (r < 0)
                return r;
        sd_bus_message_ref(message);
        return 1;
}

static int method_list_recordings(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        char **paths = NULL;
        int r;

        r = bus_read_options(message, NULL, 0, error);
        if (r >= 0)
                r = recording_enumerate(NULL, NULL, userdata, &paths, error);
        return r < 0 ? r : reply_paths(message, paths);
}

/* ---- Status ---- */

static int append_features(sd_bus_message *reply, Manager *m) {
        const Part *parts;
        size_t n;
        int r;

        parts = probes_parts(m->probes, &n);
        r = sd_bus_message_open_container(reply, 'a', "{ss}");
        for (size_t i = 0; i < n && r >= 0; i++) {
                char text[sizeof(parts[i].reason) + 32];

                if (parts[i].state == PART_OK)
                        snprintf(text, sizeof(text), "ok");
                else
                        snprintf(text, sizeof(text), "%s: %s",
                                        parts[i].state == PART_DEGRADED ? "degraded" : "unavailable", parts[i].reason);
                r = sd_bus_message_append(reply, "{ss}", parts[i].name, text);
        }
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

/* Opens and closes a dictionary entry whose value is not a basic type, around what append_* write. */
static int entry_open(sd_bus_message *reply, const char *key, const char *type) {
        int r;

        r = sd_bus_message_open_container(reply, 'e', "sv");
        if (r >= 0)
                r = sd_bus_message_append(reply, "s", key);
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'v', type);
        return r;
}

static int entry_close(sd_bus_message *reply) {
        int r;

        r = sd_bus_message_close_container(reply);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

static uint64_t cpu_time_ns(void) {
        struct rusage usage;

        if (getrusage(RUSAGE_SELF, &usage) < 0)
                return 0;
        return ((uint64_t) usage.ru_utime.tv_sec + (uint64_t) usage.ru_stime.tv_sec) * NSEC_PER_SEC +
                        ((uint64_t) usage.ru_utime.tv_usec + (uint64_t) usage.ru_stime.tv_usec) * NSEC_PER_USEC;
}

static uint64_t resident_bytes(void) {
        _cleanup_fclose_ FILE *f = fopen("/proc/self/statm", "re");
        unsigned long pages = 0;

        if (!f || fscanf(f, "%*u %lu", &pages) != 1)
                return 0;
        return (uint64_t) pages * (uint64_t) sysconf(_SC_PAGESIZE);
}

static int append_limits(sd_bus_message *reply, Manager *m) {
        Registry *registry = collector_registry(m->collector);
        unsigned recordings = 0;
        int r;

        for (Recording *recording = recorder_recordings(m->recorder); recording; recording = recording->next)
                recordings++;
        r = entry_open(reply, "Limits", "a{st}");
        if (r >= 0)
                r = sd_bus_message_append(reply, "a{st}", 8, "targets", (uint64_t) m->config.targets, "threads",
                                (uint64_t) m->config.threads, "processes", (uint64_t) m->config.processes, "resources",
                                (uint64_t) m->config.resources, "recordings", (uint64_t) m->config.recordings, "queue",
                                (uint64_t) recorder_queue_limit(), "connections", (uint64_t) m->config.connections,
                                "log", (uint64_t) (2 * LOG_LINES_MAX));
        if (r >= 0)
                r = entry_close(reply);
        if (r >= 0)
                r = entry_open(reply, "Usage", "a{st}");
        if (r >= 0)
                r = sd_bus_message_append(reply, "a{st}", 8, "targets", (uint64_t) m->n_targets, "threads",
                                (uint64_t) (m->config.threads - probes_free_slots(m->probes)), "processes",
                                (uint64_t) registry_n_known_processes(registry), "resources",
                                (uint64_t) registry_n_resources(registry), "recordings", (uint64_t) recordings, "queue",
                                (uint64_t) recorder_queue_length(m->recorder), "connections",
                                (uint64_t) server_n_connections(m->server), "log",
                                (uint64_t) log_lines(LOG_INFO) + log_lines(LOG_WARNING));
        return r < 0 ? r : entry_close(reply);
}

static int append_losses(sd_bus_message *reply, Manager *m) {
        const Losses *losses = collector_losses(m->collector);
        int r;

        r = entry_open(reply, "Losses", "a{st}");
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "{st}");
        for (size_t i = 0; i < losses->n && r >= 0; i++) {
                char key[128];

                snprintf(key, sizeof(key), "%s/%s", losses->entries[i].part, losses->entries[i].reason);
                r = sd_bus_message_append(reply, "{st}", key, losses->entries[i].total);
        }
        if (r >= 0)
                r = sd_bus_message_close_container(reply);
        return r < 0 ? r : entry_close(reply);
}

static int method_get_status(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        Manager *m = userdata;
        Registry *registry = collector_registry(m->collector);
        int r;

        r = bus_read_options(message, NULL, 0, error);
        if (r >= 0)
                r = sd_bus_message_new_method_return(message, &reply);
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "{sv}");
        if (r >= 0)
                r = sd_bus_message_append(reply, "{sv}{sv}{sv}{sv}{sv}{sv}{sv}{sv}", "Version", "s", PRISM_VERSION,
                                "MachineId", "u", m->machine.id, "BootId", "s", m->boot_id, "Kernel", "s", m->kernel,
                                "StorePath", "s", m->database, "StoreBytes", "t", recorder_store_bytes(m->recorder),
                                "StoreState", "s", recorder_store_state(m->recorder), "StartTime", "t",
                                (uint64_t) m->start_ns);
        if (r >= 0)
                r = sd_bus_message_append(reply, "{sv}", "Calls", "s", calls_mode_name(recorder_calls(m->recorder)));
        if (r >= 0)
                r = sd_bus_message_append(reply, "{sv}{sv}{sv}{sv}{sv}{sv}{sv}{sv}", "CpuTime", "t", cpu_time_ns(),
                                "BpfMapBytes", "t", probes_map_bytes(m->probes), "ResidentBytes", "t", resident_bytes(),
                                "Targets", "u", (uint32_t) m->n_targets, "Processes", "u",
                                (uint32_t) registry_n_processes(registry), "Threads", "u",
                                (uint32_t) registry_n_threads(registry), "Recordings", "u",
                                (uint32_t) recorder_n_running(m->recorder), "PidNamespace", "s",
                                probes_in_own_pid_namespace(m->probes) ? "own" : "host");
        if (r >= 0)
                r = entry_open(reply, "Features", "a{ss}");
        if (r >= 0)
                r = append_features(reply, m);
        if (r >= 0)
                r = entry_close(reply);
        if (r >= 0)
                r = append_limits(reply, m);
        if (r >= 0)
                r = append_losses(reply, m);
        if (r >= 0)
                r = sd_bus_message_close_container(reply);
        return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

static void answer_snapshot(int r, int fd, const char *error, void *userdata) {
        sd_bus_message *message = userdata;

        if (r >= 0)
                r = sd_bus_reply_method_return(message, "h", fd);
        else
                r = sd_bus_reply_method_errorf(message, PRISM_ERROR_STORE_FAILED,
                                "cannot make an image of the last minute: %s", error ?: strerror(-r));
        if (r < 0)
                log_debug("cannot answer a client: %s", strerror(-r));
        if (fd >= 0)
                close(fd);
        sd_bus_message_unref(message);
}

static int method_get_snapshot(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        int r;

        r = bus_read_options(message, NULL, 0, error);
        if (r >= 0)
                r = manager_snapshot(userdata, answer_snapshot, message, error);
        if (r < 0)
                return r;
        sd_bus_message_ref(message);
        return 1;
}

/* ---- Properties ---- */

static int get_version(sd_bus *bus, const char *path, const char *interface, const char *property,
                sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        return sd_bus_message_append(reply, "s", PRISM_VERSION);
}

static int get_features(sd_bus *bus, const char *path, const char *interface, const char *property,
                sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        return append_features(reply, userdata);
}

static int get_tracking(sd_bus *bus, const char *path, const char *interface, const char *property,
                sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        Manager *m = userdata;

        return sd_bus_message_append(reply, "b", m->targets != NULL);
}

static int get_recording(sd_bus *bus, const char *path, const char *interface, const char *property,
                sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        Manager *m = userdata;

        return sd_bus_message_append(reply, "b", recorder_is_recording(m->recorder));
}

static const sd_bus_vtable manager_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD_WITH_ARGS("TrackProcess", SD_BUS_ARGS("u", pid, "a{sv}", options), SD_BUS_RESULT("o", target),
                        method_track_process, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("TrackCgroup", SD_BUS_ARGS("s", path, "a{sv}", options), SD_BUS_RESULT("o", target),
                        method_track_cgroup, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("TrackUnit", SD_BUS_ARGS("s", unit, "a{sv}", options), SD_BUS_RESULT("o", target),
                        method_track_unit, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("TrackCommand", SD_BUS_ARGS("s", pattern, "a{sv}", options), SD_BUS_RESULT("o", target),
                        method_track_command, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("TrackContainer", SD_BUS_ARGS("s", name, "a{sv}", options), SD_BUS_RESULT("o", target),
                        method_track_container, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Untrack", SD_BUS_ARGS("o", target, "a{sv}", options), SD_BUS_NO_RESULT, method_untrack,
                        SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("StartRecording", SD_BUS_ARGS("s", name, "a{sv}", options),
                        SD_BUS_RESULT("o", recording), method_start_recording, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("StopRecording", SD_BUS_ARGS("o", recording, "a{sv}", options), SD_BUS_NO_RESULT,
                        method_stop_recording, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("KeepRecording", SD_BUS_ARGS("s", name, "t", start, "t", end, "a{sv}", options),
                        SD_BUS_RESULT("o", recording), method_keep_recording, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("AddKpi", SD_BUS_ARGS("s", name, "a(td)", points, "a{sv}", options), SD_BUS_NO_RESULT,
                        method_add_kpi, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("DeleteRecording", SD_BUS_ARGS("o", recording, "a{sv}", options), SD_BUS_NO_RESULT,
                        method_delete_recording, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ListTargets", SD_BUS_ARGS("a{sv}", options), SD_BUS_RESULT("ao", targets),
                        method_list_targets, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("ListRecordings", SD_BUS_ARGS("a{sv}", options), SD_BUS_RESULT("ao", recordings),
                        method_list_recordings, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("GetStatus", SD_BUS_ARGS("a{sv}", options), SD_BUS_RESULT("a{sv}", status),
                        method_get_status, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("GetSnapshot", SD_BUS_ARGS("a{sv}", options), SD_BUS_RESULT("h", image),
                        method_get_snapshot, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_PROPERTY("Version", "s", get_version, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("MachineId", "u", NULL, offsetof(Manager, machine.id), SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Features", "a{ss}", get_features, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("StorePath", "s", NULL, offsetof(Manager, database), SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Tracking", "b", get_tracking, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("Recording", "b", get_recording, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_SIGNAL_WITH_ARGS("ProcessFound", SD_BUS_ARGS("o", target, "u", pid, "s", comm), 0),
        SD_BUS_SIGNAL_WITH_ARGS("ProcessGone", SD_BUS_ARGS("o", target, "u", pid, "s", comm), 0),
        SD_BUS_SIGNAL_WITH_ARGS("LossReported", SD_BUS_ARGS("s", part, "s", reason, "t", count), 0),
        SD_BUS_VTABLE_END,
};

int manager_bus_install(Manager *m, sd_bus *bus) {
        int r;

        r = sd_bus_add_object_vtable(bus, NULL, PRISM_PATH, PRISM_INTERFACE_MANAGER, manager_vtable, m);
        if (r >= 0)
                r = sd_bus_add_fallback_vtable(
                                bus, NULL, PRISM_TARGET_PREFIX, PRISM_INTERFACE_TARGET, target_vtable, target_find, m);
        if (r >= 0)
                r = sd_bus_add_node_enumerator(bus, NULL, PRISM_TARGET_PREFIX, target_enumerate, m);
        if (r >= 0)
                r = sd_bus_add_fallback_vtable(bus, NULL, PRISM_RECORDING_PREFIX, PRISM_INTERFACE_RECORDING,
                                recording_vtable, recording_find, m);
        if (r >= 0)
                r = sd_bus_add_node_enumerator(bus, NULL, PRISM_RECORDING_PREFIX, recording_enumerate, m);
        if (r >= 0)
                r = sd_bus_add_object_manager(bus, NULL, PRISM_PATH);
        return r;
}

/* ---- Signals ---- */

/* What to send, to each connection. A client that cannot take it is not our trouble. */
typedef struct Emission {
        const char *path, *interface, *property;
        const char *signal;
        const char *s1, *s2;
        uint32_t u;
        uint64_t t;
} Emission;

static void send_process(sd_bus *bus, void *userdata) {
        const Emission *e = userdata;

        (void) sd_bus_emit_signal(bus, PRISM_PATH, PRISM_INTERFACE_MANAGER, e->signal, "ous", e->path, e->u, e->s1);
}

static void send_loss(sd_bus *bus, void *userdata) {
        const Emission *e = userdata;

        (void) sd_bus_emit_signal(bus, PRISM_PATH, PRISM_INTERFACE_MANAGER, "LossReported", "sst", e->s1, e->s2, e->t);
}

static void send_added(sd_bus *bus, void *userdata) {
        (void) sd_bus_emit_object_added(bus, userdata);
}

static void send_removed(sd_bus *bus, void *userdata) {
        (void) sd_bus_emit_object_removed(bus, userdata);
}

static void send_changed(sd_bus *bus, void *userdata) {
        const Emission *e = userdata;

        (void) sd_bus_emit_properties_changed(bus, e->path, e->interface, e->property, NULL);
}

static void property_changed(Manager *m, const char *path, const char *interface, const char *property) {
        server_for_each_bus(m->server, send_changed,
                        &(Emission){ .path = path, .interface = interface, .property = property });
}

void manager_bus_process(Manager *m, const Target *t, const Process *p, bool found) {
        _cleanup_free_ char *path = target_path(t), *comm = text_to_utf8(p->comm);

        if (path && comm)
                server_for_each_bus(m->server, send_process,
                                &(Emission){
                                                .path = path,
                                                .signal = found ? "ProcessFound" : "ProcessGone",
                                                .u = p->pid,
                                                .s1 = comm,
                                });
}

void manager_bus_loss(Manager *m, const char *part, const char *reason, uint64_t count) {
        server_for_each_bus(m->server, send_loss, &(Emission){ .s1 = part, .s2 = reason, .t = count });
}

void manager_bus_target_added(Manager *m, Target *t) {
        _cleanup_free_ char *path = target_path(t);

        if (path)
                server_for_each_bus(m->server, send_added, path);
        if (m->n_targets == 1)
                property_changed(m, PRISM_PATH, PRISM_INTERFACE_MANAGER, "Tracking");
}

void manager_bus_target_removed(Manager *m, Target *t) {
        _cleanup_free_ char *path = target_path(t);

        if (path)
                server_for_each_bus(m->server, send_removed, path);
        if (m->n_targets == 0)
                property_changed(m, PRISM_PATH, PRISM_INTERFACE_MANAGER, "Tracking");
}

void manager_bus_recording_changed(Manager *m, Recording *recording) {
        _cleanup_free_ char *path = recording_path(recording);

        if (path && recording->state == RECORDING_RUNNING)
                server_for_each_bus(m->server, send_added, path);
        else if (path) {
                property_changed(m, path, PRISM_INTERFACE_RECORDING, "State");
                property_changed(m, path, PRISM_INTERFACE_RECORDING, "EndTime");
        }
        property_changed(m, PRISM_PATH, PRISM_INTERFACE_MANAGER, "Recording");
}

void manager_bus_recording_removed(Manager *m, Recording *recording) {
        _cleanup_free_ char *path = recording_path(recording);

        if (path && recording->id)
                server_for_each_bus(m->server, send_removed, path);
}
