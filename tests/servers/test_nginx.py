#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""nginx under wrk: workers with an event loop each, which read files."""

import case
import tap
from server import Server, command_line, descendants, free_port, need, tcp_ports

CONNECTIONS = 16
WORKERS = 2

CONFIGURATION = """\
daemon off;
worker_processes {workers};
user nobody nogroup;
pid {directory}/pid;
error_log {directory}/error.log;
events {{ worker_connections 256; }}
http {{
        access_log {directory}/access.log;
        client_body_temp_path {directory}/body;
        proxy_temp_path {directory}/proxy;
        fastcgi_temp_path {directory}/fastcgi;
        uwsgi_temp_path {directory}/uwsgi;
        scgi_temp_path {directory}/scgi;
        sendfile on;
        keepalive_requests 1000000000;
        server {{
                listen 127.0.0.1:{port};
                root {directory}/files;
        }}
}}
"""


class NginxServer(Server):
    def prepare(self):
        self.port = free_port()
        self.directory.chmod(0o755)
        files = self.directory / "files"
        files.mkdir()
        (files / "index.html").write_bytes(b"x" * 20000)
        (self.directory / "nginx.conf").write_text(
            CONFIGURATION.format(directory=self.directory, port=self.port, workers=WORKERS), "utf-8")

    def command(self):
        return [need("nginx"), "-p", self.directory, "-c", self.directory / "nginx.conf", "-e", self.directory / "error.log"]

    def answers(self):
        return (self.directory / "pid").exists() and len(descendants(self.pid)) >= 1 + WORKERS

    def load_command(self):
        return [need("wrk"), "-t", 2, "-c", CONNECTIONS, "-d", "120s", f"http://127.0.0.1:{self.port}/index.html"]


class Nginx(case.ServerTest):
    server_class = NginxServer

    def observe(self, server):
        workers = [pid for pid in descendants(server.pid) if "worker process" in command_line(pid)]
        return {"pid": server.pid, "workers": workers, "ports": tcp_ports(server.client.pid)}

    def workers(self):
        return [self.recording.thread(pid) for pid in self.truth["workers"]]

    def test_workers_wait_for_their_clients(self):
        self.assertEqual(len(self.truth["workers"]), WORKERS)
        self.assertEqual(len(self.truth["ports"]), CONNECTIONS)
        workers = self.workers()
        waits = self.all_waits(workers)
        in_loop = self.total(w for w in waits if (w.kind, w.op) == ("epoll", "epoll_wait"))
        self.assertGreater(in_loop, 0.5 * self.total(waits))
        self.check_clients(self.watched(workers), self.truth["ports"], 0.95)

    def test_a_worker_waits_for_its_own_clients(self):
        seen = [self.remote_ports(self.watched([worker])) & self.truth["ports"] for worker in self.workers()]
        self.assertEqual(sum(map(len, seen)), len(set().union(*seen)), f"a connection with two workers: {seen}")

    def test_master_waits_for_signals(self):
        waits = self.recording.waits(self.recording.thread(self.truth["pid"]))
        self.assertEqual({(w.kind, w.op) for w in waits}, {("signal", "rt_sigsuspend")}, f"{waits}")


if __name__ == "__main__":
    tap.main()
