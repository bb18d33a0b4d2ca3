"""Draws and tabulates the ledgers for the documentation.

    python -m benchmarks.plot

For each ledger in benchmarks/results it writes docs/benchmarks_<device>_share.png, the
share of a copy's speed that each case reaches, docs/benchmarks_<device>.png, the time
of dmljax beside that of the fastest other library, and docs/benchmarks_<device>.md, all
figures. Of a ledger of several devices it writes one picture and the figures. It also
writes the table in docs/benchmarks.md, and the picture that README.md shows.
"""

import itertools
import pathlib
from collections.abc import Callable, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from benchmarks import ledger
from benchmarks.ledger import Line, Rows

DOCS = pathlib.Path(__file__).parent.parent / "docs"
# More elements than the small cases have: what the pictures show.
LARGE = 2**20
REACHED, MISSED = "#1f5fa8", "#d9822b"
# The share of the ceiling to reach, by operator and direction, for elements of 1, 2 and
# 4 bytes. The gradient of one_hot is one pass over the cotangent.
TARGETS: dict[tuple[str, str], dict[int, float]] = {
    ("element_wise_if", "forward"): dict.fromkeys((1, 2, 4), 0.90),
    ("element_wise_if", "gradient"): dict.fromkeys((1, 2, 4), 0.85),
    ("diagonal_matrix1", "forward"): {1: 0.75, 2: 0.85, 4: 0.90},
    ("diagonal_matrix1", "gradient"): dict.fromkeys((1, 2, 4), 0.85),
    ("one_hot", "forward"): dict.fromkeys((1, 2, 4), 0.80),
    ("one_hot", "gradient"): dict.fromkeys((1, 2, 4), 0.80),
    ("padding", "forward"): dict.fromkeys((1, 2, 4), 0.90),
    ("padding", "gradient"): dict.fromkeys((1, 2, 4), 0.75),
    ("nonzero_coordinates", "forward"): dict.fromkeys((1, 2, 4), 0.65),
}
# The device whose figures README.md shows.
OVERVIEW = "NVIDIA H200"
# The usual work of each operator: what docs/benchmarks.md calls it, the operator, the
# start of the case's name, and the direction.
USUAL = (
    (
        "`element_wise_if`, 2^26 float32",
        *("element_wise_if", "float32 x 67108864, uint8", "forward"),
    ),
    (
        "`element_wise_if`, 2^26 int8",
        *("element_wise_if", "int8 x 67108864", "forward"),
    ),
    (
        "`diagonal_matrix1`, triangle of 8192 x 8192 float32",
        *("diagonal_matrix1", "strictly upper triangle, float32 (8192", "forward"),
    ),
    (
        "`diagonal_matrix1`, identity of 8192 x 8192 int8",
        *("diagonal_matrix1", "identity, int8 (8192", "forward"),
    ),
    (
        "`one_hot`, 67 108 sequences of 1000 float32",
        *("one_hot", "float32 (67108, 1000)", "forward"),
    ),
    (
        "`padding`, REFLECTION by 3 of 16 x 64 images of 256 x 256 float32",
        *("padding", "REFLECTION (0, 0, 3, 3) of float32 (16, 64, 256", "forward"),
    ),
    (
        "its gradient",
        *("padding", "REFLECTION (0, 0, 3, 3) of float32 (16, 64, 256", "gradient"),
    ),
    (
        "`padding`, the same in float16",
        *("padding", "REFLECTION (0, 0, 3, 3) of float16 (16, 64, 256", "forward"),
    ),
    (
        "`nonzero_coordinates`, 2^26 float32, 0.1 % not zero",
        *("nonzero_coordinates", "float32 (67108864,), 0.1% non-zero", "forward"),
    ),
    (
        "`nonzero_coordinates`, 1 % not zero",
        *("nonzero_coordinates", "float32 (67108864,), 1.0% non-zero", "forward"),
    ),
    (
        "`nonzero_coordinates`, 50 % not zero",
        *("nonzero_coordinates", "float32 (67108864,), 50.0% non-zero", "forward"),
    ),
)
# The libraries beside it in the table, and in the picture.
TABULATED = {"jnp": "jax.numpy", "torch": "PyTorch"}
OTHERS = (*TABULATED, "cupy")
MARK = "<!-- python -m benchmarks.plot writes this table. -->\n"
# README.md's picture shows the usual work with these numbers, by these names.
SHOWN = {
    9: "2^26 float32, 1 % not zero",
    5: "reflect by 3, float32",
    4: "1000 classes, float32",
    2: "triangle, float32",
    1: "2^26 int8",
}
# A time this much above another is the noise of a run.
NOISE = 0.1
VERSIONS = ("python", "jax", "numpy", "torch", "cupy", "onnxruntime")


