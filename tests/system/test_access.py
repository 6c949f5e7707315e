#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Who may use prism: root, members of group prism, and strangers as polkit says; asked without waiting."""

import json
import pathlib
import signal
import os
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

import tap
from system import MANAGER, System, start_worker, wait_until

NAME, PATH, INTERFACE = MANAGER
RULES = "/etc/polkit-1/rules.d/10-prism-test.rules"
ACTIONS = ("inspect", "track", "record", "delete")

system = None


def setUpModule():
    global system
    system = System().start()
    system.must("useradd", "stranger")
    system.must("useradd", "-G", "prism", "member")
    system.must("systemctl", "enable", "--now", "prismd")
    system.must("systemctl", "start", "polkit")
    system.worker = start_worker(system)


def tearDownModule():
    if system:
        system.stop()


def restart_polkit():
    system.run("systemctl", "reset-failed", "polkit")  # it was restarted too often for systemd
    system.must("systemctl", "restart", "polkit")


def set_rule(actions):
    """An administrator's rule: the stranger may do this."""
    wanted = json.dumps([f"{NAME}.{a}" for a in actions])
    system.write(RULES, "polkit.addRule(function(action, subject) {\n"
                 f"    if (subject.user == 'stranger' && {wanted}.indexOf(action.id) >= 0) return polkit.Result.YES;\n"
                 "});\n")
    restart_polkit()


def no_rule():
    system.must("rm", "-f", RULES)
    restart_polkit()


def everything(user):
    """Does all that the bus offers as this user; yields which actions were refused, and the refusals."""
    refused, words = set(), []

    def attempt(action, *command):
        result = system.run(*command, user=user)
        if result.code != 0:
            refused.add(action)
            words.append(result.err.strip())
        return json.loads(result.out)["data"] if result.code == 0 and result.out.strip() else None

    def call(action, method, *arguments):
        return attempt(action, "busctl", "--json=short", "call", *MANAGER, method, *arguments)

    call("inspect", "GetStatus", "a{sv}", "0")
    call("inspect", "ListTargets", "a{sv}", "0")
    call("inspect", "ListRecordings", "a{sv}", "0")
    call("inspect", "GetSnapshot", "a{sv}", "0")
    attempt("inspect", "busctl", "--json=short", "get-property", NAME, PATH, INTERFACE, "Version")
    attempt("inspect", "busctl", "--json=short", "call", NAME, PATH, "org.freedesktop.DBus.Properties", "GetAll", "s",
            INTERFACE)
    attempt("inspect", "busctl", "--json=short", "call", NAME, PATH, "org.freedesktop.DBus.ObjectManager",
            "GetManagedObjects")
    target = call("track", "TrackProcess", "ua{sv}", str(system.worker), "0")
    recording = call("record", "StartRecording", "sa{sv}", f"of {user}", "0")
    call("record", "StopRecording", "oa{sv}", recording[0] if recording else "/org/prism/Prism1/recording/1", "0")
    call("record", "AddKpi", "sa(td)a{sv}", "requests", "1", "1700000000000000000", "42.5", "0")
    call("delete", "DeleteRecording", "oa{sv}", recording[0] if recording else "/org/prism/Prism1/recording/1", "0")
    call("track", "Untrack", "oa{sv}", target[0] if target else "/org/prism/Prism1/target/1", "0")
    return refused, words


