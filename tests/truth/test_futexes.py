#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Waits on futexes: how long, how often, on which futex, and who ended them."""

import collections
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

import tap
from truth import TruthTest, scratch_directory


def addresses(ident):
    """All numbers in a resource's identity."""
    return {int(number, 16) for number in re.findall(r"\b(?:0x)?([0-9a-f]+)\b", ident)}


class Mutex(TruthTest):
    def check(self, mode, op, shared, name, **options):
        recording, truth = self.play("mutex", mode, **options)
        resources, names = set(), set()
        for waiter in truth["waiters"]:
            thread = recording.thread(waiter["tid"])
            self.assertEqual(thread["pid"], waiter["pid"])
            found = [w for w in recording.waits(thread, "futex")]
            wait = self.only(found, f"futexes of {thread['comm']}")
            self.assertEqual(wait.op, op)
            self.assert_wait(wait, waiter, thread["comm"])
            if not shared:
                self.assertIn(waiter["address"], addresses(wait.ident), "address of the mutex")
            resources.add(wait.resource)
            names.add(wait.name)

            expected = collections.defaultdict(lambda: [0, 0])
            for one in waiter["waits"]:
                expected[one["waker"]][0] += 1
                expected[one["waker"]][1] += one["ns"]
            wakes = recording.wakes(thread, wait.resource)
            self.assertEqual({w.kind for w in wakes}, {"thread"}, "kinds of wakers")
            self.assertEqual({w.tid: w.count for w in wakes}, {tid: n for tid, (n, _) in expected.items()}, "wakers")
            for wake in wakes:
                self.assert_close(wake.total_ns, expected[wake.tid][1], f"{thread['comm']} woken by {wake.comm}")
        self.assertIn(truth["holder"], {one["waker"] for w in truth["waiters"] for one in w["waits"]})
        self.assertEqual(recording.thread(truth["holder"])["comm"], "holder")
        self.assertEqual(len(resources), 1, f"one mutex is {len(resources)} resources: {names}")
        self.assertRegex(str(names.pop()), name)

    def test_on_the_heap(self):
        self.check("heap", "wait", False, r"heap")

    def test_static(self):
        self.check("static", "wait", False, r":static_lock\+0x")

    def test_on_a_stack(self):
        self.check("stack", "wait", False, r"stack")

    def test_priority_inheritance(self):
        self.check("pi", "lock_pi", False, r"heap")

    def test_in_a_memfd_of_two_processes(self):
        self.check("memfd", "wait", True, r"prism-truth")

    def test_in_posix_shared_memory_of_two_processes(self):
        self.check("shm", "wait", True, r"prism-truth")

    def test_in_anonymous_shared_memory_of_two_processes(self):
        self.check("anonymous", "wait", True, r"shared memory")

    def test_in_a_mapped_file_of_two_processes(self):
        self.check("file", "wait", True, r"prism-truth", cwd=scratch_directory())


class Queue(TruthTest):
    def test_condition_variable(self):
        recording, truth = self.play("queue")
        inside = range(truth["address"], truth["address"] + truth["size"])
        for consumer in truth["consumers"]:
            thread = recording.thread(consumer["tid"])
            waits = [w for w in recording.waits(thread, "futex") if any(a in inside for a in addresses(w.ident))]
            self.assertTrue(waits, "no wait on the condition variable")
            self.assertEqual(sum(w.count for w in waits), consumer["count"], "number of waits")
            self.assert_close(sum(w.total_ns for w in waits), consumer["total_ns"], "total")
            self.assert_close(max(w.max_ns for w in waits), consumer["max_ns"], "longest")
            wakes = [w for wait in waits for w in recording.wakes(thread, wait.resource)]
            self.assertEqual({(w.kind, w.tid) for w in wakes}, {("thread", truth["producer"])}, "wakers")
            self.assertEqual(sum(w.count for w in wakes), consumer["count"], "number of wakes")


class Operations(TruthTest):
    def check(self, mode, op, woken_by="thread", resource="woken"):
        recording, truth = self.play("futexes", mode)
        if truth["unsupported"]:
            self.skipTest("this kernel does not have the system call")
        thread = recording.thread(truth["waiter"])
        wait = self.only(recording.waits(thread, "futex"), "futexes")
        self.assertEqual(wait.op, op)
        self.assertIn(truth[resource], addresses(wait.ident), "address of the futex")
        self.assert_wait(wait, truth, mode)
        wakes = recording.wakes(thread, wait.resource)
        expected = truth["waker"] if woken_by == "thread" else 0
        self.assertEqual([(w.kind, w.tid) for w in wakes], [(woken_by, expected)], "wakers")

    def test_wait(self):
        self.check("wait", "wait")

    def test_wait_bitset(self):
        self.check("bitset", "wait_bitset")

    def test_wait_requeue_pi(self):
        self.check("requeue_pi", "wait_requeue_pi")

    def test_waitv_is_charged_to_the_futex_that_was_woken(self):
        self.check("waitv", "waitv")

    def test_waitv_woken_by_futex2(self):
        self.check("waitv2", "waitv")

    def test_waitv_that_times_out_is_charged_to_the_first(self):
        self.check("waitv_timeout", "waitv_any", woken_by="timer", resource="first")

    def test_timeout(self):
        self.check("timeout", "wait", woken_by="timer")

    def test_futex2_wait(self):
        self.check("futex2", "futex2_wait")

    def test_operation_without_private_flag_on_private_memory(self):
        self.check("unprivate", "wait")


if __name__ == "__main__":
    tap.main()
