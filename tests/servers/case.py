# SPDX-License-Identifier: LGPL-2.1-or-later
"""The test case of tests/servers: one recording of one real server under load, and what must hold of each.

These have no clock of their own, as the workloads of tests/truth do. What is known of them: time is conserved, nearly all
of their waiting has a name, and some waits must be there because of what such a server is.
"""

import collections
import pathlib
import re
import sys
import time

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(SOURCE / "tests/lib"), str(SOURCE / "tests/truth")]

from objects import divided
from recording import MS, Recording, conservation
from truth import TruthTest, note

WARM_UP = 1.5
RECORDED = 4.0

# The most that may be without a name, of all waiting in a recording.
UNNAMED_SHARE = 0.01
# A thread that runs for more of its time than this works.
WORKING_SHARE = 0.005

# Kinds of which each wait is on an object. The others (timer, child, signal, reclaim) are said by kind and operation.
WITH_OBJECT = {"futex", "pipe", "fifo", "chardev", "unix", "inet", "socket", "epoll", "poll", "eventfd", "timerfd", "signalfd",
               "inotify", "file", "aio", "io_uring", "kernel-lock", "page-fault"}
# An identity that is only a number is no name of these.
WITH_PATH = {"file", "fifo", "chardev", "page-fault"}


def unnamed(wait):
    """Why the object of a wait has no name, or None."""
    if wait.kind == "other":
        return "no kind"
    if wait.kind not in WITH_OBJECT or wait.ident == "io_worker":
        return None
    if ":" not in wait.ident:
        return "no object"
    if not wait.name:
        return "no name"
    if wait.kind in WITH_PATH and wait.name == wait.ident:
        return "no path"
    if wait.kind in ("inet", "unix", "socket") and wait.name.startswith("socket:["):
        return "no address"
    return None


