/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Parsers that take a whole string or nothing of it, whatever the locale. */
#include <time.h>

#include "parse.h"

#define DURATION_MAX_NS (10 * 366 * 24 * 3600 * NSEC_PER_SEC)

static bool is_digit(char c) {
        return c >= '0' && c <= '9';
}

static bool is_identifier_start(char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

int parse_u64(const char *s, uint64_t max, uint64_t *ret) {
        uint64_t n = 0;

        if (!is_digit(*s))
                return -EINVAL;
        for (const char *p = s; *p; p++)
                if (!is_digit(*p))
                        return -EINVAL;
        for (; *s; s++)
                if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, (uint64_t) (*s - '0'), &n))
                        return -ERANGE;
        if (n > max)
                return -ERANGE;
        *ret = n;
        return 0;
}

/* Reads the digits after a point as billionths; what is finer is cut off. */
static int read_fraction(const char **s, uint32_t *ret) {
        uint32_t n = 0, unit = 100000000;

        if (!is_digit(**s))
                return -EINVAL;
        for (; is_digit(**s); (*s)++) {
                n += (uint32_t) (**s - '0') * unit;
                unit /= 10;
        }
        *ret = n;
        return 0;
}

static uint64_t read_unit(const char **s) {
        static const struct {
                const char *name;
                uint64_t ns;
        } units[] = {
                { "ns", 1 },
                { "us", NSEC_PER_USEC },
                { "ms", NSEC_PER_MSEC },
                { "min", 60 * NSEC_PER_SEC },
                { "s", NSEC_PER_SEC },
                { "m", 60 * NSEC_PER_SEC },
                { "h", 3600 * NSEC_PER_SEC },
                { "d", 24 * 3600 * NSEC_PER_SEC },
        };

        for (size_t i = 0; i < ELEMENTSOF(units); i++) {
                const char *rest = startswith(*s, units[i].name);

                if (rest && (*rest == '\0' || is_digit(*rest))) {
                        *s = rest;
                        return units[i].ns;
                }
        }
        return 0;
}

int parse_duration(const char *s, uint64_t *ret_ns) {
        unsigned __int128 sum = 0;
        bool first = true, too_long = false;

        if (!is_digit(*s))
                return -EINVAL;

        for (; *s; first = false) {
                uint64_t whole = 0, unit;
                uint32_t fraction = 0;

                if (!is_digit(*s))
                        return -EINVAL;
                for (; is_digit(*s); s++)
                        if (whole <= DURATION_MAX_NS)
                                whole = whole * 10 + (uint64_t) (*s - '0');
                if (*s == '.') {
                        s++;
                        if (read_fraction(&s, &fraction) < 0)
                                return -EINVAL;
                }

                if (*s == '\0') {
                        if (!first)
                                return -EINVAL;
                        unit = NSEC_PER_SEC;
                } else
                        unit = read_unit(&s);
                if (unit == 0)
                        return -EINVAL;

                sum += (unsigned __int128) whole * unit + (unsigned __int128) fraction * unit / NSEC_PER_SEC;
                if (sum > DURATION_MAX_NS) {
                        too_long = true;
                        sum = DURATION_MAX_NS;
                }
        }

        if (too_long || sum == 0)
                return -ERANGE;
        *ret_ns = (uint64_t) sum;
        return 0;
}

/* Exactly `n` digits. */
static int read_number(const char **s, unsigned n, int *ret) {
        int number = 0;

        for (; n > 0; n--, (*s)++) {
                if (!is_digit(**s))
                        return -EINVAL;
                number = number * 10 + (**s - '0');
        }
        *ret = number;
        return 0;
}

static bool read_character(const char **s, char c) {
        if (**s != c)
                return false;
        (*s)++;
        return true;
}

/* "HH:MM[:SS[.frac]]" */
static int read_time_of_day(const char **s, struct tm *tm, uint32_t *ret_ns) {
        uint32_t ns = 0;
        int r;

        r = read_number(s, 2, &tm->tm_hour);
        if (r < 0)
                return r;
        if (!read_character(s, ':'))
                return -EINVAL;
        r = read_number(s, 2, &tm->tm_min);
        if (r < 0)
                return r;
        tm->tm_sec = 0;
        if (read_character(s, ':')) {
                r = read_number(s, 2, &tm->tm_sec);
                if (r >= 0 && read_character(s, '.'))
                        r = read_fraction(s, &ns);
                if (r < 0)
                        return r;
        }
        /* RFC 3339 has leap seconds; Unix time makes them the next second. */
        if (tm->tm_hour > 23 || tm->tm_min > 59 || tm->tm_sec > 60)
                return -EINVAL;
        *ret_ns = ns;
        return 0;
}

static int make_moment(time_t seconds, uint32_t ns, int64_t *ret_ns) {
        int64_t moment;

        if (seconds < 0 || __builtin_mul_overflow((int64_t) seconds, (int64_t) NSEC_PER_SEC, &moment) ||
                        __builtin_add_overflow(moment, (int64_t) ns, &moment))
                return -ERANGE;
        *ret_ns = moment;
        return 0;
}

static int days_of_month(int year, int month) {
        static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
        bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

        return days[month - 1] + (month == 2 && leap);
}

