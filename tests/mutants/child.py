"""Runs tests in a process of its own, with or without a fault."""

import contextlib
import importlib.machinery
import importlib.util
import json
import os
import resource
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.mutants.generate import ROOT, Fault, path_of

OPTIONS = [
    "-q",
    "--tb=short",
    "--no-header",
    "-pno:cacheprovider",
    f"--rootdir={ROOT}",
    "--assert=plain",  # or pytest would load the files that it rewrites from the disk
]
# A fault may ask for any amount of memory. The tests need a quarter of this.
MOST_BYTES = 12 * 2**30


class Finder(importlib.machinery.SourceFileLoader):
    """Finds and loads the module that has the fault. Python finds all the others."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.module, str(path_of(fault.module)))
        self.fault = fault

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        """Returns the module with the fault, or None for any other module."""
        if name != self.fault.module:
            return None
        return importlib.util.spec_from_file_location(name, self.path, loader=self)

    def get_code(self, fullname: str) -> Any:
        """Returns the code with the fault. A cached file would be without it."""
        return self.fault.code()


class Reporter:
    """A plugin of pytest: orders the tests, limits their time, notes outcomes."""

    def __init__(self, path: Path, limit: int) -> None:
        self.path = path
        self.limit = limit

    def note(self, event: str, test: str) -> None:
        """Adds a line to the notes, which are there even if the process is killed."""
        with self.path.open("a") as file:
            file.write(json.dumps([event, test]) + "\n")

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Runs the first case of every function, then the second of each, and so on.

        The cases of one function mostly pass or fail together.
        """
        cases: Counter[str] = Counter()
        order = {}
        for item in items:
            function = item.nodeid.partition("[")[0]
            cases[function] += 1
            order[item] = cases[function]
        items.sort(key=order.__getitem__)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Limits the time by a signal. It also ends code that is not Python."""
        self.note("started", nodeid)
        signal.alarm(self.limit)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Notes a failure in any phase of a test, and that the test itself passed."""
        if report.failed:
            self.note("failed", report.nodeid)
        elif report.when == "call" and report.passed:
            self.note("passed", report.nodeid)

    def pytest_collectreport(self, report: Any) -> None:
        """Notes a file of tests that can't be imported."""
        if report.failed:
            self.note("import", report.nodeid)


def run(fault: Fault | None, tests: Sequence[str], path: Path, limit: int) -> None:
    """Runs tests: with a fault, one file after the other until a test fails.

    Args:
      fault: the fault to put into its module, or None.
      tests: files of tests, or single tests. Those that are marked as slow run last.
      path: the file for notes on the tests. The output of pytest goes beside it.
      limit: the seconds that a test may take.
    """
    # A session of its own: what the tests start can be ended with it.
    os.setsid()
    os.chdir(ROOT)
    log = os.open(path.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))
    for number in (signal.SIGALRM, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.alarm(limit)
    reporter = Reporter(path, limit)
    if fault is None:
        pytest.main([*OPTIONS, "-m", "", *tests], plugins=[reporter])
        return
    sys.meta_path.insert(0, Finder(fault))
    # Otherwise pytest makes a second module, and a test may patch the wrong one.
    with contextlib.suppress(Exception):
        importlib.import_module(fault.module)
    good = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    for mark in ("not slow", "slow"):
        for file in tests:
            status = pytest.main([*OPTIONS, "-x", "-m", mark, file], plugins=[reporter])
            if status not in good:
                # If no test failed, it is tests/conftest.py that was not imported.
                reporter.note("import", f"pytest ends with {status!r}")
                return
