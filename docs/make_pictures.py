"""Writes the pictures of the pages: ``python -m docs.make_pictures``.

Every number in a picture of cells is an input, or the package computes it here. A
picture can't show what the package doesn't do.

Each function that is marked ``@drawn`` is a file of its name in ``docs/pictures``.
"""

import functools
import pathlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

import dmljax as dml
from dmljax import DataType, PaddingMode, TensorDesc
from docs import drawing, gallery  # noqa: F401  (gallery adds to DIAGRAMS)
from docs.cells import Block, Line, block, line, picture
from docs.diagrams import DIAGRAMS
from docs.plots import PLOTS

DOCS = pathlib.Path(__file__).parent
FOLDER = DOCS / "pictures"
ARROW = "\N{RIGHTWARDS ARROW}"

DRAWN: dict[str, Callable[[], str]] = {}


def drawn(draw: Callable[[], str]) -> Callable[[], str]:
    """Adds a picture with the name of its function."""
    DRAWN[draw.__name__] = draw
    return draw


# PADDING

PADDED = {"value": "the input", "new": "padding"}


def _padded_kinds(x: jax.Array, start: tuple[int, ...], end: tuple[int, ...]) -> Any:
    """Tells for each cell of an output whether it is padding."""
    pads = list(zip(start, end, strict=True))
    return np.pad(np.full(x.shape, "value"), pads, constant_values="new")


def _mode(mode: PaddingMode) -> str:
    """A small picture of a mode; five of them fit beside each other on a page."""
    x = jnp.arange(1, 10, dtype=jnp.float32).reshape(3, 3)
    pads = (2, 2), (2, 2)
    output = dml.padding(x, *pads, mode=mode)
    with mpl.rc_context(drawing.STYLE):
        figure = Figure(figsize=(1.34, 1.52))
        axes = figure.add_axes((0, 0, 1, 1.34 / 1.52))
        drawing.cells(axes, output, _padded_kinds(x, *pads), mode.name, size=8)
        return drawing.text_of(figure)


for _each in PaddingMode:
    DRAWN[f"padding_{_each.name.lower()}"] = functools.partial(_mode, _each)


@drawn
def padding_far() -> str:
    """Padding by more elements than the input has, in every mode."""
    x = jnp.array([1, 2, 3])
    kinds = _padded_kinds(x, (5,), (7,))
    lines = []
    for mode in PaddingMode:
        output = dml.padding(x, (5,), (7,), mode=mode, value=9)
        lines.append(line(block("", output, kinds), mode.name))
    title = "The elements 1 2 3 padded by 5 on the left and by 7 on the right."
    return picture(title, lines, PADDED)


@drawn
def padding_gradient() -> str:
    """How often each element is repeated: the gradient of the sum of the output."""
    x = jnp.arange(1, 6, dtype=jnp.float32)
    kinds = _padded_kinds(x, (2,), (3,))
    lines = []
    for mode in PaddingMode:
        output, pull_back = jax.vjp(lambda x: dml.padding(x, (2,), (3,), mode=mode), x)  # noqa: B023
        (gradient,) = pull_back(jnp.ones_like(output))
        captions = ("output", "gradient") if mode is PaddingMode.CONSTANT else ("", "")
        shown = block(captions[0], output, kinds), block(captions[1], gradient)
        lines.append(line(*shown, mode.name))
    title = (
        "Five elements padded by 2 and 3, and for each input element the number of "
        "output elements that are copies of it."
    )
    return picture(title, lines, PADDED)


# DIAGONAL_MATRIX1

DIAGONALS = {"value": "kept from x", "new": "filled with value"}


def _filled(
    shape: tuple[int, int], begin: int | None, end: int | None, caption: str
) -> Block:
    """The matrix 1, 2, 3, .. with some diagonals filled with 0."""
    x = jnp.arange(1, 1 + shape[0] * shape[1], dtype=jnp.float32).reshape(shape)
    output = dml.diagonal_matrix1(x, value=0, fill_begin=begin, fill_end=end)
    # The same call tells which elements are filled: it fills a matrix of zeros with 1.
    filled = dml.diagonal_matrix1(shape=shape, fill_begin=begin, fill_end=end) > 0
    return block(caption, output, np.where(filled, "new", "value"))


