/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "manager.h"

#include <signal.h>
#include <sys/resource.h>
#include <systemd/sd-daemon.h>

#include "basic/text.h"
#include "describe.h"
#include "../dbus/names.h"
#include "log.h"
#include "manager-bus.h"
#include "messages.h"
#include "proc.h"
#include "server.h"

#define TICK_USEC USEC_PER_SEC
/* States in flight are written out at least so often, so that no row is much longer. */
#define FLUSH_EVERY_NS (60 * NSEC_PER_SEC)
/* Rare events are looked at this long after the first of a burst. */
#define SCAN_DELAY_USEC (5 * 1000)
/* Command patterns also match names that a process gives itself: all of /proc is read so often. */
#define RESCAN_EVERY_TICKS 10
#define RLIMIT_FILES 65536
#define DESCENDANTS_DEPTH_MAX 64
#define REPAIRS_PER_FLUSH 256
#define RELEASE_TRIES_MAX 20

/* ---- Collecting ---- */

static void live_trim(Manager *m, uint64_t now, size_t more_bytes) {
        while (m->n_live > 0 &&
                        (m->n_live == LIVE_BATCHES_MAX || m->live_bytes + more_bytes > LIVE_BYTES_MAX ||
                                        m->live[m->first_live].boundary_ns + LIVE_NS < now)) {
                Batch *oldest = m->live[m->first_live].batch;

                m->live_bytes -= batch_bytes(oldest);
                batch_unref(oldest);
                m->first_live = (m->first_live + 1) % LIVE_BATCHES_MAX;
                m->n_live--;
        }
}

static void live_push(Manager *m, Batch *b, uint64_t boundary) {
        unsigned i;

        live_trim(m, boundary, batch_bytes(b));
        if (batch_is_empty(b))
                return;
        i = (m->first_live + m->n_live) % LIVE_BATCHES_MAX;
        m->live[i].batch = batch_ref(b);
        m->live[i].boundary_ns = boundary;
        m->n_live++;
        m->live_bytes += batch_bytes(b);
}

static void report_losses(Manager *m, const Batch *b) {
        for (size_t i = 0; i < b->n_losses; i++)
                manager_bus_loss(m, b->losses[i].part, b->losses[i].reason, b->losses[i].count);
}

/* Once for each step, not for the drift that clock discipline brings about. */
static void report_clock(Manager *m) {
        int64_t held = collector_clock(m->collector)->held_ns;

        if (llabs(held - m->clock_held_ns) < (int64_t) NSEC_PER_SEC)
                return;
        m->clock_held_ns = held;
        if (held)
                log_warning("the system's clock was set %s by %lld s; what is being recorded keeps the time of before "
                            "until no "
                            "recording runs",
                                held > 0 ? "forward" : "back", (long long) llabs(held) / (long long) NSEC_PER_SEC);
}

int manager_collect(Manager *m, bool flush, uint64_t *ret_boundary_ns) {
        _cleanup_(batch_unrefp) Batch *live = NULL, *recorded = NULL;
        uint64_t boundary;
        int r;

        r = collector_tick(m->collector, flush, recorder_is_recording(m->recorder), &live, &recorded, &boundary);
        if (r < 0) {
                log_error("cannot collect what the kernel side measured: %s", strerror(-r));
                return r;
        }
        report_clock(m);
        if (flush)
                m->last_flush_ns = boundary;
        live_push(m, live, boundary);
        report_losses(m, live);
        if (recorder_is_recording(m->recorder))
                recorder_give(m->recorder, recorded);
        if (ret_boundary_ns)
                *ret_boundary_ns = boundary;
        return 0;
}

static bool on_wanted(uint64_t from, uint64_t until, void *userdata) {
        Manager *m = userdata;

        return recorder_wanted(m->recorder, from, until);
}

static uint64_t on_epoch(void *userdata) {
        Manager *m = userdata;

        return recorder_epoch(m->recorder);
}

/* ---- Targets ---- */

Target *manager_target(Manager *m, uint32_t number) {
        for (Target *t = m->targets; t; t = t->next)
                if (t->number == number)
                        return t;
        return NULL;
}

