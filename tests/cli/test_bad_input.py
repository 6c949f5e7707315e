#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a user can get wrong: each a clear error with its exit code, and prismd lives on."""

import contextlib
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

import database
import tap
from prism import PRISMCTL, PRISMD, NeedsBpf, Prismd, bpf_unavailable, environment, run

FAILED, USAGE, NOTHING = 1, 2, 3
ABSENT = "4194303"  # a number that a process could have
LIMIT_SECONDS = 10  # of what must end by itself; far above what it takes
SECOND = 1_000_000_000


class Running(unittest.TestCase):
    """A prismd that tracks this process, and records, and must do so to the end."""

    @classmethod
    def setUpClass(cls):
        cls.prismd = None

    def setUp(self):
        if type(self).prismd is None:
            prismd = Prismd()
            try:
                prismd.start()
            except BaseException:
                prismd.kill()
                prismd.remove()
                raise
            type(self).prismd = prismd
            prismd.must("track", "--pid", os.getpid())
            prismd.must("record", "start", "all along")

    @classmethod
    def tearDownClass(cls):
        if cls.prismd is not None:
            cls.prismd.stop()
            cls.prismd.remove()

    def tearDown(self):
        if self.prismd is None:
            return
        self.assertTrue(self.prismd.alive(), f"prismd ended: {self.prismd.log()[-2000:]}")
        targets = {t["target"] for t in self.rows("targets")}
        self.assertIn(f"pid:{os.getpid()}", targets, "prismd has forgotten its target")
        with self.prismd.database() as db:
            states = dict(db.execute("SELECT name, state FROM recording").fetchall())
        self.assertEqual(states.get("all along"), "running")

    def rows(self, *verb):
        rows = self.prismd.json(*verb)
        return rows if isinstance(rows, list) else next(v for v in rows.values() if isinstance(v, list))

    def refused(self, code, *arguments, says=None, timeout=LIMIT_SECONDS):
        result = self.prismd.ctl(*arguments, timeout=timeout)
        self.assertEqual(result.code, code, f"{arguments}: {result}")
        message = result.err.strip()
        self.assertTrue(message, f"{arguments}: nothing on stderr")
        self.assertEqual(len(message.splitlines()), 1, f"{arguments}: more than one sentence: {message}")
        self.assertFalse(any(ord(c) < 32 for c in message), f"{arguments}: control characters: {message!r}")
        self.assertEqual(result.out.strip(), "", f"{arguments}: output beside the error")
        if says:
            self.assertRegex(message, says)
        return message


class Processes(Running):
    def test_pid_0(self):
        self.refused(USAGE, "track", "--pid", "0")

    def test_negative_pid(self):
        self.refused(USAGE, "track", "--pid", "-5")
        self.refused(USAGE, "track", "--pid=-5")

    def test_huge_pid(self):
        for pid in ("2000000000", "99999999999", "18446744073709551617", "4294967297"):
            self.refused(USAGE, "track", "--pid", pid)

    def test_pid_above_pid_max(self):
        self.refused(FAILED, "track", "--pid", ABSENT, says=ABSENT)

    def test_pid_that_is_no_number(self):
        for pid in ("", "abc", "12x", "1.5", "0x10", " 1", "1,,2"):
            self.refused(USAGE, "track", "--pid", pid)

    def test_dead_pid(self):
        gone = subprocess.Popen(["true"])
        gone.wait()
        self.refused(FAILED, "track", "--pid", gone.pid, says=str(gone.pid))

    def test_zombie(self):
        zombie = subprocess.Popen(["true"])
        self.addCleanup(zombie.wait)
        time.sleep(0.2)
        self.refused(FAILED, "track", "--pid", zombie.pid, says=str(zombie.pid))

    def test_kernel_thread(self):
        found = []
        for entry in os.listdir("/proc"):
            try:
                if entry.isdigit():
                    flags = int(pathlib.Path(f"/proc/{entry}/stat").read_text().rsplit(")", 1)[1].split()[6])
                    if flags & 0x200000:  # PF_KTHREAD
                        found.append(int(entry))
            except FileNotFoundError:
                pass
        if not found:
            self.skipTest("no kernel thread is visible in this pid namespace")
        self.refused(FAILED, "track", "--pid", found[0], says="kernel")

    def test_thread_that_is_no_process(self):
        stop = threading.Event()
        thread = threading.Thread(target=stop.wait)
        thread.start()
        try:
            result = self.prismd.ctl("track", "--pid", thread.native_id)
            self.assertEqual(result.code, FAILED, f"{result}")
            self.assertIn(str(thread.native_id), result.err)
        finally:
            stop.set()
            thread.join()

    def test_same_pid_twice(self):
        self.refused(FAILED, "track", "--pid", os.getpid(), says="already")

    def test_one_bad_pid_among_good_ones(self):
        good = subprocess.Popen(["sleep", "60"])
        self.addCleanup(good.wait)
        self.addCleanup(good.kill)
        result = self.prismd.ctl("track", "--pid", f"{good.pid},{ABSENT}")
        self.assertEqual(result.code, FAILED)
        self.assertIn(f"pid:{good.pid}", result.out)
        self.assertIn(ABSENT, result.err)
        self.prismd.must("untrack", f"pid:{good.pid}")


