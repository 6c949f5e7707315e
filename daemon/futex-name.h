/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A name for a futex: where its address lies in the process that waits on it. */
#pragma once

#include "basic/macro.h"

/* "/usr/lib/libfoo.so.1:queue_lock+0x8", "[heap]+0x2a0", "stack of worker/1234 -0x910", "/dev/shm/pool+0x40", "shared
 * memory+0x0". NULL when the process is gone or may not be looked at. */
char *futex_name(uint32_t pid, uint64_t address);

/* Whether an address lies in private memory: 1, 0, or -ESRCH when that cannot be known. */
int futex_is_private(uint32_t pid, uint64_t address);

/* One line of /proc/PID/maps. */
typedef struct Mapping {
        uint64_t start, end, offset, inode;
        uint64_t device; /* major << 20 | minor */
        bool shared;
        const char *path; /* points into the line; "" for anonymous memory */
} Mapping;

/* Takes a line apart in place; false if it is none. */
bool mapping_parse(char *line, Mapping *ret);
