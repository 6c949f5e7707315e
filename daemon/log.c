/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "log.h"

#include <stdarg.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-journal.h>

#include "basic/text.h"

/* The one global of prismd: every part logs. Set before the first thread starts. */
static int max_level = LOG_INFO;

void log_set_level(int level) {
        max_level = level;
}

int log_level_from_name(const char *name) {
        static const char *const names[] = {
                [LOG_ERR] = "error",
                [LOG_WARNING] = "warning",
                [LOG_INFO] = "info",
                [LOG_DEBUG] = "debug",
        };

        for (int i = 0; i < (int) ELEMENTSOF(names); i++)
                if (names[i] && streq(names[i], name))
                        return i;
        return -EINVAL;
}

/* JOURNAL_STREAM names the device and inode of the stream that systemd gave us; stderr may be something else by now. */
static bool stderr_is_journal(void) {
        const char *stream = getenv("JOURNAL_STREAM");
        unsigned long long device, inode;
        struct stat st;

        return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 && fstat(STDERR_FILENO, &st) == 0 &&
                        st.st_dev == device && st.st_ino == inode;
}

void log_message(int level, const char *format, ...) {
        _cleanup_free_ char *text = NULL, *safe = NULL;
        va_list ap;
        int n;

        if (level > max_level)
                return;
        va_start(ap, format);
        n = vasprintf(&text, format, ap);
        va_end(ap);
        if (n < 0)
                return;
        safe = text_escape(text);
        if (!safe)
                return;
        if (stderr_is_journal() && sd_journal_send("MESSAGE=%s", safe, "PRIORITY=%i", level, NULL) >= 0)
                return;
        fprintf(stderr, "prismd: %s\n", safe);
}