static void update_active(Manager *m) {
        bool commands = false;

        for (Target *t = m->targets; t; t = t->next)
                commands = commands || t->kind == TARGET_COMMAND;
        probes_set_active(m->probes, m->targets, commands);
}

static void on_process_found(Process *p, Process *parent, const struct prism_thread_info *info, void *userdata) {
        Manager *m = userdata;
        Target *t;

        if (parent)
                for (size_t i = 0; i < parent->n_targets; i++) {
                        t = manager_target(m, parent->targets[i]);
                        if (t && t->follow >= PRISM_FOLLOW_CHILDREN)
                                (void) process_add_target(p, t->number);
                }
        if (p->n_targets == 0 && manager_target(m, info->target))
                (void) process_add_target(p, info->target);
        t = p->n_targets > 0 ? manager_target(m, p->targets[0]) : NULL;
        if (t)
                process_set_text(&p->target, t->name);
        log_debug("following process %u (%s) for %s", p->pid, p->comm, t ? t->name : "no target");
        for (size_t i = 0; i < p->n_targets; i++) {
                t = manager_target(m, p->targets[i]);
                if (t)
                        manager_bus_process(m, t, p, true);
        }
}

static bool target_has_processes(Manager *m, const Target *t) {
        for (Process *p = registry_processes(collector_registry(m->collector)); p; p = p->hh.next)
                if (p->live_threads > 0 && process_in_target(p, t->number))
                        return true;
        return false;
}

static void target_link(Manager *m, Target *t) {
        Target **end = &m->targets;

        while (*end)
                end = &(*end)->next;
        *end = t;
        t->manager = m;
        m->n_targets++;
        update_active(m);
}

static void target_unlink(Manager *m, Target *t) {
        for (Target **p = &m->targets; *p; p = &(*p)->next)
                if (*p == t) {
                        *p = t->next;
                        break;
                }
        m->n_targets--;
        update_active(m);
}

static void target_remove(Manager *m, Target *t) {
        target_unlink(m, t);
        manager_bus_target_removed(m, t);
        log_event(LOG_INFO, &(LogFields){ .id = PRISM_MESSAGE_TARGET_REMOVED, .target = t->name, .pid = t->pid },
                        "no longer following %s", t->name);
        target_free(t);
}

/* A process target ends with its last process; the others wait for new ones. */
static void remove_ended_targets(Manager *m) {
        Target *next;

        for (Target *t = m->targets; t; t = next) {
                next = t->next;
                if (t->kind == TARGET_PROCESS && !target_has_processes(m, t))
                        target_remove(m, t);
        }
}

static void on_process_gone(Process *p, void *userdata) {
        Manager *m = userdata;

        for (size_t i = 0; i < p->n_targets; i++) {
                Target *t = manager_target(m, p->targets[i]);

                if (t)
                        manager_bus_process(m, t, p, false);
        }
}

/* The most that any target of a process asks for, and one of them to name it after. */
static enum prism_follow follow_of(Manager *m, const Process *p, uint32_t *ret_target) {
        enum prism_follow follow = PRISM_FOLLOW_NONE;

        for (size_t i = 0; i < p->n_targets; i++) {
                const Target *t = manager_target(m, p->targets[i]);

                if (!t)
                        continue;
                if (i == 0 || t->follow > follow)
                        *ret_target = t->number;
                follow = MAX(follow, t->follow);
        }
        return follow;
}

/* Releases processes that no target wants: those of a target that went, and what they forked meanwhile. Returns how many. */
static unsigned release_orphans(Manager *m, uint64_t boundary) {
        unsigned n = 0;

        for (Process *p = registry_processes(collector_registry(m->collector)); p; p = p->hh.next) {
                int r;

                if (p->live_threads == 0 || p->n_targets > 0)
                        continue;
                r = probes_unmark(m->probes, (uint32_t) p->identity.number);
                if (r < 0) {
                        log_warning("cannot release process %u: %s", p->pid, strerror(-r));
                        continue;
                }
                collector_forget_process(m->collector, p, boundary);
                n++;
        }
        return n;
}

