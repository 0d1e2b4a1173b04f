"""Runs all tests of the package, and the conformance cases with the build that has all operations: `cargo xtask python-test`."""

from __future__ import annotations

import faulthandler
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

TESTS = Path(__file__).parent
LIMIT_SECONDS = 1800
"""A test that hangs ends the run, and shows where it hangs."""


def conformance() -> tuple[int, int]:
    """How many cases passed and failed."""
    python = os.environ.get("CROSSTALK_SUITE_PYTHON", sys.executable)
    command = [python, str(TESTS / "conformance.py")]
    done = subprocess.run(command, capture_output=True, text=True)
    print(done.stdout, done.stderr, sep="", end="")
    closing = re.search(r"^(\d+) passed, (\d+) failed$", done.stdout, re.M)
    if closing is None:
        raise AssertionError(f"the conformance runner ended without a result:\n{done.stderr}")
    passed, failed = int(closing[1]), int(closing[2])
    if (done.returncode == 0) != (failed == 0):
        raise AssertionError(f"the conformance runner ended with {done.returncode}")
    return passed, failed


def main() -> int:
    faulthandler.dump_traceback_later(LIMIT_SECONDS, exit=True)
    passed, failed = conformance()
    tests = unittest.defaultTestLoader.discover(str(TESTS))
    result = unittest.TextTestRunner(verbosity=2).run(tests)
    wrong = len(result.failures) + len(result.errors)
    passed += result.testsRun - wrong
    failed += wrong
    print(f"{passed} passed, {failed} failed")
    return 0 if failed == 0 and passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
