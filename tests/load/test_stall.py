#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The disk of the database stands still for ten seconds: prismd goes on, and what it cannot keep is counted."""

import contextlib
import os
import pathlib
import subprocess
import tempfile
import time
import unittest

import storm
from storm import StormTest, inferred, note

import tap
from prism import Prismd

STALL_SECONDS = 10
DISK_MIB = 2048  # a sparse file


class FrozenDisk:
    """A file system of its own in a file, whose writers can be made to wait: what freezes it is what a snapshot does."""

    def __init__(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="prism-disk-", dir="/var/tmp"))
        self.image, self.mount = self.directory / "image", self.directory / "mount"
        self.frozen = False

    def make(self):
        self.mount.mkdir()
        with open(self.image, "wb") as f:
            f.truncate(DISK_MIB << 20)
        for command in (["mkfs.ext4", "-q", "-F", self.image], ["mount", "-o", "loop", self.image, self.mount]):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise unittest.SkipTest(f"{command[0]}: {done.stderr.strip()}")

    def freeze(self):
        subprocess.run(["fsfreeze", "--freeze", self.mount], check=True)
        self.frozen = True

    def thaw(self):
        if self.frozen:
            subprocess.run(["fsfreeze", "--unfreeze", self.mount], check=True)
        self.frozen = False

    def remove(self):
        self.thaw()
        if os.path.ismount(self.mount):
            subprocess.run(["umount", self.mount], check=True)
        self.image.unlink(missing_ok=True)
        self.mount.rmdir()
        self.directory.rmdir()


class Stall(StormTest):
    expected_losses = ("store/queue-full", "kernel/wait-map-full", "kernel/object-map-full", "collector/resource-limit")

    @classmethod
    def make_prismd(cls):
        """Only the database is there: prismd's log and socket are elsewhere."""
        cls.disk = FrozenDisk()
        cls.addClassCleanup(cls.disk.remove)
        cls.disk.make()
        directory = pathlib.Path(tempfile.mkdtemp(prefix="prism-load-"))
        (directory / "state").symlink_to(cls.disk.mount)
        return Prismd(directory=directory)

    @contextlib.contextmanager
    def stall(self, _running):
        time.sleep(1)
        self.disk.freeze()
        try:
            begin, longest, queues = time.monotonic(), 0, []
            while (now := time.monotonic()) < begin + STALL_SECONDS:
                # It answers while the disk stands still: nobody lets it go on before.
                status = self.prismd.json("status", timeout=STALL_SECONDS)
                longest = max(longest, time.monotonic() - now)
                queues.append(status["Usage"]["queue"])
                time.sleep(0.5)
            self.prismd.must("threads", timeout=STALL_SECONDS)
        finally:
            self.disk.thaw()
        note(f"asked {len(queues)} times, longest answer {longest * 1000:.0f} ms; batches that wait: {max(queues)} at most")
        self.assertGreater(max(queues), 3, "the writer does not seem to wait")
        yield

    def wait_for_writer(self):
        deadline = time.monotonic() + 30
        while self.prismd.json("status")["Usage"]["queue"]:
            self.assertLess(time.monotonic(), deadline, "the writer does not come to its end")
            time.sleep(0.1)

    def test_queue_holds(self):
        """Fifty busy threads: all is written when the disk is back."""
        recording, truth, lost = self.record_storm("ring", 1, 50, 20, 5500, during=self.stall)
        self.assertEqual({k: v for k, v in lost.items() if k not in storm.INFERRED}, {})
        found = {t["tid"]: t for t in recording.threads()}
        wrong = []
        for node in truth["threads"]:
            sleeps = sum(w.count for w in recording.waits(found[node[1]], "timer"))
            if sleeps != 5500:
                wrong.append(f"{node[1]} slept {sleeps} times")
        self.assertLessEqual(len(wrong), inferred(lost), wrong[:5])
        self.assertEqual(self.prismd.json("status")["StoreState"], "ok")

    def test_queue_overflows(self):
        """More than the queue holds: what was dropped is counted in rows, and afterwards all is as before."""
        # Whole ticks are dropped, so intervals are missing, and nothing else.
        self.expected_problems = ("do not tile", "are missing")
        with tempfile.TemporaryDirectory(prefix="prism-load-") as directory:
            path = pathlib.Path(directory) / "ends"
            recording, truth, lost = self.record_storm("visits", 160_000, 10_000, path, during=self.stall)
            ends = [line.split() for line in path.read_text("ascii").splitlines()]
        self.wait_for_writer()
        self.assertGreater(lost["store/queue-full"], 0, "the queue held")
        self.assertNotIn("store/write-failed", self.status_losses())
        known = sum(int(end[4]) for end in ends)
        threads = {t["tid"]: t["id"] for t in recording.threads()}
        ours = {threads[t["tid"]] for t in truth["threads"]}
        receives = sum(row["n"] for row in recording.db.execute(
            """SELECT w.thread_id, sum(w.count) AS n FROM wait w JOIN resource r ON r.id = w.resource_id
               WHERE r.kind = 'inet' AND w.op = 'receive' AND ts_ns > ? AND ts_ns - dt_ns < ? GROUP BY 1""",
            (recording.start_ns, recording.end_ns)) if row["thread_id"] in ours)
        counted = lost["store/queue-full"] + lost.get("kernel/wait-map-full", 0)
        note(f"reads that waited: {receives} recorded, truth {known}; {lost['store/queue-full']} rows dropped")
        # Each of these waits is a row of its own, and its waker another one.
        self.assertLessEqual(known - receives, counted + inferred(lost), "waits that are neither recorded nor counted")
        self.assertLessEqual(lost["store/queue-full"], 6 * (known - receives), "rows that are counted and were not lost")
        self.assertGreater(receives, known / 10, "nothing was recorded before and after")
        self.check_well_again()

    def check_well_again(self):
        self.expected_problems = ()
        recording, truth, lost = self.record_storm("ring", 1, 50, 20, 10)
        self.assertEqual({k: v for k, v in lost.items() if k not in storm.INFERRED}, {})
        self.assertEqual({t[1] for t in truth["threads"]} - {t["tid"] for t in recording.threads()}, set())


if __name__ == "__main__":
    tap.main()
