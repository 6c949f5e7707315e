# SPDX-License-Identifier: LGPL-2.1-or-later
"""Loads for the benchmarks: real servers from the distribution, each under a generator that never stops.

Server and generator run on all the while and what is measured is a window of that, so that a window begins with no
start-up, and the tools attach to processes that are there. The server has CPU 0 and the generator CPU 1: the server is what
the throughput depends on, and the scheduler's choices do not differ from one window to the next.
"""

import collections
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

SOURCE = pathlib.Path(__file__).resolve().parent.parent
sys.path[1:1] = [str(SOURCE / "lib"), str(SOURCE / "servers")]

from prism import environment
from server import Server, descendants, free_port, need
from test_nginx import CONFIGURATION as NGINX
from test_postgresql import PostgresServer

from programs import compiled
from usage import cpu_ns, machine_ns

NS = 1_000_000_000

# Where data lies whose disk is not what is measured: a file system in memory.
MEMORY = "/dev/shm"

# rate: operations a second. cpu_ns: the target's CPU time for one of them. busy: CPUs that the target kept busy.
# others: CPUs that were busy with neither the target nor its generator.
Window = collections.namedtuple("Window", "seconds rate cpu_ns busy others")
# What was there at one moment: when, operations (or a rate of them), CPU time of the target, and of all but the two.
Mark = collections.namedtuple("Mark", "ns operations target others")


class Load(Server):
    """`with Redis() as load:` is a server under load; load.window(2) measures two seconds of it."""

    title = ""
    setup = 1  # seconds that it takes to start
    warm_up = 3  # seconds under load before anything is measured
    pinned = True

    def targets(self):
        """The processes that are measured and watched."""
        return descendants(self.pid)

    def operations(self):
        """How many the server has done so far, by its own count."""
        raise NotImplementedError

    def start(self):
        super().start()
        self.load()
        time.sleep(self.warm_up)
        self.check_alive()
        return self

    def placed(self, name, command):
        return ["taskset", "--cpu-list", "0" if name == "server" else "1", *command] if self.pinned else command

    def spawn(self, name, command):
        return super().spawn(name, self.placed(name, command))

    def mark(self, operations=None):
        now = time.monotonic_ns()
        target = cpu_ns(self.targets())
        others = machine_ns() - target - cpu_ns(process.pid for name, process in self.processes if name == "load")
        return Mark(now, self.operations() if operations is None else operations, target, others)

    def between(self, first, last, operations):
        took, used = last.ns - first.ns, last.target - first.target
        return Window(took / NS, operations * NS / took, used / operations, used / took, (last.others - first.others) / took)

    def window(self, seconds):
        first = self.mark()
        time.sleep(seconds)
        last = self.mark()
        self.check_alive()
        return self.between(first, last, last.operations - first.operations)


class Asked(Load):
    """A server that counts, asked over a connection of the benchmark's own."""

    address = None  # of the server
    question = b""
    pattern = None  # finds a number of operations in the answer; several add up
    last = b""  # is in the end of the answer
    connection = None

    def operations(self):
        if not self.connection:
            self.connection = socket.create_connection(self.address, 10)
        self.connection.sendall(self.question)
        answer = b""
        while not self.complete(answer):
            data = self.connection.recv(65536)
            if not data:
                raise AssertionError(f"the server closed the connection after {answer[-200:]}")
            answer += data
        return sum(map(int, self.pattern.findall(answer)))

    def complete(self, answer):
        return answer.endswith(self.last) and self.pattern.search(answer)

    def stop(self):
        if self.connection:
            self.connection.close()
            self.connection = None
        super().stop()


class Reporting(Load):
    """A generator that says once a second what was done in it; a window begins and ends at such a report."""

    reporter = "load"  # which of the processes says so
    pattern = None  # finds operations a second in a report

    def __init__(self):
        super().__init__()
        self.reports = []
        self.reported = threading.Condition()

    def spawn(self, name, command):
        if name != self.reporter:
            return super().spawn(name, command)
        process = subprocess.Popen([str(a) for a in self.placed(name, command)], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=self.directory, text=True,
                                   env=environment(), start_new_session=True, **self.options())
        self.processes.append((name, process))
        threading.Thread(target=self.listen, args=(process,), daemon=True).start()
        return process

    def listen(self, process):
        # A report is to be stamped when it is written: this thread goes first, for the microseconds that it needs.
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), -10)
        for line in process.stdout:
            rate = self.pattern.search(line)
            if rate:
                with self.reported:
                    self.reports.append(self.mark(float(rate[1])))
                    self.reported.notify_all()

    def window(self, seconds):
        with self.reported:
            first = len(self.reports)
            last = first + max(1, round(seconds))
            if not self.reported.wait_for(lambda: len(self.reports) > last, timeout=seconds + 10):
                self.check_alive()
                raise AssertionError(f"{self.reporter} does not report")
            found = self.reports[first:last + 1]
        operations = sum(after.operations * (after.ns - before.ns) / NS for before, after in zip(found, found[1:]))
        return self.between(found[0], found[-1], operations)


class Redis(Asked):
    title = "redis-benchmark get, 50 clients"
    question = b"INFO stats\r\n"
    pattern = re.compile(rb"total_commands_processed:(\d+)\r")
    last = b"\r\n"

    def prepare(self):
        self.address = ("127.0.0.1", free_port())

    def command(self):
        return [need("redis-server"), "--port", self.address[1], "--bind", self.address[0], "--save", "", "--appendonly", "no",
                "--dir", self.directory]

    def answers(self):
        return self.run_quietly(need("redis-cli"), "-p", self.address[1], "ping") == 0

    def load_command(self):
        return [need("redis-benchmark"), "-p", self.address[1], "-t", "get", "-c", 50, "-n", 2_000_000_000, "-q"]


