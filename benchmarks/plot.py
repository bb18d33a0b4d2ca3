"""Tables and pictures of the ledger.

    python -m benchmarks.plot

It writes what is in git: the tables in docs/benchmarks.md, and the picture that README
shows. The build of the documentation calls `write_pages`, for a page of each table of
the ledger, with all figures.
"""

import pathlib
from collections.abc import Iterable, Mapping, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot
from matplotlib.axes import Axes

from benchmarks import ledger
from benchmarks.collectives import show_bytes
from benchmarks.ledger import Line, Lines

DOCS = pathlib.Path(__file__).parent.parent / "docs"
# The device whose figures README and docs/benchmarks.md show.
OVERVIEW = "NVIDIA H200"
# More elements than small cases have: what pictures and shares are about.
LARGE = 2**20
NAMES = {
    "dmljax": "dmljax",
    "jnp": "jax.numpy",
    "numpy": "NumPy",
    "torch": "PyTorch",
    "onnxruntime": "ONNX Runtime",
}
# The sections of a page: the title, and the context of the cases.
SECTIONS = {
    "One operator": "operator",
    "Between two elementwise operations": "pipeline",
    "Programs": "program",
    "Calls of small arrays outside of `jit`": "call",
    "Forms for speed": "form",
}
FORMS = {"dmljax xla": "XLA", "dmljax pallas": "kernel"}
# The usual work: the operator and the case; and its title in the picture that README
# shows, if it is there.
IMAGES = "(16, 64, 256, 256)"
USUAL = {
    ("nonzero_coordinates", "float32 (67108864,), 1.0% non-zero"): "1 % not zero",
    ("nonzero_coordinates", "float32 (67108864,), 50.0% non-zero"): "",
    ("padding", f"REFLECTION (0, 0, 3, 3) of float32 {IMAGES}"): "reflect by 3",
    ("padding", f"REFLECTION (0, 0, 3, 3) of float16 {IMAGES}"): "",
    ("one_hot", "float32 (67108, 1000), axis -1, int32 indices"): "1000 classes",
    ("diagonal_matrix1", "strictly upper triangle, float32 (8192, 8192)"): "triangle",
    ("element_wise_if", "float32 (67108864,), uint8 condition"): "2^26 float32",
    ("element_wise_if", "int8 (67108864,), uint8 condition"): "",
}
# The programs in the picture, and their titles.
PROGRAMS = {
    "6 convolutions, REFLECTION by 1, float32": "6 convolutions,\nreflect, float32",
    "6 convolutions, REFLECTION by 1, bfloat16": "6 convolutions,\nreflect, bfloat16",
    "causal softmax, float32": "causal softmax,\nfloat32",
    "causal softmax, bfloat16": "causal softmax,\nbfloat16",
    "edges of": "edges of\n64 graphs",
}
OURS, THEIRS = "#1f5fa8", "#b8b8b8"
# The bars of a comparison, and their colours.
BARS = {"over jax.numpy": OURS, "over the fastest other library": "#7fb2e5"}
MARK = "<!-- python -m benchmarks.plot writes the table of {}. -->\n"


# TABLES


