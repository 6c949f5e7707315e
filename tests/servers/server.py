# SPDX-License-Identifier: LGPL-2.1-or-later
"""A real server from the distribution, with its data in a directory of its own, and the load on it.

Nothing of the system is touched: no service, no file in /etc; all that was started is ended by its pid.
"""

import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

from prism import environment, run

START_TIMEOUT = 60
# Compiling, and filling a database.
PREPARE_TIMEOUT = 180


def need(program, *directories):
    """The path of a program that a package of tools/install-packages brings."""
    path = os.pathsep.join([*directories, os.environ.get("PATH", os.defpath), "/usr/sbin"])
    found = shutil.which(program, path=path)
    if not found:
        raise AssertionError(f"{program} is missing; tools/install-packages test installs it")
    return found


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def descendants(pid):
    """The process, its children, theirs, and so on."""
    found = [pid]
    for parent in found:
        try:
            for task in os.listdir(f"/proc/{parent}/task"):
                with open(f"/proc/{parent}/task/{task}/children", encoding="ascii") as f:
                    found += map(int, f.read().split())
        except OSError:
            pass  # it has ended
    return found


def command_line(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def socket_inodes(pid):
    """Of all sockets that a process has open."""
    inodes = set()
    for entry in os.scandir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(entry.path)
        except OSError:
            continue
        if target.startswith("socket:["):
            inodes.add(int(target[len("socket:["):-1]))
    return inodes


def tcp_ports(pid):
    """Local ports of a process's connected TCP sockets, from the kernel's own tables."""
    inodes = socket_inodes(pid)
    ports = set()
    for table in ("tcp", "tcp6"):
        with open(f"/proc/{pid}/net/{table}", encoding="ascii") as f:
            for fields in map(str.split, list(f)[1:]):
                if int(fields[9]) in inodes and fields[3] == "01":
                    ports.add(int(fields[1].rpartition(":")[2], 16))
    return ports


class Server:
    """`with Server() as s:` prepares and starts it; load() starts what keeps it busy until the end."""

    user = None  # who runs it; None: who runs the tests

    def __init__(self):
        self.directory = None
        self.processes = []
        self.server = None
        self.client = None

    @property
    def pid(self):
        return self.server.pid

    def prepare(self):
        """Configuration and data; nothing runs yet."""

    def command(self):
        raise NotImplementedError

    def answers(self):
        """Whether it is ready for clients."""
        raise NotImplementedError

    def fill(self):
        """What needs the running server before the load can start."""

    def load_command(self):
        """What keeps it busy until it is ended; None: it does so itself."""
        raise NotImplementedError

    def options(self):
        return {"user": self.user, "group": self.group(), "extra_groups": []} if self.user and os.geteuid() == 0 else {}

    def group(self):
        return run("id", "-gn", self.user).out.strip()

    def must(self, *command, **options):
        settings = {"stdin": subprocess.DEVNULL, "env": environment(), **self.options(), **options}
        done = subprocess.run(list(map(str, command)), capture_output=True, check=False, timeout=PREPARE_TIMEOUT,
                              cwd=self.directory, **settings)
        if done.returncode != 0:
            output = (done.stderr + done.stdout).decode(errors="backslashreplace")
            raise AssertionError(f"{command[0]}: exit {done.returncode}: {output[-1000:].strip()}")
        return done.stdout.decode(errors="backslashreplace")

    def run_quietly(self, *command):
        """Its exit status."""
        return subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, check=False, timeout=PREPARE_TIMEOUT, cwd=self.directory,
                              env=environment(), **self.options()).returncode

    def spawn(self, name, command):
        with open(self.directory / f"{name}.log", "wb") as log:
            process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                       cwd=self.directory, env=environment(), start_new_session=True, **self.options())
        self.processes.append((name, process))
        return process

    def log(self, name):
        path = self.directory / f"{name}.log"
        return path.read_text(encoding="utf-8", errors="backslashreplace")[-1500:] if path.exists() else ""

    def check_alive(self):
        for name, process in self.processes:
            if process.poll() is not None:
                raise AssertionError(f"{name} ended with {process.returncode}: {self.log(name)}")

    def start(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="prism-server-", dir="/var/tmp"))
        if self.options():
            shutil.chown(self.directory, self.user, self.group())
        self.prepare()
        self.server = self.spawn("server", self.command())
        deadline = time.monotonic() + START_TIMEOUT
        while not self.answers():
            self.check_alive()
            if time.monotonic() > deadline:
                raise AssertionError(f"the server does not answer after {START_TIMEOUT} s: {self.log('server')}")
            time.sleep(0.05)
        self.fill()
        return self

    def load(self):
        command = self.load_command()
        if command:
            self.client = self.spawn("load", command)

    def stop(self):
        """The load first, so that the server is not asked any more when it ends."""
        for _, process in reversed(self.processes):
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(START_TIMEOUT)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait(START_TIMEOUT)
        self.processes.clear()
        if self.directory:
            shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, kind, value, trace):
        self.stop()
