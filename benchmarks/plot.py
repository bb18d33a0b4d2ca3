"""Tables and pictures of the ledger.

    python -m benchmarks.plot

It writes what is in git: the tables in docs/benchmarks.md, and the picture that README
shows. The build of the documentation calls `write_pages`, for a page of each table of
the ledger, with all figures.
"""

import pathlib
import re
import statistics
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot

from benchmarks import ledger
from benchmarks.collectives import show_bytes
from benchmarks.ledger import Line, Lines
from dmljax._programs import PROGRAMS

DOCS = pathlib.Path(__file__).parent.parent / "docs"
# The devices whose figures docs/benchmarks.md has, and README of the first.
GPU, CPU, TPU = "NVIDIA H200", "x86_64 CPU", "TPU"
# Large programs have at least so many elements.
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
# The bars of a program: a pattern of the contenders, of which they show the fastest,
# and their colours.
BARS = {
    "dmljax": ("dmljax", "#1f5fa8"),
    "best in jax.numpy": ("jnp.*", "#7fb2e5"),
    "best in PyTorch": ("torch.*", "#b8b8b8"),
}
CUT = 2.5  # times of dmljax, where longer bars end
# The programs in README's picture.
SHOWN = (*PROGRAMS, "causal attention", "6 reflect-padded convolutions")
MARK = "<!-- python -m benchmarks.plot writes the table of {}. -->\n"

Key = tuple[str, ...]
Row = Mapping[str, Line]


def best(row: Row, pattern: str) -> float | None:
    """The least wall time of the contenders that match."""
    found = [x["wall_ms"] for name, x in row.items() if re.fullmatch(pattern, name)]
    return min(found, default=None)


def split(key: Key) -> tuple[str, str]:
    """The name of a program, and the type and the sizes of its first array."""
    name, *sizes = re.split(r", (?=\w+ \()", key[1])
    return name, ", ".join(sizes)


def large_programs(lines: Lines) -> Iterator[tuple[Key, Row]]:
    """Each program with its first type, and once on large arrays."""
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
    """A contender's name for readers: of its library, and of its way if it has one."""
    library, *way = contender.split(" ", 1)
    return ", ".join([NAMES[library], *way])


def _case(key: Key) -> str:
    return f"{key[1]}, gradient" if key[2] == "gradient" else key[1]


def _digits(number: float | None) -> str:
    return "-" if number is None else f"{number:#.3g}".rstrip(".")


def program_table(lines: Lines) -> str:
    """Milliseconds of wall time of large programs."""
    columns = {
        "dmljax": "dmljax",
        "best in jax.numpy": "jnp.*",
        "torch.compile": "torch compiled",
        "PyTorch": "torch(?! compiled).*",
        "without": "reference.*",
    }
    return table_of(
        ["program", *columns],
        [
            [_case(key), *(_digits(best(row, one)) for one in columns.values())]
            for key, row in large_programs(lines)
        ],
    )


def tracing_table(devices: Mapping[str, Lines]) -> str:
    """Times of dmljax over those of jax.numpy, once and many times in a program."""
    found: dict[str, dict[str, str]] = {}
    for device, lines in devices.items():
        for key, row in lines.items():
            if key[3] == "tracing":
                work, calls, _ = re.split(r", (1|20) of ", key[1])
                work += ", gradient" * (key[2] == "gradient")
                pair = (
                    f"{row['dmljax'][clock] / row['jnp'][clock]:.2f}"
                    for clock in ("lower_ms", "compile_ms")
                )
                cells = found.setdefault(f"`{key[0]}`, {work}", {})
                cells[f"{device}, {calls}"] = " / ".join(pair)
    columns = list(dict.fromkeys(name for cells in found.values() for name in cells))
    rows = ([w, *(c.get(name, "-") for name in columns)] for w, c in found.items())
    return table_of(["work", *columns], rows)


def cpu_table(lines: Lines) -> str:
    """By operator, how the programs compare with those of other libraries."""
    others = {NAMES[n]: f"{n}.*" for n in ("jnp", "torch", "numpy", "onnxruntime")}
    ratios: dict[str, dict[str, list[float]]] = {}
    for key, row in lines.items():
        if key[3] in ("program", "operator") and "dmljax" in row:
            for name, pattern in others.items():
                if (theirs := best(row, pattern)) is not None:
                    own = ratios.setdefault(key[0], {}).setdefault(name, [])
                    own.append(row["dmljax"]["wall_ms"] / theirs)
    rows = [
        [f"`{operator}`", *(_spread(by_library.get(name, [])) for name in others)]
        for operator, by_library in ratios.items()
    ]
    return table_of(["operator", *others], rows)


