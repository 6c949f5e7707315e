#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Redis under redis-benchmark: an event loop, and a thread that writes its log to the disk."""

import case
import tap
from server import Server, free_port, need, tcp_ports

CLIENTS = 8


class RedisServer(Server):
    def prepare(self):
        self.port = free_port()

    def command(self):
        return [need("redis-server"), "--port", self.port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes",
                "--appendfsync", "everysec", "--dir", self.directory]

    def answers(self):
        return self.run_quietly(need("redis-cli"), "-p", self.port, "ping") == 0

    def load_command(self):
        return [need("redis-benchmark"), "-p", self.port, "-t", "set", "-c", CLIENTS, "-n", 1_000_000_000, "-r", 1000, "-q"]


class Redis(case.ServerTest):
    server_class = RedisServer

    def observe(self, server):
        return {"pid": server.pid, "ports": tcp_ports(server.client.pid)}

    def main(self):
        return self.recording.thread(self.truth["pid"])

    def test_main_thread_waits_for_its_clients(self):
        self.assertEqual(len(self.truth["ports"]), CLIENTS)
        main = self.main()
        waits = self.all_waits([main])
        self.assertGreater(self.total(w for w in waits if (w.kind, w.op) == ("epoll", "epoll_wait")), 0.5 * self.total(waits))
        self.check_clients(self.watched([main]), self.truth["ports"], 0.95)

    def test_log_is_synced_by_its_name(self):
        waits = self.all_waits(self.by_name("bio_aof.*"), "file", "fdatasync")
        self.check_file(waits, r"^/var/tmp/.*/appendonlydir/appendonly\.aof\.\d+\.incr\.aof$")

    def test_idle_threads_wait_for_a_futex(self):
        for thread in self.by_name("bio_(close_file|lazy_free)"):
            waits = self.recording.waits(thread)
            self.assertEqual({w.kind for w in waits}, {"futex"}, f"{thread['comm']}: {waits}")


if __name__ == "__main__":
    tap.main()
