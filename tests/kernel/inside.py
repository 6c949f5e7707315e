# SPDX-License-Identifier: LGPL-2.1-or-later
"""The machine that a suite runs in."""

from system import ENVIRONMENT, System


class ThisMachine(System):
    """tests/system drives a container; here it is the machine itself."""

    def __init__(self):
        super().__init__(installed=False)

    def command(self, *command, user=None):
        inside = [*ENVIRONMENT, "runuser", "-u", user, "--"] if user else ENVIRONMENT
        return [*inside, *map(str, command)]
