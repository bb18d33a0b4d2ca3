"""dmljax.onnx: every call equals ONNX's node, by ONNX's own tests.

Without ONNX, only the table of calls runs.
"""

import importlib
import warnings
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dmljax.onnx as dox
from dmljax import DescriptorError
from tests.checks import assert_refused, struct
from tests.transforms.dense import assert_equal

X = np.arange(12, dtype=np.float32).reshape(3, 4) % 5
CUBE = np.arange(24, dtype=np.int8).reshape(2, 3, 4) % 3
LINE = CUBE[0, 0]
# Constants of JAX are static outside of the program that uses them.
PADS, AXIS, DEPTH = jax.device_put(
    [np.int32([2, 1]), np.int32([-1]), np.float32([3.9])]
)
LABELS = np.int32([[2, -1], [-3, 9]])
OFF_ON = np.int8([7, -7])


def lit(indices, depth):
    """The expected one-hot rows. The index None lights no element."""
    is_on = np.array(indices)[:, None] == np.arange(depth)
    return OFF_ON[is_on.astype(int)]


pad_rows = jax.jit(partial(dox.pad, X, (2, 1), axes=[0]))


@jax.jit
def select(number):
    return dox.where(CUBE == 1, CUBE, number), dox.where(CUBE != 1, number, CUBE)


def rows_of_pad():
    """Yields pairs: a result, and the expected array."""
    yield dox.pad(X, PADS, None, AXIS), np.pad(X, ((0, 0), (2, 1)))
    filled = np.pad(X, ((2, 1), (0, 0)), constant_values=7)
    for value in (7.0, np.float32([[7]])):
        yield dox.pad(X, PADS, value, [0]), filled
        yield pad_rows(value), filled
    yield dox.pad(LINE, [2, 1], 7.9), np.pad(LINE, (2, 1), constant_values=7)
    yield dox.pad(np.float32(3), []), np.float32(3)
    yield dox.pad(X, [-1, -2, 0, 3]), np.pad(X[1:, 2:], ((0, 0), (0, 3)))
    yield dox.pad(X, [-3, -1], axes=(1,)), X[:, 3:3]
    wrapped = np.pad(X[:1, :1], ((0, 0), (5, 0)), "wrap")
    yield dox.pad(X, [0, 5, -2, -3], mode="wrap"), wrapped
    padded = np.pad(CUBE, ((0, 0), (3, 5), (9, 0)), "reflect")
    yield dox.pad(CUBE, (9, 3, 0, 5), None, (2, -2), mode="reflect"), padded
    # An axis of size 0 without padding repeats nothing, and is valid.
    yield dox.pad(CUBE[0, :0], [0, 1, 0, 2], mode="edge"), np.zeros((0, 7), np.int8)


def rows_of_one_hot():
    yield dox.one_hot(LABELS, np.array([3]), OFF_ON)[1], lit([0, None], 3)
    yield dox.one_hot(LABELS, DEPTH, OFF_ON, axis=0)[:, 0], lit([2, 2], 3).T
    floats = np.float32([0.9, -1.9, -0.5, np.nan, np.inf, -3e9, 1e30, 2])
    of_floats = lit([0, 2, 0, None, None, None, None, 2], 3)
    for indices in (floats, floats.astype(jnp.bfloat16)):
        yield dox.one_hot(indices, np.float32(3), OFF_ON), of_floats
    # JAX folds the conversion of a literal by NumPy, which warns.
    for index in (2.0**32, -np.inf, np.nan):
        yield dox.one_hot(jnp.asarray(index), 3, OFF_ON), lit([None], 3)[0]
    yield dox.one_hot(np.uint8(255), 300, OFF_ON), lit([255], 300)[0]


def rows_of_where():
    yield dox.where(X[:, :1] > 1, X[0], 1.0), np.where(X[:, :1] > 1, X[0], 1)
    yield dox.where(np.True_, CUBE[0], CUBE), CUBE[[0, 0]]
    yield dox.where(X > 2, 3.0, X[:1]), np.where(X > 2, np.float32(3), X[:1])
    for number in (2, jnp.full(4, 2)):
        for selected in select(number):
            yield selected, np.where(CUBE == 1, CUBE, 2)


def rows_of_nonzero():
    yield dox.nonzero(np.int8(5), size=2, fill_value=()), np.zeros((0, 2))
    yield dox.nonzero(X[:1], size=4, fill_value=(3, 2)), [[0, 0, 0, 3], [1, 2, 3, 2]]
    yield dox.nonzero(LINE, size=4, fill_value=np.int8(9)), [[1, 2, 9, 9]]
    last = min(2**32 - 1, jnp.iinfo(jnp.result_type(int)).max)
    fill = jnp.uint32(2**32 - 1)  # a fault: it wraps
    yield dox.nonzero(LINE, size=3, fill_value=fill), [[1, 2, last]]
    # With this fill, `x[x > 3] = -1` may have too large a size.
    places = tuple(dox.nonzero(X > 3, size=6, fill_value=X.shape))
    changed = jnp.asarray(X).at[places].set(-1, mode="drop")
    yield changed, np.where(X > 3, -1, X)


