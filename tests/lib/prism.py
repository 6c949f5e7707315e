# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs the real prismd and drives it as a user does: with prismctl, and by reading its database."""

import collections
import ctypes
import json
import os
import pathlib
import select
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time

from tap import NeedsBpf

BUILD = pathlib.Path(os.environ.get("PRISM_BUILD", "build")).resolve()
PRISMD = BUILD / "daemon" / os.environ.get("PRISM_PRISMD", "prismd")  # or one of its variants
PRISMCTL = BUILD / "ctl/prismctl"
WORKLOADS = BUILD / "tests/truth/workloads"

START_TIMEOUT = 20
COMMAND_TIMEOUT = 60

Result = collections.namedtuple("Result", "code out err")


def bpf_unavailable():
    """Why this machine cannot load BPF at all, or None. Asks the kernel, not prismd, so that a prismd which cannot
    start where it should is a failure."""
    if os.geteuid() != 0:
        return "BPF needs root"
    if not os.path.exists("/sys/kernel/btf/vmlinux"):
        return "BPF needs a kernel with BTF (/sys/kernel/btf/vmlinux)"
    attributes = (ctypes.c_uint32 * 32)(2, 4, 4, 1)  # an array of one element
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.syscall(321, 0, attributes, ctypes.sizeof(attributes))
    if descriptor < 0:
        return f"BPF: bpf() says {os.strerror(ctypes.get_errno())}"
    os.close(descriptor)
    return None


def run(*command, env=None, timeout=COMMAND_TIMEOUT, stdin=None, cwd=None):
    """Runs a command to its end; arguments may be bytes. Output is text, with what is no UTF-8 escaped."""
    done = subprocess.run([a if isinstance(a, bytes) else str(a) for a in command], capture_output=True, env=env,
                          timeout=timeout, input=stdin, stdin=subprocess.DEVNULL if stdin is None else None,
                          cwd=cwd, check=False)
    return Result(done.returncode, done.stdout.decode(errors="backslashreplace"),
                  done.stderr.decode(errors="backslashreplace"))


