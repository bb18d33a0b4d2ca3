"""Tables and pictures of the ledger.

    python -m benchmarks.plot

It writes the files in git: the tables that docs/benchmarks.md marks, and its picture.
The build of the documentation calls `write_pages`, which writes a page with all figures
for each table of the ledger.
"""

import pathlib
import re
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence

from benchmarks import ledger
from benchmarks.collectives import show_bytes
from benchmarks.ledger import Line, Lines
from benchmarks.pictures import draw_bars
from benchmarks.programs import TEN

README = pathlib.Path(__file__).parent.parent / "README.md"
DOCS = README.with_name("docs")
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
    "onnxruntime": "ONNX Runtime",
    "reference": "without",
}
# The sections of a page: the title, and the context of the cases.
SECTIONS = {
    "Programs": "program",
    "One operator": "operator",
    "Calls of small arrays outside of `jit`": "call",
    "Tracing and compiling": "tracing",
}
ON_TPUS = {
    "One operator": "operator",
    "Between two elementwise operations": "pipeline",
}
# The bars of a program. Each shows the fastest contender of its pattern.
BARS = {
    "dmljax": "dmljax",
    "best in jax.numpy": "jnp.*",
    "best in PyTorch": "torch.*",
}
COUNTS = "2 devices", "4 devices", "8 devices"
# The programs of the page's table, and how most users write them in jax.numpy.
FRONT = {
    "causal softmax": "jnp tril",
    "causal attention": "jnp tril",
    "reflect padding between two operations": "jnp",
    "6 reflect-padded convolutions": "jnp",
    "elements above a limit": "jnp",
    "rows of a mask": "jnp",
    "rows of a mask and back": "jnp",
    "edges of graphs": "jnp",
}
# The programs in the page's picture.
SHOWN = (*TEN, "causal attention", "6 reflect-padded convolutions")
MARK = "<!-- python -m benchmarks.plot writes the table of {}. -->\n"

Key = tuple[str, ...]
Row = Mapping[str, Line]


def best(row: Row, pattern: str) -> float | None:
    """The least wall time of the contenders that match the pattern."""
    found = []
    for name, line in row.items():
        if re.fullmatch(pattern, name):
            found.append(line["wall_ms"])
    return min(found, default=None)


def split(key: Key) -> tuple[str, str]:
    """The name of a program, and the type and sizes of its first array."""
    name, *sizes = re.split(r", (?=\w+ \()", key[1])
    return name, ", ".join(sizes)


def large_programs(lines: Lines) -> Iterator[tuple[Key, Row]]:
    """Each program in its first type, once on large arrays."""
    first: dict[str, str] = {}
    for key, row in lines.items():
        elements = next(iter(row.values()))["elements"]
        if key[3] == "program" and elements >= LARGE and "dmljax" in row:
            name, sizes = split(key)
            if first.setdefault(name, sizes) == sizes:
                yield key, row


# TABLES


