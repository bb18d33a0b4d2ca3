"""One run of pytest in a process of its own, with or without a fault."""

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
    # pytest would rewrite the assertions of its plugins, which are imported by then.
    "-Wignore:Module already imported",
)


class Loader(importlib.machinery.SourceFileLoader):
    """Compiles the source of a module with a fault in it; the file stays as it is."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.module, str(fault.path))
        self.fault = fault

    def get_code(self, fullname: str) -> Any:
        """The code, which is never cached."""
        source = self.fault.changed(self.fault.path.read_text())
        return compile(source, self.path, "exec", dont_inherit=True)


class Finder:
    """Finds the module that has the fault, and leaves all others to Python."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        """The module with the fault."""
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
    """Selects tests, notes what becomes of each, and limits its time."""

    def __init__(self, path: Path, tests: Sequence[str], limit: int) -> None:
        self.path, self.limit = path, limit
        self.wanted = [parts(test) for test in tests]

    def note(self, event: str, test: str) -> None:
        """Adds a line, which stays if the process ends without warning."""
        with self.path.open("a") as file:
            file.write(json.dumps([event, test]) + "\n")

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Keeps the cases whose name contains what a test asks for."""
        if self.wanted:
            items[:] = [item for item in items if self.is_wanted(item)]
        self.note("selected", str(len(items)))

    def is_wanted(self, item: Any) -> bool:
        """Whether one of the tests is meant by this item."""
        function, _, case = item.name.partition("[")
        return any(
            (item.path.name, function) == (Path(file).name, wanted) and text in case
            for file, wanted, text in self.wanted
        )

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """The signal ends the process, also where no Python runs."""
        self.note("started", nodeid)
        signal.alarm(self.limit)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Notes a failure of any phase, and that the test itself passed."""
        if report.failed:
            self.note("failed", report.nodeid)
        elif report.when == "call" and report.passed:
            self.note("passed", report.nodeid)

    def pytest_collectreport(self, report: Any) -> None:
        """A file that cannot be imported."""
        if report.failed:
            self.note("broken", report.nodeid)


def run(
    fault: Fault | None,
    arguments: Sequence[str],
    tests: Sequence[str],
    path: Path,
    limit: int,
) -> None:
    """Runs pytest with these arguments, and of what it finds these `tests`, if any.

    What becomes of the tests is noted in the file `path`, and what pytest says in a
    file beside it.
    """
    os.setsid()  # so that what a test starts ends with this process
    log = os.open(path.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(limit)
    if fault is not None:
        sys.meta_path.insert(0, Finder(fault))
    options = [*OPTIONS, f"--rootdir={ROOT}", *(["-x"] if fault else [])]
    pytest.main([*options, *arguments], plugins=[Reporter(path, tests, limit)])
