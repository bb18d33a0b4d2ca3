"""Tables and a picture of the ledger.

    python -m benchmarks.plot

It writes the files in git: the tables that docs/benchmarks.md marks, and its picture.
The build of the documentation calls `write_pages`, which writes a page with all figures
for each table of the ledger.
"""

import pathlib
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks import ledger
from benchmarks.compare import BEHIND
from benchmarks.ledger import Line, Lines
from benchmarks.programs import PROGRAMS
from benchmarks.shapes import TABLE
from docs import drawing

DOCS = pathlib.Path(__file__).parent.parent / "docs"
# docs/benchmarks.md has figures of these devices.
GPU, CPU = "NVIDIA H200", "x86_64 CPU"
NEWEST = f"{CPU}, newest JAX"
# Large programs have at least this many elements.
LARGE = 2**20
NAMES = {
    "dmljax": "dmljax",
    "jnp": "jax.numpy",
    "torch": "PyTorch",
    "numpy": "NumPy",
    "cub": "CUB",
    "reference": "without",
}
# The sections of a page: the title, and the context of the cases.
SECTIONS = {
    "Programs": "program",
    "One operator": "operator",
    "Calls of small arrays outside of `jit`": "call",
    "Shapes": "shape",
    "Weak scaling, automatic axes": "weak scaling, automatic axes",
    "Weak scaling, explicit axes": "weak scaling, explicit axes",
}
# The contenders of each column, by the library's name.
BEST = {
    "dmljax": "dmljax",
    "best in jax.numpy": "jnp.*",
    "PyTorch": "torch.*",
    "NumPy": "numpy",
    "CUB": "cub",
}
# The programs of the page's table and picture, and how most users write them.
FRONT = {
    "causal softmax": "jnp tril",
    "causal attention": "jnp tril",
    "label smoothing": "jnp one_hot",
    "masked mean": "jnp where",
    "reflect padding between two operations": "jnp",
    "frames of a signal": "jnp",
    "6 reflect-padded convolutions": "jnp",
    "elements above a limit": "jnp",
    "half of the elements above a limit": "jnp",
    "rows of a mask": "jnp",
    "rows of a mask and back": "jnp",
    "tokens kept in each sequence": "jnp where",
    "edges of graphs": "jnp",
}
# The page says once that shapes have this room.
ROOM = ", room for a quarter more"
MARK = "<!-- python -m benchmarks.plot writes the table of {}. -->\n"
# The picture's width and the height of a row in inches, and the letters of a line.
WIDTH, ROW, LETTERS = 7.6, 0.17, 112

Key = tuple[str, ...]
Row = Mapping[str, Line]


def best(row: Row, pattern: str) -> float | None:
    """The least wall time of the contenders that match the pattern."""
    found = [x["wall_ms"] for name, x in row.items() if re.fullmatch(pattern, name)]
    return min(found, default=None)


def split(key: Key) -> tuple[str, str]:
    """The program, and its choice, its type and the sizes of its first array."""
    found = [name for name in PROGRAMS if key[1].startswith(f"{name}, ")]
    name = max(found, key=len, default="")
    return name, key[1].removeprefix(f"{name}, ")


def front_programs(lines: Lines) -> Iterator[tuple[str, str, Row]]:
    """The programs of `FRONT` in their first type, forward and on large arrays."""
    rows: dict[str, tuple[str, Row]] = {}
    for key, row in lines.items():
        name, words = split(key)
        large = next(iter(row.values()))["elements"] >= LARGE
        if key[2:] == ("forward", "program") and large and "dmljax" in row:
            rows.setdefault(name, (words, row))
    for name in FRONT:
        if name in rows:
            yield name, *rows[name]


# TABLES


