#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# Writes the view linux_consts, the names of numbers from the system's own headers: linux-consts.sh COMPILER > OUTPUT
# Most of them are enumerators, which only a compiled program can print.
set -eu
export LC_ALL=C

compiler=${1:?}
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

# Every name that the headers define; the C library defines its enumerators as macros, too.
names() {
        echo "$1" | "$compiler" -E -dM - | sed -n 's/^#define \([A-Z][A-Za-z0-9_]*\) .*/\1/p' | sort | grep -E "$2" |
                grep -vxE "$3"
}

constants() {
        for name in $(names "$2" "$3" "$4"); do
                printf '        constant("%s", "%s", (unsigned long long) %s);\n' "$1" "$name" "$name"
        done
}

# Left out: what is not one of them, and second names of a number, which would double rows in a join.
{
        printf '#include <stdio.h>\n#include <sys/socket.h>\n#include <netinet/in.h>\n#include <linux/magic.h>\n'
        cat <<'END'
static void constant(const char *type, const char *name, unsigned long long value) {
        static const char *separator = "";

        printf("%s\n                ('%s', '%s', %llu)", separator, type, name, value);
        separator = ",";
}

int main(void) {
        printf("CREATE VIEW linux_consts (const_type, const_name, value) AS\n        VALUES");
END
        constants socket_family '#include <sys/socket.h>' '^AF_' 'AF_(LOCAL|FILE|ROUTE|MAX)'
        constants socket_type '#include <sys/socket.h>' '^SOCK_' 'SOCK_(CLOEXEC|NONBLOCK)'
        constants family_protocol '#include <netinet/in.h>' '^IPPROTO_' 'IPPROTO_(HOPOPTS|MAX)'
        constants fs_magic '#include <linux/magic.h>' '_MAGIC$' 'STACK_END_MAGIC'
        printf '        printf(";\\n");\n        return 0;\n}\n'
} > "$directory/constants.c"
"$compiler" -o "$directory/constants" "$directory/constants.c"
"$directory/constants"