/* "+01:00" or "-05:30", in seconds. */
static int read_offset(const char **s, int *ret) {
        int sign = **s == '-' ? -1 : 1, hours, minutes;

        (*s)++;
        if (read_number(s, 2, &hours) < 0 || !read_character(s, ':') || read_number(s, 2, &minutes) < 0)
                return -EINVAL;
        if (hours > 23 || minutes > 59)
                return -EINVAL;
        *ret = sign * (hours * 3600 + minutes * 60);
        return 0;
}

static int parse_date_and_time(const char *s, int64_t *ret_ns) {
        struct tm tm = { .tm_isdst = -1 };
        int year, month, day, offset = 0;
        time_t seconds;
        uint32_t ns;
        int r;

        if (read_number(&s, 4, &year) < 0 || !read_character(&s, '-') || read_number(&s, 2, &month) < 0 ||
                        !read_character(&s, '-') || read_number(&s, 2, &day) < 0)
                return -EINVAL;
        if (month < 1 || month > 12 || day < 1 || day > days_of_month(year, month))
                return -EINVAL;
        if (!read_character(&s, 'T') && !read_character(&s, 't') && !read_character(&s, ' '))
                return -EINVAL;
        r = read_time_of_day(&s, &tm, &ns);
        if (r < 0)
                return r;
        tm.tm_year = year - 1900;
        tm.tm_mon = month - 1;
        tm.tm_mday = day;

        if (*s == '\0')
                seconds = mktime(&tm);
        else {
                if (*s == '+' || *s == '-')
                        r = read_offset(&s, &offset);
                else
                        r = read_character(&s, 'Z') || read_character(&s, 'z') ? 0 : -EINVAL;
                if (r < 0 || *s)
                        return -EINVAL;
                seconds = timegm(&tm) - offset;
        }
        return make_moment(seconds, ns, ret_ns);
}

/* The last such time of day that is not after `now`. */
static int parse_time_of_day(const char *s, int64_t now_ns, int64_t *ret_ns) {
        time_t now = now_ns / (int64_t) NSEC_PER_SEC;
        struct tm today, tm = {};
        uint32_t ns;
        int r;

        r = read_time_of_day(&s, &tm, &ns);
        if (r < 0)
                return r;
        if (*s)
                return -EINVAL;
        if (!localtime_r(&now, &today))
                return -ERANGE;

        for (int days = 0; days < 2; days++) {
                struct tm day = {
                        .tm_year = today.tm_year,
                        .tm_mon = today.tm_mon,
                        .tm_mday = today.tm_mday - days,
                        .tm_hour = tm.tm_hour,
                        .tm_min = tm.tm_min,
                        .tm_sec = tm.tm_sec,
                        .tm_isdst = -1,
                };
                int64_t moment;

                r = make_moment(mktime(&day), ns, &moment);
                if (r < 0)
                        return r;
                if (moment <= now_ns) {
                        *ret_ns = moment;
                        return 0;
                }
        }
        return -ERANGE;
}

int parse_moment(const char *s, int64_t now_ns, int64_t *ret_ns) {
        if (streq(s, "now")) {
                *ret_ns = now_ns;
                return 0;
        }
        if (s[0] == '-') {
                uint64_t before;
                int r;

                r = parse_duration(s + 1, &before);
                if (r < 0)
                        return r;
                if (now_ns < 0 || before > (uint64_t) now_ns)
                        return -ERANGE;
                *ret_ns = now_ns - (int64_t) before;
                return 0;
        }
        if (is_digit(s[0]) && is_digit(s[1]) && s[2] == ':')
                return parse_time_of_day(s, now_ns, ret_ns);
        return parse_date_and_time(s, ret_ns);
}

int parse_range(const char *s, int64_t now_ns, int64_t *ret_start_ns, int64_t *ret_end_ns) {
        _cleanup_free_ char *start = NULL;
        int64_t start_ns, end_ns;
        const char *dots;
        int r;

        dots = strstr(s, "..");
        if (!dots)
                return -EINVAL;
        start = strndup(s, (size_t) (dots - s));
        if (!start)
                return -ENOMEM;

        r = parse_moment(start, now_ns, &start_ns);
        if (r < 0)
                return r;
        r = parse_moment(dots + 2, now_ns, &end_ns);
        if (r < 0)
                return r;
        if (end_ns <= start_ns)
                return -EINVAL;
        *ret_start_ns = start_ns;
        *ret_end_ns = end_ns;
        return 0;
}

int parse_assignment(const char *s, char **ret_name, char **ret_value) {
        _cleanup_free_ char *name = NULL, *value = NULL;
        const char *equals = strchr(s, '=');

        if (!equals || !is_identifier_start(*s))
                return -EINVAL;
        for (const char *p = s; p < equals; p++)
                if (!is_identifier_start(*p) && !is_digit(*p))
                        return -EINVAL;

        name = strndup(s, (size_t) (equals - s));
        value = strdup(equals + 1);
        if (!name || !value)
                return -ENOMEM;
        *ret_name = TAKE_PTR(name);
        *ret_value = TAKE_PTR(value);
        return 0;
}
