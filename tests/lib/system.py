# SPDX-License-Identifier: LGPL-2.1-or-later
"""A real systemd with a system bus, polkit and a journal, in a container with a root file system of its own. prism is
installed into it as a package would, and driven from the inside.

It shares the kernel and nothing else: no files, no network, no bus of the host.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

from prism import BUILD, COMMAND_TIMEOUT, Result, bpf_unavailable, children, run
from tap import NeedsBpf

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
BOOT_TIMEOUT = 60
ENVIRONMENT = ["env", "-i", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8",
               "HOME=/root", "TERM=dumb", "SYSTEMD_PAGER=", "SYSTEMD_COLORS=0"]
MANAGER = ["org.prism.Prism1", "/org/prism/Prism1", "org.prism.Prism1.Manager"]


def wait_until(condition, what, seconds=20):
    """Yields what the condition did when it became true."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.1)


class Groups:
    """A cgroup of its own for a container, in each hierarchy that systemd uses: two containers in the same one would share
    the groups of their services."""

    def __init__(self, name):
        with open("/proc/self/mountinfo", encoding="utf-8") as f:
            mounts = [line.split() for line in f]
        self.paths = []
        for fields in mounts:
            kind, options = fields[fields.index("-") + 1], fields[-1]
            if kind == "cgroup2" or (kind == "cgroup" and "name=systemd" in options):
                self.paths.append(pathlib.Path(fields[4]) / name)
        for path in self.paths:
            path.mkdir(exist_ok=True)

    def enter(self):
        """For a new process, before it becomes another program."""
        for path in self.paths:
            (path / "cgroup.procs").write_text("0", "ascii")

    def remove(self):
        for path in self.paths:
            for directory, _, _ in os.walk(path, topdown=False):
                try:
                    os.rmdir(directory)
                except OSError:
                    pass  # somebody is still in it


