"""The ledgers: one figure a line, of which the newest counts."""

import collections
import json
import pathlib
from collections.abc import Iterable, Sequence
from typing import Any

RESULTS = pathlib.Path(__file__).with_name("results")
Line = dict[str, Any]
# By operator, case, direction and context: the line of each contender.
Rows = dict[tuple[str, str, str, str], dict[str, Line]]


def path(name: str) -> pathlib.Path:
    """The ledger of a device, whose name is JAX's; or of some of its figures."""
    return RESULTS / f"{name.lower().replace(' ', '-')}.jsonl"


def read(ledger: pathlib.Path) -> list[Line]:
    """All lines, the oldest first."""
    return [json.loads(text) for text in ledger.read_text().splitlines()]


def append(ledger: pathlib.Path, lines: Iterable[Line]) -> None:
    """Adds lines to a ledger, which may be new."""
    ledger.parent.mkdir(exist_ok=True)
    with ledger.open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def ready(chosen: pathlib.Path | None, name: str) -> pathlib.Path:
    """The ledger that was chosen, or else the one of this name; makes it if it is new.

    Raises the error of a file that can't be written before anything is timed.
    """
    ledger = chosen or path(name)
    append(ledger, ())
    return ledger


def newest(lines: Iterable[Line]) -> Rows:
    """The newest figure of each contender in each case."""
    rows: Rows = collections.defaultdict(dict)
    for line in lines:
        key = (line["operator"], line["case"], line["direction"], line["context"])
        rows[key][line["contender"]] = line
    return dict(rows)


VERSIONS = ("python", "jax", "numpy", "torch", "cupy", "onnxruntime")


def versions(line: Line) -> str:
    """The versions that a figure depends on, in words."""
    return ", ".join(f"{name} {line[name]}" for name in VERSIONS if line[name])


def circumstances(lines: Sequence[Line]) -> str:
    """The device, the version of JAX and the last day that the figures are of."""
    day = max(line["date"] for line in lines)
    return f"{lines[-1]['device']}, JAX {lines[-1]['jax']}, {day}"


def table_of(columns: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    rows = [columns, ["---"] * len(columns), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
