/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finding and opening the database to read. */
#pragma once

#include "ctl.h"
#include "store/store.h"

/* --db, --state-dir or PRISM_STATE_DIR, what a running prismd says, or the default. -ENOENT: there is none. */
int database_find(const Ctl *ctl, char **ret_path);
int database_open(const Ctl *ctl, Store **ret, char **ret_error);
