#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Clients of the private socket that are many, or behave badly. The others are served, and memory stays bounded."""

import os
import pathlib
import random
import resource
import shutil
import socket
import struct
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

import tap
from prism import Prismd, bpf_unavailable, run
from system import System, wait_until
from wire import ERROR, METHOD_RETURN, NO_OPTIONS, Connection, message

CLIENTS = 2000
MIB = 1024 * 1024


def setUpModule():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 3 * CLIENTS), hard))


class Clients(unittest.TestCase):
    def setUp(self):
        reason = bpf_unavailable()
        if reason:
            raise tap.NeedsBpf(reason)
        self.open = []

    def tearDown(self):
        for c in self.open:
            c.close()

    def prismd(self, settings=None):
        p = Prismd()
        if settings:
            path = p.directory / "prismd.conf"
            path.write_text(settings, "utf-8")
            p.arguments = ["--config", str(path)]
        self.addCleanup(p.remove)
        self.addCleanup(p.kill)
        p.start()
        self.path = str(p.directory / "bus")
        return p

    def connect(self, **options):
        c = Connection(self.path, **options)
        self.open.append(c)
        return c

    def latency(self, connection):
        """The best of three: others use this machine, too."""
        times = []
        for _ in range(3):
            started = time.monotonic()
            self.assertEqual(connection.call()[0], METHOD_RETURN)
            times.append(time.monotonic() - started)
        return min(times)

    def memory(self, p):
        text = pathlib.Path(f"/proc/{p.pid}/statm").read_text("ascii")
        return int(text.split()[1]) * resource.getpagesize()

    def descriptors(self, p):
        return len(os.listdir(f"/proc/{p.pid}/fd"))

    def test_many(self):
        """All are let in if the limit says so."""
        p = self.prismd(f"[Limits]\nConnections={CLIENTS + 100}\n")
        other = self.connect()
        before = self.memory(p)
        for _ in range(CLIENTS):
            self.connect()
        self.assertLess(self.latency(other), 1)
        self.assertEqual(p.ctl("status").code, 0)
        for c in self.open:
            c.serial += 1
            c.send(message(serial=c.serial))
        started = time.monotonic()
        self.assertEqual(p.ctl("status").code, 0, "one more among them")
        self.assertLess(time.monotonic() - started, 20)
        for c in self.open:
            kind, answers, _ = c.receive()
            self.assertEqual((kind, answers), (METHOD_RETURN, c.serial))
        self.assertLess(self.memory(p) - before, 200 * MIB)
        for c in self.open[1:]:
            c.close()
        wait_until(lambda: self.descriptors(p) < 200, "their descriptors are closed")
        self.assertLess(self.latency(other), 1)

    def test_more_than_the_limit(self):
        p = self.prismd()
        other = self.connect()
        before = self.memory(p)
        refused = 0
        for _ in range(CLIENTS):
            try:
                self.connect()
            except (ConnectionError, BrokenPipeError):
                refused += 1
        self.assertEqual(refused, CLIENTS - 255, "256 is the limit, and one was there")
        self.assertLess(self.latency(other), 1)
        self.assertLess(self.memory(p) - before, 50 * MIB)
        self.assertEqual(p.log().count("refusing connections"), 1, "said once")
        for c in self.open[1:]:
            c.close()
        wait_until(lambda: p.ctl("status").code == 0, "there is room again")

    def test_one_that_does_not_read_answers(self):
        p = self.prismd()
        other = self.connect()
        greedy = self.connect(timeout=5)
        before = self.memory(p)
        with self.assertRaises(OSError) as caught:
            for serial in range(1, 1_000_000):
                greedy.send(message(serial=serial))
        self.assertNotIsInstance(caught.exception, TimeoutError, "it is disconnected, not just not heard")
        self.assertLess(self.memory(p) - before, 50 * MIB)
        self.assertLess(self.latency(other), 1)
        self.assertIn("does not read", p.log())

    def test_one_that_does_not_read_signals(self):
        p = self.prismd()
        other = self.connect()
        deaf = self.connect(timeout=20)
        before = self.memory(p)
        # Each target is told of when it comes and when it goes.
        for i in range(3000):
            name = f"none{i:04}".encode()
            kind, answer = other.call("TrackCommand", signature="sa{sv}",
                                      body=struct.pack("<I", 8) + name + b"\0" + b"\0" * 3 + NO_OPTIONS)
            self.assertEqual(kind, METHOD_RETURN, answer)
            size = struct.unpack("<I", answer[:4])[0]
            path = answer[:4 + size + 1]
            kind, answer = other.call("Untrack", signature="oa{sv}", body=path + b"\0" * (-len(path) % 4) + NO_OPTIONS)
            self.assertEqual(kind, METHOD_RETURN, answer)
            if "does not read" in p.log():
                break
            if i > 600:
                time.sleep(0.01)  # a burst is forgiven: it is disconnected when it has read nothing for five seconds
        self.assertIn("does not read", p.log())
        self.assertLess(self.memory(p) - before, 50 * MIB)
        with self.assertRaises(ConnectionError):
            while True:
                deaf.receive()

    def test_one_that_dies_in_the_middle(self):
        p = self.prismd()
        other = self.connect()
        descriptors = self.descriptors(p)
        whole = message()
        for size in range(len(whole)):
            with Connection(self.path) as c:
                c.send(whole[:size])
        for opening in (b"", b"\0", b"\0AUTH", b"\0AUTH EXTERNAL 30\r\n", b"\0AUTH EXTERNAL 30\r\nBEG"):
            with Connection(self.path, authenticate=False) as c:
                c.send(opening)
        # Calls whose answer comes when the caller is gone.
        for member in ("GetSnapshot", "GetStatus"):
            for _ in range(50):
                with Connection(self.path) as c:
                    c.send(message(member))
        self.assertLess(self.latency(other), 1)
        wait_until(lambda: self.descriptors(p) <= descriptors + 2, "all of theirs are closed")
        self.assertTrue(p.alive())

    def malformed(self):
        whole = message()
        yield b"not a message at all" * 10
        yield b"\0" * 64
        yield b"X" + whole[1:]
        yield whole[:3] + b"\2" + whole[4:]
        yield whole[:4] + struct.pack("<I", 0xFFFFFFFF) + whole[8:]
        yield whole[:4] + struct.pack("<I", 128 * MIB) + whole[8:]
        yield whole[:12] + struct.pack("<I", 0xFFFFFFFF) + whole[16:]
        yield whole[:12] + struct.pack("<I", 64 * MIB) + whole[16:]
        yield message(path="not/a/path")
        yield message(interface="no interface")
        yield message(member="\x80\xff".encode("latin-1").decode("latin-1"))
        yield message(signature="a{sv", body=NO_OPTIONS)
        yield message(signature="a" * 64 + "s", body=NO_OPTIONS)
        yield message(body=struct.pack("<I", 0x7FFFFFFF) + b"\0" * 4)
        yield message(body=b"")
        random_numbers = random.Random(1)
        for at in range(len(whole)):
            for _ in range(2):
                yield whole[:at] + bytes([random_numbers.randrange(256)]) + whole[at + 1:]

    def test_malformed(self):
        p = self.prismd()
        other = self.connect()
        before = self.memory(p)
        n = 0
        for data in self.malformed():
            with Connection(self.path) as c:
                c.send(data)
                c.socket.shutdown(socket.SHUT_WR)
                try:
                    while c.socket.recv(65536):
                        pass
                except ConnectionError:
                    pass
            n += 1
        self.assertGreater(n, 200)
        self.assertTrue(p.alive(), p.log())
        self.assertLess(self.latency(other), 1)
        self.assertLess(self.memory(p) - before, 20 * MIB)

    def test_wrong_arguments(self):
        self.prismd()
        c = self.connect()
        for member, signature, body in (("GetStatus", "s", struct.pack("<I", 1) + b"x\0"), ("GetStatus", "", b""),
                                        ("TrackProcess", "a{sv}", NO_OPTIONS), ("NoSuchMethod", "a{sv}", NO_OPTIONS)):
            self.assertEqual(c.call(member, signature=signature, body=body)[0], ERROR, member)
        self.assertEqual(c.call()[0], METHOD_RETURN, "the connection is as good as before")

    def test_authentication(self):
        p = self.prismd()
        for opening in (b"GET / HTTP/1.1\r\n\r\n", b"\0AUTH ANONYMOUS\r\n", b"\0AUTH EXTERNAL 31303030\r\n",
                        b"\0" + b"A" * MIB):
            with Connection(self.path, authenticate=False, timeout=3) as c:
                try:
                    c.send(opening)
                    c.send(b"BEGIN\r\n" + message())
                    answer = c.socket.recv(4096)
                    self.assertNotIn(b"l\2", answer, "no method return")
                except (OSError, TimeoutError):
                    pass
        self.assertEqual(p.ctl("status").code, 0)

    def test_stop_with_clients_that_hang(self):
        p = self.prismd()
        self.connect(authenticate=False)
        self.connect().send(message()[:20])
        stuck = self.connect(timeout=1)
        try:
            # Its answers do not fit into the socket any more, but are too few to drop it.
            for serial in range(1, 200):
                stuck.send(message("ListTargets", serial=serial))
        except OSError:
            pass
        started = time.monotonic()
        self.assertEqual(p.stop(), 0)
        self.assertLess(time.monotonic() - started, 10)


