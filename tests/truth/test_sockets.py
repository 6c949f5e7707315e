#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Waits on sockets of every kind: on which, for how long, who ended them, and what is known of the socket."""

import os
import pathlib
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

import tap
from objects import ObjectTest

ESTABLISHED, CLOSED, LISTEN = 1, 7, 10
FAMILY_UNIX, TYPE_STREAM = 1, 1

# A packet over loopback is delivered in the sender's name; a few by the kernel's own thread, when there is much to do.
LEAST_BY_SENDER = 0.95


class SocketTest(ObjectTest):
    def kind(self, known):
        return "unix" if known["family"] == FAMILY_UNIX else "inet"

    def socket(self, recording, known):
        """Its row, compared with what the socket said about itself."""
        resource = self.by_inode(recording, self.kind(known), known["inode"])
        row = recording.db.execute("SELECT * FROM socket WHERE resource_id = ?", (resource["id"],)).fetchone()
        self.assertIsNotNone(row, f"no socket row for {resource['name']}")
        for column in ("family", "type", "protocol"):
            self.assertEqual(row[column], known[column], f"{column} of {resource['name']}")
        self.assertEqual(row["netns"], os.stat("/proc/self/ns/net").st_ino, "network namespace")
        if row["family"] == FAMILY_UNIX:
            # One that is connected to a named one, and has no name itself, is known by that.
            path = known.get("local_path", known.get("remote_path"))
            self.assertEqual(row["path"], path, f"path of {resource['name']}")
        else:
            for column in ("local_addr", "local_port", "remote_addr", "remote_port"):
                self.assertEqual(row[column], known.get(column), f"{column} of {resource['name']}")
        return row


class Conversations(SocketTest):
    def check_end(self, recording, name, known, other):
        """Returns its row."""
        what = f"{name} {known['tid']}"
        thread = recording.thread(known["tid"])
        wait = self.only(recording.waits(thread, self.kind(known)), f"{what}: waits on sockets")
        self.assertEqual(wait.op, "receive", what)
        self.assertIn(known["inode"], set(map(int, re.findall(r"\d+", wait.ident))), f"{what}: which socket")
        # A unix stream also wakes its reader when what it sent has been read.
        most = 2 * known["count"] if (known["family"], known["type"]) == (FAMILY_UNIX, TYPE_STREAM) else known["count"]
        self.assertIn(wait.count, range(known["count"], most + 1), f"{what}: number of waits")
        self.assert_close(wait.total_ns, known["total_ns"], f"{what}: total")
        self.check_named(recording, what, thread)
        least = 1.0 if known["family"] == FAMILY_UNIX else LEAST_BY_SENDER
        self.check_wakers(recording, what, {"waker": other["tid"]}, thread, wait, ("thread",), least)
        return self.socket(recording, known)

    def check_names(self, recording, name, known):
        resource = self.by_inode(recording, self.kind(known), known["inode"])
        shown = resource["name"] or ""
        if known["family"] == FAMILY_UNIX:
            self.assertTrue(shown.startswith("unix"), f"{name}: {shown}")
            if "local_path" in known:
                self.assertIn(known["local_path"], shown, name)
        else:
            word = "tcp" if name.startswith("tcp") else "udp"
            self.assertTrue(shown.startswith(word), f"{name}: {shown}")
            self.assertIn(str(known.get("remote_port", known["local_port"])), shown, name)

    def test_service_and_think_times(self):
        recording, truth = self.play("sockets", cwd=self.directory)
        for name, talk in truth.items():
            with self.subTest(name):
                rows = {}
                for end, other in (("client", "server"), ("server", "client")):
                    rows[end] = self.check_end(recording, name, talk[end], talk[other])
                    self.check_names(recording, name, talk[end])
                if talk["client"]["family"] == FAMILY_UNIX and name != "unix-dgram":
                    self.assertEqual(rows["client"]["peer_resource_id"], rows["server"]["resource_id"], "peer")
                    self.assertEqual(rows["server"]["peer_resource_id"], rows["client"]["resource_id"], "peer")
                if name.startswith(("tcp", "unix-stream", "unix-packet", "socketpair")):
                    self.assertEqual({row["state"] for row in rows.values()}, {ESTABLISHED}, "state")
        for name in ("tcp4", "tcp6"):
            for end in ("client", "server"):
                with self.subTest(f"bytes of {name} {end}"):
                    self.check_samples(recording, truth[name][end])

    def check_samples(self, recording, known):
        resource = self.by_inode(recording, "inet", known["inode"])
        rows = recording.db.execute("SELECT * FROM socket_sample WHERE resource_id = ? AND ts_ns > ? AND ts_ns - dt_ns < ?",
                                    (resource["id"], recording.start_ns, recording.end_ns)).fetchall()
        self.assertTrue(rows, "no samples")
        self.assertEqual(sum(row["bytes_in"] for row in rows), known["bytes_in"], "bytes in")
        self.assertEqual(sum(row["bytes_out"] for row in rows), known["bytes_out"], "bytes out")
        self.assertEqual(sum(row["retransmits"] for row in rows), 0, "retransmits")
        self.assertTrue(all(row["srtt_ns"] is None or 0 < row["srtt_ns"] < 10**9 for row in rows), "round-trip time")
        self.assertTrue(any(row["srtt_ns"] for row in rows), "a round-trip time")


