#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""prismd's life: targets that come and go, clients at once, sudden death, and what is left after it."""

import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

import tap
from prism import PRISMCTL, NeedsBpf, Prismd, bpf_unavailable, environment, run
from recording import Recording, conservation

WAIT = 10


def wait_until(condition, what, seconds=WAIT):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.1)


def sleeper(name="prism-sleeper", seconds=60):
    """A process with that name, asleep in steps so that it has something to record."""
    return subprocess.Popen(["/bin/bash", "-c", f"exec -a {name} /usr/bin/python3 -c "
                             f"'import time\nfor i in range({seconds * 20}): time.sleep(0.05)'"])


def end(process):
    process.kill()
    process.wait()


class Life(unittest.TestCase):
    def setUp(self):
        reason = bpf_unavailable()
        if reason:
            raise NeedsBpf(reason)

    def prismd(self, **options):
        p = Prismd(**options)
        self.addCleanup(p.remove)
        self.addCleanup(p.kill)
        return p.start()

    def sleeper(self, *arguments):
        process = sleeper(*arguments)
        self.addCleanup(end, process)
        return process

    def tracked(self, prismd):
        result = prismd.ctl("--json", "processes")
        return {row["pid"] for row in find_rows(json.loads(result.out))} if result.code == 0 else set()


def find_rows(value):
    return value if isinstance(value, list) else next(v for v in value.values() if isinstance(v, list))


class Death(Life):
    def test_kill_during_a_recording(self):
        p = self.prismd()
        process = self.sleeper()
        p.must("track", "--pid", process.pid)
        p.must("record", "start", "cut short")
        time.sleep(3.5)
        p.kill()
        with p.database() as db:
            self.assertEqual(db.execute("PRAGMA integrity_check").fetchone()[0], "ok")
            before = db.execute("SELECT count(*) FROM thread_time").fetchone()[0]
        self.assertGreater(before, 0, "nothing of three seconds was written")

        p.start()
        with p.database() as db:
            self.assertEqual(db.execute("PRAGMA integrity_check").fetchone()[0], "ok")
            row = db.execute("SELECT * FROM recording WHERE name = 'cut short'").fetchone()
            self.assertEqual(row["state"], "interrupted")
            self.assertGreater(row["end_ns"] - row["start_ns"], 10 ** 9)
            self.assertEqual(db.execute("SELECT count(*) FROM thread_time").fetchone()[0], before)
        p.must("report", "cut short")
        p.must("track", "--pid", process.pid)
        p.must("record", "start", "next")
        time.sleep(1.5)
        p.must("record", "stop", "next")
        recording = Recording(p, "next")
        self.addCleanup(recording.close)
        self.assertEqual(conservation(recording), [])
        # It is the same process and the same thread as before.
        self.assertEqual(recording.db.execute("SELECT count(*) FROM process WHERE pid = ?", (process.pid,)).fetchone()[0], 1)

    def test_nothing_is_left_in_the_kernel(self):
        for how in ("stop", "kill"):
            with self.subTest(how):
                p = self.prismd()
                process = self.sleeper()
                p.must("track", "--pid", process.pid)
                p.must("record", "start", "x")
                time.sleep(1)
                held = {kind: self.held(kind, p.pid) for kind in ("prog", "map", "link")}
                for kind, ids in held.items():
                    self.assertTrue(ids, f"it holds no {kind}")
                    self.assertLessEqual(ids, self.ids(kind), f"bpftool does not show its {kind}")
                (p.stop if how == "stop" else p.kill)()
                wait_until(lambda held=held: not any(ids & self.ids(kind) for kind, ids in held.items()),
                           "programs, maps and links are gone")

    def listed(self, kind):
        result = run("bpftool", "-j", kind, "show")
        if result.code != 0:
            self.skipTest(f"needs bpftool: {result.err}")
        return json.loads(result.out)

    def ids(self, kind):
        return {row["id"] for row in self.listed(kind)}

    @staticmethod
    def held(kind, pid):
        """What prismd has open, by the ids that bpftool shows."""
        found = set()
        for path in pathlib.Path(f"/proc/{pid}/fdinfo").iterdir():
            match = re.search(rf"^{kind}_id:\s*(\d+)$", path.read_text(encoding="ascii"), re.MULTILINE)
            if match:
                found.add(int(match[1]))
        return found

    def test_stop_ends_the_recording(self):
        p = self.prismd()
        process = self.sleeper()
        p.must("track", "--pid", process.pid)
        p.must("record", "start", "until the end")
        time.sleep(2)
        self.assertEqual(p.stop(), 0)
        self.assertFalse(os.path.exists(p.directory / "bus"), "its socket is left")
        recording = Recording(p, "until the end")
        self.addCleanup(recording.close)
        self.assertNotEqual(recording.state, "running")
        self.assertGreater(recording.length_ns, 1.5e9)
        self.assertEqual(conservation(recording), [])
        # Without prismd, from the database alone.
        for verb in (("record", "list"), ("record", "show", "until the end"), ("report", "until the end"),
                     ("query", "SELECT count(*) FROM wait")):
            p.must(*verb)

    def test_permissions(self):
        p = self.prismd()
        mode = (p.state / "prism.db").stat().st_mode & 0o7777
        self.assertEqual(mode & 0o007, 0, f"others may open the database: {mode:o}")
        self.assertEqual((p.directory / "state").stat().st_mode & 0o007, 0, "others may enter the state directory")

    def test_sysctls_are_left_alone(self):
        def sysctls():
            names = ("kernel/perf_event_paranoid", "kernel/unprivileged_bpf_disabled", "kernel/bpf_stats_enabled",
                     "kernel/sched_schedstats", "kernel/task_delayacct", "net/core/bpf_jit_enable")
            return {n: pathlib.Path("/proc/sys", n).read_text() for n in names if os.path.exists(f"/proc/sys/{n}")}
        before = sysctls()
        p = self.prismd()
        self.assertEqual(sysctls(), before)
        p.stop()
        self.assertEqual(sysctls(), before)


