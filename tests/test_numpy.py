"""dmljax.numpy: a call gives what its twin in jax.numpy or jax.nn gives.

The table of calls is for both. NumPy's own tests of these functions run here as well.
"""

import functools
import importlib
import itertools
import re
import types
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, PartitionSpec

import dmljax.numpy as dnp
from tests.checks import eight_devices
from tests.samples import NUMPY as MODES

# Arrays of NumPy, most of 64 bits. They become 32 bits where x64 mode is off.
X = np.arange(12).reshape(3, 4) % 5 * 1.5
CUBE = np.arange(24).reshape(2, 3, 4) % 3
COUNTS = np.array([3, 0, 0, 7, -1])
NUMBERS = np.array([0.0, -0.0, np.nan, np.inf, 2, 0.5, -1, 1e30])
INDICES = np.array([[0, 2, -1], [-3, 3, 1]])
EMPTY, FLAT = np.zeros((0, 3)), np.ones((1, 3))
PAIRS = ((1, 2), (0, 3))
VALUES = (-2.7, 300, (5, 6), [[5, 6]], ((5, 6), (7, 8)), ((5,), (6,)), np.bool(1))
TYPES = "bool int8 uint8 int16 uint16 int32 uint32 float16 bfloat16 float32 complex64"


def call(*arrays, **options):
    return arrays, options


SEARCHED = [
    *(call(x, size=14) for x in (X, CUBE, NUMBERS, EMPTY, 1j + X)),
    call(X, size=np.array(14)),
    *(call(X > 3, size=size, fill_value=-1) for size in (0, 3, 4, 14)),
    call(EMPTY, size=3, fill_value=7),
]
# Each list is one program: a call that is to return fewer than all elements has a size.
CALLS = {
    "pad": [
        *(call(X, pad_width=width) for width in (0, 2, (1, 2), PAIRS, (PAIRS[0],))),
        *(call(X, pad_width=np.array(PAIRS, dtype)) for dtype in ("int64", "uint8")),
        *(call(x, ((4, 5), (0, 9)), mode) for x in (X, FLAT) for mode in MODES),
        *(call(EMPTY, ((0, 0), (1, 2)), mode) for mode in MODES),
        *(call(np.int8(5), width) for width in (0, 3)),
        *(call(x, PAIRS, constant_values=v) for x in (X, CUBE[0] > 1) for v in VALUES),
        *(call(X.astype(np.int8), 1, constant_values=v) for v in VALUES),
    ],
    "nonzero": [*SEARCHED, call(X, size=14, fill_value=(7, -8))],
    "argwhere": [
        *(call(np.array(x), size=2, fill_value=9) for x in (0, 5)),
        SEARCHED[1],
    ],
    "flatnonzero": SEARCHED[-4:],
    "extract": [
        call(X > 1, X, size=3),
        call(np.array([0.5, 0, np.nan]), CUBE, size=3, fill_value=-7.9),
        call(CUBE, 1j + CUBE, size=20, fill_value=300),
    ],
    "compress": [
        *(call(COUNTS, x, size=4, fill_value=9) for x in (X, X > 3)),
        *(call(COUNTS[:n], CUBE, axis, size=1) for n in (1, 3) for axis in (0, -2)),
        call(COUNTS, CUBE, axis=2, size=4, fill_value=np.arange(3)),
        call(COUNTS, np.int16(5), size=1, fill_value=300),
        call(COUNTS, EMPTY, axis=0, size=0),
    ],
    "tril": [call(x, k) for x in (X, CUBE, EMPTY) for k in (-9, -1, 0, np.int64(2), 9)],
    "one_hot": [
        *(call(INDICES, 3, axis=axis) for axis in (0, 1, 2, -1, -3)),
        *(call(INDICES, n) for n in (0, 1, 300)),
        *(call(INDICES, 3, dtype=d) for d in (bool, int, float, np.int8, jnp.bfloat16)),
        *(call(x, 3) for x in (1, [0, 2], NUMBERS, 1j + NUMBERS[-4:])),
        *(call(INDICES.astype(d), 100) for d in ("int8", "uint8", "uint32", "int64")),
    ],
}
CALLS["triu"] = CALLS["tril"]


def twin(name):
    return jax.nn.one_hot if name == "one_hot" else getattr(jnp, name)


def assert_alike(ours, theirs, given=""):
    """Same values, types and sizes. Results of jax.numpy may be weakly typed."""
    pairs = zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True)
    for one, other in pairs:
        assert (one.dtype, one.shape) == (other.dtype, other.shape), given
        np.testing.assert_array_equal(one, other, str(given))


# jax.nn.one_hot warns of floats.
@pytest.mark.filterwarnings("ignore:jax.nn.one_hot input should be integer-typed")
@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_programs(name, x64):
    def run(function):
        return jax.jit(lambda: [function(*a, **o) for a, o in CALLS[name]])()

    with jax.enable_x64(x64):
        results = run(getattr(dnp, name)), run(twin(name))
    for given, ours, theirs in zip(CALLS[name], *results, strict=True):
        assert_alike(ours, theirs, given)