class Targets(Running):
    def test_missing_cgroup(self):
        self.refused(FAILED, "track", "--cgroup", "/no/such/group", says="/no/such/group")

    def test_cgroup_outside_of_the_hierarchy(self):
        for path in ("", "relative", "/../../etc", "/a/../../..", "/" + "x" * 5000):
            result = self.prismd.ctl("track", "--cgroup", path)
            self.assertIn(result.code, (FAILED, USAGE), f"{path[:40]!r}: {result}")
            self.assertTrue(result.err.strip())

    def test_missing_unit(self):
        self.refused(FAILED, "track", "--unit", "no-such-thing.service", says="no-such-thing")

    def test_hostile_units(self):
        for unit in ("", "../../x", "a/b.service", "x\ny.service", "x" * 5000):
            result = self.prismd.ctl("track", "--unit", unit)
            self.assertIn(result.code, (FAILED, USAGE), f"{unit[:40]!r}: {result}")
            self.assertTrue(result.err.strip())

    def test_bad_patterns(self):
        for pattern in ("(", "[a", "*", "(?<", "a{2,1}", "\\"):
            result = self.prismd.ctl("track", "--command", pattern)
            self.assertIn(result.code, (FAILED, USAGE), f"{pattern}: {result}")
            self.assertTrue(result.err.strip())

    def test_empty_and_long_patterns(self):
        for pattern in ("", "a" * 257):
            result = self.prismd.ctl("track", "--command", pattern)
            self.assertIn(result.code, (FAILED, USAGE), f"{len(pattern)}: {result}")

    def explode(self, pattern, comm):
        """Either refused, or it costs little to match it against a name made for it."""
        before = self.prismd.json("status")
        begin = time.monotonic()
        result = self.prismd.ctl("track", "--command", pattern, timeout=LIMIT_SECONDS)
        if result.code == 0:
            victim = subprocess.Popen(["sh", "-c", f"exec -a {comm} sleep 2"], executable="/bin/bash")
            victim.wait()
            self.prismd.must("status")
            self.prismd.must("untrack", result.out.strip())
        else:
            self.assertIn(result.code, (FAILED, USAGE))
            self.assertTrue(result.err.strip())
        self.assertLess(time.monotonic() - begin, LIMIT_SECONDS)
        after = self.prismd.json("status")
        self.assertLess(after["ResidentBytes"] - before["ResidentBytes"], 32 << 20, "memory for one pattern")

    def test_pattern_that_explodes_when_compiled(self):
        self.explode("((a{1,100}){1,100}){1,100}", "aaaaaaaaaaaaaaaaaaaaaaaa")

    def test_pattern_that_explodes_when_matched(self):
        self.explode("(a+)+(b+)+(a*)*c", "a" * 200)
        self.explode("(a|a|aa)*$x", "a" * 200)

    def test_unknown_target(self):
        for target in ("pid:999999999", "unit:x.service", "nonsense", "", "command:((", "pid:\n"):
            self.refused(NOTHING, "untrack", target)

    def test_nothing_to_track(self):
        self.refused(USAGE, "track")

    def test_follow_with_a_word_it_does_not_know(self):
        self.refused(USAGE, "track", "--pid", os.getppid(), "--follow", "everyone")

    def test_container_is_not_there_yet(self):
        result = self.prismd.ctl("track", "--container", "web")
        self.assertIn(result.code, (FAILED, USAGE))
        self.assertTrue(result.err.strip())