class System:
    """`with System() as s:` boots it; `s.run(...)` runs a command inside, as root or as `user`."""

    def __init__(self, installed=True):
        self.installed = installed
        self.directory = None
        self.root = None
        self.container = None
        self.leader = None
        self.groups = None
        self.installed_files = []

    def make_root(self):
        """The files, and nothing running."""
        reason = bpf_unavailable()
        if reason:
            raise NeedsBpf(reason)
        image = run(SOURCE / "tools/system-image", timeout=1800)
        if image.code != 0:
            raise AssertionError(f"tools/system-image: {image.err.strip()}")
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="prism-system-", dir="/var/tmp"))
        self.root = self.directory / "root"
        subprocess.run(["cp", "-a", "--reflink=auto", image.out.strip(), self.root], check=True)
        if self.installed:
            self.copy_files()
        return self

    def start(self):
        self.make_root()
        self.boot()
        if self.installed:
            self.prepare()
        return self

    def boot(self):
        name = f"prism-test-{os.getpid()}"
        self.groups = Groups(name)
        with open(self.directory / "console", "ab") as console:
            self.container = subprocess.Popen(
                ["systemd-nspawn", "--quiet", "--boot", "--register=no", "--keep-unit", "--private-network",
                 "--capability=all", "--system-call-filter=bpf perf_event_open", "--link-journal=no",
                 "--resolv-conf=off", "--timezone=off", f"--directory={self.root}", f"--machine={name}",
                 "--console=pipe"],
                stdin=subprocess.DEVNULL, stdout=console, stderr=console, start_new_session=True,
                preexec_fn=self.groups.enter)
        wait_until(self._booted, "the container boots", BOOT_TIMEOUT)

    def _booted(self):
        if self.container.poll() is not None:
            raise AssertionError("systemd-nspawn ended: " + (self.directory / "console").read_text(errors="replace"))
        pids = children(self.container.pid)
        if not pids:
            return False
        self.leader = pids[0]
        state = self.run("systemctl", "is-system-running").out.strip()
        return state in ("running", "degraded")

    def copy_files(self):
        """Puts the build in place, without any of the scripts that would touch the host."""
        tree = self.directory / "tree"
        env = dict(os.environ, DESTDIR=str(tree))
        subprocess.run(["meson", "install", "-C", str(BUILD), "--no-rebuild", "--quiet"], env=env, check=True,
                       stdout=subprocess.DEVNULL)
        self.installed_files = [p.relative_to(tree) for p in tree.rglob("*") if not p.is_dir()]
        subprocess.run(["cp", "-a", f"{tree}/.", self.root], check=True)
        subprocess.run(["chown", "-R", "root:root", *[self.root / p for p in self.installed_files]], check=True)

    def prepare(self):
        """What `meson install` does on a running system after the files are there."""
        self.must("sh", "-s", stdin=(SOURCE / "units/after-install").read_bytes())

    def stop(self):
        if self.container and self.container.poll() is None:
            self.container.send_signal(signal.SIGTERM)
            try:
                self.container.wait(BOOT_TIMEOUT)
            except subprocess.TimeoutExpired:
                self.container.kill()
                self.container.wait(BOOT_TIMEOUT)
        self.container = self.leader = None
        if self.groups:
            self.groups.remove()
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

    def command(self, *command, user=None):
        """What runs a command inside."""
        inside = ["nsenter", "--target", str(self.leader), "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup",
                  "--root", "--wd=/", "--", *ENVIRONMENT]
        if user:
            inside += ["runuser", "-u", user, "--"]
        return [*inside, *map(str, command)]

    def run(self, *command, user=None, timeout=COMMAND_TIMEOUT, stdin=None):
        return run(*self.command(*command, user=user), timeout=timeout, stdin=stdin)

    def must(self, *command, **options):
        result = self.run(*command, **options)
        if result.code != 0:
            raise AssertionError(f"{' '.join(map(str, command))}: exit {result.code}: {result.err.strip()}")
        return result.out

    def popen(self, *command, user=None, **options):
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.DEVNULL)
        return subprocess.Popen(self.command(*command, user=user), stdin=subprocess.DEVNULL, **options)

    def write(self, path, text):
        self.must("mkdir", "-p", os.path.dirname(path))
        self.must("tee", path, stdin=text.encode())

    def call(self, method, *arguments, user=None, flags=()):
        """A method of the manager, over the bus."""
        return self.run("busctl", "--json=short", *flags, "call", *MANAGER, method, *arguments, user=user)

    def must_call(self, method, *arguments):
        result = self.call(method, *arguments)
        if result.code != 0:
            raise AssertionError(f"{method}: {result.err.strip()}")
        return json.loads(result.out)["data"] if result.out.strip() else None

    def main_pid(self, unit="prismd.service"):
        """Inside; 0 when it does not run."""
        return int(self.must("systemctl", "show", "--value", "-p", "MainPID", unit))

    def host_pid(self, pid):
        """The number that a process of the container has outside."""
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                status = pathlib.Path(f"/proc/{entry}/status").read_text(encoding="utf-8", errors="replace")
                same = os.stat(f"/proc/{entry}/ns/pid").st_ino == os.stat(f"/proc/{self.leader}/ns/pid").st_ino
            except OSError:
                continue
            numbers = next(line for line in status.splitlines() if line.startswith("NSpid:")).split()[1:]
            if same and len(numbers) > 1 and int(numbers[-1]) == pid:
                return int(entry)
        raise AssertionError(f"no process {pid} in the container")

    def journal(self, *matches):
        """Entries of prismd in this boot."""
        out = self.must("journalctl", "-b", "-o", "json", "--no-pager", "-u", "prismd.service", *matches)
        return [json.loads(line) for line in out.splitlines()]


def start_worker(system, name="work"):
    """A service whose threads contend for a lock; yields its pid inside."""
    program = ("import threading,time\n"
               "lock=threading.Lock()\n"
               "def hold():\n"
               "    while True:\n"
               "        with lock: time.sleep(0.02)\n"
               "        time.sleep(0.001)\n"  # else whoever has it may keep it
               "for i in range(3): threading.Thread(target=hold).start()\n")
    system.must("systemd-run", "--quiet", f"--unit={name}", "python3", "-c", program)
    return system.main_pid(f"{name}.service")
