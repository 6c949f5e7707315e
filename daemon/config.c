/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config.h"

#include <dirent.h>
#include <ini.h>

#include "basic/parse.h"
#include "log.h"

void config_defaults(Config *c) {
        *c = (Config){
                .targets = 512,
                .threads = 16384,
                .processes = 16384,
                .resources = 65536,
                .waits = 32768,
                .ran_instead = 16384,
                .connections = 256,
                .recordings = 1024,
        };
}

typedef struct Key {
        const char *section, *name;
        size_t offset;
        unsigned min, max;
} Key;

static const Key keys[] = {
        { "Limits", "Targets", offsetof(Config, targets), 1, 100000 },
        { "Limits", "Threads", offsetof(Config, threads), 16, 1000000 },
        { "Limits", "Processes", offsetof(Config, processes), 16, 1000000 },
        { "Limits", "Resources", offsetof(Config, resources), 16, 10000000 },
        { "Limits", "Waits", offsetof(Config, waits), 16, 4000000 },
        { "Limits", "RanInstead", offsetof(Config, ran_instead), 16, 4000000 },
        { "Limits", "Connections", offsetof(Config, connections), 1, 10000 },
        { "Limits", "Recordings", offsetof(Config, recordings), 1, 100000 },
};

typedef struct Reading {
        Config *config;
        const char *path;
        FILE *file;
        int line;
} Reading;

/* The library calls back with each key as soon as it has read its line, but does not say which line that was. It would take the
 * rest of a line that is longer than its buffer for a line of its own, so that is left out here: a comment is cut, anything
 * else is not taken at all. */
static char *read_line(char *buffer, int size, void *userdata) {
        Reading *reading = userdata;
        bool cut = false;
        int n = 0, c;

        while ((c = getc(reading->file)) != EOF && c != '\n')
                if (n < size - 1)
                        buffer[n++] = (char) c;
                else
                        cut = true;
        if (c == EOF && n == 0)
                return NULL;
        buffer[n] = '\0';
        reading->line++;
        n = (int) strspn(buffer, " \t");
        if (cut && buffer[n] != '#' && buffer[n] != ';') {
                log_warning("%s:%d: longer than %d bytes; ignored", reading->path, reading->line, size - 1);
                buffer[0] = '\0';
        }
        return buffer;
}

static int handle_key(void *userdata, const char *section, const char *name, const char *value) {
        Reading *reading = userdata;
        int line = reading->line;

        for (size_t i = 0; i < ELEMENTSOF(keys); i++) {
                const Key *k = &keys[i];
                uint64_t number;

                if (!streq(section, k->section) || !streq(name, k->name))
                        continue;
                if (parse_u64(value, k->max, &number) < 0 || number < k->min)
                        log_warning("%s:%d: %s= wants a number from %u to %u, not \"%s\"; keeping %u", reading->path,
                                        line, name, k->min, k->max, value,
                                        *(unsigned *) ((char *) reading->config + k->offset));
                else
                        *(unsigned *) ((char *) reading->config + k->offset) = (unsigned) number;
                return 1;
        }
        log_warning("%s:%d: there is no key %s= in section [%s]; ignored", reading->path, line, name, section);
        return 1;
}

int config_read(Config *c, const char *path) {
        _cleanup_fclose_ FILE *f = NULL;
        Reading reading;
        int r;

        f = fopen(path, "re");
        if (!f)
                return -errno;
        reading = (Reading){ c, path, f, 0 };
        r = ini_parse_stream(read_line, &reading, handle_key, &reading);
        if (r > 0)
                log_warning("%s:%d: not a section, a key or a comment; ignored", path, r);
        return r < 0 || ferror(f) ? -EIO : 0;
}

static int is_drop_in(const struct dirent *entry) {
        size_t n = strlen(entry->d_name);

        return entry->d_name[0] != '.' && n > 5 && streq(entry->d_name + n - 5, ".conf");
}

int config_load(Config *c, const char *path) {
        _cleanup_free_ char *directory = NULL;
        struct dirent **entries = NULL;
        int n, r;

        r = config_read(c, path);
        if (asprintf(&directory, "%s.d", path) < 0)
                return -ENOMEM;
        n = scandir(directory, &entries, is_drop_in, alphasort);
        if (n < 0)
                return r < 0 || errno == ENOENT ? r : -errno;
        if (r == -ENOENT)
                r = 0;
        for (int i = 0; i < n; i++) {
                _cleanup_free_ char *file = NULL;

                if (r >= 0)
                        r = asprintf(&file, "%s/%s", directory, entries[i]->d_name) < 0 ? -ENOMEM
                                                                                        : config_read(c, file);
                free(entries[i]);
        }
        free(entries);
        return r;
}

bool config_restart_needed(const Config *now, const Config *wanted) {
        return now->threads != wanted->threads || now->processes != wanted->processes ||
                        now->resources != wanted->resources || now->waits != wanted->waits ||
                        now->ran_instead != wanted->ran_instead;
}

void config_apply(Config *now, const Config *wanted) {
        now->targets = wanted->targets;
        now->connections = wanted->connections;
        now->recordings = wanted->recordings;
}
