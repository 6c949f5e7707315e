#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Each limit of [Limits] at its least, under loads that are far above it: what does not fit is counted by its reason, in
status, database and report; no time of a thread that is followed is lost; and prismd is itself again afterwards."""

import collections
import pathlib
import sqlite3
import tempfile
import time

import storm
from storm import StormTest, note, switches_of_threads

import tap
from recording import EDGE_NS

LEAST = 16

# What has ended makes room after three seconds and a tick.
GIVEN_UP_SECONDS = 4.5

# These are also about other processes of the machine, and go on when a recording ends.
OF_OTHERS = ("collector/observed-limit", "kernel/ran-instead-map-full")


class Limits(StormTest):
    def report_of(self, recording):
        return self.prismd.json("report", recording.name)

    def check_told(self, recording, lost):
        """The same losses everywhere."""
        counted = {reason: count for reason, count in lost.items() if count}
        stored = recording.losses()
        reported = {f"{row['part']}/{row['reason']}": row["count"] for row in self.report_of(recording)["losses"]}
        for reason in counted:
            if reason in storm.INFERRED:
                continue
            self.assertIn(reason, stored, f"not in the database, which has {stored}")
            self.assertIn(reason, reported, f"not in the report, which has {reported}")
            if reason in OF_OTHERS:
                self.assertLessEqual(stored[reason], counted[reason], f"{reason}: database and status")
            else:
                self.assertEqual(stored[reason], counted[reason], f"{reason}: database and status")
        text = self.prismd.must("report", recording.name)
        status = self.prismd.must("status")
        for reason in set(counted) - set(storm.INFERRED):
            self.assertIn(reason, text)
            self.assertIn(reason, status)

    def check_well_again(self):
        """A small load loses nothing now."""
        recording, truth, lost = self.record_storm("ring", 1, 4, 20, 5)
        self.assertEqual({k: v for k, v in lost.items() if k not in storm.INFERRED}, {})
        found = {t["tid"] for t in recording.threads()}
        self.assertEqual([t[1] for t in truth["threads"] if t[1] not in found], [])

    def waits(self, recording, kind):
        return recording.db.execute("""SELECT sum(w.count) FROM wait w JOIN resource r ON r.id = w.resource_id
                                       WHERE r.kind = ? AND ts_ns > ? AND ts_ns - dt_ns < ?""",
                                    (kind, recording.start_ns, recording.end_ns)).fetchone()[0] or 0


class Waits(Limits):
    """Sixteen different waits a second, of threads that all wait: the kernel keeps their times, without a resource."""

    limits = {"Waits": LEAST, "RanInstead": LEAST}
    expected_losses = ("kernel/wait-map-full", "kernel/ran-instead-map-full")

    def test_ring(self):
        recording, truth, lost = self.record_storm("ring", 20, 20, 20, 10)
        tids = {t[1]: t for t in truth["threads"]}
        found = {t["tid"]: t["id"] for t in recording.threads()}
        self.assertEqual(set(tids) - set(found), set(), "threads without a row")
        ours = {found[tid] for tid in tids}
        recorded = sum(row["count"] for row in recording.rows("wait") if row["thread_id"] in ours)
        switches = sum(row["switches"] for row in recording.rows("thread_time") if row["thread_id"] in ours)
        # What the rings' own processes and the parent waited for may be among the lost ones.
        others = sum(row["switches"] for row in recording.rows("thread_time") if row["thread_id"] not in ours)
        full = lost["kernel/wait-map-full"]
        note(f"{recorded} waits recorded, {full} counted, {switches} switches away to wait, {others} of other threads")
        # Each first wait began before the recording, each last one goes on.
        self.assertLessEqual(recorded + full, switches + others + storm.inferred(lost))
        self.assertGreaterEqual(recorded + full, switches - storm.inferred(lost))
        known = sum(t[3] + (t[7] > 0) + 10 for t in truth["threads"])
        self.assertGreaterEqual(recorded + full, known - storm.inferred(lost), "waits that the program did")
        self.check_told(recording, lost)
        self.check_well_again()


class Resources(Limits):
    limits = {"Resources": LEAST}
    expected_losses = ("collector/resource-limit", "kernel/object-map-full")

    def test_connections(self):
        with tempfile.TemporaryDirectory(prefix="prism-load-") as directory:
            recording, truth, lost = self.record_storm("visits", 10000, 2000, pathlib.Path(directory) / "ends",
                                                       look=switches_of_threads)
        found = {t["tid"]: t["id"] for t in recording.threads()}
        by_resource = collections.Counter()
        ours = {found[t["tid"]] for t in truth["threads"]}
        for row in recording.db.execute("""SELECT w.thread_id, r.kind, r.ident, sum(w.count) AS n FROM wait w
                                           JOIN resource r ON r.id = w.resource_id
                                           WHERE ts_ns > ? AND ts_ns - dt_ns < ? GROUP BY 1, 2, 3""",
                                        (recording.start_ns, recording.end_ns)):
            if row["thread_id"] in ours:
                by_resource["lost" if row["ident"] == "lost" else row["kind"]] += row["n"]
        known = sum(truth["after"][t["tid"]][0] - truth["before"][t["tid"]][0] for t in truth["threads"])
        note(f"waits by kind: {dict(by_resource)}, truth {known}")
        self.assertLessEqual(abs(sum(by_resource.values()) - known), storm.inferred(lost), "waits, also those without resource")
        self.assertGreater(by_resource["lost"], 0)
        self.assertGreater(lost["collector/resource-limit"], 0)
        self.check_told(recording, lost)
        time.sleep(GIVEN_UP_SECONDS)
        self.check_well_again()


class Threads(Limits):
    limits = {"Threads": LEAST}
    expected_losses = ("kernel/thread-limit",)

    def test_births(self):
        recording, truth, lost = self.record_storm("births", "threads", 4000, 1000)
        lives = {life[0] for life in truth["lives"]}
        found = lives & {t["tid"] for t in recording.threads()}
        note(f"{len(lives)} threads: {len(found)} recorded, {lost.get('kernel/thread-limit', 0)} counted")
        self.assertEqual(len(found) + lost.get("kernel/thread-limit", 0), len(lives))
        self.assertGreater(len(found), 0)
        self.check_told(recording, lost)
        time.sleep(GIVEN_UP_SECONDS)
        self.check_well_again()

    def test_too_many_to_begin_with(self):
        with storm.Storm("ring", 1, 100, 2, 1) as running:
            children = pathlib.Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text("ascii").split()
            result = self.prismd.ctl("track", "--pid", children[0])
            self.assertEqual(result.code, 1, result)
            self.assertIn("Threads=", result.err)
            running.go()
            running.answer()


class Processes(Limits):
    limits = {"Processes": LEAST}
    expected_losses = ("collector/process-limit", "collector/observed-limit")
    expected_problems = ("its first ",)

    def test_births(self):
        recording, truth, lost = self.record_storm("births", "processes", 2000, 500)
        lives = {life[0] for life in truth["lives"]}
        found = lives & {t["tid"] for t in recording.threads()}
        note(f"{len(lives)} processes: {len(found)} recorded, {lost.get('collector/process-limit', 0)} counted")
        # One that was refused and got in when there was room is counted, and recorded from there on.
        late = {t["tid"] for t in recording.threads() if t["tid"] in lives and
                recording.rows("thread_time", t)[0]["ts_ns"] - recording.rows("thread_time", t)[0]["dt_ns"] >
                t["start_ns"] + EDGE_NS}
        self.assertEqual(len(found - late) + lost.get("collector/process-limit", 0), len(lives))
        self.assertGreater(len(found), 0)
        self.check_told(recording, lost)
        time.sleep(GIVEN_UP_SECONDS)
        self.check_well_again()


class Everything(Limits):
    """All at once: prismd stays, what is in its database is whole, and status answers."""

    limits = {name: LEAST for name in ("Threads", "Processes", "Resources", "Waits", "RanInstead")}
    expected_losses = ("kernel/thread-limit", "kernel/wait-map-full", "kernel/ran-instead-map-full", "kernel/object-map-full",
                       "collector/resource-limit", "collector/process-limit", "collector/observed-limit")
    expected_problems = ("its first ",)

    def test_all_storms(self):
        with tempfile.TemporaryDirectory(prefix="prism-load-") as directory:
            for workload in (("ring", 1, 8, 200, 10), ("births", "processes", 1000, 500), ("births", "threads", 1000, 500),
                             ("visits", 5000, 0, pathlib.Path(directory) / "ends")):
                with self.subTest(workload[0]):
                    recording, _, lost = self.record_storm(*workload)
                    self.check_told(recording, lost)
                    with sqlite3.connect(f"file:{self.prismd.state}/prism.db?mode=ro", uri=True) as db:
                        self.assertEqual(db.execute("PRAGMA integrity_check").fetchone()[0], "ok")
                time.sleep(GIVEN_UP_SECONDS)


if __name__ == "__main__":
    tap.main()