@pytest.mark.parametrize(
    ("name", "arrays"),
    [
        ("argwhere", (X,)),
        ("nonzero", (CUBE > 5,)),
        ("flatnonzero", (EMPTY,)),
        ("extract", (COUNTS[:2], X)),
        ("compress", (COUNTS[:4], CUBE, 2)),
    ],
)
def test_calls_without_a_size(name, arrays):
    function = getattr(dnp, name)
    assert_alike(function(*arrays), twin(name)(*arrays))
    first, *others = map(jnp.asarray, arrays[:2])
    batch = jnp.stack([first] * 2)
    for run, x in ((jax.jit, first), (jax.vmap, batch)):
        with pytest.raises(jax.errors.ConcretizationTypeError, match="needs size="):
            run(lambda x: function(x, *others))(x)


@pytest.mark.parametrize("x64", [False, True])
def test_types(x64):
    names = "int64 uint64 float64 complex128" if x64 else TYPES

    def run(library):
        def results(x):
            padded = library.pad(x, PAIRS, "reflect"), library.pad(x, PAIRS)
            found = library.nonzero(x, size=9), library.extract(x, x, size=9)
            return padded, found, library.tril(x), library.triu(x, 1)

        return jax.jit(lambda: [results(CUBE[0].astype(name)) for name in types])()

    types = [jnp.dtype(name) for name in names.split()]
    with jax.enable_x64(x64):
        assert_alike(run(dnp), run(jnp))


def differentiate(library, x, rows):
    """The gradient of everything that has one, and of values that are added."""

    def results(x, values):
        chosen = (x > 1).astype(np.int8)
        return [
            library.extract(chosen, x, size=9, fill_value=values[0, 0]),
            library.compress(rows, x, 1, size=3, fill_value=2),
            library.tril(x, 1),
            library.triu(x),
            library.pad(x, PAIRS, constant_values=values),
            *(library.pad(x, PAIRS, mode) for mode in MODES),
        ]

    outputs, pull = jax.vjp(results, x, jnp.ones((2, 2)))
    weights = [jnp.arange(y.size, dtype=y.dtype).reshape(y.shape) for y in outputs]
    return outputs, pull(weights)


def find(library, x, rows):
    columns = library.nonzero(x, size=9, fill_value=-1)
    return library.argwhere(x, size=9), columns, library.compress(rows, x, 1, size=2)


@pytest.mark.parametrize("program", [differentiate, find])
def test_transformations(program):
    batch = np.stack([X, X[::-1], 0 * X]), np.array([[0, 1, 1, 0]] * 3)
    batch = [x.astype(np.float32) for x in batch]
    mesh = eight_devices(AxisType.Auto)
    parts = [np.concatenate([x] * 8) for x in (batch[0][0], batch[1][0])]
    spec = PartitionSpec("batch")

    def run(library):
        call = functools.partial(program, library)
        divided = jax.shard_map(call, mesh=mesh, in_specs=spec, out_specs=spec)
        outputs = jax.jit(divided)(*parts) if program is find else ()
        return jax.jit(jax.vmap(call))(*batch), outputs

    assert_alike(run(dnp), run(jnp))


def test_gradients_outside_of_jit():
    """The rows are found in numbers: no size is needed."""
    gradient = jax.grad(
        lambda x: (x[dnp.nonzero(x)] ** 2).sum() + dnp.extract(x > 1, x)[0]
    )
    np.testing.assert_array_equal(gradient(jnp.array([0.0, 1, 3])), [0, 2, 7])


def test_differences():
    """What jax.numpy can't do, or does wrong."""
    for far in (2**31 - 1, 2**31, 2**40):
        assert_alike(dnp.tril(X, far), jnp.asarray(X))
        assert_alike(dnp.triu(X, -far), jnp.asarray(X))
        assert not dnp.triu(X, far).any()
        assert not dnp.tril(X, -far).any()
    assert dnp.flatnonzero(np.float32([0, 1e-45])).tolist() == [1]
    for index in (np.int8(-1), np.uint8(4), jnp.int4(4), jnp.bfloat16(4)):
        lit = jnp.arange(300) == (4 if index > 0 else -1)
        assert_alike(dnp.one_hot(index, 300, dtype=bool), lit)
    assert dnp.compress(COUNTS, COUNTS, size=7).tolist() == [3, 7, -1, 0, 0, 0, 0]


