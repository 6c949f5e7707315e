#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Ten thousand short-lived connections, pipes and files: no wait is charged to a former owner of a number."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

import tap
from objects import ObjectTest, numbers
from recording import MS
from truth import note, scratch_directory

LONG_NS = 10 * MS


class Recycled(ObjectTest):
    calls = "none"
    directory_parent = scratch_directory()  # where inode numbers are used again

    def check_each(self, recording, name, known, kind, op, owners):
        """owners: the numbers that tell apart each object that was waited for long."""
        thread = recording.thread(known["tid"])
        waits = recording.waits(thread, kind, op)
        left = list(waits)
        total = 0
        for owner in owners:
            wait = self.only([w for w in left if owner <= numbers(w.ident)], f"{name}: object {owner}")
            left.remove(wait)
            self.assertEqual(wait.count, 1, f"{name}: waits of {wait.ident}")
            self.assertGreaterEqual(wait.total_ns, LONG_NS - MS / 10, f"{name}: {wait.ident}")
            total += wait.total_ns
        self.assert_close(total, known["long_ns"], f"{name}: long waits")
        most = max((w.total_ns for w in left), default=0)
        strangers = [(w.ident, w.total_ns) for w in left if w.total_ns > LONG_NS * 0.9 and w.count != 1]
        self.assertEqual(strangers, [], f"{name}: long waits of others")
        counts = [w.count for w in left if w.count != 1]
        # The gate is one more pipe.
        self.assertEqual(counts, [], f"{name}: several waits of one object")
        note(f"{name}: {len(owners)} long waits, {len(left)} short ones, the longest of which {most / MS:.1f} ms")
        self.check_named(recording, name, thread)

    def test_each_has_its_own_waits(self):
        recording, truth = self.play("recycled", cwd=self.directory)
        inodes = {name: truth[name]["inodes"] for name in ("connections", "pipes", "files")}
        with self.subTest("connections"):
            self.check_each(recording, "connections", truth["connections"], "inet", "receive",
                            [{inode} for inode in inodes["connections"]])
        with self.subTest("pipes"):
            self.check_each(recording, "pipes", truth["pipes"], "pipe", "read", [{inode} for inode in inodes["pipes"]])
        with self.subTest("files"):
            generations = truth["generations"]
            self.assertLess(len(set(inodes["files"])), len(inodes["files"]) / 2, "inode numbers are used again here")
            self.check_each(recording, "files", truth["files"], "file", "flock",
                            [set(owner) for owner in zip(inodes["files"], generations)])


if __name__ == "__main__":
    tap.main()