def table_of(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown."""
    columns = list(columns)
    every = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in every)


def name_of(contender: str) -> str:
    """A contender's name for readers: of its library, and of its way if it has one."""
    library, *way = contender.split()
    return FORMS.get(contender) or ", ".join([NAMES[library], *way])


def in_order(contenders: Iterable[str]) -> list[str]:
    """Each contender once, by its library."""
    libraries = list(NAMES)
    return sorted(
        dict.fromkeys(contenders), key=lambda n: libraries.index(n.split()[0])
    )


def of_context(lines: Lines, context: str) -> dict[str, Lines]:
    """The cases of a context, by operator."""
    found: dict[str, Lines] = {}
    for key, row in lines.items():
        if key[3] == context:
            found.setdefault(key[0], {})[key] = row
    return found


def figures(lines: Lines, contenders: Iterable[str]) -> str:
    """The times of contenders, and the share that the default of dmljax reaches."""
    names = [n for n in contenders if any(n in row for row in lines.values())]
    cells = [
        [_case(key), *(_times(row.get(name)) for name in names), _share(row)]
        for key, row in lines.items()
        if any(name in row for name in names)
    ]
    return table_of(["case", *map(name_of, names), "share"], cells)


def _case(key: Sequence[str]) -> str:
    _, name, direction, _ = key
    return f"{name}, gradient" if direction == "gradient" else name


def _times(line: Line | None) -> str:
    """The device's time and the wall time, as far as they were measured."""
    times = [line[clock] for clock in ("ms", "wall_ms")] if line else []
    return " / ".join(_microseconds(ms) for ms in times if ms is not None) or "-"


def _microseconds(ms: float) -> str:
    return f"{float(f'{1000 * ms:.3g}'):g}"


def _milliseconds(row: Mapping[str, Line], name: str) -> str:
    return f"{row[name]['wall_ms']:#.3g}".rstrip(".") if name in row else "-"


def _share(row: Mapping[str, Line]) -> str:
    share = row["dmljax"]["share"] if "dmljax" in row else None
    return "-" if share is None else f"{share:.2f}"


def usual_table(lines: Lines) -> str:
    """The usual work of each operator."""
    keys = [(*key, "forward", "operator") for key in USUAL]
    return _wall_table("work", {key: lines[key] for key in keys})


def program_table(lines: Lines) -> str:
    """The programs."""
    chosen = {key: row for key, row in lines.items() if key[3] == "program"}
    return _wall_table("program", chosen)


def _wall_table(what: str, lines: Lines) -> str:
    names = ("dmljax", "jnp", "torch")
    rows = [
        [f"`{key[0]}`, {_case(key)}", *(_milliseconds(row, name) for name in names)]
        for key, row in lines.items()
    ]
    return table_of([what, *map(name_of, names)], rows)


def share_table(lines: Lines) -> str:
    """The least and the largest share of large arrays, by the bytes of an element."""
    shares: dict[tuple[str, str], dict[int, list[float]]] = {}
    for key, row in _large(lines).items():
        line = row["dmljax"]
        by_size = shares.setdefault((key[0], key[2]), {})
        by_size.setdefault(np.dtype(line["dtype"]).itemsize, []).append(line["share"])
    cells = [
        [f"`{operator}`" + (", gradient" if direction == "gradient" else "")]
        + [_range(by_size.get(size, [])) for size in (4, 2, 1)]
        for (operator, direction), by_size in shares.items()
    ]
    return table_of(["operator", "4 bytes", "2 bytes", "1 byte"], cells)


def _range(numbers: Sequence[float]) -> str:
    ends = [f"{end(numbers):.2f}" for end in (min, max)] if numbers else ["-"]
    return " to ".join(dict.fromkeys(ends))


def _large(lines: Lines) -> Lines:
    """The operators as programs of their own, on large arrays."""
    return {
        key: row
        for key, row in lines.items()
        if key[3] == "operator" and next(iter(row.values()))["elements"] > LARGE
    }


# PAGES


def versions(lines: Iterable[Line]) -> str:
    """The newest version of each library, and the days of the first and last figure."""
    every = sorted(lines, key=lambda line: line["date"])
    newest = {n: line[n] for line in every for n in ledger.VERSIONED if line[n]}
    days = dict.fromkeys((every[0]["date"], every[-1]["date"]))
    known = (f"{name} {version}" for name, version in newest.items())
    return f"{', '.join(known)}; {' to '.join(days)}"


def device_page(stem: str) -> str:
    """All figures of a device, of which `stem` is the name of its table."""
    lines = ledger.lines(stem)
    every = [line for row in lines.values() for line in row.values()]
    names = in_order(line["contender"] for line in every)
    parts = [
        f"# Figures: {every[0]['device']}",
        "Microseconds, and medians of many calls. [How it is "
        "measured](benchmarks.md#how-it-is-measured) says what a cell means. "
        f"Versions: {versions(every)}.",
        f"![The wall time of dmljax over that of others.](benchmarks_{stem}.png)",
        "## Shares of a copy's speed",
        "Of large arrays, from the least case to the best one.",
        share_table(lines),
    ]
    both = {key: row for key, row in lines.items() if row.keys() >= FORMS.keys()}
    sections = [
        (title, of_context(lines, context), [n for n in names if n not in FORMS])
        for title, context in SECTIONS.items()
    ] + [
        (f"XLA's code and kernels, {context}", of_context(both, context), list(FORMS))
        for context in ("operator", "pipeline")
    ]
    for title, by_operator, shown in sections:
        parts += [f"## {title}"] if by_operator else []
        for operator, rows in by_operator.items():
            parts += [f"### {operator}", figures(rows, shown)]
    return "\n\n".join(parts) + "\n"


def scaling_page(stem: str) -> str:
    """All figures of several devices."""
    lines = ledger.lines(stem)
    every = [line for row in lines.values() for line in row.values()]
    counts = _counts(lines.values())
    parts = [
        f"# Figures: several devices, {every[0]['device']}",
        "Milliseconds of the slowest device, by its own clock, waiting for others "
        "included; medians of many calls. In brackets are two "
        "[efficiencies](benchmarks.md#on-several-h200s): beside one device with its "
        "default code, and beside one with the same. The last column is what each of "
        f"the most devices sends. Versions: {versions(every)}.",
        f"![Efficiency by the number of devices.](benchmarks_{stem}.png)",
    ]
    for context in sorted({key[3] for key in lines}, reverse=True):
        rows = [
            [f"{key[0]}, {_case(key)}"]
            + [_efficiency(row.get(n)) for n in counts]
            + [_sent(row[max(row, key=counts.index)])]
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


def _sent(line: Line) -> str:
    """The first runs did not count it."""
    return "-" if line.get("sent") is None else show_bytes(line["sent"])


def draw_scaling(lines: Lines, path: pathlib.Path) -> None:
    """The efficiency of weak scaling, by the kind of the axes and by the devices."""
    weak = {
        (f"{key[0]}, {_case(key)}", key[3].split()[-2]): row
        for key, row in lines.items()
        if key[3].startswith("weak")
    }
    works = list(dict.fromkeys(work for work, _ in weak))
    figure, grid = pyplot.subplots(1, 2, sharey=True, layout="constrained")
    figure.set_size_inches(7.4, 0.18 * len(works) + 1)
    for axes, kind in zip(grid, ("automatic", "explicit"), strict=True):
        for name in _counts(weak.values())[1:]:
            points = [
                (row[name]["efficiency"], works.index(work))
                for (work, of_kind), row in weak.items()
                if of_kind == kind and name in row
            ]
            axes.scatter(*np.reshape(points, (-1, 2)).T, label=name, marker="|")
        axes.set_title(f"{kind} axes", fontsize=8)
        axes.set_xlim(0, 1.1)
        axes.tick_params(labelsize=6)
    axes.invert_yaxis()
    axes.set_yticks(range(len(works)), works)
    handles, words = axes.get_legend_handles_labels()
    title = "efficiency beside one device (1 is best)"
    figure.legend(handles, words, title=title, loc="outside upper center", ncols=3)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def _counts(rows: Iterable[Mapping[str, Line]]) -> list[str]:
    """The numbers of devices, as words."""
    return sorted({name for row in rows for name in row}, key=lambda n: (len(n), n))


def estimates_page(stem: str) -> str:
    """All estimates for TPUs."""
    lines = ledger.lines(stem)
    every = [line for row in lines.values() for line in row.values()]
    parts = [
        "# Appendix: estimates for TPUs",
        "[Estimates for TPUs](../benchmarks.md#estimates-for-tpus) says what the "
        f"columns mean. Nothing was measured on a chip. Versions: {versions(every)}.",
    ]
    # Words break on a phone if there are more columns.
    units = {"moved_mb": (1, ".1f"), "cycles": (1e3, ".0f"), "estimated_ms": (1, ".3g")}
    columns = ["case", "MB moved", "1000 cycles", "estimated ms"]
    for title, context in list(SECTIONS.items())[:2]:
        parts.append(f"## {title}")
        for operator, rows in of_context(lines, context).items():
            names = in_order(name for row in rows.values() for name in row)
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
            draw_comparison(ledger.lines(path.stem), page.with_suffix(".png"))


# PICTURES


def draw_comparison(lines: Lines, path: pathlib.Path) -> None:
    """The wall time of dmljax over that of others, a chart for each operator."""
    charts = {
        operator: rows | of_context(lines, "program").get(operator, {})
        for operator, rows in of_context(_large(lines) or lines, "operator").items()
    }
    heights = [len(rows) + 4 for rows in charts.values()]
    figure, grid = pyplot.subplots(
        len(charts),
        squeeze=False,
        figsize=(7.4, 0.16 * sum(heights) + 0.8),
        height_ratios=heights,
        sharex=True,
        layout="constrained",
    )
    for axes, (operator, rows) in zip(grid.flat, charts.items(), strict=True):
        places = np.arange(len(rows))
        others = (["jnp"], [name for name in NAMES if name not in ("dmljax", "jnp")])
        for number, (names, words) in enumerate(zip(others, BARS, strict=True)):
            ratios = [_ratio(row, names) for row in rows.values()]
            middle = places + 0.4 * number - 0.2
            axes.barh(middle, ratios, height=0.4, color=BARS[words], label=words)
        axes.axvline(1, color="black", linewidth=0.8)
        axes.set_yticks(places, list(map(_case, rows)))
        axes.set_title(operator, fontsize=9, loc="left")
        axes.invert_yaxis()
        axes.margins(y=0.01)
        axes.tick_params(labelsize=7)
    handles, words = axes.get_legend_handles_labels()
    title = "wall time of dmljax (less is better)"
    figure.legend(handles, words, title=title, loc="outside upper center", ncols=2)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def _ratio(row: Mapping[str, Line], names: Iterable[str]) -> float:
    """The time of dmljax over the least of the others; 0 if there are none."""
    times = [row[name]["wall_ms"] for name in names if name in row]
    return row["dmljax"]["wall_ms"] / min(times) if times and "dmljax" in row else 0


def draw_overview(lines: Lines, path: pathlib.Path) -> None:
    """The usual work and programs, beside jax.numpy and PyTorch."""
    shown = {key: title for key, title in USUAL.items() if title}
    usual = [lines[*key, "forward", "operator"] for key in shown]
    titles = [f"{operator}\n{title}" for (operator, _), title in shown.items()]
    programs = [
        next(
            row
            for key, row in lines.items()
            if key[2:] == ("forward", "program") and key[1].startswith(text)
        )
        for text in PROGRAMS
    ]
    figure, grid = pyplot.subplots(2, len(shown), layout="constrained")
    figure.set_size_inches(7.4, 3.4)
    rows, words = usual + programs, titles + list(PROGRAMS.values())
    for axes, row, title in zip(grid.flat, rows, words, strict=True):
        _draw_bars(axes, row, title)
        if axes not in grid[:, 0]:
            axes.set_yticks([])
    for axes, label in zip(grid[:, 0], ("one operator", "programs"), strict=True):
        axes.set_ylabel(label, fontsize=8)
    every = [line for row in lines.values() for line in row.values()]
    title = f"Milliseconds of wall time; less is better. {OVERVIEW}, {versions(every)}"
    figure.suptitle(title, fontsize=7)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def _draw_bars(axes: Axes, row: Mapping[str, Line], title: str) -> None:
    times = {name: row[name]["wall_ms"] for name in ("dmljax", "jnp", "torch")}
    colours = [OURS, THEIRS, THEIRS]
    bars = axes.barh([NAMES[n] for n in times], list(times.values()), color=colours)
    axes.bar_label(bars, [f"{ms:.2g}" for ms in times.values()], fontsize=7, padding=2)
    axes.set_title(title, fontsize=7)
    axes.invert_yaxis()
    axes.tick_params(labelsize=7, length=0)
    axes.set_xticks([])
    axes.margins(x=0.5)


# WHAT IS IN GIT


def with_tables(text: str, lines: Lines) -> str:
    """The text of docs/benchmarks.md, with its tables written anew."""
    for what, table in (("usual work", usual_table), ("programs", program_table)):
        before, after = text.split(MARK.format(what))
        text = before + MARK.format(what) + table(lines) + after[after.index("\n\n") :]
    return text


def main() -> None:
    """Writes the tables in docs/benchmarks.md, and the picture of README."""
    mpl.use("Agg")
    lines, page = ledger.lines(OVERVIEW), DOCS / "benchmarks.md"
    page.write_text(with_tables(page.read_text(), lines))
    draw_overview(lines, DOCS / "benchmarks_overview.png")


if __name__ == "__main__":
    main()
