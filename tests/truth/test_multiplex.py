#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Waits on several files at once: on which set, and which of its files ended each wait."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

import tap
from objects import ObjectTest, numbers


class Multiplex(ObjectTest):
    def is_file(self, resource, file):
        return resource["kind"] == file["kind"] and (file["inode"] == 0 or file["inode"] in numbers(resource["ident"]))

    def check_division(self, recording, name, known, kind, op, files):
        """files: what ended the waits. Each is (description, a test of its resource, truth)."""
        thread, wait = self.check(recording, name, known, kind, op, wakers=("thread",))
        parts = self.divided(recording, thread, wait)
        none = parts.pop(0, (0, 0))
        self.assertEqual(none[0], 0, f"{name}: waits that no file ended; divided: {parts}")
        resources = {watched: self.resource(recording, watched) for watched in parts}
        shown = {row["ident"]: parts[watched] for watched, row in resources.items()}
        for description, test, truth in files:
            watched = self.only([w for w, row in resources.items() if test(row)], f"{name}: {description} in {shown}")
            count, total = parts.pop(watched)
            self.assertEqual(count, truth["count"], f"{name}: waits that {description} ended: {shown}")
            self.assert_close(total, truth["total_ns"], f"{name}: ended by {description}")
        self.assertEqual(parts, {}, f"{name}: other files ended waits: {shown}")
        return thread, wait

    def check_files(self, recording, name, known, kind, op):
        files = [(f"file {i} ({file['kind']} {file['inode']})", lambda row, file=file: self.is_file(row, file), file)
                 for i, file in enumerate(known["files"])]
        return self.check_division(recording, name, known, kind, op, files)

    def check_watched(self, recording, name, wait, files):
        rows = recording.db.execute("""SELECT r.*, w.first_ns, w.last_ns FROM epoll_watch w
                                       JOIN resource r ON r.id = w.watched_id WHERE w.resource_id = ?""",
                                    (wait.resource,)).fetchall()
        for file in files:
            self.assertTrue(any(self.is_file(row, file) for row in rows),
                            f"{name}: {file['kind']} {file['inode']} is not among the watched: {[tuple(r) for r in rows]}")
        for row in rows:
            self.assertLessEqual(row["first_ns"], row["last_ns"], f"{name}: {row['ident']}")

    def check_nothing(self, recording, name, known, kind, op, wakers):
        """No file ended these waits."""
        thread, wait = self.check(recording, name, known, kind, op, wakers=wakers)
        parts = self.divided(recording, thread, wait)
        self.assertEqual(set(parts), {0}, f"{name}: {parts}")
        self.assertEqual(parts[0][0], known["count"], name)

    def test_all(self):
        recording, truth = self.play("multiplex", cwd=self.directory)
        # Of a set in a set, the file in the inner one ended the wait, and is what the outer one watches.
        for name in ("epoll-nested", "epoll-server", "epoll-late", "epoll-edge", "epoll-oneshot", "epoll-reused"):
            with self.subTest(name):
                _, wait = self.check_files(recording, name, truth[name], "epoll", "epoll_wait")
                # Those that were closed before the set was looked at are not in it any more.
                files = truth[name]["files"]
                self.check_watched(recording, name, wait, files[-1:] if name == "epoll-reused" else files)
        for name, op in (("poll-one", "poll"), ("poll-three", "poll"), ("ppoll-two", "poll"),
                         ("select-three", "select"), ("pselect-two", "select")):
            with self.subTest(name):
                self.check_files(recording, name, truth[name], "poll", op)
        for name, kind, op, wakers in (("epoll-timeout", "epoll", "epoll_wait", ("timer",)),
                                       ("epoll-signal", "epoll", "epoll_wait", ("thread",)),
                                       ("poll-timeout", "poll", "poll", ("timer",)),
                                       ("select-timeout", "poll", "select", ("timer",))):
            with self.subTest(name):
                self.check_nothing(recording, name, truth[name], kind, op, wakers)


if __name__ == "__main__":
    tap.main()
