"""NONZERO_COORDINATES under test: samples, edges, errors, sharding, support."""

import itertools
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import dmljax
from tests.samples import Described, Sample, Subject, Wrong, shape_of_rank, tensor
from tests.sharded import Case, array
from tests.subjects import tables


def nonzero(scalar):
    """Whether a scalar is non-zero by its bits. A subnormal is, and -0.0 is not."""
    scalar = np.asarray(scalar)
    if scalar.dtype.kind in "biu":
        return int(scalar) != 0
    if scalar.dtype.kind == "c":
        return nonzero(scalar.real) or nonzero(scalar.imag)
    # A type without a zero converts these two to other numbers.
    zeros = np.array([0.0, -0.0]).astype(scalar.dtype)
    return scalar.tobytes() not in [zero.tobytes() for zero in zeros if zero == 0]


def oracle(x, *, columns=None, fill=0, parts=None, size=None):
    """Returns (count, coordinates), with the last columns of each coordinate.

    With `parts`, each part has a count and coordinates of its own. With `size`, there
    are `size` rows: more rows are cut, and missing rows are filled. With fill=None they
    are undefined, and zeros here.
    """
    x = np.asarray(x)
    columns = max(x.ndim, 1) if columns is None else columns
    counts = np.zeros(parts or 1, np.uint32)
    rows = x.size // counts.size if size is None else size
    coordinates = np.full((counts.size, rows, columns), fill or 0, np.uint32)
    for coordinate in np.ndindex(x.shape):
        if nonzero(x[coordinate]):
            part = coordinate[0] * parts // x.shape[0] if parts else 0
            # A scalar has no coordinates. The zeros in front give it one column.
            row = ((0,) * columns + coordinate)[-columns:]
            coordinates[part, counts[part] :][:1] = row
            counts[part] += 1
    return (counts, coordinates) if parts else (counts[0], coordinates[0])


def nonzero_coordinates(x, *, fill=0, **options):
    """The function. We set undefined rows to 0 to compare them."""
    count, coordinates = dmljax.nonzero_coordinates(x, fill=fill, **options)
    if fill is None:
        row = jnp.arange(coordinates.shape[0], dtype=np.uint32)[:, None]
        coordinates = jnp.where(row < count, coordinates, np.uint32(0))
    return count, coordinates


def _use(x, **options):
    """A use of an array, or of a shape."""
    return Sample(
        "nonzero_coordinates",
        nonzero_coordinates,
        oracle,
        f"{options} of {getattr(x, 'shape', x)}",
        (x,),
        options,
        linear=False,
    )


def _tensors(ranks, coordinate_ranks):
    return {
        "InputTensor": (*ranks, tables.SMALL),
        "OutputCountTensor": (*ranks, "UINT32"),
        "OutputCoordinatesTensor": (*coordinate_ranks, "UINT32"),
    }


def _make(maker):
    sizes = maker.sizes(most=30)
    # Leading dimensions of size 1 need no column.
    behind = list(itertools.dropwhile(lambda size: size == 1, sizes))
    columns = maker.random.randint(max(len(behind), 1), len(sizes))
    ones = (1,) * maker.random.randint(0, 6)
    count = (1,) * maker.random.randint(1, 8)
    index = dmljax.DataType.UINT32
    x = maker.tensor(maker.data_type(tables.SMALL), sizes)
    counts = maker.tensor(index, count, output=True)
    rows = maker.tensor(index, (*ones, math.prod(sizes), columns), output=True)
    return dmljax.NonzeroCoordinatesDesc(x, counts, rows)


def _expected(desc, x):
    columns = desc.output_coordinates_tensor.sizes[-1]
    return oracle(x, columns=columns)


DESC = dmljax.NonzeroCoordinatesDesc(
    tensor("FLOAT32", 1, 2, 3), tensor("UINT32", 1), tensor("UINT32", 6, 2)
)

# SAMPLES

MOST = 2**32 - 1
SAMPLES = _use((1, 1, 2, 4), columns=3, fill=7), _use((4, 1, 2), parts=2, fill=7)
# A kernel is slow to simulate, so there is one edge for each way to launch it.
LAUNCHES = (
    _use((1, 1, 2, 3), columns=2),
    _use((33,)),
    _use((5, 3), fill=MOST),
    _use((0, 3), fill=7),
    _use((6, 5), parts=6),
    _use((40, 2, 3), parts=4),
    _use((8, 700), parts=2),
    _use((0, 3), parts=2),
    _use((1, 2, 3), parts=1, columns=2),
    _use((6, 5), size=11, fill=7),
    _use((6, 5), size=40, fill=7),
    _use((4, 6), parts=2, size=9),
    _use((), size=0),
)
KERNEL_SAMPLES = [sample.by_kernel() for sample in SAMPLES]
KERNEL_EDGES = [edge.by_kernel() for edge in LAUNCHES]
EDGES = [
    *LAUNCHES,
    *map(_use, map(shape_of_rank, (0, 8))),
    *(_use((size,)) for size in (0, 1, 32)),
    _use((1, 1), columns=1),
    _use((5, 3), fill=None),
    # Fault: rows past the count keep the first coordinates of their part.
    _use((6,), parts=6),
    _use((1, 1, 4, 9), columns=3, size=50, fill=MOST),
    _use((2, 0), size=2, fill=3),
    _use((3, 4), size=11, fill=None),
    _use(np.eye(3, dtype=np.int8), size=3),
    _use(np.eye(1, 70, 69, dtype=np.int8)),
]