def tpu_table(lines: Lines) -> str:
    """By operator, bytes and cycles of the v5e over those of jax.numpy."""
    columns, rows = ("moved_mb", "cycles"), []
    for context, title in (("operator", ""), ("pipeline", ", between two operations")):
        for operator, cases in of_context(lines, context).items():
            pairs = [row for row in cases.values() if row.keys() >= {"dmljax", "jnp"}]
            ratios = [[r["dmljax"][c] / r["jnp"][c] for r in pairs] for c in columns]
            rows.append([f"`{operator}`{title}", *map(_spread, ratios)])
    return table_of(["operator", "bytes", "cycles"], rows)


def _spread(numbers: Sequence[float]) -> str:
    """The median, and the largest number in brackets."""
    if not numbers:
        return "-"
    return f"{statistics.median(numbers):.2f} ({max(numbers):.2f})"


def with_tables(text: str) -> str:
    """The text of docs/benchmarks.md, with its tables written anew."""
    gpu, cpu, tpu = (ledger.lines(device) for device in (GPU, CPU, TPU))
    tables = {
        "programs": program_table(gpu),
        "tracing": tracing_table({"CPU": cpu, "H200": gpu}),
        "programs on a CPU": program_table(cpu),
        "CPUs": cpu_table(cpu),
        "TPUs": tpu_table(tpu),
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
    """What a program costs before it runs."""
    rows = [
        [_case(key)]
        + [
            f"{row['dmljax'][clock]:.0f} / {row['jnp'][clock]:.0f}"
            for clock in ("lower_ms", "compile_ms")
        ]
        for key, row in lines.items()
    ]
    return table_of(["case", "trace and lower", "compile, too"], rows)


def device_page(stem: str) -> str:
    """All figures of a device, of which `stem` is the name of its table."""
    lines = ledger.lines(stem)
    device = next(line["device"] for row in lines.values() for line in row.values())
    parts = [
        f"# Figures: {device}",
        "Milliseconds of wall time, and medians of many calls. [How it is "
        "measured](benchmarks.md#how-it-is-measured) says what a column means. "
        f"Versions: {versions(lines)}.",
    ]
    if any(True for _ in large_programs(lines)):
        parts.append(f"![Programs in several libraries.](benchmarks_{stem}.png)")
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
    parts = [
        f"# Figures: several devices, {every[0]['device']}",
        "Milliseconds of the slowest device, by its own clock, waiting for others "
        "included; medians of many calls. In brackets are two "
        "[efficiencies](benchmarks.md#on-several-h200s): beside one device with its "
        "default code, and beside one with the same. The last column is what each "
        f"device sends, if all devices work. Versions: {versions(lines)}.",
        f"![Efficiency by the number of devices.](benchmarks_{stem}.png)",
    ]
    for context in sorted({key[3] for key in lines}, reverse=True):
        rows = [
            [f"{key[0]}, {_case(key)}"]
            + [_efficiency(row.get(n)) for n in counts]
            + [show_bytes(row[max(row, key=counts.index)].get("sent"))]
            for key, row in lines.items()
            if key[3] == context
        ]
        columns = ["work", *counts, "sent"]
        parts += [f"## {context.capitalize()}", table_of(columns, rows)]
    return "\n\n".join(parts) + "\n"


def _efficiency(line: Line | None) -> str:
    if line is None:
        return "-"
    pair = f"{line['efficiency']:.2f}, {line['efficiency_of_form']:.2f}"
    return f"{line['ms']:.4g} ({pair})"


def draw_scaling(lines: Lines, path: pathlib.Path) -> None:
    """The efficiency of weak scaling, by the kind of the axes and by the devices."""
    figure, grid = pyplot.subplots(1, 2, sharey=True, layout="constrained")
    weak = {key: row for key, row in lines.items() if key[3].startswith("weak")}
    works = list(dict.fromkeys(f"{key[0]}, {_case(key)}" for key in weak))
    figure.set_size_inches(7.4, 0.18 * len(works) + 1)
    for axes, kind in zip(grid, ("automatic axes", "explicit axes"), strict=True):
        for name in ("2 devices", "4 devices", "8 devices"):
            points = [
                (row[name]["efficiency"], works.index(f"{key[0]}, {_case(key)}"))
                for key, row in weak.items()
                if key[3].endswith(kind) and name in row
            ]
            axes.scatter(*np.reshape(points, (-1, 2)).T, label=name, marker="|")
        axes.set_title(kind, fontsize=8)
        axes.set_xlim(0, 1.1)
        axes.tick_params(labelsize=6)
    axes.invert_yaxis()
    axes.set_yticks(range(len(works)), works)
    title = "efficiency beside one device (1 is best)"
    handles = axes.get_legend_handles_labels()
    figure.legend(*handles, title=title, loc="outside upper center", ncols=3)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


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
            cells = [
                [key[1]]
                + [
                    " / ".join(
                        f"{row[n][column] / unit:{form}}" if n in row else "-"
                        for n in names
                    )
                    for column, (unit, form) in units.items()
                ]
                for key, row in rows.items()
            ]
            words = f"A cell has: {' / '.join(map(name_of, names))}."
            parts += [f"### {operator}", words, table_of(columns, cells)]
    return "\n\n".join(parts) + "\n"


def write_pages(docs: pathlib.Path = DOCS) -> None:
    """Writes a page of each table of the ledger, and a picture of each device."""
    mpl.use("Agg")
    for path in sorted(ledger.RESULTS.glob("*.csv")):
        if path.stem == "tpu":
            (docs / "development").mkdir(exist_ok=True)
            page = docs / "development" / "tpu_estimates.md"
            page.write_text(estimates_page(path.stem))
        elif path.stem.endswith("-scaling"):
            page = docs / f"benchmarks_{path.stem}.md"
            page.write_text(scaling_page(path.stem))
            draw_scaling(ledger.lines(path.stem), page.with_suffix(".png"))
        elif path.stem not in ("runs", "cases"):
            page = docs / f"benchmarks_{path.stem}.md"
            page.write_text(device_page(path.stem))
            programs = dict(large_programs(ledger.lines(path.stem)))
            draw_programs(programs, page.with_suffix(".png"))


# PICTURES


def draw_programs(programs: Mapping[Key, Row], path: pathlib.Path) -> None:
    """A row of bars for each program; a bar's length is in times of dmljax."""
    if not programs:
        return
    chosen = list(programs.items())
    figure, axes = pyplot.subplots(layout="constrained")
    # A phone shows all of it in a width of two inches and a half.
    figure.set_size_inches(5, 0.5 * len(chosen) + 1)
    places = np.arange(len(chosen))
    for number, (words, (pattern, colour)) in enumerate(BARS.items()):
        times = [best(row, pattern) or 0.0 for _, row in chosen]
        ratios = [
            ms / row["dmljax"]["wall_ms"]
            for ms, (_, row) in zip(times, chosen, strict=True)
        ]
        cut = np.minimum(ratios, CUT)
        height = 0.8 / len(BARS)
        middles = places + (number - 1) * height
        bars = axes.barh(middles, cut, height * 0.9, color=colour, label=words)
        shown = [
            f"{_digits(ms)}{' (cut)' if ratio > CUT else ''}" if ms else ""
            for ms, ratio in zip(times, ratios, strict=True)
        ]
        axes.bar_label(bars, shown, fontsize=7, padding=2)
    axes.set_yticks(places, ["\n".join(_lines(key)) for key, _ in chosen])
    axes.tick_params(labelsize=8, length=0)
    axes.set_xlim(0, CUT * 1.35)
    axes.set_xticks([1], ["as fast as dmljax"])
    axes.axvline(1, color="black", linewidth=0.6, zorder=0)
    axes.invert_yaxis()
    axes.margins(y=0.01)
    device = chosen[0][1]["dmljax"]["device"]
    title = "Milliseconds of wall time; less is better."
    figure.suptitle(f"{title}\n{device}, {versions(programs)}", fontsize=8)
    figure.legend(loc="outside lower center", ncols=len(BARS), fontsize=8)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def _lines(key: Key) -> list[str]:
    """The name and the sizes of a program, in lines of a picture."""
    name, sizes = split(key)
    return [*textwrap.wrap(name, 24), sizes + ", gradient" * (key[2] == "gradient")]


def main() -> None:
    """Writes the tables in docs/benchmarks.md, and the picture of README."""
    mpl.use("Agg")
    page = DOCS / "benchmarks.md"
    page.write_text(with_tables(page.read_text()))
    programs = list(large_programs(ledger.lines(GPU)))
    # The forward pass is the first one of a name.
    shown = {split(key)[0]: (key, row) for key, row in reversed(programs)}
    chosen = [shown[name] for name in SHOWN if name in shown]
    draw_programs(dict(chosen), DOCS / "benchmarks_overview.png")


if __name__ == "__main__":
    main()
