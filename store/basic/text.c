/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* UTF-8, escaping, and numbers for tables. Nothing here depends on the locale. */
#include <time.h>

#include "text.h"

/* Decodes the character at `s`: its length in bytes, or 0 if the bytes there are not UTF-8 (overlong forms, surrogates
 * and numbers above U+10FFFF are not). A NUL byte is not decoded: 0. */
static size_t utf8_decode(const char *text, uint32_t *ret) {
        const unsigned char *s = (const unsigned char *) text;
        uint32_t c, least;
        size_t n;

        if (s[0] == 0)
                return 0;
        if (s[0] < 0x80) {
                *ret = s[0];
                return 1;
        }
        if ((s[0] & 0xe0) == 0xc0) {
                n = 2;
                c = s[0] & 0x1f;
                least = 0x80;
        } else if ((s[0] & 0xf0) == 0xe0) {
                n = 3;
                c = s[0] & 0x0f;
                least = 0x800;
        } else if ((s[0] & 0xf8) == 0xf0) {
                n = 4;
                c = s[0] & 0x07;
                least = 0x10000;
        } else
                return 0;

        for (size_t i = 1; i < n; i++) {
                if ((s[i] & 0xc0) != 0x80)
                        return 0;
                c = c << 6 | (s[i] & 0x3f);
        }
        if (c < least || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
                return 0;
        *ret = c;
        return n;
}

bool utf8_is_valid(const char *s) {
        uint32_t c;

        while (*s) {
                size_t n = utf8_decode(s, &c);

                if (n == 0)
                        return false;
                s += n;
        }
        return true;
}

static bool is_control(uint32_t c) {
        return c < 0x20 || (c >= 0x7f && c <= 0x9f);
}

/* Marks, embeddings, overrides and isolates: with them a name can show in another order than it is written. */
static bool is_bidirectional_control(uint32_t c) {
        return c == 0x61c || c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

static char short_escape(char c) {
        switch (c) {
        case '\n':
                return 'n';
        case '\t':
                return 't';
        case '\r':
                return 'r';
        case '\\':
                return '\\';
        default:
                return 0;
        }
}

char *text_escape(const char *s) {
        static const char digits[] = "0123456789abcdef";
        char *text, *p;

        text = malloc(strlen(s) * 4 + 1);
        if (!text)
                return NULL;

        for (p = text; *s;) {
                char letter = short_escape(*s);
                uint32_t c = 0;
                size_t n = utf8_decode(s, &c);

                if (letter) {
                        *p++ = '\\';
                        *p++ = letter;
                        s++;
                } else if (n > 0 && !is_control(c) && !is_bidirectional_control(c)) {
                        p = mempcpy(p, s, n);
                        s += n;
                } else
                        for (n = MAX(n, 1U); n > 0; n--, s++) {
                                *p++ = '\\';
                                *p++ = 'x';
                                *p++ = digits[(unsigned char) *s >> 4];
                                *p++ = digits[(unsigned char) *s & 15];
                        }
        }
        *p = '\0';
        return text;
}

char *text_to_utf8(const char *s) {
        char *text, *p;
        uint32_t c;

        text = malloc(strlen(s) * 3 + 1);
        if (!text)
                return NULL;

        for (p = text; *s;) {
                size_t n = utf8_decode(s, &c);

                if (n > 0)
                        p = mempcpy(p, s, n);
                else {
                        p = mempcpy(p, "\xef\xbf\xbd", 3);
                        n = 1;
                }
                s += n;
        }
        *p = '\0';
        return text;
}

char *format_duration(char *buffer, size_t size, uint64_t ns) {
        static const struct {
                uint64_t ns;
                const char *name;
        } units[] = { { NSEC_PER_SEC, "s" }, { NSEC_PER_MSEC, "ms" }, { NSEC_PER_USEC, "us" } };

        for (size_t i = 0; i < ELEMENTSOF(units); i++) {
                unsigned long long whole = ns / units[i].ns, thousandths = ns % units[i].ns / (units[i].ns / 1000);

                if (whole == 0)
                        continue;
                /* Cut, not rounded, so that 999.9 us do not become 1000 us. */
                if (whole < 10 && i < 2)
                        (void) snprintf(buffer, size, "%llu.%03llu%s", whole, thousandths, units[i].name);
                else if (whole < 100 && i < 2)
                        (void) snprintf(buffer, size, "%llu.%llu%s", whole, thousandths / 100, units[i].name);
                else
                        (void) snprintf(buffer, size, "%llu%s", whole, units[i].name);
                return buffer;
        }

        (void) snprintf(buffer, size, ns > 0 ? "%lluns" : "%llu", (unsigned long long) ns);
        return buffer;
}

char *format_share(char *buffer, size_t size, uint64_t part, uint64_t whole) {
        unsigned long long tenths;

        if (whole == 0) {
                (void) snprintf(buffer, size, "-");
                return buffer;
        }
        tenths = (unsigned long long) ((double) part / (double) whole * 1000 + 0.5);
        (void) snprintf(buffer, size, "%llu.%llu%%", tenths / 10, tenths % 10);
        return buffer;
}

static char *format_time(char *buffer, size_t size, int64_t unix_ns, const char *between, const char *end) {
        int64_t ns = unix_ns % (int64_t) NSEC_PER_SEC;
        time_t seconds = unix_ns / (int64_t) NSEC_PER_SEC;
        struct tm tm;

        if (ns < 0) {
                ns += (int64_t) NSEC_PER_SEC;
                seconds--;
        }
        if (!gmtime_r(&seconds, &tm))
                tm = (struct tm){};
        (void) snprintf(buffer, size, "%04d-%02d-%02d%s%02d:%02d:%02d.%06d%s", tm.tm_year + 1900, tm.tm_mon + 1,
                        tm.tm_mday, between, tm.tm_hour, tm.tm_min, tm.tm_sec, (int) (ns / (int64_t) NSEC_PER_USEC),
                        end);
        return buffer;
}

char *format_moment(char *buffer, size_t size, int64_t unix_ns) {
        return format_time(buffer, size, unix_ns, " ", "");
}

char *format_rfc3339(char *buffer, size_t size, int64_t unix_ns) {
        return format_time(buffer, size, unix_ns, "T", "Z");
}

bool recording_name_is_valid(const char *s) {
        size_t n = strlen(s);
        uint32_t c;

        if (n < 1 || n > 200 || s[0] == '-' || s[0] == '.' || strstr(s, ".."))
                return false;
        for (; *s; s += n) {
                n = utf8_decode(s, &c);
                if (n == 0 || is_control(c) || c == '/')
                        return false;
        }
        return true;
}
