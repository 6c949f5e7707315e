#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The clock is set by an hour, and the machine is suspended, while something is recorded. Runs in the guest: both would
disturb a machine that is used for anything else."""

import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

import tap
from recording import MS, NS
from truth import TruthTest, note

HOUR = 3600 * NS
SUSPENDED_SECONDS = 15
WAKE_ALARM = pathlib.Path("/sys/class/rtc/rtc0/wakealarm")

unix_now = time.time_ns


def boot_now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def awake_now():
    """Stands still while the machine is suspended."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


class ClockTest(TruthTest):
    LENGTH_MS = 4000

    def spin(self, during):
        """A recording of a thread that runs for so long by the boot clock, while `during` is called once."""

        def while_it_runs(_workload):
            time.sleep(1)
            during()

        before = boot_now()
        recording, known = self.play("spin", self.LENGTH_MS, during=while_it_runs)
        self.assertEqual(recording.state, "finished")
        self.assertGreaterEqual(recording.length_ns, known["elapsed_ns"])
        self.assertLessEqual(recording.length_ns, boot_now() - before)
        thread = recording.thread(known["tid"])
        self.assert_close(recording.times(thread)["run_ns"], known["run_ns"], "run")
        return recording, thread, known

    def reported(self, what, thread):
        """The thread's line of a report."""
        report = self.prismd.json("report", what)
        return report["range"], self.only([row for row in report["threads"] if row["tid"] == thread["tid"]], what)


class Steps(ClockTest):
    def check(self, by_ns):
        """A recording is one piece on one time line, that on which it began; the next one follows the clock."""
        before = unix_now()
        recording, thread, _ = self.spin(lambda: time.clock_settime_ns(time.CLOCK_REALTIME, unix_now() + by_ns))
        self.assertGreaterEqual(recording.start_ns, before)
        self.assertLess(recording.start_ns, before + 60 * NS)

        told, by_name = self.reported(recording.name, thread)
        self.assertEqual(told["length_ns"], recording.length_ns)
        _, by_range = self.reported(f"{told['start']}..{told['end']}", thread)
        for column in ("tracked_ns", "run_ns", "runqueue_ns", "sleep_ns", "block_ns"):
            # The range is said in whole microseconds.
            self.assertLess(abs(by_range[column] - by_name[column]), MS, column)

        before = unix_now()
        following, _ = self.play("spin", 100)
        self.assertGreaterEqual(following.start_ns, before)
        self.assertLess(following.start_ns, unix_now())
        rows = following.db.execute("SELECT unix_ns - boot_ns AS offset FROM clock ORDER BY boot, boot_ns").fetchall()
        self.assertLess(abs(rows[-1]["offset"] - (unix_now() - boot_now())), 2 * MS, "the store knows of the step")

    def test_an_hour_back(self):
        self.check(-HOUR)

    def test_an_hour_on(self):
        self.check(HOUR)


class Suspend(ClockTest):
    LENGTH_MS = (SUSPENDED_SECONDS + 3) * 1000

    def suspend(self):
        """To memory. (The alarm of an emulated clock does not end a suspend to idle.)"""
        before = boot_now() - awake_now()
        pathlib.Path("/sys/power/mem_sleep").write_text("deep", encoding="ascii")
        WAKE_ALARM.write_text("0", encoding="ascii")
        WAKE_ALARM.write_text(f"+{SUSPENDED_SECONDS}", encoding="ascii")
        pathlib.Path("/sys/power/state").write_text("mem", encoding="ascii")
        self.suspended_ns = boot_now() - awake_now() - before

    def test_time_while_suspended(self):
        """The boot clock goes on. Who ran is frozen for so long, who slept has slept on; nobody ran."""
        recording, thread, known = self.spin(self.suspend)
        note(f"suspended for {self.suspended_ns / NS:.3f} s")
        # The clock that goes on meanwhile counts whole seconds.
        self.assertGreater(self.suspended_ns, (SUSPENDED_SECONDS - 2) * NS)
        waits = recording.waits(thread)
        note(str([(w.kind, w.op, w.count, w.total_ns) for w in waits]))
        frozen = self.only([w for w in waits if (w.kind, w.op) == ("signal", "frozen")], f"frozen: {waits}")
        self.assert_close(frozen.total_ns, self.suspended_ns, "frozen")
        self.assertLess(recording.times(thread)["healed_ns"], MS)

        # The main thread waits for the other one, and is asleep all the time.
        main = recording.thread(thread["pid"])
        wait = max(recording.waits(main), key=lambda w: w.total_ns)
        self.assertEqual(wait.kind, "futex")
        self.assert_close(wait.total_ns, known["elapsed_ns"], "asleep")

        told, line = self.reported(recording.name, thread)
        self.assertEqual(told["length_ns"], recording.length_ns)
        self.assert_close(line["tracked_ns"], recording.length_ns, "tracked")


if __name__ == "__main__":
    tap.main()
