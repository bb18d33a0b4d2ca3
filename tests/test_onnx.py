"""dmljax.onnx: a call gives what ONNX's node gives, by its own tests and reference.

Where ONNX is not installed, the table of calls is what remains.
"""

import importlib
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dmljax.onnx as dox
from dmljax import DescriptorError
from tests.checks import assert_refused, reference_node

X = np.arange(12, dtype=np.float32).reshape(3, 4) % 5
CUBE = np.arange(24, dtype=np.int8).reshape(2, 3, 4) % 3
PADS, AXIS = np.array([2, 1]), np.array([-1])  # 64 bits: they are static
LABELS = np.int32([[2, -1], [-3, 9]])
FLOATS = np.float32([0.9, -1.9, -0.5, np.nan, np.inf, -3e9, 1e30, 2])
OFF_ON = np.int8([7, -7])


def lit(indices, depth, off_on=OFF_ON):
    """The sequences of indices. None lights nothing."""
    rows = [[off_on[int(i == n)] for i in range(depth)] for n in indices]
    return np.array(rows, off_on.dtype)


@jax.jit
def traced(number):
    return dox.where(CUBE == 1, CUBE, number)


# What a program computes, and what it must give.
ROWS = [
    # pad
    (lambda: dox.pad(X, [1, 0, 2, 3]), np.pad(X, ((1, 2), (0, 3)))),
    (lambda: dox.pad(X, PADS, None, AXIS), np.pad(X, ((0, 0), (2, 1)))),
    (lambda: dox.pad(X, PADS, 7, [0]), np.pad(X, ((2, 1), (0, 0)), constant_values=7)),
    (lambda: dox.pad(X, [], 7, []), X),
    (lambda: dox.pad(np.float32(3), []), np.float32(3)),
    (lambda: dox.pad(CUBE, [-1, 1], np.int8(9), [0]), [CUBE[1], 0 * CUBE[0] + 9]),
    (lambda: dox.pad(X, [-1, -2, 0, 3]), np.pad(X[1:, 2:], ((0, 0), (0, 3)))),
    (lambda: dox.pad(X, [-3, -1], axes=(1,)), X[:, 3:3]),
    (
        lambda: dox.pad(X, [0, 5, -2, -3], mode="wrap"),
        np.pad(X[:1, :1], ((0, 0), (5, 0)), "wrap"),
    ),
    *(
        (
            lambda mode=mode: dox.pad(CUBE, (9, 3, 0, 5), axes=(2, -2), mode=mode),
            np.pad(CUBE, ((0, 0), (3, 5), (9, 0)), mode),
        )
        for mode in ("edge", "reflect", "wrap")
    ),
    # one_hot
    (lambda: dox.one_hot(LABELS, 3, OFF_ON)[0], lit([2, 2], 3)),
    (lambda: dox.one_hot(LABELS, np.array([3]), OFF_ON)[1], lit([0, None], 3)),
    (lambda: dox.one_hot(LABELS, 3.9, OFF_ON, axis=0)[:, 0], lit([2, 2], 3).T),
    (lambda: dox.one_hot(LABELS, 3, OFF_ON, axis=-2)[0], lit([2, 2], 3).T),
    (
        lambda: dox.one_hot(FLOATS, np.float32(3), OFF_ON),
        lit([0, 2, 0, None, None, None, None, 2], 3),
    ),
    (lambda: dox.one_hot(np.uint8(255), 300, OFF_ON), lit([255], 300)[0]),
    # where
    (lambda: dox.where(X > 2, X, X[:1]), np.where(X > 2, X, X[:1])),
    (lambda: dox.where(X[:, :1] > 1, X[0], 1.0), np.where(X[:, :1] > 1, X[0], 1)),
    (lambda: dox.where(np.True_, CUBE[0], CUBE), CUBE[[0, 0]]),
    (lambda: dox.where(True, 3.0, X), 0 * X + 3),
    (lambda: traced(2), np.where(CUBE == 1, CUBE, 2)),
    (lambda: traced(jnp.full(4, 2)), np.where(CUBE == 1, CUBE, 2)),
    # nonzero
    (lambda: dox.nonzero(X, size=9), np.stack(np.nonzero(X))),
    (lambda: dox.nonzero(CUBE[0, 0], size=4), [[1, 2, 0, 0]]),
    (lambda: dox.nonzero(np.int8(5), size=1), np.zeros((0, 1))),
    # trilu
    *((lambda k=k: dox.trilu(X, k), np.triu(X, k)) for k in (0, -1, np.int64(2))),
    *((lambda k=k: dox.trilu(CUBE, k, upper=0), np.tril(CUBE, k)) for k in (0, -2)),
    *((lambda k=k: dox.trilu(X, k), X if k < 0 else 0 * X) for k in (-(2**40), 2**31)),
    (lambda: dox.trilu(X, np.array([2**63 - 1]), upper=False), X),
    # eye_like
    (lambda: dox.eye_like(CUBE[0]), np.eye(3, 4, dtype=np.int8)),
    (lambda: dox.eye_like(X, dtype=6, k=-1), np.eye(3, 4, -1, np.int32)),
    (lambda: dox.eye_like(X, dtype=bool, k=np.array(2)), np.eye(3, 4, 2, bool)),
    *((lambda k=k: dox.eye_like(X, k=k), 0 * X) for k in (-(2**40), 2**31 - 1, 2**40)),
    # compress
    (lambda: dox.compress(X, X[0] > 1, axis=1, size=2), X[:, 2:4]),
    (lambda: dox.compress(X, X[0, :2] == 0, axis=-2, size=2), [X[0], 0 * X[0]]),
    (lambda: dox.compress(CUBE, np.array([0, 1, 1]) > 0, size=3), np.int8([1, 2, 0])),
]
KEPT = {"float32", "int8", "int32", "bool"}