def rows_of_diagonals():
    far = np.array([2**63 - 1])
    ks = {-1: jnp.array([-1]), -9: -(2**40), 9: 2**31 - 1, 10: far}
    for near, k in ks.items():
        yield dox.trilu(CUBE, k), np.triu(CUBE, near)
        yield dox.trilu(X, k, upper=0), np.tril(X, near)
        yield dox.eye_like(CUBE[0], k=k), np.eye(3, 4, near, np.int8)
    for dtype in (np.int8(9), bool):
        yield dox.eye_like(X, dtype=dtype), np.eye(3, 4, dtype=bool)


def rows_of_compress():
    yield dox.compress(X, X[0, :2] == 0, axis=-2, size=2), [X[0], 0 * X[0]]
    first = np.array([0, 1, 1]) > 0
    yield dox.compress(CUBE, first, size=3, fill_value=7.9), np.int8([1, 2, 7])
    # Like ONNX Runtime, dmljax flattens and cuts the condition. NumPy's needs no size.
    square = np.array([[1, 0], [1, 1]]) > 0
    yield dox.compress(X, square, axis=0), X[[0, 2]]
    yield dox.compress(X, np.True_, axis=0), X[:1]
    fill = np.float32([7])
    filled = dox.compress(X, X[:, 0] > 3, axis=0, size=2, fill_value=fill)
    yield filled, np.float32([X[1], [7] * 4])
    yield dox.compress(jnp.full(4, 7), square), np.array([7, 7, 7])


@pytest.mark.parametrize(
    "rows",
    [
        rows_of_pad,
        rows_of_one_hot,
        rows_of_where,
        rows_of_nonzero,
        rows_of_diagonals,
        rows_of_compress,
    ],
)
def test_rows(rows, both_x64):
    """Runs all rows of a function as one program."""
    wanted = []

    @jax.jit
    def program():
        results, expected = zip(*rows(), strict=True)
        wanted.extend(map(np.asarray, expected))
        return results

    for ours, expected in zip(program(), wanted, strict=True):
        indices = "int64" if both_x64 else "int32"
        name = expected.dtype.name
        kept = name in ("float32", "int8", "int32", "bool")
        assert ours.dtype.name == (name if kept else indices)
        assert not jax.typeof(ours).weak_type
        assert ours.shape == expected.shape
        np.testing.assert_array_equal(ours, expected)


def test_calls_without_a_size():
    """Outside of ``jit`` all rows are returned; inside, a missing size is an error."""
    np.testing.assert_array_equal(dox.nonzero(X), np.nonzero(X))
    assert dox.nonzero(0.0).shape == (0, 0)
    np.testing.assert_array_equal(dox.compress(X, X[0] > 1, axis=1), X[:, 2:])
    for call in (dox.nonzero, lambda x: dox.compress(x, x[:, 0])):
        with pytest.raises(jax.errors.ConcretizationTypeError, match="needs size="):
            jax.jit(call)(X)


def test_symbolic_sizes():
    @jax.jit
    def program(x):
        lit = dox.one_hot(x, x.shape[0], OFF_ON)
        triangle = dox.trilu(lit, x.shape[0] - 2)
        chosen = dox.compress(triangle, x[0], axis=1, size=3)
        ends = [-1, 0, 2, x.shape[1]]
        padded = dox.pad(dox.where(x > 1, x, x[:1]), ends, mode="edge")
        return chosen, padded, dox.nonzero(x, size=12, fill_value=x.shape)

    sizes = jax.export.symbolic_shape("a, b", constraints=["a >= 2"])
    exported = jax.export.export(program)(struct(np.float32, *sizes))
    shapes = [str(out.shape) for out in exported.out_avals]
    assert shapes == ["(a, 3, a)", "(a + 1, 2*b)", "(2, 12)"]
    assert_equal(exported.call(X), program(X))


INTEGER = "must be an integer that is known"
LONG = 2**40 + np.arange(3)


def refused(function, text, *arrays, error=DescriptorError, **options):
    name = f"dmljax.onnx.{function.__name__}"
    assert_refused(name, text, function, *arrays, error=error, **options)


def test_errors_of_pad():
    pad = partial(refused, dox.pad)
    for mode in ("mean", np.array(["edge", "wrap"]), "edge" * 999):
        pad("mode is ...; it must be one of", X, [1] * 4, mode=mode)
    pad("pads has 5 elements; 2 axes need 4.", X, [1] * 5)
    pad("an element of axes is 2; it must be in [-2, 2).", X, [1, 1], axes=[2])
    pad("axes is [-1...(298 characters); none may", X, [1], axes=[-1] + [1] * 98)
    pad("axes must be a sequence", X, [1, 1], axes=1, error=TypeError)
    pad("pads leaves -1 elements of data along axis 0;", X, [-4, 0, 5, 0])
    text = "pads leaves 0 elements of data along axis 1; wrap needs at least 1."
    pad(text, X, [1, -4], axes=[1], mode="wrap")
    pad(f"pads {INTEGER}", X, [1.0] * 4, error=TypeError)
    refused(jax.jit(dox.pad), "pads is traced; it must", X, LONG, error=TypeError)
    pad("constant_value has data type FLOAT32", CUBE, [0] * 6, X[0, 0])
    pad("constant_value has sizes {4}; it must be one number.", X, [0] * 4, X[0])


