#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Installed, enabled, used over the bus, reloaded, stopped and removed, as an administrator does it."""

import json
import os
import pathlib
import re
import subprocess
import sys
import time
import unittest
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

import tap
from prism import run
from system import MANAGER, SOURCE, System, start_worker, wait_until

NAME, MANAGER_PATH, MANAGER_INTERFACE = MANAGER
CAPABILITIES = {"cap_bpf": 39, "cap_perfmon": 38, "cap_sys_ptrace": 19, "cap_dac_read_search": 2}
EXPOSURE_MAX = 2.5

system = None


def setUpModule():
    global system
    system = System().start()
    system.must("systemctl", "enable", "--now", "prismd")
    system.worker = start_worker(system)


def tearDownModule():
    if system:
        system.stop()


def properties(unit, *names):
    out = system.must("systemctl", "show", unit, *[f"--property={n}" for n in names])
    return dict(line.split("=", 1) for line in out.splitlines())


def kernel_ids(host_pid):
    """The BPF programs, maps and links that a process holds open."""
    ids = set()
    for entry in os.listdir(f"/proc/{host_pid}/fdinfo"):
        with open(f"/proc/{host_pid}/fdinfo/{entry}", encoding="utf-8") as f:
            ids.update(re.findall(r"^((?:prog|map|link)_id):\s*(\d+)$", f.read(), re.MULTILINE))
    return ids


def still_there(kind_id, number):
    kind = kind_id.removesuffix("_id")
    return run("bpftool", kind, "show", "id", number).code == 0


def files():
    """Files that are installed or written in the container, without what a running system writes by itself."""
    skip = ("proc", "sys", "dev", "run", "tmp", "var/log", "var/tmp", "var/cache", "var/lib/systemd", "root")
    found = set()
    for directory, names, plain in os.walk(system.root):
        relative = os.path.relpath(directory, system.root)
        names[:] = [n for n in names if os.path.normpath(os.path.join(relative, n)) not in skip]
        found.update(os.path.normpath(os.path.join(relative, n)) for n in plain)
    return found


def interfaces(text):
    """Interfaces of an introspection document, as something that can be compared."""
    found = {}
    for interface in xml.etree.ElementTree.fromstring(text).iter("interface"):
        members = found.setdefault(interface.get("name"), {})
        for member in interface:
            if member.tag == "annotation":
                continue
            arguments = [(a.get("name"), a.get("type"), a.get("direction", "out" if member.tag == "signal" else "in"))
                         for a in member.iter("arg")]
            notes = {(a.get("name"), a.get("value")) for a in member.iter("annotation")}
            members[f"{member.tag} {member.get('name')}"] = (member.get("type"), member.get("access"), arguments, notes)
    return found