@pytest.mark.parametrize("x64", [False, True])
def test_rows(x64):
    with jax.enable_x64(x64):
        results = jax.jit(lambda: [call() for call, _ in ROWS])()
    for ours, (_, given) in zip(results, ROWS, strict=True):
        expected = np.asarray(given)
        indices = "int64" if x64 else "int32"
        name = expected.dtype.name
        assert ours.dtype.name == (name if name in KEPT else indices)
        assert not jax.typeof(ours).weak_type
        assert ours.shape == expected.shape
        np.testing.assert_array_equal(ours, expected)


def test_calls_without_a_size():
    """Outside of ``jit`` there are as many as there are, and inside an error."""
    np.testing.assert_array_equal(dox.nonzero(X), np.nonzero(X))
    assert dox.nonzero(0.0).shape == (0, 0)
    np.testing.assert_array_equal(dox.compress(X, X[0] > 1, axis=1), X[:, 2:])
    for call in (dox.nonzero, lambda x: dox.compress(x, x[:, 0])):
        with pytest.raises(jax.errors.ConcretizationTypeError, match="needs size="):
            jax.jit(call)(X)


def test_constants_of_jax_are_static():
    pads, axes, k, depth = map(jnp.array, ([1, 2], [0], [1], [5.0]))
    program = jax.jit(
        lambda x: (
            dox.pad(x, pads, axes=axes, mode="wrap"),
            dox.trilu(x, k),
            dox.one_hot(x, depth, OFF_ON),
            dox.eye_like(x, k=k),
        )
    )
    shapes = [y.shape for y in program(X)]
    assert shapes == [(6, 4), (3, 4), (3, 4, 5), (3, 4)]


def test_symbolic_sizes():
    def program(x):
        lit = dox.one_hot(x, x.shape[0], OFF_ON)
        chosen = dox.compress(dox.trilu(lit), x[0], axis=1, size=3)
        ends = [-1, 0, 2, x.shape[1]]
        return chosen, dox.pad(dox.where(x > 1, x, x[:1]), ends, mode="edge")

    sizes = jax.export.symbolic_shape("a, b", constraints=["a >= 2"])
    described = jax.ShapeDtypeStruct(sizes, np.float32)
    exported = jax.export.export(jax.jit(program))(described)
    results = exported.call(X)
    shapes = [str(out.shape) for out in exported.out_avals]
    assert shapes == ["(a, 3, a)", "(a + 1, 2*b)"]
    for one, other in zip(results, program(X), strict=True):
        np.testing.assert_array_equal(one, other)


