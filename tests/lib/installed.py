# SPDX-License-Identifier: LGPL-2.1-or-later
"""prism as it is installed on this machine, for tests that otherwise start a prismd of their own: PRISM_INSTALLED=1."""

import os
import pathlib

from prism import Prismd, environment, run

STATE = pathlib.Path("/var/lib/prism")


def wanted():
    return os.environ.get("PRISM_INSTALLED") == "1"


class Installed(Prismd):
    """The service, with its own user, limits and database. All suites share it: each deletes what it has recorded."""

    def __init__(self):
        super().__init__(directory=STATE)
        self.state = STATE

    def start(self):
        done = run("systemctl", "start", "prismd.service")
        if done.code != 0:
            raise AssertionError(f"{done.err.strip()}\n{self.log()[-4000:]}")
        self.pid = int(run("systemctl", "show", "--value", "-p", "MainPID", "prismd.service").out)
        return self

    def stop(self):
        """Goes on running, with nothing of these tests in it."""
        self.ctl("untrack", "--all")
        for recording in self.json("record", "list"):
            self.must("record", "delete", recording["name"])
        self.pid = None
        return 0

    def kill(self):
        self.pid = None

    def alive(self):
        return self.pid is not None and os.path.exists(f"/proc/{self.pid}")

    def log(self):
        return run("journalctl", "-b", "-o", "cat", "--no-pager", "-u", "prismd.service").out

    def ctl(self, *arguments, **options):
        return run("prismctl", *arguments, env=environment(), **options)