typedef struct Follow {
        Manager *manager;
        Target *target;
        unsigned depth;  /* of descendants */
        uint64_t parent; /* key of the process whose children these are, 0 for the target's own */
        unsigned found, refused;
} Follow;

/* Brings a process into a target, and, if that follows children, those it has. Returns 0 also when it cannot be had; counts
 * in Follow tell. */
static int follow_process(uint32_t pid, void *userdata) {
        Follow *f = userdata;
        Manager *m = f->manager;
        Registry *registry = collector_registry(m->collector);
        Process *p = registry_process_by_pid(registry, pid);
        enum prism_follow follow = f->target->follow;
        uint32_t target = f->target->number;
        ProcStatus status;
        int r;

        if (p && process_in_target(p, f->target->number))
                return 0;
        if (proc_status(pid, &status) < 0 || status.kernel_thread)
                return 0;
        if (!p && status.threads > probes_free_slots(m->probes)) {
                f->refused++;
                return 0;
        }
        if (p) {
                r = process_add_target(p, f->target->number);
                if (r < 0)
                        return r;
                follow = follow_of(m, p, &target);
        }
        r = probes_mark(m->probes, pid, follow, target);
        if (r < 0)
                return r;
        if (r > 0)
                collector_scan(m->collector);
        f->found += p || r > 0;
        if (f->parent && !p) {
                p = registry_process_by_pid(registry, pid);
                if (p) {
                        p->found_by = "child";
                        p->found_from = f->parent;
                        p->described = 0;
                }
        }
        p = registry_process_by_pid(registry, pid);
        if (p && f->target->follow >= PRISM_FOLLOW_CHILDREN && f->depth < DESCENDANTS_DEPTH_MAX) {
                uint64_t parent = f->parent;

                f->parent = p->key;
                f->depth++;
                r = proc_for_each_child(pid, follow_process, f);
                f->depth--;
                f->parent = parent;
        }
        return r < 0 ? r : 0;
}

/* Brings a process into the command targets whose pattern its name matches. */
static int follow_command(uint32_t pid, void *userdata) {
        _cleanup_free_ char *argv0 = NULL;
        Manager *m = userdata;
        ProcStatus status;

        if (proc_status(pid, &status) < 0 || status.kernel_thread)
                return 0;
        argv0 = proc_argv0_name(pid);
        for (Target *t = m->targets; t; t = t->next) {
                Follow f = { .manager = m, .target = t };
                int r;

                if (t->kind != TARGET_COMMAND || !target_matches(t, status.comm, argv0))
                        continue;
                r = follow_process(pid, &f);
                if (r < 0)
                        return r;
                losses_count(collector_losses(m->collector), "collector", "thread-limit", f.refused);
        }
        return 0;
}

static void rescan_targets(Manager *m, bool slow) {
        bool commands = false;
        int r;

        for (Target *t = m->targets; t; t = t->next) {
                Follow f = { .manager = m, .target = t };

                commands = commands || t->kind == TARGET_COMMAND;
                if (!target_is_open(t) || t->kind == TARGET_COMMAND)
                        continue;
                r = target_for_each_process(t, follow_process, &f);
                if (r < 0)
                        log_warning("cannot look for new processes of %s: %s", t->name, strerror(-r));
                losses_count(collector_losses(m->collector), "collector", "thread-limit", f.refused);
        }
        if (commands && slow) {
                r = proc_for_each(follow_command, m);
                if (r < 0)
                        log_warning("cannot look for new processes of command patterns: %s", strerror(-r));
        }
}

/* What iterators and creation missed: threads of tracked processes that are not tracked themselves. */
static void repair_marks(Manager *m) {
        unsigned n = 0;

        for (Process *p = registry_processes(collector_registry(m->collector)); p && n < REPAIRS_PER_FLUSH;
                        p = p->hh.next) {
                uint32_t target = 0;
                int r;

                if (p->live_threads == 0 || p->n_targets == 0 || p->pid == 0)
                        continue;
                n++;
                r = probes_mark(m->probes, p->pid, follow_of(m, p, &target), target);
                if (r > 0)
                        losses_count(collector_losses(m->collector), "collector", "thread-found-late", (uint64_t) r);
        }
}