class Targets(Life):
    def cgroup(self):
        for root in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup"):
            if os.path.exists(f"{root}/cgroup.procs"):
                path = pathlib.Path(root, f"prism-test-{os.getpid()}")
                path.mkdir()
                self.addCleanup(lambda: path.exists() and path.rmdir())
                return path
        self.skipTest("no cgroup v2 is mounted")
        return None

    def test_cgroup(self):
        group = self.cgroup()
        inner = group / "inner"
        inner.mkdir()
        self.addCleanup(lambda: inner.exists() and inner.rmdir())
        first, later, below = self.sleeper(), self.sleeper(), self.sleeper()
        (group / "cgroup.procs").write_text(str(first.pid))
        p = self.prismd()
        target = p.must("track", "--cgroup", f"/{group.name}").strip()
        self.assertEqual(target, f"cgroup:/{group.name}")
        wait_until(lambda: first.pid in self.tracked(p), "the process that is in it is tracked")
        self.assertNotIn(later.pid, self.tracked(p))

        (group / "cgroup.procs").write_text(str(later.pid))
        (inner / "cgroup.procs").write_text(str(below.pid))
        wait_until(lambda: {first.pid, later.pid, below.pid} <= self.tracked(p), "processes that join later are tracked")

        p.must("record", "start", "members")
        time.sleep(1.5)
        p.must("record", "stop", "members")
        recording = Recording(p, "members")
        self.addCleanup(recording.close)
        self.assertEqual({t["pid"] for t in recording.threads()}, {first.pid, later.pid, below.pid})
        self.assertEqual(conservation(recording), [])

        for process in (first, later, below):
            end(process)
        wait_until(lambda: not self.tracked(p), "processes that ended are gone")
        inner.rmdir()
        group.rmdir()
        time.sleep(1.5)
        p.must("status")
        p.must("untrack", target)

    def test_command(self):
        p = self.prismd()
        name = "prism-cmd-a"
        before = self.sleeper(name)
        other = self.sleeper("prism-other")
        time.sleep(0.3)
        target = p.must("track", "--command", "prism-cmd-.*").strip()
        wait_until(lambda: before.pid in self.tracked(p), "the process that runs already")
        later = self.sleeper("prism-cmd-b")
        wait_until(lambda: later.pid in self.tracked(p), "a process that starts later")
        self.assertNotIn(other.pid, self.tracked(p))
        end(later)
        wait_until(lambda: self.tracked(p) == {before.pid}, "a process that ended")
        p.must("untrack", target)
        wait_until(lambda: not self.tracked(p), "nothing is tracked any more")

    def test_whole_name_must_match(self):
        p = self.prismd()
        process = self.sleeper("prism-whole-name")
        time.sleep(0.3)
        p.must("track", "--command", "prism-whole")
        time.sleep(1.5)
        self.assertNotIn(process.pid, self.tracked(p))

    def test_untrack(self):
        p = self.prismd()
        first, second = self.sleeper(), self.sleeper()
        p.must("track", "--pid", f"{first.pid},{second.pid}")
        p.must("record", "start", "x")
        time.sleep(1.2)
        p.must("untrack", f"pid:{first.pid}")
        released = time.time_ns()
        time.sleep(2)
        p.must("record", "stop", "x")
        recording = Recording(p, "x")
        self.addCleanup(recording.close)
        last = {t["pid"]: max(row["ts_ns"] for row in recording.rows("thread_time", t)) for t in recording.threads()}
        self.assertLess(last[first.pid], released + 1.5e9, "it is still recorded")
        self.assertGreater(last[second.pid], released + 1.5e9, "the other one is no more recorded")
        self.assertEqual(self.tracked(p), {second.pid})
        p.must("untrack", "--all")
        self.assertEqual(p.ctl("targets").code, 3)
        # And again.
        p.must("track", "--pid", first.pid)
        self.assertEqual(self.tracked(p), {first.pid})

    def test_two_targets_with_the_same_process(self):
        p = self.prismd()
        process = self.sleeper("prism-twice")
        time.sleep(0.3)
        by_pid = p.must("track", "--pid", process.pid).strip()
        p.must("track", "--command", "prism-twice")
        p.must("untrack", by_pid)
        time.sleep(1.2)
        self.assertEqual(self.tracked(p), {process.pid}, "the other target still includes it")

    def test_process_that_ends(self):
        p = self.prismd()
        process = self.sleeper()
        p.must("track", "--pid", process.pid)
        p.must("record", "start", "x")
        time.sleep(1.2)
        end(process)
        ended = time.time_ns()
        time.sleep(1.2)
        p.must("record", "stop", "x")
        recording = Recording(p, "x")
        self.addCleanup(recording.close)
        thread = recording.threads()[0]
        self.assertLess(abs(thread["exit_ns"] - ended), 50_000_000)
        row = recording.db.execute("SELECT exit_ns FROM process WHERE pid = ?", (process.pid,)).fetchone()
        self.assertIsNotNone(row["exit_ns"])
        self.assertEqual(self.tracked(p), set())


