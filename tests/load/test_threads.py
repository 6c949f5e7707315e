#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Thousands of threads, in one process and in many, each with a known number of known waits."""

import collections
import time

import storm
from storm import StormTest, inferred, note

import tap
from recording import MS, NS, tolerance

Node = collections.namedtuple("Node", "pid tid futex waits total_ns late_begin_ns late_end_ns first_end_ns slept_ns run_ns "
                              "runqueue_ns")
Sum = collections.namedtuple("Sum", "count total_ns")


def clock_offset():
    """What to add to the boot clock to get the time of day."""
    return min((time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME) for _ in range(5)))


class Ring(StormTest):
    def waits(self, recording, kind, op):
        """{(thread id, identity, resource id): Sum}"""
        sums = collections.defaultdict(lambda: Sum(0, 0))
        for row in recording.db.execute("""SELECT w.*, r.ident FROM wait w JOIN resource r ON r.id = w.resource_id
                                           WHERE r.kind = ? AND w.op = ? AND ts_ns > ? AND ts_ns - dt_ns < ?""",
                                        (kind, op, recording.start_ns, recording.end_ns)):
            key = (row["thread_id"], row["ident"], row["resource_id"])
            sums[key] = Sum(sums[key].count + row["count"], sums[key].total_ns + recording.inside(row))
        return sums

    def wakers(self, recording):
        """{(woken thread id, resource id): {waker's thread id: count}}"""
        found = collections.defaultdict(collections.Counter)
        for row in recording.rows("wake"):
            if row["waker_kind"] == "thread":
                found[row["thread_id"], row["resource_id"]][row["waker_thread_id"]] += row["count"]
        return found

    def check(self, processes, threads, rounds, sleeps):
        recording, truth, lost = self.record_storm("ring", processes, threads, rounds, sleeps)
        offset = clock_offset()
        nodes = [Node(*fields) for fields in truth["threads"]]
        found = {(t["pid"], t["tid"]): t["id"] for t in recording.threads()}
        missing = [n.tid for n in nodes if (n.pid, n.tid) not in found]
        self.assertEqual(missing, [], f"{len(missing)} of {len(nodes)} threads are missing")
        self.assertEqual(len(nodes), processes * threads)

        futexes = {(thread, int(ident.rpartition(":")[2], 16)): (resource, wait) for (thread, ident, resource), wait in
                   self.waits(recording, "futex", "wait").items()}
        sleep_sums = {thread: wait for (thread, _, _), wait in self.waits(recording, "timer", "clock_nanosleep").items()}
        wakers = self.wakers(recording)

        wrong, counted, known, wait_ns, known_ns, unseen = [], 0, 0, 0, 0, inferred(lost)
        for i, n in enumerate(nodes):
            thread = found[n.pid, n.tid]
            count = n.waits + (n.first_end_ns > 0)
            total = n.total_ns + (n.first_end_ns + offset - recording.start_ns if n.first_end_ns else 0)
            resource, wait = futexes.get((thread, n.futex), (None, Sum(0, 0)))
            known, known_ns, counted, wait_ns = known + count, known_ns + total, counted + wait.count, wait_ns + wait.total_ns
            if wait.count != count:
                wrong.append(f"{n.tid} has {wait.count} waits, truth {count}")
            least, most = total - n.late_begin_ns, total + n.late_end_ns
            if not least - tolerance(least) <= wait.total_ns <= most + tolerance(most):
                wrong.append(f"{n.tid} waits for {wait.total_ns / MS:.3f} ms, truth {least / MS:.3f} to {most / MS:.3f} ms")
            before = nodes[i - 1 if i % threads else i + threads - 1]
            by = wakers[thread, resource][found[before.pid, before.tid]]
            if by < n.waits - unseen:
                wrong.append(f"{n.tid} is woken {by} of {n.waits} times by {before.tid}: {wakers[thread, resource]}")
            sleep = sleep_sums.get(thread, Sum(0, 0))
            least, most = n.slept_ns - n.run_ns - n.runqueue_ns, n.slept_ns
            if sleep.count != sleeps or not least - tolerance(least) <= sleep.total_ns <= most + tolerance(most):
                wrong.append(f"{n.tid} sleeps {sleep.count} times for {sleep.total_ns / MS:.3f} ms, truth {sleeps} times, "
                             f"{least / MS:.3f} to {most / MS:.3f} ms")
        note(f"{len(nodes)} threads: {counted} waits on futexes, truth {known}; "
             f"{wait_ns / NS:.3f} s, truth {known_ns / NS:.3f} s")
        self.assertEqual(wrong, [], f"{len(wrong)} threads are wrong")
        unexpected = {k: v for k, v in lost.items() if k not in (*storm.INFERRED, *self.expected_losses)}
        self.assertEqual(unexpected, {})
        return recording, lost

    def test_five_thousand_threads_in_one_process(self):
        self.check(1, 5000, 20, 10)

    def test_threads_of_many_processes(self):
        # Who ran instead is a pair of a thread and a process, and here there are a million. The time is kept without a name.
        self.expected_losses = ("kernel/ran-instead-map-full",)
        recording, lost = self.check(500, 6, 100, 10)
        unnamed = sum(row["total_ns"] for row in recording.rows("ran_instead") if row["process_id"] is None)
        self.assertEqual(unnamed > 0, "kernel/ran-instead-map-full" in lost)


if __name__ == "__main__":
    tap.main()
