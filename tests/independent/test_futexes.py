#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Waits and calls on futexes, by thread and by address, against a bpftrace script that watches the same threads."""

import collections
import os
import pathlib
import re
import subprocess
import time

import comparison
import tap
import test_mariadb
from prism import Workload
from server import need
from tools import BpfTrace

TOOL = "bpftrace futex.bt"
TIMEOUT = 60
ENDING = 0.5  # for which a server's thread may outlast its client


def tids(pid):
    try:
        return set(map(int, os.listdir(f"/proc/{pid}/task")))
    except FileNotFoundError:
        return set()


class FutexTest(comparison.ComparisonTest):
    calls = "full"

    def check(self, pid, play, lasting=lambda pid: set()):
        """Compares the threads that play() brings. Those of lasting() waited before anybody watched, or do so afterwards."""
        with BpfTrace(self.directory, "futex", pid) as trace:
            recording, answer = self.record([pid], play)
            left_out = lasting(pid)
        maps = trace.maps()
        undelivered = sum(recording.losses().get(f"kernel/missed-{event}", 0) for event in ("switch", "wake"))
        comparison.note(f"bpftrace's programs missed {trace.missed} events; prism counted {recording.losses()}")
        for name, table, kind in (("wait", "waits", "wait_ns"), ("call", "calls", "call_ns")):
            mine = self.rows(recording, name)
            for column, unit, theirs in (("count", "count", maps.get(table, {})), ("total_ns", "ns", maps.get(kind, {}))):
                for part, what in ((0, "thread"), (1, "address")):
                    sums = collections.defaultdict(lambda: [0, 0])
                    longest = collections.Counter()
                    for key, row in mine.items():
                        if key[0] not in left_out:
                            sums[key[part]][0] += row[column]
                            longest[key[part]] = max(longest[key[part]], row["max_ns"])
                    for key, value in theirs.items():
                        if key[0] not in left_out:
                            sums[key[part]][1] += value
                    self.compare(f"futex {name} {column}, by {what}", TOOL,
                                 {f"{what} {key:#x}": tuple(pair) for key, pair in sums.items()}, unit=unit,
                                 slack={f"{what} {key:#x}": longest[key] if unit == "ns" else 1 for key in sums}
                                 if undelivered or trace.missed else None)
        return recording, answer

    def rows(self, recording, table):
        """{(tid, address): sums}"""
        sums = collections.defaultdict(collections.Counter)
        threads = {t["id"]: t["tid"] for t in recording.db.execute("SELECT id, tid FROM thread")}
        resources = {r["id"]: r["ident"] for r in recording.db.execute("SELECT id, ident FROM resource WHERE kind = 'futex'")}
        for row in recording.rows(table):
            if row["resource_id"] in resources and row["op"] != "wake":
                address = int(re.search(r"([0-9a-f]+)$", resources[row["resource_id"]])[1], 16)
                entry = sums[threads[row["thread_id"]], address]
                for column in ("count", "total_ns"):
                    entry[column] += row[column]
                entry["max_ns"] = max(entry["max_ns"], row["max_ns"])
        return sums


class OwnThreads(FutexTest):
    load = "three threads and a mutex, among others on busy CPUs"

    def test_mutex(self):
        with Workload("mix", "busy", 2000, program=comparison.WORKLOADS / "mix", cwd=self.directory) as mix:

            def play():
                mix.go()
                return mix.answer()

            recording, truth = self.check(mix.pid, play)
            addresses = {address for _, address in self.rows(recording, "wait")}
            self.assertIn(truth["mutex"], addresses)


class Sysbench(FutexTest):
    load = "sysbench threads: 8 threads, 2 locks"

    def test_locks(self):
        # The shell becomes sysbench, so that its threads are born when all watch.
        command = [need("sysbench"), "threads", "--threads=8", "--thread-locks=2", "--events=500", "--time=0", "run"]
        with subprocess.Popen(["sh", "-c", 'read go; exec "$@"', "sh", *command], stdin=subprocess.PIPE,
                              stdout=subprocess.DEVNULL, cwd=self.directory) as process:
            try:

                def play():
                    process.stdin.write(b"\n")
                    process.stdin.close()
                    process.wait(TIMEOUT)

                self.check(process.pid, play)
                self.assertEqual(process.returncode, 0)
            finally:
                process.kill()


class MariadbServer(test_mariadb.MariadbServer):
    """A client's thread ends with it."""

    events = 1500

    def mariadbd(self):
        return [*super().mariadbd(), "--thread-cache-size=0"]

    def burst(self):
        command = [word for word in self.sysbench("run") if not word.startswith("--time")]
        self.must(*command, "--time=0", f"--events={self.events}")


class Mariadb(FutexTest):
    load = "mariadbd under sysbench oltp_read_write, 6 clients"

    def test_client_threads(self):
        with MariadbServer() as server:

            def play():
                server.burst()
                time.sleep(ENDING)

            self.check(server.pid, play, tids)


if __name__ == "__main__":
    tap.main()
