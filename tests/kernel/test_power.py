#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The power is cut while something is recorded: this is the time before. Runs in the guest, as the last of its boot: it ends
with the line that makes test_kernel.py cut the power. What must be left is in test_after_power.py."""

import json
import pathlib
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

import tap
from inside import ThisMachine
from installed import Installed
from system import start_worker

# Longer than the database may be behind on the disk, so that there is something to find.
RECORDED_SECONDS = 75


class Power(unittest.TestCase):
    def test_recording_when_the_power_is_cut(self):
        system, installed = ThisMachine(), Installed().start()
        worker = start_worker(system)
        system.must("prismctl", "track", "--unit", "work.service")
        # All the time before the cut; the recording itself begins within it.
        system.must("prismctl", "record", "start", "cut")
        time.sleep(RECORDED_SECONDS)
        with installed.database() as db:
            rows, last = db.execute("SELECT count(*), max(ts_ns) FROM thread_time").fetchone()
        self.assertGreater(rows, RECORDED_SECONDS)
        print("cut", json.dumps({"worker": worker, "rows": rows, "last_ns": last, "unix_ns": time.time_ns()}), flush=True)
        while True:
            pass  # its time would fly if there were nothing to do


if __name__ == "__main__":
    tap.main()