def table_of(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown."""
    columns = list(columns)
    every = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in every)


def name_of(contender: str) -> str:
    """A contender's name for readers: the library, and its way if it has several."""
    library, *way = contender.split(" ", 1)
    return ", ".join([NAMES[library], *way])


def _case(key: Key) -> str:
    return f"{key[1]}, gradient" if key[2] == "gradient" else key[1]


def _digits(number: float | None) -> str:
    if number is None:
        return "-"
    # Python writes larger numbers with an exponent.
    shown = f"{number:#.3g}" if number < 999.5 else f"{float(f'{number:.3g}'):.0f}"
    return shown.rstrip(".")


def front_table(gpu: Lines, cpu: Lines) -> str:
    """A few programs, in milliseconds on a GPU and on a CPU."""
    columns = ["dmljax", "jax.numpy", "its best spelling", "PyTorch"]
    rows = []
    for device, lines in (("GPU", gpu), ("CPU", cpu)):
        for key, row in large_programs(lines):
            name, sizes = split(key)
            if name in FRONT and key[2] == "forward":
                patterns = ("dmljax", FRONT[name], "jnp.*", "torch.*")
                times = [_digits(best(row, pattern)) for pattern in patterns]
                rows.append([f"{name}, {sizes}", device, *times])
    return table_of(["program", "on", *columns], rows)


def cpu_table(lines: Lines, newest: Lines) -> str:
    """By operator, how the programs compare with those of other libraries."""
    later = next(iter(next(iter(newest.values())).values()))["jax"]
    columns = {
        "jax.numpy": (lines, "jnp.*"),
        f"jax.numpy, JAX {later}": (newest, "jnp.*"),
        "PyTorch": (lines, "torch.*"),
        "NumPy": (lines, "numpy.*"),
        "ONNX Runtime": (lines, "onnxruntime.*"),
    }
    ratios: dict[str, dict[str, list[float]]] = {}
    for name, (every, pattern) in columns.items():
        for key, row in every.items():
            theirs = best(row, pattern)
            if key[3] in ("program", "operator") and "dmljax" in row and theirs:
                of_operator = ratios.setdefault(key[0], {})
                ratio = row["dmljax"]["wall_ms"] / theirs
                of_operator.setdefault(name, []).append(ratio)
    rows = []
    for operator, found in ratios.items():
        cells = [_spread(found.get(name, [])) for name in columns]
        rows.append([f"`{operator}`", *cells])
    return table_of(["operator", *columns], rows)


def _spread(numbers: Sequence[float]) -> str:
    """The median, and the largest number in brackets."""
    if not numbers:
        return "-"
    return f"{statistics.median(numbers):.2f} ({max(numbers):.2f})"


def with_tables(text: str) -> str:
    """The text of a page, with new tables below its marks."""
    gpu, cpu = ledger.lines(GPU), ledger.lines(CPU)
    tables = {
        "a few programs": front_table(gpu, cpu),
        "CPUs": cpu_table(cpu, ledger.lines(NEWEST)),
    }
    for what, table in tables.items():
        mark = MARK.format(what)
        text = re.sub(re.escape(mark) + r"(\|.*\n)*", f"{mark}{table}\n", text)
    return text


# PAGES


def of_context(lines: Lines, context: str) -> dict[str, Lines]:
    """The cases of a context, by operator."""
    found: dict[str, Lines] = {}
    for key, row in lines.items():
        if key[3] == context:
            found.setdefault(key[0], {})[key] = row
    return found


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
            (line["wall_ms"] or 0, name)
            for name, line in row.items()
            if name != "dmljax"
        )
        cells = (f"{name_of(name)} {_digits(ms)}" for ms, name in others)
        ours = row.get("dmljax", {})
        times = _digits(ours.get("wall_ms")), _digits(ours.get("ms"))
        share = ours.get("share")
        shown = "-" if share is None else f"{share:.2f}"
        rows.append([_case(key), *times, shown, "; ".join(cells)])
    return table_of(["case", "dmljax", "on the device", "share", "others"], rows)


def tracing_figures(lines: Lines) -> str:
    """The times of tracing and compiling, of dmljax and of jax.numpy."""
    rows = []
    for key, row in lines.items():
        ours, theirs = row["dmljax"], row["jnp"]
        lower = f"{ours['lower_ms']:.0f} / {theirs['lower_ms']:.0f}"
        both = f"{ours['compile_ms']:.0f} / {theirs['compile_ms']:.0f}"
        rows.append([_case(key), lower, both])
    return table_of(["case", "trace and lower", "compile, too"], rows)


def device_page(stem: str) -> str:
    """All figures of a device; `stem` is the name of its table."""
    lines = ledger.lines(stem)
    device = next(line["device"] for row in lines.values() for line in row.values())
    parts = [
        f"# Figures: {device}",
        "Milliseconds of wall time, and medians of many calls. [How it is "
        "measured](benchmarks.md#how-it-is-measured) says what a column means. "
        f"Versions: {versions(lines)}.",
    ]
    if any(True for _ in large_programs(lines)):
        parts.append(f"![Programs in several libraries.](benchmarks_{stem}.svg)")
    for title, context in SECTIONS.items():
        by_operator = of_context(lines, context)
        parts += [f"## {title}"] if by_operator else []
        show = tracing_figures if context == "tracing" else figures
        for operator, rows in by_operator.items():
            parts += [f"### {operator}", show(rows)]
    return "\n\n".join(parts) + "\n"


def scaling_page(stem: str) -> str:
    """All figures of several devices."""
    lines = ledger.lines(stem)
    every = [line for row in lines.values() for line in row.values()]
    counts = sorted({line["contender"] for line in every}, key=lambda n: (len(n), n))
    own = [count for count in counts if not count.startswith("jnp")]
    parts = [
        f"# Figures: several devices, {every[0]['device']}",
        "Milliseconds of the slowest device, by its own clock, waiting for others "
        "included; medians of many calls. A program beside jax.numpy (jnp) has those "
        "of the host's clock. In brackets are two "
        "[efficiencies](benchmarks.md#on-several-h200s): beside one device with its "
        "default code, and beside one with the same. The last column is what each "
        f"device sends, if all devices work. Versions: {versions(lines)}.",
        f"![Efficiency by the number of devices.](benchmarks_{stem}.svg)",
    ]
    for context in sorted({key[3] for key in lines}, reverse=True):
        rows = []
        for key, row in lines.items():
            if key[3] == context:
                times = [_efficiency(row.get(count)) for count in counts]
                most = max(row.keys() & set(own), key=own.index)
                sent = show_bytes(row[most].get("sent"))
                rows.append([f"{key[0]}, {_case(key)}", *times, sent])
        columns = ["work", *counts, "sent"]
        parts += [f"## {context.capitalize()}", table_of(columns, rows)]
    return "\n\n".join(parts) + "\n"


