# SPDX-License-Identifier: LGPL-2.1-or-later
"""What tests of waits on named objects share: an object's rows, and the division of waits on several files."""

import collections
import itertools
import pathlib
import re
import shutil
import tempfile
import time

from prism import Workload
from recording import Recording
import truth

recordings = itertools.count(1)


def numbers(ident):
    """All whole numbers in a resource's identity."""
    return {int(number) for number in re.findall(r"\d+", ident)}


class ObjectTest(truth.TruthTest):
    """Plays workloads in a directory of their own; each thread of a pair is judged by the same rules."""

    directory_parent = None
    calls = None  # what to give to `record start --calls`, if anything

    def setUp(self):
        super().setUp()
        self.unnamed = []
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="prism-truth-", dir=self.directory_parent))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def tearDown(self):
        problems = [problem for recording in self.recordings for problem in divided(recording)]
        super().tearDown()
        self.assertFalse(problems, "division of waits:\n" + "\n".join(problems[:8]))
        self.assertFalse(self.unnamed, "waits without a name:\n" + "\n".join(self.unnamed[:8]))

    def record(self, pids, play, track=()):
        if self.calls is None:
            return super().record(pids, play, track)
        name = f"calls-{self.calls}-{next(recordings)}"
        targets = [f"pid:{pid}" for pid in pids]
        self.prismd.must("track", "--pid", ",".join(map(str, pids)), *track)
        self.prismd.must("record", "start", name, "--calls", self.calls)
        try:
            answer = play()
        finally:
            self.prismd.must("record", "stop", name)
            self.prismd.must("untrack", *targets)
        recording = Recording(self.prismd, name)
        self.recordings.append(recording)
        return recording, answer

    def play_in(self, group, *workload, before=None, **options):
        """As play(), in a control group; before() is called between the workload's preparations and its scenario."""

        def scenario():
            time.sleep(0.1)
            running.go()
            return running.answer()

        with Workload(*workload, prefix=group.prefix(), cwd=self.directory, **options) as running:
            if before:
                before()
            return self.record([running.pid], scenario)

    def resource(self, recording, resource_id):
        return recording.db.execute("SELECT * FROM resource WHERE id = ?", (resource_id,)).fetchone()

    def by_inode(self, recording, kind, inode):
        found = recording.db.execute("SELECT * FROM resource WHERE kind = ?", (kind,)).fetchall()
        return self.only([row for row in found if inode in numbers(row["ident"])], f"{kind} with inode {inode}")

    def bounds(self, known):
        """What the waiter timed has its time in the run queue in it, unless another thread noted the end."""
        if known.get("waker"):
            return known["total_ns"], known["total_ns"]
        return known["total_ns"] - known["run_ns"] - known["runqueue_ns"], known["total_ns"]

    def check(self, recording, name, known, kind, op, inode=None, label=None, wakers=("thread",)):
        """The thread has this wait on one object, as often and as long as the workload says, and who ended it. Returns
        the thread and the wait."""
        thread = recording.thread(known["tid"])
        waits = recording.waits(thread, kind, op)
        if inode is not None:
            waits = [w for w in waits if inode in numbers(w.ident)]
        everything = [(w.kind, w.ident, w.name, w.op, w.count) for w in recording.waits(thread)]
        wait = self.only(waits, f"{name}: waits on {kind} {inode or ''} by {op}, of {everything}")
        # What was done at once is no wait.
        least = known["count"] if known.get("waker") else known.get("long", known["count"])
        self.assertIn(wait.count, range(least, known["count"] + 1), f"{name}: number of waits")
        self.assert_between(wait.total_ns, *self.bounds(known), f"{name}: total")
        if label is not None:
            self.assertRegex(wait.name or "", label, f"{name}: name of the {kind}")
        if wakers is not None:
            self.check_wakers(recording, name, known, thread, wait, wakers)
        self.check_named(recording, name, thread)
        return thread, wait

    def check_wakers(self, recording, name, known, thread, wait, wakers, least=1.0):
        wakes = recording.wakes(thread, wait.resource)
        if known.get("waker") and "thread" in wakers:
            by_waker = sum(w.count for w in wakes if w.kind == "thread" and w.tid == known["waker"])
            self.assertGreaterEqual(by_waker, least * sum(w.count for w in wakes), f"{name}: by whom: {wakes}")
            self.assertGreater(by_waker, 0, f"{name}: no wake by its waker: {wakes}")
        else:
            self.assertLessEqual({w.kind for w in wakes}, set(wakers), f"{name}: by whom: {wakes}")

    def check_named(self, recording, name, thread):
        """Less than 1 % of its waiting is for something without a name; said when the test has ended."""
        waits = recording.waits(thread)
        other = [w for w in waits if w.kind == "other"]
        if sum(w.total_ns for w in other) > 0.01 * sum(w.total_ns for w in waits):
            self.unnamed.append(f"{name}: {[(w.ident, w.op, w.count, w.total_ns) for w in other]}")

    def divided(self, recording, thread, wait):
        """{watched resource id, 0 for none: (count, ns)} of a wait on several files."""
        sums = collections.defaultdict(lambda: (0, 0))
        for row in recording.rows("mux_wait", thread):
            if row["resource_id"] == wait.resource and row["op"] == wait.op:
                count, total = sums[row["watched_id"]]
                sums[row["watched_id"]] = (count + row["count"], total + recording.inside(row))
        return dict(sums)


def divided(recording):
    """What is wrong with the division by watched file: it must add up to the wait, row by row."""
    problems = []
    left = collections.Counter()
    kinds = {row["id"]: row["kind"] for row in recording.db.execute("SELECT id, kind FROM resource")}
    for row in recording.rows("wait"):
        if kinds[row["resource_id"]] in ("epoll", "poll"):
            left[row["thread_id"], row["ts_ns"], row["resource_id"], row["op"]] += row["total_ns"]
    for row in recording.rows("mux_wait"):
        left[row["thread_id"], row["ts_ns"], row["resource_id"], row["op"]] -= row["total_ns"]
    for (thread, _, resource, op), rest in left.items():
        if rest != 0:
            problems.append(f"{recording.name}: thread {thread}, resource {resource}, {op}: {rest} ns are not divided")
    return problems