@drawn
def diagonal_matrix1_numbers() -> str:
    """The number of each diagonal, and a span of them that is filled."""
    shape = (4, 6)
    rows, columns = np.indices(shape)
    filled = dml.diagonal_matrix1(shape=shape, fill_begin=-1, fill_end=2) > 0
    kinds = np.where(filled, "new", "value")
    shown = line(
        block("number of the diagonal", columns - rows, kinds),
        ARROW,
        _filled(shape, -1, 2, "fill_begin=-1, fill_end=2"),
    )
    title = (
        "The diagonal of an element has the number column minus row. With fill_begin "
        "-1 and fill_end 2, the diagonals -1, 0 and 1 are filled with 0."
    )
    return picture(title, [shown], DIAGONALS)


@drawn
def diagonal_matrix1_order() -> str:
    """Bounds in order, equal bounds, and bounds the other way round."""
    shown = line(
        _filled((4, 5), -1, 2, "-1, 2: inside"),
        _filled((4, 5), 1, 1, "1, 1: nothing"),
        _filled((4, 5), 2, -1, "2, -1: outside"),
        heading="fill_begin, fill_end",
    )
    title = (
        "fill_begin -1 and fill_end 2 fill the diagonals from -1 to 1. Equal bounds "
        "fill nothing. fill_begin 2 and fill_end -1 fill all other diagonals."
    )
    return picture(title, [shown], DIAGONALS)


@drawn
def diagonal_matrix1_triangles() -> str:
    """Both triangles, and a band, by bounds that may be missing."""
    shown = line(
        _filled((4, 5), None, 0, "None, 0: triu"),
        _filled((4, 5), 1, None, "1, None: tril"),
        _filled((4, 5), 2, -1, "2, -1: a band"),
        heading="fill_begin, fill_end",
    )
    title = (
        "Filling the diagonals below 0 with 0 keeps the upper triangle. Filling those "
        "from 1 on keeps the lower triangle. Filling all but -1 to 1 keeps a band."
    )
    return picture(title, [shown], DIAGONALS)


@drawn
def diagonal_matrix1_without_input() -> str:
    """Matrices that are made from sizes."""

    def made(
        caption: str, shape: tuple[int, int], begin: int, end: int, value: int
    ) -> Block:
        output = dml.diagonal_matrix1(
            shape=shape, value=value, fill_begin=begin, fill_end=end
        )
        return block(caption, output, np.where(output == value, "new", "off"))

    shown = line(
        made("0, 1: identity", (4, 4), 0, 1, 1),
        made("0, 1, value=7", (4, 4), 0, 1, 7),
        made("-2, 0", (4, 5), -2, 0, 1),
        heading="fill_begin, fill_end",
    )
    title = "Without x, the elements that are not filled are 0."
    return picture(title, [shown], {"new": "filled with value", "off": "0"})


@drawn
def diagonal_matrix1_windows() -> str:
    """A window for each attention head, by vmap over the bounds."""
    windows = jnp.array([1, 2, 4], jnp.int32)

    @jax.vmap
    def masked(scores: jax.Array, window: jax.Array) -> jax.Array:
        return dml.diagonal_matrix1(scores, value=0, fill_begin=1, fill_end=1 - window)

    masks = masked(jnp.ones((3, 4, 4), jnp.float32), windows)
    heads = [
        block(
            f"head {head}: window {windows[head]}", mask, np.where(mask, "value", "new")
        )
        for head, mask in enumerate(masks)
    ]
    title = "Causal masks of three heads, with windows of 1, 2 and 4 tokens."
    return picture(title, [line(*heads)], DIAGONALS)


# ONE_HOT

LIT = {"value": "index", "second": "on", "off": "off"}


def _one_hot(
    indices: jax.Array, size: int, axis: int, caption: str, heading: str = ""
) -> Line:
    output = dml.one_hot(indices, jnp.array([0, 1]), size=size, axis=axis)
    kinds = np.where(output == 1, "second", "off")
    shown = block(caption, output, kinds)
    return line(block("indices", indices), ARROW, shown, heading=heading)


