/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where the database lies, when nobody says it. */
#include "database.h"

#include "client.h"

int database_find(const Ctl *ctl, char **ret_path) {
        _cleanup_(client_closep) Client *c = NULL;
        const char *directory = ctl->state_dir;
        char *path;

        if (ctl->db) {
                path = strdup(ctl->db);
                if (!path)
                        return -ENOMEM;
                *ret_path = path;
                return 0;
        }

        if (isempty(directory))
                directory = getenv("PRISM_STATE_DIR");

        /* Whatever goes wrong here, the file may still be where it is by default. */
        if (isempty(directory) && client_open(ctl, &c, NULL) >= 0) {
                c->no_auto_start = true;
                if (client_get_text(c, PRISM_PATH, PRISM_INTERFACE_MANAGER, "StorePath", &path, NULL) >= 0) {
                        if (path[0] != '\0') {
                                *ret_path = path;
                                return 0;
                        }
                        free(path); /* it has none */
                }
        }

        if (isempty(directory))
                directory = PRISM_DEFAULT_STATE_DIR;
        if (asprintf(&path, "%s/%s", directory, PRISM_DATABASE_FILE) < 0)
                return -ENOMEM;
        *ret_path = path;
        return 0;
}

int database_open(const Ctl *ctl, Store **ret, char **ret_error) {
        _cleanup_free_ char *path = NULL;
        int r;

        r = database_find(ctl, &path);
        if (r < 0)
                return r;
        return store_open_readonly(path, ret, ret_error);
}