class A_Installed(unittest.TestCase):
    def test_unit_runs(self):
        p = properties("prismd", "ActiveState", "Type", "User", "StatusText", "WatchdogUSec", "OOMScoreAdjust")
        self.assertEqual(p["ActiveState"], "active")
        self.assertEqual((p["Type"], p["User"]), ("notify", "prism"))
        self.assertRegex(p["StatusText"], "^Following")
        self.assertEqual(p["WatchdogUSec"], "30s")
        self.assertGreater(int(p["OOMScoreAdjust"]), 0)
        self.assertEqual(system.must("systemctl", "is-enabled", "prismd").strip(), "enabled")

    def test_privileges(self):
        status = system.must("cat", f"/proc/{system.main_pid()}/status")
        wanted = sum(1 << bit for bit in CAPABILITIES.values())
        for line in ("CapEff", "CapBnd", "CapPrm"):
            self.assertEqual(int(re.search(rf"^{line}:\s*(\w+)$", status, re.MULTILINE)[1], 16), wanted, line)
        self.assertRegex(status, r"(?m)^NoNewPrivs:\s*1$")
        self.assertRegex(status, r"(?m)^Seccomp:\s*2$")
        self.assertNotRegex(status, r"(?m)^Uid:\s*0\b")

    def test_exposure(self):
        out = system.must("systemd-analyze", "security", "--no-pager", "prismd")
        level = float(re.search(r"Overall exposure level for prismd.service: ([\d.]+)", out)[1])
        self.assertLessEqual(level, EXPOSURE_MAX)

    def test_files(self):
        for path, wanted in (("/var/lib/prism", "750 prism prism"), ("/run/prism", "750 prism prism"),
                             ("/var/lib/prism/prism.db", "640 prism prism"), ("/run/prism/bus", "660 prism prism")):
            self.assertEqual(system.must("stat", "-c", "%a %U %G", path).strip(), wanted, path)
        self.assertEqual(system.must("systemd-analyze", "verify", "--man=no", "/usr/lib/systemd/system/prismd.service"),
                         "")

    def test_maps_fit(self):
        limit = int(properties("prismd", "MemoryMax")["MemoryMax"])
        status = system.must_call("GetStatus", "a{sv}", "0")[0]
        self.assertGreater(limit, 4 * (status["BpfMapBytes"]["data"] + status["ResidentBytes"]["data"]))

    def test_every_feature_works_under_the_unit(self):
        features = system.must_call("GetStatus", "a{sv}", "0")[0]["Features"]["data"]
        self.assertEqual({k: v for k, v in features.items() if v != "ok"}, {})


