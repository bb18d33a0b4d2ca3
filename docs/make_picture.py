"""Draws docs/operators.png: the five operators, before and after.

python docs/make_picture.py
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

PICTURE = pathlib.Path(__file__).with_name("operators.png")


def panels() -> list[tuple[str, list[tuple[str, Any]]]]:
    """For each operator its title and its named matrices, inputs first."""
    ramp = jnp.arange(1, 21, dtype=jnp.float32).reshape(4, 5)
    condition = jnp.array([[1, 0, 1, 0, 1]] * 4, jnp.uint8)
    indices = jnp.array([[2], [0], [-1], [9]])
    sparse = jnp.array([[0, 5, 0], [7, 0, 0], [0, 0, 9]], jnp.float32)
    small = jnp.arange(1, 10, dtype=jnp.float32).reshape(3, 3)
    upper = dmljax.diagonal_matrix1(ramp, value=0, fill_begin=-(2**31), fill_end=0)
    lit = dmljax.one_hot(indices, jnp.array([0.0, 1.0]), size=5)
    chosen = dmljax.element_wise_if(condition, ramp, -ramp)
    found = dmljax.nonzero_coordinates(sparse)
    mirrored = dmljax.padding(small, (2, 2), (2, 2), mode=PaddingMode.REFLECTION)
    return [
        ("diagonal_matrix1", [("x", ramp), ("fill (-∞, 0) with 0", upper)]),
        ("one_hot", [("indices", indices), ("size 5", lit)]),
        ("element_wise_if", [("condition", condition), ("a or b = -a", chosen)]),
        (
            "nonzero_coordinates",
            [("x", sparse), (f"count {found.count}", found.coordinates[:4])],
        ),
        ("padding", [("x", small), ("REFLECTION by 2", mirrored)]),
    ]


def draw(axes: Axes, title: str, matrix: Any) -> None:
    """One matrix as a heat map with its numbers."""
    values = np.asarray(matrix, np.float64)
    limit = max(abs(values).max(), 1)
    axes.imshow(values, cmap="PuOr", vmin=-1.6 * limit, vmax=1.6 * limit)
    for (row, column), value in np.ndenumerate(values):
        axes.text(column, row, f"{value:g}", ha="center", va="center", fontsize=8)
    axes.set_title(title, fontsize=9)
    axes.set_xticks([])
    axes.set_yticks([])


def main() -> None:
    """Writes the picture."""
    mpl.use("Agg")
    columns = panels()
    figure, grid = pyplot.subplots(2, len(columns), figsize=(12.5, 5.4))
    figure.subplots_adjust(hspace=0.3)
    for column, (name, matrices) in enumerate(columns):
        for row, (title, matrix) in enumerate(matrices):
            draw(grid[row][column], title, matrix)
        box = grid[0][column].get_position()
        figure.text((box.x0 + box.x1) / 2, 0.96, name, ha="center", weight="bold")
        figure.text((box.x0 + box.x1) / 2, 0.485, "↓", ha="center", fontsize=14)
    figure.savefig(PICTURE, dpi=110, bbox_inches="tight")


if __name__ == "__main__":
    main()
