# SPDX-License-Identifier: LGPL-2.1-or-later
"""What processes have used, from the kernel's own accounts."""

import os
import time


def cpu_ns(pids):
    """CPU time of all threads of these processes so far. To the last switch or tick of each: the files that count in
    clock ticks know it to 10 ms only."""
    total = 0
    for pid in pids:
        try:
            for task in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as f:
                    total += int(f.read().split()[0])
        except OSError:
            pass  # it has ended
    return total


def threads(pids):
    """How many threads these processes have."""
    return sum(len(os.listdir(f"/proc/{pid}/task")) for pid in pids)


def resident_bytes(pid, field="VmRSS"):
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith(f"{field}:"))


def written_bytes(pid):
    """What it gave to the page cache to be written to a disk, journals and databases alike."""
    with open(f"/proc/{pid}/io", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("write_bytes:"))


def machine_ns():
    """Time that all CPUs were busy: what is left of the clock's by the time they were idle. In ticks of 10 ms."""
    with open("/proc/stat", encoding="ascii") as f:
        idle = sum(int(n) for n in f.readline().split()[4:6])
    return time.monotonic_ns() * os.cpu_count() - idle * (1_000_000_000 // os.sysconf("SC_CLK_TCK"))