class Limits(Life):
    """Each limit is an error that names it, or a counted loss; what is measured still adds up."""

    MANY_THREADS = "import threading, time\nfor i in range(40): threading.Thread(target=time.sleep, args=(60,)).start()\n"
    MANY_FUTEXES = ("import threading\nlocks = [threading.Lock() for i in range(60)]\n"
                    "for lock in locks: lock.acquire()\n"
                    "for i in range(40):\n  for lock in locks: lock.acquire(timeout=0.002)\n")

    def limited(self, **limits):
        directory = pathlib.Path(tempfile.mkdtemp(prefix="prism-test-"))
        self.addCleanup(shutil.rmtree, directory)
        path = directory / "prismd.conf"
        path.write_text("[Limits]\n" + "".join(f"{key}={value}\n" for key, value in limits.items()))
        return self.prismd(arguments=("--config", str(path)))

    def python(self, script):
        process = subprocess.Popen(["/usr/bin/python3", "-c", script])
        self.addCleanup(end, process)
        return process

    def lossy(self, prismd, script, reason):
        """Records the script; something was lost for this reason, and all times are accounted for none the less."""
        process = self.python("import sys, time; time.sleep(0.5)\n" + script)
        prismd.must("track", "--pid", process.pid)
        prismd.must("record", "start", "x", "--for", "3s")
        losses = prismd.json("status")["Losses"]
        self.assertIn(reason, " ".join(losses), "what was lost is not counted")
        recording = Recording(prismd, "x")
        self.addCleanup(recording.close)
        self.assertIn(reason, " ".join(recording.losses()), "what was lost is not in the database")
        self.assertEqual([p for p in conservation(recording) if not p.startswith("loss:")], [])
        self.assertRegex(prismd.must("report", "x"), r"(?i)loss|lost")

    def test_targets(self):
        p = self.limited(Targets=4)
        self.assertEqual(p.json("status")["Limits"]["targets"], 4)
        for i in range(4):
            p.must("track", "--command", f"prism-none-{i}")
        result = p.ctl("track", "--command", "prism-one-more")
        self.assertEqual(result.code, 1)
        self.assertRegex(result.err, r"\b4\b")
        self.assertEqual(len(find_rows(p.json("targets"))), 4)
        p.must("untrack", "--all")
        p.must("track", "--command", "prism-one-more")

    def test_recordings(self):
        p = self.limited(Recordings=2)
        p.must("record", "start", "a")
        p.must("record", "start", "b")
        result = p.ctl("record", "start", "c")
        self.assertEqual(result.code, 1)
        self.assertRegex(result.err, r"\b2\b")
        p.must("record", "stop", "a")
        p.must("record", "delete", "a")
        p.must("record", "start", "c")

    def test_threads(self):
        p = self.limited(Threads=16)
        process = self.python(self.MANY_THREADS)
        time.sleep(0.5)
        result = p.ctl("track", "--pid", process.pid)
        if result.code != 0:
            self.assertRegex(result.err, r"\b16\b")
            return
        time.sleep(1.5)
        status = p.json("status")
        self.assertLessEqual(status["Usage"]["threads"], 16)
        self.assertTrue(any("thread" in reason for reason in status["Losses"]), f"{status['Losses']}")

    def test_threads_that_start_later(self):
        p = self.limited(Threads=16)
        process = self.python("import time; time.sleep(1)\n" + self.MANY_THREADS)
        p.must("track", "--pid", process.pid)
        time.sleep(3)
        status = p.json("status")
        self.assertLessEqual(status["Usage"]["threads"], 16)
        self.assertTrue(any("thread" in reason for reason in status["Losses"]), f"{status['Losses']}")

    def test_waits(self):
        self.lossy(self.limited(Waits=16), self.MANY_FUTEXES, "wait")

    def test_resources(self):
        self.lossy(self.limited(Resources=16), self.MANY_FUTEXES, "resource")

    def test_bad_configuration(self):
        directory = pathlib.Path(tempfile.mkdtemp(prefix="prism-test-"))
        self.addCleanup(shutil.rmtree, directory)
        path = directory / "prismd.conf"
        path.write_text("[Limits]\nTargets=none\nNoSuchKey=1\nThreads=99999999999\nrubbish\n[Recordings\n")
        p = self.prismd(arguments=("--config", str(path)))
        self.assertGreater(p.json("status")["Limits"]["targets"], 4)
        for word in ("Targets", "NoSuchKey", "Threads"):
            self.assertIn(word, p.log())
        missing = run(p.executable, "--config", directory / "missing", "--state-dir", directory / "state", "--address",
                      f"unix:path={directory}/bus", env=environment(), timeout=WAIT)
        self.assertEqual(missing.code, 1, f"{missing}")
        self.assertIn("missing", missing.err)