/* A process executed a new image: it may be one that a target waits for. */
static void on_event(const struct prism_event *event, void *userdata) {
        if (event->kind == PRISM_EVENT_EXEC && event->user_tgid != 0)
                (void) follow_command(event->user_tgid, userdata);
}

int manager_track(Manager *m, TargetKind kind, const char *argument, enum prism_follow follow, uint32_t depth,
                Target **ret, sd_bus_error *error) {
        _cleanup_free_ char *name = NULL, *sentence = NULL;
        _cleanup_(target_freep) Target *t = NULL;
        Follow f = { .manager = m };
        int r;

        name = target_make_name(kind, argument);
        if (!name)
                return -ENOMEM;
        for (Target *other = m->targets; other; other = other->next)
                if (streq(other->name, name))
                        return sd_bus_error_setf(error, PRISM_ERROR_ALREADY_TRACKED,
                                        "%s is tracked already; untrack it first to change how it is followed", name);
        if (m->n_targets >= m->config.targets)
                return sd_bus_error_setf(error, PRISM_ERROR_LIMIT_REACHED,
                                "%u targets are tracked, which is the limit; untrack one, or raise Targets= in "
                                "prismd.conf",
                                m->n_targets);

        r = target_new(kind, argument, follow, depth, &t, &sentence);
        if (r == -ENOENT && kind == TARGET_CGROUP)
                return sd_bus_error_setf(error, PRISM_ERROR_NO_SUCH_CGROUP,
                                "there is no cgroup %s; give its path below the cgroup mount, as /proc/PID/cgroup "
                                "shows it",
                                argument);
        if (r == -ENOENT)
                return sd_bus_error_setf(error, PRISM_ERROR_NO_SUCH_UNIT,
                                "no unit %s is running; start it, or check its name with systemctl", argument);
        if (r == -EINVAL)
                return sd_bus_error_setf(error, PRISM_ERROR_INVALID_ARGS, "cannot track this %s: %s",
                                target_kind_name(kind), sentence ?: "bad name");
        if (r < 0)
                return r;

        if (kind == TARGET_PROCESS) {
                ProcStatus status;

                r = proc_status(t->pid, &status);
                if (r < 0)
                        return sd_bus_error_setf(error, PRISM_ERROR_NO_SUCH_PROCESS, "there is no process %u", t->pid);
                if (status.ended)
                        return sd_bus_error_setf(error, PRISM_ERROR_NO_SUCH_PROCESS,
                                        "process %u (%s) has ended; only its parent has not taken note yet", t->pid,
                                        status.comm);
                if (status.kernel_thread)
                        return sd_bus_error_setf(error, PRISM_ERROR_UNSUPPORTED,
                                        "%u (%s) is a kernel thread; prism follows user processes only", t->pid,
                                        status.comm);
                if (status.tgid != t->pid)
                        return sd_bus_error_setf(error, PRISM_ERROR_NO_SUCH_PROCESS,
                                        "%u is a thread of process %u; track that", t->pid, status.tgid);
        }

        t->number = ++m->last_target;
        /* Linked, and the kernel side active, before the first mark: processes look for their target there, and what
         * happens in between counts as well. */
        f.target = t;
        target_link(m, t);
        r = target_for_each_process(t, follow_process, &f);
        if (r >= 0 && f.refused > 0 && f.found == 0)
                r = sd_bus_error_setf(error, PRISM_ERROR_LIMIT_REACHED,
                                "%s has more threads than can still be tracked (%u); untrack something, or raise "
                                "Threads= in prismd.conf",
                                t->name, probes_free_slots(m->probes));
        else if (r >= 0 && kind == TARGET_PROCESS && f.found == 0)
                r = sd_bus_error_setf(error, PRISM_ERROR_NO_SUCH_PROCESS, "process %u ended before it could be tracked",
                                t->pid);
        if (r < 0) {
                target_unlink(m, t);
                return r;
        }
        losses_count(collector_losses(m->collector), "collector", "thread-limit", f.refused);

        log_event(LOG_INFO, &(LogFields){ .id = PRISM_MESSAGE_TARGET_ADDED, .target = t->name, .pid = t->pid },
                        "following %s: %u processes", t->name, f.found);
        *ret = t;
        manager_bus_target_added(m, TAKE_PTR(t));
        return 0;
}