LISTS = " is list; it must be an array"
ERRORS = [
    (NotImplementedError, "Use jax.numpy.pad", lambda: dnp.pad(X, 1, "linear_ramp")),
    (NotImplementedError, "Use jax.numpy.pad", lambda: dnp.pad(X, 1, np.pad)),
    (NotImplementedError, "odd", lambda: dnp.pad(X, 1, "edge", reflect_type="odd")),
    (NotImplementedError, "Use jax.nn", lambda: dnp.one_hot(X, 3, axis="i")),
    (TypeError, "pad: array" + LISTS, lambda: dnp.pad([1], 1)),
    (TypeError, "tril: m" + LISTS, lambda: dnp.tril([[1]])),
    (TypeError, "nonzero: a" + LISTS, lambda: dnp.nonzero([1])),
    (TypeError, "argwhere: a" + LISTS, lambda: dnp.argwhere([1])),
    (TypeError, "flatnonzero: a" + LISTS, lambda: dnp.flatnonzero([1])),
    (TypeError, "extract: condition" + LISTS, lambda: dnp.extract([True], COUNTS)),
    (TypeError, "extract: arr" + LISTS, lambda: dnp.extract(COUNTS, [1])),
    (
        TypeError,
        "compress: fill_value" + LISTS,
        lambda: dnp.compress(COUNTS, COUNTS, fill_value=[1]),
    ),
    (TypeError, "is NoneType", lambda: dnp.nonzero(None)),
    (TypeError, "pad_width must be an integer", lambda: dnp.pad(X, 1.5)),
    (TypeError, "pad_width must be an integer", lambda: dnp.pad(X, {0: 1})),
    (TypeError, "pad_width is True", lambda: dnp.pad(X, True)),
    (TypeError, "num_classes must be an integer", lambda: dnp.one_hot(X, 2.0)),
    (TypeError, "one_hot: x has elem", lambda: dnp.one_hot(jax.random.key(0), 3)),
    (TypeError, "one_hot: dtype is <U3", lambda: dnp.one_hot(X, 3, dtype="U3")),
    (TypeError, "'float' object", lambda: dnp.triu(X, 0.5)),
    (ValueError, "none may be negative", lambda: dnp.pad(X, (1, -1))),
    (ValueError, "pad_width has sizes", lambda: dnp.pad(X, (1, 2, 3))),
    (ValueError, "values has sizes", lambda: dnp.pad(X, 1, constant_values=(1, 2, 3))),
    (ValueError, "nothing to repeat", lambda: dnp.pad(EMPTY, 1, "edge")),
    (ValueError, "atleast_1d", lambda: dnp.nonzero(np.array(3))),
    (ValueError, "a tuple of 2", lambda: dnp.nonzero(X, size=9, fill_value=(1, 2, 3))),
    (ValueError, "a tuple of 2", lambda: dnp.nonzero(X, size=9, fill_value=[1, 2])),
    (ValueError, "2 dimensions; it must have 1", lambda: dnp.compress(X, X)),
    (ValueError, "past the end", lambda: dnp.compress(COUNTS, COUNTS[:4])),
    (ValueError, "1 dimension; it must have at least", lambda: dnp.triu(COUNTS)),
]


@pytest.mark.parametrize(("error", "text", "wrong"), ERRORS)
def test_errors(error, text, wrong):
    with pytest.raises(error, match=text):
        wrong()


# NumPy's own tests, by module. jax.numpy takes no objects, lists, dictionaries and long
# doubles. The others that are left out are about NumPy's messages, the layout of its
# arrays and modes that DirectML has not.
NUMPYS = {
    "lib.tests.test_arraypad": r"Test(Constant|Reflect|Symmetric|Wrap|Edge)\.test_"
    r"(?!.*object|.*odd_method|.*pad_odd).*|.*(non_empty|zero_pad|as_ndarray|contig).*",
    "lib.tests.test_twodim_base": "test_tril_triu_with_inf",
    "_core.tests.test_numeric": r"TestArgwhere\.test_.*|TestNonzero\.test_(sparse"
    r"|nonzero_(trivial|onedim|twodim|float_dtypes|integer_dtypes))",
    "_core.tests.test_multiarray": r"TestCompress\.test_.*",
}


def list_tests(module):
    """The tests of a module by name, those of classes as Class.test."""
    for name, value in vars(module).items():
        if isinstance(value, type) and name.startswith("Test"):
            yield from ((f"{name}.{t}", getattr(value(), t)) for t in vars(value))
        else:
            yield name, value


@pytest.mark.parametrize("module", NUMPYS)
def test_tests_of_numpy(monkeypatch, x64, module):
    with warnings.catch_warnings(action="ignore"):  # of marks that are not ours
        numpys = importlib.import_module(f"numpy.{module}")

    def in_numpy(function):
        def call(*given, **options):
            arrays = [np.asarray(x) if isinstance(x, list) else x for x in given]
            return jax.tree.map(np.asarray, function(*arrays, **options))

        return call

    ours = {name: in_numpy(getattr(dnp, name)) for name in dnp.__all__}
    monkeypatch.setattr(numpys, "np", types.SimpleNamespace(**vars(np) | ours))
    done = 0
    for name, test in list_tests(numpys):
        if re.fullmatch(NUMPYS[module], name):
            marks = [mark.args for mark in getattr(test, "pytestmark", ())]
            axes = [[(names, value) for value in values] for names, values in marks]
            for options in map(dict, itertools.product(*axes)):
                if options.get("mode", "edge") in MODES:
                    test(**options)
                    done += 1
    assert done