class Clients(Life):
    def test_many_at_once(self):
        p = self.prismd()
        processes = [self.sleeper() for _ in range(8)]
        # What one of them stops following belongs to the recordings of the others too.
        together = threading.Barrier(len(processes))

        def client(process):
            name = f"of {process.pid}"
            p.must("track", "--pid", process.pid)
            together.wait(WAIT)
            p.must("record", "start", name)
            for verb in ("status", "targets", "processes", "threads"):
                p.json(verb)
            time.sleep(1)
            p.must("record", "stop", name)
            p.must("query", "SELECT count(*) FROM thread_time")
            together.wait(WAIT)
            p.must("untrack", f"pid:{process.pid}")
            return name

        with concurrent.futures.ThreadPoolExecutor(len(processes)) as pool:
            names = list(pool.map(client, processes))
        for name in names:
            recording = Recording(p, name)
            self.assertEqual(recording.state, "finished")
            self.assertEqual(conservation(recording), [])
            recording.close()

    def test_client_that_goes_away(self):
        p = self.prismd()
        process = self.sleeper()
        p.must("track", "--pid", process.pid)
        client = subprocess.Popen([PRISMCTL, "record", "start", "abandoned", "--for", "3s"], stderr=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL,
                                  env=environment(PRISM_ADDRESS=p.address, PRISM_STATE_DIR=str(p.state)))
        time.sleep(1)
        end(client)
        wait_until(lambda: Recording(p, "abandoned").state == "finished" if self.has_end(p) else False,
                   "prismd ends the recording by itself", 8)
        recording = Recording(p, "abandoned")
        self.addCleanup(recording.close)
        self.assertLess(abs(recording.length_ns - 3e9), 0.5e9)

    @staticmethod
    def has_end(p):
        with p.database() as db:
            return db.execute("SELECT end_ns FROM recording WHERE name = 'abandoned'").fetchone()["end_ns"] is not None

    def test_record_for(self):
        p = self.prismd()
        process = self.sleeper()
        p.must("track", "--pid", process.pid)
        begin = time.monotonic()
        p.must("record", "start", "x", "--for", "2s")
        self.assertLess(abs(time.monotonic() - begin - 2), 1.5)
        recording = Recording(p, "x")
        self.addCleanup(recording.close)
        self.assertLess(abs(recording.length_ns - 2e9), 0.2e9)
        self.assertEqual(conservation(recording), [])

    def test_interrupt_ends_a_recording_early(self):
        p = self.prismd()
        process = self.sleeper()
        p.must("track", "--pid", process.pid)
        client = subprocess.Popen([PRISMCTL, "record", "start", "x", "--for", "60s"], stderr=subprocess.PIPE,
                                  stdout=subprocess.PIPE,
                                  env=environment(PRISM_ADDRESS=p.address, PRISM_STATE_DIR=str(p.state)))
        time.sleep(1.5)
        client.send_signal(signal.SIGINT)
        _, err = client.communicate(timeout=WAIT)
        self.assertEqual(client.returncode, 0, err)
        recording = Recording(p, "x")
        self.addCleanup(recording.close)
        self.assertEqual(recording.state, "finished")
        self.assertLess(recording.length_ns, 5e9)

    def test_wait(self):
        p = self.prismd()
        process = self.sleeper("prism-wait", 2)
        p.must("track", "--pid", process.pid)
        self.assertEqual(p.ctl("wait", "process", process.pid, "--timeout", "200ms").code, 1)
        self.assertEqual(p.ctl("wait", "process", process.pid, "--timeout", "8s").code, 0)
        p.must("record", "start", "x")
        self.assertEqual(p.ctl("wait", "recording", "x", "--timeout", "200ms").code, 1)
        p.must("record", "stop", "x")
        self.assertEqual(p.ctl("wait", "recording", "x", "--timeout", "8s").code, 0)

    def test_garbage_on_the_socket(self):
        p = self.prismd()
        for data in (b"", b"\0", b"GET / HTTP/1.0\r\n\r\n", b"\0AUTH EXTERNAL 30\r\nBEGIN\r\n" + b"\xff" * 4096,
                     b"\0" + b"A" * 70000):
            with socket.socket(socket.AF_UNIX) as s:
                s.settimeout(2)
                s.connect(str(p.directory / "bus"))
                try:
                    s.sendall(data)
                    s.shutdown(socket.SHUT_WR)
                    s.recv(100)
                except OSError:
                    pass
        p.must("status")

    def test_idle_connections(self):
        """Connections that say nothing must not keep others out for good."""
        p = self.prismd()
        idle = []
        try:
            for _ in range(300):
                s = socket.socket(socket.AF_UNIX)
                s.setblocking(False)
                idle.append(s)
                try:
                    s.connect(str(p.directory / "bus"))
                except BlockingIOError:
                    break
            time.sleep(0.5)
            self.assertTrue(p.alive())
        finally:
            for s in idle:
                s.close()
        wait_until(lambda: p.ctl("status").code == 0, "it answers when they are gone")


