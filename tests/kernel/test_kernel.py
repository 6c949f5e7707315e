#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""prism on another kernel: boots Debian 12 with its own (6.1) under qemu, installs the build there and runs suites inside.
Each of their tests is a test of this one, so the numbers stay what they are.

test_kernel.py [SUITE...]     only these suites

By hand so far: the emulator's clock and CPU make tests with tolerances on time fail now and then.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

from prism import BUILD, run

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent

# Its clock and its CPUs are emulated: percent of the truth.
TOLERANCE = "5"
MEMORY_MIB = 2048
BOOT_TIMEOUT = 120

# Seconds that each suite may take; an emulated CPU is some ten times slower.
MACHINES = {
    # Debian's default: control groups v2 only.
    "unified": ("", [("service", 120), ("conservation", 120), ("futexes", 120), ("waits", 120), ("pipes", 60),
                     ("multiplex", 60), ("sockets", 120), ("calls", 120), ("compat32", 60)]),
    # With the v1 controllers that the tests use to slow down a disk or a CPU.
    "hybrid": ("systemd.unified_cgroup_hierarchy=0", [("storage", 180), ("block", 180), ("throttling", 60)]),
}

# Tests that may be skipped there, and why. Another skipped test is a failure: it would say nothing about this kernel.
MAY_SKIP = {}


class Report:
    """TAP, while the guest runs."""

    def __init__(self):
        self.number = 0
        self.failed = 0

    def say(self, line):
        print(line, flush=True)

    def result(self, good, name, rest=""):
        self.number += 1
        self.failed += not good
        self.say(f"{'ok' if good else 'not ok'} {self.number} - {name}{rest}")

    def note(self, text):
        for line in text.splitlines():
            self.say(f"# {line}")


class Output:
    """Reads what the guest says, line by line, and makes it part of the report."""

    def __init__(self, report, suites):
        self.report = report
        self.left = [name for name, _ in suites]
        self.suite = None
        self.plan = self.seen = self.failed = 0
        self.done = False

    def line(self, line):
        word, _, rest = line.partition(" ")
        if word == "suite":
            self.suite, self.plan, self.seen, self.failed = rest, None, 0, 0
            self.left.remove(rest)
            self.report.note(f"{rest}:")
        elif word == "end" and self.suite:
            self.end(*rest.split()[1:])
        elif line == "done":
            self.done = True
        elif re.match(r"(not )?ok \d+ - ", line) and self.suite:
            self.test(line)
        elif match := re.fullmatch(r"1\.\.(\d+)", line):
            self.plan = int(match[1])
        else:
            self.report.note(re.sub("^# ?", "", line[:600]))

    def test(self, line):
        words, _, name = line.partition(" - ")
        name, _, skipped = name.partition(" # SKIP ")
        self.seen += 1
        good = words.startswith("ok")
        name = f"{self.suite}: {name}"
        if skipped and not re.search(MAY_SKIP.get(name, "$^"), skipped):
            self.report.result(False, name)
            self.report.note(f"  skipped: {skipped}")
        else:
            self.report.result(good, name, f" # SKIP {skipped}" if skipped else "")
            self.failed += not good

    def end(self, code, seconds):
        """What a suite says of itself must be what was seen of it."""
        self.report.note(f"{self.suite} took {seconds} s")
        if self.plan is None or self.seen < self.plan or code not in ("0", "1") or (code == "1") != (self.failed > 0):
            self.report.result(False, f"{self.suite}: runs to its end")
            self.report.note(f"  exit {code} after {self.seen} of {self.plan} tests, {self.failed} failed")
        self.suite = None

    def close(self):
        for name in ([self.suite] if self.suite else []) + self.left:
            self.report.result(False, f"{name}: runs to its end")


