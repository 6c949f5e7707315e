# SPDX-License-Identifier: LGPL-2.1-or-later
"""Ways to watch a load: not at all, with prism, and with other tools as their users would attach them."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

import loads  # for the paths of the tests' modules
from prism import Prismd, environment
from usage import cpu_ns, resident_bytes, threads

# Tools that read tracepoints by name want tracefs where it usually is. Mounted for them alone, nothing of it stays.
WITH_TRACEFS = ("unshare", "--mount", "sh", "-c",
                'mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing; exec "$@"', "sh")
END_TIMEOUT = 60


class Cannot(Exception):
    """This way does not work here, and why."""


class Way:
    """`attach` it to a load, measure a window, `detach` it. The two are called even if what is between them fails."""

    title = ""
    settle = 0.7  # seconds from attach() to the window
    rest = 0.4  # seconds from detach() to the next window
    overhead = 0.0  # seconds that attach() and detach() take, for the estimate
    least = 0  # seconds that its window must have
    every = 1  # takes part in every so many rounds

    def attach(self, load):
        pass

    def cpu_ns(self):
        """CPU time of what watches."""
        return 0

    def detach(self):
        """What else is to be known about it, {name: figure}."""
        return {}


class Nobody(Way):
    """Compared with the windows around it as all others are: how much a figure is worth."""

    title = "nobody (A/A)"


class Prism(Way):
    overhead = 2.0

    def __init__(self, calls):
        self.calls = calls
        self.title = f"prism, calls {calls}"
        # They are counted for one second in ten: a window has one such second if it is ten long.
        self.least, self.every = (10, 2) if calls == "sampled" else (0, 1)
        self.prismd = None

    def attach(self, load):
        self.prismd = Prismd()
        self.prismd.start()
        self.prismd.must("track", "--pid", load.pid)
        self.prismd.must("record", "start", "bench", "--calls", self.calls)
        tracked, there = self.prismd.json("status")["Threads"], threads(load.targets())
        if tracked < there:
            raise Cannot(f"prism tracks {tracked} of {there} threads")

    def cpu_ns(self):
        return cpu_ns([self.prismd.pid])

    def detach(self):
        if not self.prismd:
            return {}
        figures = {}
        try:
            if self.prismd.alive():
                status = self.prismd.json("status")
                figures = {"resident": resident_bytes(self.prismd.pid), "maps": status["BpfMapBytes"],
                           "losses": status["Losses"]}
                self.prismd.must("record", "stop", "bench")
                self.prismd.stop()
        finally:
            self.prismd.kill()
            self.prismd.remove()
            self.prismd = None
        return figures


class Tool(Way):
    """A program that runs until it is interrupted and then says what it saw."""

    every = 3
    overhead = 1.0
    program = ""
    package = ""
    tracefs = False
    seen = None  # is in what it says if it has seen anything

    def __init__(self):
        self.process = self.directory = None

    def command(self, pids):
        raise NotImplementedError

    def attach(self, load):
        program = shutil.which(self.program, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")
        if not program:
            raise Cannot(f"{self.program} is not installed (package {self.package})")
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="prism-bench-", dir="/var/tmp"))
        command = [*(WITH_TRACEFS if self.tracefs else ()), program, *map(str, self.command(load.targets()))]
        with open(self.directory / "said", "wb") as said:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd=self.directory,
                                            env=environment(), start_new_session=True)

    def cpu_ns(self):
        if self.process.poll() is not None:
            raise Cannot(f"{self.program} ended with {self.process.returncode}: {self.said()}")
        return cpu_ns(loads.descendants(self.process.pid))

    def said(self):
        text = (self.directory / "said").read_text("utf-8", "backslashreplace")
        return " ".join(text.split())[-300:]

    def detach(self):
        if not self.process:
            return {}
        try:
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGINT)
                try:
                    self.process.wait(END_TIMEOUT)
                except subprocess.TimeoutExpired:
                    self.process.kill()
                    self.process.wait()
                    raise Cannot(f"{self.program} does not end when it is interrupted") from None
            if not self.seen.search((self.directory / "said").read_text("utf-8", "backslashreplace")):
                raise Cannot(f"{self.program} saw nothing: {self.said()}")
            return {}
        finally:
            shutil.rmtree(self.directory)
            self.process = self.directory = None


class Offcputime(Tool):
    """It takes one process; of a server of many it can watch one or the whole host."""

    title = "offcputime"
    program, package = "offcputime", "libbpf-tools"
    settle = 2.0
    seen = re.compile(r"^\s+-\s", re.MULTILINE)

    def command(self, pids):
        return ["-p", pids[0]] if len(pids) == 1 else []


class PerfTrace(Tool):
    title = "perf trace -s"
    program, package = "perf", "linux-perf"
    tracefs = True
    settle = 1.5
    seen = re.compile(r"Summary of events:.*\d+ events", re.DOTALL)

    def command(self, pids):
        return ["trace", "-s", "-p", ",".join(map(str, pids))]


class PerfSched(Tool):
    """Of the whole host: it knows no other way."""

    title = "perf sched record"
    program, package = "perf", "linux-perf"
    tracefs = True
    settle = 1.5
    rest = 1.0
    seen = re.compile(r"Captured and wrote")

    def command(self, pids):
        return ["sched", "record", "-o", self.directory / "data"]


class Strace(Tool):
    title = "strace -c -f"
    program, package = "strace", "strace"
    settle = 1.5
    rest = 1.0
    seen = re.compile(r"% time")

    def command(self, pids):
        return ["-c", "-f", "-p", ",".join(map(str, pids))]


class Bpftrace(Tool):
    """System calls by process and number."""

    title = "bpftrace, a count of system calls"
    program, package = "bpftrace", "bpftrace"
    tracefs = True
    overhead = 2.0
    settle = 3.0
    seen = re.compile(r"@calls\[")

    def command(self, pids):
        which = " || ".join(f"pid == {pid}" for pid in pids)
        return ["-e", f"tracepoint:raw_syscalls:sys_enter /{which}/ {{ @calls[pid, args->id] = count(); }}"]


WAYS = {"nobody": Nobody, "none": lambda: Prism("none"), "sampled": lambda: Prism("sampled"), "full": lambda: Prism("full"),
        "offcputime": Offcputime, "perf-trace": PerfTrace, "perf-sched": PerfSched, "strace": Strace, "bpftrace": Bpftrace}
