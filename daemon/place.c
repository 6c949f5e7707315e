/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where prismd finds itself when it starts: its state directory, which it locks, and the machine. */
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <systemd/sd-id128.h>

#include "../dbus/names.h"
#include "manager.h"

/* Identifies prism when the machine id is made into one that only prism knows. */
static const sd_id128_t application_id = SD_ID128_MAKE(4d, 1f, 0a, 6e, 7c, 2b, 48, 3d, 9e, 55, 8b, 1c, 60, d2, 37, fa);

int manager_fail(int r, char **ret_error, const char *what, const char *object, const char *remedy) {
        char *sentence;

        if (ret_error &&
                        asprintf(&sentence, "%s %s: %s%s%s", what, object, strerror(-r), remedy ? "; " : "",
                                        remedy ?: "") >= 0)
                *ret_error = sentence;
        return r;
}

/* Makes a directory and those above it that are missing, 0750. */
static int make_directories(const char *path) {
        _cleanup_free_ char *copy = strdup(path);

        if (!copy)
                return -ENOMEM;
        for (char *p = copy + 1; *p; p++) {
                if (*p != '/')
                        continue;
                *p = '\0';
                if (mkdir(copy, 0750) < 0 && errno != EEXIST)
                        return -errno;
                *p = '/';
        }
        if (mkdir(copy, 0750) < 0 && errno != EEXIST)
                return -errno;
        return 0;
}

int manager_open_state_dir(Manager *m, const char *state_dir, char **ret_error) {
        _cleanup_free_ char *lock = NULL;
        int r;

        m->state_dir = strdup(state_dir);
        if (!m->state_dir || asprintf(&m->database, "%s/%s", state_dir, PRISM_DATABASE_FILE) < 0 ||
                        asprintf(&lock, "%s/prismd.lock", state_dir) < 0)
                return -ENOMEM;
        r = make_directories(state_dir);
        if (r < 0)
                return manager_fail(r, ret_error, "cannot make the state directory", state_dir,
                                "choose another with --state-dir");

        m->lock_fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
        if (m->lock_fd < 0)
                return manager_fail(-errno, ret_error, "cannot write to the state directory", state_dir,
                                "choose another with --state-dir");
        if (flock(m->lock_fd, LOCK_EX | LOCK_NB) < 0) {
                if (errno != EWOULDBLOCK)
                        return manager_fail(-errno, ret_error, "cannot lock the state directory", state_dir, NULL);
                return manager_fail(-EBUSY, ret_error, "another prismd uses the state directory", state_dir,
                                "stop it, or choose another with --state-dir");
        }
        return 0;
}

int manager_identify_machine(Manager *m, const ManagerOptions *options) {
        struct utsname names;
        sd_id128_t id;

        if (uname(&names) < 0)
                return -errno;
        m->hostname = strdup(names.nodename);
        m->kernel = strdup(names.release);
        m->architecture = strdup(names.machine);
        if (!m->hostname || !m->kernel || !m->architecture)
                return -ENOMEM;
        if (sd_id128_get_boot(&id) < 0)
                id = SD_ID128_NULL;
        sd_id128_to_string(id, m->boot_id);

        if (options->has_machine_id)
                m->machine.id = options->machine_id;
        else if (sd_id128_get_machine_app_specific(application_id, &id) >= 0)
                memcpy(&m->machine.id, &id, sizeof(m->machine.id));
        else
                /* No machine id (a minimal container): what stays the same while this system runs. */
                memcpy(&m->machine.id, m->boot_id, sizeof(m->machine.id));
        m->machine.hostname = m->hostname;
        m->machine.kernel = m->kernel;
        m->machine.architecture = m->architecture;
        m->machine.cpus = (unsigned) sysconf(_SC_NPROCESSORS_CONF);
        m->machine.boot_id = m->boot_id;
        return 0;
}
