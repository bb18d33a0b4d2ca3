"""The pictures of the tutorials. Each draws what the program on its page computes.

`make_pictures` writes each function that is marked ``@plot`` as a file of its name.
"""

import contextlib
import functools
import io
import tempfile
from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from docs import drawing
from docs.programs import PAGES, program

PLOTS: dict[str, Callable[[], str]] = {}


@functools.cache
def run(page: str) -> tuple[dict[str, Any], str]:
    """The names that the program of a page has at its end, and what it prints."""
    names: dict[str, Any] = {}
    text = (PAGES.parent / page).read_text(encoding="utf-8")
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        contextlib.redirect_stdout(io.StringIO()) as printed,
        jax.numpy_dtype_promotion("standard"),
        jax.numpy_rank_promotion("allow"),
    ):
        exec(program(text), names)
    return names, printed.getvalue()


def plot(width: float, height: float) -> Callable[..., Callable[[], str]]:
    """Adds a picture of this size in inches, of the tutorial that its name begins with.

    The function that draws takes the figure and the names of the tutorial's program.
    """

    def add(draw: Callable[[Figure, dict[str, Any]], None]) -> Callable[[], str]:
        def text() -> str:
            with mpl.rc_context(drawing.STYLE):
                figure = Figure(figsize=(width, height), layout="constrained")
                tutorial = draw.__name__.split("_")[0]
                draw(figure, run(f"docs/tutorials/{tutorial}.md")[0])
                return drawing.text_of(figure)

        PLOTS[draw.__name__] = text
        return text

    return add


def _heat_maps(figure: Figure, weights: jax.Array, titles: Iterable[str]) -> None:
    """Attention weights, without colour where they are 0."""
    grid = figure.subplots(1, len(weights), sharey=True)
    for axes, one, title in zip(grid, weights.astype(jnp.float32), titles, strict=True):
        shown = axes.imshow(jnp.where(one > 0, one, jnp.nan), vmin=0, vmax=1)
        axes.set(title=title, xlabel="key")
    grid[0].set_ylabel("query")
    figure.colorbar(shown, ax=grid, label="weight (empty is masked)", shrink=0.9)


@plot(7.1, 2.4)
def attention_key_mask(figure: Figure, names: dict[str, Any]) -> None:
    """Three sequences with padding on the left."""
    titles = [f"{real} real tokens" for real in names["keep"].sum(1)]
    _heat_maps(figure, names["weights"][:, 0], titles)


@plot(7.1, 2.4)
def attention_windows(figure: Figure, names: dict[str, Any]) -> None:
    """Four heads with windows of their own."""
    titles = [f"a window of {window}" for window in names["windows"]]
    _heat_maps(figure, names["head_weights"], titles)


def _photograph(axes: Axes, image: jax.Array, title: str = "") -> None:
    axes.imshow(np.asarray(image))
    axes.set_title(title)
    axes.set_axis_off()


@plot(7.1, 5)
def images_modes(figure: Figure, names: dict[str, Any]) -> None:
    """A photograph, and its padding in each mode."""
    grid = figure.subplots(2, 3)
    _photograph(grid[0, 0], names["image"], "the image")
    for axes, (mode, image) in zip(grid.flat[1:], names["padded"].items(), strict=True):
        _photograph(axes, image, mode)
        box = Rectangle((31.5, 31.5), 128, 128, fill=False, edgecolor="white")
        axes.add_patch(box)


@plot(7.1, 1.9)
def images_crops(figure: Figure, names: dict[str, Any]) -> None:
    """Random crops of one photograph."""
    for axes, image in zip(figure.subplots(1, 4), names["crops"], strict=True):
        _photograph(axes, image)


@plot(7.1, 2.4)
def network_errors(figure: Figure, names: dict[str, Any]) -> None:
    """The loss and the errors with two kinds of borders."""
    curves, *maps = figure.subplots(1, 3, width_ratios=(1.3, 1, 1))
    curves.semilogy(names["losses_of_zeros"], label="zeros", linestyle="--")
    curves.semilogy(names["losses"], label="reflected")
    curves.set(xlabel="step", ylabel="mean squared error")
    curves.legend()
    errors = names["errors"]
    top = max(float(error.max()) for error in errors.values())
    for axes, (name, error) in zip(maps, errors.items(), strict=True):
        shown = axes.imshow(error, vmin=0, vmax=top)
        axes.set_title(name)
        axes.set_axis_off()
    figure.colorbar(shown, ax=maps, label="mean error (white is 1)", shrink=0.8)


@plot(7.1, 3.2)
def sparse_edges(figure: Figure, names: dict[str, Any]) -> None:
    """A graph as a matrix and as arrows."""
    left, right = figure.subplots(1, 2)
    adjacency, nodes = names["adjacency"], names["NODES"]
    weights = jnp.where(adjacency > 0, adjacency, jnp.nan)
    shown = left.imshow(weights, vmin=0.8, vmax=1)
    ticks = range(nodes)
    left.set(xlabel="to node", ylabel="from node", xticks=ticks, yticks=ticks)
    figure.colorbar(shown, ax=left, label="weight (empty is no edge)")
    angles = np.arange(nodes) * 2 * np.pi / nodes
    places = np.stack([np.cos(angles), np.sin(angles)], 1)
    arrow = {"arrowstyle": "->", "color": "C0", "shrinkA": 9, "shrinkB": 9}
    for sender, receiver in zip(*np.nonzero(adjacency), strict=True):
        right.annotate("", places[receiver], places[sender], arrowprops=arrow)
    for node, place in enumerate(places):
        right.text(*place, str(node), ha="center", va="center")
    right.set(xlim=(-1.2, 1.2), ylim=(-1.2, 1.2), aspect="equal", title="edges")
    right.set_axis_off()


@plot(7.1, 3.4)
def experts_slots(figure: Figure, names: dict[str, Any]) -> None:
    """The experts of each token, and the tokens of each expert."""
    chosen, kept = np.asarray(names["chosen"]), names["kept"]
    above, below = figure.subplots(2, 1)
    title = "chosen: a row for each expert, a column for each token"
    kinds = np.where(chosen, "second", "unused")
    drawing.cells(above, chosen, kinds, title, size=7)
    title = f"nonzero_coordinates: the tokens of each expert, size={names['CAPACITY']}"
    kinds = np.where(kept.valid, "new", "unused")
    tokens = np.where(kept.valid, kept.coordinates[..., 0].astype(int), np.nan)
    drawing.cells(below, tokens, kinds, f"{title}; grey is empty", size=7)


@plot(7.1, 2.5)
def experts_training(figure: Figure, names: dict[str, Any]) -> None:
    """The loss, and how many tokens each expert has."""
    left, right = figure.subplots(1, 2)
    left.plot(names["losses"], label="loss")
    left.set(xlabel="step", ylabel="mean squared error")
    left.legend()
    loads = np.asarray(names["loads"]).T
    for expert, load in enumerate(loads):
        style = ("-", "--", "-.", ":")[expert]
        right.plot(load, style, label=f"expert {expert}")
    right.axhline(names["CAPACITY"], color="black", linewidth=0.8, label="capacity")
    right.set(xlabel="step", ylabel="tokens")
    right.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