class Users(unittest.TestCase):
    def test_root(self):
        self.assertEqual(everything(None), (set(), []))

    def test_member(self):
        self.assertEqual(everything("member"), (set(), []))

    def test_stranger(self):
        refused, words = everything("stranger")
        self.assertEqual(refused, set(ACTIONS))
        self.assertEqual(len(words), 13, "each call was refused")
        for w in words:
            self.assertIn("member of group prism", w)
        self.assertEqual(system.must_call("ListTargets", "a{sv}", "0"), [[]])

    def test_stranger_with_a_rule(self):
        self.addCleanup(no_rule)
        set_rule(ACTIONS)
        self.assertEqual(everything("stranger"), (set(), []))

    def test_stranger_with_a_rule_for_one_action(self):
        self.addCleanup(no_rule)
        for action in ("inspect", "track"):
            set_rule([action])
            refused, _ = everything("stranger")
            self.assertEqual(refused, set(ACTIONS) - {action})

    def test_anyone_may_introspect_and_ping(self):
        system.must("busctl", "call", NAME, PATH, "org.freedesktop.DBus.Peer", "Ping", user="stranger")
        system.must("busctl", "call", NAME, PATH, "org.freedesktop.DBus.Introspectable", "Introspect", user="stranger")

    def test_prismctl_says_why(self):
        result = system.run("prismctl", "status", user="stranger")
        self.assertEqual(result.code, 1)
        self.assertIn("member of group prism", result.err)

    def test_without_polkit(self):
        system.must("systemctl", "mask", "--now", "polkit")
        self.addCleanup(restart_polkit)
        self.addCleanup(system.must, "systemctl", "unmask", "polkit")
        self.assertEqual(everything(None)[0], set())
        self.assertEqual(everything("member")[0], set())
        self.assertEqual(everything("stranger")[0], set(ACTIONS))
        self.assertIn("only root and members of group prism", system.run("prismctl", "status", user="stranger").err)

    def test_refusals_are_logged(self):
        system.run("prismctl", "status", user="stranger")
        self.addCleanup(no_rule)
        system.write(RULES, "polkit.addRule(function(a, s) { if (a.id.indexOf('org.prism.') == 0 && s.user == 'stranger')"
                     " return polkit.Result.NO; });\n")
        restart_polkit()
        system.run("prismctl", "status", user="stranger")
        uid = system.must("id", "-u", "stranger").strip()
        wait_until(lambda: [e for e in system.journal("MESSAGE_ID=339d1e54bb854cefad827968e2f4f0c6")
                            if f"to user {uid}" in e["MESSAGE"]], "the refusal is in the journal")


class Socket(unittest.TestCase):
    def test_private_socket(self):
        address = "--address=unix:path=/run/prism/bus"
        system.must("prismctl", address, "status")
        system.must("prismctl", address, "status", user="member")
        result = system.run("prismctl", address, "status", user="stranger")
        self.assertEqual(result.code, 1)
        self.assertIn("group prism", result.err)

    def test_peer_credentials_decide(self):
        """The modes of files are not what keeps a stranger out."""
        system.must("chmod", "755", "/run/prism")
        system.must("chmod", "666", "/run/prism/bus")
        self.addCleanup(system.must, "chmod", "750", "/run/prism")
        self.addCleanup(system.must, "chmod", "660", "/run/prism/bus")
        result = system.run("prismctl", "--address=unix:path=/run/prism/bus", "status", user="stranger")
        self.assertEqual((result.code, result.out), (1, ""))
        wait_until(lambda: [e for e in system.journal("MESSAGE_ID=339d1e54bb854cefad827968e2f4f0c6")
                            if "refused on /run/prism/bus" in e["MESSAGE"]], "it was refused when it connected")
        system.must("prismctl", "--address=unix:path=/run/prism/bus", "status", user="member")

    def test_database(self):
        self.assertNotEqual(system.run("cat", "/var/lib/prism/prism.db", user="stranger").code, 0)
        self.assertEqual(system.run("prismctl", "query", "SELECT 1", user="stranger").code, 1)


