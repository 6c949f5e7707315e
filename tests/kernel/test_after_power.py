#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What is left of a recording after the power was cut, on a disk that had not written all that it was given. Runs in the
guest, in the boot after that of test_power.py."""

import json
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

import tap
from inside import ThisMachine
from installed import Installed
from prism import run
from recording import NS, Recording, conservation
from truth import note

# The store is made safe on the disk every 30 batches, and a batch is a second; beside those, what a slow machine takes.
BEHIND_SECONDS = 33

system = ThisMachine()
installed = Installed()
cut = json.loads(os.environ["PRISM_CUT"])


def tearDownModule():
    installed.stop()


class AfterPower(unittest.TestCase):
    """In the order of their names; the first one starts prismd."""

    def test_1_file_system(self):
        """The kernel has repaired it, and it is whole."""
        said = run("dmesg").out
        self.assertIn("(vdc): recovery complete", said)
        self.assertNotIn("EXT4-fs error", said)

    def test_2_prismd_starts(self):
        installed.start()
        system.must("prismctl", "status")
        self.assertEqual(system.journal("-p", "err"), [])

    def test_3_database_is_whole(self):
        with installed.database() as db:
            self.assertEqual([tuple(row) for row in db.execute("PRAGMA integrity_check")], [("ok",)])
            self.assertEqual([tuple(row) for row in db.execute("PRAGMA foreign_key_check")], [])

    def test_4_recording(self):
        """Interrupted, and all there but for the last seconds."""
        listed = json.loads(system.must("prismctl", "--json", "record", "list"))
        self.assertEqual([(r["name"], r["state"]) for r in listed], [("cut", "interrupted")])
        recording = Recording(installed, "cut")
        self.addCleanup(recording.close)
        note(f"the last {(cut['last_ns'] - recording.end_ns) / NS:.1f} s are not there")
        self.assertLess(cut["last_ns"] - recording.end_ns, BEHIND_SECONDS * NS)

        # A thread that stays asleep has its row later than others, so each has an end of its own.
        problems = [p for p in conservation(recording) if "its last" not in p]
        self.assertEqual(problems, [])
        workers = [t for t in recording.threads() if t["pid"] == cut["worker"] and t["tid"] != cut["worker"]]
        self.assertEqual(len(workers), 3)
        for thread in workers:
            behind = recording.end_ns - recording.rows("thread_time", thread)[-1]["ts_ns"]
            self.assertLess(behind, 2 * NS, f"thread {thread['tid']} ends {behind} ns before the others")
        report = json.loads(system.must("prismctl", "--json", "report", "cut"))
        self.assertLessEqual({t["tid"] for t in workers}, {row["tid"] for row in report["threads"]})

    def test_5_goes_on(self):
        """The next recording is complete."""
        system.must("prismctl", "record", "start", "after", "--for", "2s")
        self.assertIn("finished", system.must("prismctl", "record", "show", "after"))


if __name__ == "__main__":
    tap.main()
