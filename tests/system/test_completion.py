#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Completion in bash and zsh, by running it: verbs, options, and what a real prismd knows."""

import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

import tap
from prism import PRISMCTL, Prismd, bpf_unavailable, environment, run
from system import SOURCE

COMPLETION = SOURCE / "ctl/completion"
TARGET, RECORDINGS = f"pid:{os.getpid()}", ["plain", "with space", "with:colon"]

prismd = None


def setUpModule():
    global prismd
    reason = bpf_unavailable()
    if reason:
        raise tap.NeedsBpf(reason)
    prismd = Prismd().start()
    prismd.must("track", "--pid", os.getpid())
    prismd.must("track", "--command", "foo bar")
    for name in RECORDINGS:
        prismd.must("record", "start", name)
        prismd.must("record", "stop", name)


def tearDownModule():
    if prismd:
        prismd.stop()
        prismd.remove()


def shell_environment():
    return environment(PRISM_ADDRESS=prismd.address, PRISM_STATE_DIR=str(prismd.state),
                       PATH=f"{PRISMCTL.parent}:{os.environ['PATH']}", HOME="/nonexistent", TERM="dumb", PS1="")


def verbs():
    """What the program itself lists."""
    listed = re.search(r"Verbs:\n(.*?)\n\n", prismd.must("help"), re.DOTALL)[1]
    return {line.split()[0] for line in listed.splitlines()}


class Bash(unittest.TestCase):
    def complete(self, line):
        """What bash offers at the end of a line."""
        script = ('. /usr/share/bash-completion/bash_completion; . "$1"\n'
                  'COMP_LINE=$2; COMP_POINT=${#COMP_LINE}\n'
                  # As readline does: colons and equal signs are words of their own.
                  'read -r -a split <<<"$(sed -E "s/([:=])/ \\1 /g" <<<"${2//\\\\ /@}")"\n'
                  'COMP_WORDS=("${split[@]//@/\\\\ }"); [[ $2 != *" " ]] || COMP_WORDS+=("")\n'
                  'COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMP_TYPE=9; COMP_KEY=9\n'
                  'compopt() { :; }\n'
                  '_prismctl prismctl "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"\n'
                  'printf "%s\\n" "${COMPREPLY[@]}"\n')
        result = run("bash", "--norc", "-c", script, "bash", COMPLETION / "prismctl.bash", line,
                     env=shell_environment())
        self.assertEqual(result.err, "", line)
        return [word for word in result.out.splitlines() if word]

    def test_verbs(self):
        self.assertEqual(set(self.complete("prismctl ")), verbs())
        self.assertEqual(set(self.complete("prismctl help ")), verbs())
        self.assertEqual(self.complete("prismctl rec"), ["record"])
        self.assertEqual(self.complete("prismctl --state-dir /x repo"), ["report"])

    def test_every_option(self):
        """Each long option that a verb's help names is offered, and only those."""
        common = {"--json", "--no-legend", "--help"}
        for verb in verbs():
            synopsis = prismd.must("help", verb).split("\n\n")[1]
            documented = set(re.findall(r"--[a-z-]*[a-z]", synopsis))
            self.assertEqual(set(self.complete(f"prismctl {verb} --")) - common, documented - common, verb)

    def test_targets(self):
        self.assertEqual(set(self.complete("prismctl untrack ")), {TARGET, "command:foo\\ bar"})
        # Readline replaces only what is behind the colon.
        self.assertEqual(self.complete(f"prismctl untrack {TARGET[:6]}"), [TARGET[4:]])
        self.assertEqual(self.complete("prismctl wait target com"), ["command:foo\\ bar"])

    def test_recordings(self):
        self.assertEqual(set(self.complete("prismctl report ")), {"plain", "with\\ space", "with:colon"})
        self.assertEqual(self.complete("prismctl record delete pl"), ["plain"])
        self.assertEqual(self.complete("prismctl query --baseline pl"), ["plain"])
        self.assertEqual(self.complete("prismctl report with\\ s"), ["with\\ space"])
        self.assertEqual(self.complete("prismctl record start "), [])

    def test_pids(self):
        self.assertIn(str(os.getpid()), self.complete("prismctl track --pid "))
        self.assertIn(f"1,{os.getpid()}", self.complete("prismctl track --pid 1,"))
        self.assertIn(str(os.getpid()), self.complete("prismctl wait process "))

    def test_words(self):
        self.assertEqual(self.complete("prismctl track --follow c"), ["children"])
        self.assertEqual(self.complete("prismctl record s"), ["start", "stop", "show"])
        self.assertEqual(self.complete("prismctl record start x --calls f"), ["full"])

    def test_nothing_is_started(self):
        env = environment(PRISM_ADDRESS="unix:path=/nonexistent/bus", PATH=f"{PRISMCTL.parent}:{os.environ['PATH']}")
        result = run("bash", "-c", f'. /usr/share/bash-completion/bash_completion; . "{COMPLETION}/prismctl.bash"; '
                     "_prismctl_targets; _prismctl_recordings", env=env)
        self.assertEqual((result.out, result.err), ("", ""))


