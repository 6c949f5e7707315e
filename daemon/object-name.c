/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "object-name.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "futex-name.h"
#include "names.h"

/* The kernel's TCP_LISTEN, which its state of every stream socket is called. */
#define STATE_LISTEN 10

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

void object_address(unsigned family, const unsigned char address[static 16], char *buffer, size_t size) {
        static const unsigned char any[16] = {};

        static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };

        /* What came over IPv4 is an IPv4 address, whatever the program asked for. */
        if (family == AF_INET6 && memcmp(address, mapped, sizeof(mapped)) == 0) {
                family = AF_INET;
                address += sizeof(mapped);
        }
        if (memcmp(address, any, family == AF_INET ? 4 : 16) == 0 ||
                        !inet_ntop((int) family, address, buffer, (socklen_t) size))
                snprintf(buffer, size, "*");
}

char *object_path(const struct prism_object *object) {
        size_t n = MIN((size_t) object->path_length, sizeof(object->path));
        char *path;

        if (n == 0)
                return NULL;
        path = strndup(object->path + (object->path[0] == '\0'), n - (object->path[0] == '\0'));
        if (path && object->path[0] == '\0') {
                char *named = NULL;

                if (asprintf(&named, "@%s", path) < 0)
                        named = NULL;
                free(path);
                return named;
        }
        return path;
}

static const char *protocol_name(const struct prism_object *object, char *buffer, size_t size) {
        switch (object->protocol) {
        case IPPROTO_TCP:
                return "tcp";
        case IPPROTO_UDP:
                return "udp";
        case IPPROTO_UDPLITE:
                return "udplite";
        case IPPROTO_SCTP:
                return "sctp";
        case IPPROTO_MPTCP:
                return "mptcp";
        case IPPROTO_ICMP:
        case IPPROTO_ICMPV6:
                return "icmp";
        default:
                snprintf(buffer, size, "%s-%u", object->type == SOCK_RAW ? "raw" : "ip", object->protocol);
                return buffer;
        }
}

static int inet_name(const struct prism_object *object, char **ret) {
        char address[INET6_ADDRSTRLEN], number[32];
        const char *protocol = protocol_name(object, number, sizeof(number));
        bool remote = object->remote_port != 0, brackets;

        object_address(object->family, remote ? object->remote_address : object->local_address, address,
                        sizeof(address));
        brackets = strchr(address, ':');
        if (!remote && object->local_port == 0)
                return asprintf(ret, "%s unbound", protocol);
        return asprintf(ret, "%s %s%s%s%s:%u", protocol,
                        !remote && object->type == SOCK_STREAM && object->state == STATE_LISTEN ? "listen " : "",
                        brackets ? "[" : "", address, brackets ? "]" : "",
                        (unsigned) (remote ? object->remote_port : object->local_port));
}

static int poll_name(const struct prism_object *object, char **ret) {
        char list[PRISM_POLL_FILES * 13 + 8] = "";
        size_t n = 0;

        for (unsigned i = 0; i < MIN(object->poll_count, (unsigned) PRISM_POLL_FILES); i++)
                n += (size_t) snprintf(
                                list + n, sizeof(list) - n, "%s%d", i > 0 ? ", " : "", object->poll_descriptors[i]);
        return asprintf(ret, "fd %s%s", list, object->poll_count > PRISM_POLL_FILES ? ", ..." : "");
}

static int unix_name(const struct prism_object *object, char **ret) {
        static const char *const types[] = {
                [SOCK_STREAM] = "stream", [SOCK_DGRAM] = "dgram", [SOCK_SEQPACKET] = "seqpacket"
        };
        _cleanup_free_ char *path = object_path(object);

        if (path)
                return asprintf(ret, "unix %s", path);
        return asprintf(ret, "unix %s to [%llu]",
                        object->type < ELEMENTSOF(types) && types[object->type] ? types[object->type] : "socket",
                        object->peer_inode);
}

char *object_name(unsigned kind, const struct prism_object *object, NameSource *ret_source) {
        NameSource source = NAME_FULL;
        char *name = NULL;
        int n;

        switch (kind) {
        case PRISM_KIND_INET:
                n = inet_name(object, &name);
                break;
        case PRISM_KIND_UNIX:
                n = unix_name(object, &name);
                break;
        case PRISM_KIND_SOCKET:
                n = asprintf(&name, "%s socket",
                                object->family == AF_NETLINK                  ? "netlink"
                                                : object->family == AF_PACKET ? "packet"
                                                : object->family == AF_VSOCK  ? "vsock"
                                                : object->family == AF_ALG    ? "alg"
                                                                              : "other");
                break;
        case PRISM_KIND_POLL:
                n = poll_name(object, &name);
                break;
        case PRISM_KIND_EPOLL:
        case PRISM_KIND_EVENTFD:
        case PRISM_KIND_TIMERFD:
        case PRISM_KIND_SIGNALFD:
        case PRISM_KIND_INOTIFY:
        case PRISM_KIND_IO_URING:
                if (object->descriptor < 0)
                        return NULL;
                source = NAME_COMPONENT;
                n = asprintf(&name, "%s fd %d", kind_name(kind), object->descriptor);
                break;
        case PRISM_KIND_PIPE:
                return NULL;
        default:
                if (object->name[0] == '\0')
                        return NULL;
                source = object->name[0] == '/' ? NAME_FULL : NAME_COMPONENT;
                n = asprintf(&name, "%.*s", (int) sizeof(object->name), object->name);
        }
        if (n < 0)
                return NULL;
        *ret_source = source;
        return name;
}

char *object_path_by_descriptor(uint32_t pid, int descriptor, const ResourceKey *id) {
        char link[64], path[PATH_MAX];
        struct statx st;
        ssize_t n;

        snprintf(link, sizeof(link), "/proc/%u/fd/%d", pid, descriptor);
        n = readlink(link, path, sizeof(path) - 1);
        if (n <= 0 || path[0] != '/')
                return NULL;
        path[n] = '\0';
        /* Through the link, not by the path: no name is looked up; and what the kernel knows already is enough. */
        if (statx(AT_FDCWD, link, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_INO | STATX_TYPE, &st) < 0)
                return NULL;
        switch (id->kind) {
        case PRISM_KIND_FILE:
        case PRISM_KIND_FIFO:
        case PRISM_KIND_PAGE_FAULT:
                /* Some file systems show a device of their own to users: then the inode has to do. */
                if (st.stx_ino != id->space)
                        return NULL;
                break;
        case PRISM_KIND_CHARDEV:
        case PRISM_KIND_DISK:
                if (((uint64_t) st.stx_rdev_major << 20 | st.stx_rdev_minor) != id->space)
                        return NULL;
                break;
        default:
                return NULL;
        }
        return strdup(path);
}

char *object_path_by_mapping(uint32_t pid, const ResourceKey *id) {
        _cleanup_fclose_ FILE *f = NULL;
        _cleanup_free_ char *line = NULL;
        char path[64];
        size_t size = 0;

        snprintf(path, sizeof(path), "/proc/%u/maps", pid);
        f = fopen(path, "re");
        if (!f)
                return NULL;
        while (getline(&line, &size, f) > 0) {
                Mapping m;

                line[strcspn(line, "\n")] = '\0';
                /* Some file systems show users a device of their own, which has no major number. */
                if (mapping_parse(line, &m) && m.inode == id->space && m.path[0] == '/' &&
                                (m.device == id->address >> 32 || m.device >> 20 == 0))
                        return strdup(m.path);
        }
        return NULL;
}