class WithoutDBus(unittest.TestCase):
    def test_container(self):
        """Namespaces of its own, no systemd, no D-Bus installed: the private socket is enough."""
        system = System()
        self.addCleanup(system.stop)
        system.make_root()
        for path in ("usr/bin/dbus-daemon", "usr/share/dbus-1", "etc/dbus-1", "usr/bin/systemctl"):
            target = system.root / path
            if target.is_dir():
                shutil.rmtree(target)
            else:
                target.unlink()
        script = """
            set -e
            mount -t sysfs sysfs /sys
            /usr/sbin/prismd & prismd=$!
            for i in $(seq 100); do prismctl status >/dev/null 2>&1 && break; sleep 0.1; done
            prismctl status
            sleep 1000 & sleep=$!
            prismctl track --pid $sleep
            prismctl record start plain --for 1s
            prismctl --json report plain
            stat -c '%a' /run/prism /run/prism/bus /var/lib/prism
            kill $prismd
            wait $prismd
            test ! -e /run/prism/bus
            echo stopped
        """
        (system.root / "root/script").write_text(script, "utf-8")
        result = run("unshare", "--mount", "--pid", "--fork", "--net", "--uts", "--ipc", "--kill-child",
                         f"--root={system.root}", "--mount-proc", "env", "-i", "PATH=/usr/sbin:/usr/bin", "bash",
                         "/root/script")
        self.assertEqual(result.code, 0, result.out + result.err)
        self.assertIn("stopped", result.out)
        self.assertIn("not on the system bus", result.err)
        self.assertIn("750\n660\n750\n", result.out)
        self.assertIn("clock_nanosleep", result.out)


if __name__ == "__main__":
    tap.main()
