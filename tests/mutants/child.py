"""Runs tests in a process of its own, with or without a fault."""

import importlib.machinery
import importlib.util
import json
import os
import resource
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.mutants.generate import ROOT, Fault, path_of

OPTIONS = (
    *("-q", "--tb=short", "--no-header", "-p", "no:cacheprovider", f"--rootdir={ROOT}"),
    "--assert=plain",  # pytest would load files anew that it rewrites, from the disk
)
# A fault may ask for any amount of memory. The tests and XLA need a quarter of this.
MOST_BYTES = 12 * 2**30


class Finder(importlib.machinery.SourceFileLoader):
    """Finds and loads the module that has the fault. All others are left to Python."""

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
        self.path, self.limit = path, limit
        self.passed = self.failed = False

    def note(self, event: str, test: str) -> None:
        """Adds a line to the notes, which are there even if the process is killed."""
        with self.path.open("a") as file:
            file.write(json.dumps([event, test]) + "\n")

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Runs the first case of each function, then the second of each, and so on.

        The cases of one function mostly fail together.
        """
        count: dict[str, int] = {}
        case = {}
        for item in items:
            function = item.nodeid.partition("[")[0]
            case[item] = count[function] = count.get(function, -1) + 1
        items.sort(key=case.__getitem__)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Limits the time by a signal, which also ends code that is not Python."""
        self.note("started", nodeid)
        signal.alarm(self.limit)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Notes a failure in any phase of a test, and that the test itself passed."""
        if report.failed:
            self.failed = True
            self.note("failed", report.nodeid)
        elif report.when == "call" and report.passed:
            self.passed = True
            self.note("passed", report.nodeid)

    def pytest_collectreport(self, report: Any) -> None:
        """Notes a file of tests that can't be imported."""
        if report.failed:
            self.failed = True
            self.note("import", report.nodeid)


def run(fault: Fault | None, tests: Sequence[str], path: Path, limit: int) -> None:
    """Runs tests, each file by itself, until one fails that has to notice the fault.

    Args:
      fault: the fault to put into its module, or None.
      tests: the files of tests, or single tests. Those marked as slow run last.
      path: the file for notes on the tests. The output of pytest goes beside it.
      limit: the seconds that a test may take.
    """
    # In a session of its own, so that what the tests start can be ended with it.
    os.setsid()
    log = os.open(path.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(limit)
    reporter = Reporter(path, limit)
    if fault is None:
        pytest.main([*OPTIONS, "-m", "", *tests], plugins=[reporter])
        return
    sys.meta_path.insert(0, Finder(fault))
    for mark in ("not slow", "slow"):
        for file in tests:
            pytest.main([*OPTIONS, "-x", "-m", mark, file], plugins=[reporter])
            if reporter.failed:
                return
            if not reporter.passed:
                try:  # tests/conftest.py may not have been imported
                    importlib.import_module(fault.module)
                except BaseException as error:
                    reporter.note("import", f"{fault.module}: {error!r}")
                    return
