/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Values of the bus as JSON, and JSON that stays valid whatever it is given. */
#include "json.h"

#include <inttypes.h>
#include <math.h>

#include "store/basic/text.h"

static int container_from_message(sd_bus_message *m, char type, const char *contents, json_object **ret) {
        _cleanup_json_ json_object *container = NULL;
        bool dictionary = type == SD_BUS_TYPE_ARRAY && contents[0] == SD_BUS_TYPE_DICT_ENTRY_BEGIN;
        int r;

        r = sd_bus_message_enter_container(m, type, contents);
        if (r < 0)
                return r;

        container = dictionary ? json_object_new_object() : json_object_new_array();
        if (!container)
                return -ENOMEM;

        while ((r = sd_bus_message_at_end(m, false)) == 0) {
                json_object *value;

                if (dictionary) {
                        _cleanup_json_ json_object *key = NULL;
                        const char *entry;

                        r = sd_bus_message_peek_type(m, NULL, &entry);
                        if (r < 0)
                                return r;
                        r = sd_bus_message_enter_container(m, SD_BUS_TYPE_DICT_ENTRY, entry);
                        if (r < 0)
                                return r;
                        r = json_from_message(m, &key);
                        if (r < 0)
                                return r;
                        r = json_from_message(m, &value);
                        if (r < 0)
                                return r;
                        r = json_add(container, json_object_get_string(key), value);
                        if (r < 0)
                                return r;
                        r = sd_bus_message_exit_container(m);
                        if (r < 0)
                                return r;
                } else {
                        r = json_from_message(m, &value);
                        if (r < 0)
                                return r;
                        if (json_object_array_add(container, value) < 0) {
                                json_object_put(value);
                                return -ENOMEM;
                        }
                }
        }
        if (r < 0)
                return r;

        r = sd_bus_message_exit_container(m);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(container);
        return 0;
}

int json_from_message(sd_bus_message *m, json_object **ret) {
        union {
                uint8_t u8;
                int boolean;
                int16_t i16;
                uint16_t u16;
                int32_t i32;
                uint32_t u32;
                int64_t i64;
                uint64_t u64;
                double real;
                const char *text;
        } v;
        const char *contents;
        json_object *o;
        char type;
        int r;

        r = sd_bus_message_peek_type(m, &type, &contents);
        if (r < 0)
                return r;
        if (r == 0)
                return -ENODATA;

        if (type == SD_BUS_TYPE_VARIANT) {
                r = sd_bus_message_enter_container(m, type, contents);
                if (r < 0)
                        return r;
                r = json_from_message(m, &o);
                if (r < 0)
                        return r;
                r = sd_bus_message_exit_container(m);
                if (r < 0) {
                        json_object_put(o);
                        return r;
                }
                *ret = o;
                return 0;
        }
        if (type == SD_BUS_TYPE_ARRAY || type == SD_BUS_TYPE_STRUCT)
                return container_from_message(m, type, contents, ret);

        if (type == SD_BUS_TYPE_UNIX_FD) {
                r = sd_bus_message_skip(m, "h");
                if (r < 0)
                        return r;
                *ret = NULL;
                return 0;
        }

        r = sd_bus_message_read_basic(m, type, &v);
        if (r < 0)
                return r;

        switch (type) {
        case SD_BUS_TYPE_BOOLEAN:
                o = json_object_new_boolean(v.boolean);
                break;
        case SD_BUS_TYPE_BYTE:
                o = json_object_new_int(v.u8);
                break;
        case SD_BUS_TYPE_INT16:
                o = json_object_new_int(v.i16);
                break;
        case SD_BUS_TYPE_UINT16:
                o = json_object_new_int(v.u16);
                break;
        case SD_BUS_TYPE_INT32:
                o = json_object_new_int(v.i32);
                break;
        case SD_BUS_TYPE_UINT32:
                o = json_object_new_uint64(v.u32);
                break;
        case SD_BUS_TYPE_INT64:
                o = json_object_new_int64(v.i64);
                break;
        case SD_BUS_TYPE_UINT64:
                o = json_object_new_uint64(v.u64);
                break;
        case SD_BUS_TYPE_DOUBLE:
                o = json_real(v.real);
                break;
        case SD_BUS_TYPE_STRING:
        case SD_BUS_TYPE_OBJECT_PATH:
        case SD_BUS_TYPE_SIGNATURE:
                o = json_object_new_string(v.text);
                break;
        default:
                return -EBADMSG;
        }
        if (!o)
                return -ENOMEM;

        *ret = o;
        return 0;
}

json_object *json_text(const char *s) {
        _cleanup_free_ char *valid = NULL;

        if (!s)
                return NULL;
        valid = text_to_utf8(s);
        return valid ? json_object_new_string(valid) : NULL;
}

json_object *json_moment(int64_t unix_ns) {
        char buffer[64];

        return unix_ns == 0 ? NULL : json_object_new_string(format_rfc3339(buffer, sizeof(buffer), unix_ns));
}

json_object *json_share(uint64_t part, uint64_t whole) {
        char buffer[32];
        double share;

        if (whole == 0)
                return NULL;
        share = (double) part / (double) whole;
        snprintf(buffer, sizeof(buffer), "%.6f", share);
        return json_object_new_double_s(share, buffer);
}

json_object *json_real(double d) {
        char buffer[64];

        /* JSON has no infinity: a number too large for a double is read back as one. */
        if (isinf(d))
                return json_object_new_double_s(d, d > 0 ? "9e999" : "-9e999");
        if (isnan(d))
                return NULL;

        /* The fewest digits that give the number back, and a point where it could be taken for an integer. */
        for (int digits = 15; digits <= 17; digits++) {
                snprintf(buffer, sizeof(buffer), "%.*g", digits, d);
                if (digits == 17 || strtod(buffer, NULL) == d)
                        break;
        }
        if (!strpbrk(buffer, ".e"))
                strncat(buffer, ".0", sizeof(buffer) - strlen(buffer) - 1);
        return json_object_new_double_s(d, buffer);
}

int json_add(json_object *object, const char *key, json_object *value) {
        if (json_object_object_add(object, key, value) < 0) {
                json_object_put(value);
                return -ENOMEM;
        }
        return 0;
}

void json_print(json_object *o, FILE *f) {
        fputs(json_object_to_json_string_ext(
                              o, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE),
                        f);
        fputc('\n', f);
}

uint64_t json_get_u64(json_object *object, const char *key) {
        json_object *o;

        return json_object_object_get_ex(object, key, &o) ? json_object_get_uint64(o) : 0;
}

const char *json_get_text(json_object *object, const char *key) {
        json_object *o;

        return json_object_object_get_ex(object, key, &o) && json_object_is_type(o, json_type_string)
                        ? json_object_get_string(o)
                        : NULL;
}