class Run(Life):
    """prismctl run, with no prismd and no bus: in a mount namespace with an empty /run, whatever this machine has there."""

    ALONE = ("unshare", "--mount", "sh", "-c", "mount -t tmpfs tmpfs /run && exec \"$@\"", "sh", PRISMCTL)

    def setUp(self):
        super().setUp()
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="prism-test-"))
        self.addCleanup(shutil.rmtree, self.directory)
        self.runtime = self.directory / "runtime"
        self.runtime.mkdir(mode=0o700)

    def ctl_run(self, *arguments, **options):
        env = environment(XDG_RUNTIME_DIR=str(self.runtime), TMPDIR=str(self.runtime), **options)
        before = self.prismds()
        leftovers = self.directories()
        result = run(*self.ALONE, "run", *arguments, env=env)
        self.assertEqual(list(self.runtime.iterdir()), [], "it left something in its directory")
        self.assertEqual(self.directories() - leftovers, set(), "it left a directory")
        self.assertEqual(self.prismds() - before, set(), "it left a prismd")
        return result

    def directories(self):
        return {str(path) for root in ("/run", "/tmp") for path in pathlib.Path(root).glob("prism*run*")}

    def prismds(self):
        """Processes called prismd that were started for this test."""
        found = set()
        for entry in os.listdir("/proc"):
            try:
                command = pathlib.Path("/proc", entry, "cmdline").read_bytes() if entry.isdigit() else b""
            except (FileNotFoundError, ProcessLookupError):
                continue
            if b"prismd\0" in command and os.fsencode(str(self.runtime)) in command:
                found.add(entry)
        return found

    def test_exit_code_and_output(self):
        result = self.ctl_run("--", "sh", "-c", "echo out; echo err >&2; sleep 0.3; exit 7")
        self.assertEqual(result.code, 7, f"{result}")
        self.assertEqual(result.out, "out\n", "the command's output is mixed with something")
        self.assertIn("err\n", result.err)
        self.assertRegex(result.err, r"sleep|sh\b")

    def test_killed_by_a_signal(self):
        self.assertEqual(self.ctl_run("--", "sh", "-c", "kill -TERM $$").code, 128 + signal.SIGTERM)

    def test_command_that_is_missing(self):
        self.assertEqual(self.ctl_run("--", "/no/such/command").code, 127)

    def test_command_that_cannot_be_executed(self):
        path = self.directory / "plain"
        path.write_text("x")
        self.assertEqual(self.ctl_run("--", str(path)).code, 126)

    def test_output(self):
        database = self.directory / "kept.db"
        result = self.ctl_run("--name", "kept", "--output", str(database), "--",
                              "/usr/bin/python3", "-c", "import time; [time.sleep(0.05) for i in range(20)]")
        self.assertEqual(result.code, 0, f"{result}")
        self.assertTrue(database.exists())
        with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as db:
            self.assertEqual(db.execute("PRAGMA integrity_check").fetchone()[0], "ok")
            row = db.execute("SELECT state, start_ns, end_ns FROM recording WHERE name = 'kept'").fetchone()
            self.assertEqual(row[0], "finished")
            total, count = db.execute("""SELECT sum(w.total_ns), sum(w.count) FROM wait w JOIN resource r
                                         ON r.id = w.resource_id WHERE r.kind = 'timer'""").fetchone()
            self.assertGreaterEqual(count, 20)
            self.assertLess(abs(total - 1.0e9), 0.1e9)
            # From its first instruction: the image is loaded while it is tracked.
            first = db.execute("SELECT min(ts_ns - dt_ns) FROM thread_time").fetchone()[0]
            started = db.execute("SELECT min(start_ns) FROM process WHERE found_by <> 'observed'").fetchone()[0]
            self.assertLess(first - started, 2e9)
        result = run(PRISMCTL, "--db", database, "report", "kept", env=environment())
        self.assertEqual(result.code, 0, f"{result}")

    def test_interrupted(self):
        env = environment(XDG_RUNTIME_DIR=str(self.runtime))
        client = subprocess.Popen([*self.ALONE, "run", "--", "sleep", "60"], env=env, stderr=subprocess.PIPE,
                                  stdout=subprocess.PIPE)
        self.addCleanup(end, client)
        time.sleep(3)
        client.send_signal(signal.SIGTERM)
        client.communicate(timeout=WAIT)
        self.assertEqual(client.returncode, 128 + signal.SIGTERM)
        self.assertEqual(list(self.runtime.iterdir()), [])
        self.assertEqual(self.prismds(), set())

    def test_with_a_prismd_that_runs(self):
        p = self.prismd()
        result = p.ctl("run", "--name", "there", "--", "sh", "-c", "sleep 0.5; exit 3")
        self.assertEqual(result.code, 3, f"{result}")
        recording = Recording(p, "there")
        self.addCleanup(recording.close)
        self.assertEqual(recording.state, "finished")
        self.assertEqual(conservation(recording), [])


class Report(Life):
    def test_report_of_a_hostile_name(self):
        """What a target is called cannot reach the terminal as it is, and JSON stays JSON."""
        p = self.prismd()
        script = ("import ctypes, time\n"
                  "ctypes.CDLL(None).prctl(15, b'\\x1b[31m\\xff\\n\\xe2\\x80\\xae', 0, 0, 0)\n"
                  "for i in range(1200): time.sleep(0.05)\n")
        process = subprocess.Popen(["/usr/bin/python3", "-c", script])
        self.addCleanup(end, process)
        time.sleep(0.5)
        p.must("track", "--pid", process.pid)
        p.must("record", "start", "x", "--for", "1500ms")
        for verb in (("processes",), ("threads",), ("report", "x"), ("query", "SELECT comm FROM thread"), ("targets",)):
            out = p.must(*verb)
            self.assertNotRegex(out, r"[\x00-\x09\x0b-\x1f\x7f\u202e]", f"{verb}: {out!r}")
            self.assertFalse(re.search(r"\\x(ff|1b)\[31m$", out))
            p.json(*verb)


if __name__ == "__main__":
    tap.main()