class B_Bus(unittest.TestCase):
    def test_introspection(self):
        """The installed XML, what the bus shows and what the code decides about: all the same."""
        target = system.must_call("TrackUnit", "sa{sv}", "work.service", "0")[0]
        recording = system.must_call("StartRecording", "sa{sv}", "introspected", "0")[0]
        self.addCleanup(system.must_call, "DeleteRecording", "oa{sv}", recording, "0")
        self.addCleanup(system.must_call, "StopRecording", "oa{sv}", recording, "0")
        self.addCleanup(system.must_call, "Untrack", "oa{sv}", target, "0")
        shown = {}
        for path in (MANAGER_PATH, target, recording):
            shown.update(interfaces(system.must("busctl", "introspect", "--xml-interface", NAME, path)))
        shown = {k: v for k, v in shown.items() if k.startswith(NAME)}
        installed = interfaces((system.root / "usr/share/dbus-1/interfaces/org.prism.Prism1.xml").read_text("utf-8"))
        self.assertEqual(sorted(installed), sorted(shown))
        for name, members in installed.items():
            self.assertEqual(members, shown[name], name)

        code = (SOURCE / "daemon/access.c").read_text("utf-8")
        decided = set(re.findall(r'\{ PRISM_INTERFACE_MANAGER, "(\w+)", PRISM_BUS_NAME "\.(?:\w+)" \}', code))
        methods = {m.split()[1] for m in installed[MANAGER_INTERFACE] if m.startswith("method ")}
        self.assertEqual(decided, methods)

        actions = set(re.findall(r'PRISM_BUS_NAME "(\.\w+)" \}', code))
        policy = (system.root / "usr/share/polkit-1/actions/org.prism.Prism1.policy").read_text("utf-8")
        self.assertEqual({NAME + a for a in actions}, set(re.findall(r'<action id="([\w.]+)">', policy)))

        names = (SOURCE / "dbus/names.h").read_text("utf-8")
        errors = set(re.findall(r'PRISM_BUS_NAME "\.Error\.(\w+)"', names))
        documented = set(re.findall(r"[A-Z]\w+", " ".join(re.findall(
            r"Errors?: ([^<]*?)(?:-->|\.)", (SOURCE / "dbus/org.prism.Prism1.xml").read_text("utf-8")))))
        self.assertLessEqual(errors - {"StoreFailed"}, documented)

    def test_objects(self):
        target = system.must_call("TrackProcess", "ua{sv}", system.worker, "0")[0]
        self.addCleanup(system.must_call, "Untrack", "oa{sv}", target, "0")
        objects = json.loads(system.must("busctl", "--json=short", "call", NAME, MANAGER_PATH,
                                         "org.freedesktop.DBus.ObjectManager", "GetManagedObjects"))["data"][0]
        self.assertIn(f"{NAME}.Target", objects[target])
        self.assertEqual(objects[target][f"{NAME}.Target"]["Name"]["data"], f"pid:{system.worker}")
        self.assertIn(target, system.must("busctl", "tree", "--list", NAME))

    def test_errors(self):
        for arguments, error in ((("TrackProcess", "ua{sv}", 4000000, "0"), "there is no process 4000000"),
                                 (("TrackUnit", "sa{sv}", "no-such.service", "0"), "no unit no-such.service"),
                                 (("TrackCgroup", "sa{sv}", "/no/such", "0"), "there is no cgroup /no/such"),
                                 (("Untrack", "oa{sv}", "/org/prism/Prism1/target/9999", "0"), "there is no target"),
                                 (("GetStatus", "a{sv}", "1", "wrong", "s", "x"), 'there is no option "wrong"')):
            result = system.call(*arguments)
            self.assertEqual(result.code, 1, arguments)
            self.assertIn(error, result.err)

    def test_signals(self):
        monitor = system.popen("busctl", "monitor", "--json=short", NAME)
        try:
            time.sleep(1)
            target = system.must_call("TrackProcess", "ua{sv}", system.worker, "0")[0]
            recording = system.must_call("StartRecording", "sa{sv}", "signals", "0")[0]
            system.must_call("StopRecording", "oa{sv}", recording, "0")
            brief = system.popen("sleep", "0.3")
            child = wait_until(lambda: system.run("pgrep", "-n", "-x", "sleep").out.strip(), "sleep runs")
            system.must_call("TrackProcess", "ua{sv}", child, "0")
            brief.wait(10)
            time.sleep(2)
            system.must_call("Untrack", "oa{sv}", target, "0")
            system.must_call("DeleteRecording", "oa{sv}", recording, "0")
            time.sleep(1)
        finally:
            # The monitor inside, so that what it has is written.
            system.run("pkill", "-x", "busctl")
            out = monitor.communicate(timeout=20)[0].decode()
        seen = [json.loads(line) for line in out.splitlines()]
        signals = [(m["path"], m["member"], m["payload"]["data"]) for m in seen if m["type"] == "signal"]

        def signal(member, path, condition=lambda data: True):
            self.assertTrue(any(m == member and p == path and condition(d) for p, m, d in signals),
                            f"{member} on {path} in {[s[:2] for s in signals]}")

        signal("InterfacesAdded", MANAGER_PATH, lambda d: d[0] == target)
        signal("ProcessFound", MANAGER_PATH, lambda d: d[:2] == [target, system.worker])
        signal("ProcessGone", MANAGER_PATH, lambda d: d[1] == int(child) and d[2] == "sleep")
        signal("PropertiesChanged", MANAGER_PATH, lambda d: d[1].get("Tracking", {}).get("data") is True)
        signal("PropertiesChanged", MANAGER_PATH, lambda d: d[1].get("Recording", {}).get("data") is True)
        signal("PropertiesChanged", MANAGER_PATH, lambda d: d[1].get("Recording", {}).get("data") is False)
        signal("InterfacesAdded", MANAGER_PATH, lambda d: d[0] == recording)
        signal("PropertiesChanged", recording, lambda d: d[1].get("State", {}).get("data") == "finished")
        signal("PropertiesChanged", recording, lambda d: d[1].get("EndTime", {}).get("data", 0) > 0)
        signal("InterfacesRemoved", MANAGER_PATH, lambda d: d[0] == target)
        signal("InterfacesRemoved", MANAGER_PATH, lambda d: d[0] == recording)
        counters = [d for _, m, d in signals if m == "PropertiesChanged" and "Threads" in d[1]]
        self.assertEqual(counters, [], "counters are not told")


