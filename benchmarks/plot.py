"""Draws and tabulates the ledger for the documentation.

    python -m benchmarks.plot

For each ledger in benchmarks/results it writes docs/benchmarks_<device>.png, our time
beside that of the fastest other, and docs/benchmarks_<device>.md, all figures.
"""

import collections
import json
import pathlib
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot

RESULTS = pathlib.Path(__file__).with_name("results")
DOCS = pathlib.Path(__file__).parent.parent / "docs"
Rows = dict[tuple[str, str, str], dict[str, dict[str, Any]]]


def read(path: pathlib.Path) -> Rows:
    """The newest figure of each contender, by operator, case and direction."""
    rows: Rows = collections.defaultdict(dict)
    for text in path.read_text().splitlines():
        line = json.loads(text)
        key = (line["operator"], line["case"], line["direction"])
        rows[key][line["contender"]] = line
    return dict(rows)


def table(rows: Rows, name: str) -> str:
    """All figures as a page."""
    others = sorted({c for row in rows.values() for c in row} - {"dmljax"})
    any_line = next(iter(rows.values()))["dmljax"]
    versions = ", ".join(f"{v} {any_line[v]}" for v in ("python", "jax", "numpy"))
    lines = [
        f"# Figures: {any_line['device']}",
        "",
        f"Milliseconds, medians; {versions}. Share is that of the copy bandwidth, "
        f"{any_line['copy_gb_per_s']:.0f} GB/s read and written in the same run.",
        "",
        f"![Our time over the fastest other's]({name}.png)",
        "",
        "| operator | case | direction | dmljax | " + " | ".join(others) + " | share |",
        "|---|---|---|---|" + "---|" * (len(others) + 1),
    ]
    for (operator, case, direction), row in rows.items():
        cells = [f"{row[c]['ms']:.4g}" if c in row else "-" for c in others]
        ours = row["dmljax"]
        lines.append(
            f"| {operator} | {case} | {direction} | {ours['ms']:.4g} | "
            + " | ".join(cells)
            + f" | {ours['share']:.2f} |"
        )
    return "\n".join(lines) + "\n"


def draw(rows: Rows, path: pathlib.Path) -> None:
    """Our time over that of the fastest other, a bar for each case."""
    labels, ratios = [], []
    for (operator, case, direction), row in rows.items():
        times = [line["ms"] for name, line in row.items() if "dmljax" not in name]
        if times and row["dmljax"]["bytes"] > 2**20:
            labels.append(f"{operator}, {case}, {direction}")
            ratios.append(row["dmljax"]["ms"] / min(times))
    figure, axes = pyplot.subplots(figsize=(9, 0.2 * len(labels) + 1))
    colors = ["#5b4a9c" if ratio <= 1.1 else "#d9822b" for ratio in ratios]
    axes.barh(labels, ratios, color=colors)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.invert_yaxis()
    axes.margins(y=0.01)
    axes.tick_params(labelsize=6)
    axes.set_xlabel("time over that of the fastest other (less is better)", fontsize=8)
    figure.savefig(path, dpi=110, bbox_inches="tight")
    pyplot.close(figure)


def main() -> None:
    """Writes a page and a picture for each ledger."""
    mpl.use("Agg")
    for path in sorted(RESULTS.glob("*.jsonl")):
        rows = read(path)
        name = f"benchmarks_{path.stem}"
        draw(rows, DOCS / f"{name}.png")
        (DOCS / f"{name}.md").write_text(table(rows, name))


if __name__ == "__main__":
    main()
