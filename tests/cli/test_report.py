#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What `prismctl report` says of a database whose rows are known, to people and in JSON, and that the manual page knows
all of its keys."""

import fcntl
import json
import os
import pathlib
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

import tap
from database import SOURCE, create, insert
from prism import PRISMCTL, environment, run

SECOND, MS = 10 ** 9, 10 ** 6
START = 1_795_000_000 * SECOND
PATH = "/var/lib/postgresql/15/main/base/16384/" + "very-" * 20 + "long/2619"
READER, WRITER = 11, 12
DISK = 253 << 20 | 7

# Members of rows: what is new may come, what is here must stay.
KEYS = {
    "range": "name start end start_ns end_ns length_ns running",
    "machines": "machine_id hostname kernel cpus",
    "losses": "part reason meaning count",
    "coverage": "part coverage_ns recorded_ns estimate",
    "processes": "machine_id pid host_pid comm cmdline unit target threads cpu_share tracked_ns run_ns runqueue_ns sleep_ns "
                 "block_ns iowait_ns throttled_ns healed_ns switches preemptions",
    "threads": "pid tid host_tid comm run_share runqueue_share sleep_share block_share tracked_ns run_ns runqueue_ns sleep_ns "
               "block_ns iowait_ns throttled_ns healed_ns switches preemptions waited_ns ran_instead_ns top_wait top_wait_share",
    "resources": "pid kind name ident threads count total_ns mean_ns max_ns ended_by",
    "waits": "pid tid comm kind op name ident count total_ns share mean_ns max_ns histogram ended_by",
    "mux_waits": "pid tid comm kind op name ident watched_kind watched_name watched_ident count total_ns share",
    "calls": "pid tid comm kind op name ident count count_per_second errors bytes bytes_per_second total_ns mean_ns max_ns "
             "histogram estimate raw",
    "ran_instead": "pid tid comm runqueue_ns share throttled_ns ran unnamed_ns unnamed_share",
    "disks": "device device_name pid comm is_kernel cgroup requests requests_share read_bytes written_bytes discarded_bytes sectors "
             "sectors_share total_ns time_share mean_ns max_ns histogram",
    "sockets": "kind name ident local remote bytes_in bytes_out retransmits mean_rtt_ns max_rtt_ns max_send_queue_bytes "
               "max_receive_queue_bytes",
    "cgroups": "cgroup usage_ns cpus throttled_ns throttled_share throttled_periods max_memory_bytes memory_events",
}


def fill(db, calls):
    """Ten seconds. reader: half of each in epoll_wait, which the socket ended for 4/5, and 0.3 s in fsync. In the last
    second calls were counted, with calls = "sampled"; in all of them with "full"."""
    insert(db, "machine", ("id", "hostname", "kernel", "architecture", "cpus"), [(1, "host", "6.1", "x86_64", 4)])
    insert(db, "boot", ("id", "machine_id", "boot_id"), [(1, 1, "0" * 32)])
    insert(db, "process", ("id", "pid", "host_pid", "comm", "ppid", "found_by"),
           [(1, 100, 5100, "server", 1, "target"), (2, 200, 5200, "dd", 1, "observed"),
            (3, 300, 300, "kworker/u8:0", 2, "observed")], machine_id=1, boot=1)
    insert(db, "thread", ("id", "tid", "host_tid", "comm"), [(READER, 101, 5101, "reader"), (WRITER, 102, 5102, "writer")],
           process_id=1)
    insert(db, "resource", ("id", "kind", "ident", "name"),
           [(1, "epoll", "1:5", "eventpoll:3"), (2, "inet", "inode:77", "tcp 127.0.0.1:6379"), (3, "file", "8:1:9", PATH),
            (4, "timer", "clock_nanosleep", None)], machine_id=1, boot=1)
    insert(db, "socket", ("resource_id", "local_addr", "local_port", "remote_addr", "remote_port"),
           [(2, "127.0.0.1", 40112, "127.0.0.1", 6379)])
    insert(db, "recording", ("id", "name", "start_ns", "end_ns", "options"),
           [(1, "known", START, START + 10 * SECOND, json.dumps({"calls": calls}))], state="finished")
    insert(db, "loss", ("ts_ns", "part", "reason", "count"), [(START + SECOND, "kernel", "call-map-full", 3)])

    for second in range(1, 11):
        at = {"ts_ns": START + second * SECOND, "dt_ns": SECOND}
        insert(db, "thread_time", ("thread_id", "run_ns", "runqueue_ns", "sleep_ns", "block_ns", "throttled_ns"),
               [(READER, 100 * MS, 100 * MS, 500 * MS, 300 * MS, 50 * MS), (WRITER, 0, 0, SECOND, 0, 0)], **at)
        insert(db, "wait", ("thread_id", "resource_id", "op", "count", "total_ns", "max_ns"),
               [(READER, 1, "epoll_wait", 10, 500 * MS, 60 * MS), (READER, 3, "fsync", 3, 300 * MS, 200 * MS),
                (WRITER, 4, "clock_nanosleep", 1, SECOND, SECOND)], **at)
        insert(db, "mux_wait", ("thread_id", "resource_id", "watched_id", "op", "count", "total_ns"),
               [(READER, 1, 2, "epoll_wait", 8, 400 * MS), (READER, 1, 0, "epoll_wait", 2, 100 * MS)], **at)
        insert(db, "ran_instead", ("thread_id", "process_id", "total_ns"), [(READER, 2, 100 * MS)], **at)
        insert(db, "disk", ("process_id", "thread_id", "cgroup", "op", "requests", "sectors", "total_ns", "max_ns"),
               [(1, READER, "/a", "write", 1, 100, 10 * MS, 10 * MS), (2, 0, "/b", "read", 2, 700, 70 * MS, 40 * MS),
                (3, 0, "/a", "write", 1, 200, 20 * MS, 20 * MS)], device=DISK, **at)
        insert(db, "socket_sample", ("resource_id", "bytes_in", "bytes_out", "retransmits", "srtt_ns", "send_queue",
                                     "receive_queue"), [(2, 1000, 500, 1, second * MS, 0, 10 * second)], **at)
        insert(db, "cgroup_time", ("cgroup", "usage_ns", "throttled_ns", "throttled_periods", "memory_bytes"),
               [("/a", 100 * MS, 200 * MS, 2, 1 << 20), ("/b", 0, 0, 0, 4096)], **at)
        if calls == "full" or (calls == "sampled" and second == 10):
            insert(db, "coverage", ("part",), [("calls",)], **at)
            insert(db, "call", ("thread_id", "resource_id", "op", "count", "errors", "bytes", "total_ns", "max_ns", "hist2"),
                   [(READER, 2, "receive", 40, 2, 4096, 20 * MS, 5 * MS, 40)], **at)


class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="prism-test-")
        cls.addClassCleanup(directory.cleanup)
        cls.databases = {}
        for calls in ("none", "sampled", "full"):
            path = f"{directory.name}/{calls}.db"
            db = create(path)
            db.execute("BEGIN")
            fill(db, calls)
            db.execute("COMMIT")
            db.close()
            cls.databases[calls] = path

    def prismctl(self, calls, *arguments):
        result = run(PRISMCTL, "--db", self.databases[calls], *arguments, env=environment())
        self.assertEqual((result.code, result.err), (0, ""))
        return result.out

    def report(self, calls, *arguments):
        return json.loads(self.prismctl(calls, "--json", "report", "known", *arguments))

    def test_keys(self):
        report = self.report("sampled")
        self.assertEqual(set(report), {*KEYS, "notes", "healed_ns", "unbalanced_threads"})
        manual = (SOURCE / "docs/man/prismctl.1.scd").read_text("utf-8")
        for section, keys in KEYS.items():
            rows = report[section] if isinstance(report[section], list) else [report[section]]
            self.assertTrue(rows, f"{section} has a row")
            for row in rows:
                self.assertEqual(set(row), set(keys.split()), section)
        for key in report:
            self.assertRegex(manual, rf"\b_{key}_\b", f"the manual says what {key} is")

    def test_sampled_calls_are_estimates(self):
        report = self.report("sampled")
        self.assertEqual(report["coverage"],
                         [{"part": "calls", "coverage_ns": SECOND, "recorded_ns": 10 * SECOND, "estimate": True}])
        call, = report["calls"]
        self.assertEqual((call["count"], call["errors"], call["bytes"], call["total_ns"]), (400, 20, 40960, 200 * MS))
        self.assertEqual(call["raw"], {"count": 40, "errors": 2, "bytes": 4096, "total_ns": 20 * MS})
        self.assertEqual((call["count_per_second"], call["bytes_per_second"]), (40, 4096))
        self.assertEqual((call["mean_ns"], call["max_ns"]), (MS // 2, 5 * MS))
        self.assertIs(call["estimate"], True)
        self.assertTrue(any("estimates" in note for note in report["notes"]), report["notes"])
        text = self.prismctl("sampled", "report", "known")
        self.assertIn("Calls, most time first (estimated from 1.000s of 10.0s)", text)

    def test_full_calls_are_counts(self):
        report = self.report("full")
        call, = report["calls"]
        self.assertIs(call["estimate"], False)
        self.assertEqual(call["count"], 400)
        self.assertEqual(call["raw"]["count"], 400)
        self.assertEqual(call["count_per_second"], 40)
        self.assertFalse(any("calls" in note for note in report["notes"]), report["notes"])
        self.assertNotIn("estimate", self.prismctl("full", "report", "known"))

    def test_no_calls(self):
        report = self.report("none")
        self.assertEqual(report["calls"], [])
        self.assertEqual(report["coverage"][0]["coverage_ns"], 0)
        self.assertIn("calls: not recorded", report["notes"])
        text = self.prismctl("none", "report", "known")
        self.assertIn("calls: not recorded", text)
        self.assertNotIn("Calls, most time first", text)

    def test_waits_in_words(self):
        threads = {row["comm"]: row for row in self.report("none")["threads"]}
        self.assertEqual(threads["reader"]["top_wait"], "epoll_wait eventpoll:3 (tcp 127.0.0.1:6379 80.0%)")
        self.assertEqual(threads["writer"]["top_wait"], "clock_nanosleep")
        parts = self.report("none")["mux_waits"]
        self.assertEqual([(row["watched_name"], row["total_ns"], row["share"]) for row in parts],
                         [("tcp 127.0.0.1:6379", 4 * SECOND, 0.8), (None, SECOND, 0.2)])

    def test_shares_of_a_disk(self):
        disks = self.report("none")["disks"]
        self.assertEqual([(row["comm"], row["sectors_share"], row["requests_share"], row["time_share"], row["is_kernel"],
                           row["cgroup"]) for row in disks],
                         [("dd", 0.7, 0.5, 0.7, False, None), ("kworker/u8:0", 0.2, 0.25, 0.2, True, "/a"),
                          ("server", 0.1, 0.25, 0.1, False, None)])
        self.assertEqual({(row["device"], row["device_name"]) for row in disks}, {("253:7", None)})
        self.assertEqual((disks[0]["read_bytes"], disks[0]["written_bytes"], disks[0]["max_ns"]), (7000 * 512, 0, 40 * MS))

    def test_sockets_and_limits(self):
        report = self.report("none")
        socket, = report["sockets"]
        self.assertEqual((socket["bytes_in"], socket["bytes_out"], socket["retransmits"]), (10000, 5000, 10))
        self.assertEqual((socket["mean_rtt_ns"], socket["max_rtt_ns"]), (5_500_000, 10 * MS))
        self.assertEqual((socket["local"], socket["max_receive_queue_bytes"]), ("127.0.0.1:40112", 100))
        limited, quiet = report["cgroups"]
        self.assertEqual((limited["cgroup"], limited["throttled_ns"], limited["throttled_share"], limited["cpus"]),
                         ("/a", 2 * SECOND, 0.2, 0.1))
        self.assertIsNone(limited["memory_events"])
        text = self.prismctl("none", "report", "known").split("CPU limits and memory")[1]
        self.assertIn("/a", text)
        self.assertNotIn(quiet["cgroup"], text)

    def test_losses_are_explained(self):
        loss, = self.report("none")["losses"]
        self.assertEqual((loss["reason"], loss["count"]), ("call-map-full", 3))
        self.assertIn("calls that were not counted", loss["meaning"])

    def test_long_paths(self):
        """A terminal shows both ends of a path; a file gets all of it, and so does JSON."""
        self.assertIn(PATH, self.prismctl("none", "report", "known"))
        self.assertIn(PATH, {row["name"] for row in self.report("none")["waits"]})

        terminal, side = pty.openpty()
        self.addCleanup(os.close, terminal)
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        process = subprocess.Popen([PRISMCTL, "--db", self.databases["none"], "report", "known"], stdout=side,
                                   env=environment())
        os.close(side)
        out = b""
        while True:
            try:
                out += os.read(terminal, 65536)
            except OSError:  # the other side is closed
                break
        self.assertEqual(process.wait(), 0)
        self.assertNotIn(PATH, out.decode())
        self.assertRegex(out.decode(), r"/var/lib\S*\.\.\.\S*long/2619")

    def test_record_show(self):
        shown = json.loads(self.prismctl("sampled", "--json", "record", "show", "known"))
        self.assertEqual((shown["calls"], shown["calls_coverage_ns"], shown["calls_estimate"]), ("sampled", SECOND, True))
        self.assertRegex(self.prismctl("sampled", "record", "show", "known"),
                         re.compile(r"^calls: recorded for 1\.000s of 10\.0s; their numbers are estimates$", re.MULTILINE))
        self.assertIn("calls: not recorded", self.prismctl("none", "record", "show", "known"))


if __name__ == "__main__":
    tap.main()
