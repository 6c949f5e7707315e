#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Waits for time, children, signals, packets and disks, and who ends them."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

import tap
from prism import Workload, run
import truth


class Sleeps(truth.SharedRecording):
    workload = ("sleeps",)

    def bounds(self, name):
        """What the thread measured has its run queue in it; the scheduler's account of that covers a little more than the
        sleeps, and leaves out the time until a woken thread is in a queue."""
        known = self.truth[name]
        return known["total_ns"] - known["runqueue_ns"] - known["run_ns"], known["total_ns"]

    def check(self, name, kind, op, waker):
        known = self.truth[name]
        thread = self.recording.thread(known["tid"])
        wait = self.only(self.recording.waits(thread, kind, op), f"waits of {name} on {kind} by {op}")
        self.assertEqual(wait.count, known["count"], f"{name}: number of waits")
        self.assert_between(wait.total_ns, *self.bounds(name), name)
        kinds = {w.kind for w in self.recording.wakes(thread, wait.resource)}
        self.assertEqual(kinds, {waker}, f"{name}: kinds of wakers")
        return thread, wait

    def test_nanosleep(self):
        _, wait = self.check("nanosleep", "timer", "clock_nanosleep", "timer")
        self.assertEqual(wait.histogram, [0, 0, 0, 0, 0, wait.count, 0, 0], "30 ms each")

    def test_absolute(self):
        self.check("absolute", "timer", "clock_nanosleep", "timer")

    def test_usleep(self):
        self.check("usleep", "timer", "clock_nanosleep", "timer")

    def test_timerfd_is_woken_by_a_timer(self):
        thread = self.recording.thread(self.truth["timerfd"]["tid"])
        wait = self.only(self.recording.waits(thread, "timerfd", "read"), "waits on the timerfd")
        known = self.truth["timerfd"]
        self.assertEqual(wait.count, known["count"])
        wakes = {w.kind: w for w in self.recording.wakes(thread, wait.resource)}
        self.assertLessEqual(wakes.keys(), {"timer", "unseen"})
        share = wakes["timer"].count / known["count"]
        self.assertGreater(share, 0.9)
        self.assert_between(wakes["timer"].total_ns, *(share * bound for bound in self.bounds("timerfd")), "timerfd")

    def check_child(self, name, op):
        known = self.truth[name]
        thread, wait = self.check(name, "child", op, "thread")
        self.assertNotIn(known["tid"], {w.tid for w in self.recording.wakes(thread, wait.resource)})
        return thread, wait

    def test_wait4(self):
        self.check_child("wait4", "wait4")

    def test_waitid(self):
        self.check_child("waitid", "waitid")

    def test_vfork(self):
        """Uninterruptible, and no kernel lock."""
        thread, _ = self.check_child("vfork", "vfork")
        self.assertGreater(self.recording.times(thread)["block_ns"], 0.95 * self.bounds("vfork")[0])

    def test_sigtimedwait_times_out(self):
        self.check("sigtimedwait", "signal", "rt_sigtimedwait", "timer")

    def check_signalled(self, name, op):
        thread, wait = self.check(name, "signal", op, "thread")
        wakers = {w.tid for w in self.recording.wakes(thread, wait.resource)}
        self.assertEqual(wakers, {self.truth["signaller"]}, "who sent the signals")

    def test_sigwait(self):
        self.check_signalled("sigwait", "rt_sigtimedwait")

    def test_sigsuspend(self):
        self.check_signalled("sigsuspend", "rt_sigsuspend")

    def test_pause(self):
        self.check_signalled("pause", "pause")


class Stopped(truth.TruthTest):
    STOPPED = 0.7

    def test_stop_and_continue(self):
        least = most = 0

        def stop(workload):
            nonlocal least, most
            time.sleep(0.4)
            before = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
            os.kill(workload.process.pid, signal.SIGSTOP)
            stopped = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
            time.sleep(self.STOPPED)
            least = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - stopped
            os.kill(workload.process.pid, signal.SIGCONT)
            most = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - before

        recording, known = self.play("sleeps", "stopped", during=stop)
        for name in ("sleeper", "spinner"):
            thread = recording.thread(known[name]["tid"])
            wait = self.only(recording.waits(thread, "signal", "stopped"), f"{name}: stopped")
            self.assertEqual(wait.count, 1, f"{name}: number of stops")
            self.assert_between(wait.total_ns, least, most, f"{name}: stopped")

        # What is left of the sleep goes on as a restart of the same call.
        sleeper = recording.thread(known["sleeper"]["tid"])
        wait = self.only(recording.waits(sleeper, "timer"), "sleeper: timers")
        self.assertEqual(wait.op, "clock_nanosleep")
        asleep = known["sleeper"]["total_ns"] - known["sleeper"]["runqueue_ns"]
        self.assert_between(wait.total_ns, asleep - most, asleep - least, "sleeper: timer")
        spinner = recording.thread(known["spinner"]["tid"])
        self.assert_close(recording.times(spinner)["run_ns"], known["spinner"]["run_ns"], "spinner: run")