@drawn
def one_hot_indices() -> str:
    """Indices inside of the sequence, negative ones, and ones that are ignored."""
    indices = jnp.array([[2], [0], [-1], [-5], [4], [9]])
    title = (
        "Sequences of 4 elements for the indices 2, 0, -1, -5, 4 and 9. The index -1 "
        "means the last element. The sequences of -5, 4 and 9 are off as a whole."
    )
    return picture(title, [_one_hot(indices, 4, -1, "size=4")], LIT)


@drawn
def one_hot_axis() -> str:
    """The sequences along the last axis, and along the first."""
    rows, columns = jnp.array([[2], [0], [1]]), jnp.array([[2, 0, 1]])
    lines = [
        _one_hot(rows, 4, -1, "sequences are rows", "axis=-1"),
        _one_hot(columns, 4, 0, "sequences are columns", "axis=0"),
    ]
    title = "The indices 2, 0 and 1 along the last axis, and along the first axis."
    return picture(title, lines, LIT)


@drawn
def one_hot_values() -> str:
    """Off and on are the first two elements of the values."""
    indices, values = jnp.array([[1], [0]]), jnp.array([0.1, 0.9])
    output = dml.one_hot(indices, values, size=3)
    shown = line(
        block("indices", indices),
        block("values: off, on", values, [["off", "second"]]),
        ARROW,
        block("size=3", output, np.where(output == values[1], "second", "off")),
    )
    title = "With the values 0.1 and 0.9, off is 0.1 and on is 0.9."
    return picture(title, [shown], LIT)


# ELEMENT_WISE_IF

CHOSEN = {
    "value": "condition is not 0: from a",
    "second": "condition is 0: from b",
    "off": "not selected",
}
CONDITION = jnp.array([[0, 1, 0], [2, 0, 128], [1, 1, 0]], jnp.uint8)
NUMBERS = jnp.arange(1, 10, dtype=jnp.float32).reshape(3, 3)


def _selected(a: jax.Array, b: jax.Array | float) -> str:
    output = dml.element_wise_if(CONDITION, a, b)
    # The same selection between two truth values tells from where an element came.
    holds = dml.element_wise_if(CONDITION, jnp.ones(CONDITION.shape, bool), False)
    of_b = "second" if isinstance(b, float) else np.where(holds, "off", "second")
    shown = line(
        block("condition", CONDITION, np.where(holds, "value", "second")),
        block("a", a, np.where(holds, "value", "off")),
        block("b", b, of_b),
        ARROW,
        block("output", output, np.where(holds, "value", "second")),
    )
    title = "Each element of the output is that of a where the condition is not 0."
    return picture(title, [shown], CHOSEN)


@drawn
def element_wise_if() -> str:
    """Two matrices."""
    return _selected(NUMBERS, -NUMBERS)


@drawn
def element_wise_if_scalar() -> str:
    """A scalar as b, and a NaN that is not selected."""
    return _selected(NUMBERS.at[0, 0].set(jnp.nan), 0.0)


# NONZERO_COORDINATES

FOUND = {
    "second": "not 0, and its coordinates",
    "off": "0",
    "unused": "a row past the count",
}
SPARSE = jnp.array([[0, 5, 0], [7, 0, 0], [0, 0, 9]])


def _rows(caption: str, count: jax.Array, coordinates: jax.Array) -> Block:
    """The coordinates, with the rows past the count in grey."""
    valid = np.arange(len(coordinates))[:, None] < int(count)
    return block(caption, coordinates, np.where(valid, "second", "unused"))


def _coordinates(caption: str, x: jax.Array = SPARSE, **options: int) -> list[Block]:
    """The count and the coordinates for some options."""
    found = dml.nonzero_coordinates(x, **options)  # type: ignore[arg-type]
    return [block("count", found.count, "second"), _rows(caption, *found)]


def _sparse(x: jax.Array = SPARSE, caption: str = "x") -> Block:
    return block(caption, x, np.where(x != 0, "second", "off"))


@drawn
def nonzero_coordinates() -> str:
    """A count, three rows, and two rows past the count."""
    shown = line(_sparse(), ARROW, *_coordinates("coordinates, size=5", size=5))
    title = (
        "A 3 by 3 matrix with three elements that are not 0. The count is 3. The "
        "coordinates have five rows: three valid ones, and two that hold 0."
    )
    return picture(title, [shown], FOUND)


