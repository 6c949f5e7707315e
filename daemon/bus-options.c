/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The options dictionary in which every method ends. */
#include "../dbus/names.h"
#include "manager-bus.h"

int bus_read_options(sd_bus_message *message, const BusOption *entries, size_t n, sd_bus_error *error) {
        int r;

        r = sd_bus_message_enter_container(message, 'a', "{sv}");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(message, 'e', "sv")) > 0) {
                const BusOption *option = NULL;
                const char *key, *contents;
                char type[2] = {};

                r = sd_bus_message_read_basic(message, 's', &key);
                if (r < 0)
                        return r;
                for (size_t i = 0; i < n; i++)
                        if (streq(entries[i].key, key))
                                option = &entries[i];
                if (!option)
                        return sd_bus_error_setf(
                                        error, PRISM_ERROR_INVALID_ARGS, "there is no option \"%s\" here", key);

                type[0] = option->type;
                r = sd_bus_message_peek_type(message, NULL, &contents);
                if (r < 0)
                        return r;
                if (!streq(contents, type))
                        return sd_bus_error_setf(error, PRISM_ERROR_INVALID_ARGS, "option \"%s\" is of type %s, not %s",
                                        key, type, contents);
                r = sd_bus_message_read(message, "v", type, option->value);
                if (r < 0)
                        return r;
                r = sd_bus_message_exit_container(message);
                if (r < 0)
                        return r;
        }
        if (r < 0)
                return r;
        return sd_bus_message_exit_container(message);
}