class Recordings(Running):
    HOSTILE = ("../../x'; DROP TABLE recording; --", "a\nb", "\x1b[31mred", "a" * 300, "", b"\xff\xfe\x80", "a/b", "..",
               "-x", "10:00..11:00")

    def test_hostile_names(self):
        """Refused, or kept as they are: never a broken database, never raw bytes on the terminal."""
        for name in self.HOSTILE:
            result = self.prismd.ctl("record", "start", "--", name)
            self.assertIn(result.code, (0, FAILED, USAGE), f"{name!r}: {result}")
            if result.code == 0:
                self.prismd.must("record", "stop", "--", name)
            else:
                self.assertTrue(result.err.strip(), f"{name!r}")
                self.assertFalse(any(ord(c) < 32 for c in result.err.strip()), f"{name!r}: {result.err!r}")
        listed = self.prismd.must("record", "list")
        self.assertFalse(any(ord(c) < 32 and c != "\n" for c in listed), repr(listed))
        self.prismd.json("record", "list")
        with self.prismd.database() as db:
            self.assertGreaterEqual(db.execute("SELECT count(*) FROM recording").fetchone()[0], 1)
        self.assertFalse((self.prismd.directory.parent / "x'; DROP TABLE recording; --").exists())

    def test_names_that_are_refused(self):
        for name in ("", "a" * 300, "a\nb", b"\xff\xfe"):
            self.refused(USAGE, "record", "start", "--", name)

    def test_name_twice(self):
        self.refused(FAILED, "record", "start", "all along", says="all along")

    def test_unknown_names(self):
        for verb in ("stop", "show", "delete"):
            self.refused(NOTHING, "record", verb, "no such recording", says="no such recording")
        self.refused(NOTHING, "report", "no such recording", says="no such recording")
        self.refused(NOTHING, "wait", "recording", "no such recording")

    def test_delete_while_it_runs(self):
        self.refused(FAILED, "record", "delete", "all along", says="all along")

    def test_bad_lengths(self):
        for length in ("", "0", "-3s", "abc", "3x", "1e400s", "99999999999999999999s"):
            self.refused(USAGE, "record", "start", "x", f"--for={length}")

    def test_calls(self):
        for calls in ("", "sometimes", "Full", "none,full"):
            self.refused(USAGE, "record", "start", "x", f"--calls={calls}", says=calls)
            self.refused(USAGE, "run", f"--calls={calls}", "--", "true", says=calls)
        self.refused(USAGE, "record", "stop", "x", "--calls", "full")
        self.refused(USAGE, "record", "start", "x", "--calls")

    def test_bad_ranges(self):
        for text in ("5..", "..", "11:00:00..10:00:00", "2026-13-45T00:00:00Z..2027-01-01T00:00:00Z"):
            result = self.prismd.ctl("report", text)
            self.assertIn(result.code, (FAILED, USAGE, NOTHING), f"{text}: {result}")
            self.assertTrue(result.err.strip())


class Queries(Running):
    def test_that_write(self):
        for sql in ("DELETE FROM recording", "INSERT INTO meta VALUES ('a', 'b')", "UPDATE recording SET name = 'x'",
                    "DROP TABLE wait", "CREATE TABLE x (y)", "PRAGMA user_version = 7", "VACUUM", "ATTACH '/tmp/x.db' AS x",
                    "WITH x AS (SELECT 1) DELETE FROM recording", "SELECT load_extension('x')",
                    "SELECT writefile('/tmp/prism-x', 'y')", "BEGIN IMMEDIATE", "VACUUM INTO '/tmp/prism-x'"):
            self.refused(FAILED, "query", sql)
        self.assertFalse(os.path.exists("/tmp/x.db") or os.path.exists("/tmp/prism-x"))
        with self.prismd.database() as db:
            self.assertEqual(db.execute("PRAGMA user_version").fetchone()[0], database.VERSION)

    def test_that_are_no_sql(self):
        for sql in ("SELECT", "nonsense", "SELECT * FROM no_such_table", "SELECT 'a"):
            self.refused(FAILED, "query", sql)

    def test_two_at_once(self):
        for sql in ("SELECT 1; SELECT 2", "SELECT 1; DELETE FROM recording"):
            self.refused(USAGE, "query", sql)

    def test_without_sql(self):
        self.refused(USAGE, "query")

    def test_templates(self):
        for sql in ("SELECT {{ nothing }}", "SELECT {{ pid_filter", "SELECT 1 WHERE {{ baseline_filter(\"ts_ns\") }}",
                    "SELECT 1 WHERE {{ baseline_filter(\"1); DELETE FROM recording\") }}"):
            result = self.prismd.ctl("query", sql)
            self.assertIn(result.code, (FAILED, USAGE), f"{sql}: {result}")
            self.assertTrue(result.err.strip())

    def test_file_that_is_missing(self):
        self.refused(FAILED, "query", "--file", "/no/such/file.sql", says="/no/such/file.sql")

    def test_no_rows(self):
        result = self.prismd.ctl("query", "SELECT 1 WHERE 0")
        self.assertEqual(result.code, NOTHING)

    def test_that_only_read(self):
        self.assertEqual(self.prismd.json("query", "SELECT count(*) AS n, NULL AS absent, 1.5 AS fraction, 'a\nb' AS text"
                                                   " FROM recording WHERE name = 'all along'"),
                         [{"n": 1, "absent": None, "fraction": 1.5, "text": "a\nb"}])


