"""ONE_HOT under test: its samples, edges, drawn examples, support table and errors."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st

import dmljax
from dmljax import _one_hot
from dmljax._operators import OPERATORS
from tests import oracles
from tests.samples import (
    Fuzzed,
    Sample,
    Subject,
    Wrong,
    integers,
    shape_of_rank,
)
from tests.sharded import Case, array
from tests.subjects import tables

ONE_HOT_INDICES = ("int8", "uint8", "int32", "uint32")


_hot = functools.partial(Sample, "one_hot", dmljax.one_hot, oracles.one_hot)


def _hot_limits(dtype: str, size: int, *indices: int) -> Sample:
    """Indices of a narrow or wide type at the limits of sequences and types."""
    limits = jnp.iinfo(dtype)
    signed = limits.min < 0
    around = (size, size - 1, size + 1, 0, *((-1, -size, -size - 1) * signed))
    inside = (i for i in around if limits.min <= i <= limits.max)
    values = (*inside, *indices, int(limits.min), int(limits.max))
    array = np.array([[value] for value in values], jnp.dtype(dtype))
    name = f"{dtype} of {size}"
    return _hot(name, (array, (2,)), {"size": size, "axis": -1})


def like(operands: Any, attributes: Any) -> Sample:
    """A sample of the operator."""
    return _hot("", operands, attributes)


@st.composite
def _examples(draw: Any) -> Sample:
    axis = draw(st.integers(-3, 2))
    shape = [2, 3, 2]
    shape[axis] = 1
    size = draw(st.sampled_from([1, 3, 20, 130]))
    limits = jnp.iinfo(draw(st.sampled_from(ONE_HOT_INDICES)))
    low, high = int(limits.min), int(limits.max)
    near = st.integers(max(-size - 2, low), min(size + 2, high))
    index = near | st.integers(low, high) | st.sampled_from([low, high])
    count = int(np.prod(shape))
    line = draw(st.lists(index, min_size=count, max_size=count))
    indices = np.array(line, limits.dtype).reshape(shape)
    return like((indices, (2,)), {"size": size, "axis": axis})


def _tensors(ranks: Any, indices: str, values: str) -> tables.Row:
    return {
        "IndicesTensor": (*ranks, indices),
        "ValuesTensor": (*ranks, values),
        "OutputTensor": (*ranks, values),
    }


def columns_of_32(indices: Any, **options: Any) -> Any:
    """One-hot along the second dimension."""
    values = np.array([5, 9], np.float32)
    return dmljax.one_hot(indices, values, size=32, axis=1, **options)


def gradient_in_values(indices: Any, cotangent: Any, **options: Any) -> Any:
    """The sums of a cotangent where the sequences are off, and where they are on."""
    hot = functools.partial(dmljax.one_hot, indices, size=32, axis=1, **options)
    return jax.vjp(hot, jnp.ones(2, cotangent.dtype))[1](cotangent)[0]


def _make(maker: Any) -> dmljax.OneHotDesc:
    sizes = maker.sizes()
    axis, data_type = maker.random.randrange(len(sizes)), maker.data_type(tables.ALL)
    values = list(maker.sizes(len(sizes), len(sizes), most=5))
    if np.prod(values) < 2:
        values[maker.random.randrange(len(sizes))] = 2
    indices = (*sizes[:axis], 1, *sizes[axis + 1 :])
    return dmljax.OneHotDesc(
        maker.tensor(maker.data_type(tables.INDEX), indices),
        maker.tensor(data_type, tuple(values)),
        maker.tensor(data_type, sizes, output=True),
        axis,
    )


def _described(desc: dmljax.OneHotDesc) -> dict[str, Any]:
    return {"size": desc.output_tensor.sizes[desc.axis], "axis": desc.axis}


SUBJECT = Subject(
    operator=OPERATORS["one_hot"],
    jitted=_one_hot._one_hot,
    tensor="ValuesTensor",
    signature="(indices, values, /, *, size, axis=-1)",
    structs={"ONE_HOT": "IndicesTensor ValuesTensor OutputTensor Axis"},
    sharded={
        "one_hot": Case(
            columns_of_32,
            (array("int32", (128, 1, 8)),),
            ("`one_hot`", "batch, depth"),
            lambda parts: parts[1] == 1,  # depth is a dimension of the output alone
            differentiable=False,
        ),
        "one_hot, gradient": Case(
            gradient_in_values,
            (array("int32", (128, 1, 8)), array(shape=(128, 32, 8))),
            ("`jax.grad` of `one_hot`, by `values`", "batch"),
            lambda parts: parts[1] == 1,
            differentiable=False,
            divided=False,
        ),
    },
    samples=(
        _hot(
            "rows",
            (np.array([[0], [2], [-1], [3]], np.int32), (2,)),
            {"size": 3, "axis": -1},
        ),
        _hot(
            "columns",
            (np.array([[[1, 0, 4]], [[2, 9, 3]]], np.uint32), (1, 2, 2)),
            {"size": 4, "axis": 1},
        ),
    ),
    edges=(
        *(
            _hot(
                f"axis {axis}",
                (np.arange(-3, 3, dtype=np.int32).reshape(shape), (2, 1)),
                {"size": 3, "axis": axis},
            )
            for shape, axis in (
                *(((1, 2, 3), 0), ((2, 1, 3), 1), ((2, 3, 1), 2)),
                *(((1, 2, 3), -3), ((2, 1, 3), -2), ((2, 3, 1), -1)),
            )
        ),
        *(
            _hot(
                f"rank {rank}",
                (np.ones((1, *shape_of_rank(rank - 1)), np.int32), (2,)),
                {"size": 2, "axis": 0},
            )
            for rank in range(1, 9)
        ),
        *(
            _hot(
                f"values {shape}",
                (integers(np.int32, 0, 1, 2)[:, None], shape),
                {"size": 3, "axis": 1},
            )
            for shape in ((3,), (2, 1), (1, 1, 1, 3), (2, 2))
        ),
        *(_hot_limits(dtype, 3) for dtype in ("int8", "uint8", "int16", "uint16")),
        *(_hot_limits(dtype, 1) for dtype in ("int32", "uint32")),
        *(_hot_limits(dtype, 300) for dtype in ("int8", "uint8")),
        *(_hot_limits(dtype, 40) for dtype in ("int4", "uint4")),
        _hot_limits("int32", 3),
        _hot_limits("uint32", 3, 2**31, 2**32 - 3),
        _hot_limits("int64", 3, 2**40, 2**32, 2**32 + 1, -(2**32), -(2**32) - 1),
        _hot_limits("uint64", 3, 2**63 + 1, 2**40, 2**32 + 2, 2**64 - 3, 2**63),
        _hot(
            "empty",
            (np.zeros((0, 1), np.int32), (2,)),
            {"size": 3, "axis": -1},
        ),
    ),
    plans=(
        *("axis 0", "axis 1", "axis 2", "rank 1", "rank 8", "values (1, 1, 1, 3)"),
        *("int8 of 3", "uint16 of 3", "uint32 of 3", "int8 of 300", "uint8 of 300"),
        *("int4 of 40", "uint4 of 40", "int32 of 1", "int64 of 3", "uint64 of 3"),
        "empty",
    ),
    tables={
        "ONE_HOT": {
            "2_0": _tensors((4, 4), "UINT32", tables.FLOATS),
            "2_1": _tensors((4, 4), "UINT32", tables.SMALL),
            "3_0": _tensors((1, 8), tables.INDEX, tables.SMALL),
            "4_1": _tensors((1, 8), tables.INDEX, tables.ALL),
        }
    },
    attributes={"ONE_HOT": lambda rank, data_type: (rank - 1,)},
    examples=_examples(),
    fuzzed={
        "ONE_HOT": Fuzzed(
            _make,
            lambda desc, *arrays: (oracles.one_hot(*arrays, **_described(desc)),),
            lambda desc, form, *arrays: dmljax.one_hot(*arrays, **_described(desc)),
        )
    },
    errors=(
        Wrong(
            lambda: dmljax.one_hot(
                np.ones((2, 1), np.int32), np.ones(1, np.float32), size=3
            ),
            ("ValuesTensor", "{1}", "at least 2"),
        ),
    ),
)