class Blocked(truth.SharedRecording):
    workload = ("blocked",)

    def check(self, name, kind, op):
        thread = self.recording.thread(self.truth[name])
        wait = self.only(self.recording.waits(thread), f"waits of {name}")
        self.assertEqual((wait.kind, wait.op), (kind, op))
        self.assertEqual((wait.count, wait.max_ns), (0, 0), "a wait that did not end")
        self.assert_close(wait.total_ns, self.recording.length_ns, name)
        self.assertEqual(self.recording.wakes(thread), [])
        return wait

    def test_on_a_futex(self):
        wait = self.check("futex", "futex", "wait")
        self.assertIn(f"{self.truth['address']:x}", wait.ident)

    def test_in_a_pipe(self):
        self.check("pipe", "pipe", "read")

    def test_for_time(self):
        self.check("timer", "timer", "clock_nanosleep")

    def test_one_that_runs_all_the_time(self):
        times = self.recording.times(self.recording.thread(self.truth["runner"]))
        self.assert_close(times["run_ns"], self.truth["run_ns"], "run")

    def test_new_name_is_followed(self):
        self.assertEqual(self.recording.thread(self.truth["renamed"])["comm"], "name-after")


class Disk(truth.TruthTest):
    def test_fsync(self):
        path = truth.scratch_directory() / f"prism-truth-{os.getpid()}"
        recording, known = self.play("files", path)
        thread = recording.thread(known["tid"])
        times = recording.times(thread)
        waits = recording.waits(thread)
        parked = sum(w.total_ns for w in waits if w.op == "read")
        # An upper bound, and far off on a busy machine: the time from a wake until the scheduler queues the thread is in
        # none of its accounts, and each fsync is several short waits.
        waited = times["sleep_ns"] + times["block_ns"] - parked
        self.assert_between(waited, 0.8 * known["waited_ns"], known["waited_ns"], "waited")
        self.assertGreater(times["block_ns"], 0.8 * known["waited_ns"], "uninterruptible")
        synced = sum(w.total_ns for w in waits if w.op == "fsync")
        self.assertGreater(synced, 0.8 * known["waited_ns"], f"by fsync: {waits}")
        self.assertGreater(times["iowait_ns"], 0)


class Packets(truth.TruthTest):
    """A packet that a token bucket holds back is delivered by a softirq, in nobody's name."""

    COUNT = 40
    PORT = 5301
    NAMESPACES = ("prism-truth-a", "prism-truth-b")

    def ip(self, *arguments):
        done = run("ip", *arguments)
        self.assertEqual(done.code, 0, f"ip {' '.join(arguments)}: {done.err}")

    def remove(self):
        for name in self.NAMESPACES:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)

    def network(self):
        if not shutil.which("ip") or not shutil.which("tc"):
            self.skipTest("needs iproute2")
        self.remove()
        self.addCleanup(self.remove)
        a, b = self.NAMESPACES
        self.ip("netns", "add", a)
        self.ip("netns", "add", b)
        self.ip("link", "add", "veth0", "netns", a, "type", "veth", "peer", "name", "veth0", "netns", b)
        for name, address in ((a, "10.99.7.1/24"), (b, "10.99.7.2/24")):
            self.ip("-n", name, "addr", "add", address, "dev", "veth0")
            self.ip("-n", name, "link", "set", "veth0", "up")
        # 1442 bytes on the wire, one each 29 ms.
        done = run("tc", "-n", b, "qdisc", "add", "dev", "veth0", "root", "tbf", "rate", "400kbit", "burst", "1600",
                   "limit", "1000000")
        if done.code != 0:
            self.skipTest(f"no token bucket here: {done.err.strip()}")

    def test_woken_by_softirq(self):
        self.network()
        a, b = self.NAMESPACES

        def send(_receiver):
            with Workload("receive", self.PORT, self.COUNT, "10.99.7.1", prefix=("ip", "netns", "exec", b)) as sender:
                sender.go()
                sender.answer()
                time.sleep(0.1)

        recording, known = self.play("receive", self.PORT, self.COUNT, prefix=("ip", "netns", "exec", a), during=send)
        thread = recording.thread(known["tid"])
        waits = recording.waits(thread, op="receive")
        self.assert_close(sum(w.total_ns for w in waits), known["total_ns"] - known["runqueue_ns"], "waited")
        wakes = [w for wait in waits for w in recording.wakes(thread, wait.resource)]
        by_kind = {kind: sum(w.count for w in wakes if w.kind == kind) for kind in ("irq", "thread", "timer", "unseen")}
        # The first packets find tokens in the bucket, so the sender delivers them itself.
        self.assertGreaterEqual(by_kind["irq"], self.COUNT - 4, f"{by_kind}")
        self.assertEqual(by_kind["timer"] + by_kind["unseen"], 0, f"{by_kind}")


class ToldApart(truth.TruthTest):
    def test_by_a_thread_and_by_a_timeout(self):
        """The same futex, ended by a thread and by its timeout."""
        for mode, kind in (("wait", "thread"), ("timeout", "timer")):
            recording, known = self.play("futexes", mode)
            thread = recording.thread(known["waiter"])
            wait = self.only(recording.waits(thread, "futex"), mode)
            wakes = recording.wakes(thread, wait.resource)
            self.assertEqual({w.kind for w in wakes}, {kind})
            self.assertEqual(wait.count, known["count"])
            self.assert_close(wait.total_ns, known["total_ns"], f"waiting ended by {kind}")


if __name__ == "__main__":
    tap.main()
