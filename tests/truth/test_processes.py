#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Threads and processes that come and go: exec, children, short lives, numbers used twice, pid namespaces."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

import tap
from prism import Prismd, Workload, children
from recording import MS
from truth import TruthTest


SLEEP_NS = 2 * MS  # of each thread of the workload "brief"


def slept(recording, thread):
    return sum(w.total_ns for w in recording.waits(thread, "timer"))


class Images(TruthTest):
    def test_exec_by_the_leader(self):
        recording, truth = self.play("image", "leader")
        thread = recording.thread(truth["pid"])
        self.assertEqual(thread["comm"], "after-exec")
        self.assert_close(slept(recording, thread), truth["before_ns"] + truth["after_ns"], "slept, before and after")
        self.check_overtaken(recording, truth)

    def test_exec_by_another_thread(self):
        recording, truth = self.play("image", "thread")
        # It goes on under the number, and with the start time, of the leader that it killed.
        found = [t for t in recording.threads() if t["pid"] == truth["pid"]]
        self.assertIn("after-exec", {t["comm"] for t in found if t["tid"] == truth["pid"]})
        self.assert_close(sum(slept(recording, t) for t in found if t["comm"] not in ("overtaken",)),
                          truth["before_ns"] + truth["after_ns"], "slept, before and after")
        self.check_overtaken(recording, truth)

    def check_overtaken(self, recording, truth):
        overtaken = self.only([t for t in recording.threads() if t["comm"] == "overtaken"], "overtaken thread")
        self.assertIsNotNone(overtaken["exit_ns"])
        # It slept before anybody looked; its life ends with the exec.
        known = overtaken["exit_ns"] - recording.start_ns
        self.assert_close(slept(recording, overtaken), known, "slept until it was killed")
        self.assertGreater(known, truth["before_ns"])
        self.assertLess(known, recording.length_ns - truth["after_ns"])
        found = recording.db.execute("SELECT count(*) FROM process WHERE pid = ?", (truth["pid"],)).fetchone()[0]
        self.assertEqual(found, 1, "one process, whatever it executes")

    def test_child_is_followed_through_fork_and_exec(self):
        recording, truth = self.play("image", "child")
        thread = recording.thread(truth["pid"])
        self.assertEqual((thread["found_by"], thread["comm"]), ("child", "after-exec"))
        self.assert_close(slept(recording, thread), truth["before_ns"] + truth["after_ns"], "slept")

    def test_daemon_is_followed(self):
        recording, truth = self.play("image", "daemon")
        thread = recording.thread(truth["pid"])
        self.assertEqual(thread["found_by"], "child")
        self.assert_close(slept(recording, thread), truth["before_ns"] + truth["after_ns"], "slept")

    def test_follow_none(self):
        recording, truth = self.play("image", "child", track=("--follow", "none"))
        self.assertNotIn(truth["pid"], {t["pid"] for t in recording.threads()})
        self.assertEqual({t["found_by"] for t in recording.threads()}, {"target"})


class Brief(TruthTest):
    """500 threads, each sleeps SLEEP_NS."""

    def test_threads_that_live_for_milliseconds(self):
        recording, truth = self.play("brief")
        threads = {t["tid"]: t for t in recording.threads()}
        missing = [t["tid"] for t in truth["threads"] if t["tid"] not in threads]
        self.assertEqual(missing, [], f"{len(missing)} of {len(truth['threads'])} threads are missing")
        wrong, shortest, longest = [], 0, 0
        for brief in truth["threads"]:
            thread = threads[brief["tid"]]
            recorded = slept(recording, thread)
            # It cannot have been shorter than it was asked to be; its own clock adds the run queue.
            least, most = SLEEP_NS, brief["slept_ns"]
            shortest, longest = shortest + least, longest + most
            if thread["exit_ns"] is None:
                wrong.append(f"{brief['tid']} has no end")
            elif thread["comm"] != "brief":
                wrong.append(f"{brief['tid']} is named {thread['comm']}")
            elif not least - MS <= recorded <= most + MS:
                wrong.append(f"{brief['tid']} slept {recorded / MS:.2f} ms, truth {least / MS:.2f} to {most / MS:.2f} ms")
            elif recording.times(thread)["dt_ns"] < brief["lived_ns"] - MS:
                wrong.append(f"{brief['tid']} is known for a part of its life only")
        self.assertEqual(wrong, [], f"{len(wrong)} threads are wrong")
        self.assert_between(sum(slept(recording, threads[t["tid"]]) for t in truth["threads"]), shortest, longest,
                            "slept, all of them")


