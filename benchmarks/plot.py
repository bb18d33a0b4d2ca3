"""Tables and a picture of the ledger.

    python -m benchmarks.plot

It writes the files in git: the tables that README.md and docs/benchmarks.md mark, and
the picture. The build of the documentation calls `write_pages`, which writes a page
with all figures for each table of the ledger.
"""

import itertools
import pathlib
import re
from collections.abc import Iterable, Mapping, Sequence

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks import ledger
from benchmarks.ledger import Line, Lines
from benchmarks.programs import FRONT
from benchmarks.run import BEHIND
from benchmarks.shapes import TABLE
from docs import drawing

DOCS = pathlib.Path(__file__).parent.parent / "docs"
# The devices of the tables by their short names.
GPUS = {"H200": "NVIDIA H200", "H100": "NVIDIA H100 80GB HBM3"}
CPUS = {
    "CPU, 2 cores": "x86_64 CPU, newest JAX",
    "CPU, 16 cores": "x86_64 CPU, 16 cores",
}
OLD = {"CPU, 2 cores, JAX 0.10.2": "x86_64 CPU"}
# The programs of README.md.
GAIN = (
    "elements above a limit",
    "half of the elements above a limit",
    "reflect padding between two operations",
    "rows of a mask and back",
)
# Large programs have at least this many elements.
LARGE = 2**20
# The bars of a program in the picture, and their contenders.
BARS = {
    "dmljax": "dmljax",
    "best in jax.numpy": "jnp.*",
    "PyTorch": "torch.*",
    "CUB": "cub",
}
FASTEST = "the fastest way in jax.numpy"
MARK = "<!-- python -m benchmarks.plot writes the table of {}. -->\n"
Row = Mapping[str, Line]


def best(row: Row, pattern: str) -> float | None:
    """The least wall time of the contenders that match the pattern."""
    found = [x["wall_ms"] for name, x in row.items() if re.fullmatch(pattern, name)]
    return min(found, default=None)


def front_programs(lines: Lines) -> dict[str, Row]:
    """The programs of `FRONT` in their first type, forward and on large arrays."""
    found: dict[str, Row] = {}
    for program in FRONT:
        for (_, name, *kind), row in lines.items():
            is_large = row["dmljax"]["elements"] >= LARGE
            chosen = is_large and kind == ["forward", "program"]
            if chosen and name.startswith(f"{program}, "):
                found[name] = row
                break
    return found


# TABLES


