"""Draws and tabulates a ledger of several devices, for `benchmarks.plot`."""

import pathlib
from collections.abc import Sequence

from matplotlib import pyplot

from benchmarks import ledger
from benchmarks.ledger import Line, circumstances, table_of, versions

BLUE = "#1f5fa8"
# How an efficiency is drawn: its marker, the marker's face and size, and its name.
MARKERS = {
    "efficiency_of_form": ("s", "none", 8, "beside one device with the same code"),
    "efficiency": ("o", BLUE, 4, "beside one device with its default code"),
}


def write(path: pathlib.Path, folder: pathlib.Path) -> None:
    """The page and the picture of a ledger of several devices."""
    every = ledger.read(path)
    # The lines of one work are compared with one another, so they are of one commit.
    commits = {_label(line): line["commit"] for line in every}
    newest = {
        (line["scaling"], *_label(line), line["devices"]): line
        for line in every
        if line["commit"] == commits[_label(line)]
    }
    name, lines = f"benchmarks_{path.stem}", list(newest.values())
    draw(lines, folder / f"{name}.png")
    (folder / f"{name}.md").write_text(page(lines, name))


def _label(line: Line) -> tuple[str, ...]:
    """The operator, the case, the direction and the kind of the mesh axis."""
    words = (line[key] for key in ("operator", "case", "direction"))
    return (*words, line.get("axes", "automatic"))


def page(lines: Sequence[Line], name: str) -> str:
    """All figures of several devices as a page."""
    last = lines[-1]
    counts = sorted({line["devices"] for line in lines})
    parts = [
        f"# Figures: several devices, {last['device']}",
        "The figures are milliseconds, and medians of many calls. The time is that of "
        "the slowest device, by its own clock. It includes waiting for other devices. "
        "In brackets are two efficiencies. An efficiency is the time of one device "
        "divided by this time; for strong scaling it is also divided by the number of "
        "devices. For the first, one device runs its default code. For the second, it "
        "runs the same code as several devices. The column *sends* says what the "
        "devices send to one another, in the words of [Many devices](sharding.md). "
        f"Versions: {versions(last)}.",
        f"![The efficiency of each work.]({name}.png)",
    ]
    columns = ["work", "sends", *map(str, counts)]
    for scaling, title in (
        ("weak", "Weak scaling: each device has as much work as a single device"),
        ("strong", "Strong scaling: the devices share the work of a single device"),
    ):
        rows = []
        for label, work in _by_work(lines, scaling).items():
            by_count = {
                line["devices"]: f"{line['ms']:.4g} ({_efficiencies(line)})"
                for line in work
            }
            times = [by_count.get(count, "-") for count in counts]
            words = ", ".join(label) + " axes"
            rows.append([words, work[0]["communicates"], *times])
        parts += [f"## {title}", table_of(columns, rows)]
    return "\n\n".join(parts) + "\n"


def _efficiencies(line: Line) -> str:
    return f"{line['efficiency']:.2f}, {line['efficiency_of_form']:.2f}"


def _by_work(lines: Sequence[Line], scaling: str) -> dict[tuple[str, ...], list[Line]]:
    """The lines of each work, by growing number of devices."""
    found: dict[tuple[str, ...], list[Line]] = {}
    for line in sorted(lines, key=lambda line: line["devices"]):
        if line["scaling"] == scaling:
            found.setdefault(_label(line), []).append(line)
    order = list(dict.fromkeys(_label(line) for line in lines))
    return {label: found[label] for label in order}


def draw(lines: Sequence[Line], path: pathlib.Path) -> None:
    """The efficiencies of each work on the most devices, below one another."""
    by_scaling = {name: _by_work(lines, name) for name in ("weak", "strong")}
    labels = list(by_scaling["weak"])
    figure, grid = pyplot.subplots(
        *(1, 2),
        figsize=(9, 0.24 * len(labels) + 1.4),
        sharey=True,
        layout="constrained",
    )
    for axes, (scaling, works) in zip(grid.flat, by_scaling.items(), strict=True):
        # The work with the most devices is the last line of each.
        last = [works[label][-1] for label in labels]
        for key, (marker, face, size, words) in MARKERS.items():
            values = [line[key] for line in last]
            style = {"mfc": face, "mec": BLUE, "ms": size}
            axes.plot(values, range(len(labels)), marker, label=words, **style)
        axes.set_title(f"{scaling} scaling", fontsize=9)
        axes.set_xlim(0, 1.08)
        axes.set_xlabel("efficiency (more is better)", fontsize=8)
        axes.tick_params(labelsize=7)
        axes.grid(alpha=0.4)
    names = [", ".join(label) + " axes" for label in labels]
    grid.flat[0].set_yticks(range(len(labels)), names)
    grid.flat[0].invert_yaxis()
    handles, words = grid.flat[0].get_legend_handles_labels()
    figure.legend(handles, words, fontsize=8, loc="outside lower center", ncols=2)
    most = max(line["devices"] for line in lines)
    figure.suptitle(f"{circumstances(lines)}: {most} devices", fontsize=9)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
