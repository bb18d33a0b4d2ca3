"""ONE_HOT under test: samples, edges, errors, sharding, support."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import dmljax
from dmljax._directml.support import support_table
from tests.samples import Described, Sample, Subject, Wrong, shape_of_rank, tensor
from tests.sharded import Case, array
from tests.subjects import tables


def oracle(indices, values, *, size, axis):
    """Returns values[1] at the index of each sequence, and values[0] elsewhere.

    A negative index counts from the end.
    """
    indices = np.asarray(indices)
    values = np.asarray(values)
    off, on = values.ravel()[:2]
    shape = list(indices.shape)
    shape[axis] = size
    output = np.full(shape, off, values.dtype)
    for coordinate in np.ndindex(indices.shape):
        sequence = list(coordinate)
        index = int(indices[coordinate])
        sequence[axis] = index + size if index < 0 else index
        if 0 <= sequence[axis] < size:
            output[tuple(sequence)] = on
    return output


_sample = partial(Sample, "one_hot", dmljax.one_hot, oracle)


def _hot(name, indices, values, size, axis=-1):
    return _sample(name, (indices, values), {"size": size, "axis": axis})


def _hot_limits(dtype, size, *indices):
    """Indices of a narrow or wide type at the limits of sequences and types."""
    limits = jnp.iinfo(dtype)
    around = (size, size - 1, size + 1, 0, -1, -size, -size - 1)
    values = [i for i in around if limits.min <= i <= limits.max]
    values += [*indices, int(limits.min), int(limits.max)]
    lines = np.array(values, jnp.dtype(dtype))[:, None]
    return _hot(f"{dtype} of {size}", lines, (2,), size)


def columns_of_32(indices, **options):
    """One-hot along the second dimension."""
    values = np.array([5, 9], np.float32)
    return dmljax.one_hot(indices, values, size=32, axis=1, **options)


def gradient_in_values(indices, cotangent, **options):
    """The sums of a cotangent where the sequences are off, and where they are on."""
    hot = partial(dmljax.one_hot, indices, size=32, axis=1, **options)
    return jax.vjp(hot, jnp.ones(2, cotangent.dtype))[1](cotangent)[0]


def _make(maker):
    sizes = maker.sizes()
    axis = maker.random.randrange(len(sizes))
    values = list(maker.sizes(len(sizes), len(sizes), most=5))
    if np.prod(values) < 2:
        values[maker.random.randrange(len(sizes))] = 2
    indices = (*sizes[:axis], 1, *sizes[axis + 1 :])
    return dmljax.OneHotDesc(
        maker.tensor(maker.data_type(tables.INDEX), indices),
        *maker.tensors(tables.ALL, tuple(values), sizes),
        axis,
    )


def _expected(desc, *arrays):
    size = desc.output_tensor.sizes[desc.axis]
    return (oracle(*arrays, size=size, axis=desc.axis),)


DESC = dmljax.OneHotDesc(
    tensor("INT32", 2, 1), tensor("FLOAT32", 1, 2), tensor("FLOAT32", 2, 3), 1
)

# SAMPLES

EDGES = [
    _hot_limits("int32", 3),
    _hot_limits("uint32", 3, 2**31, 2**32 - 3),
    _hot_limits("int64", 3, 2**40, 2**32, 2**32 + 1, -(2**32), -(2**32) - 1),
    _hot_limits("uint64", 3, 2**63 + 1, 2**40, 2**32 + 2, 2**64 - 3, 2**63),
    _hot("empty", np.zeros((0, 1), np.int32), (2,), 3),
]
# No other axis has the size 3, which is added to a negative index.
for axis, shape in enumerate([(1, 2, 5), (2, 1, 5), (2, 5, 1)]):
    indices = np.arange(-5, 5, dtype=np.int32).reshape(shape)
    for place in (axis, axis - 3):
        EDGES.append(_hot(f"axis {place}", indices, (2, 1), 3, place))
for rank in range(1, 9):
    indices = np.ones((1, *shape_of_rank(rank - 1)), np.int32)
    EDGES.append(_hot(f"rank {rank}", indices, (2,), 2, 0))
for shape in ((3,), (2, 1), (1, 1, 1, 3), (2, 2)):
    indices = np.array([[0], [1], [2]], np.int32)
    EDGES.append(_hot(f"values {shape}", indices, shape, 3, 1))
for dtype in ("int8", "uint8"):
    EDGES += [_hot_limits(dtype, 3), _hot_limits(dtype, 300)]
for dtype in ("int4", "uint4"):
    EDGES.append(_hot_limits(dtype, 40))

# ERRORS

INDICES = np.ones((2, 1), np.int32)
VALUES = np.ones(3, np.float32)
RULE = "it must be an integer type. Write indices.astype('int32'), or call dmljax.onnx"
INDEX = "indices (IndicesTensor)"
_call = partial(Wrong.of_call, "ONE_HOT", partial(dmljax.one_hot, size=3))
ERRORS = [
    _call(f"{INDEX} has data type FLOAT32; {RULE}", INDICES.astype("f"), VALUES),
    _call(f"{INDEX} has data type BOOL; {RULE}", INDICES > 0, VALUES),
    _call(
        f"axis (Axis) is 0, while {INDEX} has 0 dimensions; {INDEX} must have a "
        "dimension of size 1 along axis. Write indices[None]",
        INDICES[0, 0],
        VALUES,
        axis=0,
    ),
    _call(
        f"{INDEX} has sizes {{2,3}}; its size along axis (Axis) 1 is 3 and must be 1. "
        "jnp.expand_dims",
        np.ones((2, 3), np.int32),
        VALUES,
    ),
    _call(
        "values (ValuesTensor) has sizes {1}; it must have at least 2 elements, off "
        "and on.",
        INDICES,
        VALUES[:1],
    ),
]
for axis in (2, -3):
    text = f"axis (Axis) is {axis}; it must be in [-2, 2)."
    ERRORS.append(_call(text, INDICES, VALUES, axis=axis))
for size in (0, -1, 2**31):
    text = f": size is {size}; it must be in [1, 2^31)"
    ERRORS.append(_call(text, INDICES, VALUES, size=size))
_desc = partial(Wrong.of_descriptor, DESC)
ERRORS += [
    _desc(
        "Tensor 'ValuesTensor' has 1, while tensor 'IndicesTensor' has 2; both must be",
        values_tensor=tensor("FLOAT32", 2),
    ),
    _desc(
        "Tensor 'OutputTensor' has 3, while tensor 'IndicesTensor' has 2; both must be",
        output_tensor=tensor("FLOAT32", 1, 2, 3),
    ),
    _desc(
        "Axis is 2; it must be in [0, 2), as tensor 'IndicesTensor' has sizes", axis=2
    ),
    _desc("Axis is -1; it must be in [0, 2), as", axis=-1),
    _desc(
        "has sizes {2,2}; its size along Axis 1", indices_tensor=tensor("INT32", 2, 2)
    ),
    _desc(
        "'OutputTensor' has FLOAT32, while tensor 'ValuesTensor' has FLOAT16",
        values_tensor=tensor("FLOAT16", 1, 2),
    ),
]


def _symbolic(x, value):
    indices = (x[:, None] % 3 - 1).astype(np.int8)
    values = jnp.stack([x[0, 0], value])
    return dmljax.one_hot(indices, values, size=x.shape[1] + 1, axis=1)


SUBJECT = Subject(
    signature="(indices, values, /, *, size, axis=-1)",
    arguments=(INDICES, VALUES, 2, 1),
    samples=(
        _hot("rows", np.array([[0], [2], [-1], [4]], np.int32), (2,), 4),
        _hot("columns", np.uint32([[[1, 0, 4, 3]], [[2, 9, 3, 0]]]), (1, 2, 2), 4, 1),
    ),
    edges=EDGES,
    errors=ERRORS,
    sharded={
        "one_hot": Case(
            columns_of_32,
            ("`one_hot`", "batch, depth"),
            lambda parts: parts[1] == 1,  # depth is a dimension of the output alone
            (array("int32", (128, 1, 8)),),
            differentiable=False,
        ),
        "one_hot, gradient": Case(
            gradient_in_values,
            ("`jax.grad` of `one_hot`, by `values`", "batch"),
            lambda parts: parts[1] == 1,
            (array("int32", (128, 1, 8)), array(shape=(128, 32, 8))),
            divided=False,
        ),
    },
    symbolic=_symbolic,
    descriptors={
        "ONE_HOT": Described(
            example=DESC,
            table=support_table(
                "IndicesTensor",
                "ValuesTensor OutputTensor",
                V2_0=(4, 4, "UINT32", tables.FLOATS),
                V2_1=(4, 4, "UINT32", tables.SMALL),
                V3_0=(1, 8, tables.INDEX, tables.SMALL),
                V4_1=(1, 8, tables.INDEX, tables.ALL),
            ),
            make=_make,
            oracle=_expected,
        )
    },
)
