"""NONZERO_COORDINATES under test: samples, edges, errors, sharding, support."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import dmljax
from dmljax import _nonzero_coordinates
from dmljax._operators import OPERATORS
from tests import oracles
from tests.samples import Described, Sample, Subject, Wrong, shape_of_rank, tensor
from tests.sharded import Case, array
from tests.subjects import tables


def nonzero_coordinates(x: Any, *, fill: int | None = 0, **options: Any) -> Any:
    """The function. We set undefined rows to 0 to compare them."""
    count, coordinates = dmljax.nonzero_coordinates(x, fill=fill, **options)
    if fill is None:
        row = jnp.arange(coordinates.shape[0], dtype=np.uint32)[:, None]
        coordinates = jnp.where(row < count, coordinates, np.uint32(0))
    return count, coordinates


def nonzero_coordinates_oracle(x: Any, *, fill: int | None = 0, **options: Any) -> Any:
    """The oracle; where rows are undefined it gives zeros."""
    return oracles.nonzero_coordinates(x, fill=fill or 0, **options)


_nonzero = functools.partial(
    Sample,
    "nonzero_coordinates",
    nonzero_coordinates,
    nonzero_coordinates_oracle,
    linear=False,
)


def _tensors(ranks: Any, coordinate_ranks: Any) -> tables.Row:
    return {
        "InputTensor": (*ranks, tables.SMALL),
        "OutputCountTensor": (*ranks, "UINT32"),
        "OutputCoordinatesTensor": (*coordinate_ranks, "UINT32"),
    }


MASK = (array() > 2).astype(np.uint8)


def lines(x: Any, **options: Any) -> Any:
    """The coordinates in each line of a batch."""
    return jax.vmap(functools.partial(dmljax.nonzero_coordinates, **options))(x)


def in_parts(x: Any, **options: Any) -> Any:
    """The coordinates in each of sixteen parts."""
    return dmljax.nonzero_coordinates(x, parts=16, **options)


def _only_first(parts: tuple[int, ...]) -> bool:
    return parts[0] > 1 and set(parts[1:]) == {1}


def _sharded(function: Any, more: str, along: str, fits: Any = _only_first) -> Case:
    line = (f"`nonzero_coordinates`{more}", along)
    return Case(function, (MASK,), line, fits, differentiable=False, divided=False)


def _make(maker: Any) -> dmljax.NonzeroCoordinatesDesc:
    sizes = maker.sizes(most=30)
    leading = next((i for i, size in enumerate(sizes) if size > 1), len(sizes))
    columns = maker.random.randint(max(len(sizes) - leading, 1), len(sizes))
    ones = (1,) * maker.random.randint(0, 6)
    count = (1,) * maker.random.randint(1, 8)
    rows, index = (int(np.prod(sizes)), columns), dmljax.DataType.UINT32
    return dmljax.NonzeroCoordinatesDesc(
        maker.tensor(maker.data_type(tables.SMALL), sizes),
        maker.tensor(index, count, output=True),
        maker.tensor(index, (*ones, *rows), output=True),
    )


def _expected(desc: dmljax.NonzeroCoordinatesDesc, x: Any) -> Any:
    columns = desc.output_coordinates_tensor.sizes[-1]
    return oracles.nonzero_coordinates(x, columns=columns)


DESC = dmljax.NonzeroCoordinatesDesc(
    tensor("FLOAT32", 1, 2, 3), tensor("UINT32", 1), tensor("UINT32", 6, 2)
)
WIDE = jax.ShapeDtypeStruct((2**16, 2**16), np.int8)
MATRIX, MOST = np.ones((2, 3), np.int8), 2**32 - 1
UINT32 = "it must be a UINT32, 0 to 4294967295"
FIRST = "it must divide the first dimension of x (InputTensor), which has sizes"
CALLS = {
    **{
        f"columns is {n}; for x (InputTensor) of sizes {sizes} it must be {allowed}": (
            *({"columns": n}, np.ones(shape, np.int8)),
        )
        for shape, sizes, allowed, wrong in (
            *(((2, 3), "{2,3}", "2.", (0, 1, 3)), ((1, 1), "{1,1}", "1 to 2.", (0,))),
            *(((1, 2, 3), "{1,2,3}", "2 to 3.", (1, 4)), ((), "{}", "1.", (0, 2))),
        )
        for n in wrong
    },
    **{f"fill is {n}; {UINT32}": ({"fill": n}, MATRIX) for n in (-1, 2**32)},
    **{f"parts is {n}; {FIRST} {{2,3}}": ({"parts": n}, MATRIX) for n in (3, 0, -2)},
    f"parts is 1; {FIRST} {{}}": ({"parts": 1}, MATRIX[0, 0]),
    **{
        f"size is {n}; it must be a number of rows, 0 to {MOST}": ({"size": n}, MATRIX)
        for n in (-1, 2**32)
    },
}
DESCRIPTORS = {
    "'OutputCountTensor' has {1,2}, while...give it {1,1}": {
        "output_count_tensor": tensor("UINT32", 1, 2)
    },
    **{
        text: {"output_coordinates_tensor": tensor("UINT32", *sizes)}
        for text, sizes in (
            ("has {5,2}, while the inputs and attributes give it {6,2}", (5, 2)),
            ("has {2,6,2}, while the inputs and attributes give it {1,6,2}", (2, 6, 2)),
            ("Tensor' is 1; for tensor 'InputTensor' of sizes {1,2,3} it must", (6, 1)),
            ("last size of tensor 'OutputCoordinatesTensor' is 4;...2 to 3", (6, 4)),
        )
    },
}
ERRORS = (
    *Wrong.calls("NONZERO_COORDINATES", dmljax.nonzero_coordinates, CALLS),
    *Wrong.descriptors(DESC, DESCRIPTORS),
    Wrong(
        "NONZERO_COORDINATES",
        "x (InputTensor) has sizes {65536,65536}, 4294967296 elements; at most 429",
        functools.partial(jax.eval_shape, dmljax.nonzero_coordinates, WIDE),
    ),
)
SUBJECT = Subject(
    operator=OPERATORS["nonzero_coordinates"],
    jitted=_nonzero_coordinates._nonzero_coordinates,
    tensor="InputTensor",
    signature=(
        "(x, /, *, columns=None, fill=0, parts=None, size=None, implementation=None)"
    ),
    arguments=(MATRIX, 2, 0, 2, 2, None),
    taken={
        **dict.fromkeys(
            ("columns", "fill", "parts", "size"), tables.INTEGER | tables.NONE
        ),
        "x": {"an array"},
        "implementation": tables.NONE,
    },
    names=("NonzeroCoordinates",),
    samples=(
        _nonzero("columns", ((1, 1, 2, 4),), {"columns": 3, "fill": 7}),
        _nonzero("parts", ((4, 1, 3),), {"parts": 2, "fill": 7}),
    ),
    edges=(
        _nonzero("matrix", ((3, 4),)),
        *(_nonzero(f"rank {rank}", (shape_of_rank(rank),)) for rank in range(9)),
        *(
            _nonzero(f"columns {columns} of {shape}", (shape,), {"columns": columns})
            for shape, columns in (
                *(((1, 1, 2, 3), 2), ((1, 1, 2, 3), 4), ((1, 2, 1, 3), 3)),
                *(((1, 1), 1), ((1, 1), 2), ((2, 1), 2), ((), 1)),
            )
        ),
        *(_nonzero(f"fill {n}", ((5, 3),), {"fill": n}) for n in (0, 7, MOST, None)),
        *(_nonzero(f"size {size}", ((size,),)) for size in (1, 31, 32, 33, 65, 200)),
        *(_nonzero(f"empty {shape}", (shape,)) for shape in ((0,), (0, 3), (2, 0))),
        _nonzero("empty fill", ((0, 3),), {"fill": 7}),
        *(
            _nonzero(f"{parts} parts of {shape}", (shape,), {"parts": parts})
            for shape, parts in (((6,), 6), ((6, 5), 6), ((40, 2, 3), 4), ((0, 3), 2))
        ),
        *(
            _nonzero(f"first {size} of (6, 5)", ((6, 5),), {"size": size, "fill": 7})
            for size in (0, 1, 11, 40)
        ),
        *(
            _nonzero(f"first {options['size']} of {name}", (shape,), options)
            for name, shape, options in (
                ("parts", (4, 6), {"parts": 2, "size": 9}),
                ("one part", (2, 3), {"parts": 1, "size": 0}),
                ("columns", (1, 1, 4, 9), {"columns": 3, "size": 50, "fill": MOST}),
                ("few columns", (1, 70), {"columns": 1, "size": 33}),
                ("nothing", (2, 0), {"size": 2, "fill": 3}),
                ("undefined rows", (3, 4), {"size": 11, "fill": None}),
            )
        ),
        *(
            _nonzero(f"first {n} of (3, 3)", (np.eye(3, dtype="i1"),), {"size": n})
            for n in (3, 4)
        ),
        _nonzero("columns of parts", ((1, 2, 3),), {"parts": 1, "columns": 2}),
        _nonzero("all zero", (np.zeros((3, 3), np.float32),), {"fill": 7}),
        _nonzero("none zero", (np.ones((3, 12), np.float32),), {"fill": 7}),
        _nonzero("last", (np.eye(1, 70, 69, dtype=np.int8),)),
        _nonzero("signs", (np.float32([-0.0, 0, 1e-45, -1e-45, np.nan, -np.inf]),)),
        _nonzero("imaginary", (np.complex64([0, 1j, -0.0j, 1e-45j, 1, -0.0]),)),
    ),
    plans=(
        *("columns 2 of (1, 1, 2, 3)", "columns 3 of (1, 2, 1, 3)", "size 33"),
        *("fill 4294967295", "empty (0, 3)", "empty fill", "6 parts of (6, 5)"),
        *("4 parts of (40, 2, 3)", "2 parts of (0, 3)", "columns of parts"),
        *("first 0 of (6, 5)", "first 11 of (6, 5)", "first 40 of (6, 5)"),
        *("first 9 of parts", "signs", "imaginary"),
    ),
    errors=ERRORS,
    sharded={
        "nonzero_coordinates": _sharded(
            dmljax.nonzero_coordinates,
            *("", "any dimension of the tensor", lambda parts: True),
        ),
        "nonzero_coordinates, vmap": _sharded(lines, "", "the batch of a vmap"),
        "nonzero_coordinates, parts": _sharded(
            in_parts, ", `parts=`", "the first dimension"
        ),
        "nonzero_coordinates, size": _sharded(
            functools.partial(dmljax.nonzero_coordinates, size=8),
            *(", `size=K`", "the first dimension"),
        ),
    },
    descriptors={
        "NONZERO_COORDINATES": Described(
            DESC,
            "InputTensor OutputCountTensor OutputCoordinatesTensor",
            {"3_0": _tensors((4, 5), (4, 5)), "4_0": _tensors((1, 8), (2, 8))},
            lambda rank, data_type: (),
            *(_make, _expected),
        )
    },
)
