# SPDX-License-Identifier: LGPL-2.1-or-later
"""Other people's tools, run beside a recording, and what they print as numbers.

Each tool is started before the recording and ended after it, and the starter returns only when the tool has attached: what
is compared happens in between. Tools that read trace events see a tracefs of their own mount namespace, so that nothing is
mounted on the system. A tool that says that it lost something raises Lost: that run cannot be compared.
"""

import collections
import ctypes
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

from prism import environment

ATTACH_TIMEOUT = 60
END_TIMEOUT = 120

TRACEFS = "/sys/kernel/tracing"
WITH_TRACEFS = ("unshare", "--mount", "sh", "-c",
                f'grep -q " {TRACEFS} tracefs " /proc/self/mounts || mount -t tracefs tracefs {TRACEFS}; exec "$@"', "sh")


class Lost(AssertionError):
    """The other tool did not see everything, and says so."""


def need(program):
    path = shutil.which(program, path=os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"]))
    if not path:
        raise AssertionError(f"{program} is missing; tools/install-packages test installs it")
    return path


def run_tool(*command):
    """Its output."""
    done = subprocess.run([*WITH_TRACEFS, need(command[0]), *map(str, command[1:])], capture_output=True, check=False,
                          timeout=END_TIMEOUT, stdin=subprocess.DEVNULL, env=environment())
    if done.returncode != 0:
        raise AssertionError(f"{command[0]}: exit {done.returncode}: {done.stderr.decode(errors='replace')[-1000:]}")
    return done.stdout.decode(errors="replace")


def descriptors(pid, kind):
    """How many descriptors of an anonymous kind a process has."""
    count = 0
    for entry in os.scandir(f"/proc/{pid}/fd"):
        try:
            count += os.readlink(entry.path) == f"anon_inode:{kind}"
        except OSError:
            pass  # closed meanwhile
    return count


def program_figures(pid, name):
    """What the kernel says of each BPF program that a process has open."""
    for entry in os.scandir(f"/proc/{pid}/fdinfo"):
        found = re.search(rf"^{name}:\s*(\d+)$", pathlib.Path(entry.path).read_text("utf-8"), re.MULTILINE)
        if found:
            yield int(found[1])


class Tool:
    """`with Tool(...) as tool:` it has attached; after the block it has ended, and `out` and `err` are what it said."""

    def __init__(self, directory, name, command):
        self.name = name
        self.command = [*WITH_TRACEFS, need(command[0]), *map(str, command[1:])]
        self.paths = [pathlib.Path(directory, f"{name}.{stream}") for stream in ("out", "err")]
        self.environment = {}
        self.process = None
        self.out = self.err = ""

    def attached(self):
        raise NotImplementedError

    def end(self):
        """Asks it to end."""
        self.process.send_signal(signal.SIGINT)

    def __enter__(self):
        with open(self.paths[0], "wb") as out, open(self.paths[1], "wb") as err:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=out, stderr=err,
                                            env=environment(**self.environment), start_new_session=True)
        try:
            deadline = time.monotonic() + ATTACH_TIMEOUT
            while not self.attached():
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise AssertionError(f"{self.name} does not attach: {self.paths[1].read_text(errors='replace')[-1000:]}")
                time.sleep(0.02)
        except BaseException:
            self.kill()
            raise
        return self

    def kill(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(END_TIMEOUT)
        self.process.stdin.close()

    def __exit__(self, kind, value, trace):
        try:
            if self.process.poll() is None:
                self.end()
            self.process.wait(END_TIMEOUT)
        finally:
            self.kill()
        self.out, self.err = (path.read_text(encoding="utf-8", errors="replace") for path in self.paths)


class Companion(Tool):
    """A tool that starts a command of the user's once it has attached, and ends with it. The command is cat: it writes a
    word back, and ends at the end of its input."""

    WORD = "attached"

    def __init__(self, directory, name, command):
        super().__init__(directory, name, command)
        self.asked = False

    def attached(self):
        if not self.asked:
            self.process.stdin.write(f"{self.WORD}\n".encode())
            self.process.stdin.flush()
            self.asked = True
        return self.WORD in self.paths[0].read_text(encoding="utf-8", errors="replace")

    def end(self):
        self.process.stdin.close()


# ---- perf sched ----

# One time on the CPU. Times are CLOCK_MONOTONIC; wait_ns: off the CPU before it, of that delay_ns after the wake; state: the
# one in which the CPU was left at the end.
Slice = collections.namedtuple("Slice", "pid tid cpu out_ns wait_ns delay_ns run_ns state")

LINE = re.compile(r"\s*(\d+)\.(\d{6}) \[(\d+)\]\s+(.*?)\[(\d+)(?:/(\d+))?\]\s+(\d+)\.(\d{3})\s+(\d+)\.(\d{3})\s+(\d+)\.(\d{3})"
                  r"\s+(\S+)\s*$")

# tid: who leaves the CPU, or is woken; next: who gets the CPU; runnable: who leaves could have gone on.
Event = collections.namedtuple("Event", "ns cpu name tid next runnable")

EVENT = re.compile(r"\s*\[(\d+)\]\s+(\d+)\.(\d{9}):\s+sched:(sched_switch|sched_waking|sched_wakeup):\s+(.*)")
SWITCH = re.compile(r" prev_pid=(\d+) .*prev_state=(\S+) .* next_pid=(\d+) ")
WOKEN = re.compile(r" pid=(\d+) ")


def _ns(whole, thousandths):
    """Of a time printed in milliseconds, which cuts off what is below a microsecond: half of one, on average."""
    us = int(whole) * 1000 + int(thousandths)
    return us * 1000 + 500 if us else 0


class PerfSched(Companion):
    """perf sched record; timehist() afterwards."""

    def __init__(self, directory):
        self.data = pathlib.Path(directory, "perf.data")
        # sched_wakeup is for events() only: timehist takes sched_waking if it is there.
        super().__init__(directory, "perf-sched", ["perf", "sched", "record", "-k", "CLOCK_MONOTONIC", "-m", "64M", "-e",
                                                   "sched:sched_wakeup", "-o", self.data, "--", "cat"])

    def check_losses(self):
        stats = run_tool("perf", "report", "--stats", "-i", self.data)
        lost = re.search(r"LOST(?:_SAMPLES)? events:\s+(\d+)", stats)
        if lost or "lost" in self.err.lower():
            raise Lost(f"perf sched record lost events: {(lost or [self.err])[0]}")

    def timehist(self):
        """Slices in order of time."""
        self.check_losses()
        slices = []
        for line in run_tool("perf", "sched", "timehist", "--state", "-i", self.data).splitlines():
            match = LINE.match(line)
            if not match:
                continue
            seconds, us, cpu, _, tid, pid, *times, state = match.groups()
            wait, delay, run = (_ns(*times[i:i + 2]) for i in (0, 2, 4))
            slices.append(Slice(int(pid or tid), int(tid), int(cpu), (int(seconds) * 10**6 + int(us)) * 1000, wait, delay, run,
                                state))
        if not slices:
            raise AssertionError(f"perf sched timehist says nothing: {self.err[-500:]}")
        return slices

    def events(self):
        """The recorded switches and wakes themselves, in order of time."""
        found = []
        for line in run_tool("perf", "script", "--ns", "-F", "cpu,time,event,trace", "-i", self.data).splitlines():
            match = EVENT.match(line)
            if match:
                cpu, seconds, ns, name, rest = match.groups()
                switch = SWITCH.search(rest)
                pid = WOKEN.search(rest)
                if switch:
                    found.append(Event(int(seconds) * 10**9 + int(ns), int(cpu), name, int(switch[1]), int(switch[3]),
                                       switch[2].startswith("R")))
                elif pid:
                    found.append(Event(int(seconds) * 10**9 + int(ns), int(cpu), name, int(pid[1]), 0, False))
        return found


# ---- bpftrace ----


class BpfTrace(Companion):
    """A script of this directory; its arguments are numbers. It starts its command before it has attached all probes."""

    KEYS_MAX = 16384

    def __init__(self, directory, script, *arguments):
        path = pathlib.Path(__file__).parent / f"{script}.bt"
        super().__init__(directory, script, ["bpftrace", "-f", "json", "-c", need("cat"), path, *arguments])
        self.environment = {"BPFTRACE_MAP_KEYS_MAX": str(self.KEYS_MAX)}
        self.missed = 0
        # One for each probe, and one for each CPU to hear from it.
        self.descriptors = len(re.findall(r"^tracepoint:", path.read_text("utf-8"), re.MULTILINE)) + os.cpu_count()

    def attached(self):
        if not super().attached() or descriptors(self.process.pid, "[perf_event]") < self.descriptors:
            return False
        time.sleep(0.1)  # the last one is there; it is about to be switched on
        return True

    def end(self):
        """The kernel does not run its programs on a CPU that is in another one, or changes a map for somebody, and counts that."""
        self.missed = sum(program_figures(self.process.pid, "recursion_misses"))
        super().end()

    def maps(self):
        """{name without @: {key: number}}; a key of several parts is a tuple."""
        found = {}
        for line in self.out.splitlines():
            if not line.startswith("{"):
                continue
            said = json.loads(line)
            if said["type"] == "lost_events":
                raise Lost(f"bpftrace lost events: {line}")
            if said["type"] != "map":
                continue
            for name, values in said["data"].items():
                if not isinstance(values, dict):
                    values = {"": values}
                if len(values) >= self.KEYS_MAX:
                    raise Lost(f"bpftrace's map {name} is full")
                found[name.removeprefix("@")] = {_key(key): value for key, value in values.items()}
        if not found:
            raise AssertionError(f"bpftrace says nothing: {self.err[-500:]}")
        return found


def _key(text):
    parts = tuple(int(part) if part.lstrip("-").isdigit() else part for part in text.split(","))
    return parts if len(parts) > 1 else parts[0]


# ---- libbpf-tools offcputime ----

BPF_ENABLE_STATS = 32


class OffCpuTime(Tool):
    """libbpf-tools offcputime of one process. The kernel measures meanwhile for how long its programs run."""

    def __init__(self, directory, pid):
        super().__init__(directory, "offcputime", ["offcputime", "-p", pid])
        self.own_ns = 0
        self.statistics = -1

    def attached(self):
        return descriptors(self.process.pid, "bpf_link") > 0

    def __enter__(self):
        attributes = (ctypes.c_uint32 * 32)()
        self.statistics = ctypes.CDLL(None, use_errno=True).syscall(321, BPF_ENABLE_STATS, attributes, 4)
        if self.statistics < 0:
            raise OSError(ctypes.get_errno(), "BPF_ENABLE_STATS")
        return super().__enter__()

    def end(self):
        self.own_ns = sum(program_figures(self.process.pid, "run_time_ns"))
        os.close(self.statistics)
        super().end()

    def totals(self):
        """{tid: ns}: a stack, then `    -   comm (tid)`, then its microseconds."""
        sums = collections.Counter()
        for tid, us in re.findall(r"^\s+-\s+.* \((\d+)\)\n\s+(\d+)$", self.out, re.MULTILINE):
            sums[int(tid)] += int(us) * 1000
        if not sums:
            raise AssertionError(f"offcputime says nothing: {self.err[-500:]}")
        return sums


# ---- strace, perf trace ----

# `tid call(arguments) = result`, or the end of one that was interrupted by the output of another thread.
CALL = re.compile(r"(\d+)\s+(?:<\.\.\. (\w+) resumed>|(\w+)\().*\)\s+= (-?\d+|0x[0-9a-f]+|\?)")

Call = collections.namedtuple("Call", "tid name result")


class Strace(Tool):
    """strace -f -C: each call, and at the end the table of strace -c."""

    def __init__(self, directory, pid):
        self.target = pid
        self.log = pathlib.Path(directory, "strace.log")
        super().__init__(directory, "strace", ["strace", "-f", "-C", "-s", "0", "-o", self.log, "-p", pid])

    def attached(self):
        for task in os.scandir(f"/proc/{self.target}/task"):
            if re.search(r"^TracerPid:\s+0$", pathlib.Path(task.path, "status").read_text("utf-8"), re.MULTILINE):
                return False
        return True

    def calls(self):
        """Those that ended. A result that is no decimal number is 0; failures are negative."""
        found = []
        with open(self.log, encoding="utf-8", errors="replace") as log:
            for line in log:
                match = CALL.match(line)
                if match:
                    tid, resumed, name, result = match.groups()
                    number = int(result) if result.lstrip("-").isdigit() else 0
                    found.append(Call(int(tid), resumed or name, number))
        return found

    def table(self):
        """{call: (count, errors)} of strace -c."""
        text = self.log.read_text(encoding="utf-8", errors="replace").rpartition("% time")[2]
        rows = re.findall(r"^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:(\d+)\s+)?(\w+)$", text, re.MULTILINE)
        return {name: (int(count), int(errors or 0)) for count, errors, name in rows if name != "total"}


# ---- perf trace ----


class PerfTrace(Companion):
    """perf trace -s of the threads that a process has."""

    def __init__(self, directory, pid):
        super().__init__(directory, "perf-trace", ["perf", "trace", "-s", "-m", "16M", "-p", pid, "--", "cat"])

    def counts(self):
        """{(tid, call): (count, errors)}"""
        text = self.out + self.err
        if "LOST" in text:
            raise Lost("perf trace lost events")
        found, tid = {}, None
        for line in text.splitlines():
            head = re.match(r" \S.* \((\d+)\), \d+ events", line)
            row = re.match(r"   (\w+)\s+(\d+)\s+(\d+)\s+[\d.]+", line)
            if head:
                tid = int(head[1])
            elif row and tid:
                found[tid, row[1]] = (int(row[2]), int(row[3]))
        if not found:
            raise AssertionError(f"perf trace says nothing: {self.err[-500:]}")
        return found
