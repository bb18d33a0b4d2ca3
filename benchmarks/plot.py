"""Draws and tabulates the ledgers for the documentation.

    python -m benchmarks.plot

For each ledger in benchmarks/results it writes docs/benchmarks_<device>_share.png, the
share of its ceiling that each case reaches, docs/benchmarks_<device>.png, our time
beside that of the fastest other, and docs/benchmarks_<device>.md, all figures. Of a
ledger of several devices it writes one picture and the figures.
"""

import pathlib
from collections.abc import Callable, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot
from matplotlib.axes import Axes

from benchmarks import ledger
from benchmarks.ledger import Line, Rows

DOCS = pathlib.Path(__file__).parent.parent / "docs"
# More elements than the small cases have: what the pictures show.
LARGE = 2**20
REACHED, MISSED = "#5b4a9c", "#d9822b"
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
# The usual work of each operator, for one picture of all: a title, the operator, the
# start of the case's name, and the direction.
USUAL = (
    ("64Mi float32, 1 % non-zero", "nonzero_coordinates", "float32 (67108864,), 1.0%"),
    ("reflect 3, 64Mi float32", "padding", "REFLECTION (0, 0, 3, 3) of float32"),
    ("of 1000, 256 MiB float32", "one_hot", "float32 (67108, 1000)"),
    (
        "triangle, 64Mi float16",
        "diagonal_matrix1",
        "strictly upper triangle, float16 (81",
    ),
    ("64Mi int8", "element_wise_if", "int8 x 67108864"),
)
# A time this much above another is the noise of a run.
NOISE = 0.1
VERSIONS = ("python", "jax", "numpy", "torch", "cupy", "onnxruntime")


def contenders(rows: Rows) -> list[str]:
    """All that appear, ours first."""
    names = {name for row in rows.values() for name in row}
    return sorted(names, key=lambda name: (not name.startswith("dmljax"), name))


def page(rows: Rows, name: str) -> str:
    """All figures as a page."""
    last = list(rows.values())[-1]["dmljax"]
    versions = ", ".join(f"{v} {last[v]}" for v in VERSIONS if last[v])
    parts = [
        f"# Figures: {last['device']}",
        f"Milliseconds, medians; {versions}. Share is that of the bandwidth of a copy, "
        f"{last['copy_gb_per_s']:.0f} GB/s read and written, or where nothing is read, "
        f"of a fill, {last['fill_gb_per_s']:.0f} GB/s, both measured in the same run. "
        "Share and launches are dmljax's, outside of jit if it is timed there; the "
        "milliseconds to compile and the peak of memory in MiB are those inside jit.",
        f"![Share of the ceiling]({name}_share.png)",
        f"![Our time over the fastest other's]({name}.png)",
    ]
    for context, title in (("alone", "Alone"), ("pipeline", "In a pipeline")):
        chosen = {key: row for key, row in rows.items() if key[3] == context}
        if chosen:
            parts += [f"## {title}", table(chosen)]
    return "\n\n".join(parts) + "\n"