def ours(x, v, chosen):
    return [
        dox.pad(x, [-1, 0, 1, 2], v[0]),
        dox.pad(x, [-1, 3, 0, 2], mode="reflect"),
        dox.where(x > 1, x, v),
        dox.where(chosen > 0, v, x),
        dox.compress(x, chosen, axis=1, size=3),
        dox.trilu(x, 1),
        dox.one_hot(LABELS, 3, v[1:3]),
    ]


def theirs(x, v, chosen):
    rows = jnp.broadcast_to(v, x.shape)
    columns = jnp.broadcast_to(chosen, x.shape)
    return [
        jnp.pad(x[1:], ((0, 1), (0, 2)), constant_values=v[0]),
        jnp.pad(x[1:], ((0, 0), (3, 2)), mode="reflect"),
        jnp.where(x > 1, x, rows),
        jnp.where(columns > 0, rows, x),
        jnp.compress(chosen, x, axis=1, size=3),
        jnp.triu(x, 1),
        jnp.where(jax.nn.one_hot(np.int32([[2, 2], [0, 9]]), 3) > 0, v[2], v[1]),
    ]


def test_transformations():
    """Batches and gradients, beside the same program in jax.numpy."""
    vectors = np.float32([[5, 6, 7, 8], [1, 2, 3, 4]])
    batch = np.stack([X, X[::-1]]), vectors, np.float32([[0, 1, 1, 0], [1, 1, 1, 0]])

    def differentiate(program):
        def pull(x, v, chosen):
            outputs, pullback = jax.vjp(lambda x, v: program(x, v, chosen), x, v)
            weights = [jnp.arange(y.size, dtype=y.dtype) for y in outputs]
            shaped = [w.reshape(y.shape) for w, y in zip(weights, outputs, strict=True)]
            return outputs, pullback(shaped)

        return jax.jit(jax.vmap(pull))(*batch)

    found, wanted = map(differentiate, (ours, theirs))
    jax.tree.map(np.testing.assert_array_equal, found, wanted)


WIDE = np.arange(3)


def call(*arrays, error=DescriptorError, **options):
    return arrays, options | {"error": error}


