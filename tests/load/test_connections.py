#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A hundred thousand short-lived connections: each wait on each is recorded with its socket, or counted."""

import collections
import pathlib
import tempfile

import storm
from storm import StormTest, inferred, note, switches_of_threads

import tap
from recording import NS

CONNECTIONS = 100_000
# Two sockets each: far more than are known at a time, fewer in a second than are described in one.
STEADY = 50_000
STEADY_PER_SECOND = 2000
AFTER = 4000
AFTER_PER_SECOND = 1000

End = collections.namedtuple("End", "tid inode local_port remote_port waits")


class Connections(StormTest):
    # The first two are room for a second: more different waits, or sockets, than there are in any storm but this.
    expected_losses = ("kernel/wait-map-full", "kernel/object-map-full", "collector/resource-limit")

    def visits(self, connections, per_second):
        with tempfile.TemporaryDirectory(prefix="prism-load-") as directory:
            path = pathlib.Path(directory) / "ends"
            recording, truth, lost = self.record_storm("visits", connections, per_second, path,
                                                       look=switches_of_threads)
            ends = [End(*map(int, line.split())) for line in path.read_text("ascii").splitlines()]
        self.assertEqual(len(ends), 2 * connections)
        self.assertEqual({k: v for k, v in lost.items() if k not in (*storm.INFERRED, *self.expected_losses)}, {})
        note(f"{connections} connections, {connections / truth['played_ns'] * NS:.0f} a second")
        return recording, truth, lost, ends

    def check(self, recording, truth, lost, ends):
        """What is recorded of each end is what it did, what is not is counted. Returns how many ends with a wait were not
        recorded, and how many of those that were have no address."""
        threads = {t["tid"]: t["id"] for t in recording.threads()}
        sockets = {}
        waits = collections.Counter()
        for row in recording.db.execute(
                """SELECT w.thread_id, r.ident, sum(w.count) AS n, s.local_port, s.remote_port
                   FROM wait w JOIN resource r ON r.id = w.resource_id LEFT JOIN socket s ON s.resource_id = r.id
                   WHERE r.kind = 'inet' AND w.op = 'receive' AND ts_ns > ? AND ts_ns - dt_ns < ? GROUP BY 1, 2""",
                (recording.start_ns, recording.end_ns)):
            key = (row["thread_id"], int(row["ident"].partition(":")[2]))
            waits[key] += row["n"]
            sockets[key] = (row["local_port"], row["remote_port"])

        wrong, unrecorded, unnamed, strangers = 0, 0, 0, set(waits)
        for end in ends:
            key = (threads[end.tid], end.inode)
            strangers.discard(key)
            if end.waits and key not in waits:
                unrecorded += 1
                continue
            wrong += waits[key] != end.waits
            if key in waits and sockets[key] == (None, None):
                unnamed += 1
            elif key in waits:
                self.assertEqual(sockets[key], (end.local_port, end.remote_port), f"ports of socket {end.inode}")
        note(f"{len(waits)} sockets with a wait, of which {unnamed} have no address; {unrecorded} are counted only")
        self.assertEqual(strangers, set(), "sockets that are none of ours")
        self.assertLessEqual(wrong, inferred(lost), "sockets with another number of waits than they had")
        self.assertLessEqual(unnamed, lost.get("kernel/object-map-full", 0), "sockets without an address")

        # All waits of the threads, under whatever name, and those of which only the time was kept.
        tids = [t["tid"] for t in truth["threads"]]
        ours = {threads[tid] for tid in tids}
        recorded = sum(row["count"] for row in recording.rows("wait") if row["thread_id"] in ours)
        known = sum(truth["after"][tid][0] - truth["before"][tid][0] for tid in tids)
        full = lost.get("kernel/wait-map-full", 0)
        # The main thread looks a hundred times a second whether it is over, and of that some may be lost too.
        others = inferred(lost) + (truth["played_ns"] / NS * 100 if full else 0)
        note(f"{recorded} waits recorded, {full} counted, truth {known}")
        self.assertLessEqual(abs(recorded + full - known), others, "waits, recorded and counted")
        self.assertLessEqual(unrecorded, full + lost.get("collector/resource-limit", 0) + inferred(lost),
                             "sockets that are neither recorded nor counted")
        return unrecorded, unnamed

    def check_nothing_lost(self, visits):
        recording, truth, lost, ends = visits
        unrecorded, unnamed = self.check(recording, truth, lost, ends)
        self.assertLessEqual(unrecorded, inferred(lost), "sockets that were not recorded")
        self.assertEqual(unnamed, 0, "sockets without an address")
        self.assertEqual({k: v for k, v in lost.items() if k not in storm.INFERRED}, {})

    def test_as_many_as_the_machine_does(self):
        visits = self.visits(CONNECTIONS, 0)
        with self.subTest("storm"):
            self.check(*visits)
        with self.subTest("after it"):
            self.check_nothing_lost(self.visits(AFTER, AFTER_PER_SECOND))

    def test_steady(self):
        """As many as there is room for in each second, and in all of them far more than are known at a time."""
        self.check_nothing_lost(self.visits(STEADY, STEADY_PER_SECOND))


if __name__ == "__main__":
    tap.main()
