#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A CPU limit: how long a thread was kept from running by it."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

import tap
from objects import ObjectTest
from places import ControlGroup


class Throttling(ObjectTest):
    PERIOD_US, QUOTA_US = 100_000, 15_000
    LENGTH_MS = 2000

    def test_against_the_group_s_own_account(self):
        group = ControlGroup("cpu")
        self.addCleanup(group.close)
        group.write("cpu.cfs_period_us", str(self.PERIOD_US))
        # Others that want the CPU too must not keep it below the limit.
        group.write("cpu.shares", "20480")

        def limit():
            group.write("cpu.cfs_quota_us", str(self.QUOTA_US))

        recording, known = self.play_in(group, "spin", self.LENGTH_MS, before=limit)
        stat = group.stat("cpu.stat")
        thread = recording.thread(known["tid"])
        times = recording.times(thread)
        self.assertGreater(stat["throttled_time"], 0.5e9, "the limit has no effect")
        self.assert_close(times["throttled_ns"], stat["throttled_time"], "throttled")
        self.assert_close(times["run_ns"], known["run_ns"], "run")


if __name__ == "__main__":
    tap.main()
