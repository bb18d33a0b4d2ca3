"""Draws and tabulates the ledgers for the documentation.

    python -m benchmarks.plot

For each ledger in benchmarks/results it writes docs/benchmarks_<device>_share.png, the
share of a copy's speed that each case reaches, docs/benchmarks_<device>.png, the wall
time of dmljax beside that of others, and docs/benchmarks_<device>.md, all figures. Of a
ledger of several devices it writes one picture and the figures. It also writes the
tables in docs/benchmarks.md, and the picture that README.md shows.
"""

import functools
import pathlib
from collections.abc import Callable, Iterable, Mapping, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from benchmarks import ledger, plot_scaling
from benchmarks.ledger import Line, Rows, circumstances, table_of, versions

DOCS = pathlib.Path(__file__).parent.parent / "docs"
# More elements than the small cases have: what the pictures show.
LARGE = 2**20
REACHED, MISSED = "#1f5fa8", "#d9822b"
# The colours of what is compared inside jit, and of calls.
BY_CONTEXT = {"inside jit": "#1f5fa8", "calls": "#7fb2e5"}
# The share of the ceiling to reach, by operator and direction, for elements of 1 to 8
# bytes. The gradient of one_hot is one pass over the cotangent.
TARGETS: dict[tuple[str, str], dict[int, float]] = {
    ("element_wise_if", "forward"): dict.fromkeys((1, 2, 4), 0.90),
    ("element_wise_if", "gradient"): dict.fromkeys((1, 2, 4), 0.85),
    ("diagonal_matrix1", "forward"): {1: 0.75, 2: 0.85, 4: 0.90},
    ("diagonal_matrix1", "gradient"): dict.fromkeys((1, 2, 4), 0.85),
    ("one_hot", "forward"): dict.fromkeys((1, 2, 4), 0.80),
    ("one_hot", "gradient"): dict.fromkeys((1, 2, 4), 0.80),
    ("padding", "forward"): dict.fromkeys((1, 2, 4), 0.90),
    ("padding", "gradient"): dict.fromkeys((1, 2, 4), 0.75),
    ("nonzero_coordinates", "forward"): dict.fromkeys((1, 2, 4, 8), 0.85),
}
# By words in the case: if fewer bytes are moved, the launches count for more.
TARGETS_BY_CASE = {"undefined tail": 0.75, " rows": 0.65}
# The device whose figures README.md shows.
OVERVIEW = "NVIDIA H200"
# The usual work of each operator: what docs/benchmarks.md calls it, the operator, the
# case, and the direction.
USUAL = (
    (
        "`element_wise_if`, 2^26 float32",
        *("element_wise_if", "float32 x 67108864, uint8 condition", "forward"),
    ),
    (
        "`element_wise_if`, 2^26 int8",
        *("element_wise_if", "int8 x 67108864, uint8 condition", "forward"),
    ),
    (
        "`diagonal_matrix1`, triangle of 8192 x 8192 float32",
        *(
            "diagonal_matrix1",
            "strictly upper triangle, float32 (8192, 8192)",
            "forward",
        ),
    ),
    (
        "`diagonal_matrix1`, identity of 8192 x 8192 int8",
        *("diagonal_matrix1", "identity, int8 (8192, 8192)", "forward"),
    ),
    (
        "`one_hot`, 67 108 sequences of 1000 float32",
        *("one_hot", "float32 (67108, 1000), axis -1, int32 indices", "forward"),
    ),
    (
        "`padding`, REFLECTION by 3 of 16 x 64 images of 256 x 256 float32",
        *(
            "padding",
            "REFLECTION (0, 0, 3, 3) of float32 (16, 64, 256, 256)",
            "forward",
        ),
    ),
    (
        "its gradient",
        *(
            "padding",
            "REFLECTION (0, 0, 3, 3) of float32 (16, 64, 256, 256)",
            "gradient",
        ),
    ),
    (
        "`padding`, the same in float16",
        *(
            "padding",
            "REFLECTION (0, 0, 3, 3) of float16 (16, 64, 256, 256)",
            "forward",
        ),
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
# Programs inside of jit are compared with each other, and calls with calls. The values
# are the names in tables, and the first of each is dmljax.
INSIDE = {"dmljax": "dmljax", "jnp": "jax.numpy"}
CALLS = {
    "dmljax, outside jit": "dmljax",
    "jnp, outside jit": "jax.numpy",
    "numpy": "NumPy",
    "torch": "PyTorch",
    "cupy": "CuPy",
    "onnxruntime": "ONNX Runtime",
}
COMPARED = {"inside jit": INSIDE, "calls": CALLS}
MARK = "<!-- python -m benchmarks.plot writes this table{}. -->\n"
# README.md's picture shows the usual work with these numbers, by these names.
SHOWN = {
    9: "2^26 float32, 1 % not zero",
    5: "reflect by 3, float32",
    4: "1000 classes, float32",
    2: "triangle, float32",
    1: "2^26 int8",
}


def wall(line: Line) -> float:
    """Milliseconds of the wall time; on a CPU there is no other."""
    return float(line["wall_ms"] if "wall_ms" in line else line["ms"])


def page(rows: Rows, name: str) -> str:
    """All figures as a page."""
    last = list(rows.values())[-1]["dmljax"]
    on_gpu = last["launches"] is not None
    cells = (
        "A cell has two times. The first is that of the device: all kernels, copies "
        "and fills that a call launches, by the clock of the GPU. The second is the "
        "wall time of a call while many are in flight. It is at least the time that "
        "Python needs for a call."
        if on_gpu
        else "The figures are wall times of calls in flight."
    )
    parts = [
        f"# Figures: {last['device']}",
        "The figures are microseconds, and medians of many calls. Less is better. "
        f"Versions: {versions(last)}, {last['date']}.",
        f"- {cells}",
        "- **Inside `jit`**, the functions of dmljax and of jax.numpy are compiled as "
        "a program. **Calls** are made as they are, outside of `jit`. Gradients of "
        "dmljax and jax.numpy are timed inside `jit` only.\n"
        "- **share** is the time of a copy of the same bytes "
        f"({last['copy_gb_per_s']:.0f} GB/s read and written), divided by the time of "
        "the device for dmljax. If almost nothing is read, it is that of a fill "
        f"({last['fill_gb_per_s']:.0f} GB/s) instead of a copy. More is better. Both "
        "speeds are measured in the same run. A share above 1 is possible, because a "
        "cache holds small arrays and parts of large ones.\n"
        '- A program "in a pipeline" has an elementwise operation before and after '
        "the operator.",
        f"![The share of a copy's speed, for each case.]({name}_share.png)",
        "![The wall time of dmljax over that of jax.numpy inside jit, and over that of "
        f"the fastest other library for calls.]({name}.png)",
    ]
    for title, context, names in (
        ("## Inside `jit`", "alone", INSIDE),
        ("## Calls", "alone", CALLS),
        ("## In a pipeline, inside `jit`", "pipeline", INSIDE),
        ("## Programs", "program", INSIDE | {"torch": "PyTorch, calls"}),
    ):
        parts += _section(title, rows, context, functools.partial(table, names=names))
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


def table(rows: Rows, names: Mapping[str, str]) -> str:
    """The times of these contenders for one operator; the share is the first one's."""
    ours = next(iter(names))
    shown = [name for name in names if any(name in row for row in rows.values())]
    lines = [
        [_label(key), *(_times(row, name) for name in shown), _share(row, ours)]
        for key, row in rows.items()
        if any(name in row for name in names)
    ]
    return table_of(["case", *(names[name] for name in shown), "share"], lines)


def _times(row: dict[str, Line], name: str) -> str:
    """The device's time and the wall time, or only this if they are the same."""
    if name not in row:
        return "-"
    line = row[name]
    times = [line["ms"]] if line["launches"] is not None else []
    return " / ".join(map(_microseconds, (*times, wall(line))))


def _share(row: dict[str, Line], name: str) -> str:
    share = row[name]["share"] if name in row else None
    return "-" if share is None else f"{share:.2f}"


def cost_table(rows: Rows) -> str:
    """The times of both implementations of one operator, and what they cost."""
    columns = ["case", "xla", "pallas", "launches", "compile, ms", "peak, MiB"]
    lines = [
        [
            _label(key),
            *(_times(row, f"dmljax, {form}") for form in ("xla", "pallas")),
            *_costs(row),
        ]
        for key, row in rows.items()
    ]
    return table_of(columns, lines)


def _label(key: tuple[str, str, str, str]) -> str:
    """Returns the name of a case, to be shown beside that of its operator."""
    _, case, direction, _ = key
    return case + {"forward": "", "gradient": ", gradient"}[direction]


def _microseconds(milliseconds: float) -> str:
    time = 1000 * milliseconds
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
    return [rows[operator, case, way, "alone"] for _, operator, case, way in USUAL]


def overview_page(text: str, rows: Rows) -> str:
    """The text of docs/benchmarks.md, with its tables written anew."""
    usual = [
        [line[0], *_milliseconds(row, INSIDE), *_milliseconds(row, SHOWN_CALLS)]
        for line, row in zip(USUAL, usual_rows(rows), strict=True)
    ]
    inside = [f"{name} inside `jit`" for name in INSIDE.values()]
    calls = [f"{name}, call" for name in SHOWN_CALLS.values()]
    text = _with_table(text, "", table_of(["work", *inside, *calls], usual))
    programs = [
        [_label(key), *_milliseconds(row, PROGRAMS)]
        for key, row in rows.items()
        if key[3] == "program"
    ]
    columns = ["program", *PROGRAMS.values()]
    return _with_table(text, " of programs", table_of(columns, programs))


# The calls in the table of the usual work, and who runs programs.
SHOWN_CALLS = {
    name: CALLS[name] for name in ("dmljax, outside jit", "jnp, outside jit", "torch")
}
PROGRAMS = INSIDE | {"torch": "PyTorch"}


def _milliseconds(row: dict[str, Line], names: Iterable[str]) -> list[str]:
    return [
        f"{wall(row[name]):#.3g}".rstrip(".") if name in row else "-" for name in names
    ]


def _with_table(text: str, which: str, table: str) -> str:
    mark = MARK.format(which)
    before, after = text.split(mark)
    return before + mark + table + after[after.index("\n\n") :]


def _ours(row: dict[str, Line]) -> Line:
    """The figure of a call, or that inside of jit if no call was timed."""
    return row.get("dmljax, outside jit", row["dmljax"])


def _large(rows: Rows) -> Rows:
    return {
        key: row
        for key, row in rows.items()
        if key[3] == "alone" and row["dmljax"]["elements"] > LARGE
    }


def _target(ours: Line) -> float:
    for words, target in TARGETS_BY_CASE.items():
        if words in ours["case"]:
            return target
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

    label = (
        "share of a copy's speed (more is better; a cache makes more than 1 possible)"
    )
    words = ("reaches its target", "falls short of it", "target")
    _draw(rows, path, shares, label, words)


def draw_comparison(rows: Rows, path: pathlib.Path) -> None:
    """The wall time over that of the fastest other, a bar for each context."""

    def ratios(axes: Axes, lines: Sequence[dict[str, Line]]) -> None:
        for number, (context, names) in enumerate(COMPARED.items()):
            found = [_ratio(row, names) for row in lines]
            places = np.arange(len(lines)) + 0.4 * number - 0.2
            axes.barh(places, found, height=0.4, color=BY_CONTEXT[context])
        axes.axvline(1, color="black", linewidth=0.8)

    label = "wall time of dmljax over that of the fastest other (less is better)"
    words = ("inside jit, over jax.numpy", "calls, over the fastest", "the same time")
    _draw(rows, path, ratios, label, words, tuple(BY_CONTEXT.values()))


def _ratio(row: dict[str, Line], names: Iterable[str]) -> float:
    """The time of the first over the least of the others; 0 if there are none."""
    ours, *others = names
    times = [wall(row[name]) for name in others if name in row]
    return wall(row[ours]) / min(times) if ours in row and times else 0


def _bars(axes: Axes, values: Sequence[float], good: np.ndarray) -> None:
    colors = np.where(good, REACHED, MISSED)
    axes.barh(np.arange(len(values)), values, color=colors.tolist())


def draw_overview(rows: Rows, path: pathlib.Path) -> None:
    """Some usual work, inside of jit and as calls, beside that of other libraries."""
    usual = usual_rows(rows)
    figure, grid = pyplot.subplots(
        *(len(COMPARED), len(SHOWN)),
        figsize=(7.4, 3.6),
        height_ratios=(1, 2),
        layout="constrained",
    )
    for line, (context, names) in zip(grid, COMPARED.items(), strict=True):
        for axes, (number, title) in zip(line, SHOWN.items(), strict=True):
            row = {
                names[n]: wall(usual[number][n]) for n in names if n in usual[number]
            }
            colors = [BY_CONTEXT[context]] + ["#b8b8b8"] * (len(row) - 1)
            bars = axes.barh(list(row), list(row.values()), color=colors)
            axes.bar_label(
                bars, [f"{time:.2g}" for time in row.values()], fontsize=7, padding=2
            )
            if names is INSIDE:
                axes.set_title(f"{USUAL[number][1]}\n{title}", fontsize=7)
            axes.invert_yaxis()
            axes.tick_params(labelsize=7, length=0)
            axes.set_xticks([])
            axes.margins(x=0.5)
            if axes is not line[0]:
                axes.set_yticks([])
        line[0].set_ylabel(context, fontsize=8)
    figure.suptitle(
        f"Milliseconds for a call, wall time; less is better. {_where(rows)}",
        fontsize=8,
    )
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def _where(rows: Rows) -> str:
    return circumstances([row["dmljax"] for row in rows.values()])


def _draw(
    rows: Rows,
    path: pathlib.Path,
    bars: Callable[[Axes, Sequence[dict[str, Line]]], None],
    label: str,
    words: tuple[str, str, str],
    colors: tuple[str, ...] = (REACHED, MISSED),
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
    samples = [*(Patch(color=c) for c in colors), Line2D([], [], color="black")]
    figure.legend(
        *(samples, words),
        title=_where(rows),
        fontsize=8,
        loc="outside upper center",
        ncols=3,
    )
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


def measured(path: pathlib.Path) -> Rows:
    """The newest figures of one ledger.

    Figures without a wall time are of earlier code and are left out, unless there are
    no others.
    """
    rows = ledger.newest(ledger.read(path))
    return {key: row for key, row in rows.items() if "wall_ms" in row["dmljax"]} or rows


def write(path: pathlib.Path, folder: pathlib.Path) -> None:
    """The page and the pictures of one ledger."""
    rows = measured(path)
    name = f"benchmarks_{path.stem}"
    # Of a run of small arrays all are shown.
    shown = _large(rows) or rows
    draw_shares(shown, folder / f"{name}_share.png")
    draw_comparison(shown, folder / f"{name}.png")
    (folder / f"{name}.md").write_text(page(rows, name))


# At the end of a ledger's name. No page shows the host's time of calls, nor forms.
SCALING, UNDRAWN = "_scaling", ("_calls", "_forms")


def main(docs: pathlib.Path = DOCS) -> None:
    """Writes the page and the pictures of each ledger, and the picture of README.md."""
    mpl.use("Agg")
    for path in sorted(ledger.RESULTS.glob("*.jsonl")):
        if path.stem.endswith(UNDRAWN):
            continue
        if path != ledger.path("TPU"):  # of estimates: benchmarks.tpu writes its page
            (plot_scaling.write if path.stem.endswith(SCALING) else write)(path, docs)
    gpu = measured(ledger.path(OVERVIEW))
    draw_overview(gpu, docs / "benchmarks_overview.png")
    text = (DOCS / "benchmarks.md").read_text()
    (docs / "benchmarks.md").write_text(overview_page(text, gpu))


if __name__ == "__main__":
    main()
