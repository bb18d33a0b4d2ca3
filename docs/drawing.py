"""How the pictures of the documentation look: matrices of coloured cells, and plots.

Colours always mean the same. Blue is a value of the input, orange is what the operator
writes in its place or around it, green is taken from a second input or selected, white
is off, and grey is not written. Each picture names its colours in a legend.

The scripts and the notebooks that draw must take every value and every colour from
results of the package.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import pyplot, rcsetup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

COLOURS = {
    "value": "#cfe2f3",
    "new": "#f9cb8c",
    "second": "#b7dfb0",
    "off": "#ffffff",
    "unused": "#cccccc",
}
# Colours of lines and points that stand on white, in the order of their use.
LINES = ("#1f5fa8", "#c45a00", "#2f7d32", "#7b3fa0")

pyplot.rcParams.update(
    {
        "figure.dpi": 150,
        "figure.facecolor": "white",
        "font.size": 9,
        "axes.titlesize": 9,
        "axes.prop_cycle": rcsetup.cycler(color=LINES),
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
)


def cells(
    axes: Axes, values: Any, kinds: Any = "value", title: str = "", size: float = 9
) -> None:
    """Draws a vector or a matrix with a number in each cell.

    `kinds` has a name of COLOURS for each cell, or is one name for all of them. `size`
    is that of the numbers, in points; 0 draws none.
    """
    values = np.atleast_2d(np.asarray(values))
    kinds = np.broadcast_to(kinds, values.shape)
    rows, columns = values.shape
    for (row, column), value in np.ndenumerate(values):
        colour = COLOURS[str(kinds[row, column])]
        box = Rectangle((column, row), 1, 1, facecolor=colour, edgecolor="#555")
        box.set_linewidth(0.6)
        axes.add_patch(box)
        if size:
            text = f"{float(value):g}"
            axes.text(
                column + 0.5, row + 0.5, text, ha="center", va="center", size=size
            )
    axes.set(xlim=(-0.05, columns + 0.05), ylim=(rows + 0.05, -0.05), aspect="equal")
    axes.set_axis_off()
    axes.set_title(title)


def legend(figure: Figure, names: Mapping[str, str], columns: int = 0) -> None:
    """Names the colours below a figure: a name of COLOURS, and what it means."""
    patches = [
        Patch(facecolor=COLOURS[kind], edgecolor="#555", linewidth=0.6, label=meaning)
        for kind, meaning in names.items()
    ]
    figure.legend(
        handles=patches,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        ncols=columns or len(patches),
        frameon=False,
    )


def row(*widths: float, height: float = 1.6) -> tuple[Figure, Sequence[Axes]]:
    """A figure of the width of a page, with axes beside each other.

    The axes' widths are in the proportions that `widths` gives.
    """
    figure, axes = pyplot.subplots(
        1, len(widths), figsize=(7.4, height), width_ratios=widths, layout="constrained"
    )
    return figure, list(np.atleast_1d(axes))