@drawn
def nonzero_coordinates_size() -> str:
    """Fewer rows, by size=, and another number in the rows past the count."""
    shown = line(
        _sparse(),
        ARROW,
        *_coordinates("size=2", size=2),
        *_coordinates("size=4", size=4),
        *_coordinates("size=4, fill=9", size=4, fill=9),
    )
    title = (
        "With size=2 there are two rows, and the count is still 3. With size=4 the "
        "fourth row is past the count; it holds 0, or what fill says."
    )
    return picture(title, [shown], FOUND)


@drawn
def nonzero_coordinates_columns() -> str:
    """The last coordinates only."""
    shown = line(
        _sparse(caption="x, of sizes (1, 3, 3)"),
        ARROW,
        *_coordinates("columns=3", SPARSE[None], size=3),
        *_coordinates("columns=2", SPARSE[None], size=3, columns=2),
    )
    title = (
        "An input of sizes (1, 3, 3). By default a row has three coordinates, of which "
        "the first is always 0. With columns=2 it has the last two."
    )
    return picture(title, [shown], FOUND)


@drawn
def nonzero_coordinates_parts() -> str:
    """A count and rows for each part of the first dimension."""
    x = jnp.array([0, 5, 6, 0, 7, 0])
    counts, coordinates = dml.nonzero_coordinates(x, parts=2)
    parts = enumerate(zip(counts, coordinates, strict=True))
    shown = line(
        _sparse(x),
        ARROW,
        block("counts", counts[:, None], "second"),
        *(_rows(f"part {number}", *part) for number, part in parts),
    )
    title = (
        "Six elements in two parts. Each part has a count and three rows of its own. "
        "The coordinates are those of the whole input."
    )
    return picture(title, [shown], FOUND)


# DESCRIPTORS


def _unpadded(
    tensor: TensorDesc, output: TensorDesc, buffer: jax.Array, after: tuple[int, int]
) -> Any:
    """A tensor with `after` zeros at its ends, read and written through strides."""
    pads = (0, 0), after
    desc = dml.PaddingDesc(tensor, output, PaddingMode.CONSTANT, 9.0, 2, *pads)
    return np.asarray(dml.create_operator(desc)(buffer))


@drawn
def strides() -> str:
    """One buffer, read through four sets of strides."""
    cases = (
        ((3, 1), 6, "packed rows"),
        ((1, 2), 6, "transposed"),
        ((4, 1), 7, "a gap after a row"),
        ((0, 1), 3, "one row, repeated"),
    )
    output, lines = TensorDesc(DataType.FLOAT32, (2, 3)), []
    for steps, length, meaning in cases:
        buffer = jnp.arange(1, length + 1, dtype=jnp.float32)
        tensor = TensorDesc(DataType.FLOAT32, (2, 3), strides=steps)
        values = _unpadded(tensor, output, buffer, (0, 0))
        kinds = np.where(np.isin(buffer, values), "value", "unused")
        shown = block("buffer", buffer, kinds), ARROW, block("tensor", values)
        lines.append(line(*shown, heading=f"strides {steps}: {meaning}"))
    title = "A tensor of sizes (2, 3), read from a flat buffer through its strides."
    return picture(title, lines, {"value": "read", "unused": "not read"})


@drawn
def strides_of_an_output() -> str:
    """An output that is written through strides, with a gap."""
    x = jnp.arange(1, 5, dtype=jnp.float32).reshape(2, 2)
    tensor = TensorDesc(DataType.FLOAT32, x.shape)
    output = TensorDesc(DataType.FLOAT32, (2, 3), strides=(4, 1))
    buffer = _unpadded(tensor, output, x, (0, 1))
    kinds = np.where(buffer == 9, "new", np.where(buffer == 0, "unused", "value"))
    shown = line(
        block("x", x), ARROW, block("buffer of the padded output", buffer, kinds)
    )
    title = "An output of sizes (2, 3) with strides (4, 1). The gap holds 0."
    legend = {"value": "the input", "new": "padding", "unused": "gap"}
    return picture(title, [shown], legend)


def main() -> None:
    """Writes all pictures that are not there, or that have changed."""
    FOLDER.mkdir(exist_ok=True)
    for name, draw in (DRAWN | DIAGRAMS | PLOTS).items():
        path, text = FOLDER / f"{name}.svg", draw()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