def _efficiency(line: Line | None) -> str:
    if line is None:
        return "-"
    pair = f"{line['efficiency']:.2f}, {line['efficiency_of_form']:.2f}"
    return f"{line['ms'] or line['wall_ms']:.4g} ({pair})"


def estimates_page(stem: str) -> str:
    """All estimates for TPUs."""
    lines = ledger.lines(stem)
    parts = [
        "# Appendix: estimates for TPUs",
        "[Estimates for TPUs](../benchmarks.md#estimates-for-tpus) says what the "
        f"columns mean. Nothing was measured on a chip. Versions: {versions(lines)}.",
    ]
    # Words break on a phone if there are more columns.
    units = {"moved_mb": (1, ".1f"), "cycles": (1e3, ".0f"), "estimated_ms": (1, ".3g")}
    columns = ["case", "MB moved", "1000 cycles", "estimated ms"]
    for title, context in ON_TPUS.items():
        parts.append(f"## {title}")
        for operator, rows in of_context(lines, context).items():
            names = list(dict.fromkeys(name for row in rows.values() for name in row))
            cells = []
            for key, row in rows.items():
                cell = [key[1]]
                for column, (unit, form) in units.items():
                    numbers = dict.fromkeys(names, "-")
                    for name, line in row.items():
                        numbers[name] = f"{line[column] / unit:{form}}"
                    cell.append(" / ".join(numbers.values()))
                cells.append(cell)
            words = f"A cell has: {' / '.join(map(name_of, names))}."
            parts += [f"### {operator}", words, table_of(columns, cells)]
    return "\n\n".join(parts) + "\n"


def write_pages(docs: pathlib.Path = DOCS) -> None:
    """Writes a page of each table of the ledger, and a picture of each device."""
    for path in sorted(ledger.RESULTS.glob("*.csv")):
        if path.stem == "tpu":
            (docs / "development").mkdir(exist_ok=True)
            page = docs / "development" / "tpu_estimates.md"
            page.write_text(estimates_page(path.stem))
        elif path.stem.endswith("-scaling"):
            page = docs / f"benchmarks_{path.stem}.md"
            page.write_text(scaling_page(path.stem))
            draw_scaling(ledger.lines(path.stem), page.with_suffix(".svg"))
        elif path.stem not in ("runs", "cases"):
            page = docs / f"benchmarks_{path.stem}.md"
            page.write_text(device_page(path.stem))
            programs = dict(large_programs(ledger.lines(path.stem)))
            draw_programs(programs, page.with_suffix(".svg"))


# PICTURES


def draw_programs(programs: Mapping[Key, Row], path: pathlib.Path) -> None:
    """Bars for each program; a bar's length is in times of dmljax."""
    if not programs:
        return
    groups = {}
    for key, row in programs.items():
        bars = {}
        for bar, pattern in BARS.items():
            ms = best(row, pattern)
            if ms:
                bars[bar] = ms / row["dmljax"]["wall_ms"], _digits(ms)
        groups[_case(key)] = bars
    device = next(iter(programs.values()))["dmljax"]["device"]
    title = "Milliseconds of wall time; less is better."
    draw_bars(f"{title}\n{device}, {versions(programs)}", BARS, groups, path)


def draw_scaling(lines: Lines, path: pathlib.Path) -> None:
    """Bars for each work; a bar's length is the efficiency of weak scaling."""
    groups: dict[str, dict[str, tuple[float, str]]] = {}
    for key, row in lines.items():
        scaling, axes = key[3].split(" scaling, ")
        if scaling == "weak":
            bars = groups.setdefault(f"{key[0]}, {_case(key)}, {axes}", {})
            for name, line in row.items():
                if name in COUNTS:
                    efficiency = line["efficiency"]
                    bars[name] = efficiency, f"{efficiency:.2f}"
    draw_bars("Efficiency beside one device; 1 is best.", COUNTS, groups, path)


def main() -> None:
    """Writes the marked tables of two pages, and the picture of the overview."""
    for page in (DOCS / "benchmarks.md", README):
        page.write_text(with_tables(page.read_text()))
    programs = list(large_programs(ledger.lines(GPU)))
    # The first row of a name is its forward pass.
    shown = {split(key)[0]: (key, row) for key, row in reversed(programs)}
    chosen = [shown[name] for name in SHOWN if name in shown]
    draw_programs(dict(chosen), DOCS / "benchmarks_overview.svg")


if __name__ == "__main__":
    main()
