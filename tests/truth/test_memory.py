#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A memory limit: how often and for how long a thread had to free memory first, against the group's own account."""

import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

import tap
import truth
from objects import ObjectTest
from places import ControlGroup


class Reclaim(ObjectTest):
    MEBIBYTES, LIMIT = 160, 24 << 20
    directory_parent = truth.scratch_directory()
    calls = "none"

    def test_against_the_group_s_own_account(self):
        group = ControlGroup("memory")
        self.addCleanup(self.close, group)
        group.write("memory.limit_in_bytes", str(self.LIMIT))
        before = self.fail_count(group)
        recording, known = self.play_in(group, "memory", self.directory / "file", self.MEBIBYTES)
        met = self.fail_count(group) - before
        self.assertGreater(met, 20, "the limit has no effect")

        thread = recording.thread(known["tid"])
        rows = recording.db.execute("""SELECT c.* FROM call c JOIN resource r ON r.id = c.resource_id
                                       WHERE r.kind = 'reclaim' AND c.op = 'reclaim_cgroup' AND c.thread_id = ?""",
                                    (thread["id"],)).fetchall()
        # The kernel asks for many pages, then for those it needs, and frees memory when both are refused; then it asks again.
        count = sum(row["count"] for row in rows)
        self.assertGreaterEqual(count, met / 4, f"{met} times at the limit")
        self.assertLessEqual(count, met, f"{met} times at the limit")
        self.assertEqual(count, sum(row[f"hist{i}"] for row in rows for i in range(8)), "histogram")
        reclaimed = sum(row["total_ns"] for row in rows)
        waited = sum(w.total_ns for w in recording.waits(thread, "reclaim"))
        self.assertLessEqual(waited, reclaimed, "waits are part of it")
        self.assertLess(reclaimed, known["elapsed_ns"])

        found = recording.db.execute("""SELECT sum(memory_events) AS n, max(memory_bytes) AS most FROM cgroup_time
                                        WHERE cgroup LIKE ? AND ts_ns > ? AND ts_ns - dt_ns < ?""",
                                     (f"%{group.name}", recording.start_ns, recording.end_ns)).fetchone()
        self.assertLessEqual(found["most"], self.LIMIT, "memory of the group")
        self.assertLessEqual(found["n"], met, "events of the group")
        self.assertGreater(found["n"], 0.3 * met, "events of the group")

    @staticmethod
    def fail_count(group):
        return int((group.path / "memory.failcnt").read_text(encoding="ascii"))

    @staticmethod
    def close(group):
        # Pages of a file that is gone go with it, soon.
        for _ in range(50):
            try:
                group.close()
                return
            except OSError:
                time.sleep(0.1)
        group.close()


if __name__ == "__main__":
    tap.main()