int manager_untrack(Manager *m, Target *t, sd_bus_error *error) {
        Registry *registry = collector_registry(m->collector);
        uint64_t boundary;
        int r;

        /* The last state of its threads is written out before they are released. */
        r = manager_collect(m, true, &boundary);
        if (r < 0)
                return r;
        for (Process *p = registry_processes(registry); p; p = p->hh.next) {
                uint32_t target = 0;

                if (!process_in_target(p, t->number))
                        continue;
                if (p->live_threads > 0)
                        manager_bus_process(m, t, p, false);
                process_remove_target(p, t->number);
                /* Others may ask for less. */
                if (p->n_targets > 0 && p->live_threads > 0 && p->pid)
                        (void) probes_mark(m->probes, p->pid, follow_of(m, p, &target), target);
        }
        target_remove(m, t);
        /* What they fork while they are being released is found by the next look. */
        for (unsigned i = 0; i < RELEASE_TRIES_MAX && release_orphans(m, boundary) > 0; i++)
                collector_scan(m->collector);
        if (!m->targets) {
                r = probes_unmark(m->probes, PRISM_UNMARK_ALL);
                if (r < 0)
                        log_warning("cannot release all threads: %s", strerror(-r));
                else
                        collector_forget_all(m->collector, boundary);
        }
        return 0;
}

/* ---- The loop ---- */

static void log_losses(Manager *m) {
        uint64_t total = losses_total(collector_losses(m->collector));

        /* At most a line a minute; status and the store have the details. */
        if (total == m->logged_losses || m->ticks % 60 != 0)
                return;
        log_event(LOG_WARNING, &(LogFields){ .id = PRISM_MESSAGE_LOSSES },
                        "%llu things could not be recorded since the last such message; prismctl status shows which",
                        (unsigned long long) (total - m->logged_losses));
        m->logged_losses = total;
}

/* What `systemctl status` shows; sent when it has changed. */
static void notify_status(Manager *m) {
        Registry *registry = collector_registry(m->collector);
        unsigned recordings = recorder_n_running(m->recorder);
        char status[sizeof(m->status)];

        if (m->targets || recordings > 0)
                snprintf(status, sizeof(status),
                                "Following %u targets: %u processes, %u threads; %u recordings running", m->n_targets,
                                (unsigned) registry_n_processes(registry), (unsigned) registry_n_threads(registry),
                                recordings);
        else
                snprintf(status, sizeof(status), "Following nothing");
        if (streq(status, m->status))
                return;
        strcpy(m->status, status);
        sd_notifyf(false, "STATUS=%s", status);
}

