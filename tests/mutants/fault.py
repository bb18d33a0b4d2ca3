"""Says what a fault is, and how a table of faults is written."""

import dataclasses
import functools
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"


class TableError(Exception):
    """The table of faults does not fit the sources or the tests."""


@dataclasses.dataclass(frozen=True)
class Fault:
    """A change of one module that some test has to notice.

    Attributes:
      module: the dotted name of the module.
      old: a text that occurs once in its source.
      new: the text that takes its place.
      what: what is wrong then.
      first: the tests that run first, each as "file::function", or as
        "file::function[text]" for those of its cases whose name contains the text.
      files: the files of tests that run if those pass.
    """

    module: str
    old: str
    new: str
    what: str
    first: tuple[str, ...]
    files: tuple[str, ...]

    @property
    def name(self) -> str:
        """The module, and what is wrong in it."""
        return f"{self.module}: {self.what}"

    @property
    def path(self) -> Path:
        """The file of the module."""
        path = ROOT / self.module.replace(".", "/")
        return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")

    def changed(self, source: str) -> str:
        """Returns the source of the module with the fault in it."""
        found = source.count(self.old)
        if found != 1:
            raise TableError(
                f"{self.name}: {self.old!r} occurs {found} times in the module; it "
                "must occur once."
            )
        if self.new == self.old:
            raise TableError(f"{self.name}: the new text is the old one.")
        return source.replace(self.old, self.new)

    def check(self) -> None:
        """Requires that the text, the files and the tests of the fault exist."""
        if not self.path.is_file():
            raise TableError(f"{self.name}: there is no {self.path}.")
        self.changed(self.path.read_text())
        if not self.first:
            raise TableError(f"{self.name}: no test is named.")
        for test in self.first:
            file, function, _ = parts(test)
            if f"def {function}(" not in text_of(file):
                raise TableError(f"{self.name}: {file} has no test {function}.")
        for file in self.files:
            text_of(file)


def faults(
    module: str, files: tuple[str, ...], *rows: tuple[str, ...]
) -> tuple[Fault, ...]:
    """Makes the faults of one module from rows of (old, new, what, first test, ...)."""
    return tuple(
        Fault(module, old, new, what, tuple(first), files)
        for old, new, what, *first in rows
    )


def parts(test: str) -> tuple[str, str, str]:
    """Splits a test into its file, its function, and what the name of a case contains.

    >>> parts("test_a.py::test_b[some case]"), parts("test_a.py::test_b")
    (('test_a.py', 'test_b', 'some case'), ('test_a.py', 'test_b', ''))
    """
    file, _, function = test.partition("::")
    function, _, text = function.partition("[")
    return file, function, text.removesuffix("]")


@functools.cache
def text_of(file: str) -> str:
    """Returns the source of a file of tests."""
    path = TESTS / file
    if not path.is_file():
        raise TableError(f"there is no file of tests {path}.")
    return path.read_text()