class CommandLine(unittest.TestCase):
    """Needs no prismd."""

    def ctl(self, *arguments):
        return run(PRISMCTL, *arguments, env=environment(PRISM_ADDRESS="unix:path=/nonexistent/bus",
                                                         PRISM_STATE_DIR="/nonexistent"))

    def test_usage(self):
        for arguments in ((), ("fly",), ("--no-such-option",), ("status", "more"), ("record",), ("record", "fly"),
                          ("untrack",), ("report",), ("wait",), ("wait", "bus", "7"), ("run",), ("run", "--")):
            result = self.ctl(*arguments)
            self.assertEqual(result.code, USAGE, f"{arguments}: {result}")
            self.assertTrue(result.err.strip(), f"{arguments}: says nothing")

    def test_no_prismd(self):
        for arguments in (("status",), ("track", "--pid", "1"), ("targets",), ("record", "start", "x")):
            result = self.ctl(*arguments)
            self.assertEqual(result.code, FAILED, f"{arguments}: {result}")
            self.assertIn("/nonexistent/bus", result.err)

    def test_no_database(self):
        result = self.ctl("query", "SELECT 1")
        self.assertEqual(result.code, FAILED)
        self.assertIn("/nonexistent", result.err)

    def test_bad_address(self):
        for address in ("nonsense", "unix:", "unix:path=", "tcp:host=localhost,port=1"):
            result = self.ctl("--address", address, "status")
            self.assertIn(result.code, (FAILED, USAGE), f"{address}: {result}")
            self.assertTrue(result.err.strip())

    def test_help_and_version(self):
        for program in (PRISMCTL, PRISMD):
            for option in ("--help", "--version"):
                result = run(program, option)
                self.assertEqual((result.code, result.err), (0, ""), f"{program.name} {option}: {result}")
                self.assertTrue(result.out.strip())

    def test_prismd_usage(self):
        for arguments in (("--no-such-option",), ("extra",), ("--log-level", "loud"), ("--machine-id", "abc"),
                          ("--machine-id", "99999999999"), ("--address", "nonsense"), ("--state-dir", "")):
            with tempfile.TemporaryDirectory(prefix="prism-test-") as directory:
                good = {"--state-dir": directory, "--address": f"unix:path={directory}/bus"}
                rest = [word for option, value in good.items() if option not in arguments for word in (option, value)]
                result = run(PRISMD, *rest, *arguments, env=environment(), timeout=LIMIT_SECONDS)
                self.assertIn(result.code, (FAILED, USAGE), f"{arguments}: {result}")
                self.assertTrue(result.err.strip(), f"{arguments}")


