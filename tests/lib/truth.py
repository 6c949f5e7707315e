# SPDX-License-Identifier: LGPL-2.1-or-later
"""The test case of tests/truth: record a workload, compare with what it says about itself.

Every recording is also checked for conservation, on every thread in it.
"""

import itertools
import os
import pathlib
import sys
import time
import unittest

import installed
from installed import Installed
from prism import Prismd, Workload
from recording import Recording, conservation, explain, tolerance

numbers = itertools.count(1)


class TruthTest(unittest.TestCase):
    """The tests of a class share one prismd; it is started by the first that needs it."""

    prismd = None

    @classmethod
    def make_prismd(cls):
        return Installed() if installed.wanted() else Prismd()

    @classmethod
    def start_prismd(cls):
        cls.prismd = cls.make_prismd()
        try:
            cls.prismd.start()
        except BaseException:
            cls.prismd.kill()
            cls.prismd.remove()
            cls.prismd = None
            raise

    @classmethod
    def tearDownClass(cls):
        if cls.prismd is not None:
            cls.prismd.stop()
            if os.environ.get("PRISM_KEEP") == "1":
                print(f"# kept: {cls.prismd.directory}")
            else:
                cls.prismd.remove()
            cls.prismd = None

    def setUp(self):
        self.recordings = []
        if type(self).prismd is None or not type(self).prismd.alive():
            type(self).start_prismd()
        self.prismd = type(self).prismd

    def tearDown(self):
        if not self.prismd.alive():
            self.fail(f"prismd ended: {self.prismd.log()[-2000:]}")
        problems = []
        for recording in self.recordings:
            problems += [f"{recording.name}: {problem}" for problem in conservation(recording)]
            recording.close()
        self.assertFalse(problems, "conservation:\n" + "\n".join(problems[:8]))

    def record(self, pids, play, track=()):
        """Tracks, starts a recording, calls play(), ends the recording, and returns both."""
        name = f"{self.id().split('.')[-1]}-{next(numbers)}"
        targets = [f"pid:{pid}" for pid in pids]
        if pids:
            self.prismd.must("track", "--pid", ",".join(map(str, pids)), *track)
        self.prismd.must("record", "start", name)
        try:
            answer = play()
        finally:
            self.prismd.must("record", "stop", name)
            if targets:
                self.prismd.must("untrack", *targets)
        recording = Recording(self.prismd, name)
        self.recordings.append(recording)
        return recording, answer

    def play(self, *workload, track=(), during=None, prefix=(), **options):
        """Records one workload from before its scenario until after its answer."""

        def scenario():
            time.sleep(0.1)
            running.go()
            if during:
                during(running)
            return running.answer()

        with Workload(*workload, prefix=prefix, **options) as running:
            return self.record([running.pid], scenario, track)

    def assert_close(self, recorded_ns, true_ns, what):
        self.assertLessEqual(abs(recorded_ns - true_ns), tolerance(true_ns), explain(what, recorded_ns, true_ns))

    def assert_between(self, recorded_ns, least_ns, most_ns, what):
        """The truth is known as two bounds; each has the usual tolerance."""
        self.assertGreaterEqual(recorded_ns, least_ns - tolerance(least_ns), explain(what, recorded_ns, least_ns))
        self.assertLessEqual(recorded_ns, most_ns + tolerance(most_ns), explain(what, recorded_ns, most_ns))

    def assert_wait(self, wait, truth, what):
        """Count, total and maximum of a wait against a tally of the workload."""
        self.assertEqual(wait.count, truth["count"], f"{what}: number of waits")
        self.assert_close(wait.total_ns, truth["total_ns"], f"{what}: total")
        self.assert_close(wait.max_ns, truth["max_ns"], f"{what}: longest")

    def only(self, found, what):
        self.assertEqual(len(found), 1, f"{what}: {found}")
        return found[0]


class SharedRecording(TruthTest):
    """Tests that look at one recording of one workload, each at another thread."""

    workload = ()
    recording = None
    truth = None

    def setUp(self):
        super().setUp()
        if type(self).recording is None:
            type(self).recording, type(self).truth = self.play(*self.workload)
            self.recordings.clear()  # it is closed with the class, and checked by the test below

    @classmethod
    def tearDownClass(cls):
        if cls.recording is not None:
            cls.recording.close()
            cls.recording = None
        super().tearDownClass()

    def test_conservation(self):
        problems = conservation(self.recording)
        self.assertFalse(problems, "\n".join(problems[:8]))


def scratch_directory():
    """On a real file system, where fsync() waits for a disk."""
    return pathlib.Path("/var/tmp")


def note(text):
    print(f"# {text}")
    sys.stdout.flush()