class Machine:
    """One boot: a disk that is thrown away after it, and a second one with what to do."""

    def __init__(self, image, kernel_options, suites):
        self.image = pathlib.Path(image)
        self.kernel_options = kernel_options
        self.suites = suites
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="prism-kernel-", dir="/var/tmp"))
        self.console = self.directory / "console"
        self.output = self.directory / "output"
        self.process = None

    def make_disk(self):
        content = self.directory / "content"
        tree = content / "tree"
        subprocess.run(["meson", "install", "-C", str(BUILD), "--no-rebuild", "--quiet"], check=True,
                       env=dict(os.environ, DESTDIR=str(tree)), stdout=subprocess.DEVNULL)
        # What the suites look for in a build and in the tree.
        for folder in ("daemon", "ctl", "tests/truth/workloads"):
            (content / "build" / folder).mkdir(parents=True)
            for path in (BUILD / folder).iterdir():
                if path.is_file() and os.access(path, os.X_OK):
                    shutil.copy2(path, content / "build" / folder)
        for part in ("tests/lib", "tests/truth", "tests/kernel"):
            shutil.copytree(SOURCE / part, content / part, ignore=shutil.ignore_patterns("__pycache__"))
        for part in ("units/after-install", "store/schema.sql"):
            (content / part).parent.mkdir()
            shutil.copy2(SOURCE / part, content / part)
        folders = {"service": "kernel"}
        plan = {"environment": {"PRISM_REQUIRE_BPF": "1", "PRISM_TOLERANCE": TOLERANCE},
                "suites": [(name, f"tests/{folders.get(name, 'truth')}/test_{name}.py", seconds)
                           for name, seconds in self.suites]}
        (content / "plan.json").write_text(json.dumps(plan), "utf-8")
        begin = content / "begin"
        begin.write_text("#!/bin/sh\nexec python3 /mnt/tests/kernel/guest.py\n", "ascii")
        begin.chmod(0o755)
        disk = self.directory / "disk"
        with open(disk, "wb") as f:
            f.truncate(256 << 20)
        subprocess.run(["mkfs.ext4", "-q", "-d", content, disk], check=True)
        shutil.rmtree(content)
        return disk

    def boot(self):
        disk = self.make_disk()
        self.output.touch()
        options = f"root=/dev/vda rw console=ttyS0 quiet panic=-1 mitigations=off {self.kernel_options}"
        # Whatever it writes to the image goes to a file without a name. One CPU: with two, qemu 7.2 may go on with the old code
        # of a tracepoint's branch that the other CPU has patched, and both stand still.
        self.process = subprocess.Popen(
            ["qemu-system-x86_64", "-no-user-config", "-nodefaults", "-display", "none", "-no-reboot",
             "-machine", "q35", "-cpu", "max", "-smp", "1", "-m", str(MEMORY_MIB),
             "-kernel", self.image / "vmlinuz", "-initrd", self.image / "initrd", "-append", options,
             "-drive", f"file={self.image}/disk,if=virtio,format=raw,snapshot=on,cache=unsafe",
             "-drive", f"file={disk},if=virtio,format=raw,readonly=on",
             "-serial", f"file:{self.console}", "-serial", f"file:{self.output}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=open(self.directory / "qemu", "wb"),
            env=dict(os.environ, TMPDIR=str(self.directory)))

    def lines(self):
        """What it prints until it is off; ends early when nothing can come any more."""
        buffer = b""
        deadline = time.monotonic() + BOOT_TIMEOUT + sum(seconds for _, seconds in self.suites)
        with open(self.output, "rb") as output:
            while True:
                ended = self.process.poll() is not None or time.monotonic() > deadline
                buffer += output.read()
                *lines, buffer = buffer.split(b"\n")
                for line in lines:
                    yield line.decode(errors="backslashreplace").rstrip("\r")
                if ended:
                    break
                time.sleep(0.2)

    def run(self, report):
        output = Output(report, self.suites)
        self.boot()
        for line in self.lines():
            output.line(line)
        output.close()
        if not output.done:
            report.note(f"qemu: {self.process.poll()} {(self.directory / 'qemu').read_text(errors='replace')[-2000:]}")
            report.note(self.console.read_text("utf-8", errors="backslashreplace")[-6000:])

    def close(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if os.environ.get("PRISM_KEEP") == "1":
            print(f"# kept: {self.directory}")
        else:
            shutil.rmtree(self.directory, ignore_errors=True)


def missing():
    if os.geteuid() != 0:
        return "only root can make the image and its disk"
    for tool in ("qemu-system-x86_64", "mmdebstrap", "mkfs.ext4"):
        if not shutil.which(tool):
            return f"{tool} is missing"
    return None


def main():
    reason = missing()
    if reason:
        print(f"1..0 # SKIP {reason}")
        return 0
    image = run(SOURCE / "tools/kernel-image", timeout=1800)
    report = Report()
    if image.code != 0:
        report.result(False, "the image can be built")
        report.note(image.err.strip())
    else:
        for kernel_options, suites in MACHINES.values():
            suites = [s for s in suites if s[0] in (sys.argv[1:] or [s[0]])]
            if not suites:
                continue
            machine = Machine(image.out.strip(), kernel_options, suites)
            try:
                machine.run(report)
            finally:
                machine.close()
    print(f"1..{report.number}")
    return 1 if report.failed or not report.number else 0


if __name__ == "__main__":
    sys.exit(main())
