/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Opening a store: is it ours, is it whole, which version, who may write; and the errors of SQLite in words. */
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>

#include "basic/text.h"
#include "internal.h"

enum content {
        CONTENT_NONE,  /* no such file */
        CONTENT_EMPTY, /* zero bytes */
        CONTENT_OURS,  /* a store of this version or an older one */
};

int store_say(char **ret_error, int error, const char *format, ...) {
        char *sentence;
        va_list ap;

        if (!ret_error)
                return error;

        va_start(ap, format);
        if (vasprintf(&sentence, format, ap) >= 0)
                *ret_error = sentence;
        va_end(ap);
        return error;
}

const char *store_name(const Store *s) {
        return s->path ? s->path : s->noun;
}

/* SQLite folds many system errors into one code; the ones that a person can act on are told apart by errno. */
static int error_of(sqlite3 *database) {
        int code = sqlite3_errcode(database) & 0xff, number = sqlite3_system_errno(database);

        switch (code) {
        case SQLITE_FULL:
                return -ENOSPC;
        case SQLITE_READONLY:
                return -EROFS;
        case SQLITE_IOERR:
                return number == ENOSPC || number == EDQUOT ? -ENOSPC : -EIO;
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
                return -EBUSY;
        case SQLITE_NOMEM:
                return -ENOMEM;
        case SQLITE_CORRUPT:
        case SQLITE_NOTADB:
        case SQLITE_ERROR: /* our own SQL is right, so a table or column is missing */
                return -EUCLEAN;
        case SQLITE_CANTOPEN:
                return number > 0 ? -number : -EIO;
        case SQLITE_PERM:
        case SQLITE_AUTH:
                return -EACCES;
        case SQLITE_CONSTRAINT:
        case SQLITE_MISMATCH:
        case SQLITE_TOOBIG:
        case SQLITE_RANGE:
                return -EINVAL;
        default:
                return -EIO;
        }
}

static int failed_with(sqlite3 *database, const char *name, char **ret_error) {
        int r = error_of(database);
        const char *reason = sqlite3_errmsg(database);

        switch (r) {
        case -ENOSPC:
                return store_say(ret_error, r, "No space is left to write %s: free some, or delete recordings.", name);
        case -EROFS:
                return store_say(ret_error, r,
                                "%s cannot be written: check its permissions and whether its file system is read only.",
                                name);
        case -EBUSY:
                return store_say(ret_error, r, "%s is locked by another process: end that one, or try again.", name);
        case -ENOMEM:
                return store_say(ret_error, r, "There is not enough memory to work on %s.", name);
        case -EUCLEAN:
                return store_say(ret_error, r,
                                "%s is damaged (%s): move it away to start a new one, or try sqlite3's .recover on it.",
                                name, reason);
        case -EINVAL:
                return store_say(ret_error, r, "%s does not take what was to be written (%s).", name, reason);
        case -EIO:
                return store_say(ret_error, r, "Reading or writing %s failed (%s): check its disk.", name, reason);
        default:
                return store_say(ret_error, r, "%s cannot be opened: %s.", name, strerror(-r));
        }
}

int store_failed(Store *s, char **ret_error) {
        return failed_with(s->database, store_name(s), ret_error);
}

int store_execute(Store *s, const char *sql, char **ret_error) {
        if (sqlite3_exec(s->database, sql, NULL, NULL, NULL) != SQLITE_OK)
                return store_failed(s, ret_error);
        return 0;
}

int store_prepare(Store *s, const char *sql, sqlite3_stmt **ret, char **ret_error) {
        if (sqlite3_prepare_v2(s->database, sql, -1, ret, NULL) != SQLITE_OK)
                return store_failed(s, ret_error);
        return 0;
}

int store_number(Store *s, const char *sql, int64_t *ret, char **ret_error) {
        _cleanup_statement_ sqlite3_stmt *statement = NULL;
        int r;

        r = store_prepare(s, sql, &statement, ret_error);
        if (r < 0)
                return r;

        switch (sqlite3_step(statement)) {
        case SQLITE_ROW:
                *ret = sqlite3_column_int64(statement, 0);
                return 0;
        case SQLITE_DONE:
                return 0;
        default:
                return store_failed(s, ret_error);
        }
}

