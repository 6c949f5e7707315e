#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs inside the machine of test_kernel.py: installs prism, runs the suites of the plan one after the other, and prints
what they print, each between "suite NAME" and "end NAME EXIT SECONDS"."""

import json
import os
import pathlib
import signal
import subprocess
import time

SUITE_TIMEOUT = 300
STATE = pathlib.Path("/var/lib/prism")
STATE_DISK = "/dev/vdc"
DISK = pathlib.Path(__file__).resolve().parent.parent.parent


def say(text):
    print(text, flush=True)


def install():
    """As `meson install` on the running system does; what prism records is on a disk of its own."""
    subprocess.run(["cp", "-a", "--no-preserve=ownership", f"{DISK}/tree/.", "/"], check=True)
    subprocess.run(["sh", DISK / "units/after-install"], check=True)
    STATE.mkdir(mode=0o750, parents=True)
    subprocess.run(["mount", STATE_DISK, STATE], check=True)


def run_suite(name, script, environment):
    say(f"suite {name}")
    started = time.monotonic()
    # A group of its own, so that nothing of a suite which hangs is left for the next one.
    process = subprocess.Popen(["python3", script], stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT,
                               cwd=script.parent, env={**os.environ, **environment}, start_new_session=True)
    try:
        code = process.wait(SUITE_TIMEOUT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        code = "timeout"
    say(f"end {name} {code} {time.monotonic() - started:.1f}")


def main():
    plan = json.loads((DISK / "plan.json").read_text("utf-8"))
    environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8",
                   "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1", "PRISM_BUILD": str(DISK / "build"),
                   **plan["environment"]}
    say(f"kernel {os.uname().release}, started within {time.clock_gettime(time.CLOCK_BOOTTIME):.1f} s")
    install()
    for name, script in plan["suites"]:
        run_suite(name, DISK / script, environment)
    say("done")


if __name__ == "__main__":
    main()
