"""Draws docs/operators.svg, the operators before and after.

    python -m docs.make_picture

Every number and every colour is a result of the package.
"""

import pathlib
from typing import Any

import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
from matplotlib import pyplot
from matplotlib.axes import Axes

import dmljax
from dmljax import PaddingMode
from docs import drawing

PICTURE = pathlib.Path(__file__).with_name("operators.svg")
WIDTH, HEIGHT = 27.2, 21.6  # of the picture, in cells
INCHES = 0.3  # of a cell
LEFT, RIGHT = 0.2, 15.8  # where the operators of the left and the right column begin


def kinds(mask: Any, yes: str, no: str) -> Any:
    """The colour `yes` where the mask is not zero, and `no` elsewhere."""
    return np.where(np.asarray(mask) != 0, yes, no)


def title(axes: Axes, x: float, y: float, name: str) -> None:
    """The name of an operator."""
    axes.text(x, y, name, family="monospace", weight="bold", fontsize=11)


def cells(
    axes: Axes, x: float, y: float, caption: str, values: Any, shown: Any
) -> None:
    """An array with its upper left corner at x and y, and a caption above it."""
    values = np.atleast_2d(np.asarray(values))
    rows, columns = values.shape
    place = (x - 0.05, y - 0.05, columns + 0.1, rows + 0.1)
    inset = axes.inset_axes(place, transform=axes.transData)
    drawing.cells(inset, values, shown)
    axes.text(x, y - 0.25, caption)


def draw_diagonal_matrix1(axes: Axes, left: float, top: float) -> None:
    """A matrix before and after three of its diagonals are filled."""
    x = jnp.arange(1, 16, dtype=jnp.float32).reshape(3, 5)
    filled = dmljax.diagonal_matrix1(x, value=0, fill_begin=1, fill_end=4)
    zeros = jnp.zeros_like(x)
    mask = dmljax.diagonal_matrix1(zeros, value=1, fill_begin=1, fill_end=4)
    title(axes, left, top, "diagonal_matrix1")
    cells(axes, left, top + 1.8, "x", x, "value")
    caption = "value=0, fill_begin=1, fill_end=4"
    cells(axes, left + 6.2, top + 1.8, caption, filled, kinds(mask, "new", "value"))


def draw_one_hot(axes: Axes, left: float, top: float) -> None:
    """Indices, off and on, and what they give."""
    indices, values = jnp.array([[2], [-1], [9]]), jnp.array([0.0, 1.0])
    lit = dmljax.one_hot(indices, values, size=4)
    title(axes, left, top, "one_hot")
    cells(axes, left, top + 1.8, "indices", indices, "value")
    cells(axes, left + 2.4, top + 1.8, "off, on", values, ["off", "second"])
    shown = kinds(lit == values[1], "second", "off")
    cells(axes, left + 5.4, top + 1.8, "size=4", lit, shown)


def draw_element_wise_if(axes: Axes, left: float, top: float) -> None:
    """A condition, two matrices, and what is selected of them."""
    a = jnp.arange(1, 10, dtype=jnp.float32).reshape(3, 3)
    condition = jnp.array([[1, 0, 0], [0, 1, 0], [0, 0, 1]], jnp.uint8)
    chosen = dmljax.element_wise_if(condition, a, -a)
    arrays = (
        ("condition", condition, "off"),
        ("a", a, "value"),
        ("b", -a, "second"),
        ("result", chosen, kinds(chosen == a, "value", "second")),
    )
    title(axes, left, top, "element_wise_if")
    for number, array in enumerate(arrays):
        cells(axes, left + 3.8 * number, top + 1.8, *array)


def draw_nonzero_coordinates(axes: Axes, left: float, top: float) -> None:
    """A sparse matrix, the count, and the rows. The last rows are not needed."""
    x = jnp.array([[0, 5, 0, 0], [7, 0, 0, 0], [0, 0, 9, 0]])
    count, rows = dmljax.nonzero_coordinates(x, size=5)
    past = np.arange(5)[:, None] >= int(count)
    shown = np.broadcast_to(kinds(past, "unused", "new"), rows.shape)
    title(axes, left, top, "nonzero_coordinates")
    cells(axes, left, top + 1.8, "x", x, kinds(x, "value", "off"))
    cells(axes, left + 4.8, top + 1.8, "count", count, "new")
    cells(axes, left + 6.8, top + 1.8, "coordinates,\nsize=5", rows, shown)


def draw_padding(axes: Axes, left: float, top: float) -> None:
    """A short line in every mode, below and beside the line itself."""
    x = jnp.array([1.0, 2.0, 3.0])
    pads = (3,), (3,)
    inside = kinds(dmljax.padding(jnp.ones(3), *pads), "value", "new")
    title(axes, left, top, "padding")
    cells(axes, left + 3, top + 1.8, "x", x, "value")
    places = [(15.6, 1.8), (0, 4.1), (15.6, 4.1), (0, 6.4), (15.6, 6.4)]
    for mode, (x_shift, y_shift) in zip(PaddingMode, places, strict=True):
        line = dmljax.padding(x, *pads, mode=mode)
        caption = f"mode={mode.name}"
        cells(axes, left + x_shift, top + y_shift, caption, line, inside)


def main() -> None:
    """Writes the picture."""
    mpl.use("Agg")
    mpl.rcParams.update(drawing.STYLE)
    figure = pyplot.figure(figsize=(WIDTH * INCHES, HEIGHT * INCHES))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, WIDTH), ylim=(HEIGHT, 0))
    axes.set_axis_off()
    draw_padding(axes, LEFT, 0.6)
    draw_nonzero_coordinates(axes, LEFT, 9.0)
    draw_one_hot(axes, RIGHT, 9.0)
    draw_element_wise_if(axes, LEFT, 16.6)
    draw_diagonal_matrix1(axes, RIGHT, 16.6)
    meanings = {
        "value": "from the input",
        "second": "from a second input",
        "new": "written by the operator",
        "off": "off, zero or false",
        "unused": "rows past the count",
    }
    drawing.legend(figure, meanings)
    PICTURE.write_text(drawing.text_of(figure), encoding="utf-8")


if __name__ == "__main__":
    main()