int store_bind_text(sqlite3_stmt *statement, int index, const char *text) {
        char *valid;

        if (!text)
                return sqlite3_bind_null(statement, index);
        if (utf8_is_valid(text))
                return sqlite3_bind_text(statement, index, text, -1, SQLITE_STATIC);

        valid = text_to_utf8(text);
        if (!valid)
                return SQLITE_NOMEM;
        return sqlite3_bind_text(statement, index, valid, -1, free);
}

int store_bind_u64(sqlite3_stmt *statement, int index, uint64_t number) {
        return sqlite3_bind_int64(statement, index, (int64_t) MIN(number, (uint64_t) INT64_MAX));
}

/* A path as a URI, so that a name such as "file:x?vfs=y" is only a name. */
static char *path_to_uri(const char *path, const char *parameters) {
        size_t n = strlen(path);
        char *uri, *p;

        uri = malloc(strlen("file://") + n * 3 + strlen(parameters) + 1);
        if (!uri)
                return NULL;

        p = stpcpy(uri, path[0] == '/' ? "file://" : "file:");
        for (const char *c = path; *c; c++)
                if (strchr("%?#", *c))
                        p += sprintf(p, "%%%02X", (unsigned) *c);
                else
                        *p++ = *c;
        strcpy(p, parameters);
        return uri;
}

