/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Draws and erases the progress line. */
#include "progress.h"

#include <stdarg.h>
#include <sys/ioctl.h>

bool progress_is_wanted(void) {
        return isatty(STDERR_FILENO) && tcgetpgrp(STDERR_FILENO) == getpgrp();
}

void progress_show(Progress *p, const char *format, ...) {
        struct winsize size = {};
        char line[256];
        va_list ap;

        if (!progress_is_wanted())
                return;

        va_start(ap, format);
        vsnprintf(line, sizeof(line), format, ap);
        va_end(ap);

        /* A line that wraps could not be taken back. */
        if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) >= 0 && size.ws_col > 1 && size.ws_col <= strlen(line))
                line[size.ws_col - 1] = '\0';

        fprintf(stderr, "\r%s\033[K", line);
        fflush(stderr);
        p->shown = true;
}

void progress_clear(Progress *p) {
        if (!p->shown)
                return;
        fputs("\r\033[K", stderr);
        fflush(stderr);
        p->shown = false;
}
