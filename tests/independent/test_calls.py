#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""System calls: how many of each, and the bytes that they moved, against strace and perf trace on the same run.

That a traced program is slow is of no matter: all three count the same calls.
"""

import collections
import contextlib
import os
import pathlib
import signal
import subprocess
import time

import comparison
import tap
from prism import children
from server import need
from test_redis import RedisServer
from tools import PerfTrace, Strace

REQUESTS = 4000
CLIENTS = 8
TIMEOUT = 120
PATIENCE = 30

# Words for system calls, as prism has them, where a call and its word differ. On a socket read is receive and write is send:
# other tools do not know what a descriptor is, so both are one here.
WORDS = {"pread64": "read", "readv": "read", "preadv": "read", "recvfrom": "read", "recvmsg": "read", "receive": "read",
         "pwrite64": "write", "writev": "write", "pwritev": "write", "sendto": "write", "sendmsg": "write",
         "send": "write", "openat": "open", "creat": "open", "accept4": "accept", "fstat": "stat", "newfstatat": "stat",
         "epoll_pwait": "epoll_wait", "getdents64": "getdents", "ppoll": "poll", "pselect6": "select", "wait": "futex",
         "wait_bitset": "futex", "wake": "futex", "unlinkat": "unlink", "ftruncate": "truncate"}

# Calls on objects and paths. Those that are about nothing (getpid, brk, clock_nanosleep ...) prism does not count.
COMPARED = {"read", "write", "open", "close", "accept", "epoll_wait", "epoll_ctl", "fsync", "fdatasync", "futex", "getdents",
            "lseek", "poll", "setsockopt", "getsockopt", "sendfile", "fcntl", "flock", "ioctl", "unlink", "truncate",
            "fadvise64", "copy_file_range", "connect", "shutdown", "stat", "access", "readlink", "getpeername"}

def stop(pid):
    """Nothing of a process runs after this, until it is sent SIGCONT."""
    os.kill(pid, signal.SIGSTOP)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        states = [pathlib.Path(task.path, "stat").read_text("utf-8").rpartition(")")[2].split()[0]
                  for task in os.scandir(f"/proc/{pid}/task")]
        if set(states) <= {"T", "t"}:
            return
        time.sleep(0.05)
    raise AssertionError(f"process {pid} does not stop: {states}")


def word(name):
    return WORDS.get(name, name)


class CallsTest(comparison.ComparisonTest):
    calls = "full"

    def check(self, watchers, pid, play, track=()):
        """watchers: {name of a tool: it}. The process is stopped when they attach and when they end, so that all see the same
        calls; play() sends SIGCONT and stop()s it again."""
        stop(pid)
        with contextlib.ExitStack() as stack:
            for watcher in watchers.values():
                stack.enter_context(watcher)
            recording, _ = self.record([pid], play, track)
        os.kill(pid, signal.SIGCONT)
        comparison.note(f"prism counted {recording.losses()}")
        return recording

    def mine(self, recording, column):
        """{(tid, word): sum}"""
        sums = collections.Counter()
        threads = {t["id"]: t["tid"] for t in recording.db.execute("SELECT id, tid FROM thread")}
        for row in recording.rows("call"):
            sums[threads[row["thread_id"]], word(row["op"])] += row[column]
        return sums

    def pairs(self, mine, theirs, key):
        """{what key() makes of (tid, word): (prism's, the other's)}"""
        sums = collections.defaultdict(lambda: [0, 0])
        for which, counted in enumerate((mine, theirs)):
            for (tid, name), value in counted.items():
                if word(name) in COMPARED:
                    sums[key(tid, word(name))][which] += value
        return {name: tuple(pair) for name, pair in sums.items()}

    def compare_counts(self, recording, tool, theirs, by_thread=True):
        mine = self.mine(recording, "count")
        self.compare("calls, by call", tool, self.pairs(mine, theirs, lambda tid, name: name), unit="count")
        if by_thread:
            self.compare("calls, by thread and call", tool,
                         self.pairs(mine, theirs, lambda tid, name: f"{name} of {tid}"), unit="count")

    def compare_strace(self, recording, strace):
        self.compare_counts(recording, "strace -c -f", {(0, name): count for name, (count, _) in strace.table().items()}, False)
        counts, moved = collections.Counter(), collections.Counter()
        for call in strace.calls():
            counts[call.tid, call.name] += 1
            if call.result > 0 and word(call.name) in ("read", "write"):
                moved[call.tid, call.name] += call.result
        self.compare_counts(recording, "strace -f", counts)
        mine = {key: value for key, value in self.mine(recording, "bytes").items() if key[1] in ("read", "write")}
        self.compare("bytes read and written, by thread", "strace -f",
                     self.pairs(mine, moved, lambda tid, name: f"{name} of {tid}"), unit="bytes")


class Redis(CallsTest):
    load = f"redis, {REQUESTS} SET by {CLIENTS} clients"

    def test_calls_of_a_server(self):
        with RedisServer() as server:

            def play():
                os.kill(server.pid, signal.SIGCONT)
                server.must(need("redis-benchmark"), "-p", server.port, "-t", "set", "-c", CLIENTS, "-n", REQUESTS, "-q")
                stop(server.pid)

            watchers = {"strace": Strace(self.directory, server.pid), "perf trace": PerfTrace(self.directory, server.pid)}
            recording = self.check(watchers, server.pid, play)
        self.compare_strace(recording, watchers["strace"])
        counts = {key: count for key, (count, _) in watchers["perf trace"].counts().items()}
        self.compare_counts(recording, "perf trace -s", counts)


SCRIPT = """
read go
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        dd if=/dev/zero of=file-$i bs=4096 count=100 conv=fsync 2>/dev/null
        cat file-$i file-$i | wc -c >count-$i
        tar cf archive-$i file-$i count-$i
        rm file-$i count-$i
done
: >done
read end
"""


class Script(CallsTest):
    load = "a shell script that runs 100 programs"

    def test_calls_of_many_processes(self):
        """perf trace does not follow the children of a process that ran already: strace only."""
        with subprocess.Popen(["sh", "-c", SCRIPT], stdin=subprocess.PIPE, cwd=self.directory) as shell:
            try:

                def play():
                    os.kill(shell.pid, signal.SIGCONT)
                    shell.stdin.write(b"\n")
                    shell.stdin.flush()
                    deadline = time.monotonic() + TIMEOUT
                    while children(shell.pid) or not (self.directory / "done").exists():
                        self.assertLess(time.monotonic(), deadline, "the script does not end")
                        time.sleep(0.05)
                    stop(shell.pid)

                watchers = {"strace": Strace(self.directory, shell.pid)}
                recording = self.check(watchers, shell.pid, play, ("--follow", "children"))
            finally:
                shell.kill()
        self.compare_strace(recording, watchers["strace"])


if __name__ == "__main__":
    tap.main()
