#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Twenty thousand threads, and as many processes, that live for milliseconds: each is recorded with its one wait."""

import collections

import storm
from storm import StormTest, inferred, note

import tap
from recording import MS, NS

LIVES = 20_000
# Far more than 20,000 a minute, so that the test is short.
THREADS_PER_SECOND = 2000
PROCESSES_PER_SECOND = 1000

# The kernel's clocks of the sleep and of the test are not read at the same instant.
CLOCK_NS = MS / 10


class Births(StormTest):
    def check(self, what, per_second, operation):
        recording, truth, lost = self.record_storm("births", what, LIVES, per_second)
        lives = [(tid, end - begin) for tid, begin, end in truth["lives"]]
        self.assertEqual(len(lives), LIVES)
        self.assertEqual(len({tid for tid, _ in lives}), LIVES, "a number was used twice within seconds")

        slept = collections.defaultdict(lambda: [0, 0])
        for row in recording.db.execute("""SELECT w.*, t.tid FROM wait w JOIN thread t ON t.id = w.thread_id
                                           JOIN resource r ON r.id = w.resource_id
                                           WHERE r.kind = 'timer' AND w.op = ? AND ts_ns > ? AND ts_ns - dt_ns < ?""",
                                        (operation, recording.start_ns, recording.end_ns)):
            slept[row["tid"]][0] += row["count"]
            slept[row["tid"]][1] += recording.inside(row)
        threads = {t["tid"]: t for t in recording.threads()}
        missing = [tid for tid, _ in lives if tid not in threads]
        without_end = [tid for tid, _ in lives if tid in threads and threads[tid]["exit_ns"] is None]
        wrong = []
        for tid, lived in lives:
            count, total = slept[tid]
            if tid in threads and (count != 1 or not truth["sleep_ns"] - CLOCK_NS <= total <= lived + CLOCK_NS):
                wrong.append(f"{tid} slept {count} times, {total / MS:.3f} ms, truth once, {truth['sleep_ns'] / MS:.3f} to "
                             f"{lived / MS:.3f} ms")
        counted = sum(count for reason, count in lost.items() if reason not in storm.INFERRED)
        note(f"{len(lives) / truth['played_ns'] * NS:.0f} {what} a second: {LIVES - len(missing)} recorded, {counted} counted, "
             f"{len(without_end)} without an end, {len(wrong)} inexact")
        self.assertEqual(len(missing), counted, f"{what} that are neither recorded nor counted; lost: {lost}")
        self.assertEqual(without_end, [], "lives without an end")
        self.assertLessEqual(len(wrong), inferred(lost), "\n".join(wrong[:8]))
        self.assertEqual(missing, [], f"{len(missing)} {what} are not recorded")

    def test_threads(self):
        self.check("threads", THREADS_PER_SECOND, "clock_nanosleep")

    def test_processes(self):
        self.check("processes", PROCESSES_PER_SECOND, "nanosleep")


if __name__ == "__main__":
    tap.main()