def contenders(rows: Rows) -> list[str]:
    """All that appear, ours first."""
    names = {name for row in rows.values() for name in row}
    return sorted(names, key=lambda name: (not name.startswith("dmljax"), name))


CONTEXTS = {
    "alone": "Programs of one operator",
    "pipeline": "In a pipeline",
}


def page(rows: Rows, name: str) -> str:
    """All figures as a page."""
    last = list(rows.values())[-1]["dmljax"]
    versions = ", ".join(f"{v} {last[v]}" for v in VERSIONS if last[v])
    parts = [
        f"# Figures: {last['device']}",
        "The figures are microseconds, and medians of many calls. Less is better. "
        f"Versions: {versions}.",
        "- **dmljax** is a call inside of `jit`. **outside jit** is a call outside of "
        "`jit`. It is timed only if other code runs there. The functions of jax.numpy "
        "are called inside of `jit`, and those of other libraries without it.\n"
        "- **share** is the time of a copy of the same bytes "
        f"({last['copy_gb_per_s']:.0f} GB/s read and written), divided by the time of "
        "dmljax. If nothing is read, it is the time of a fill "
        f"({last['fill_gb_per_s']:.0f} GB/s) instead of a copy. If a call outside of "
        "`jit` is timed, its time is taken. More is better. Both speeds are measured "
        "in the same run.\n"
        '- A program "in a pipeline" has an elementwise operation before and after '
        "the operator.",
        f"![The share of a copy's speed, for each case.]({name}_share.png)",
        "![The time of dmljax over that of the fastest other library, for each case.]"
        f"({name}.png)",
    ]
    for context, title in CONTEXTS.items():
        parts += _section(f"## {title}", rows, context, table)
    parts += _section("## Implementations and costs", rows, "alone", cost_table)
    return "\n\n".join(parts) + "\n"


def _section(
    title: str, rows: Rows, context: str, tabulate: Callable[[Rows], str]
) -> list[str]:
    """A table for each operator, below a title; nothing if there are no figures."""
    chosen = {key: row for key, row in rows.items() if key[3] == context}
    parts = [title] if chosen else []
    for operator in dict.fromkeys(operator for operator, *_ in chosen):
        of_one = {key: row for key, row in chosen.items() if key[0] == operator}
        parts += [f"### {operator}", tabulate(of_one)]
    return parts