class Connections(SocketTest):
    def test_accept_connect_and_send(self):
        recording, truth = self.play("connections", cwd=self.directory)
        for name, kind in (("accept-tcp4", "inet"), ("accept-tcp6", "inet"), ("accept-unix", "unix")):
            with self.subTest(name):
                self.check_accept(recording, name, truth[name], kind)
        with self.subTest("connect-unix"):
            self.check_connect(recording, truth["connect-unix"])
        with self.subTest("connect-tcp"):
            known = truth["connect-tcp"]
            self.check(recording, "connect-tcp", known, "inet", "connect", known["inode"],
                       label=rf"^tcp 127\.0\.0\.1:{known['remote_port']}", wakers=("irq", "timer"))
            self.assertEqual(self.socket(recording, known)["state"], ESTABLISHED)
        with self.subTest("send-dgram"):
            known = truth["send-dgram"]
            self.check(recording, "send-dgram", known, "unix", "send", known["inode"])
        for name, kind in (("send-tcp", "inet"), ("send-stream", "unix")):
            with self.subTest(name):
                self.check_bulk(recording, name, truth[name], kind)

    def check_accept(self, recording, name, known, kind):
        thread = recording.thread(known["tid"])
        wait = self.only(recording.waits(thread, kind, "accept"), f"{name}: {recording.waits(thread)}")
        self.assertEqual(wait.count, known["count"], f"{name}: number of waits")
        self.assert_close(wait.total_ns, known["total_ns"], f"{name}: total")
        resource = self.by_inode(recording, kind, known["inode"])
        self.assertEqual(wait.resource, resource["id"], f"{name}: which socket")
        row = recording.db.execute("SELECT * FROM socket WHERE resource_id = ?", (resource["id"],)).fetchone()
        self.assertIsNotNone(row, f"{name}: no socket row")
        self.assertEqual(row["state"], LISTEN, f"{name}: state")
        least = 1.0 if kind == "unix" else LEAST_BY_SENDER
        self.check_wakers(recording, name, known, thread, wait, ("thread",), least)
        self.check_named(recording, name, thread)
        if kind == "inet":
            self.assertRegex(resource["name"] or "", rf"^tcp listen .*:{row['local_port']}$", name)
        else:
            self.assertEqual(row["path"], str(self.directory / "accept"))

    def check_connect(self, recording, known):
        """Each is a socket of its own."""
        thread = recording.thread(known["tid"])
        waits = recording.waits(thread, "unix", "connect")
        self.assertEqual({min(map(int, re.findall(r"\d+", w.ident))) for w in waits}, set(known["inodes"]), "sockets")
        self.assertEqual({w.count for w in waits}, {1}, "waits of each")
        self.assert_close(sum(w.total_ns for w in waits), known["total_ns"], "total")
        self.assert_close(max(w.max_ns for w in waits), known["max_ns"], "longest")
        for wait in waits:
            self.check_wakers(recording, "connect-unix", known, thread, wait, ("thread",))
        self.check_named(recording, "connect-unix", thread)

    def check_bulk(self, recording, name, known, kind):
        thread = recording.thread(known["tid"])
        wait = self.only(recording.waits(thread, kind, "send"), f"{name}: {recording.waits(thread)}")
        self.assertEqual(wait.resource, self.by_inode(recording, kind, known["inode"])["id"], f"{name}: which socket")
        self.assert_between(wait.total_ns, *self.bounds(known), f"{name}: total")
        self.assertGreater(wait.count, 5, f"{name}: number of waits")
        least = 1.0 if kind == "unix" else LEAST_BY_SENDER
        self.check_wakers(recording, name, {"waker": known["receiver"]}, thread, wait, ("thread",), least)
        self.check_named(recording, name, thread)
        if kind != "inet":
            return
        for end, column in ((known, "bytes_out"), (known["other_end"], "bytes_in")):
            resource = self.by_inode(recording, kind, end["inode"])
            moved = recording.db.execute(f"""SELECT sum({column}) FROM socket_sample
                                             WHERE resource_id = ? AND ts_ns > ? AND ts_ns - dt_ns < ?""",
                                         (resource["id"], recording.start_ns, recording.end_ns)).fetchone()[0]
            self.assertEqual(moved, end["bytes"], f"{name}: {column}")


