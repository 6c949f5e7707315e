#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The installed service on Debian 12's own kernel: which parts it has there, and that it does its work. Runs in the guest."""

import json
import os
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

import tap
from inside import ThisMachine
from installed import Installed
from recording import NS, conservation, Recording
from system import start_worker, wait_until
from truth import note

# What Linux 6.1 lacks, and what prismd has to say about it. All else must be "ok".
LIMITED = {
    "io_uring-requests": r"^unavailable: .*io_uring_submit_req",
}

READY = "d837e20ebc964dff9b00cc053d6acad8"
PART_LIMITED = "64b58f0a64a0455e964f5c30d0528f9d"

# A loss that an emulated machine, slow and with a clock of its own, may have. None of these is missing time.
ALLOWED_LOSSES = {"kernel/missed-switch", "kernel/missed-wake", "kernel/futex-key"}


system = ThisMachine()
installed = Installed()


def setUpModule():
    result = system.run("systemctl", "enable", "--now", "prismd")
    if result.code != 0:
        raise AssertionError(f"{result.err}\n{system.run('journalctl', '-b', '-u', 'prismd', '--no-pager').out[-6000:]}")
    system.worker = start_worker(system)


def tearDownModule():
    """prismd itself goes on: the other suites use it."""
    system.run("systemctl", "stop", "work.service")
    installed.stop()


class Service(unittest.TestCase):
    def test_parts(self):
        """`prismctl status` and the bus say the same: what this kernel lacks, with the reason, and nothing else."""
        for line in system.must("prismctl", "status").splitlines():
            note(line)
        features = system.must_call("GetStatus", "a{sv}", "0")[0]["Features"]["data"]
        limited = {part: text for part, text in features.items() if text != "ok"}
        self.assertEqual(sorted(limited), sorted(LIMITED), limited)
        for part, wanted in LIMITED.items():
            self.assertRegex(limited[part], wanted)
        shown = system.must("prismctl", "status")
        for part, text in features.items():
            self.assertRegex(shown, rf"(?m)^{re.escape(part)} +{re.escape(text.split(':')[0])}\b")

    def test_unit(self):
        self.assertEqual(system.must("systemctl", "is-active", "prismd").strip(), "active")
        shown = system.must("systemctl", "status", "--no-pager", "prismd")
        self.assertRegex(shown, r"Active: active \(running\)")
        self.assertRegex(shown, 'Status: "Following')

    def test_journal(self):
        ready = system.journal(f"MESSAGE_ID={READY}")
        self.assertEqual({e["PRIORITY"] for e in ready}, {"6"})
        said = [e["MESSAGE"] for e in system.journal(f"MESSAGE_ID={PART_LIMITED}")]
        for part, wanted in LIMITED.items():
            self.assertTrue([m for m in said if part in m], said)
            self.assertTrue([m for m in said if re.search(wanted.split(".*")[-1], m)], said)
        self.assertEqual([e["MESSAGE"] for e in system.journal("-p", "err")], [])

    def test_recording_of_a_unit(self):
        """The unit's threads, who ended their waits, calls, the control group, and no losses."""
        system.must("prismctl", "track", "--unit", "work.service")
        self.addCleanup(system.must, "prismctl", "untrack", "--all")
        system.must("prismctl", "record", "start", "work", "--for", "4s", "--calls", "full")
        report = system.must("prismctl", "report", "work")
        for line in report.splitlines()[:12]:
            note(line)
        recording = Recording(installed, "work")
        self.addCleanup(recording.close)
        self.assertEqual(conservation(recording), [])
        self.assertLessEqual(set(recording.losses()), ALLOWED_LOSSES)
        workers = [t for t in recording.threads() if t["pid"] == system.worker and t["tid"] != system.worker]
        self.assertEqual(len(workers), 3)
        tids = {t["tid"] for t in workers}
        for thread in workers:
            lock = max(recording.waits(thread, "futex"), key=lambda w: w.total_ns, default=None)
            self.assertIsNotNone(lock, recording.waits(thread))
            self.assertGreater(lock.total_ns, NS)
            self.assertLessEqual({w.tid for w in recording.wakes(thread, lock.resource)}, tids)
            self.assertIn("wake", {row["op"] for row in recording.rows("call", thread)})
        groups = {row["cgroup"] for row in recording.db.execute(
            "SELECT DISTINCT cgroup FROM cgroup_time WHERE ts_ns > ? AND ts_ns - dt_ns < ?",
            (recording.start_ns, recording.end_ns))}
        self.assertIn("/system.slice/work.service", groups)

    def test_restart(self):
        """It comes back as it was, with its database."""
        self.assertEqual(self.restarts(), 0)
        before = system.main_pid()
        os.kill(before, 9)
        wait_until(lambda: system.main_pid() not in (0, before), "systemd starts it again", 60)
        wait_until(lambda: system.run("prismctl", "status").code == 0, "it answers", 60)
        self.assertEqual(self.restarts(), 1)
        listed = json.loads(system.must("prismctl", "--json", "record", "list"))
        self.assertIsInstance(listed, list)

    def restarts(self):
        return int(system.must("systemctl", "show", "--value", "-p", "NRestarts", "prismd"))


if __name__ == "__main__":
    tap.main()
