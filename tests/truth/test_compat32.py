#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A 32-bit program: its system calls have numbers of their own."""

import errno
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

import tap
from objects import ObjectTest
from prism import WORKLOADS


class Compat(ObjectTest):
    def test_read_poll_and_sleep(self):
        program = WORKLOADS / "compat32"
        if not program.exists():
            self.skipTest("the compiler makes no 32-bit code (gcc -m32)")
        try:
            with subprocess.Popen([program], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL):
                pass
        except OSError as error:
            if error.errno != errno.ENOEXEC:
                raise
            self.skipTest("this kernel runs no 32-bit programs (IA32 emulation is off)")
        recording, truth = self.play("compat32")
        thread = recording.thread(truth["tid"])
        for op, kind in (("read", "pipe"), ("poll", "poll")):
            waits = [w for w in recording.waits(thread, kind, op) if w.count >= truth[op]["count"]]
            wait = self.only(waits, f"{op}: {recording.waits(thread)}")
            self.assertEqual(wait.count, truth[op]["count"], f"{op}: number of waits")
            self.assert_close(wait.total_ns, truth[op]["total_ns"], f"{op}: total")
            self.check_wakers(recording, op, {"waker": truth["child"]}, thread, wait, ("thread",))
        wait = self.only(recording.waits(thread, "timer", "nanosleep"), f"sleeps: {recording.waits(thread)}")
        self.assertEqual(wait.count, truth["sleep"]["count"], "sleeps: number of waits")
        self.assert_close(wait.total_ns, truth["sleep"]["total_ns"], "sleeps: total")
        self.check_named(recording, "32-bit program", thread)


if __name__ == "__main__":
    tap.main()
