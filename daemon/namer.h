/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Looks up names that need a process's memory map, on a thread of its own: reading /proc/PID/maps waits for a lock that a
 * process which hangs may hold for ever, and then the main loop goes on without names. One batch at a time. */
#pragma once

#include <systemd/sd-event.h>

#include "registry.h"

/* Asked for at a time; what comes while a batch is being looked up waits, and so many more are refused. */
#define NAMER_BATCH 128

typedef struct Namer Namer;

/* `name` is the callee's. Called on the main loop. */
typedef void (*namer_found)(const ResourceKey *id, char *name, void *userdata);

int namer_new(sd_event *event, namer_found found, void *userdata, Namer **ret);
/* Waits for the batch that is being looked up. */
Namer *namer_free(Namer *n);
DEFINE_CLEANUP(Namer *, namer_free);

/* A futex by its address, a mapped file by its inode. -EBUSY: ask again later. */
int namer_ask(Namer *n, const ResourceKey *id, uint32_t pid, uint64_t address);
/* Sends what was asked on its way, unless a batch is there already. */
void namer_flush(Namer *n);
/* Gives the batch on its way a moment: for those who will not ask again. */
void namer_wait(Namer *n);