class C_Use(unittest.TestCase):
    def record(self, *what):
        system.must("prismctl", "track", *what)
        try:
            name = "use " + " ".join(what)
            system.must("prismctl", "record", "start", name.replace("/", "_"), "--for", "2s")
            report = json.loads(system.must("prismctl", "--json", "report", name.replace("/", "_")))
        finally:
            system.must("prismctl", "untrack", "--all")
        text = json.dumps(report)
        self.assertIn("futex", text, "the workers' lock is in the report")
        self.assertIn(f'"pid": {system.worker}'.replace(" ", ""), text.replace(" ", ""))

    def test_pid(self):
        self.record("--pid", str(system.worker))

    def test_unit(self):
        self.record("--unit", "work.service")

    def test_cgroup(self):
        self.record("--cgroup", "/system.slice/work.service")

    def test_unit_is_followed_across_restarts(self):
        system.must("systemd-run", "--quiet", "--unit=again", "--property=Restart=always", "--property=RestartSec=100ms",
                    "sleep", "1000")
        self.addCleanup(system.must, "systemctl", "stop", "again")
        system.must("prismctl", "track", "--unit", "again.service")
        self.addCleanup(system.must, "prismctl", "untrack", "--all")
        first = system.main_pid("again.service")
        system.must("kill", str(first))
        second = wait_until(lambda: system.main_pid("again.service") not in (0, first) and
                            system.main_pid("again.service"), "restarted")
        wait_until(lambda: f'"pid":{second}' in system.run("prismctl", "--json", "processes").out.replace(" ", ""),
                   "the new process is followed")

    def test_member_reads_the_database(self):
        system.must("useradd", "-G", "prism", "reader")
        out = system.must("prismctl", "--json", "query", "SELECT count(*) AS n FROM recording", user="reader")
        self.assertIn('"n"', out)

    def test_examples(self):
        """docs/examples: all of it over busctl alone, and in Python."""
        directory = system.root / "opt/examples"
        directory.mkdir(parents=True, exist_ok=True)
        for name in ("record-with-busctl", "record-with-python"):
            (directory / name).write_text((SOURCE / "docs/examples" / name).read_text("utf-8"), "utf-8")
            (directory / name).chmod(0o755)
            for address in ((), ("env", "PRISM_ADDRESS=unix:path=/run/prism/bus")):
                out = system.must(*address, f"/opt/examples/{name}", str(system.worker), "2")
                self.assertIn("finished", out, name)
                self.assertRegex(out, rf"\b{system.worker}\b", name)
        self.assertEqual(system.must_call("ListTargets", "a{sv}", "0")[0], [])


