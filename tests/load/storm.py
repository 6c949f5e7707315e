# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the tests of tests/load share: prismd with limits of one's own, its size while it works, and what was lost."""

import collections
import contextlib
import json
import pathlib
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

from prism import BUILD, Prismd, Workload
from recording import INFERRED, Recording, conservation
from truth import TruthTest, note

PROGRAMS = BUILD / "tests/load/workloads"

# A storm may take long to say what it did.
ANSWER_TIMEOUT = 120


class Storm(Workload):
    """A program of tests/load/workloads."""

    def __init__(self, name, *arguments, **options):
        super().__init__(name, *arguments, program=PROGRAMS / name, **options)

    def answer(self):
        return json.loads(self._line(ANSWER_TIMEOUT))


class Size:
    """The most memory that a process has while this is watched; in MiB."""

    def __init__(self, pid):
        self.status = pathlib.Path(f"/proc/{pid}/status")
        self.before = self.most = self.now()
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def now(self):
        for line in self.status.read_text("ascii").splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise AssertionError("a process without memory")

    def watch(self):
        while not self.ended.wait(0.2):
            self.most = max(self.most, self.now())

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, kind, value, trace):
        self.ended.set()
        self.thread.join()

    def __str__(self):
        return f"prismd's memory: {self.before:.0f} MiB before, {self.most:.0f} at most, {self.now():.0f} after"


class StormTest(TruthTest):
    """expected_losses: those that this test judges by itself; all others but inferred switches make it fail.
    expected_problems: what is said about conservation and follows from those losses."""

    limits = {}
    expected_losses = ()
    expected_problems = ()

    @classmethod
    def make_prismd(cls):
        directory = pathlib.Path(tempfile.mkdtemp(prefix="prism-load-"))
        arguments = []
        if cls.limits:
            config = directory / "prismd.conf"
            config.write_text("[Limits]\n" + "".join(f"{name}={value}\n" for name, value in cls.limits.items()), "utf-8")
            arguments = ["--config", config]
        return Prismd(directory=directory, arguments=arguments)

    def record_storm(self, *workload, track=("--follow", "children"), calls="none", during=None, look=None):
        """Records a storm from before its begin until after its end: the recording, its answer, and the losses that
        prismd counted meanwhile. `during` is entered while it goes on; look(pid) is asked before its begin and after its
        end, for truth["before"] and ["after"]."""
        name = f"{self.id().split('.')[-1]}-{len(self.recordings) + 1}"
        before = self.status_losses()
        with Storm(*workload) as running, Size(self.prismd.pid) as size:
            self.prismd.must("track", "--pid", running.pid, *track)
            self.prismd.must("record", "start", name, "--calls", calls)
            time.sleep(0.1)
            before_storm = look(running.pid) if look else None
            running.go()
            with during(running) if during else contextlib.nullcontext():
                truth = running.answer()
            time.sleep(0.1)
            if look:
                truth |= {"before": before_storm, "after": look(running.pid)}
            self.prismd.must("record", "stop", name)
            lost = self.status_losses()
            self.prismd.must("untrack", f"pid:{running.pid}")
        recording = Recording(self.prismd, name)
        recording.expected = [*(f"loss: {reason}:" for reason in self.expected_losses), *self.expected_problems]
        self.recordings.append(recording)
        lost.subtract(before)
        lost = {reason: count for reason, count in sorted(lost.items()) if count}
        note(f"{' '.join(map(str, workload))}: {truth['played_ns'] / 1e9:.1f} s")
        note(f"losses: {', '.join(f'{count} {reason}' for reason, count in lost.items()) or 'none'}")
        note(size)
        return recording, truth, lost

    def status_losses(self):
        return collections.Counter(self.prismd.json("status")["Losses"])

    def tearDown(self):
        if not self.prismd.alive():
            self.fail(f"prismd ended: {self.prismd.log()[-2000:]}")
        problems = []
        for recording in self.recordings:
            found = [f"{recording.name}: {problem}" for problem in conservation(recording)]
            problems += [p for p in found if not any(words in p for words in recording.expected)]
            recording.close()
        self.assertFalse(problems, f"conservation, {len(problems)} problems:\n" + "\n".join(problems[:8]))


def inferred(lost):
    """Switches and wakes that the kernel did not deliver, and that were counted."""
    return sum(lost.get(reason, 0) for reason in INFERRED)


def switches_of_threads(pid):
    """{tid: (voluntary, involuntary)}, as the scheduler counts them."""
    found = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        fields = dict(line.split(":", 1) for line in (task / "status").read_text("utf-8").splitlines())
        found[int(task.name)] = (int(fields["voluntary_ctxt_switches"]), int(fields["nonvoluntary_ctxt_switches"]))
    return found