CONNECTED = """
import socket, sys
listener = socket.create_server(("127.0.0.1", 0))
one = socket.create_connection(listener.getsockname())
other, _ = listener.accept()
def move(n):
    one.sendall(bytes(n))
    while n > 0:
        n -= len(other.recv(n))
for _ in range(100):
    move(10000)
print(other.fileno(), flush=True)
for line in sys.stdin:
    move(int(line))
    print("moved", flush=True)
"""


class Counters(SocketTest):
    """A connection that was there before: what it moved earlier is nobody's, and one that rests has nothing to say."""

    def setUp(self):
        super().setUp()
        self.child = subprocess.Popen([sys.executable, "-c", CONNECTED], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      text=True)
        self.addCleanup(self.child.wait, 10)
        self.addCleanup(self.child.stdin.close)
        self.addCleanup(self.child.stdout.close)
        descriptor = int(self.child.stdout.readline())
        self.inode = os.stat(f"/proc/{self.child.pid}/fd/{descriptor}").st_ino

    def samples(self, recording):
        return recording.db.execute("""SELECT s.* FROM socket_sample s JOIN resource r ON r.id = s.resource_id
                                       WHERE r.ident = ? AND s.ts_ns > ? AND s.ts_ns <= ?""",
                                    (f"inode:{self.inode}", recording.start_ns, recording.end_ns)).fetchall()

    def move(self, count):
        self.child.stdin.write(f"{count}\n")
        self.child.stdin.flush()
        self.child.stdout.readline()

    def test_rest_and_movement(self):
        recording, _ = self.record([self.child.pid], lambda: time.sleep(2.5))
        self.assertEqual(self.samples(recording), [], "of a connection at rest")

        def scenario():
            # After a look at what is open.
            time.sleep(1.5)
            self.move(1234)
            time.sleep(1.5)

        # Followed a second time: the same connection.
        recording, _ = self.record([self.child.pid], scenario)
        self.assertEqual(sum(row["bytes_in"] for row in self.samples(recording)), 1234)


if __name__ == "__main__":
    tap.main()
