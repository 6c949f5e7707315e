# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs unittest cases and reports in TAP, one line a test, for meson's `protocol: 'tap'`.

A test that needs BPF raises NeedsBpf where it cannot be loaded: it is reported as skipped, and as failed when
PRISM_REQUIRE_BPF=1 says that this machine can load it.
"""

import os
import sys
import time
import traceback
import unittest


class NeedsBpf(unittest.SkipTest):
    """BPF programs cannot be loaded here."""


class TapResult(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.number = 0
        self.failed = 0
        self.notes = []
        self.skip_reason = None
        self.started = 0.0

    def startTest(self, test):
        super().startTest(test)
        self.notes = []
        self.skip_reason = None
        self.started = time.monotonic()

    def _note(self, test, error):
        kind, value, trace = error
        if issubclass(kind, AssertionError):
            # The line of the test that failed, and what it says.
            frame = [f for f in traceback.extract_tb(trace) if "unittest" not in f.filename][-1]
            self.notes.append(f"{os.path.basename(frame.filename)}:{frame.lineno}: {value}")
        else:
            self.notes.append("".join(traceback.format_exception(kind, value, trace)))

    def addError(self, test, err):
        super().addError(test, err)
        self._note(test, err)
        if not isinstance(test, unittest.TestCase):
            # A class or module that could not be set up has no test of its own.
            self.stopTest(test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._note(test, err)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._note(test, err)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.skip_reason = reason
        if reason.startswith("BPF") and os.environ.get("PRISM_REQUIRE_BPF") == "1":
            self.notes.append(f"skipped although PRISM_REQUIRE_BPF=1: {reason}")

    def stopTest(self, test):
        self.number += 1
        name = test.id().split(".", 1)[-1].replace("#", " ")
        took = f"{time.monotonic() - self.started:.1f} s"
        if self.notes:
            self.failed += 1
            print(f"not ok {self.number} - {name}")
        elif self.skip_reason is not None:
            print(f"ok {self.number} - {name} # SKIP {self.skip_reason}")
        else:
            print(f"ok {self.number} - {name}")
        print(f"# {took}")
        for note in self.notes:
            for line in note.rstrip().splitlines():
                print(f"#   {line}")
        sys.stdout.flush()


def main():
    """Runs the tests of __main__; arguments pick those whose name contains one of them."""
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
    tests = [test for group in suite for test in group]
    wanted = sys.argv[1:]
    if wanted:
        tests = [test for test in tests if any(w in test.id() for w in wanted)]
    print(f"1..{len(tests)}")
    sys.stdout.flush()
    result = TapResult()
    unittest.TestSuite(tests).run(result)
    sys.exit(1 if result.failed or not tests else 0)