INTEGER = "must be an integer that is known"
ERRORS = {
    "pad": {
        "data...must be an array": call([1], [1, 1], error=TypeError),
        "mode is 'mean'; it must be one of": call(X, [1] * 4, mode="mean"),
        "mode is [1]; it must be one of": call(X, [1] * 4, mode=[1]),
        "pads has 3 elements; it must have 2 for each of 2 axes.": call(X, WIDE),
        "an element of axes is 2; it must be in [-2, 2).": call(X, [1, 1], axes=[2]),
        "axes is [1, -1]; none may occur": call(X, [1] * 4, axes=[1, -1]),
        "axes must be a sequence": call(X, [1, 1], axes=1, error=TypeError),
        "pads leaves -1 elements of data along axis 0;": call(X, [-4, 0, 5, 0]),
        "pads leaves 0 elements of data along axis 1; edge needs at least 1.": call(
            X, [-4, 1], axes=[1], mode="edge"
        ),
        f"pads {INTEGER}": call(X, [1.0] * 4, error=TypeError),
        "pads must be a sequence": call(X, 1, error=TypeError),
        "constant_value has data type FLOAT32": call(CUBE, [0] * 6, X[0, 0]),
        "constant_value has sizes {4}; it must be a scalar": call(X, [0] * 4, X[0]),
    },
    "one_hot": {
        "indices...has data type INT64, which needs": call(WIDE, 3, OFF_ON),
        "values has sizes {3,4}; it must have {2}.": call(X, 3, X),
        "depth is 0; it must be at least 1.": call(X, 0.9, OFF_ON),
        "depth has sizes {3}; it must be one number.": call(X, WIDE, OFF_ON),
        f"depth {INTEGER}": call(X, np.nan, OFF_ON, error=TypeError),
        "axis is 3; it must be in [-3, 3).": call(X, 3, OFF_ON, axis=3),
    },
    "where": {
        "data types...x...has FLOAT32, while...y...has INT8": call(X > 1, X, CUBE[0]),
        "condition...must be a number or an array": call(None, X, X, error=TypeError),
    },
    "nonzero": {"x...has data type INT64, which needs": call(WIDE)},
    "trilu": {
        "x has sizes {4}; it must have at least two.": call(X[0]),
        "upper is 2; it must be True or False.": call(X, upper=2),
        f"k {INTEGER}": call(X, 0.5, error=TypeError),
        "k has sizes {3}; it must be one number.": call(X, WIDE),
    },
    "eye_like": {
        "x has sizes {2,3,4}; it must have two.": call(CUBE),
        "dtype...'string'...data type": call(X, dtype=8, error=TypeError),
        "dtype...99...data type": call(X, dtype=99, error=TypeError),
        f"k {INTEGER}": call(X, k=0.5, error=TypeError),
    },
    "compress": {
        "condition has sizes {3,4}; it must have one, at most 3.": call(X, X, axis=0),
        "condition has sizes {4}; it must have one, at most 3.": call(X, X[0], axis=-2),
        "axis is -3; it must be in [-2, 2).": call(X, X[0], axis=-3),
    },
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    for text, (arrays, options) in ERRORS[name].items():
        function = getattr(dox, name)
        assert_refused(f"dmljax.onnx.{name}", text, function, *arrays, **options)


@pytest.mark.parametrize(
    ("name", "argument", "program"),
    [
        ("pad", "pads", lambda n: dox.pad(X, n)),
        ("pad", "axes", lambda n: dox.pad(X, [1, 2], axes=n)),
        ("one_hot", "depth", lambda n: dox.one_hot(X, n, OFF_ON)),
        ("trilu", "k", lambda n: dox.trilu(X, n)),
        ("eye_like", "k", lambda n: dox.eye_like(X, k=n)),
    ],
)
def test_what_must_be_static(name, argument, program):
    text = f"{argument} is traced; it must be"
    traced = jax.jit(program)
    assert_refused(f"dmljax.onnx.{name}", text, traced, np.int32([1]), error=TypeError)


# ONNX's own nodes, as it calls them. The inputs that are constants are counted from 0.
NODES = {
    "Pad": (dox.pad, {1, 3}),
    "OneHot": (dox.one_hot, {1}),
    "Where": (dox.where, {}),
    "NonZero": (dox.nonzero, {}),
    "Trilu": (dox.trilu, {1}),
    "EyeLike": (dox.eye_like, {}),
    "Compress": (dox.compress, {}),
}


def run_node(operator, inputs, attributes, expected):
    """A node under ``jit``, with the size that its output has."""
    if operator in ("NonZero", "Compress"):
        axis = attributes.get("axis", -1)
        attributes = attributes | {"size": expected.shape[axis]}
    return NODES[operator][0](*inputs, **attributes)


def data_of(operator, inputs):
    return {i: x for i, x in enumerate(inputs) if i not in NODES[operator][1]}


@pytest.fixture(scope="module")
def cases():
    """The tests of ONNX that have one node each."""
    node = pytest.importorskip("onnx.backend.test.case.node")
    # ONNX's collect_testcases would make those of all its operators. NumPy warns of how
    # some are made.
    with warnings.catch_warnings(action="ignore"):
        for operator in NODES:
            importlib.import_module(f"{node.__name__}.{operator.lower()}")
    return [case for case in node._NodeTestCases if len(case.model.graph.node) == 1]


@pytest.mark.parametrize("operator", NODES)
def test_nodes_of_onnx(operator, cases, x64):
    helper = pytest.importorskip("onnx.helper")
    chosen = []
    for case in cases:
        (node,) = case.model.graph.node
        if node.op_type == operator:
            values = [(a.name, helper.get_attribute_value(a)) for a in node.attribute]
            attributes = {k: v.decode() if k == "mode" else v for k, v in values}
            chosen += [(*pair, attributes) for pair in case.data_sets]

    def program(data):
        return [
            run_node(operator, (dict(enumerate(inputs)) | x).values(), attributes, y)
            for (inputs, (y,), attributes), x in zip(chosen, data, strict=True)
        ]

    results = jax.jit(program)([data_of(operator, inputs) for inputs, *_ in chosen])
    assert results
    for ours, (_, (expected,), _) in zip(results, chosen, strict=True):
        assert (ours.dtype, ours.shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(ours, expected)


def draw_node(rng, x):
    """A random node that takes an array: its other inputs, and its attributes."""
    rank, axis = x.ndim, int(rng.integers(-x.ndim, x.ndim))
    matrices = {2: [], 1: ["Trilu", "EyeLike"]}.get(rank, ["EyeLike"])
    operator = str(rng.choice([name for name in NODES if name not in matrices]))
    inputs, attributes = [x], {}
    if operator == "Pad":
        axes = rng.permutation(rank)[: rng.integers(1, rank + 1)] - rank
        value = x.dtype.type(rng.integers(2))
        inputs += [rng.integers(0, 5, 2 * len(axes)), value, axes]
        attributes["mode"] = str(rng.choice(["constant", "edge", "reflect", "wrap"]))
    elif operator == "OneHot":
        depth = max(int(x.max()) + 1, -int(x.min())) + rng.integers(1, 3)
        inputs += [np.array(depth), rng.integers(-9, 9, 2).astype(np.int32)]
        attributes["axis"] = axis
    elif operator == "Where":
        row = rng.integers(-3, 3, x.shape[-1:]).astype(x.dtype)
        condition = rng.integers(0, 2, (2, *(1,) * (rank - 1), x.shape[-1])) > 0
        inputs = [condition, *[x, row][:: rng.choice([-1, 1])]]
    elif operator == "Trilu":
        inputs += [np.array(rng.choice([-2, 0, 1, 9, -(2**40), 2**40]))]
        attributes["upper"] = int(rng.integers(2))
    elif operator == "EyeLike":
        attributes["k"] = int(rng.integers(-4, 5))
        attributes |= {"dtype": int(rng.choice([1, 6, 7, 11]))} if axis else {}
    elif operator == "Compress":
        attributes |= {"axis": axis} if rng.integers(4) else {}
        most = x.shape[axis] if attributes else x.size
        inputs += [rng.integers(0, 2, rng.integers(1, most + 1)) > 0]
    return operator, inputs, attributes


@pytest.mark.parametrize("seed", range(4))
def test_random_graphs(seed, x64):
    """A graph of twelve nodes as one program, beside ONNX's reference."""
    pytest.importorskip("onnx.reference")
    rng = np.random.default_rng(seed)
    tensors = [rng.integers(-3, 4, (3, 4)).astype(["float32", "int32"][seed % 2])]
    nodes = []
    while len(nodes) < 12:
        place = int(rng.integers(len(tensors)))
        x = tensors[place]
        if 1 <= x.ndim <= 3 and 1 <= x.size <= 400:
            operator, inputs, attributes = draw_node(rng, x)
            tensors.append(reference_node(operator)(*inputs, **attributes))
            nodes.append((operator, place, inputs, attributes))

    @jax.jit
    def program(x):
        results = [x]
        for n, (operator, place, inputs, attributes) in enumerate(nodes):
            given = [results[place] if i is tensors[place] else i for i in inputs]
            results.append(run_node(operator, given, attributes, tensors[n + 1]))
        return results

    for ours, expected in zip(program(tensors[0]), tensors, strict=True):
        assert (ours.dtype, ours.shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(ours, expected)