class StateDirectory(unittest.TestCase):
    """prismd refuses to start, says why, and leaves what it found as it was."""

    def setUp(self):
        reason = bpf_unavailable()
        if reason:
            raise NeedsBpf(reason)
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="prism-test-"))
        self.addCleanup(shutil.rmtree, self.directory)

    def refused(self, state, says):
        result = run(PRISMD, "--address", f"unix:path={self.directory}/bus", "--state-dir", state, env=environment(),
                     timeout=LIMIT_SECONDS)
        self.assertEqual(result.code, FAILED, f"{result}")
        self.assertRegex(result.err, says)
        return result

    def foreign(self, fill):
        state = self.directory / "state"
        state.mkdir()
        path = state / "prism.db"
        fill(path)
        before = path.read_bytes()
        self.refused(state, r"prism\.db")
        self.assertEqual(path.read_bytes(), before, "the file was changed")

    def test_database_of_another_program(self):
        def fill(path):
            with sqlite3.connect(path) as db:
                db.execute("PRAGMA application_id = 7")
                db.execute("CREATE TABLE recording (name)")
        self.foreign(fill)

    def test_database_of_a_newer_version(self):
        def fill(path):
            with sqlite3.connect(path) as db:
                db.execute(f"PRAGMA application_id = {0x5052534d}")
                db.execute("PRAGMA user_version = 1000")
                db.execute("CREATE TABLE recording (name)")
        self.foreign(fill)

    def test_file_that_is_no_database(self):
        self.foreign(lambda path: path.write_bytes(b"hello" * 1000))

    def test_state_directory_that_is_a_file(self):
        path = self.directory / "file"
        path.write_text("x")
        self.refused(path, str(path))

    def test_unwritable_state_directory(self):
        # Root may write anywhere but where nobody can.
        self.refused("/proc/prism-state", "/proc/prism-state")

    def test_database_that_is_a_directory(self):
        state = self.directory / "state"
        (state / "prism.db").mkdir(parents=True)
        self.refused(state, r"prism\.db")

    def test_full_disk_is_no_crash(self):
        state = self.directory / "small"
        state.mkdir()
        if run("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", state).code != 0:
            self.skipTest("cannot mount a tmpfs")
        self.addCleanup(run, "umount", state)
        self.refused(state, str(state))

    def test_second_prismd_on_the_same_directory(self):
        with Prismd() as first:
            result = run(PRISMD, "--address", f"unix:path={self.directory}/bus", "--state-dir", first.state,
                         env=environment(), timeout=LIMIT_SECONDS)
            self.assertEqual(result.code, FAILED, f"{result}")
            self.assertIn(str(first.state), result.err)
            first.must("status")
            first.must("record", "start", "still works")
            first.must("record", "stop", "still works")

    def test_second_prismd_on_the_same_address(self):
        with Prismd() as first:
            result = run(PRISMD, "--address", first.address, "--state-dir", self.directory / "other", env=environment(),
                         timeout=LIMIT_SECONDS)
            self.assertEqual(result.code, FAILED, f"{result}")
            self.assertIn("/bus", result.err)
            first.must("status")


class Indicators(Running):
    """AddKpi, by busctl, over the private socket."""

    def call(self, method, *arguments):
        return run("busctl", f"--address={self.prismd.address}", "--", "call", "org.prism.Prism1", "/org/prism/Prism1",
                   "org.prism.Prism1.Manager", method, *arguments, env=environment())

    def add(self, name, *points):
        return self.call("AddKpi", "sa(td)a{sv}", name, len(points), *[word for point in points for word in point], "0")

    def test_points(self):
        for points in (((SECOND, 1.5), (2 * SECOND, 2.5)), ((2 * SECOND, 7), (3 * SECOND, -3))):
            result = self.add("x'; DROP TABLE kpi", *points)
            self.assertEqual(result.code, 0, result.err)
        with contextlib.closing(self.prismd.database()) as db:
            rows = db.execute("SELECT ts_ns, value FROM kpi WHERE name LIKE 'x%' ORDER BY 1").fetchall()
        self.assertEqual([tuple(row) for row in rows], [(SECOND, 1.5), (2 * SECOND, 7), (3 * SECOND, -3)])

    def test_bad_points(self):
        for name, points, says in (("rate", (), "no point"), ("a/b", ((SECOND, 1),), "name"), ("", ((SECOND, 1),), "name"),
                                   ("rate", ((0, 1),), "point 1"), ("rate", ((SECOND, 1), (SECOND, "nan")), "Point 2"),
                                   ("rate", ((SECOND, "inf"),), "Point 1")):
            result = self.add(name, *points)
            self.assertNotEqual(result.code, 0, f"{name} {points}")
            self.assertIn(says, result.err)
        with contextlib.closing(self.prismd.database()) as db:
            self.assertEqual(db.execute("SELECT count(*) FROM kpi WHERE name NOT LIKE 'x%'").fetchone()[0], 0)

    def test_what_this_version_cannot(self):
        for method, arguments, says in (("TrackContainer", ("sa{sv}", "web", "0"), "cgroup"),
                                        ("KeepRecording", ("stta{sv}", "x", "1", "2", "0"), "flight recorder")):
            result = self.call(method, *arguments)
            self.assertNotEqual(result.code, 0)
            self.assertIn(says, result.err)


if __name__ == "__main__":
    tap.main()