def _table(columns: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [columns, ["---"] * len(columns), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def table(rows: Rows) -> str:
    """The times of dmljax and of other libraries for one operator."""
    forms = ("dmljax, xla", "dmljax, pallas")
    names = [name for name in contenders(rows) if name not in forms]
    lines = [
        [
            _label(key),
            *(_microseconds(row, name) for name in names),
            f"{_ours(row)['share']:.2f}",
        ]
        for key, row in rows.items()
    ]
    columns = [name.removeprefix("dmljax, ") for name in names]
    return _table(["case", *columns, "share"], lines)


def cost_table(rows: Rows) -> str:
    """The times of both implementations of one operator, and what they cost."""
    columns = ["case", "xla", "pallas", "launches", "compile, ms", "peak, MiB"]
    lines = [
        [
            _label(key),
            *(_microseconds(row, f"dmljax, {form}") for form in ("xla", "pallas")),
            *_costs(row),
        ]
        for key, row in rows.items()
    ]
    return _table(columns, lines)


def _label(key: tuple[str, str, str, str]) -> str:
    """Returns the name of a case, to be shown beside that of its operator."""
    _, case, direction, _ = key
    return case + {"forward": "", "gradient": ", gradient"}[direction]


def _microseconds(row: dict[str, Line], name: str) -> str:
    if name not in row:
        return "-"
    time = 1000 * row[name]["ms"]
    return (
        f"{time:.2f}" if time < 1 else f"{time:.3g}" if time < 1000 else f"{time:.0f}"
    )


def _costs(row: dict[str, Line]) -> list[str]:
    ours, jitted = _ours(row), row["dmljax"]
    launches = "-" if ours["launches"] is None else str(ours["launches"])
    peak = f"{jitted['peak_bytes'] / 2**20:.4g}"
    return [launches, f"{jitted['compile_ms']:.0f}", peak]


def usual_rows(rows: Rows) -> list[dict[str, Line]]:
    """The figures of each line of USUAL."""
    return [
        next(
            row
            for (operator, case, direction, context), row in rows.items()
            if (operator, direction, context) == (wanted, way, "alone")
            and case.startswith(start)
        )
        for _, wanted, start, way in USUAL
    ]


def overview_page(text: str, rows: Rows) -> str:
    """The text of docs/benchmarks.md, with its table written anew."""
    last = "dmljax, outside jit"

    def milliseconds(row: dict[str, Line], name: str) -> str:
        return f"{row[name]['ms']:#.3g}".rstrip(".") if name in row else "-"

    lines = [
        [line[0], *(milliseconds(row, name) for name in ("dmljax", *TABULATED, last))]
        for line, row in zip(USUAL, usual_rows(rows), strict=True)
    ]
    columns = ["work", "dmljax", *TABULATED.values(), "dmljax outside of `jit`"]
    before, after = text.split(MARK)
    rest = after[after.index("\n\n") :]
    return before + MARK + _table(columns, lines) + rest


def _ours(row: dict[str, Line]) -> Line:
    """The figure outside of jit if it differs there, as the others' are."""
    return row.get("dmljax, outside jit", row["dmljax"])


def _large(rows: Rows) -> Rows:
    return {
        key: row
        for key, row in rows.items()
        if key[3] == "alone" and row["dmljax"]["elements"] > LARGE
    }


def _target(ours: Line) -> float:
    itemsize = np.dtype(ours["dtype"]).itemsize
    return TARGETS[ours["operator"], ours["direction"]][itemsize]


def draw_shares(rows: Rows, path: pathlib.Path) -> None:
    """For each operator the share of each case, and a line at what it aims for."""

    def shares(axes: Axes, lines: Sequence[dict[str, Line]]) -> None:
        ours = [_ours(row) for row in lines]
        values, targets = [line["share"] for line in ours], list(map(_target, ours))
        places = np.arange(len(ours))
        good = np.array(values) >= np.array(targets)
        _bars(axes, values, good)
        axes.vlines(targets, places - 0.5, places + 0.5, color="black", linewidth=0.8)

    label = "share of a copy's speed (more is better)"
    words = ("reaches its target", "falls short of it", "target")
    _draw(rows, path, shares, label, words)


def draw_comparison(rows: Rows, path: pathlib.Path) -> None:
    """The time over that of the fastest other library, a bar for each case."""

    def ratios(axes: Axes, lines: Sequence[dict[str, Line]]) -> None:
        values = [_ours(row)["ms"] / min(_others(row)) for row in lines]
        _bars(axes, values, np.array(values) <= 1 + NOISE)
        axes.axvline(1, color="black", linewidth=0.8)

    compared = {key: row for key, row in rows.items() if _others(row)}
    label = "time of dmljax over that of the fastest other library (less is better)"
    slower = f"slower by more than {NOISE:.0%}"
    _draw(compared, path, ratios, label, ("as fast or faster", slower, "the same time"))


def _bars(axes: Axes, values: Sequence[float], good: np.ndarray) -> None:
    colors = np.where(good, REACHED, MISSED)
    axes.barh(np.arange(len(values)), values, color=colors.tolist())


def _others(row: dict[str, Line]) -> list[float]:
    return [line["ms"] for name, line in row.items() if not name.startswith("dmljax")]


def draw_overview(rows: Rows, path: pathlib.Path) -> None:
    """Some usual work inside of jit, beside that of other libraries."""
    figure, grid = pyplot.subplots(
        1, len(SHOWN), figsize=(7.4, 2.5), layout="constrained"
    )
    usual = usual_rows(rows)
    for axes, (number, title) in zip(grid.flat, SHOWN.items(), strict=True):
        row = usual[number]
        others = [name for name in OTHERS if name in row]
        times = [row[name]["ms"] for name in ("dmljax", *others)]
        bars = axes.barh(["dmljax", *others], times, color=[REACHED] + ["#b8b8b8"] * 3)
        axes.bar_label(bars, [f"{time:.2g}" for time in times], fontsize=8, padding=2)
        axes.set_title(f"{USUAL[number][1]}\n{title}", fontsize=7)
        axes.invert_yaxis()
        axes.tick_params(labelsize=8, length=0)
        axes.set_xticks([])
        axes.margins(x=0.45)
    figure.suptitle(
        f"Milliseconds inside of jit, less is better. {_where(rows)}", fontsize=8
    )
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def _where(rows: Rows) -> str:
    return _circumstances([row["dmljax"] for row in rows.values()])


def _circumstances(lines: Sequence[Line]) -> str:
    """The device, the version of JAX and the last day that the figures are of."""
    day = max(line["date"] for line in lines)
    return f"{lines[-1]['device']}, JAX {lines[-1]['jax']}, {day}"


def _draw(
    rows: Rows,
    path: pathlib.Path,
    bars: Callable[[Axes, Sequence[dict[str, Line]]], None],
    label: str,
    words: tuple[str, str, str],
) -> None:
    """A chart for each operator, below each other; a legend of the words above."""
    operators = list(dict.fromkeys(operator for operator, *_ in rows))
    groups = [[key for key in rows if key[0] == operator] for operator in operators]
    heights = [len(group) + 4 for group in groups]
    figure, grid = pyplot.subplots(
        len(groups),
        squeeze=False,
        figsize=(7.4, 0.16 * sum(heights) + 0.8),
        height_ratios=heights,
        sharex=True,
        layout="constrained",
    )
    for axes, operator, group in zip(grid.flat, operators, groups, strict=True):
        bars(axes, [rows[key] for key in group])
        axes.set_yticks(np.arange(len(group)), list(map(_label, group)))
        axes.set_title(operator, fontsize=9, loc="left")
        axes.invert_yaxis()
        axes.margins(y=0.01)
        axes.tick_params(labelsize=7)
    grid.flat[-1].set_xlabel(label, fontsize=8)
    samples = [Patch(color=REACHED), Patch(color=MISSED), Line2D([], [], color="black")]
    figure.legend(
        *(samples, words),
        title=_where(rows),
        fontsize=8,
        loc="outside upper center",
        ncols=3,
    )
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


def write(path: pathlib.Path, folder: pathlib.Path) -> None:
    """The page and the pictures of one ledger."""
    rows = ledger.newest(ledger.read(path))
    name = f"benchmarks_{path.stem}"
    # Of a run of small arrays all are shown.
    shown = _large(rows) or rows
    draw_shares(shown, folder / f"{name}_share.png")
    draw_comparison(shown, folder / f"{name}.png")
    (folder / f"{name}.md").write_text(page(rows, name))


# At the end of a ledger's name. No page shows the host's time of calls, nor forms.
SCALING, UNDRAWN = "_scaling", ("_calls", "_forms")


def write_scaling(path: pathlib.Path, folder: pathlib.Path) -> None:
    """The page and the picture of a ledger of several devices."""
    every = ledger.read(path)
    # The lines of one work are compared with one another, so they are of one commit.
    commits = {tuple(line[key] for key in LABEL): line["commit"] for line in every}
    newest = {
        (line["scaling"], *(line[key] for key in LABEL), line["devices"]): line
        for line in every
        if line["commit"] == commits[tuple(line[key] for key in LABEL)]
    }
    name, lines = f"benchmarks_{path.stem}", list(newest.values())
    draw_scaling(lines, folder / f"{name}.png")
    (folder / f"{name}.md").write_text(scaling_page(lines, name))


LABEL = ("operator", "case", "direction")


def scaling_page(lines: Sequence[Line], name: str) -> str:
    """All figures of several devices as a page."""
    last = lines[-1]
    counts = sorted({line["devices"] for line in lines})
    versions = ", ".join(f"{v} {last[v]}" for v in VERSIONS if last[v])
    parts = [
        f"# Figures: several devices, {last['device']}",
        "The figures are milliseconds, and medians of many calls. The time is that of "
        "the slowest device, by its own clock. It includes waiting for other devices. "
        "In brackets is the efficiency: the time of one device divided by this time; "
        "for strong scaling it is also divided by the number of devices. "
        f"Versions: {versions}.",
        f"![Efficiency over the number of devices.]({name}.png)",
    ]
    columns = ["operator", "case", "direction", "communicates", *map(str, counts)]
    for scaling, title in (
        ("weak", "Weak scaling: each device has as much work as a single device"),
        ("strong", "Strong scaling: the devices share the work of a single device"),
    ):
        rows = ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
        for work in _by_work(lines, scaling).values():
            by_count = {
                line["devices"]: f"{line['ms']:.4g} ({line['efficiency']:.2f})"
                for line in work
            }
            times = [by_count.get(count, "-") for count in counts]
            words = [work[0][key] for key in (*LABEL, "communicates")]
            rows.append("| " + " | ".join([*words, *times]) + " |")
        parts += [f"## {title}", "\n".join(rows)]
    return "\n\n".join(parts) + "\n"


def _by_work(lines: Sequence[Line], scaling: str) -> dict[tuple[str, ...], list[Line]]:
    """The lines of each work, by growing number of devices."""
    found: dict[tuple[str, ...], list[Line]] = {}
    for line in sorted(lines, key=lambda line: line["devices"]):
        if line["scaling"] == scaling:
            found.setdefault(tuple(line[key] for key in LABEL), []).append(line)
    order = list(dict.fromkeys(tuple(line[key] for key in LABEL) for line in lines))
    return {label: found[label] for label in order}


def draw_scaling(lines: Sequence[Line], path: pathlib.Path) -> None:
    """The efficiency over the number of devices, a line for each work."""
    figure, grid = pyplot.subplots(
        1, 2, figsize=(7.4, 4.8), sharey=True, layout="constrained"
    )
    every = sorted({line["devices"] for line in lines})
    for axes, scaling in zip(grid.flat, ("weak", "strong"), strict=True):
        axes.set_prop_cycle(color=mpl.colormaps["tab20"](range(20)))
        works = _by_work(lines, scaling).items()
        for (label, work), marker in zip(works, itertools.cycle("os^v<>Dp")):
            counts = [line["devices"] for line in work]
            shares = [line["efficiency"] for line in work]
            style = "-" if work[0]["communicates"] == "nothing" else "--"
            axes.plot(counts, shares, style, marker=marker, label=", ".join(label))
        axes.set_xticks(every)
        axes.set_ylim(0, 1.05)
        axes.set_title(f"{scaling} scaling", fontsize=9)
        axes.tick_params(labelsize=8)
        axes.set_xlabel("devices", fontsize=8)
    grid.flat[0].set_ylabel("efficiency (more is better)", fontsize=8)
    handles, labels = grid.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, fontsize=7, loc="outside lower center", ncols=1)
    where = _circumstances(lines)
    figure.suptitle(f"{where}. Dashed: devices send data to each other.", fontsize=9)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


def main(docs: pathlib.Path = DOCS) -> None:
    """Writes the page and the pictures of each ledger, and the picture of README.md."""
    mpl.use("Agg")
    for path in sorted(ledger.RESULTS.glob("*.jsonl")):
        if path.stem.endswith(UNDRAWN):
            continue
        if path != ledger.path("TPU"):  # of estimates: benchmarks.tpu writes its page
            (write_scaling if path.stem.endswith(SCALING) else write)(path, docs)
    gpu = ledger.newest(ledger.read(ledger.path(OVERVIEW)))
    draw_overview(gpu, docs / "benchmarks_overview.png")
    text = (DOCS / "benchmarks.md").read_text()
    (docs / "benchmarks.md").write_text(overview_page(text, gpu))


if __name__ == "__main__":
    main()
