#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Block requests by who submitted them, against what the workload did, /proc/diskstats and /proc/PID/io; and limits of
control groups, against what their own files say."""

import collections
import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

import tap
from recording import MS, NS
from truth import TruthTest, note

SECTOR = 512
DEVICE_BYTES = 64 << 20
# A full tick after the last request ended: its generation has been read then.
TICK = 1.3
CGROUP_ROOT = pathlib.Path("/sys/fs/cgroup")

DiskStat = collections.namedtuple("DiskStat", "reads sectors_read writes sectors_written discards flushes")


def diskstat(device):
    """What the kernel has counted of a device. A request to flush counts as a write without data too."""
    for line in pathlib.Path("/proc/diskstats").read_text(encoding="ascii").splitlines():
        word = line.split()
        if word[2] == device.name:
            n = [int(w) for w in word[3:]]
            return DiskStat(n[0], n[2], n[4], n[6], n[8] if len(n) > 8 else 0, n[13] if len(n) > 13 else 0)
    raise AssertionError(f"{device} is not in /proc/diskstats")


def minus(after, before):
    return DiskStat(*(a - b for a, b in zip(after, before)))


@contextlib.contextmanager
def loop_device():
    """A disk of its own, in memory, that nobody else uses."""
    with tempfile.NamedTemporaryFile(dir="/dev/shm", prefix="prism-test-") as image:
        image.write(b"\1" * DEVICE_BYTES)
        image.flush()
        done = subprocess.run(["losetup", "--find", "--show", image.name], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise tap.unittest.SkipTest(f"no loop device: {done.stderr.strip()}")
        device = pathlib.Path(done.stdout.strip())
        try:
            yield device
        finally:
            subprocess.run(["losetup", "--detach", device], check=True)


def hierarchy(controller):
    """The cgroup v1 hierarchy of a controller."""
    path = CGROUP_ROOT / controller
    if not (path / "cgroup.procs").exists():
        raise tap.unittest.SkipTest(f"no cgroup v1 hierarchy of {controller} is mounted")
    return path


@contextlib.contextmanager
def group(controller, settings):
    """A group of its own with these limits."""
    path = hierarchy(controller) / f"prism-test-{os.getpid()}"
    try:
        path.mkdir()
    except OSError as error:
        raise tap.unittest.SkipTest(f"no group can be made: {error}") from error
    try:
        for name, value in settings.items():
            (path / name).write_text(value, encoding="ascii")
        yield path
    finally:
        deadline = time.monotonic() + 10
        while True:
            try:
                path.rmdir()
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)


def number_of(device):
    status = os.stat(device)
    return os.major(status.st_rdev) << 20 | os.minor(status.st_rdev)


class Disk(TruthTest):
    def setUp(self):
        super().setUp()
        self.stack = contextlib.ExitStack()
        self.device = self.stack.enter_context(loop_device())

    def tearDown(self):
        try:
            super().tearDown()
        finally:
            self.stack.close()

    def transfers(self, mode, count, size, others=(), **options):
        """Records the workload. Also says what the kernel counted of the device meanwhile."""
        before = diskstat(self.device)

        def settle(running):
            """The recording must reach over the last request."""
            time.sleep(TICK)

        recording, truth = self.play("block", self.device, mode, count, size, *others, during=settle, **options)
        return recording, truth, minus(diskstat(self.device), before)

    def rows(self, recording):
        """The rows of this test's device, with who they are for."""
        return recording.db.execute(
            """SELECT d.*, p.pid, p.comm, p.ppid, p.exe, p.found_by, t.tid
               FROM disk d JOIN process p ON p.id = d.process_id LEFT JOIN thread t ON t.id = d.thread_id
               WHERE d.device = ? AND d.ts_ns > ? AND d.ts_ns - d.dt_ns < ?""",
            (number_of(self.device), recording.start_ns, recording.end_ns)).fetchall()

    def sums(self, rows, **wanted):
        """(requests, sectors, ns) of the rows with these values."""
        found = [r for r in rows if all(r[k] == v for k, v in wanted.items())]
        for row in found:
            self.assertEqual(sum(row[f"hist{i}"] for i in range(8)), row["requests"], "histogram of a disk row")
            self.assertGreater(row["requests"], 0)
            self.assertGreaterEqual(row["total_ns"], row["max_ns"])
            self.assertGreater(row["dt_ns"], 0)
        return tuple(sum(r[c] for r in found) for c in ("requests", "sectors", "total_ns"))

    def check_against_diskstats(self, rows, counted):
        self.assertEqual(self.sums(rows, op="read")[:2], (counted.reads, counted.sectors_read))
        writes, flushes, other = (self.sums(rows, op=op) for op in ("write", "flush", "other"))
        self.assertEqual(writes[0] + flushes[0] + other[0], counted.writes)
        self.assertEqual(writes[1] + other[1], counted.sectors_written)

    def test_direct_reads(self):
        count, size = 400, 16384
        recording, truth, counted = self.transfers("read", count, size)
        rows = self.rows(recording)
        requests, sectors, total = self.sums(rows, tid=truth["tid"], op="read")
        note(f"{requests} requests, mean {total / max(1, requests) / 1000:.1f} us; the thread waited "
             f"{truth['total_ns'] / count / 1000:.1f} us each")
        self.assertEqual((requests, sectors), (count, count * size // SECTOR))
        self.assertEqual(sectors * SECTOR, truth["read_bytes"])
        # Each transfer is one request, and its call takes longer than the request.
        self.assertGreater(total, 0)
        self.assertLess(total, truth["total_ns"])
        self.assertEqual({r["partition"] for r in rows}, {0})
        self.check_against_diskstats(rows, counted)

    def test_direct_writes(self):
        count, size = 200, 65536
        recording, truth, counted = self.transfers("write", count, size)
        rows = self.rows(recording)
        self.assertEqual(self.sums(rows, tid=truth["tid"], op="write")[:2], (count, count * size // SECTOR))
        self.assertEqual(count * size, truth["write_bytes"])
        self.check_against_diskstats(rows, counted)

    def test_large_transfers_are_counted_as_issued(self):
        """One read of 4 MiB is as many requests as the device makes of it."""
        size = 4 << 20
        queue = pathlib.Path(f"/sys/block/{self.device.name}/queue")
        limit = int((queue / "max_sectors_kb").read_text(encoding="ascii")) * 1024
        recording, truth, counted = self.transfers("read", 4, size)
        rows = self.rows(recording)
        requests, sectors, _ = self.sums(rows, tid=truth["tid"], op="read")
        note(f"{requests} requests of at most {limit} bytes")
        self.assertEqual(sectors, 4 * size // SECTOR)
        self.assertGreaterEqual(requests, 4 * -(-size // limit))
        self.check_against_diskstats(rows, counted)

    def test_share_of_a_process_that_is_not_followed(self):
        count, size = 300, 32768
        recording, truth, counted = self.transfers("read", count, size, others=(2,), track=("--follow", "none"))
        rows = self.rows(recording)
        self.check_against_diskstats(rows, counted)
        # The question that all this is for, as it would be asked.
        shares = {row["pid"]: row["share"] for row in recording.db.execute(
            """SELECT p.pid, CAST(sum(d.sectors) AS REAL) / sum(sum(d.sectors)) OVER () AS share
               FROM disk d JOIN process p ON p.id = d.process_id
               WHERE d.device = ? AND d.ts_ns > ? AND d.ts_ns <= ? GROUP BY p.id""",
            (number_of(self.device), recording.start_ns, recording.end_ns + 2 * NS))}
        note(f"shares {shares}")
        self.assertAlmostEqual(shares[truth["other"]], 2 / 3, delta=0.001)
        neighbour = [r for r in rows if r["pid"] == truth["other"]]
        self.assertEqual({(r["thread_id"], r["comm"], r["found_by"]) for r in neighbour},
                         {(0, "neighbour", "observed")})
        self.assertEqual(self.sums(neighbour, op="read")[:2], (2 * count, 2 * count * size // SECTOR))

    def test_buffered_writes_belong_to_who_writes_them_back(self):
        """fsync() of a device writes its pages itself; what the kernel writes back by itself is the kernel's."""
        count, size = 64, 65536
        recording, truth, counted = self.transfers("buffered", count, size)
        rows = self.rows(recording)
        self.check_against_diskstats(rows, counted)
        own = self.sums(rows, tid=truth["tid"], op="write")
        kernel = [r for r in rows if r["op"] == "write" and r["tid"] is None]
        note(f"{own[1]} sectors written by the thread in fsync(), {sum(r['sectors'] for r in kernel)} by the kernel")
        self.assertEqual(own[1] + sum(r["sectors"] for r in kernel), count * size // SECTOR)
        self.assertEqual(self.sums(rows, tid=truth["tid"], op="flush")[0], 1, "fsync() flushes once")

    def test_write_back_is_shown_as_the_kernels(self):
        """Pages are dirtied by the workload and written by a kernel thread that is asked to."""
        with tempfile.TemporaryDirectory(prefix="prism-test-") as directory:
            subprocess.run(["mkfs.ext4", "-q", "-F", self.device], check=True)
            subprocess.run(["mount", self.device, directory], check=True)
            try:
                path = pathlib.Path(directory) / "file"
                path.write_bytes(b"\2" * (8 << 20))

                def sync(running):
                    # In place: ext4 writes a file that was truncated first as soon as it is closed.
                    with open(path, "r+b") as file:
                        file.write(b"\3" * (8 << 20))
                    os.sync()
                    time.sleep(TICK)

                recording, _ = self.play("block", self.device, "read", 1, 4096, during=sync)
            finally:
                subprocess.run(["umount", directory], check=True)
        kernel = [r for r in self.rows(recording) if r["op"] == "write" and r["sectors"] > 0 and r["ppid"] == 2]
        note(f"by {sorted({r['comm'] for r in kernel})}")
        self.assertGreaterEqual(sum(r["sectors"] for r in kernel), (8 << 20) // SECTOR)
        self.assertEqual({(r["exe"], r["thread_id"], r["found_by"]) for r in kernel}, {(None, 0, "observed")})

    def test_throttled_reads(self):
        """A throttle of its group holds requests back; those it held are begun by a kernel thread, for the group."""
        rate, size, count = 4 << 20, 65536, 64
        number = number_of(self.device)
        limit = f"{number >> 20}:{number & 0xfffff} {rate}"
        with group("blkio", {"blkio.throttle.read_bps_device": limit}) as path:
            (path / "cgroup.procs").write_text("0", encoding="ascii")
            try:
                recording, truth, counted = self.transfers("read", count, size)
            finally:
                (hierarchy("blkio") / "cgroup.procs").write_text("0", encoding="ascii")
        rows = [r for r in self.rows(recording) if r["op"] == "read"]
        self.check_against_diskstats(self.rows(recording), counted)
        expected = count * size / rate
        note(f"{truth['total_ns'] / NS:.2f} s for what the limit gives {expected:.2f} s; begun by "
             f"{sorted({r['comm'] for r in rows})}")
        self.assertGreater(truth["total_ns"], 0.8 * expected * NS, "the throttle does not work here")
        self.assertEqual(sum(r["sectors"] for r in rows), count * size // SECTOR)
        self.assertEqual({r["cgroup"] for r in rows}, {f"/{path.name}"})
        # The thread's waits have the latency.
        waited = sum(w.total_ns for w in recording.waits(recording.thread(truth["tid"]), op="read") if w.kind == "disk")
        self.assert_close(waited, truth["total_ns"], "waits for the device")


class Limits(TruthTest):
    PERIOD_NS = 100 * MS

    def test_cpu_quota(self):
        """A thread that wants a whole CPU, in a group that may have a fifth of one."""
        seen = []
        with group("cpu", {"cpu.cfs_period_us": str(self.PERIOD_NS // 1000), "cpu.cfs_quota_us": "20000"}) as path:

            def look():
                end = time.monotonic() + 5
                while time.monotonic() < end:
                    words = dict(line.split() for line in (path / "cpu.stat").read_text(encoding="ascii").splitlines())
                    seen.append((time.time_ns(), int(words["throttled_time"]), int(words["nr_throttled"])))
                    time.sleep(0.01)

            with self.spinner(path) as pid:
                recording, _ = self.record([pid], look)

        def at(ns):
            """What cpu.stat said then."""
            return max((s for s in seen if s[0] <= ns), default=seen[0])

        rows = recording.db.execute(
            "SELECT * FROM cgroup_time WHERE cgroup = ? AND ts_ns - dt_ns >= ? AND ts_ns <= ? ORDER BY ts_ns",
            (f"/{path.name}", seen[0][0], seen[-1][0])).fetchall()
        self.assertGreaterEqual(len(rows), 2)
        for before, after in zip(rows, rows[1:]):
            self.assertEqual(after["ts_ns"] - after["dt_ns"], before["ts_ns"], "rows of a busy group follow each other")
        begin, end = at(rows[0]["ts_ns"] - rows[0]["dt_ns"]), at(rows[-1]["ts_ns"])
        recorded, periods = (sum(r[c] for r in rows) for c in ("throttled_ns", "throttled_periods"))
        times = recording.times(recording.thread(pid))
        length = sum(r["dt_ns"] for r in rows)
        note(f"throttled {recorded / MS:.0f} ms and {periods} times in {length / MS:.0f} ms, by cpu.stat "
             f"{(end[1] - begin[1]) / MS:.0f} ms and {end[2] - begin[2]} times; {times['throttled_ns'] / times['dt_ns']:.1%} "
             f"of the thread's time, {recorded / length:.1%} of the rows'")
        self.assertGreater(recorded, 0)
        # The file moves once a period, and prismd reads it shortly after the tick.
        self.assertLessEqual(abs(recorded - (end[1] - begin[1])), 2 * self.PERIOD_NS)
        self.assertLessEqual(abs(periods - (end[2] - begin[2])), 2)
        # The thread's own account also has what it stood in the queue after its group was let go.
        self.assertGreater(times["throttled_ns"] / times["dt_ns"], recorded / length - 0.1)
        self.assertLessEqual(times["throttled_ns"], times["runqueue_ns"])

    @contextlib.contextmanager
    def spinner(self, path):
        """A process in the group that does nothing but run."""
        process = subprocess.Popen([sys.executable, "-c", "while True: pass"], stdin=subprocess.DEVNULL)
        try:
            (path / "cgroup.procs").write_text(str(process.pid), encoding="ascii")
            yield process.pid
        finally:
            process.kill()
            process.wait()


if __name__ == "__main__":
    tap.main()
