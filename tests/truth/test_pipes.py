#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Waits on pipes, FIFOs, terminals, eventfd, timerfd, signalfd and inotify."""

import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

import tap
from objects import ObjectTest


class Pipes(ObjectTest):
    def test_each_kind(self):
        recording, truth = self.play("pipes", cwd=self.directory)
        resources = {}

        def check(name, kind, op, **expected):
            with self.subTest(name):
                _, wait = self.check(recording, name, truth[name], kind, op, **expected)
                resources[name] = wait.resource

        for name, op in (("pipe-read", "read"), ("pipe-write", "write")):
            check(name, "pipe", op, inode=truth[name]["inode"], label=rf"^pipe:\[{truth[name]['inode']}\]$")
        fifo = truth["fifo-read"]
        check("fifo-read", "fifo", "read", inode=fifo["inode"], label=f"^{re.escape(fifo['path'])}$")
        for name in ("fifo-open-read", "fifo-open-write"):
            check(name, "fifo", "open", label=f"^{re.escape(truth[name]['path'])}$")
        for name, op in (("eventfd-1", "read"), ("eventfd-2", "read"), ("eventfd-write", "write")):
            check(name, "eventfd", op)
        check("timerfd", "timerfd", "read", wakers=("timer",))
        check("signalfd", "signalfd", "read")
        check("inotify", "inotify", "read")
        with self.subTest("terminal"):
            resources["terminal"] = self.check_terminal(recording, truth["terminal"])
        self.assertEqual(len(set(resources.values())), len(resources), f"objects are merged: {resources}")

    def check_terminal(self, recording, known):
        """What is written to a terminal is handed on by a thread of the kernel, which may wake the reader more than once."""
        thread = recording.thread(known["tid"])
        wait = self.only(recording.waits(thread, "chardev", "read"), f"terminal: {recording.waits(thread)}")
        self.assertIn(wait.count, range(known["count"], 2 * known["count"]), "terminal: number of waits")
        self.assert_close(wait.total_ns, known["total_ns"], "terminal: total")
        self.assertRegex(wait.name or "", rf"\b{os.path.basename(known['path'])}$", "terminal: name")
        wakes = recording.wakes(thread, wait.resource)
        self.assertEqual({w.kind for w in wakes}, {"thread"}, f"terminal: by whom: {wakes}")
        return wait.resource


if __name__ == "__main__":
    tap.main()
