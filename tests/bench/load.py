# SPDX-License-Identifier: LGPL-2.1-or-later
"""Loads for the benchmarks: real servers from the distribution, driven over loopback."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))


def cpu_seconds(pid):
    """User and system time of a process and its threads."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def need(program):
    found = shutil.which(program)
    if not found:
        sys.exit(f"{program} is missing; tools/install-packages test installs it")
    return found


class Redis:
    """redis-server under redis-benchmark: 50 clients, GET, no pipelining, over TCP on loopback. One thread, CPU-bound."""

    name = "redis-benchmark get, 50 clients"
    port = "16379"

    def __enter__(self):
        self.count = 20000
        self.directory = tempfile.mkdtemp(prefix="prism-bench-")
        self.server = subprocess.Popen(
            [need("redis-server"), "--port", self.port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir",
             self.directory], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while subprocess.run([need("redis-cli"), "-p", self.port, "ping"], capture_output=True, check=False).returncode:
            time.sleep(0.05)
        return self

    def __exit__(self, *exception):
        self.server.send_signal(signal.SIGTERM)
        self.server.wait()
        shutil.rmtree(self.directory)

    def track(self):
        return ["--pid", str(self.server.pid)]

    def run(self, seconds):
        """(operations per second, CPU seconds of the target per operation)"""
        count = self.count
        before, begin = cpu_seconds(self.server.pid), time.monotonic()
        text = subprocess.run([need("redis-benchmark"), "-p", self.port, "-t", "get", "-c", "50", "-n", str(count), "--csv"],
                              capture_output=True, text=True, check=True).stdout
        took = time.monotonic() - begin
        used = cpu_seconds(self.server.pid) - before
        self.count = max(1000, int(count * seconds / took))  # so that the next window is of the right length
        return float(re.search(r'"GET","([\d.]+)"', text)[1]), used / count


class SysbenchThreads:
    """sysbench threads: eight threads that fight for four mutexes and yield. All switches and futexes."""

    name = "sysbench threads, 8 threads, 4 locks"

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass

    def track(self):
        return ["--command", "sysbench"]

    def run(self, seconds):
        usage = os.times()
        text = subprocess.run([need("sysbench"), "threads", "--threads=8", "--thread-locks=4", "--thread-yields=100",
                               f"--time={seconds:.0f}", "run"], capture_output=True, text=True, check=True).stdout
        after = os.times()
        events = int(re.search(r"total number of events:\s+(\d+)", text)[1])
        took = float(re.search(r"total time:\s+([\d.]+)s", text)[1])
        used = after.children_user + after.children_system - usage.children_user - usage.children_system
        return events / took, used / events


LOADS = {"redis": Redis, "sysbench": SysbenchThreads}
