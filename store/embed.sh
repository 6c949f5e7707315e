#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# Writes a text file as a C string. Usage: embed.sh INPUT OUTPUT NAME
set -eu

{
        printf '/* Made from %s. */\nstatic const char %s[] =\n' "$(basename "$1")" "$3"
        sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/        "/' -e 's/$/\\n"/' "$1"
        printf '        "";\n'
} > "$2"
