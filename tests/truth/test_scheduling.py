#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Time on the CPU and in the run queue, and who ran instead."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

import tap
from recording import MS
from truth import TruthTest, note

SHARE_POINTS = 5
TRIES = 6


class RanInstead(TruthTest):
    def competition(self, *workload, follow="none"):
        recording, truth = self.play("compete", *workload, track=("--follow", follow))
        thread = recording.thread(truth["tid"])
        times = recording.times(thread)
        instead = recording.ran_instead(thread)
        named = sum(ns for pid, ns in instead.items() if pid is not None)
        note(f"run queue {times['runqueue_ns'] / MS:.1f} ms, named {named / max(1, times['runqueue_ns']):.1%}, "
             f"heavy {instead[truth['heavy']] / MS:.1f} ms, light {instead[truth['light']] / MS:.1f} ms")
        return recording, truth, times, instead

    def check_share(self, instead, truth, true_heavy, true_light):
        heavy, light = instead[truth["heavy"]], instead[truth["light"]]
        self.assertGreater(heavy, 0, "heavy is not named")
        self.assertGreater(light, 0, "light is not named")
        share, true_share = heavy / (heavy + light), true_heavy / (true_heavy + true_light)
        self.assertLessEqual(abs(share - true_share) * 100, SHARE_POINTS,
                             f"heavy has {share:.1%} of the named time, truth {true_share:.1%}")

    def check_busy(self, cpu, follow):
        recording, truth, times, instead = self.competition("busy", cpu, follow=follow)
        self.assert_close(times["runqueue_ns"], truth["runqueue_ns"], "run queue")
        self.assert_close(times["run_ns"], truth["run_ns"], "run")
        self.check_share(instead, truth, truth["heavy_ns"], truth["light_ns"])
        comms = dict(recording.db.execute("SELECT pid, comm FROM process").fetchall())
        self.assertEqual((comms[truth["heavy"]], comms[truth["light"]]), ("heavy", "light"))

    def test_weights_3_to_1_not_followed(self):
        self.check_busy(0, "none")

    def test_weights_3_to_1_followed(self):
        # The competitors were forked before the target was named, so they are not its children to come.
        self.check_busy(1, "children")

    def test_processes_that_are_only_named_are_observed(self):
        recording, truth, _, _ = self.competition("busy", 0)
        rows = recording.db.execute("SELECT found_by FROM process WHERE pid IN (?, ?)",
                                    (truth["heavy"], truth["light"])).fetchall()
        self.assertEqual([row["found_by"] for row in rows], ["observed"] * 2)

    def test_thread_that_often_wakes_up(self):
        _, truth, times, _ = self.competition("waking", 1)
        self.assert_close(times["runqueue_ns"], truth["runqueue_ns"], "run queue")
        self.assert_close(times["run_ns"], truth["run_ns"], "run")

    def test_a_real_time_thread_in_between_is_charged_with_its_own_time_only(self):
        """The scheduler's account of the last slice is for fair threads: of others it says how much they ever ran."""
        _, truth, times, instead = self.competition("realtime", 0)
        self.assert_close(times["runqueue_ns"], truth["runqueue_ns"], "run queue")
        self.check_share(instead, truth, truth["heavy_ns"], truth["light_ns"])

    def test_migration_during_the_wait(self):
        for _ in range(TRIES):
            recording, truth, times, instead = self.competition("migrate")
            # One switch that is not delivered can be the only one that says who ran.
            if "kernel/missed-switch" not in recording.losses():
                break
        else:
            self.fail(f"in each of {TRIES} recordings a switch was missed")
        self.assert_close(times["runqueue_ns"], truth["runqueue_ns"], "run queue")
        self.check_share(instead, truth, truth["behind_heavy_ns"], truth["behind_light_ns"])
        self.assertGreater(instead[truth["heavy"]] + instead[truth["light"]], 0.9 * truth["runqueue_ns"],
                           "less than nine tenths of the wait are named")
        self.assertEqual(recording.state, "finished")


class OnTheCpu(TruthTest):
    def test_thread_that_hops_between_cpus(self):
        """What the kernel's clocks say here is too much run and too little run queue, by up to what the moves cost."""
        recording, truth = self.play("hop")
        thread = recording.thread(truth["tid"])
        times = recording.times(thread)
        doubt = truth["run_ns"] - truth["work_ns"]
        self.assertGreater(truth["hops"], 100)
        self.assert_between(times["run_ns"], truth["work_ns"], truth["run_ns"], "run")
        uncounted = truth["elapsed_ns"] - truth["run_ns"] - truth["runqueue_ns"]
        self.assert_between(times["runqueue_ns"], truth["runqueue_ns"], truth["runqueue_ns"] + doubt + uncounted, "run queue")
        gate = sum(w.total_ns for w in recording.waits(thread, op="read"))
        self.assert_close(times["dt_ns"] - gate, truth["elapsed_ns"], "all states of the scenario")


if __name__ == "__main__":
    tap.main()