def table_of(columns: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown."""
    every = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in every)


def _digits(number: float | None) -> str:
    if number is None:
        return "-"
    # Python writes larger numbers with an exponent.
    shown = f"{number:#.3g}" if number < 999.5 else f"{float(f'{number:.3g}'):.0f}"
    return shown.rstrip(".")


def _bold(numbers: Sequence[float | None]) -> list[str]:
    """The numbers with three digits, the least in bold."""
    least = min(number for number in numbers if number is not None)
    shown = map(_digits, numbers)
    return [f"**{x}**" if x == _digits(least) else x for x in shown]


def _span(ratios: Sequence[float]) -> str:
    """The least and the greatest, in bold if we are behind."""
    shown = f"{min(ratios):.2f}\N{EN DASH}{max(ratios):.2f}"
    return f"**{shown}**" if round(max(ratios), 2) > BEHIND else shown


def front_table(devices: Mapping[str, str], programs: Iterable[str] = FRONT) -> str:
    """Programs in milliseconds, each on all devices."""
    found = {place: front_programs(ledger.lines(n)) for place, n in devices.items()}
    rows, last = [], ""
    for program, (place, named) in itertools.product(programs, found.items()):
        for name, row in named.items():
            if name.startswith(f"{program}, "):
                patterns = "dmljax", FRONT[program], "jnp.*", "torch.*", "numpy|cub"
                times = _bold([best(row, pattern) for pattern in patterns])
                shown = "" if name == last else name.replace("room for", "`size=`")
                rows.append([shown, place, *times])
                last = name
    columns = "program", "on", "dmljax", "jax.numpy", FASTEST
    return table_of([*columns, "PyTorch", "NumPy or CUB"], rows)


def shapes_table(devices: Mapping[str, str]) -> str:
    """Our time divided by the best in jax.numpy: the spans of each function."""
    found: dict[str, dict[str, list[float]]] = {}
    for place, device in devices.items():
        for (_, name, kind, _), row in ledger.lines(TABLE.format(device)).items():
            theirs = best(row, "jnp.*")
            if theirs:
                work = f"{name.split(',')[0]}, {kind}"
                ratios = found.setdefault(work, {}).setdefault(place, [])
                ratios.append(row["dmljax"]["wall_ms"] / theirs)
    rows = [
        [name, str(len(ratios[place])), *(_span(ratios[each]) for each in devices)]
        for name, ratios in found.items()
    ]
    return table_of(["work", "shapes", *devices], rows)


def with_tables(text: str) -> str:
    """The text of a page, with new tables below its marks."""
    tables = {
        "the gain": front_table({"H200": GPUS["H200"]} | CPUS, GAIN),
        "a few programs": front_table(GPUS | CPUS),
        "shapes": shapes_table(GPUS | OLD | CPUS),
    }
    for what, table in tables.items():
        mark = MARK.format(what)
        text = re.sub(re.escape(mark) + r"(\|.*\n)*", f"{mark}{table}\n", text)
    return text


# PAGES


def figures(lines: Lines) -> str:
    """The times of all contenders from the fastest on, and dmljax's share of a copy."""
    rows: list[list[str]] = []
    for label, row in lines.items():
        times = sorted((line["wall_ms"], name) for name, line in row.items())
        cells = [f"{name} {_digits(ms)}" for ms, name in times]
        share = row.get("dmljax", {}).get("share")
        rows.append([*label, "; ".join(cells), _digits(share)])
    return table_of([*ledger.LABEL, "milliseconds", "share"], rows)


def write_pages(docs: pathlib.Path = DOCS) -> None:
    """Writes a page of each table of the ledger."""
    measured = "[How it is measured](benchmarks.md#how-it-is-measured)"
    for path in sorted(ledger.RESULTS.glob("*.csv")):
        if path.stem not in ("runs", "cases"):
            table = figures(ledger.lines(path.stem))
            page = docs / f"benchmarks_{path.stem}.md"
            page.write_text(f"# Figures: {path.stem}\n\n{measured}.\n\n{table}\n")


# THE PICTURE


def draw_programs(lines: Lines, path: pathlib.Path) -> None:
    """Bars for each program: the fastest has the length 1, and half the speed 0.5."""
    programs = front_programs(lines)
    with mpl.rc_context(drawing.STYLE):
        figure = Figure((5, 11))
        axes = figure.add_subplot()
        for place, row in enumerate(programs.values()):
            times = [best(row, pattern) for pattern in BARS.values()]
            least = min(ms for ms in times if ms)
            for number, (bar, ms) in enumerate(zip(BARS, times, strict=True)):
                if ms:
                    low = place + number / 5
                    drawn = axes.barh(low, least / ms, 0.18, color=f"C{number}")
                    axes.bar_label(drawn, [f"{_digits(ms)} {bar}"], padding=2)
        names = [name.split(", ")[0] for name in programs]
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names), -0.5)
        axes.set_xticks([])
        path.write_text(drawing.text_of(figure), encoding="utf-8")


def main() -> None:
    """Writes the marked tables of the pages, and the picture."""
    for page in (DOCS / "benchmarks.md", DOCS.parent / "README.md"):
        page.write_text(with_tables(page.read_text()))
    draw_programs(ledger.lines(GPUS["H200"]), DOCS / "benchmarks_overview.svg")


if __name__ == "__main__":
    main()