def table_of(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown."""
    columns = list(columns)
    every = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in every)


def name_of(contender: str) -> str:
    """A contender's name for readers: the library, and its way if it has several."""
    if contender[0].isdigit():  # a number of devices
        return f"dmljax, {contender}"
    library, *way = re.split(",? ", contender, maxsplit=1)
    return ", ".join([NAMES[library], *way]) if library in NAMES else contender


def _case(key: Key) -> str:
    return f"{key[1]}, gradient" if key[2] == "gradient" else key[1]


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


def front_table(gpu: Lines, cpu: Lines) -> str:
    """A few programs, in milliseconds on a GPU and on a CPU."""
    rows = []
    for device, lines in (("GPU", gpu), ("CPU", cpu)):
        for name, words, row in front_programs(lines):
            patterns = ("dmljax", FRONT[name], "jnp.*", "torch.*", "numpy|cub")
            times = _bold([best(row, pattern) for pattern in patterns])
            rows.append([f"{name}, {words}", device, *times])
    columns = "program", "on", "dmljax", "jax.numpy", "its best spelling"
    return table_of([*columns, "PyTorch", "NumPy or CUB"], rows)


def shapes_table() -> str:
    """For each shape, our time divided by that of the best spelling of jax.numpy."""
    devices = {"GPU": GPU, "CPU": CPU, "CPU, newest JAX": NEWEST}
    directions = "forward", "gradient"
    found: dict[tuple[str, str], dict[str, str]] = {}
    for place, device in devices.items():
        for key, row in ledger.lines(TABLE.format(device)).items():
            others = best(row, "jnp.*")
            ratio = row["dmljax"]["wall_ms"] / others if others else 0.0
            shown = f"**{ratio:.2f}**" if round(ratio, 2) > BEHIND else f"{ratio:.2f}"
            shape = key[1].replace(ROOM, "")
            found.setdefault((shape, place), {})[key[2]] = shown
    rows = [[*name, *(x.get(n, "-") for n in directions)] for name, x in found.items()]
    return table_of(["shape", "on", *directions], rows)


def with_tables(text: str) -> str:
    """The text of a page, with new tables below its marks."""
    gpu, cpu = ledger.lines(GPU), ledger.lines(NEWEST)
    tables = {
        "a few programs": front_table(gpu, cpu),
        "shapes": shapes_table(),
    }
    for what, table in tables.items():
        mark = MARK.format(what)
        text = re.sub(re.escape(mark) + r"(\|.*\n)*", f"{mark}{table}\n", text)
    return text


# PAGES


def versions(lines: Mapping[Key, Row]) -> str:
    """The newest version of each library, and the days of the first and last figure."""
    every = sorted(
        (line for row in lines.values() for line in row.values()),
        key=lambda line: str(line["date"]),
    )
    newest = {n: line[n] for line in every for n in ledger.VERSIONED if line[n]}
    days = dict.fromkeys((every[0]["date"], every[-1]["date"]))
    known = (f"{name} {version}" for name, version in newest.items())
    return f"{', '.join(known)}; {' to '.join(days)}"


def figures(lines: Lines) -> str:
    """The times of all contenders, dmljax first and then from the fastest on."""
    rows = []
    for key, row in lines.items():
        others = sorted(
            (line["wall_ms"], name) for name, line in row.items() if name != "dmljax"
        )
        cells = [f"{name_of(name)} {_digits(ms)}" for ms, name in others]
        ours = row.get("dmljax", {})
        share = ours.get("share")
        shown = "-" if share is None else f"{share:.2f}"
        times = _digits(ours.get("wall_ms")), shown
        rows.append([_case(key), *times, "; ".join(cells)])
    return table_of(["case", "dmljax", "share", "others"], rows)


def device_page(stem: str) -> str:
    """All figures of a device; `stem` is the name of its table."""
    lines = ledger.lines(stem)
    device = next(line["device"] for row in lines.values() for line in row.values())
    kinds = [word for word in ("scaling", "shapes") if stem.endswith(word)]
    parts = [
        f"# Figures: {', '.join([device, *kinds])}",
        "Milliseconds of wall time, and medians of many calls. [How it is "
        "measured](benchmarks.md#how-it-is-measured) says what a column means. "
        f"Versions: {versions(lines)}.",
    ]
    for title, context in SECTIONS.items():
        cases = {key: row for key, row in lines.items() if key[3] == context}
        parts += [f"## {title}"] if cases else []
        for operator in dict.fromkeys(key[0] for key in cases):
            rows = {key: row for key, row in cases.items() if key[0] == operator}
            parts += [f"### {operator}", figures(rows)]
    return "\n\n".join(parts) + "\n"


def write_pages(docs: pathlib.Path = DOCS) -> None:
    """Writes a page of each table of the ledger."""
    for path in sorted(ledger.RESULTS.glob("*.csv")):
        if path.stem not in ("runs", "cases"):
            page = docs / f"benchmarks_{path.stem}.md"
            page.write_text(device_page(path.stem))


# THE PICTURE


def draw_programs(lines: Lines, path: pathlib.Path) -> None:
    """Bars for each program: the fastest has the length 1, and half the speed 0.5."""
    colours = dict(zip(BEST, [*drawing.LINES, "#808080"], strict=True))
    top = 0.0  # in rows: one row for a line of words or a bar
    with mpl.rc_context(drawing.STYLE):
        figure = Figure()
        axes = figure.add_axes((0, 0, 1, 1))
        for name, words, row in front_programs(lines):
            times = {bar: best(row, pattern) for bar, pattern in BEST.items()}
            known = {bar: ms for bar, ms in times.items() if ms}
            text = textwrap.wrap(f"{name}, {words}", LETTERS)
            axes.text(0, top, "\n".join(text), va="top")
            top += len(text)
            for bar, ms in known.items():
                length = min(known.values()) / ms
                drawn = axes.barh(top + 0.5, length, 0.9, color=colours[bar])
                axes.bar_label(drawn, [f"{_digits(ms)} {bar}"], padding=2)
                top += 1
            top += 0.5
        figure.set_size_inches(WIDTH, ROW * top)
        axes.set(xlim=(0, 1.32), ylim=(top, -0.5))
        axes.set_axis_off()
        path.write_text(drawing.text_of(figure), encoding="utf-8")


def main() -> None:
    """Writes the marked tables of the page, and its picture."""
    page = DOCS / "benchmarks.md"
    page.write_text(with_tables(page.read_text()))
    draw_programs(ledger.lines(GPU), DOCS / "benchmarks_overview.svg")


if __name__ == "__main__":
    main()