class RedisSaturated(Redis):
    """redis-benchmark needs more CPU for a question than redis for its answer, and how many questions an idle redis finds at
    once changes its CPU time by a fifth: this one is saturated."""

    title = "redis get under a generator that saturates it, 50 connections"

    def load_command(self):
        return [compiled("asker", self.directory), self.address[1], 50, len("$-1\r\n"), "GET key:000000000000"]


class Memcached(Asked):
    title = "memcached get of 100 bytes, 50 connections"
    question = b"stats\r\n"
    pattern = re.compile(rb"STAT cmd_get (\d+)\r")
    last = b"END\r\n"
    user = "nobody"
    key, value = "key", b"x" * 100

    def prepare(self):
        self.address = ("127.0.0.1", free_port())

    def command(self):
        # One worker, since it has one CPU.
        return [need("memcached"), "-l", self.address[0], "-p", self.address[1], "-U", 0, "-t", 1, "-m", 64]

    def answers(self):
        try:
            socket.create_connection(self.address, 1).close()
            return True
        except OSError:
            return False

    def fill(self):
        with socket.create_connection(self.address, 10) as client:
            client.sendall(f"set {self.key} 0 0 {len(self.value)}\r\n".encode() + self.value + b"\r\n")
            if client.recv(100) != b"STORED\r\n":
                raise AssertionError("memcached does not store")

    def load_command(self):
        answer = f"VALUE {self.key} 0 {len(self.value)}\r\n".encode() + self.value + b"\r\nEND\r\n"
        return [compiled("asker", self.directory), self.address[1], 50, len(answer), f"get {self.key}"]


class Nginx(Asked):
    title = "nginx under wrk, file of 1 kB, 32 connections"
    question = b"GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n"
    pattern = re.compile(rb"requests\n \d+ \d+ (\d+)")
    last = b" \n"

    def prepare(self):
        port = free_port()
        self.address = ("127.0.0.1", port)
        self.directory.chmod(0o755)
        files = self.directory / "files"
        files.mkdir()
        (files / "index.html").write_bytes(b"x" * 1000)
        text = NGINX.format(directory=self.directory, port=port, workers=1)
        text = text.replace(f"access_log {self.directory}/access.log;", "access_log off;")
        text = text.replace("server {", "server {\n                location = /status { stub_status; }", 1)
        (self.directory / "nginx.conf").write_text(text, "utf-8")

    def command(self):
        return [need("nginx"), "-p", self.directory, "-c", self.directory / "nginx.conf", "-e", self.directory / "error.log"]

    def answers(self):
        return (self.directory / "pid").exists() and len(descendants(self.pid)) >= 2

    def load_command(self):
        return [need("wrk"), "-t", 1, "-c", 32, "-d", "10h", f"http://127.0.0.1:{self.address[1]}/index.html"]


class Pgbench(Reporting, PostgresServer):
    """Data in memory: nothing waits for a disk, the CPU is what is short. No vacuum and no checkpoint in the minutes that
    it runs, since either would make one window unlike the next. It warms up until each backend has mapped all buffers."""

    setup = 6
    warm_up = 15
    pattern = re.compile(r"^progress: .* ([\d.]+) tps")
    scale = 8
    clients = 8
    script = ""
    data = None

    def prepare(self):
        self.data = pathlib.Path(tempfile.mkdtemp(prefix="prism-bench-", dir=MEMORY))
        shutil.chown(self.data, self.user, self.group())
        (self.directory / "data").symlink_to(self.data)
        super().prepare()

    def command(self):
        settings = ("autovacuum=off", "checkpoint_timeout=1d", "max_wal_size=16GB", "shared_buffers=256MB")
        return [*super().command(), *(word for setting in settings for word in ("-c", setting))]

    def fill(self):
        self.must(self.tool("pgbench"), "-i", "-q", "-s", self.scale, "-h", self.directory, "postgres")

    def load_command(self):
        return [self.tool("pgbench"), "-n", "-b", self.script, "-c", self.clients, "-j", 1, "-T", 36_000, "-P", 1, "-h",
                self.directory, "postgres"]

    def stop(self):
        super().stop()
        if self.data:
            shutil.rmtree(self.data, ignore_errors=True)


class PgbenchSelect(Pgbench):
    title = "pgbench select-only, 8 clients"
    scale = 2
    script = "select-only"


class PgbenchTpcb(Pgbench):
    title = "pgbench TPC-B-like, 8 clients"
    script = "tpcb-like"


class Sysbench(Reporting):
    """No server: all switches and futexes, on both CPUs."""

    title = "sysbench threads, 8 threads, 4 locks"
    pinned = False
    reporter = "server"
    pattern = re.compile(r"eps: ([\d.]+)")

    def command(self):
        return [need("sysbench"), "threads", "--threads=8", "--thread-locks=4", "--thread-yields=100", "--time=36000",
                "--report-interval=1", "run"]

    def answers(self):
        return True

    def load_command(self):
        return None


LOADS = {"redis": Redis, "redis-saturated": RedisSaturated, "pgbench-select": PgbenchSelect, "pgbench-tpcb": PgbenchTpcb,
         "nginx": Nginx, "memcached": Memcached, "sysbench": Sysbench}
