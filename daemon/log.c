/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "log.h"

#include <pthread.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <systemd/sd-daemon.h>
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>
#include <time.h>

#include "basic/text.h"
#include "messages.h"

/* The one global of prismd: every part logs. */
static int max_level = LOG_INFO; /* set before the first thread starts */
static struct {
        pthread_mutex_t lock;
        uint64_t since_usec;
        /* Warnings have a budget of their own: news must not use up theirs. */
        unsigned lines[2], left_out;
} budget = { .lock = PTHREAD_MUTEX_INITIALIZER };

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

/* ---- The limit ---- */

static uint64_t now_usec(void) {
        struct timespec now;

        clock_gettime(CLOCK_BOOTTIME, &now);
        return (uint64_t) now.tv_sec * USEC_PER_SEC + (uint64_t) now.tv_nsec / NSEC_PER_USEC;
}

/* Starts a new stretch if the old one is over, and yields how many lines that left out. Lock held. */
static unsigned budget_turn(void) {
        uint64_t now = now_usec();
        unsigned left_out = budget.left_out;

        if (now - budget.since_usec < LOG_LINES_USEC)
                return 0;
        budget.since_usec = now;
        budget.lines[0] = budget.lines[1] = budget.left_out = 0;
        return left_out;
}

static bool budget_take(int level, unsigned *ret_left_out) {
        unsigned *lines = &budget.lines[level <= LOG_WARNING];
        bool taken;

        pthread_mutex_lock(&budget.lock);
        *ret_left_out = budget_turn();
        taken = *lines < LOG_LINES_MAX;
        if (taken)
                (*lines)++;
        else
                budget.left_out++;
        pthread_mutex_unlock(&budget.lock);
        return taken;
}

unsigned log_lines(int level) {
        unsigned n;

        pthread_mutex_lock(&budget.lock);
        n = now_usec() - budget.since_usec < LOG_LINES_USEC ? budget.lines[level <= LOG_WARNING] : 0;
        pthread_mutex_unlock(&budget.lock);
        return n;
}

/* ---- Writing ---- */

/* JOURNAL_STREAM names the device and inode of the stream that systemd gave us; stderr may be something else by now. */
static bool stderr_is_journal(void) {
        const char *stream = getenv("JOURNAL_STREAM");
        unsigned long long device, inode;
        struct stat st;

        return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 && fstat(STDERR_FILENO, &st) == 0 &&
                        st.st_dev == device && st.st_ino == inode;
}

typedef struct Entry {
        struct iovec fields[8];
        char *texts[8];
        int n;
} Entry;

/* A field that no memory can be had for is left out. */
static void entry_add(Entry *e, const char *name, const char *value) {
        if (asprintf(&e->texts[e->n], "%s=%s", name, value) < 0)
                return;
        e->fields[e->n] = (struct iovec){ e->texts[e->n], strlen(e->texts[e->n]) };
        e->n++;
}

static int send_to_journal(int level, const LogFields *fields, const char *text) {
        char number[16];
        Entry e = {};
        int r;

        entry_add(&e, "MESSAGE", text);
        snprintf(number, sizeof(number), "%i", level);
        entry_add(&e, "PRIORITY", number);
        entry_add(&e, "SYSLOG_IDENTIFIER", "prismd");
        if (fields && fields->id)
                entry_add(&e, "MESSAGE_ID", fields->id);
        if (fields && fields->target)
                entry_add(&e, "PRISM_TARGET", fields->target);
        if (fields && fields->recording)
                entry_add(&e, "PRISM_RECORDING", fields->recording);
        if (fields && fields->pid) {
                snprintf(number, sizeof(number), "%u", fields->pid);
                entry_add(&e, "PRISM_PID", number);
        }
        r = e.n > 0 ? sd_journal_sendv(e.fields, e.n) : -ENOMEM;
        for (int i = 0; i < e.n; i++)
                free(e.texts[i]);
        return r;
}

static void write_line(int level, const LogFields *fields, const char *text) {
        if (!stderr_is_journal() || send_to_journal(level, fields, text) < 0)
                fprintf(stderr, "prismd: %s\n", text);
}

static void say_left_out(unsigned n) {
        char text[128];

        if (n == 0)
                return;
        snprintf(text, sizeof(text), "%u messages were left out: there were more than %d in %d s", n, LOG_LINES_MAX,
                        (int) (LOG_LINES_USEC / USEC_PER_SEC));
        write_line(LOG_WARNING, &(LogFields){ .id = PRISM_MESSAGE_LOG_LIMIT }, text);
}

void log_catch_up(void) {
        unsigned left_out;

        pthread_mutex_lock(&budget.lock);
        left_out = budget_turn();
        pthread_mutex_unlock(&budget.lock);
        say_left_out(left_out);
}

void log_event(int level, const LogFields *fields, const char *format, ...) {
        _cleanup_free_ char *text = NULL, *safe = NULL;
        unsigned left_out;
        bool taken;
        va_list ap;
        int n;

        if (level > max_level)
                return;
        taken = budget_take(level, &left_out);
        say_left_out(left_out);
        if (!taken)
                return;
        va_start(ap, format);
        n = vasprintf(&text, format, ap);
        va_end(ap);
        if (n < 0)
                return;
        safe = text_escape(text);
        if (safe)
                write_line(level, fields, safe);
}