# ERRORS

WIDE = jax.ShapeDtypeStruct((2**16, 2**16), np.int8)
MATRIX = np.ones((2, 3), np.int8)
UINT32 = "it must be a UINT32, 0 to 4294967295. Write fill=x.size for...fill_value="
FIRST = "it must divide the first dimension of x (InputTensor), which has sizes"
_call = partial(Wrong.of_call, "NONZERO_COORDINATES", dmljax.nonzero_coordinates)
ERRORS = [
    _call(f"parts is 1; {FIRST} {{}}", MATRIX[0, 0], parts=1),
    Wrong(
        "NONZERO_COORDINATES",
        "x (InputTensor) has sizes {65536,65536}, 4294967296 elements; at most 429",
        partial(jax.eval_shape, dmljax.nonzero_coordinates, WIDE),
    ),
]
for shape, n, rule in (
    ((2, 3), 1, "{2,3} it must be 2."),
    ((1, 1), 0, "{1,1} it must be 1 to 2."),
    ((1, 2, 3), 4, "{1,2,3} it must be 2 to 3."),
    ((), 2, "{} it must be 1."),
):
    text = f"columns is {n}; for x (InputTensor) of sizes {rule}"
    ERRORS.append(_call(text, np.ones(shape, np.int8), columns=n))
for n in (-1, 2**32):
    rows = f"it must be a number of rows, 0 to {MOST}"
    ERRORS.append(_call(f"fill is {n}; {UINT32}", MATRIX, fill=n))
    ERRORS.append(_call(f"size is {n}; {rows}", MATRIX, size=n))
for n, rule in ((3, f"{FIRST} {{2,3}}"), (0, "it must be at least 1"), (-2, "it must")):
    ERRORS.append(_call(f"parts is {n}; {rule}", MATRIX, parts=n))
for other in ("cuda", "XLA", "", 0, [], {}, np.zeros(2)):
    text = f"implementation is {other!r}; it must be one of None, 'xla', 'pallas'"
    ERRORS.append(_call(text, MATRIX, implementation=other))


def _rows(text, *sizes, **rest):
    """A descriptor with another tensor of coordinates."""
    rows = tensor("UINT32", *sizes, **rest)
    return Wrong.of_descriptor(DESC, text, output_coordinates_tensor=rows)


ERRORS += [
    _rows("has {5,2}, while the inputs and attributes give it {6,2}", 5, 2),
    _rows("has {2,6,2}, while the inputs and attributes give it {1,6,2}", 2, 6, 2),
    _rows("columns is 4;...2 to 3", 6, 4),
    # Fault: the second output is checked as an input, which may overlap.
    _rows(
        "'OutputCoordinatesTensor' has sizes {6,2} and strides {1,1}, with which",
        *(6, 2),
        strides=(1, 1),
    ),
    Wrong.of_descriptor(
        DESC,
        "'OutputCountTensor' has {1,2}, while...give it {1,1}",
        output_count_tensor=tensor("UINT32", 1, 2),
    ),
]

# SHARDING

MASK = (array() > 2).astype(np.uint8)


def lines(x, **options):
    """The coordinates in each line of a batch."""
    return jax.vmap(partial(dmljax.nonzero_coordinates, **options))(x)


def _only_first(parts):
    return parts[0] > 1 and set(parts[1:]) == {1}


_first = partial(Case, fits=_only_first, arrays=(MASK,), divided=False)
SHARDED = {
    "nonzero_coordinates": Case(
        dmljax.nonzero_coordinates,
        ("`nonzero_coordinates`", "any dimension of the tensor"),
        arrays=(MASK,),
        divided=False,
    ),
    "nonzero_coordinates, vmap": _first(
        lines, row=("`nonzero_coordinates`", "the batch of a vmap")
    ),
    "nonzero_coordinates, parts": _first(
        partial(dmljax.nonzero_coordinates, parts=16),
        row=("`nonzero_coordinates`, `parts=`", "the first dimension"),
    ),
    "nonzero_coordinates, size": _first(
        partial(dmljax.nonzero_coordinates, size=8),
        row=("`nonzero_coordinates`, `size=K`", "the first dimension"),
    ),
}

SUBJECT = Subject(
    signature=(
        "(x, /, *, columns=None, fill=0, parts=None, size=None, implementation=None)"
    ),
    arguments=(MATRIX, 2, 0, 2, 2, None),
    names=("NonzeroCoordinates",),
    tensor="InputTensor",
    samples=SAMPLES,
    edges=EDGES,
    errors=ERRORS,
    sharded=SHARDED,
    descriptors={
        "NONZERO_COORDINATES": Described(
            example=DESC,
            table={
                dmljax.FeatureLevel.V3_0: _tensors((4, 5), (4, 5)),
                dmljax.FeatureLevel.V4_0: _tensors((1, 8), (2, 8)),
            },
            make=_make,
            oracle=_expected,
        )
    },
)