class Reuse(TruthTest):
    def check(self, recording, truth):
        self.assertTrue(truth["reused"], "the kernel did not give out the number again")
        found = sorted((t for t in recording.threads() if t["tid"] == truth["tid"]), key=lambda t: t["start_ns"])
        self.assertEqual([t["comm"] for t in found], ["first", "second"])
        self.assert_close(slept(recording, found[0]), truth["first_ns"], "first")
        self.assert_close(slept(recording, found[1]), truth["second_ns"], "second")
        self.assertLessEqual(found[0]["exit_ns"], found[1]["start_ns"])

    def test_thread_number_used_twice(self):
        recording, truth = self.play("reuse")
        self.check(recording, truth)

    def test_thread_number_used_twice_in_a_pid_namespace(self):
        """Outside of it the numbers differ, and those are the ones that prismd sees."""
        with Workload("reuse", prefix=("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")) as running:
            pid = children(running.process.pid)[0]
            self.assertEqual(running.pid, 1)

            def scenario():
                running.go()
                return running.answer()

            recording, truth = self.record([pid], scenario)
        self.assertTrue(truth["reused"])
        found = sorted((t for t in recording.threads() if t["comm"] in ("first", "second")), key=lambda t: t["start_ns"])
        self.assertEqual([t["comm"] for t in found], ["first", "second"])
        self.assertEqual({t["pid"] for t in found}, {pid})
        self.assertEqual({t["host_pid"] for t in found}, {pid}, "prismd sees the numbers of the host here")
        self.assert_close(slept(recording, found[0]), truth["first_ns"], "first")
        self.assert_close(slept(recording, found[1]), truth["second_ns"], "second")


class OwnPidNamespace(TruthTest):
    """prismd in a pid namespace of its own, as in a container: users type the numbers that they see there."""

    @classmethod
    def make_prismd(cls):
        return Prismd(own_pid_namespace=True)

    def test_numbers_are_translated(self):
        with Workload("mutex", "heap", prefix=self.prismd.inside()) as running:
            host_pid = self.host_pid(running)
            self.assertNotEqual(running.pid, host_pid)

            def scenario():
                running.go()
                return running.answer()

            recording, truth = self.record([running.pid], scenario)
        for waiter in truth["waiters"]:
            thread = recording.thread(waiter["tid"])
            self.assertEqual((thread["pid"], thread["host_pid"]), (running.pid, host_pid))
            self.assertNotEqual(thread["tid"], thread["host_tid"])
            wait = self.only(recording.waits(thread, "futex"), "futexes")
            self.assert_wait(wait, waiter, thread["comm"])
            wakers = {w.tid for w in recording.wakes(thread, wait.resource)}
            self.assertEqual(wakers, {one["waker"] for one in waiter["waits"]}, "wakers")

    def test_children_are_followed(self):
        recording, truth = self.play("image", "child", prefix=self.prismd.inside())
        thread = recording.thread(truth["pid"])
        self.assertNotEqual(thread["pid"], thread["host_pid"])
        self.assert_close(slept(recording, thread), truth["before_ns"] + truth["after_ns"], "slept")

    def test_status_says_so(self):
        self.assertEqual(self.prismd.json("status")["PidNamespace"], "own")

    @staticmethod
    def host_pid(running):
        """nsenter forks to enter a pid namespace."""
        return children(running.process.pid)[0]


if __name__ == "__main__":
    tap.main()
