"""How the pictures of the documentation look: matrices of coloured cells, and plots.

Colours always mean the same. Blue is a value of the input, orange is what the operator
writes in its place or around it, green is taken from a second input or selected, white
is off, and grey is not written. Each picture names its colours in a legend.

Matplotlib draws on no ground, as SVG. `themed` lets the lines and letters of such a
picture follow the reader's light or dark mode. Cells keep their colours in both modes:
their numbers have a colour of their own.
"""

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
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
NUMBER, EDGE = "#1f2328", "#555555"  # of a cell
# Colours of lines and points in the order of their use, on a light and a dark page.
LINES = {
    "#1f5fa8": "#6ea8fe",
    "#c45a00": "#f0883e",
    "#2f7d32": "#56b35c",
    "#7b3fa0": "#c58af0",
}
# Matplotlib writes black lines as BLACK, and black letters without a colour.
BLACK, LIGHT = "#000000", "#d5d9dd"
STYLE: dict[Any, Any] = {
    "axes.facecolor": "none",
    "axes.prop_cycle": f"cycler(color={list(LINES)})",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 9,
    "figure.facecolor": "none",
    "font.size": 9,
    "legend.facecolor": "none",
    "svg.fonttype": "none",
    "svg.hashsalt": "dmljax",
}


def text_of(figure: Figure) -> str:
    """A figure as the text of an SVG file that follows the reader's mode."""
    file = io.StringIO()
    style: dict[str, Any] = {"bbox_inches": "tight", "pad_inches": 0.01}
    figure.savefig(file, format="svg", metadata={"Date": None}, **style)
    return themed(file.getvalue())


def themed(svg: str) -> str:
    """A picture of Matplotlib. Its lines and letters are light on a dark page."""
    rules = "".join(
        f'[style*="{kind}: {light}"] {{ {kind}: {dark} !important; }}\n'
        for light, dark in {BLACK: LIGHT, **LINES}.items()
        for kind in ("stroke", "fill")
    )
    dark = f"svg {{ fill: {LIGHT}; }}\n{rules}"
    style = f"<style>@media (prefers-color-scheme: dark) {{\n{dark}}}</style>"
    return svg.replace("</metadata>", f"</metadata>\n{style}", 1)


def cells(
    axes: Axes, values: Any, kinds: Any = "value", title: str = "", size: float = 9
) -> None:
    """Draws a vector or a matrix with a number in each cell.

    `kinds` has a name of COLOURS for each cell, or is one name for all of them. `size`
    is that of the numbers, in points.
    """
    values = np.atleast_2d(np.asarray(values))
    kinds = np.broadcast_to(kinds, values.shape)
    rows, columns = values.shape
    for (row, column), value in np.ndenumerate(values):
        colour = COLOURS[str(kinds[row, column])]
        box = Rectangle((column, row), 1, 1, facecolor=colour, edgecolor=EDGE)
        box.set_linewidth(0.6)
        axes.add_patch(box)
        place = column + 0.5, row + 0.5
        text = f"{float(value):g}".replace("nan", "")
        axes.text(*place, text, ha="center", va="center", size=size, color=NUMBER)
    axes.set(xlim=(-0.05, columns + 0.05), ylim=(rows + 0.05, -0.05), aspect="equal")
    axes.set_axis_off()
    axes.set_title(title)


def legend(figure: Figure, names: Mapping[str, str]) -> None:
    """Names the colours below a figure: a name of COLOURS, and what it means."""
    patches = [
        Patch(facecolor=COLOURS[kind], edgecolor=EDGE, linewidth=0.6, label=meaning)
        for kind, meaning in names.items()
    ]
    place: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0)}
    figure.legend(handles=patches, ncols=len(patches), frameon=False, **place)
