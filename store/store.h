/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The database: opening, migrating, writing, reading. prismd and prismctl share it; nothing else opens the file.
 *
 * A Store belongs to one thread at a time and does no locking of its own. Functions that can fail for a reason that a
 * person must hear about take `char **ret_error` (may be NULL): on failure it is set to one malloc'd sentence that
 * names the file and says what to do; on success it is untouched. */
#pragma once

#include <sqlite3.h>

#include "basic/macro.h"
#include "batch.h"

#define STORE_APPLICATION_ID 0x5052534d /* "PRSM" */
#define STORE_VERSION 2

typedef struct Store Store;

typedef struct StoreMachine {
        uint32_t id;
        const char *hostname, *kernel, *architecture;
        unsigned cpus;
        const char *boot_id; /* 32 hex digits */
} StoreMachine;

typedef struct StoreRecording {
        int64_t id;
        char *name;
        int64_t start_ns, end_ns; /* end_ns 0: running */
        char *state;              /* running, finished, interrupted */
        bool pinned;
        char *options; /* JSON object */
} StoreRecording;

void store_recording_done(StoreRecording *r); /* frees the strings */

/* Opens for writing: creates the file (mode 0640) if missing, migrates an older one, sets WAL. Errors: -EMEDIUMTYPE the
 * file is a database of another program, -EPROTO one of a newer version, -ENOTDIR/-EACCES/..., -EBUSY, -EUCLEAN
 * damaged. `path` NULL opens one in memory. */
int store_open(const char *path, const StoreMachine *machine, Store **ret, char **ret_error);

/* Opens for reading only, while a writer runs or after it stopped (falls back to immutable=1 when nobody holds the file
 * and its directory cannot be written). Checks application id and version. -ENOENT if there is none. */
int store_open_readonly(const char *path, Store **ret, char **ret_error);

Store *store_close(Store *s); /* returns NULL; keeps the WAL files beside the database for readers */
DEFINE_CLEANUP(Store *, store_close);

sqlite3 *store_database(Store *s);

/* Writes all rows of a batch in one transaction; on failure nothing of it is written. -ENOSPC disk full, -EROFS, -EIO,
 * -EBUSY (a lock was not had within 5 s), -ENOKEY a row uses a key that was never described. Rows whose primary key is
 * there already (a clock that was stepped back) are added to the row that is there, never dropped. */
int store_write(Store *s, const Batch *b, char **ret_error);

/* Forgets the mapping of keys to ids, so that the producer must describe all again. */
void store_forget_keys(Store *s);

/* Recordings. Begin: -EEXIST if the name is taken. End: -ENOENT if there is none that runs. Delete: -ENOENT, or
 * -EINPROGRESS while it runs; also removes the measurement rows that no other recording covers, in chunks (each its own
 * transaction), and gives the space back. What describes (machines, processes, threads, resources with their sockets and
 * watches, clocks) stays, also when no row refers to it any more. */
int store_recording_begin(
                Store *s, const char *name, int64_t start_ns, const char *options, int64_t *ret_id, char **ret_error);
int store_recording_end(Store *s, int64_t id, int64_t end_ns, const char *state, char **ret_error);
int store_recording_delete(Store *s, int64_t id, char **ret_error);
/* One chunk of it, for a writer that has other things to do in between: returns 1 while there is more to delete and 0
 * when the recording is gone. *cursor_ns is 0 at the first call and belongs to the callee until the last. Interrupted,
 * it can start again. */
int store_recording_delete_some(Store *s, int64_t id, int64_t *cursor_ns, char **ret_error);
/* All, oldest first. The caller frees with store_recording_done() each and free(). */
int store_recordings(Store *s, StoreRecording **ret, size_t *ret_n, char **ret_error);
/* Those still `running` become `interrupted`; their end is that of their last row (or their start). */
int store_recordings_interrupt(Store *s, char **ret_error);

/* A point of a key performance indicator. */
typedef struct StoreKpi {
        int64_t ts_ns;
        double value;
} StoreKpi;

/* Adds points to the indicator `name` in one transaction; a point at a time that is there already replaces it. -EINVAL for
 * a value that is not a number. */
int store_add_kpi(Store *s, const char *name, const StoreKpi *points, size_t n, char **ret_error);

/* Passive WAL checkpoint; truncates the WAL when it can. */
int store_checkpoint(Store *s);

/* An SQLite image with the same schema that holds the given batches, in a sealed memfd. Each may be described in any of
 * them. */
int store_image(const StoreMachine *machine, Batch *const *batches, size_t n_batches, int *ret_fd, char **ret_error);

/* Opens an image (what store_image() made) read only; takes ownership of nothing, the fd may be closed afterwards. */
int store_open_image(int fd, Store **ret, char **ret_error);
