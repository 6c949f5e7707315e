#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""System calls per file: exact while they are counted, an estimate when sampled, none when they are not wanted."""

import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

import tap
from objects import ObjectTest, numbers
from recording import MS, NS


class CallsTest(ObjectTest):
    def covered_ns(self, recording):
        rows = recording.db.execute("""SELECT ts_ns, dt_ns FROM coverage
                                       WHERE part = 'calls' AND ts_ns > ? AND ts_ns - dt_ns < ?""",
                                    (recording.start_ns, recording.end_ns)).fetchall()
        return sum(min(row["ts_ns"], recording.end_ns) - max(row["ts_ns"] - row["dt_ns"], recording.start_ns)
                   for row in rows)

    def call_rows(self, recording, tid):
        """(call row, resource row) of a thread; it may have no other rows."""
        return recording.db.execute("""SELECT c.*, r.kind, r.ident, r.name FROM call c
                                       JOIN resource r ON r.id = c.resource_id JOIN thread t ON t.id = c.thread_id
                                       WHERE t.tid = ? AND c.ts_ns > ? AND c.ts_ns - c.dt_ns < ?""",
                                    (tid, recording.start_ns, recording.end_ns)).fetchall()


class Full(CallsTest):
    calls = "full"

    def test_counts_bytes_and_errors(self):
        recording, truth = self.play("calls", "exact", cwd=self.directory)
        # It takes a moment to begin.
        self.assertGreater(self.covered_ns(recording), recording.length_ns - 50 * MS, "coverage")
        for name, caller in truth.items():
            rows = self.call_rows(recording, caller["tid"])
            shown = [(r["kind"], r["op"], r["name"], r["count"]) for r in rows]
            for known in caller["calls"]:
                with self.subTest(f"{name} {known['op']} {known['path']}"):
                    found = [r for r in rows if r["kind"] == known["kind"] and r["op"] == known["op"] and
                             (known["inode"] in numbers(r["ident"]) if known["inode"] else r["name"] == known["path"])]
                    self.assertTrue(found, f"not among {shown}")
                    for column in ("count", "errors", "bytes"):
                        self.assertEqual(sum(r[column] for r in found), known[column],
                                         f"{column} of {known['op']} by {name}")
                    if known["path"]:
                        self.assertEqual({r["name"] for r in found}, {known["path"]}, "name")
            for row in rows:
                self.assertEqual(sum(row[f"hist{i}"] for i in range(8)), row["count"], "histogram")
                self.assertLessEqual(row["max_ns"], row["total_ns"], "longest")

    def test_nobody_calls(self):
        """It was on all the same."""
        with subprocess.Popen(["sleep", "1000"]) as sleeper:
            try:
                recording, _ = self.record([sleeper.pid], lambda: time.sleep(3.2))
            finally:
                sleeper.kill()
        self.assertGreater(self.covered_ns(recording), recording.length_ns - 50 * MS, "coverage")

    def test_time_of_calls(self):
        """A call that waits takes as long as its wait, and more."""
        recording, truth = self.play("pipes", cwd=self.directory)
        for name, op in (("pipe-read", "read"), ("pipe-write", "write"), ("eventfd-1", "read")):
            known = truth[name]
            thread = recording.thread(known["tid"])
            kind = "eventfd" if name == "eventfd-1" else "pipe"
            wait = self.only([w for w in recording.waits(thread, kind, op) if w.count >= known["count"]], name)
            rows = [r for r in self.call_rows(recording, known["tid"])
                    if r["resource_id"] == wait.resource and r["op"] == op]
            self.assertEqual(sum(r["count"] for r in rows), known["count"], f"{name}: calls")
            total = sum(r["total_ns"] for r in rows)
            self.assertGreaterEqual(total, wait.total_ns, f"{name}: calls are shorter than their waits")
            self.assertLessEqual(total, known["total_ns"] + known["run_ns"] + known["runqueue_ns"], f"{name}: time of calls")


class Sampled(CallsTest):
    calls = "sampled"

    def test_estimate(self):
        recording, known = self.play("calls", "steady", 22, cwd=self.directory)
        covered = self.covered_ns(recording)
        self.assertGreater(covered, 1.5 * NS, "one second in ten")
        self.assertLess(covered, 3.6 * NS, "one second in ten")
        rows = [r for r in self.call_rows(recording, known["tid"]) if known["inode"] in numbers(r["ident"])]
        for op in ("read", "write"):
            counted = [r for r in rows if r["op"] == op]
            estimate = sum(r["count"] for r in counted) / covered * known["elapsed_ns"]
            self.assertLess(abs(estimate / known["count"] - 1), 0.2, f"{op}: {estimate} estimated, {known['count']} made")
            moved = sum(r["bytes"] for r in counted) / covered * known["elapsed_ns"]
            self.assertLess(abs(moved / known["bytes"] - 1), 0.2, f"{op}: {moved} bytes estimated, {known['bytes']} moved")


class NotWanted(CallsTest):
    calls = "none"

    def test_nothing_is_counted(self):
        recording, known = self.play("calls", "steady", 2, cwd=self.directory)
        self.assertEqual(self.covered_ns(recording), 0)
        self.assertEqual(self.call_rows(recording, known["tid"]), [])


if __name__ == "__main__":
    tap.main()
