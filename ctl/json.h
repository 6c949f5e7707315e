/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* JSON: from values of the bus, and of text and numbers that need care. */
#pragma once

#include <json-c/json.h>
#include <systemd/sd-bus.h>

#include "store/basic/macro.h"

static inline void json_putp(json_object **o) {
        json_object_put(*o);
}
#define _cleanup_json_ _cleanup_(json_putp)

/* The complete value that a message's cursor stands at: dictionaries become objects, arrays and structures arrays, file
 * descriptors null. */
int json_from_message(sd_bus_message *m, json_object **ret);

/* Text of any bytes (NULL: null); moments as RFC 3339 text (0: null); shares with six digits (whole 0: null). NULL also
 * stands for JSON's null in json-c, so that running out of memory shows as null. */
json_object *json_text(const char *s);
json_object *json_moment(int64_t unix_ns);
json_object *json_share(uint64_t part, uint64_t whole);
json_object *json_real(double d);

/* Takes the value. -ENOMEM. */
int json_add(json_object *object, const char *key, json_object *value);

void json_print(json_object *o, FILE *f);

/* Members of an object; missing ones are 0 or NULL (borrowed). */
uint64_t json_get_u64(json_object *object, const char *key);
const char *json_get_text(json_object *object, const char *key);
