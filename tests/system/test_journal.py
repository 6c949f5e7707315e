#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What prismd writes to the journal: fields, message ids with their catalog entries, a limit; and plain lines elsewhere."""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

import tap
from prism import PRISMD, Prismd, bpf_unavailable, environment
from system import SOURCE, System, start_worker, wait_until

LINES_MAX = 200  # LOG_LINES_MAX

system = None


def setUpModule():
    global system
    system = System().start()
    system.must("systemctl", "enable", "--now", "prismd")
    system.worker = start_worker(system)


def tearDownModule():
    if system:
        system.stop()


def message_ids():
    text = (SOURCE / "daemon/messages.h").read_text("utf-8")
    return dict(re.findall(r'#define PRISM_MESSAGE_(\w+) "([0-9a-f]{32})"', text))


class Journal(unittest.TestCase):
    def entries(self, name, **fields):
        matches = [f"MESSAGE_ID={message_ids()[name]}", *[f"{k}={v}" for k, v in fields.items()]]
        return system.journal(*matches)

    def test_catalog(self):
        """Each id in the code has an entry, in the source and as journalctl knows it, and each entry an id."""
        ids = message_ids()
        catalog = (SOURCE / "units/prism.catalog").read_text("utf-8")
        self.assertEqual(sorted(ids.values()), sorted(re.findall(r"(?m)^-- ([0-9a-f]{32})$", catalog)))
        self.assertEqual(len(set(ids.values())), len(ids))
        used = "".join(p.read_text("utf-8") for p in (SOURCE / "daemon").glob("*.c"))
        self.assertEqual([name for name in ids if f"PRISM_MESSAGE_{name}" not in used], [])
        known = system.must("journalctl", "--list-catalog", *ids.values())
        for number in ids.values():
            self.assertRegex(known, rf"(?m)^{number} prism: .+$")

    def test_ready(self):
        self.assertTrue(self.entries("READY"))
        self.assertEqual({e["PRIORITY"] for e in self.entries("READY")}, {"6"})

    def test_target(self):
        name = f"pid:{system.worker}"
        system.must("prismctl", "track", "--pid", system.worker)
        system.must("prismctl", "untrack", name)
        for message in ("TARGET_ADDED", "TARGET_REMOVED"):
            entries = wait_until(lambda m=message: self.entries(m, PRISM_TARGET=name, PRISM_PID=system.worker), message)
            self.assertIn(name, entries[-1]["MESSAGE"])
        system.must("prismctl", "track", "--unit", "work.service")
        system.must("prismctl", "untrack", "--all")
        entry = wait_until(lambda: self.entries("TARGET_ADDED", PRISM_TARGET="unit:work.service"), "a unit")[-1]
        self.assertNotIn("PRISM_PID", entry)

    def test_recording(self):
        name = 'na"me with = and é'
        system.must("prismctl", "record", "start", name)
        system.must("prismctl", "record", "stop", name)
        for message in ("RECORDING_STARTED", "RECORDING_ENDED"):
            wait_until(lambda m=message: self.entries(m, PRISM_RECORDING=name), message)

    def test_explanation(self):
        system.must("prismctl", "track", "--pid", system.worker)
        self.addCleanup(system.must, "prismctl", "untrack", "--all")
        number = message_ids()["TARGET_ADDED"]
        wait_until(lambda: f"Subject: pid:{system.worker} is followed now" in
                   system.must("journalctl", "--no-pager", "-x", f"MESSAGE_ID={number}"), "journalctl -x explains it")

    def test_journald_restart(self):
        pid = system.main_pid()
        system.must("systemctl", "restart", "systemd-journald")
        system.must("prismctl", "track", "--cgroup", "/system.slice")
        system.must("prismctl", "untrack", "--all")
        wait_until(lambda: self.entries("TARGET_REMOVED", PRISM_TARGET="cgroup:/system.slice"), "it still logs")
        self.assertEqual(system.main_pid(), pid)

    def test_z_limit(self):
        """Last: it uses up what may be written."""
        before = len(system.journal())
        program = ("import dbus\n"
                   "o=dbus.SystemBus().get_object('org.prism.Prism1','/org/prism/Prism1',introspect=False)\n"
                   "m=dbus.Interface(o,'org.prism.Prism1.Manager')\n"
                   "e=dbus.Dictionary({},signature='sv')\n"
                   "for i in range(400): m.Untrack(m.TrackCommand(f'none-{i}',e,signature='sa{sv}'),e,signature='oa{sv}')\n")
        system.must("python3", "-c", program)
        written = len(system.journal()) - before
        self.assertLessEqual(written, 2 * LINES_MAX)
        self.assertGreater(written, LINES_MAX // 4)
        entry = wait_until(lambda: self.entries("LOG_LIMIT"), "what was left out is said", 60)[-1]
        left_out = int(re.match(r"(\d+) messages", entry["MESSAGE"])[1])
        self.assertGreaterEqual(left_out + written, 800)


class Plain(unittest.TestCase):
    def test_stderr(self):
        """Without a journal, lines to stderr."""
        reason = bpf_unavailable()
        if reason:
            raise tap.NeedsBpf(reason)
        with Prismd() as p:
            p.must("record", "start", "plain")
            p.must("record", "stop", "plain")
            self.assertIn('prismd: recording "plain" started\n', p.log())

    def test_stream_of_another(self):
        """JOURNAL_STREAM is inherited; what it names is not always where stderr goes."""
        with tempfile.TemporaryDirectory() as directory:
            result = subprocess.run([PRISMD, "--config", f"{directory}/missing", "--state-dir", directory],
                                    env=environment(JOURNAL_STREAM="1:2"), capture_output=True, check=False, text=True)
            self.assertEqual(result.returncode, 1)
            self.assertIn("prismd: cannot read the configuration", result.stderr)


if __name__ == "__main__":
    tap.main()
