#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""MariaDB under sysbench: a thread for each client, locks between them, and threads of its own for the disk."""

import pathlib
import shutil

import case
import tap
from server import Server, need

CLIENTS = 6
ROWS = 5000


class MariadbServer(Server):
    user = "nobody"

    def prepare(self):
        """What mariadb-install-db does, which comes with more packages than the server needs."""
        scripts = [pathlib.Path("/usr/share/mysql", f"mysql_{name}.sql").read_text("utf-8")
                   for name in ("system_tables", "performance_tables", "system_tables_data")]
        (self.directory / "data").mkdir()
        shutil.chown(self.directory / "data", self.user, self.group())
        (self.directory / "bootstrap.sql").write_text(
            "create database mysql;\ncreate database bench;\nuse mysql;\n" + "\n".join(scripts), "utf-8")
        with open(self.directory / "bootstrap.sql", "rb") as script:
            self.must(*self.mariadbd(), "--bootstrap", "--skip-grant-tables", stdin=script)

    def mariadbd(self):
        return [need("mariadbd"), "--no-defaults", f"--datadir={self.directory}/data", "--innodb-buffer-pool-size=32M",
                "--innodb-log-file-size=16M", "--max-connections=32"]

    def command(self):
        # Who asks is of no matter: it listens on a socket in its directory only.
        return [*self.mariadbd(), f"--socket={self.directory}/socket", f"--pid-file={self.directory}/pid", "--skip-networking",
                "--skip-grant-tables"]

    def answers(self):
        # Only the server's own word: the socket is there before it is ready.
        return "ready for connections" in self.log("server")

    def sysbench(self, what):
        return [need("sysbench"), "oltp_read_write", "--db-driver=mysql", f"--mysql-socket={self.directory}/socket",
                "--mysql-user=root", "--mysql-db=bench", "--tables=1", f"--table-size={ROWS}", f"--threads={CLIENTS}",
                "--time=120", what]

    def fill(self):
        self.must(*self.sysbench("prepare"))

    def load_command(self):
        return self.sysbench("run")


class Mariadb(case.ServerTest):
    server_class = MariadbServer

    def observe(self, server):
        return {"pid": server.pid, "directory": str(server.directory)}

    def clients(self, thread):
        """The sockets that ended a thread's polls."""
        return {row["id"]: row for row in self.watched([thread], "poll") if row and row["kind"] == "unix"}

    def connections(self):
        """The threads that serve a client."""
        found = [t for t in self.recording.threads() if t["tid"] != self.truth["pid"] and self.clients(t)]
        self.assertEqual(len(found), CLIENTS, f"{[t['tid'] for t in found]}")
        return found

    def test_a_thread_waits_for_its_client(self):
        seen = []
        for thread in self.connections():
            client = self.only(list(self.clients(thread).values()), f"clients of {thread['tid']}")
            self.assertEqual(client["name"], f"unix {self.truth['directory']}/socket")
            seen.append(client["ident"])
            watched = self.watched([thread], "poll")
            by_client = watched[client][1]
            self.assertGreater(by_client, 0.95 * sum(ns for _, ns in watched.values()), "time charged to the client")
        self.assertEqual(len(set(seen)), CLIENTS, "two threads have the same client")

    def test_a_poll_ends_by_what_it_watches(self):
        """Each polls one socket, so nothing else can have ended that."""
        kinds = {row["kind"]: (row["name"], count) for row, (count, _) in self.watched(self.connections(), "poll").items() if row}
        self.assertEqual(set(kinds), {"unix"}, f"{kinds}")

    def test_who_ends_them(self):
        threads = self.connections()
        wakers = self.wakers(threads, self.all_waits(threads, "poll"))
        self.assertLessEqual(wakers.keys(), {"sysbench", "timer", "irq"})

    def test_commits_wait_for_the_log(self):
        waits = [w for w in self.all_waits(self.connections(), "file") if w.op in ("fdatasync", "fsync", "write")]
        self.check_file(waits, rf"^{self.truth['directory']}/data/ib_logfile0$")

    def test_threads_wait_for_each_other(self):
        """For rows and for the log: by futexes, which another of them ends."""
        threads = self.connections()
        futexes = self.all_waits(threads, "futex")
        self.assertTrue(futexes, "no thread waited for another")
        wakers = self.wakers(threads, futexes)
        self.assertGreater(wakers["mariadbd"], 0.8 * wakers.total(), f"{wakers}")


if __name__ == "__main__":
    tap.main()
