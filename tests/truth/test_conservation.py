#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The conservation check itself: it passes where all adds up, and fails where anything does not."""

import pathlib
import sqlite3
import sys
import unittest

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(SOURCE / "tests/lib"))

import tap
from prism import BUILD, Prismd
from recording import Recording, conservation
from truth import TruthTest

SECOND = 1_000_000_000
START = 1_800_000_000 * SECOND


class Database:
    """A recording of three seconds with one thread, made by hand."""

    def __init__(self):
        self.db = sqlite3.connect(":memory:")
        self.db.row_factory = sqlite3.Row
        self.db.executescript((SOURCE / "store/schema.sql").read_text(encoding="utf-8"))
        self.db.executescript(f"""
            INSERT INTO machine VALUES (1, 'host', '6.1', 'x86_64', 2);
            INSERT INTO boot VALUES (1, 1, 'b');
            INSERT INTO process (id, machine_id, boot, pid, host_pid, start_boot_ns, start_ns, comm, found_by)
                VALUES (1, 1, 1, 10, 10, 1, {START - SECOND}, 'p', 'target'), (2, 1, 1, 20, 20, 1, 1, 'q', 'observed');
            INSERT INTO thread VALUES (1, 1, 10, 10, 1, {START - SECOND}, NULL, 't'), (2, 1, 11, 11, 1, 1, NULL, 'w');
            INSERT INTO resource VALUES (1, 1, 1, 'timer', 'nanosleep', NULL);
            INSERT INTO recording (id, name, start_ns, end_ns, state) VALUES (1, 'r', {START}, {START + 3 * SECOND}, 'finished');
        """)
        for i in range(1, 4):
            ts = START + i * SECOND
            self.db.execute("INSERT INTO thread_time VALUES (?, ?, 1, 400000000, 100000000, 500000000, 0, 0, 0, 0, 5, 1)",
                            (ts, SECOND))
            self.db.execute("INSERT INTO wait VALUES (?, ?, 1, 1, 'nanosleep', 5, 500000000, 100000000, 0, 0, 0, 0, 0, 5, 0, 0)",
                            (ts, SECOND))
            self.db.execute("INSERT INTO wake VALUES (?, ?, 0, 'timer', 1, 1, 5, 500000000)", (ts, SECOND))
            self.db.execute("INSERT INTO ran_instead VALUES (?, ?, 1, 2, 60000000), (?, ?, 1, NULL, 40000000)",
                            (ts, SECOND, ts, SECOND))

    def database(self):
        return self.db


class Check(unittest.TestCase):
    def problems(self, *changes):
        made = Database()
        for change in changes:
            made.db.execute(change)
        return conservation(Recording(made, "r"))

    def test_all_adds_up(self):
        self.assertEqual(self.problems(), [])

    def test_counted_cases_are_allowed_while_they_are_few(self):
        loss = f"INSERT INTO loss VALUES ({START + SECOND}, 'kernel', 'missed-switch', %d)"
        self.assertEqual(self.problems(loss % 2, "UPDATE thread_time SET healed_ns = 900000"), [])
        self.assertNotEqual(self.problems(loss % 50), [])

    def test_anything_else_is_found(self):
        second = f"ts_ns = {START + 2 * SECOND}"
        for change in (
                f"UPDATE thread_time SET run_ns = run_ns - 2000000 WHERE {second}",
                f"UPDATE thread_time SET run_ns = run_ns + 2000000 WHERE {second}",
                f"UPDATE thread_time SET dt_ns = dt_ns - 1 WHERE {second}",
                f"UPDATE thread_time SET healed_ns = 20000000 WHERE {second}",
                f"UPDATE thread_time SET iowait_ns = 1 WHERE {second}",
                f"UPDATE thread_time SET throttled_ns = runqueue_ns + 1 WHERE {second}",
                "UPDATE thread_time SET sleep_ns = sleep_ns + 1, run_ns = run_ns - 1",
                f"DELETE FROM thread_time WHERE {second}",
                f"DELETE FROM thread_time WHERE ts_ns > {START + 2 * SECOND}",
                f"DELETE FROM thread_time WHERE ts_ns < {START + 2 * SECOND}",
                "DELETE FROM thread_time",
                f"UPDATE wait SET total_ns = total_ns + 1 WHERE {second}",
                f"UPDATE wait SET count = 6 WHERE {second}",
                f"UPDATE wait SET count = 0, hist5 = 0 WHERE {second}",
                f"UPDATE wait SET dt_ns = dt_ns + 1 WHERE {second}",
                f"DELETE FROM wait WHERE {second}",
                f"UPDATE wake SET count = 4 WHERE {second}",
                f"DELETE FROM wake WHERE {second}",
                f"UPDATE ran_instead SET total_ns = total_ns - 1 WHERE {second}",
                f"DELETE FROM ran_instead WHERE {second} AND process_id IS NULL",
                f"INSERT INTO loss VALUES ({START + SECOND}, 'kernel', 'wait-map-full', 1)",
        ):
            with self.subTest(change):
                self.assertNotEqual(self.problems(change), [], f"not noticed: {change}")


class WithoutWaking(TruthTest):
    """A build of prismd in which one hook is missing must not pass the check."""

    executable = "prismd-without-waking"

    @classmethod
    def make_prismd(cls):
        return Prismd(executable=BUILD / "daemon" / cls.executable)

    def tearDown(self):
        # These are not expected to be right.
        for recording in self.recordings:
            recording.close()
        self.recordings.clear()
        super().tearDown()

    def test_check_fails(self):
        for workload in (("mutex", "heap"), ("hop",)):
            recording, _ = self.play(*workload)
            self.assertNotEqual(conservation(recording), [], f"{workload[0]}: the check passes without the hook")


class WithoutSwitchIn(WithoutWaking):
    executable = "prismd-without-switch-in"


if __name__ == "__main__":
    tap.main()
