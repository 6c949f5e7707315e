/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Socket addresses of workloads: loopback, or unix names in the working directory; and what a socket says about itself. */
#pragma once

#include "workload.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

/* The other end of a TCP connection may put off the acknowledgement of the last bytes for so long. */
#define LAST_ACK_NS (150 * MSEC)

typedef union Address {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
        struct sockaddr_un un;
} Address;

static inline socklen_t address_size(const Address *a) {
        switch (a->any.sa_family) {
        case AF_INET:
                return sizeof(a->in);
        case AF_INET6:
                return sizeof(a->in6);
        default:
                /* An abstract name has its 0 byte in front and none at its end. */
                return (socklen_t) (offsetof(struct sockaddr_un, sun_path) +
                                (a->un.sun_path[0] ? strlen(a->un.sun_path) : strlen(a->un.sun_path + 1)) + 1);
        }
}

/* Port chosen by the kernel. */
static inline Address loopback(int family) {
        Address a = { .any.sa_family = (sa_family_t) family };

        if (family == AF_INET)
                a.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        else
                a.in6.sin6_addr = in6addr_loopback;
        return a;
}

/* In the working directory, or abstract when it begins with '@'. */
static inline Address unix_name(const char *name) {
        Address a = { .un.sun_family = AF_UNIX };

        if (name[0] == '@')
                snprintf(a.un.sun_path + 1, sizeof(a.un.sun_path) - 1, "%s-%d", name + 1, (int) getpid());
        else {
                char *directory = get_current_dir_name();

                CHECK(directory);
                CHECK(snprintf(a.un.sun_path, sizeof(a.un.sun_path), "%s/%s", directory, name) <
                                (int) sizeof(a.un.sun_path));
                free(directory);
        }
        return a;
}

static inline int bound_socket(int type, Address *a) {
        socklen_t size = sizeof(*a);
        int fd = socket(a->any.sa_family, type | SOCK_CLOEXEC, 0);

        CHECK(fd >= 0);
        CHECK(bind(fd, &a->any, address_size(a)) == 0);
        if (a->any.sa_family != AF_UNIX)
                CHECK(getsockname(fd, &a->any, &size) == 0);
        return fd;
}

static inline int connected_socket(int type, const Address *to) {
        int fd = socket(to->any.sa_family, type | SOCK_CLOEXEC, 0);

        CHECK(fd >= 0);
        CHECK(connect(fd, &to->any, address_size(to)) == 0);
        return fd;
}

static inline int accepted_socket(int listener) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

        CHECK(fd >= 0);
        return fd;
}

static inline void print_address(const char *which, const Address *a, socklen_t size) {
        char text[INET6_ADDRSTRLEN] = "";

        if (a->any.sa_family == AF_UNIX) {
                if (size <= offsetof(struct sockaddr_un, sun_path))
                        return;
                int length = (int) (size - offsetof(struct sockaddr_un, sun_path));
                if (a->un.sun_path[0] == 0)
                        printf("\"%s_path\":\"@%.*s\",", which, length - 1, a->un.sun_path + 1);
                else
                        printf("\"%s_path\":\"%.*s\",", which, length, a->un.sun_path);
                return;
        }
        bool six = a->any.sa_family == AF_INET6;
        CHECK(inet_ntop(a->any.sa_family, six ? (const void *) &a->in6.sin6_addr : (const void *) &a->in.sin_addr, text,
                        sizeof(text)));
        printf("\"%s_addr\":\"%s\",\"%s_port\":%d,", which, text, which,
                        ntohs(six ? a->in6.sin6_port : a->in.sin_port));
}

static inline int socket_option(int fd, int name) {
        int value;
        socklen_t size = sizeof(value);

        CHECK(getsockopt(fd, SOL_SOCKET, name, &value, &size) == 0);
        return value;
}

/* Members of a JSON object, each followed by a comma. */
static inline void print_socket(int fd) {
        Address a = { 0 };
        socklen_t size = sizeof(a);
        struct stat st;

        CHECK(fstat(fd, &st) == 0);
        printf("\"inode\":%llu,\"family\":%d,\"type\":%d,\"protocol\":%d,\"listening\":%s,",
                        (unsigned long long) st.st_ino, socket_option(fd, SO_DOMAIN), socket_option(fd, SO_TYPE),
                        socket_option(fd, SO_PROTOCOL), socket_option(fd, SO_ACCEPTCONN) ? "true" : "false");
        CHECK(getsockname(fd, &a.any, &size) == 0);
        print_address("local", &a, size);
        size = sizeof(a);
        if (getpeername(fd, &a.any, &size) == 0)
                print_address("remote", &a, size);
}
