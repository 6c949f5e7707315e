/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a user writes for a period, into two moments. */
#pragma once

#include "store.h"

/* `text` is a recording's name (which wins, whatever it looks like) or a range as parse_range() reads it. The period is
 * (start, end]; that of a running recording ends now. *ret_name is the recording's name or NULL for a range; the caller
 * frees it. -ENOENT there is neither; -EINVAL, -ERANGE a bad range; each with a sentence. */
int store_resolve_range(Store *s, const char *text, int64_t now_ns, int64_t *ret_start_ns, int64_t *ret_end_ns,
                char **ret_name, char **ret_error);