static int on_tick(sd_event_source *source, uint64_t usec, void *userdata) {
        Manager *m = userdata;
        uint64_t now = boot_now();

        m->ticks++;
        /* Without a target there is nothing to collect, and after a minute nothing left to show. */
        if (m->targets) {
                bool flush = now - m->last_flush_ns >= FLUSH_EVERY_NS;

                rescan_targets(m, m->ticks % RESCAN_EVERY_TICKS == 0);
                if (flush)
                        repair_marks(m);
                (void) manager_collect(m, flush, NULL);
                (void) release_orphans(m, now);
                remove_ended_targets(m);
        } else if (m->n_live > 0 || m->ticks % RESCAN_EVERY_TICKS == 0)
                (void) manager_collect(m, false, NULL);
        manager_update_calls(m);
        log_losses(m);
        log_catch_up();
        notify_status(m);

        /* A tick that came late is not made up for. */
        usec += TICK_USEC;
        if (usec < now / NSEC_PER_USEC)
                usec = now / NSEC_PER_USEC + TICK_USEC;
        sd_event_source_set_time(source, usec);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int on_scan(sd_event_source *source, uint64_t usec, void *userdata) {
        Manager *m = userdata;

        probes_events_consume(m->probes, on_event, m);
        collector_scan(m->collector);
        sd_event_source_set_enabled(m->events_source, SD_EVENT_ON);
        return 0;
}

static int on_events(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        Manager *m = userdata;

        /* A burst of forks is looked at once. */
        sd_event_source_set_enabled(source, SD_EVENT_OFF);
        sd_event_source_set_time_relative(m->scan_timer, SCAN_DELAY_USEC);
        return sd_event_source_set_enabled(m->scan_timer, SD_EVENT_ONESHOT);
}

static int on_end_signal(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata) {
        Manager *m = userdata;

        log_info("ending");
        sd_notify(false, "STOPPING=1");
        server_prepare_end(m->server);
        return sd_event_exit(m->event, 0);
}

static uint64_t monotonic_usec(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t) now.tv_sec * USEC_PER_SEC + (uint64_t) now.tv_nsec / NSEC_PER_USEC;
}

static int on_reload_signal(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata) {
        Manager *m = userdata;
        Config config;
        int r = 0;

        sd_notifyf(false, "RELOADING=1\nMONOTONIC_USEC=%llu", (unsigned long long) monotonic_usec());
        config_defaults(&config);
        if (m->config_file)
                r = config_load(&config, m->config_file);
        if (r < 0)
                log_error("cannot read the configuration %s, keeping what is set: %s", m->config_file, strerror(-r));
        else {
                if (config_restart_needed(&m->config, &config))
                        log_warning("Threads=, Processes=, Resources=, Waits= and RanInstead= take effect when prismd "
                                    "is started again");
                config_apply(&m->config, &config);
                log_info("configuration read again");
        }
        sd_notify(false, "READY=1");
        return 0;
}

static int setup_loop(Manager *m) {
        static const int signals[] = { SIGTERM, SIGINT, SIGHUP };
        sigset_t mask;
        int r;

        r = sd_event_add_time(m->event, &m->tick_timer, CLOCK_BOOTTIME, boot_now() / NSEC_PER_USEC + TICK_USEC, 1,
                        on_tick, m);
        if (r >= 0)
                r = sd_event_add_time(m->event, &m->scan_timer, CLOCK_BOOTTIME, 0, 1, on_scan, m);
        if (r >= 0)
                r = sd_event_source_set_enabled(m->scan_timer, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_add_io(m->event, &m->events_source, probes_events_fd(m->probes), EPOLLIN, on_events, m);
        if (r < 0)
                return r;

        sigemptyset(&mask);
        for (unsigned i = 0; i < ELEMENTSOF(signals); i++)
                sigaddset(&mask, signals[i]);
        if (sigprocmask(SIG_BLOCK, &mask, NULL) < 0)
                return -errno;
        for (unsigned i = 0; i < ELEMENTSOF(signals); i++) {
                r = sd_event_add_signal(
                                m->event, NULL, signals[i], signals[i] == SIGHUP ? on_reload_signal : on_end_signal, m);
                if (r < 0)
                        return r;
        }
        r = sd_event_set_watchdog(m->event, true);
        return r < 0 ? r : 0;
}

/* ---- Beginning and end ---- */

static void raise_file_limit(void) {
        struct rlimit limit;

        /* Connections and maps. What cannot be had is done without. */
        if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < RLIMIT_FILES) {
                limit.rlim_cur = MIN(limit.rlim_max, RLIMIT_FILES);
                (void) setrlimit(RLIMIT_NOFILE, &limit);
        }
}

static void log_parts(Manager *m) {
        const Part *parts;
        size_t n;

        parts = probes_parts(m->probes, &n);
        for (size_t i = 0; i < n; i++)
                if (parts[i].state != PART_OK)
                        log_event(LOG_WARNING, &(LogFields){ .id = PRISM_MESSAGE_PART_LIMITED }, "%s: %s",
                                        parts[i].name, parts[i].reason);
        if (probes_in_own_pid_namespace(m->probes))
                log_info("running in a pid namespace of its own: only processes in it can be tracked");
}

