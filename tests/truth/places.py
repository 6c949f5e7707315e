# SPDX-License-Identifier: LGPL-2.1-or-later
"""Places for workloads: a file system on a loop device, and control groups (v1) that slow down disk or CPU."""

import os
import pathlib
import shutil
import unittest

from prism import run

MEBIBYTE = 1 << 20


def must(*command):
    done = run(*command)
    if done.code != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: exit {done.code}: {done.err.strip()}")
    return done.out.strip()


class LoopFilesystem:
    """ext4 on a file in the given directory, mounted below it; gone after close()."""

    def __init__(self, directory, mebibytes=64):
        if not shutil.which("mkfs.ext4"):
            raise unittest.SkipTest("needs e2fsprogs")
        self.mounted = False
        self.device = None
        self.path = pathlib.Path(directory) / "mount"
        image = pathlib.Path(directory) / "image"
        with open(image, "wb") as f:
            f.truncate(mebibytes * MEBIBYTE)
        # Nothing is left for the kernel to initialise in the background.
        must("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", image)
        done = run("losetup", "--find", "--show", image)
        if done.code != 0:
            raise unittest.SkipTest(f"no loop device here: {done.err.strip()}")
        self.device = done.out.strip()
        self.path.mkdir()
        try:
            must("mount", self.device, self.path)
            self.mounted = True
        except AssertionError:
            self.close()
            raise

    @property
    def numbers(self):
        """MAJOR:MINOR of the device."""
        device = os.stat(self.device).st_rdev
        return f"{os.major(device)}:{os.minor(device)}"

    def close(self):
        if self.mounted:
            must("umount", self.path)
            self.mounted = False
        if self.device:
            must("losetup", "--detach", self.device)
            self.device = None


class ControlGroup:
    """A group of the v1 controller, below its root."""

    def __init__(self, controller):
        root = pathlib.Path("/sys/fs/cgroup") / controller
        if not (root / "cgroup.procs").exists():
            raise unittest.SkipTest(f"needs the {controller} controller of cgroup v1")
        self.name = f"prism-truth-{os.getpid()}"
        self.path = root / self.name
        self.path.mkdir()

    def write(self, file, text):
        (self.path / file).write_text(text, encoding="ascii")

    def stat(self, file):
        lines = (self.path / file).read_text(encoding="ascii").splitlines()
        return {key: int(value) for key, value in (line.split() for line in lines)}

    def prefix(self):
        """What to put before a command to run it inside."""
        return ("sh", "-c", 'echo $$ >"$0" && exec "$@"', self.path / "cgroup.procs")

    def close(self):
        self.path.rmdir()


class SlowDisk:
    """A loop file system on which a group's processes may do so many operations a second, from slow() on."""

    def __init__(self, directory, operations):
        self.operations = operations
        self.filesystem = LoopFilesystem(directory)
        try:
            self.group = ControlGroup("blkio")
        except BaseException:
            self.filesystem.close()
            raise

    def slow(self):
        for direction in ("read", "write"):
            file = f"blkio.throttle.{direction}_iops_device"
            if not (self.group.path / file).exists():
                raise unittest.SkipTest("this kernel cannot throttle disks")
            self.group.write(file, f"{self.filesystem.numbers} {self.operations}")

    def prefix(self):
        return self.group.prefix()

    def close(self):
        self.group.close()
        self.filesystem.close()