def environment(**more):
    """Without what a user's shell may have set for prism or D-Bus."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("PRISM_") and k != "DBUS_SESSION_BUS_ADDRESS"}
    env["LC_ALL"] = "C.UTF-8"
    env.update(more)
    return env


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return [int(p) for p in f.read().split()]


class Prismd:
    """One prismd with a directory of its own. `with Prismd() as p:`; it ends with SIGTERM, by pid.

    executable: another build of it. own_pid_namespace: run it in a new one. directory: use this one and leave it there.
    """

    def __init__(self, executable=PRISMD, own_pid_namespace=False, directory=None, arguments=()):
        self.executable = executable
        self.own_pid_namespace = own_pid_namespace
        self.keep = directory is not None
        self.directory = pathlib.Path(directory or tempfile.mkdtemp(prefix="prism-test-"))
        self.state = self.directory / "state"
        self.address = f"unix:path={self.directory}/bus"
        self.log_path = self.directory / "log"
        self.arguments = list(arguments)
        self.process = None
        self.pid = None  # of prismd itself, as the tests see it

    def command(self):
        command = [str(self.executable), "--address", self.address, "--state-dir", str(self.state), "--log-level", "info",
                   *self.arguments]
        if self.own_pid_namespace:
            command = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", *command]
        return command

    def start(self):
        reason = bpf_unavailable()
        if reason:
            raise NeedsBpf(reason)
        if not os.path.exists(self.executable):
            raise AssertionError(f"{self.executable} is not built")
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env=environment(), start_new_session=True)
        deadline = time.monotonic() + START_TIMEOUT
        self.pid = self.process.pid
        if self.own_pid_namespace:
            while not children(self.process.pid):
                if self.process.poll() is not None:
                    raise AssertionError(f"unshare ended with {self.process.returncode}: {self.log()}")
                time.sleep(0.01)
            self.pid = children(self.process.pid)[0]
        while self.ctl("status").code != 0:
            if self.process.poll() is not None:
                raise AssertionError(f"prismd ended with {self.process.returncode}: {self.log()}")
            if time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"prismd does not answer after {START_TIMEOUT} s: {self.log()}")
            time.sleep(0.05)
        return self

    def stop(self):
        """Ends it as systemd would; returns its exit status."""
        if self.process is None:
            return None
        if self.process.poll() is None:
            os.kill(self.pid or self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(START_TIMEOUT)
            except subprocess.TimeoutExpired:
                self.kill()
                raise AssertionError(f"prismd does not end after SIGTERM: {self.log()}") from None
        code = self.process.returncode
        self.process = self.pid = None
        return code

    def kill(self):
        if self.process is not None and self.process.poll() is None:
            os.kill(self.pid or self.process.pid, signal.SIGKILL)
            self.process.wait(START_TIMEOUT)
        self.process = self.pid = None

    def remove(self):
        if not self.keep:
            shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.kill()
            raise

    def __exit__(self, kind, value, trace):
        try:
            self.stop()
        finally:
            if kind is None:
                self.remove()

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def log(self):
        return self.log_path.read_text(encoding="utf-8", errors="backslashreplace") if self.log_path.exists() else ""

    def ctl(self, *arguments, **options):
        """prismctl, with this prismd's address and state directory; its exit code, output and errors."""
        env = environment(PRISM_ADDRESS=self.address, PRISM_STATE_DIR=str(self.state))
        return run(*self.inside(), PRISMCTL, *arguments, env=env, **options)

    def inside(self):
        """What to put before a command to run it in prismd's pid namespace. A socket's peer from another one has no
        number here, and sd-bus does not let it in."""
        if not self.own_pid_namespace:
            return ()
        return ("nsenter", f"--pid=/proc/{self.pid}/ns/pid", f"--mount=/proc/{self.pid}/ns/mnt")

    def must(self, *arguments, **options):
        """The output of a prismctl that must succeed."""
        result = self.ctl(*arguments, **options)
        if result.code != 0:
            raise AssertionError(f"prismctl {' '.join(map(str, arguments))}: exit {result.code}: {result.err.strip()}")
        return result.out

    def json(self, *arguments, **options):
        return json.loads(self.must("--json", *arguments, **options))

    def database(self):
        db = sqlite3.connect(f"file:{self.state}/prism.db?mode=ro", uri=True, timeout=10)
        db.row_factory = sqlite3.Row
        return db


class Workload:
    """A program of tests/truth/workloads. `pid` is its own view of its number; host_pid is ours."""

    def __init__(self, name, *arguments, prefix=(), env=None, cwd=None, program=None):
        self.name = " ".join([name, *map(str, arguments)])
        self.buffer = b""
        self.process = subprocess.Popen([*map(str, prefix), str(program or WORKLOADS / name), *map(str, arguments)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
                                        env=environment(**(env or {})), cwd=cwd)
        word, _, number = self._line().partition(" ")
        if word != "ready":
            raise AssertionError(f"workload {self.name} is not ready: {word}")
        self.pid = int(number)

    def _line(self, timeout=30):
        descriptor = self.process.stdout.fileno()
        deadline = time.monotonic() + timeout
        while b"\n" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([descriptor], [], [], left)[0]:
                raise AssertionError(f"workload {self.name} says nothing for {timeout} s")
            data = os.read(descriptor, 65536)
            if not data:
                raise AssertionError(f"workload {self.name} ended with {self.process.wait(5)}")
            self.buffer += data
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line.decode()

    def go(self):
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def answer(self):
        """What really happened."""
        return json.loads(self._line())

    def end(self):
        if self.process.poll() is None:
            try:
                self.process.stdin.write(b"\n")
                self.process.stdin.close()
            except BrokenPipeError:
                pass
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(5)
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.end()
