/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Looking a period up among the recordings, or parsing it. */
#include "ranges.h"

#include "basic/parse.h"
#include "basic/text.h"
#include "internal.h"

/* 1 and the results if there is a recording of that name, 0 if not. */
static int find_recording(Store *s, const char *name, int64_t now_ns, int64_t *ret_start_ns, int64_t *ret_end_ns,
                char **ret_error) {
        _cleanup_statement_ sqlite3_stmt *st = NULL;
        int r;

        r = store_prepare(s, "SELECT start_ns, end_ns FROM recording WHERE name = ?1", &st, ret_error);
        if (r < 0)
                return r;
        if (store_bind_text(st, 1, name) != SQLITE_OK)
                return store_say(ret_error, -ENOMEM, "There is not enough memory to work on %s.", store_name(s));

        switch (sqlite3_step(st)) {
        case SQLITE_ROW:
                *ret_start_ns = sqlite3_column_int64(st, 0);
                *ret_end_ns = sqlite3_column_type(st, 1) == SQLITE_NULL ? MAX(now_ns, *ret_start_ns)
                                                                        : sqlite3_column_int64(st, 1);
                return 1;
        case SQLITE_DONE:
                return 0;
        default:
                return store_failed(s, ret_error);
        }
}

int store_resolve_range(Store *s, const char *text, int64_t now_ns, int64_t *ret_start_ns, int64_t *ret_end_ns,
                char **ret_name, char **ret_error) {
        _cleanup_free_ char *shown = text_escape(text), *name = strdup(text);
        int64_t start_ns = 0, end_ns = 0;
        int r;

        if (!shown || !name)
                return -ENOMEM;

        r = find_recording(s, text, now_ns, &start_ns, &end_ns, ret_error);
        if (r < 0)
                return r;
        if (r == 0) {
                if (!strstr(text, ".."))
                        return store_say(ret_error, -ENOENT,
                                        "There is no recording %s in %s: prismctl record list shows those that there "
                                        "are.",
                                        shown, store_name(s));
                r = parse_range(text, now_ns, &start_ns, &end_ns);
                if (r < 0)
                        return store_say(ret_error, r,
                                        "%s is not a period: give a recording's name or START..END, as in -10m..-5m, "
                                        "12:00:00..12:05:00 or 2026-11-30T12:00:00Z..2026-11-30T12:05:00Z.",
                                        shown);
                name = (free(name), NULL);
        }

        *ret_start_ns = start_ns;
        *ret_end_ns = end_ns;
        *ret_name = TAKE_PTR(name);
        return 0;
}
