/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What people call an object: a socket by its protocol and its other end, a file by its path, an epoll set by its
 * descriptor. */
#pragma once

#include "registry.h"

/* "tcp 10.0.0.2:5432", "tcp listen *:80", "udp *:53", "unix /run/x.sock", "poll of fd 4, 7", "eventfd fd 9", "data.db".
 * *ret_source says how good it is. NULL and *ret_source unset: nothing better than what it has; or -ENOMEM in errno. */
char *object_name(unsigned kind, const struct prism_object *object, NameSource *ret_source);

/* A socket's address as text; "*" for the unspecified one. `size` at least INET6_ADDRSTRLEN. */
void object_address(unsigned family, const unsigned char address[static 16], char *buffer, size_t size);
/* A socket's path, with '@' in place of the 0 byte that begins an abstract one; NULL if it has none. The caller frees. */
char *object_path(const struct prism_object *object);

/* The path of an open descriptor, if it is still the object that `id` describes; NULL if it is not, or cannot be looked at.
 * Never waits for a file system. */
char *object_path_by_descriptor(uint32_t pid, int descriptor, const ResourceKey *id);

/* The path of that file, if the process has it mapped; NULL as above. */
char *object_path_by_mapping(uint32_t pid, const ResourceKey *id);
