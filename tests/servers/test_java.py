#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A Java virtual machine: a pool of threads that serve HTTP, their clients, a lock, and threads of the machine itself."""

import pathlib

import case
import tap
from server import Server, need, tcp_ports

PROGRAM = pathlib.Path(__file__).resolve().parent / "programs/Shop.java"


class JavaServer(Server):
    """It loads itself."""

    def prepare(self):
        self.must(need("javac"), "-d", self.directory, PROGRAM)

    def command(self):
        return [need("java"), "-Xmx64m", "-XX:+UseG1GC", "-cp", self.directory, "Shop", self.directory / "journal"]

    def answers(self):
        return "ready" in self.log("server")

    def load_command(self):
        return None


class Java(case.ServerTest):
    server_class = JavaServer

    def observe(self, server):
        return {"pid": server.pid, "port": int(server.log("server").split()[1]), "ports": tcp_ports(server.pid)}

    def test_dispatcher_waits_for_clients(self):
        dispatcher = self.by_name("HTTP-Dispatcher")
        waits = self.all_waits(dispatcher)
        self.assertGreater(self.total(w for w in waits if w.kind == "epoll"), 0.8 * self.total(waits))
        watched = self.watched(dispatcher)
        clients = self.truth["ports"] - {self.truth["port"]}
        self.check_clients(watched, clients, 0)
        # The pool tells it by an eventfd that a connection is its again.
        self.assertLessEqual({r["kind"] for r in watched if r}, {"inet", "eventfd"})

    def test_clients_wait_for_answers(self):
        buyers = self.by_name(r"buyer-\d")
        waits = self.all_waits(buyers)
        receives = [w for w in waits if (w.kind, w.op) == ("inet", "receive")]
        self.assertGreater(self.total(receives), 0.8 * self.total(waits))
        for wait in receives:
            socket = self.socket(wait.resource)
            self.assertEqual(socket["remote_port"], self.truth["port"])
            self.assertIn(socket["local_port"], self.truth["ports"])
            self.assertRegex(wait.name, rf"^tcp .*127\.0\.0\.1\]?:{self.truth['port']}$")

    def test_the_other_end_is_known(self):
        """Both ends of a connection are in this process."""
        for wait in self.all_waits(self.by_name(r"buyer-\d"), "inet", "receive"):
            socket = self.socket(wait.resource)
            other = self.socket(socket["peer_resource_id"])
            self.assertIsNotNone(other, f"{wait.name} has no other end")
            self.assertEqual((other["local_port"], other["remote_port"]), (socket["remote_port"], socket["local_port"]))

    def test_answers_come_from_the_pool(self):
        """A packet over loopback is the sender's wake."""
        buyers = self.by_name(r"buyer-\d")
        wakers = self.wakers(buyers, self.all_waits(buyers, "inet", "receive"))
        by_pool = sum(n for name, n in wakers.items() if name.startswith("pool-"))
        self.assertGreater(by_pool, 0.8 * wakers.total(), f"{wakers}")

    def test_pool_waits_for_the_lock(self):
        """Each parks on a futex of its own, and who gives the lock away ends that."""
        pool = self.by_name(r"pool-1-thread-\d")
        waits = self.all_waits(pool)
        futexes = [w for w in waits if w.kind == "futex"]
        self.assertGreater(self.total(futexes), 0.9 * self.total(waits))
        wakers = self.wakers(pool, futexes)
        by_pool = sum(n for name, n in wakers.items() if name.startswith("pool-"))
        self.assertGreater(by_pool, 0.1 * wakers.total(), f"{wakers}")

    def test_journal_is_synced_by_its_name(self):
        self.check_file(self.all_waits(self.by_name(r"pool-1-thread-\d"), "file", "fdatasync"), r"^/var/tmp/.*/journal$")


if __name__ == "__main__":
    tap.main()
