#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A Go program: many goroutines on few threads, which wait for the network in one set, for each other, and for files."""

import pathlib

import case
import tap
from prism import environment
from server import Server, need, tcp_ports

PROGRAM = pathlib.Path(__file__).resolve().parent / "programs/shop.go"


class GoServer(Server):
    """It loads itself."""

    def prepare(self):
        env = environment(GOCACHE=str(self.directory / "cache"), GOPATH=str(self.directory / "path"), GO111MODULE="off")
        self.must(need("go"), "build", "-o", self.directory / "shop", PROGRAM, env=env)

    def command(self):
        return [self.directory / "shop", self.directory / "journal"]

    def answers(self):
        return "ready" in self.log("server")

    def load_command(self):
        return None


class Go(case.ServerTest):
    server_class = GoServer

    def observe(self, server):
        return {"pid": server.pid, "port": int(server.log("server").split()[1]), "ports": tcp_ports(server.pid)}

    def test_network_is_one_set(self):
        """Whichever thread has nothing else to do waits for all connections, and for a pipe that calls it back."""
        threads = self.recording.threads()
        sets = {w.ident for w in self.all_waits(threads, "epoll", "epoll_wait")}
        self.assertEqual(len(sets), 1, f"{sets}")
        watched = self.watched(threads)
        self.assertLessEqual({r["kind"] for r in watched if r}, {"inet", "pipe"})
        ports = self.remote_ports(watched)
        self.assertTrue(ports, "no connection ended a wait")
        self.assertLessEqual(ports, self.truth["ports"] | {0})
        self.assertFalse(self.all_waits(threads, "inet"), "a thread that waits for one connection")

    def test_threads_park_on_futexes_of_the_runtime(self):
        names = {w.name for w in self.all_waits(self.recording.threads(), "futex")}
        self.assertIn("runtime.m0", {name.rpartition(":")[2].partition("+")[0] for name in names}, f"{names}")

    def test_clock_of_the_runtime(self):
        waits = self.all_waits(self.recording.threads(), "timer", "nanosleep")
        self.assertGreater(sum(w.count for w in waits), 100, "the runtime's watcher sleeps for microseconds")

    def test_journal_is_synced_by_its_name(self):
        self.check_file(self.all_waits(self.recording.threads(), "file", "fsync"), r"^/var/tmp/.*/journal$")


if __name__ == "__main__":
    tap.main()