int manager_new(const ManagerOptions *options, Manager **ret, char **ret_error) {
        _cleanup_(manager_freep) Manager *m = NULL;
        CollectorHooks collector_hooks;
        Clock clock = {};
        RecorderHooks recorder_hooks;
        int r;

        m = calloc(1, sizeof(*m));
        if (!m)
                return -ENOMEM;
        m->lock_fd = -1;
        clock_update(&clock, false);
        m->start_ns = clock_unix(&clock, boot_now());
        config_defaults(&m->config);
        if (options->config_file) {
                m->config_file = strdup(options->config_file);
                if (!m->config_file)
                        return -ENOMEM;
                r = config_load(&m->config, options->config_file);
                if (r < 0)
                        return manager_fail(r, ret_error, "cannot read the configuration", options->config_file, NULL);
        }
        raise_file_limit();
        r = manager_identify_machine(m, options);
        if (r >= 0)
                r = manager_open_state_dir(m, options->state_dir, ret_error);
        if (r >= 0)
                r = sd_event_default(&m->event);
        if (r < 0)
                return r;

        r = probes_new(&(ProbesLimits){ m->config.threads, m->config.waits, m->config.ran_instead }, &m->probes,
                        ret_error);
        if (r < 0)
                return r;

        collector_hooks = (CollectorHooks){
                .wanted = on_wanted,
                .epoch = on_epoch,
                .process_found = on_process_found,
                .process_gone = on_process_gone,
                .userdata = m,
        };
        r = collector_new(m->event, m->probes,
                        &(RegistryLimits){
                                        .processes = m->config.processes,
                                        .resources = m->config.resources,
                                        .threads = m->config.threads,
                        },
                        &collector_hooks, &m->collector);
        if (r < 0)
                return r;

        recorder_hooks = manager_recorder_hooks(m);
        r = recorder_new(m->event, m->database, &m->machine, collector_losses(m->collector), &recorder_hooks,
                        &m->recorder, ret_error);
        if (r >= 0)
                r = worker_new(m->event, "prism-images", &m->images);
        if (r >= 0)
                r = server_new(m, options->addresses, &m->server, ret_error);
        if (r >= 0)
                r = setup_loop(m);
        if (r < 0)
                return r;

        log_parts(m);
        *ret = TAKE_PTR(m);
        return 0;
}

int manager_run(Manager *m) {
        sd_notify(false, "READY=1");
        notify_status(m);
        log_event(LOG_INFO, &(LogFields){ .id = PRISM_MESSAGE_READY }, "version %s is ready, database %s",
                        PRISM_VERSION, m->database);
        return sd_event_loop(m->event);
}

Manager *manager_free(Manager *m) {
        if (!m)
                return NULL;

        if (m->recorder && m->collector)
                for (Recording *recording = recorder_recordings(m->recorder); recording; recording = recording->next)
                        if (recording->state == RECORDING_RUNNING)
                                (void) manager_record_end(m, recording, true, NULL, NULL);
        /* Answers that are still due go out before the connections close. */
        m->images = worker_free(m->images);
        m->recorder = recorder_free(m->recorder);
        m->server = server_free(m->server);

        while (m->targets) {
                Target *t = m->targets;

                m->targets = t->next;
                target_free(t);
        }
        for (unsigned i = 0; i < m->n_live; i++)
                batch_unref(m->live[(m->first_live + i) % LIVE_BATCHES_MAX].batch);
        collector_free(m->collector);
        probes_free(m->probes);
        sd_event_source_unref(m->tick_timer);
        sd_event_source_unref(m->scan_timer);
        sd_event_source_unref(m->events_source);
        sd_event_unref(m->event);
        if (m->lock_fd >= 0)
                close(m->lock_fd);
        free(m->hostname);
        free(m->kernel);
        free(m->architecture);
        free(m->state_dir);
        free(m->database);
        free(m->config_file);
        free(m);
        return NULL;
}
