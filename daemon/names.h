/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The words for the numbers that the kernel side uses. All returned strings are constants. */
#pragma once

#include "basic/macro.h"
#include "../bpf/prism.h"

const char *kind_name(unsigned kind);
/* "wait", "lock_pi", "stopped", ...; one word for all system calls that do the same (read for pread64 and preadv, on a socket
 * receive), else the call's name; "syscall-600" for numbers that this build has no name for. */
const char *op_name(unsigned kind, unsigned op);
const char *waker_kind_name(unsigned kind);
const char *loss_name(unsigned reason);
const char *follow_name(unsigned follow);
int follow_from_name(const char *name); /* -EINVAL */