class Zsh(unittest.TestCase):
    """In a terminal: zsh has no other way to run completion."""

    def setUp(self):
        if not shutil.which("zsh"):
            self.fail("zsh is missing; run tools/install-packages test")
        self.master, slave = pty.openpty()
        self.shell = subprocess.Popen(["zsh", "-f", "-i"], stdin=slave, stdout=slave, stderr=slave, env=shell_environment(),
                                      start_new_session=True)
        os.close(slave)
        self.addCleanup(os.close, self.master)
        self.addCleanup(self.end)
        for line in ("unsetopt zle_bracketed_paste 2>/dev/null; zle -D bracketed-paste-magic 2>/dev/null; PS1=; RPS1=; stty -echo cols 200",
                     f"fpath=({COMPLETION} $fpath); autoload -U compinit; compinit -u -D",
                     "zstyle ':completion:*' list-colors ''; setopt no_list_ambiguous no_auto_menu no_always_last_prompt; LISTMAX=0",
                     # Each match on a line of its own between marks, and nothing inserted.
                     "show() { print; print -l -- \"<<<\" ${(M)compstate[nmatches]} ; compstate[insert]=; }",
                     "compadd() { local -a m; builtin compadd -O m \"$@\"; print -rl -- ${m/#/match:}; builtin compadd \"$@\" }",
                     "print set''up"):
            os.write(self.master, line.encode() + b"\n")
        self.read_until("setup")

    def end(self):
        self.shell.kill()
        self.shell.wait()

    def read_until(self, text, seconds=20):
        seen = ""
        deadline = time.monotonic() + seconds
        while text not in seen:
            if not select.select([self.master], [], [], max(0, deadline - time.monotonic()))[0]:
                raise AssertionError(f"zsh does not say {text!r}: {seen!r}")
            seen += os.read(self.master, 65536).decode(errors="replace")
        return seen

    def complete(self, line):
        # It is forgotten after each completion.
        os.write(self.master, b"\x15comppostfuncs=(show)\n" + line.encode() + b"\t")
        seen = self.read_until("<<<")
        return set(re.findall(r"match:([^\r\n]*)", seen))

    def test_verbs(self):
        self.assertEqual({m for m in self.complete("prismctl ") if not m.startswith("-")}, verbs())

    def test_targets(self):
        self.assertEqual(self.complete("prismctl untrack "), {TARGET, "command:foo bar"})

    def test_recordings(self):
        self.assertEqual(self.complete("prismctl report "), set(RECORDINGS))
        self.assertEqual(self.complete("prismctl record delete "), set(RECORDINGS))
        self.assertEqual(self.complete("prismctl query --baseline "), set(RECORDINGS))

    def test_pids(self):
        self.assertIn(str(os.getpid()), self.complete("prismctl track --pid "))

    def test_options(self):
        offered = self.complete("prismctl track --")
        self.assertLessEqual({"--pid", "--cgroup", "--unit", "--command", "--follow", "--depth"}, offered)


if __name__ == "__main__":
    tap.main()
