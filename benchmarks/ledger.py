"""The ledger: all measurements, as tables in a folder. Each fact is there once.

    results/runs.csv        a run: the device, versions, the commit, the command
    results/cases.csv       a case: the work, and its context
    results/<device>.csv    the newest figures of a contender in a case

A row of a device's table has the numbers of its case and of its run. A new measurement
replaces the row of the same case and contender; git has the old row. Figures have four
digits. In the first runs, the command has no options, because we did not keep them.
"""

import csv
import io
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

RESULTS = pathlib.Path(__file__).with_name("results")
VERSIONED = ("jax", "numpy", "torch")
SPEEDS = ("copy_gb_per_s",)
RUN = ("device", "date", "commit", "command", "python", *VERSIONED, *SPEEDS)
# The columns that identify a case, and its other columns.
LABEL = ("operator", "name", "direction", "context")
CASE = (*LABEL, "elements", "bytes")
TEXTS = {"case", "run", "contender", *LABEL, *RUN} - {*SPEEDS}

# A row: a figure with its case and its run, by the names of columns.
Line = dict[str, Any]
# By LABEL: the row of each contender.
Lines = dict[tuple[str, ...], dict[str, Line]]
_Table = list[dict[str, str]]


def file_of(device: str) -> str:
    """The name of a device's table; `device` is JAX's name of it, or `--device`."""
    return f"{device.lower().replace(',', '').replace(' ', '-')}.csv"


def ready(folder: pathlib.Path) -> None:
    """Makes the folder. Raises an OSError if we can't write there."""
    folder.mkdir(exist_ok=True)
    (folder / "runs.csv").open("a").close()


def read(device: str, folder: pathlib.Path = RESULTS) -> list[Line]:
    """All figures of a device."""
    cases, runs = (_by_number(folder, kind) for kind in ("case", "run"))
    return [
        {
            column: _parsed(column, text)
            for column, text in (runs[r["run"]] | cases[r["case"]] | r).items()
        }
        for r in _load(folder / file_of(device))
    ]


def lines(device: str, folder: pathlib.Path = RESULTS) -> Lines:
    """The figures of a device by case and contender."""
    found: Lines = {}
    for line in read(device, folder):
        label = tuple(line[column] for column in LABEL)
        found.setdefault(label, {})[line["contender"]] = line
    return found


def write(
    device: str,
    run: Mapping[str, Any],
    measured: Iterable[Mapping[str, Any]],
    folder: pathlib.Path = RESULTS,
) -> None:
    """Writes the figures of a run, for some cases and contenders."""
    cases, runs = (_by_number(folder, kind) for kind in ("case", "run"))
    path = folder / file_of(device)
    rows = {(row["case"], row["contender"]): row for row in _load(path)}
    number = _number(runs, RUN, {column: _shown(run, column) for column in RUN})
    for line in measured:
        case = _number(cases, LABEL, {column: _shown(line, column) for column in CASE})
        known = {"case": case, "contender": line["contender"], "run": number}
        figures = {c: _shown(line, c) for c in line if c not in (*CASE, "contender")}
        rows[case, line["contender"]] = known | figures
    _save(path, list(rows.values()))
    others = (p for p in folder.glob("*.csv") if p.stem not in ("cases", "runs"))
    used = [row for other in others for row in _load(other)]
    for kind, table in (("case", cases), ("run", runs)):
        named = {row[kind] for row in used}
        _save(
            folder / f"{kind}s.csv",
            [{kind: number} | row for number, row in table.items() if number in named],
        )


def _number(
    table: dict[str, dict[str, str]], identity: Sequence[str], row: dict[str, str]
) -> str:
    """The number of a row in a table. A new row enters the table."""
    same = (
        n for n, known in table.items() if all(known[c] == row[c] for c in identity)
    )
    number = next(same, str(1 + max(map(int, table), default=0)))
    table[number] = row
    return number


def _by_number(folder: pathlib.Path, kind: str) -> dict[str, dict[str, str]]:
    return {row.pop(kind): row for row in _load(folder / f"{kind}s.csv")}


def _load(path: pathlib.Path) -> _Table:
    return list(csv.DictReader(path.read_text().splitlines())) if path.exists() else []


def _save(path: pathlib.Path, rows: _Table) -> None:
    columns = dict.fromkeys(column for row in rows for column in row)
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    # A killed process leaves the old table.
    new = path.with_suffix(".new")
    new.write_text(text.getvalue())
    new.replace(path)


def _shown(line: Mapping[str, Any], column: str) -> str:
    value = line.get(column)
    if isinstance(value, float):
        return f"{float(f'{value:.4g}'):g}"
    return "" if value is None else str(value)


def _parsed(column: str, text: str) -> Any:
    if column in TEXTS:
        return text
    if not text:
        return None
    return int(text) if text.isdigit() else float(text)
