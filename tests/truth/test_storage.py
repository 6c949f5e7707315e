#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Waits for disks by file: fsync and the like, reads, writes, page faults, native AIO; locks of files and of memory."""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

import tap
from objects import ObjectTest, numbers
from places import SlowDisk
from prism import WORKLOADS
from recording import tolerance


class SlowDiskTest(ObjectTest):
    OPERATIONS = 100  # a second

    def play_slowly(self, *workload):
        disk = SlowDisk(self.directory, self.OPERATIONS)
        self.addCleanup(disk.close)
        self.directory = disk.filesystem.path
        return self.play_in(disk, *workload, before=disk.slow)

    def check_file(self, recording, name, known, kind, op):
        """All waits of this kind are on this file, and take the time that the calls took. The program itself may have to be
        read from a disk, too."""
        thread = recording.thread(known["tid"])
        everything = [(w.kind, w.ident, w.name, w.op, w.count, w.total_ns) for w in recording.waits(thread)]
        waits = [w for w in recording.waits(thread, kind, op) if not (w.name or "").startswith(f"{WORKLOADS}/")]
        wait = self.only(waits, f"{name}: {everything}")
        self.assertIn(known["inode"], numbers(wait.ident), f"{name}: which file")
        self.assertEqual(wait.name, known["path"], name)
        # What was done at once is no wait; a sync is several; a lock in the file system may be one more.
        self.assertGreaterEqual(wait.count, known["long"], f"{name}: number of waits")
        self.assert_between(wait.total_ns, *self.bounds(known), f"{name}: total; {everything}")
        self.check_named(recording, name, thread)
        return thread, wait


class Files(SlowDiskTest):
    def test_calls_that_wait_for_the_disk(self):
        recording, truth = self.play_slowly("storage")
        for name, op in (("fsync", "fsync"), ("fdatasync", "fdatasync"), ("sync-range", "sync_file_range"),
                         ("direct-read", "read"), ("direct-write", "write"), ("cold-read", "read")):
            with self.subTest(name):
                thread, _ = self.check_file(recording, name, truth[name], "file", op)
                times = recording.times(thread)
                self.assertGreater(times["iowait_ns"], 0.5 * truth[name]["total_ns"], "iowait")


class Faults(SlowDiskTest):
    def test_pages_of_a_file(self):
        recording, truth = self.play_slowly("faults", "file")
        for name in ("touch", "in-a-call"):
            with self.subTest(name):
                thread, _ = self.check_file(recording, name, truth[name], "page-fault", "file")
                waits = recording.waits(thread, "pipe")
                self.assertLessEqual(sum(w.count for w in waits), 1, f"waits on the pipe, beside the gate: {waits}")


class Aio(SlowDiskTest):
    calls = "full"

    def test_native(self):
        recording, truth = self.play_slowly("aio")
        known = truth["aio-reader"]
        thread, wait = self.check(recording, "aio-reader", known, "aio", "io_getevents", wakers=("irq", "timer", "thread"))
        rows = [row for row in recording.rows("call", thread) if row["resource_id"] == wait.resource]
        counts = {op: sum(row["count"] for row in rows if row["op"] == op) for op in {row["op"] for row in rows}}
        self.assertEqual(counts.get("submit"), 3 * known["count"], f"requests: {counts}")
        self.assertEqual(counts.get("io_getevents"), known["count"], f"calls: {counts}")


class Uring(ObjectTest):
    calls = "full"

    def test_ring(self):
        recording, truth = self.play("uring", cwd=self.directory)
        if "refused" in truth:
            self.skipTest(f"io_uring_setup: {truth['refused']}")
        known = truth["ring"]
        thread, wait = self.check(recording, "ring", known, "io_uring", "io_uring_enter", known["inode"])
        rows = [row for row in recording.rows("call", thread)
                if self.resource(recording, row["resource_id"])["kind"] == wait.kind]
        counts = {op: sum(row["count"] for row in rows if row["op"] == op) for op in {row["op"] for row in rows}}
        self.assertEqual(counts.get("submit"), 3 * known["count"], f"requests: {counts}")
        self.assertEqual(counts.get("complete"), 3 * known["count"], f"completions: {counts}")
        self.assertEqual(counts.get("io_uring_enter"), known["count"], f"calls: {counts}")


class Locks(ObjectTest):
    def test_locks_of_files(self):
        recording, truth = self.play("locks", cwd=self.directory)
        for name, op in (("flock", "flock"), ("fcntl", "fcntl"), ("fcntl-ofd", "fcntl")):
            with self.subTest(name):
                known = truth[name]
                self.check(recording, name, known, "file", op, known["inode"], label=f"^{re.escape(known['path'])}$")

    def test_lock_of_a_process_s_memory(self):
        """How much of it is spent spinning differs from run to run; what is waited for is this one lock."""
        recording, truth = self.play("faults", "locks")
        changers = truth["changers"]
        resources, asleep, recorded = set(), 0, 0
        for known in changers:
            thread = recording.thread(known["tid"])
            wait = max(recording.waits(thread, "kernel-lock"), key=lambda w: w.total_ns)
            resources.add(wait.ident)
            recorded += wait.total_ns
            asleep += known["total_ns"] - known["run_ns"] - known["runqueue_ns"]
            self.assertIn(wait.op, ("rwsem_write", "rwsem_read"))
            self.assertEqual(wait.name, "mmap_lock")
            wakes = recording.wakes(thread, wait.resource)
            others = {other["tid"] for other in changers} - {known["tid"]}
            let_go = sum(w.count for w in wakes if w.tid in others)
            # The kernel's own threads take the lock now and then.
            self.assertGreaterEqual(let_go, 0.8 * sum(w.count for w in wakes), f"who let go: {wakes}")
            self.check_named(recording, "changer", thread)
        self.assertEqual(len(resources), 1, f"locks: {resources}")
        whole = sum(known["total_ns"] for known in changers)
        self.assertLessEqual(abs(recorded - asleep), tolerance(whole), f"recorded {recorded} ns, truth {asleep} ns")
        self.assertGreater(recorded, 0)


if __name__ == "__main__":
    tap.main()