def table(rows: Rows) -> str:
    """The figures of one context."""
    names = contenders(rows)
    columns = ["operator", "case", "direction", *names]
    columns += ["share", "launches", "compile", "peak"]
    lines = ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    for (operator, case, direction, _), row in rows.items():
        times = [f"{row[c]['ms']:.4g}" if c in row else "-" for c in names]
        cells = [operator, case, direction, *times, *_costs(row)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _costs(row: dict[str, Line]) -> list[str]:
    ours, jitted = _ours(row), row["dmljax"]
    launches = "-" if ours["launches"] is None else str(ours["launches"])
    peak = f"{jitted['peak_bytes'] / 2**20:.4g}"
    return [f"{ours['share']:.2f}", launches, f"{jitted['compile_ms']:.0f}", peak]


def _ours(row: dict[str, Line]) -> Line:
    """Our figure: outside of jit if it differs there, as the others' is."""
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
        colors = [
            REACHED if value >= target else MISSED
            for value, target in zip(values, targets, strict=True)
        ]
        places = np.arange(len(ours))
        axes.barh(places, values, color=colors)
        axes.vlines(targets, places - 0.5, places + 0.5, color="black", linewidth=0.8)

    _draw(rows, path, shares, "share of the ceiling (more is better)")


def draw_comparison(rows: Rows, path: pathlib.Path) -> None:
    """Our time over that of the fastest other, a bar for each case."""

    def ratios(axes: Axes, lines: Sequence[dict[str, Line]]) -> None:
        values = [_ours(row)["ms"] / min(_others(row)) for row in lines]
        colors = [REACHED if value <= 1 + NOISE else MISSED for value in values]
        axes.barh(np.arange(len(values)), values, color=colors)
        axes.axvline(1, color="black", linewidth=0.8)

    compared = {key: row for key, row in rows.items() if _others(row)}
    label = "time over that of the fastest other (less is better)"
    _draw(compared, path, ratios, label)


def _others(row: dict[str, Line]) -> list[float]:
    return [line["ms"] for name, line in row.items() if not name.startswith("dmljax")]


def draw_overview(rows: Rows, path: pathlib.Path) -> None:
    """The usual work of each operator: milliseconds, ours beside the others'."""
    figure, grid = pyplot.subplots(
        1, len(USUAL), figsize=(10, 2.2), layout="constrained"
    )
    for axes, (title, wanted, start) in zip(grid.flat, USUAL, strict=True):
        row = next(
            row
            for (operator, case, direction, context), row in rows.items()
            if (operator, direction, context) == (wanted, "forward", "alone")
            and case.startswith(start)
        )
        others = [name for name in ("jnp", "torch", "cupy") if name in row]
        times = [_ours(row)["ms"], *(row[name]["ms"] for name in others)]
        bars = axes.bar(["dmljax", *others], times, color=[REACHED] + ["#b8b8b8"] * 3)
        axes.bar_label(bars, [f"{time:.2g}" for time in times], fontsize=7)
        axes.set_title(f"{wanted}\n{title}", fontsize=7)
        axes.tick_params(labelsize=7)
        axes.set_yticks([])
        axes.margins(y=0.12)
    grid.flat[0].set_ylabel("milliseconds", fontsize=7)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


def _draw(
    rows: Rows,
    path: pathlib.Path,
    bars: Callable[[Axes, Sequence[dict[str, Line]]], None],
    label: str,
) -> None:
    """A chart below the other for each operator, as high as it has cases."""
    operators = list(dict.fromkeys(operator for operator, *_ in rows))
    groups = [[key for key in rows if key[0] == operator] for operator in operators]
    heights = [len(group) + 4 for group in groups]
    figure, grid = pyplot.subplots(
        len(groups),
        squeeze=False,
        figsize=(9, 0.17 * sum(heights)),
        height_ratios=heights,
        sharex=True,
        layout="constrained",
    )
    for axes, operator, group in zip(grid.flat, operators, groups, strict=True):
        bars(axes, [rows[key] for key in group])
        names = [f"{case}, {direction}" for _, case, direction, _ in group]
        axes.set_yticks(np.arange(len(group)), names)
        axes.set_title(operator, fontsize=8, loc="left")
        axes.invert_yaxis()
        axes.margins(y=0.01)
        axes.tick_params(labelsize=6)
    grid.flat[-1].set_xlabel(label, fontsize=8)
    figure.savefig(path, dpi=110)
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
        "Milliseconds of a call on the device that takes longest, by its own clock, "
        "waiting in collectives included; medians. In brackets the efficiency: the "
        "time of one device over this one, in strong scaling divided by the number of "
        f"devices. {versions}.",
        f"![Efficiency]({name}.png)",
    ]
    columns = ["operator", "case", "direction", "communicates", *map(str, counts)]
    for scaling, title in (
        ("weak", "Weak scaling: each device has as much as the one"),
        ("strong", "Strong scaling: they share what the one has"),
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
        1, 2, figsize=(9, 4.6), sharey=True, layout="constrained"
    )
    for axes, scaling in zip(grid.flat, ("weak", "strong"), strict=True):
        for label, work in _by_work(lines, scaling).items():
            counts = [line["devices"] for line in work]
            shares = [line["efficiency"] for line in work]
            style = "-" if work[0]["communicates"] == "nothing" else "--"
            axes.plot(counts, shares, style, marker=".", label=", ".join(label))
        axes.set_xticks(counts)
        axes.set_ylim(0, 1.05)
        axes.set_title(f"{scaling} scaling", fontsize=8)
        axes.tick_params(labelsize=7)
        axes.set_xlabel("devices", fontsize=8)
    grid.flat[0].set_ylabel("efficiency", fontsize=8)
    handles, labels = grid.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, fontsize=6, loc="outside lower center", ncols=2)
    figure.savefig(path, dpi=110)
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


if __name__ == "__main__":
    main()
