#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""As many context switches as this machine does: each is recorded, or counted as not delivered."""

from storm import StormTest, inferred, note, switches_of_threads

import tap
from recording import NS

SECONDS = 5


class Switches(StormTest):
    def check(self, how):
        recording, truth, lost = self.record_storm("switches", how, SECONDS, look=switches_of_threads)
        losses = inferred(lost)
        self.assertEqual(set(lost) - {"kernel/missed-switch", "kernel/missed-wake"}, set(), "other losses")
        total, recorded_total, by_thread = 0, 0, []
        for tid in (t["tid"] for t in truth["threads"]):
            thread = recording.thread(tid)
            rows = recording.rows("thread_time", thread)
            known = [after - before for before, after in zip(truth["before"][tid], truth["after"][tid])]
            recorded = [sum(row[column] for row in rows) for column in ("switches", "preemptions")]
            waits = sum(row["count"] for row in recording.rows("wait", thread))
            by_thread.append((tid, known, recorded, waits))
            total += sum(known)
            recorded_total += sum(recorded)
        rate = total / truth["played_ns"] * NS
        note(f"{total} switches, {rate:.0f} a second; recorded {recorded_total}, {losses} inferred; "
             f"rounds {[t['rounds'] for t in truth['threads']]}")
        for tid, known, recorded, waits in by_thread:
            for kind, of_kernel, of_ours in zip(("voluntary", "involuntary"), known, recorded):
                self.assertLessEqual(abs(of_kernel - of_ours), losses,
                                     f"{kind} switches of {tid}: recorded {of_ours}, truth {of_kernel}, {losses} inferred")
            # The wait that is over at the begin was going on before, the one at the end goes on.
            self.assertLessEqual(abs(waits - known[0]), losses, f"waits of {tid}: {waits}, of {known[0]} switches")
        self.assertLessEqual(abs(total - recorded_total), losses, "switches of all threads")
        return recording, truth

    def test_yield(self):
        self.check("yield")

    def test_handshake(self):
        """Each switch is the begin of a wait, and each ends one."""
        recording, truth = self.check("handshake")
        for known in truth["threads"]:
            thread = recording.thread(known["tid"])
            waits = [w for w in recording.waits(thread, "futex") if w.count]
            self.assertEqual(len(waits), 1, f"futexes: {waits}")
            self.assertLessEqual(waits[0].count, known["rounds"] + 1)


if __name__ == "__main__":
    tap.main()