class Questions(unittest.TestCase):
    def questions(self, *flags):
        """What polkit is asked when the stranger asks for the status."""
        monitor = system.popen("busctl", "monitor", "--json=short", "org.freedesktop.PolicyKit1")
        try:
            time.sleep(0.7)
            system.call("GetStatus", "a{sv}", "0", user="stranger", flags=flags)
            time.sleep(0.3)
        finally:
            system.run("pkill", "-x", "busctl")
            out = monitor.communicate(timeout=20)[0].decode()
        return [m["payload"]["data"] for m in map(json.loads, out.splitlines())
                if m.get("member") == "CheckAuthorization"]

    def test_interactive_authorization(self):
        """Polkit may ask a person only if the caller allows it."""
        for allowed in (True, False):
            questions = self.questions(f"--allow-interactive-authorization={'yes' if allowed else 'no'}")
            self.assertEqual(len(questions), 1)
            subject, action, _, flags, _ = questions[0]
            self.assertEqual((subject[0], action, flags), ("system-bus-name", f"{NAME}.inspect", int(allowed)))

    def test_nobody_is_asked_about_root_and_members(self):
        system.must("busctl", "monitor", "--help")
        monitor = system.popen("busctl", "monitor", "--json=short", "org.freedesktop.PolicyKit1")
        try:
            time.sleep(0.7)
            everything(None)
            everything("member")
        finally:
            system.run("pkill", "-x", "busctl")
            out = monitor.communicate(timeout=20)[0].decode()
        self.assertNotIn("CheckAuthorization", out)

    def test_polkit_that_does_not_answer(self):
        """It holds up only those who need it; their calls are answered when it answers."""
        self.addCleanup(no_rule)
        set_rule(["inspect"])
        everything("stranger")
        polkit = system.host_pid(system.main_pid("polkit.service"))
        os.kill(polkit, signal.SIGSTOP)
        try:
            strangers = [system.popen("busctl", "call", *MANAGER, "GetStatus", "a{sv}", "0", user="stranger")
                         for _ in range(5)]
            time.sleep(1)
            started = time.monotonic()
            system.must_call("GetStatus", "a{sv}", "0")
            member = system.call("GetStatus", "a{sv}", "0", user="member")
            took = time.monotonic() - started
            self.assertEqual(member.code, 0)
            self.assertLess(took, 2, "two commands, started, asked and answered")
            self.assertTrue(all(s.poll() is None for s in strangers), "the strangers' calls are held")
        finally:
            os.kill(polkit, signal.SIGCONT)
        for s in strangers:
            out = s.communicate(timeout=20)[0].decode()
            self.assertEqual(s.returncode, 0)
            self.assertIn("StorePath", out)

    def test_one_stranger_cannot_take_all_places(self):
        polkit = system.host_pid(system.main_pid("polkit.service"))
        program = ("import dbus,sys\n"
                   "bus=dbus.SystemBus()\n"
                   f"o=bus.get_object('{NAME}','{PATH}',introspect=False)\n"
                   "m=[]\n"
                   "from dbus.lowlevel import MethodCallMessage\n"
                   "for i in range(100):\n"
                   f"    c=MethodCallMessage('{NAME}','{PATH}','{INTERFACE}','GetStatus')\n"
                   "    c.append({},signature='a{sv}')\n"
                   "    m.append(bus.send_message_with_reply(c, lambda r: None, timeout_s=60))\n"
                   "bus.flush()\n"
                   "for p in m[32:]: p.block()\n"
                   "print('answered', flush=True)\n"
                   "for p in m[:32]: p.block()\n")
        os.kill(polkit, signal.SIGSTOP)
        try:
            stranger = system.popen("python3", "-c", program, user="stranger")
            # 32 are held; the others are told at once that they are too many.
            self.assertEqual(stranger.stdout.readline(), b"answered\n")
            self.assertIsNone(stranger.poll())
            system.must("prismctl", "status")
            system.must("prismctl", "status", user="member")
        finally:
            os.kill(polkit, signal.SIGCONT)
        stranger.communicate(timeout=20)
        self.assertEqual(stranger.returncode, 0)

    def test_signals_reach_only_those_who_may(self):
        """They name other users' processes."""
        for user, sees in (("stranger", False), ("member", True)):
            listener = system.popen("dbus-monitor", "--system", f"type='signal',sender='{NAME}'", user=user)
            time.sleep(1)
            target = system.must_call("TrackProcess", "ua{sv}", str(system.worker), "0")[0]
            time.sleep(0.5)
            system.must_call("Untrack", "oa{sv}", target, "0")
            time.sleep(0.5)
            system.must("pkill", "-x", "dbus-monitor")
            out = listener.communicate(timeout=20)[0].decode()
            self.assertIn("NameAcquired", out, "it listens")
            if sees:
                self.assertIn("InterfacesAdded", out)
            else:
                for member in ("InterfacesAdded", "InterfacesRemoved", "ProcessFound", "PropertiesChanged"):
                    self.assertNotIn(member, out)


if __name__ == "__main__":
    tap.main()
