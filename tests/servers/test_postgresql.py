#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""PostgreSQL under pgbench: processes that share memory, wait for their clients, for each other and for the log's disk."""

import pathlib

import case
import tap
from server import Server, command_line, descendants, need, socket_inodes

CLIENTS = 6


class PostgresServer(Server):
    user = "postgres"

    def __init__(self):
        super().__init__()
        versions = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: int(p.parent.name))
        self.programs = versions[-1] if versions else pathlib.Path("/usr/lib/postgresql")

    def tool(self, name):
        return need(name, str(self.programs))

    def prepare(self):
        self.must(self.tool("initdb"), "-D", self.directory / "data", "-U", "postgres", "-A", "trust", "--no-sync", "-N")

    def command(self):
        # Nothing is checkpointed or cleaned in the few seconds; commits are written to the disk.
        return [self.tool("postgres"), "-D", self.directory / "data", "-k", self.directory, "-h", "", "-c", "shared_buffers=32MB"]

    def answers(self):
        return self.run_quietly(self.tool("pg_isready"), "-q", "-h", self.directory) == 0

    def fill(self):
        self.must(self.tool("pgbench"), "-i", "-q", "-s", 2, "-h", self.directory, "postgres")

    def load_command(self):
        return [self.tool("pgbench"), "-n", "-c", CLIENTS, "-j", 2, "-T", 120, "-h", self.directory, "postgres"]


class Postgres(case.ServerTest):
    server_class = PostgresServer

    def observe(self, server):
        backends = [pid for pid in descendants(server.pid) if "[local]" in command_line(pid)]
        return {"pid": server.pid, "directory": str(server.directory), "backends": backends,
                "client": server.client.pid, "client_sockets": socket_inodes(server.client.pid)}

    def backends(self):
        return [self.recording.thread(pid) for pid in self.truth["backends"]]

    def test_backends_are_followed(self):
        self.assertEqual(len(self.truth["backends"]), CLIENTS)
        for thread in self.backends():
            self.assertEqual(thread["process_comm"], "postgres")

    def test_backends_wait_for_their_clients(self):
        """Each on its own set, and what ends the waits is the socket to the client, from the client's own thread."""
        ended = set()
        for thread in self.backends():
            watched = self.watched([thread])
            clients = [(resource, ns) for resource, (_, ns) in watched.items() if resource and resource["kind"] == "unix"]
            self.assertEqual(len(clients), 1, f"backend {thread['tid']}: {[tuple(r) if r else r for r in watched]}")
            resource = clients[0][0]
            self.assertEqual(resource["name"], f"unix {self.truth['directory']}/.s.PGSQL.5432")
            peer = self.recording.db.execute("""SELECT p.ident FROM socket s JOIN resource p ON p.id = s.peer_resource_id
                                                WHERE s.resource_id = ?""", (resource["id"],)).fetchone()
            self.assertIsNotNone(peer, "the other end of the client's socket is not known")
            ended.add(int(peer["ident"].partition(":")[2]))
        self.assertEqual(len(ended), CLIENTS, "two backends have the same client")
        self.assertLessEqual(ended, self.truth["client_sockets"], "these are not the client's sockets")

    def test_who_ends_them(self):
        backends = self.backends()
        wakers = self.wakers(backends, self.all_waits(backends, "epoll"))
        self.assertLessEqual(wakers.keys(), {"pgbench", "postgres", "timer", "irq"})
        self.assertGreater(wakers["pgbench"], 0.5 * wakers.total(), f"{wakers}")

    def test_commits_wait_for_the_log(self):
        self.check_file(self.all_waits(self.backends(), "file", "fdatasync"),
                        rf"^{self.truth['directory']}/data/pg_wal/[0-9A-F]{{24}}$")

    def test_backends_wait_for_each_other(self):
        """Whose row or log lock it is: by semaphores in memory that all map, or by a signal that makes a signalfd readable."""
        backends = self.backends()
        futexes = self.all_waits(backends, "futex")
        for wait in futexes:
            self.assertRegex(wait.ident, "^shared:")
        latches = [r for r in self.watched(backends) if r and r["kind"] == "signalfd"]
        self.assertTrue(futexes or latches, "backends that write the same rows never waited for each other")

    def test_parent_waits_for_connections(self):
        waits = self.recording.waits(self.recording.thread(self.truth["pid"]))
        self.assertGreater(self.total(w for w in waits if w.kind in ("poll", "epoll")), 0.95 * self.total(waits), f"{waits}")


if __name__ == "__main__":
    tap.main()