class ServerTest(TruthTest):
    """The tests of a class look at one recording, which the first of them makes."""

    server_class = None
    recording = None
    truth = None
    failed = False

    def observe(self, server):
        """What /proc says in the middle of the recording, for the tests to compare with."""

    def make_recording(self):
        with self.server_class() as server:
            server.load()
            time.sleep(WARM_UP)
            self.prismd.must("track", "--pid", server.pid)
            name = type(self).__name__
            self.prismd.must("record", "start", name, "--calls", "none")
            try:
                time.sleep(RECORDED / 2)
                truth = self.observe(server)
                time.sleep(RECORDED / 2)
            finally:
                self.prismd.must("record", "stop", name)
                self.prismd.must("untrack", f"pid:{server.pid}")
            server.check_alive()
            return Recording(self.prismd, name), truth

    def setUp(self):
        super().setUp()
        cls = type(self)
        if cls.failed:
            self.fail("there is no recording: see the first test")
        if cls.recording is None:
            cls.failed = True
            cls.recording, cls.truth = self.make_recording()
            cls.failed = False

    @classmethod
    def tearDownClass(cls):
        if cls.recording is not None:
            cls.recording.close()
            cls.recording = None
        super().tearDownClass()

    # ---- what holds of every server ----

    def test_conservation(self):
        problems = conservation(self.recording)
        self.assertFalse(problems, "\n".join(problems[:8]))

    def test_division(self):
        problems = divided(self.recording)
        self.assertFalse(problems, "\n".join(problems[:8]))

    def test_named(self):
        """Of all threads together; and of those that work, as idle ones wait all the time for what is easily named."""
        threads = self.recording.threads()
        working = [t for t in threads if self.recording.times(t)["run_ns"] > WORKING_SHARE * self.recording.times(t)["dt_ns"]]
        problems = self.check_named("all", threads) + self.check_named("working", working)
        self.assertFalse(problems, "; ".join(problems))

    def check_named(self, which, threads):
        everything, without, kinds = 0, collections.Counter(), collections.Counter()
        for wait in self.all_waits(threads):
            everything += wait.total_ns
            kinds[wait.kind, wait.op] += wait.total_ns
            why = unnamed(wait)
            if why:
                without[wait.kind, wait.op, wait.ident if why == "no kind" else why] += wait.total_ns
        if everything < self.recording.length_ns / 100:
            return [f"{which} threads hardly waited: {everything} ns"]
        share = sum(without.values()) / everything
        note(f"{which} threads: {len(threads)}, {everything / MS:.0f} ms of waiting: " + ", ".join(
            f"{kind} {op} {ns / everything:.2%}" for (kind, op), ns in kinds.most_common(12)))
        parts = ", ".join(f"{' '.join(key)} {ns / MS:.1f} ms {ns / everything:.3%}" for key, ns in without.most_common(12))
        note(f"{which} threads: without a name: {share:.3%}: {parts}")
        return [f"{which} threads: {share:.2%} of their waiting is without a name: {parts}"] if share >= UNNAMED_SHARE else []

    # ---- finding rows ----

    def by_name(self, pattern):
        """Threads whose name fits."""
        found = [t for t in self.recording.threads() if re.fullmatch(pattern, t["comm"])]
        self.assertTrue(found, f"no thread is called {pattern}: {sorted({t['comm'] for t in self.recording.threads()})}")
        return found

    def all_waits(self, threads, kind=None, op=None):
        return [wait for thread in threads for wait in self.recording.waits(thread, kind, op)]

    def total(self, waits):
        return sum(wait.total_ns for wait in waits)

    def watched(self, threads, kind="epoll"):
        """What ended the waits of threads on sets: {resource row: (count, ns)}, with None for nothing watched."""
        sums = collections.defaultdict(lambda: (0, 0))
        rows = {row["id"]: row for row in self.recording.db.execute("SELECT * FROM resource")}
        for thread in threads:
            for row in self.recording.rows("mux_wait", thread):
                if rows[row["resource_id"]]["kind"] == kind:
                    count, total = sums[row["watched_id"]]
                    sums[row["watched_id"]] = (count + row["count"], total + self.recording.inside(row))
        return {rows.get(resource_id): value for resource_id, value in sums.items()}

    def socket(self, resource_id):
        return self.recording.db.execute("SELECT * FROM socket WHERE resource_id = ?", (resource_id,)).fetchone()

    def remote_ports(self, watched):
        """Of the inet sockets that ended waits."""
        sockets = [self.socket(resource["id"]) for resource in watched if resource and resource["kind"] == "inet"]
        self.assertNotIn(None, sockets, "a socket that ended a wait is not described")
        return {row["remote_port"] for row in sockets}

    def check_clients(self, watched, ports, least):
        """Each of these clients ended waits on a set by its socket, and together they ended at least this part of the waiting.
        (A wake that comes while the thread is on its way to sleep ends a wait of no length, and by what is often not seen.)"""
        self.assertTrue(ports, "the load has no connections")
        self.assertLessEqual(ports, self.remote_ports(watched), "clients that ended no wait")
        whole = sum(ns for _, ns in watched.values())
        by_clients = sum(ns for resource, (_, ns) in watched.items()
                         if resource and resource["kind"] == "inet" and self.socket(resource["id"])["remote_port"] in ports)
        note(f"{by_clients / whole:.1%} of the waiting on sets was ended by the sockets of {len(ports)} clients")
        self.assertGreater(by_clients, least * whole, "time that the clients' sockets ended")

    def wakers(self, threads, waits):
        """{name of the waking thread, or the kind of waker: count} of waits of threads."""
        resources = {wait.resource for wait in waits}
        counts = collections.Counter()
        for thread in threads:
            for wake in self.recording.wakes(thread):
                if wake.resource in resources:
                    counts[wake.comm or wake.kind] += wake.count
        return counts

    def check_file(self, waits, pattern):
        """There are such waits, and all are on a file whose path fits."""
        self.assertTrue(waits, f"no wait on a file like {pattern}")
        for wait in waits:
            self.assertRegex(wait.name or "", pattern)
