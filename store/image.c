/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Databases that travel in a file descriptor. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "internal.h"

/* Far above any minute of data; what an image costs its reader is bounded by it. */
#define IMAGE_SIZE_MAX (INT64_C(1) << 30)

static int write_memfd(const unsigned char *data, size_t size, int *ret) {
        _cleanup_close_ int fd = -1;

        fd = memfd_create("prism-image", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (fd < 0)
                return -errno;

        for (size_t done = 0; done < size;) {
                ssize_t n = write(fd, data + done, size - done);

                if (n < 0 && errno != EINTR)
                        return -errno;
                if (n > 0)
                        done += (size_t) n;
        }

        if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
                return -errno;
        *ret = TAKE_FD(fd);
        return 0;
}

int store_image(const StoreMachine *machine, Batch *const *batches, size_t n_batches, int *ret_fd, char **ret_error) {
        _cleanup_(store_closep) Store *s = NULL;
        const unsigned char *image;
        sqlite3_int64 size = 0;
        int r;

        r = store_open(NULL, machine, &s, ret_error);
        if (r < 0)
                return r;
        r = store_write_descriptions(s, batches, n_batches, ret_error);
        for (size_t i = 0; r >= 0 && i < n_batches; i++)
                r = store_write(s, batches[i], ret_error);
        if (r < 0)
                return r;

        image = sqlite3_serialize(s->database, "main", &size, SQLITE_SERIALIZE_NOCOPY);
        if (!image)
                return store_say(ret_error, -ENOMEM, "There is not enough memory for a database image.");
        r = write_memfd(image, (size_t) size, ret_fd);
        if (r < 0)
                return store_say(ret_error, r, "A database image cannot be made: %s.", strerror(-r));
        return 0;
}

static int read_all(int fd, unsigned char *data, size_t size) {
        for (size_t done = 0; done < size;) {
                ssize_t n = pread(fd, data + done, size - done, (off_t) done);

                if (n < 0) {
                        if (errno == EINTR)
                                continue;
                        return -errno;
                }
                if (n == 0)
                        return -EIO;
                done += (size_t) n;
        }
        return 0;
}

int store_open_image(int fd, Store **ret, char **ret_error) {
        _cleanup_(store_closep) Store *s = NULL;
        unsigned char *data;
        int64_t version = 0;
        struct stat st;
        int r;

        if (fstat(fd, &st) < 0)
                return store_say(ret_error, -errno, "The database image cannot be read: %s.", strerror(errno));
        if (!S_ISREG(st.st_mode) || st.st_size <= 0 || st.st_size > IMAGE_SIZE_MAX)
                return store_say(ret_error, -EMEDIUMTYPE, "What was received is not a database image.");

        r = store_new(NULL, NULL, SQLITE_OPEN_READWRITE, &s, ret_error);
        if (r < 0)
                return r;
        s->noun = "the database image";

        /* A private copy, so that it does not matter what becomes of the descriptor's file. */
        data = sqlite3_malloc64((sqlite3_uint64) st.st_size);
        if (!data)
                return store_say(ret_error, -ENOMEM, "There is not enough memory to read the database image.");
        r = read_all(fd, data, (size_t) st.st_size);
        if (r < 0) {
                sqlite3_free(data);
                return store_say(ret_error, r, "The database image cannot be read: %s.", strerror(-r));
        }

        /* Takes the copy over, also when it fails. */
        if (sqlite3_deserialize(s->database, "main", data, st.st_size, st.st_size,
                            SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY) != SQLITE_OK)
                return store_failed(s, ret_error);

        r = store_check(s, &version, NULL);
        if (r == -EPROTO || (r >= 0 && version != STORE_VERSION))
                return store_say(ret_error, -EPROTO,
                                "The database image is of another version of prism: use the same one on both sides.");
        if (r == -EMEDIUMTYPE)
                return store_say(ret_error, r, "What was received is not a database image.");
        if (r < 0)
                return store_failed(s, ret_error);
        *ret = TAKE_PTR(s);
        return 0;
}
