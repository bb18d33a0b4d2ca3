"""The small pictures of the list of tutorials, one for each."""

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib import cbook, pyplot
from matplotlib.axes import Axes

import dmljax as dml
from docs import drawing
from docs.diagrams import diagram

WIDTH, HEIGHT = 240, 140  # in pixels


def photograph(step: int) -> jax.Array:
    """A square photograph of 512 pixels that comes with Matplotlib, made smaller."""
    file = cbook.get_sample_data("grace_hopper.jpg", asfileobj=False)
    return jnp.asarray(pyplot.imread(file)[:512:step, ::step]) / 255


def image(axes: Axes, left: float, values: jax.Array, width: float = 115) -> None:
    """Pixels, or numbers as colours."""
    inset = axes.inset_axes((left, 5, width, 130), transform=axes.transData)
    inset.imshow(np.asarray(values))
    inset.set_axis_off()


@diagram(HEIGHT, WIDTH)
def gallery_images(axes: Axes) -> None:
    """A photograph before and after padding."""
    x = photograph(8)
    image(axes, 0, x)
    image(axes, 122, dml.padding(x, (32, 32, 0), (32, 32, 0), mode=2))


@diagram(HEIGHT, WIDTH)
def gallery_network(axes: Axes) -> None:
    """The errors of a blur with zeros and with reflected pixels at the border."""
    grey = photograph(8).mean(2)

    def blurred(x: jax.Array, mode: dml.PaddingMode) -> jax.Array:
        wide = dml.padding(x, (2, 2), (2, 2), mode=mode)
        rows, columns = x.shape
        places = [(i, j) for i in range(5) for j in range(5)]
        return sum((wide[i : i + rows, j : j + columns] for i, j in places), 0 * x) / 25

    expected = blurred(grey, dml.PaddingMode.EDGE)[16:48, 16:48]
    for left, mode in (
        (0, dml.PaddingMode.CONSTANT),
        (122, dml.PaddingMode.REFLECTION),
    ):
        error = jnp.abs(blurred(grey[16:48, 16:48], mode) - expected)
        image(axes, left, jnp.minimum(error, 0.3).at[0, 0].set(0.3))


@diagram(HEIGHT, WIDTH)
def gallery_attention(axes: Axes) -> None:
    """Causal weights of a sequence that begins with padding."""
    scores = jax.random.normal(jax.random.key(0), (16, 16))
    lowest = jnp.finfo(jnp.float32).min
    real = jnp.broadcast_to(jnp.arange(16) >= 4, (16, 16))
    scores = dml.element_wise_if(real, scores, lowest)
    scores = dml.diagonal_matrix1(scores, value=lowest, fill_begin=1, fill_end=None)
    weights = jax.nn.softmax(scores)
    image(axes, 50, jnp.where((weights > 0) & real.T, weights, jnp.nan), 140)


@diagram(HEIGHT, WIDTH)
def gallery_compact(axes: Axes) -> None:
    """Some elements of a line, and the same elements one after the other."""
    x = jnp.array([0, 3, 0, 0, 5, 7, 0])
    count, rows = dml.nonzero_coordinates(x, size=4, fill=x.size)
    kept = x.at[rows[:, 0]].get(mode="fill", fill_value=0)
    valid = np.where(np.arange(4) < int(count), "second", "unused")
    for top, values, kinds in (
        (20, x, np.where(x != 0, "second", "off")),
        (85, kept, valid),
    ):
        place = (0, top, 33 * len(values), 33)
        inset = axes.inset_axes(place, transform=axes.transData)
        drawing.cells(inset, values, kinds)


@diagram(HEIGHT, WIDTH)
def gallery_sparse(axes: Axes) -> None:
    """The edges of a small graph."""
    adjacency = jax.random.uniform(jax.random.key(1), (7, 7)) > 0.8
    count, edges = dml.nonzero_coordinates(adjacency, size=20)
    angles = np.arange(7) * 2 * np.pi / 7
    places = 70 + 58 * np.stack([np.cos(angles), np.sin(angles)], 1) + (50, 0)
    style = {"arrowstyle": "->", "color": next(iter(drawing.LINES)), "shrinkA": 6}
    for sender, receiver in edges[: int(count)].tolist():
        axes.annotate("", places[receiver], places[sender], arrowprops=style)
    for node, (x, y) in enumerate(places):
        axes.text(x, y, str(node), ha="center", va="center")


@diagram(HEIGHT, WIDTH)
def gallery_experts(axes: Axes) -> None:
    """A token in each column, and its expert."""
    experts = jnp.array([2, 0, 3, 1, 2, 0])
    assigned = dml.one_hot(experts[None], jnp.array([0, 1]), size=4, axis=0)
    inset = axes.inset_axes((20, 2, 200, 134), transform=axes.transData)
    drawing.cells(inset, assigned, np.where(assigned > 0, "second", "off"))


@diagram(HEIGHT, WIDTH)
def gallery_devices(axes: Axes) -> None:
    """The rows that each of four devices has, before and after padding."""
    kinds = np.array(["value", "new", "second", "unused"])
    for top, rows in ((15, 8), (80, 12)):
        owners = np.arange(rows) * 4 // rows
        place = (0, top, 20 * rows, 40)
        inset = axes.inset_axes(place, transform=axes.transData)
        drawing.cells(inset, owners, kinds[owners])
