# SPDX-License-Identifier: LGPL-2.1-or-later
"""The test case of tests/independent: prism and another tool watch the same run, and their figures are compared.

What is compared is printed as a row of the table in docs/accuracy.md.
"""

import itertools
import os
import pathlib
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(SOURCE / "tests/lib"), str(SOURCE / "tests/truth"), str(SOURCE / "tests/servers")]

from objects import ObjectTest
from prism import BUILD
from recording import MS, NS, Recording
from tools import Lost
from truth import note, scratch_directory

WORKLOADS = BUILD / "tests/independent/workloads"

TRIES = 3

recordings = itertools.count(1)

LIMIT = float(os.environ.get("PRISM_TOLERANCE", 2)) / 100

DOUBT = 0.1

# Below these the limit is that of these, as for a few calls or a millisecond a single event is more than 2 %.
LEAST = {"ns": 5 * MS, "count": 100, "bytes": 10000}


def shown(value, unit):
    if unit == "ns":
        return f"{value / NS:.3f} s" if value >= NS else f"{value / MS:.2f} ms"
    return f"{value:,.0f}" + (" bytes" if unit == "bytes" else "")


def difference(prism, other):
    return f"{(prism - other) / other * 100:+.2f} %" if other else f"{prism - other:+}"


class ComparisonTest(ObjectTest):
    directory_parent = scratch_directory()
    calls = "none"
    load = ""

    def record(self, pids, play, track=()):
        """As that of the other tests, but that a process may have ended with its recording."""
        name = f"{type(self).__name__}-{next(recordings)}"
        targets = [f"pid:{pid}" for pid in pids]
        self.prismd.must("track", "--pid", ",".join(map(str, pids)), *track)
        self.prismd.must("record", "start", name, "--calls", self.calls)
        try:
            answer = play()
        finally:
            self.prismd.must("record", "stop", name)
            self.prismd.ctl("untrack", *targets)
        recording = Recording(self.prismd, name)
        self.recordings.append(recording)
        return recording, answer

    def row(self, what, tool, prism, other, unit, remark=""):
        cells = (what, tool, self.load, shown(prism, unit), shown(other, unit), difference(prism, other), remark)
        note(f"| {' | '.join(cells)} |")

    def compare(self, what, tool, pairs, unsure=None, unit="ns", remark="", slack=None):
        """pairs: {name: (prism's figure, the other's)}. Each pair is within the limit. unsure: {name: how much of its figure
        the other tool's own data do not support}; what is too unsure is left out, which most must not be. slack: {name: what
        an event that was not delivered, and is counted, may be worth to it}."""
        problems, worst, doubts, left_out = [], 0, 0, 0
        compared = []
        for name, (prism, other) in pairs.items():
            doubt, whole = (unsure or {}).get(name, 0), max(other, LEAST[unit])
            if doubt > DOUBT * whole:
                left_out += 1
                continue
            compared.append((prism, other))
            doubts += doubt
            worst = max(worst, (abs(prism - other) - doubt) / whole)
            if abs(prism - other) > LIMIT * whole + doubt + (slack or {}).get(name, 0):
                problems.append(f"{name}: prism {shown(prism, unit)}, {tool} {shown(other, unit)} ({difference(prism, other)})")
        self.assertGreaterEqual(len(compared), max(1, left_out),
                                f"{what}: too little to compare with {tool}: {pairs}, unsure {unsure}")
        remarks = [f"{len(compared)} compared, the worst {worst:.2%}"] if len(pairs) > 1 else []
        remarks += [f"{shown(doubts, unit)} unsure"] if doubts else []
        remarks += [f"{left_out} too unsure"] if left_out else []
        remarks += [remark] if remark else []
        self.row(what, tool, sum(p for p, _ in compared), sum(o for _, o in compared), unit, "; ".join(remarks))
        self.assertFalse(problems, f"{what} against {tool}: " + "; ".join(problems))


class SharedRun(ComparisonTest):
    """The tests of a class look at one run, which the first of them makes; watch() returns its recording."""

    recording = None
    failed = False

    def watch(self):
        raise NotImplementedError

    def setUp(self):
        super().setUp()
        cls = type(self)
        if cls.failed:
            self.fail("there is no run to compare: see the first test")
        if cls.recording is None:
            cls.failed = True
            cls.recording = self.watch_all()
            self.recordings.clear()  # it is closed with the class
            cls.failed = False

    def watch_all(self):
        """A run of which the other tool lost a part, by its own word, is made once more."""
        for _ in range(TRIES - 1):
            try:
                return self.watch()
            except Lost as lost:
                note(f"made once more: {lost}")
        return self.watch()

    @classmethod
    def tearDownClass(cls):
        if cls.recording is not None:
            cls.recording.close()
            cls.recording = None
        super().tearDownClass()
