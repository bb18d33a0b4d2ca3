"""Runs pytest once, in a process of its own, with or without a fault."""

import importlib.machinery
import importlib.util
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.mutants.fault import ROOT, Fault, parts

OPTIONS = (
    *("-q", "--tb=short", "--no-header", "-p", "no:cacheprovider", "-m", ""),
    # pytest warns that it can't rewrite the assertions of plugins that are imported
    # already, as they are here before the process is forked.
    "-Wignore:Module already imported",
)


class Loader(importlib.machinery.SourceFileLoader):
    """Compiles the source of a module with a fault. The file does not change."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.module, str(fault.path))
        self.fault = fault

    def get_code(self, fullname: str) -> Any:
        """Compiles the code anew: a cached file would have it without the fault."""
        source = self.fault.changed(self.fault.path.read_text())
        return compile(source, self.path, "exec", dont_inherit=True)


class Finder:
    """Finds the module that has the fault, and leaves all others to Python."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        """Returns the module with the fault, or None for any other module."""
        if name != self.fault.module:
            return None
        package = self.fault.path.name == "__init__.py"
        return importlib.util.spec_from_file_location(
            name,
            self.fault.path,
            loader=Loader(self.fault),
            submodule_search_locations=[str(self.fault.path.parent)]
            if package
            else None,
        )


class Reporter:
    """A plugin of pytest that selects tests, notes outcomes, and limits the time."""

    def __init__(self, path: Path, tests: Sequence[str], limit: int) -> None:
        self.path, self.limit = path, limit
        self.wanted = [parts(test) for test in tests]

    def note(self, event: str, test: str) -> None:
        """Adds a line to the notes, which are there even if the process is killed."""
        with self.path.open("a") as file:
            file.write(json.dumps([event, test]) + "\n")

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Keeps the tests that are wanted, if there is a choice."""
        if self.wanted:
            items[:] = [item for item in items if self.is_wanted(item)]
        self.note("selected", str(len(items)))

    def is_wanted(self, item: Any) -> bool:
        """Whether an item of pytest is one of the wanted tests."""
        function, _, case = item.name.partition("[")
        return any(
            (item.path.name, function) == (Path(file).name, wanted) and text in case
            for file, wanted, text in self.wanted
        )

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Limits the time by a signal, which also ends code that is not Python."""
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
            self.note("broken", report.nodeid)


def run(
    fault: Fault | None,
    arguments: Sequence[str],
    tests: Sequence[str],
    path: Path,
    limit: int,
) -> None:
    """Runs pytest.

    Args:
      fault: the fault to put into its module, or None.
      arguments: the arguments for pytest.
      tests: the tests to run of those that pytest finds; if empty, all of them.
      path: the file for notes on the tests. The output of pytest goes beside it.
      limit: the seconds that a test may take.
    """
    # In a session of its own, so that what the tests start can be ended with it.
    os.setsid()
    log = os.open(path.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(limit)
    if fault is not None:
        sys.meta_path.insert(0, Finder(fault))
    options = [*OPTIONS, f"--rootdir={ROOT}", *(["-x"] if fault else [])]
    pytest.main([*options, *arguments], plugins=[Reporter(path, tests, limit)])