int store_new(const char *path, const char *parameters, int flags, Store **ret, char **ret_error) {
        _cleanup_(store_closep) Store *s = calloc(1, sizeof(Store));
        _cleanup_free_ char *uri = NULL;
        int r;

        if (!s)
                return -ENOMEM;
        s->noun = "the database in memory";

        flags |= SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
        if (path) {
                s->path = strdup(path);
                uri = path_to_uri(path, parameters);
                if (!s->path || !uri)
                        return -ENOMEM;
                r = sqlite3_open_v2(uri, &s->database, flags | SQLITE_OPEN_URI, NULL);
        } else
                /* Like :memory:, and its pages lie in one piece that can be taken as an image without a copy. */
                r = sqlite3_open_v2("prism", &s->database, flags | SQLITE_OPEN_CREATE, "memdb");
        if (r != SQLITE_OK)
                return s->database ? store_failed(s, ret_error) : -ENOMEM;

        (void) sqlite3_busy_timeout(s->database, STORE_BUSY_TIMEOUT_MS);
        (void) sqlite3_db_config(s->database, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        (void) sqlite3_db_config(s->database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
        *ret = TAKE_PTR(s);
        return 0;
}

Store *store_close(Store *s) {
        if (!s)
                return NULL;

        for (size_t i = 0; i < ELEMENTSOF(s->statements); i++)
                (void) sqlite3_finalize(s->statements[i]);
        store_forget_keys(s);
        (void) sqlite3_close_v2(s->database);
        free(s->path);
        free(s);
        return NULL;
}

sqlite3 *store_database(Store *s) {
        return s->database;
}

void store_forget_keys(Store *s) {
        for (enum object object = 0; object < _OBJECT_MAX; object++)
                keymap_clear(s->keys + object);
}

static int check_numbers(const char *name, int64_t application_id, int64_t version, char **ret_error) {
        if (application_id != STORE_APPLICATION_ID)
                return store_say(ret_error, -EMEDIUMTYPE,
                                "%s is a database of another program: give prism a directory of its own.", name);
        if (version > STORE_VERSION)
                return store_say(ret_error, -EPROTO,
                                "%s was written by a newer prism (version %lld of the database, this one knows up to "
                                "%d): "
                                "use that one.",
                                name, (long long) version, STORE_VERSION);
        if (version < 0)
                return store_say(ret_error, -EUCLEAN, "%s is damaged (its version is negative): move it away.", name);
        return 0;
}

static uint32_t read_be32(const unsigned char *p) {
        return (uint32_t) p[0] << 24 | (uint32_t) p[1] << 16 | (uint32_t) p[2] << 8 | (uint32_t) p[3];
}

/* Looks at the first bytes of a file without touching it or the files beside it. It is read through SQLite, because when
 * a process closes any descriptor of a file, it loses all its locks on that file; SQLite knows and avoids that. */
static int probe(const char *path, enum content *ret, char **ret_error) {
        _cleanup_(store_closep) Store *s = NULL;
        unsigned char header[100];
        sqlite3_file *file = NULL;
        sqlite3_int64 size = 0;
        struct stat st;
        int r;

        if (stat(path, &st) < 0) {
                if (errno != ENOENT)
                        return store_say(ret_error, -errno, "%s cannot be opened: %s.", path, strerror(errno));
                *ret = CONTENT_NONE;
                return 0;
        }
        if (!S_ISREG(st.st_mode))
                return store_say(ret_error, S_ISDIR(st.st_mode) ? -EISDIR : -EMEDIUMTYPE,
                                "%s is not a file that can hold a database.", path);
        if (st.st_size == 0) {
                *ret = CONTENT_EMPTY;
                return 0;
        }

        r = store_new(path, "?immutable=1", SQLITE_OPEN_READONLY, &s, ret_error);
        if (r < 0)
                return r;

        if (sqlite3_file_control(s->database, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK || !file ||
                        !file->pMethods || file->pMethods->xFileSize(file, &size) != SQLITE_OK)
                return store_say(ret_error, -EIO, "Reading %s failed: check its disk.", path);
        if (size < (sqlite3_int64) sizeof(header))
                return store_say(ret_error, -EMEDIUMTYPE, "%s is not a database: move it away.", path);
        if (file->pMethods->xRead(file, header, sizeof(header), 0) != SQLITE_OK)
                return store_say(ret_error, -EIO, "Reading %s failed: check its disk.", path);
        if (memcmp(header, "SQLite format 3", 16) != 0)
                return store_say(ret_error, -EMEDIUMTYPE, "%s is not a database: move it away.", path);

        r = check_numbers(path, (int32_t) read_be32(header + 68), (int32_t) read_be32(header + 60), ret_error);
        if (r < 0)
                return r;
        *ret = CONTENT_OURS;
        return 0;
}

/* The same check through the database, which also sees what is still in the WAL. */
int store_check(Store *s, int64_t *ret_version, char **ret_error) {
        int64_t application_id = 0, version = 0;
        int r;

        r = store_number(s, "PRAGMA application_id", &application_id, ret_error);
        if (r < 0)
                return r;
        r = store_number(s, "PRAGMA user_version", &version, ret_error);
        if (r < 0)
                return r;
        r = check_numbers(store_name(s), application_id, version, ret_error);
        if (r < 0)
                return r;
        *ret_version = version;
        return 0;
}

/* A new one in memory, with all tables. auto_vacuum can only be set before the first of them. */
static int store_new_memory(Store **ret, char **ret_error) {
        _cleanup_(store_closep) Store *s = NULL;
        char sql[96];
        int r;

        r = store_new(NULL, NULL, SQLITE_OPEN_READWRITE, &s, ret_error);
        if (r < 0)
                return r;

        (void) snprintf(sql, sizeof(sql), "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA application_id = %d",
                        STORE_APPLICATION_ID);
        r = store_execute(s, sql, ret_error);
        if (r < 0)
                return r;
        r = store_migrate(s, 0, ret_error);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(s);
        return 0;
}

static int write_all(int fd, const unsigned char *data, size_t size) {
        while (size > 0) {
                ssize_t n = write(fd, data, size);

                if (n < 0) {
                        if (errno == EINTR)
                                continue;
                        return -errno;
                }
                data += n;
                size -= (size_t) n;
        }
        return 0;
}

/* Never replaces what another process made there meanwhile (-EEXIST), except a zero-byte file. */
static int move_into_place(const char *temporary, const char *path, enum content content) {
        unsigned flags = content == CONTENT_NONE ? RENAME_NOREPLACE : 0;

        if (renameat2(AT_FDCWD, temporary, AT_FDCWD, path, flags) >= 0)
                return 0;
        if (errno != EINVAL || flags == 0)
                return -errno;

        /* The file system does not know the flag. */
        if (link(temporary, path) < 0)
                return -errno;
        (void) unlink(temporary);
        return 0;
}

/* Makes the file of a new store. It appears whole or not at all: it is made in memory, written beside its place and
 * renamed. A zero-byte file in its place is replaced. */
static int create_file(const char *path, enum content content, char **ret_error) {
        _cleanup_(store_closep) Store *s = NULL;
        _cleanup_free_ char *temporary = NULL;
        _cleanup_close_ int fd = -1;
        const unsigned char *image;
        sqlite3_int64 size = 0;
        int r;

        r = store_new_memory(&s, ret_error);
        if (r < 0)
                return r;
        image = sqlite3_serialize(s->database, "main", &size, SQLITE_SERIALIZE_NOCOPY);
        if (!image || asprintf(&temporary, "%s.XXXXXX", path) < 0)
                return -ENOMEM;

        fd = mkostemp(temporary, O_CLOEXEC);
        if (fd < 0)
                return store_say(ret_error, -errno, "%s cannot be made: %s.", path, strerror(errno));

        if (fchmod(fd, 0640) < 0)
                r = -errno;
        if (r >= 0)
                r = write_all(fd, image, (size_t) size);
        if (r >= 0 && fsync(fd) < 0)
                r = -errno;
        if (r >= 0)
                r = move_into_place(temporary, path, content);
        if (r >= 0)
                return 0;

        (void) unlink(temporary);
        if (r == -EEXIST)
                return 0;
        return store_say(ret_error, r, "%s cannot be made: %s.", path, strerror(-r));
}

/* Settings of a connection that writes a file. */
static int set_up_file(Store *s, char **ret_error) {
        _cleanup_statement_ sqlite3_stmt *statement = NULL;
        const char *mode;
        int on = 1, r;

        if (sqlite3_db_readonly(s->database, "main") == 1)
                return store_say(ret_error, -EROFS,
                                "%s cannot be written: check its permissions and whether its file system is read only.",
                                s->path);

        r = store_prepare(s, "PRAGMA journal_mode = WAL", &statement, ret_error);
        if (r < 0)
                return r;
        if (sqlite3_step(statement) != SQLITE_ROW)
                return store_failed(s, ret_error);
        mode = (const char *) sqlite3_column_text(statement, 0);
        if (!mode || !streq(mode, "wal"))
                return store_say(ret_error, -EOPNOTSUPP,
                                "%s lies on a file system without shared memory maps: use a local one.", s->path);
        (void) sqlite3_finalize(TAKE_PTR(statement));

        (void) sqlite3_file_control(s->database, "main", SQLITE_FCNTL_PERSIST_WAL, &on);
        /* The WAL shrinks to this when it is reset, and to nothing when the store is closed. */
        return store_execute(s,
                        "PRAGMA synchronous = NORMAL; PRAGMA journal_size_limit = 16777216; PRAGMA secure_delete = "
                        "FAST",
                        ret_error);
}

static int bind_machine(Store *s, const StoreMachine *machine, char **ret_error) {
        static const char machine_sql[] =
                        "INSERT INTO machine (id, hostname, kernel, architecture, cpus) VALUES (?1, ?2, ?3, ?4, ?5) "
                        "ON CONFLICT (id) DO UPDATE SET hostname = excluded.hostname, kernel = excluded.kernel, "
                        "architecture = excluded.architecture, cpus = excluded.cpus";
        static const char boot_sql[] = "INSERT INTO boot (machine_id, boot_id) VALUES (?1, ?2) "
                                       "ON CONFLICT (machine_id, boot_id) DO UPDATE SET boot_id = boot_id RETURNING id";
        _cleanup_statement_ sqlite3_stmt *insert_machine = NULL, *insert_boot = NULL;
        int64_t boot;
        int r;

        r = store_prepare(s, machine_sql, &insert_machine, ret_error);
        if (r < 0)
                return r;
        if (sqlite3_bind_int64(insert_machine, 1, machine->id) != SQLITE_OK ||
                        store_bind_text(insert_machine, 2, machine->hostname) != SQLITE_OK ||
                        store_bind_text(insert_machine, 3, machine->kernel) != SQLITE_OK ||
                        store_bind_text(insert_machine, 4, machine->architecture) != SQLITE_OK ||
                        sqlite3_bind_int64(insert_machine, 5, machine->cpus) != SQLITE_OK)
                return -ENOMEM;
        if (sqlite3_step(insert_machine) != SQLITE_DONE)
                return store_failed(s, ret_error);

        r = store_prepare(s, boot_sql, &insert_boot, ret_error);
        if (r < 0)
                return r;
        if (sqlite3_bind_int64(insert_boot, 1, machine->id) != SQLITE_OK ||
                        store_bind_text(insert_boot, 2, machine->boot_id) != SQLITE_OK)
                return -ENOMEM;
        if (sqlite3_step(insert_boot) != SQLITE_ROW)
                return store_failed(s, ret_error);
        boot = sqlite3_column_int64(insert_boot, 0);
        if (sqlite3_step(insert_boot) != SQLITE_DONE)
                return store_failed(s, ret_error);

        s->machine_id = machine->id;
        s->boot = boot;
        return 0;
}

int store_open(const char *path, const StoreMachine *machine, Store **ret, char **ret_error) {
        _cleanup_(store_closep) Store *s = NULL;
        enum content content = CONTENT_NONE;
        int64_t version = 0;
        int r;

        if (path) {
                r = probe(path, &content, ret_error);
                if (r >= 0 && content != CONTENT_OURS)
                        r = create_file(path, content, ret_error);
                if (r >= 0)
                        r = store_new(path, "", SQLITE_OPEN_READWRITE, &s, ret_error);
        } else
                r = store_new_memory(&s, ret_error);
        if (r < 0)
                return r;

        r = store_check(s, &version, ret_error);
        if (r < 0) {
                /* Closing must not move the WAL of a store that is not for us into its file. */
                (void) sqlite3_db_config(s->database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
                return r;
        }
        if (path) {
                r = set_up_file(s, ret_error);
                if (r < 0)
                        return r;
        }
        r = store_migrate(s, version, ret_error);
        if (r < 0)
                return r;
        r = bind_machine(s, machine, ret_error);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(s);
        return 0;
}

/* True if another process has the database open: in WAL mode every connection keeps a lock on SQLite's shared range for
 * as long as it is open. Only for a process that has not opened it for writing (see probe() for why). */
static bool held_by_another(const char *path) {
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0x40000002, .l_len = 510 };
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

        return fd >= 0 && fcntl(fd, F_GETLK, &lock) >= 0 && lock.l_type != F_UNLCK;
}

static bool wal_is_empty(const char *path) {
        _cleanup_free_ char *wal = NULL;
        struct stat st;

        if (asprintf(&wal, "%s-wal", path) < 0)
                return false;
        return stat(wal, &st) < 0 ? errno == ENOENT : st.st_size == 0;
}

int store_open_readonly(const char *path, Store **ret, char **ret_error) {
        _cleanup_free_ char *error = NULL;
        enum content content;
        int64_t version = 0;
        int r;

        r = probe(path, &content, ret_error);
        if (r < 0)
                return r;
        if (content != CONTENT_OURS)
                return store_say(ret_error, -ENOENT, "There is no data in %s yet: start prismd and record something.",
                                path);

        for (unsigned attempt = 0; attempt < 2; attempt++) {
                _cleanup_(store_closep) Store *s = NULL;

                /* Immutable means that SQLite takes no lock and looks at no WAL. Right only when nobody writes and there is
                 * nothing in a WAL; then it needs no permission to make the files beside the database. */
                if (attempt == 1 && (!wal_is_empty(path) || held_by_another(path)))
                        return store_say(ret_error, -EACCES,
                                        "The newest data of %s is in files beside it that you may not use: ask for the "
                                        "rights "
                                        "to its directory, or start prismd once.",
                                        path);

                error = (free(error), NULL);
                r = store_new(path, attempt == 0 ? "" : "?immutable=1", SQLITE_OPEN_READONLY, &s, &error);
                if (r >= 0)
                        r = store_check(s, &version, &error);
                if (r >= 0 && version < STORE_VERSION)
                        r = store_say(&error, -EPROTO,
                                        "%s was written by an older prism: start prismd once to bring it up to date.",
                                        path);
                if (r >= 0) {
                        *ret = TAKE_PTR(s);
                        return 0;
                }
                if (r == -EUCLEAN || r == -EPROTO || r == -EMEDIUMTYPE || r == -ENOMEM)
                        break;
        }

        if (ret_error && error)
                *ret_error = TAKE_PTR(error);
        return r;
}

int store_checkpoint(Store *s) {
        int frames = 0, moved = 0, r = 0;

        if (!s->path)
                return 0;
        if (sqlite3_wal_checkpoint_v2(s->database, "main", SQLITE_CHECKPOINT_PASSIVE, &frames, &moved) != SQLITE_OK)
                return error_of(s->database);
        if (frames <= 0 || moved < frames)
                return 0;

        /* A reader that is still in the WAL is not waited for: the next checkpoint truncates it. */
        (void) sqlite3_busy_timeout(s->database, 0);
        if (sqlite3_wal_checkpoint_v2(s->database, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL) != SQLITE_OK) {
                r = error_of(s->database);
                if (r == -EBUSY)
                        r = 0;
        }
        (void) sqlite3_busy_timeout(s->database, STORE_BUSY_TIMEOUT_MS);
        return r;
}
