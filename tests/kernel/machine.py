# SPDX-License-Identifier: LGPL-2.1-or-later
"""An emulated machine that runs Debian 12 with its own kernel: what it boots with, what it prints, and its power switch."""

import json
import os
import pathlib
import resource
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

from prism import BUILD

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
MEMORY_MIB = 2048


class Control:
    """qemu's own protocol. While somebody stops the machine by its monitor, its clock stands still: so do our deadlines."""

    def __init__(self, path):
        self.connection = socket.socket(socket.AF_UNIX)
        self.connection.connect(str(path))
        self.buffer = b""
        self.stopped = False
        self.say("qmp_capabilities")

    def say(self, command):
        self.connection.sendall(json.dumps({"execute": command}).encode())

    def listen(self, seconds):
        """Waits that long at most, for what it tells of itself."""
        if not select.select([self.connection], [], [], seconds)[0]:
            return
        data = self.connection.recv(65536)
        if not data:
            time.sleep(seconds)  # qemu has ended, as its owner is about to see
        *lines, self.buffer = (self.buffer + data).split(b"\n")
        for line in lines:
            event = json.loads(line).get("event")
            if event in ("STOP", "RESUME"):
                self.stopped = event == "STOP"


def missing():
    """Why it cannot run here, or None."""
    if os.geteuid() != 0:
        return "only root can make the image and its disk"
    for tool in ("qemu-system-x86_64", "mmdebstrap", "mkfs.ext4"):
        if not shutil.which(tool):
            return f"{tool} is missing"
    return None


def used_by_children():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class Machine:
    """One boot. Its root disk is as the image has it, whatever earlier boots wrote."""

    def __init__(self, image, kernel_options, clock):
        self.image = pathlib.Path(image)
        self.kernel_options = kernel_options
        self.clock = clock
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="prism-kernel-", dir="/var/tmp"))
        self.console = self.directory / "console"
        self.output = self.directory / "output"
        self.process = None
        self.control = None
        self.used_before = 0.0

    def make_disk(self, plan):
        """The second disk: the product as it is installed, the suites, and what to do with them."""
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

    def boot(self, plan, state):
        """`state`: where qemu finds the third disk."""
        disk = self.make_disk(plan)
        self.output.touch()
        options = f"root=/dev/vda rw console=ttyS0 quiet panic=-1 mitigations=off {self.kernel_options}"
        command = [
            "qemu-system-x86_64", "-no-user-config", "-nodefaults", "-display", "none", "-no-reboot",
            "-machine", "q35", "-m", str(MEMORY_MIB),
            # One: with two, qemu 7.2 may go on with the old code of a tracepoint's branch that the other one has patched, and
            # both stand still. Without what is slow to emulate.
            "-cpu", "max,-la57,-avx,-avx2", "-smp", "1",
            # Time is instructions: each takes 2 ns, and while there is nothing to do it goes on to the next timer. So nothing
            # that keeps the host busy is seen inside.
            "-icount", "shift=1,sleep=off",
            # What goes on while the machine is suspended is the clock of its board.
            "-rtc", f"base={self.clock:%Y-%m-%dT%H:%M:%S},clock=host",
            "-kernel", self.image / "vmlinuz", "-initrd", self.image / "initrd", "-append", options,
            # Whatever it writes to the image goes to a file without a name.
            "-drive", f"file={self.image}/disk,if=virtio,format=raw,snapshot=on,cache=unsafe",
            "-drive", f"file={disk},if=virtio,format=raw,readonly=on",
            "-drive", f"file={state},if=virtio,format=raw,cache=writeback",
            "-serial", f"file:{self.console}", "-serial", f"file:{self.output}",
            # For people.
            "-monitor", f"unix:{self.directory}/monitor,server,nowait",
            "-qmp", f"unix:{self.directory}/control,server,nowait"]
        self.used_before = used_by_children()
        with open(self.directory / "qemu", "wb") as errors:
            self.process = subprocess.Popen(["nice", "-n", "19", *command], stdin=subprocess.DEVNULL,
                                            stdout=subprocess.DEVNULL, stderr=errors,
                                            env=dict(os.environ, TMPDIR=str(self.directory)))
        deadline = time.monotonic() + 30
        while self.control is None:
            try:
                self.control = Control(self.directory / "control")
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise AssertionError(f"qemu does not start: {self.last_words()}") from None
                time.sleep(0.1)

    def lines(self, timeout):
        """What it prints until it is off; ends early when nothing can come any more."""
        buffer = b""
        left = timeout
        with open(self.output, "rb") as output:
            while True:
                ended = self.process.poll() is not None or left <= 0
                buffer += output.read()
                *lines, buffer = buffer.split(b"\n")
                for line in lines:
                    yield line.decode(errors="backslashreplace").rstrip("\r")
                if ended:
                    break
                started = time.monotonic()
                self.control.listen(0.2)
                if not self.control.stopped:
                    left -= time.monotonic() - started

    def last_words(self):
        said = (self.directory / "qemu").read_text(errors="replace")[-2000:]
        if self.console.exists():
            said += self.console.read_text("utf-8", errors="backslashreplace")[-6000:]
        return f"qemu: {self.process.poll()} {said}"

    def power_off(self):
        """At once, whatever it does."""
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    @property
    def used_seconds(self):
        """CPU time, once it is off."""
        return used_by_children() - self.used_before

    def close(self):
        self.power_off()
        if os.environ.get("PRISM_KEEP") == "1":
            print(f"# kept: {self.directory}")
        else:
            shutil.rmtree(self.directory, ignore_errors=True)