class D_Life(unittest.TestCase):
    def test_reload(self):
        self.addCleanup(system.must, "systemctl", "reload", "prismd")
        self.addCleanup(system.must, "rm", "/etc/prism/prismd.conf.d/10-test.conf")
        pid = system.main_pid()
        system.write("/etc/prism/prismd.conf.d/10-test.conf", "[Limits]\nTargets=1\nThreads=128\n")
        system.must("systemctl", "reload", "prismd")
        system.must("prismctl", "track", "--unit", "work.service")
        self.addCleanup(system.must, "prismctl", "untrack", "--all")
        result = system.run("prismctl", "track", "--pid", "1")
        self.assertEqual(result.code, 1)
        self.assertIn("which is the limit", result.err)
        self.assertEqual(system.main_pid(), pid)
        self.assertEqual(properties("prismd", "ActiveState")["ActiveState"], "active")
        wait_until(lambda: any("Threads=" in e["MESSAGE"] and "started again" in e["MESSAGE"]
                               for e in system.journal()), "what needs a restart is said")

    def test_activation(self):
        system.must("systemctl", "stop", "prismd")
        result = system.run("prismctl", "status")
        self.assertEqual(result.code, 1)
        self.assertIn("no prismd runs", result.err)
        result = system.run("prismctl", "--address", "system", "status")
        self.assertEqual(result.code, 1)
        self.assertEqual(properties("prismd", "ActiveState")["ActiveState"], "inactive", "status starts nothing")

        self.assertEqual(system.must_call("ListTargets", "a{sv}", "0"), [[]])
        self.assertEqual(properties("prismd", "ActiveState")["ActiveState"], "active", "a call starts it")

        system.must("systemctl", "disable", "--now", "prismd")
        self.addCleanup(system.must, "systemctl", "enable", "--now", "prismd")
        self.assertEqual(system.call("ListTargets", "a{sv}", "0").code, 1)
        self.assertEqual(properties("prismd", "ActiveState")["ActiveState"], "inactive",
                         "what is disabled is not started by the bus")

    def test_watchdog(self):
        self.addCleanup(system.must, "systemctl", "daemon-reload")
        self.addCleanup(system.must, "rm", "-r", "/run/systemd/system/prismd.service.d")
        system.write("/run/systemd/system/prismd.service.d/test.conf",
                     "[Service]\nWatchdogSec=2s\nTimeoutAbortSec=2s\n")
        system.must("systemctl", "daemon-reload")
        system.must("systemctl", "restart", "prismd")
        pid = system.main_pid()
        time.sleep(5)
        self.assertEqual(system.main_pid(), pid, "a healthy one is left alone")
        system.must("kill", "-STOP", str(pid))
        new = wait_until(lambda: system.main_pid() not in (0, pid) and system.main_pid(), "a stopped one is replaced", 30)
        wait_until(lambda: system.run("prismctl", "status").code == 0, "the new one answers")
        self.assertNotEqual(new, pid)

    def test_bus_restart(self):
        pid = system.main_pid()
        system.must("prismctl", "track", "--unit", "work.service")
        system.must("systemctl", "restart", "dbus")
        wait_until(lambda: NAME in system.run("busctl", "list", "--acquired", "--no-legend").out, "back on the bus", 60)
        self.assertEqual(system.main_pid(), pid, "it is the same prismd")
        names = [system.must("busctl", "get-property", NAME, path, f"{NAME}.Target", "Name")
                 for path in system.must_call("ListTargets", "a{sv}", "0")[0]]
        self.assertEqual(names, ['s "unit:work.service"\n'])
        system.must("prismctl", "untrack", "--all")

    def test_stop_leaves_nothing(self):
        system.must("prismctl", "track", "--unit", "work.service")
        held = kernel_ids(system.host_pid(system.main_pid()))
        self.assertGreater(len([i for i in held if i[0] == "prog_id"]), 3)
        self.assertTrue(all(still_there(*i) for i in list(held)[:5]))
        system.must("systemctl", "stop", "prismd")
        self.addCleanup(system.must, "systemctl", "start", "prismd")
        p = properties("prismd", "ActiveState", "Result")
        self.assertEqual((p["ActiveState"], p["Result"]), ("inactive", "success"))
        wait_until(lambda: not [i for i in held if still_there(*i)], "its programs, maps and links are gone")
        self.assertEqual(system.run("ls", "/run/prism").code, 2)
        self.assertNotIn(NAME, system.must("busctl", "list", "--acquired", "--no-legend"))
        self.assertEqual(system.run("pgrep", "prismd").code, 1)


class E_Removed(unittest.TestCase):
    def test_uninstall(self):
        """Only what was recorded stays, and the user who owns it."""
        system.must("systemctl", "disable", "--now", "prismd")
        for path in system.installed_files:
            (system.root / path).unlink()
        before = subprocess.run([SOURCE / "tools/system-image"], capture_output=True, check=True, text=True).stdout.strip()
        system.must("systemctl", "daemon-reload")
        system.must("systemctl", "reload", "dbus")
        left = sorted(path for path in files()
                      if "prism" in path and not os.path.lexists(os.path.join(before, path)))
        self.assertEqual(left, [p for p in left if p.startswith("var/lib/prism/")])
        self.assertIn("var/lib/prism/prism.db", left)
        self.assertEqual(system.run("systemctl", "cat", "prismd").code, 1)
        self.assertEqual(system.run("busctl", "introspect", NAME, MANAGER_PATH).code, 1)


if __name__ == "__main__":
    tap.main()