def test_errors_of_one_hot():
    hot = partial(refused, dox.one_hot)
    hot("values has sizes {1,2}; it must have {2}, off and on.", X, 3, OFF_ON[None])
    hot("depth is 0; it must be at least 1.", X, 0.9, OFF_ON)
    hot("depth has sizes {3}; it must be one number.", X, LONG, OFF_ON)
    hot(f"depth {INTEGER}", X, np.nan, OFF_ON, error=TypeError)
    hot("indices has data type BOOL; it must have integers or", X > 1, 3, OFF_ON)
    hot("axis is 3; it must be in [-3, 3).", X, 3, OFF_ON, axis=3)


def test_errors_of_where():
    where = partial(refused, dox.where)
    text = "x has FLOAT32, while y has INT8; ...y.astype('float32')."
    refused(jax.jit(dox.where), text, X > 1, X, CUBE[0])
    text = "condition has sizes {2,4}, x has sizes {}, y has sizes {3,4}; counted from"
    where(text, np.ones((2, 4), bool), 0, X)
    text = f"the result would have sizes {{1048576,1048576,1048576}}, {2**60} elements"
    line = np.ones(2**20, np.int8)
    where(text, line[:, None, None] > 0, line[:, None], line)


def test_errors_of_nonzero_and_compress():
    nonzero = partial(refused, dox.nonzero, size=3)
    text = (
        "fill_value is (Array(1, dtype=int32),); it must be a scalar or a tuple of 2."
    )
    nonzero(text, X, fill_value=(1,))
    text = "fill_value is of type ...; it must be an integer."
    for fill in (0.5, True):
        nonzero(text, X, fill_value=fill, error=TypeError)
    compress = partial(refused, dox.compress, axis=1, size=2)
    compress("fill_value has data type INT8, while", X, X[0], fill_value=np.int8(1))
    text = "fill_value has sizes {4}; it must be one number."
    nonzero(text, X, fill_value=X[0])
    compress(text, X, X[0], fill_value=X[0])
    refused(dox.compress, "axis is -3; it must be in [-2, 2).", X, X[0], axis=-3)


def test_errors_of_diagonals():
    trilu = partial(refused, dox.trilu)
    trilu("x has sizes {4}; it must have at least 2 dim", X[0])
    for upper in (2, X[0], "x" * 999):
        trilu("upper is...; it must be True or False.", X, upper=upper)
    trilu("k has sizes {3}; it must be one number.", X, LONG)
    text = "k has data type FLOAT32; it must have an integer type."
    trilu(text, X, jnp.float32(1), error=TypeError)
    eye_like = partial(refused, dox.eye_like)
    eye_like("x has sizes {2,3,4}; it must have two dim", CUBE)
    eye_like(f"k {INTEGER}", X, k=0.5, error=TypeError)
    for dtype in (8, np.int8(-1), 17):
        eye_like("dtype is", X, dtype=dtype, error=TypeError)
    eye_like("the result (dtype) has data type FLOAT64, which needs", X, dtype=11)


# The types of the numbers 1 to 16, typed a second time. Number 8 is a string.
TYPES = (
    "float32 uint8 int8 uint16 int16 int32 int64 . bool float16 float64 uint32 uint64 "
    "complex64 complex128 bfloat16"
)


def test_types_and_devices_of_eye_like(x64):
    x = jax.device_put(X, jax.devices()[-1])
    for number, name in enumerate(TYPES.split(), 1):
        if name != ".":
            assert jax.eval_shape(partial(dox.eye_like, dtype=number), x).dtype == name
    assert dox.eye_like(x).devices() == x.devices()


@pytest.mark.parametrize("name", dox.__all__)
def test_nodes_of_onnx(name, x64):
    """ONNX's tests with a single node."""
    operator = name.replace("_", "")
    helper = pytest.importorskip("onnx.helper")
    node = pytest.importorskip("onnx.backend.test.case.node")
    # We import the tests of few operators; ONNX's collect_testcases would make all.
    # NumPy warns while some are made.
    with warnings.catch_warnings(action="ignore"):
        importlib.import_module(f"{node.__name__}.{operator}")
    results = []
    for case in node._NodeTestCases:
        first, *rest = case.model.graph.node
        if first.op_type.lower() != operator or rest:
            continue
        attributes = {a.name: helper.get_attribute_value(a) for a in first.attribute}
        if "mode" in attributes:
            attributes["mode"] = attributes["mode"].decode()
        for inputs, (expected,) in case.data_sets:
            results.append(getattr(dox, name)(*inputs, **attributes))
            np.testing.assert_array_equal(results[-1], expected, strict=True)
    assert results
