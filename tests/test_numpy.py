"""dmljax.numpy: every call equals its twin in jax.numpy or jax.nn.

Both run the same table of calls.
"""

import copy
import re
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

import dmljax
import dmljax.numpy as dnp
import dmljax.onnx as dox
from tests.checks import assert_alike, struct
from tests.meshes import run, sharding_of
from tests.samples import NUMPY as MODES
from tests.samples import WIDE, diagonals
from tests.transforms.dense import assert_equal, stacked

# NumPy's arrays, most of them of 64 bits, which become 32 bits outside of x64 mode.
X = np.arange(12).reshape(3, 4) % 5 * 1.5
CUBE = np.arange(24).reshape(2, 3, 4) % 3
COUNTS = np.array([3, 0, 0, 7, -1])
NUMBERS = np.array([0.0, -0.0, np.nan, np.inf, 2, 0.5, -1, 1e30])
INDICES = np.array([[0, 2, -1], [-3, 3, 1]])
LABELS = np.array([2**32, 2**40 + 1, -(2**32), 2, 2**31])
EMPTY = np.zeros((0, 3))
PAIRS = ((1, 2), (0, 3))
SIDES = (5, 6), [[5, 6]], ((5, 6), (7, 8)), ((5,), (6,))
TYPES = ["bool", "int8", "uint16", "bfloat16", "complex64"]


def call(*arrays, **options):
    return arrays, options


PADDED = [call(X, pad_width=n) for n in (0, 2, (1, 2), PAIRS, (PAIRS[0],))]
for dtype in ("int64", "uint8"):
    PADDED.append(call(X, pad_width=np.array(PAIRS, dtype)))
PADDED += [call(X, ((4, 5), (0, 9)), mode) for mode in MODES]
PADDED += [call(np.int8(5), width) for width in (0, 3)]
for x in (X, X > 3, X.astype(np.int8)):
    PADDED += [call(x, 1, constant_values=value) for value in (-2.7, 300, np.bool(1))]
PADDED += [call(X, PAIRS, constant_values=values) for values in SIDES]

SEARCHED = [call(x, size=14) for x in (X, CUBE, NUMBERS, EMPTY, 1j + X)]
SEARCHED += [call(X, size=np.array(14)), call(X, size=14, fill_value=(7, -8))]
FILLED = [call(X > 3, size=size, fill_value=-1) for size in (0, 3, 14)]
FILLED.append(call(EMPTY, size=3, fill_value=7))

COMPRESSED = [
    *(call(COUNTS, x, size=4, fill_value=9) for x in (X, X > 3)),
    call(COUNTS[:1], CUBE, -2, size=1),
    call(COUNTS[:3], CUBE, 0, size=1),
    call(COUNTS, CUBE, axis=2, size=4, fill_value=np.arange(7, 10)),
    call(COUNTS, np.int16(5), size=1, fill_value=300),
    call(COUNTS, EMPTY, axis=0, size=0),
]

TRIANGLES = [call(CUBE, k) for k in (-1, 0, np.int64(2))] + [call(EMPTY), call(X)]

LIT = [call(INDICES, 3, axis=axis) for axis in (1, -3)]
LIT += [call(INDICES, depth) for depth in (0, 300)]
LIT += [call(INDICES, 3, dtype=dtype) for dtype in (bool, int, jnp.bfloat16)]
LIT += [call(x, 3) for x in (1, [0, 2], (0, 2), NUMBERS, 1j + NUMBERS[-4:])]
LIT += [call(INDICES.astype(dtype), 100) for dtype in ("int8", "uint32")]
LIT += [call(LABELS.astype(dtype), 3) for dtype in ("int64", "uint64", "float64")]

# Each list is one program, so a call with fewer rows than elements needs a size.
CALLS = {
    "pad": PADDED,
    "nonzero": SEARCHED,
    "argwhere": [
        call(np.array(0), size=2, fill_value=9),
        call(np.array(5), size=2, fill_value=9),
        call(CUBE, size=14),
    ],
    "flatnonzero": FILLED,
    "extract": [
        call(X > 1, X, size=3),
        call(np.array([0.5, 0, np.nan]), CUBE, size=3, fill_value=-7.9),
        call(CUBE, 1j + CUBE, size=20, fill_value=300),
    ],
    "compress": COMPRESSED,
    "tril": TRIANGLES,
    "triu": TRIANGLES,
    "one_hot": LIT,
    "where": [
        call(X > 1, size=9, fill_value=-1),
        call(X > 1, X, -X),
        call(CUBE[0, 0], 1, 0),
    ],
}


def run_both(results, *arrays):
    """The results with dmljax.numpy and those with jax.numpy, by one program."""

    @jax.jit
    def program(*arrays):
        return [list(results(library, *arrays)) for library in (dnp, jnp)]

    return program(*arrays)


def test_pad_takes_a_dict_of_axes():
    widths = {np.int8(2): np.array([0, 4]), -3: [2, 1]}
    expected = np.pad(CUBE, ((2, 1), (0, 0), (0, 4)), "wrap")
    assert_equal(dnp.pad(CUBE, widths, "wrap"), expected)
    assert dnp.pad(np.int8(5), {}) == 5


# jax.nn.one_hot warns of float indices.
@pytest.mark.filterwarnings("ignore:jax.nn.one_hot input should be integer-typed")
@pytest.mark.usefixtures("both_x64")
@pytest.mark.parametrize("name", CALLS)
def test_programs(name):
    # After an error in a trace, JAX 0.10.2 keeps the type of an array of NumPy, also
    # for the other x64 mode. So we take new arrays.
    calls = copy.deepcopy(CALLS[name])

    def results(library):
        owner = jax.nn if name == "one_hot" and library is jnp else library
        function = getattr(owner, name)
        for (x, *others), options in calls:
            result = function(x, *others, **options)
            if library is dnp:  # also of data of the program
                yield result, function(jnp.asarray(x), *others, **options)
            else:
                yield result, result

    both = run_both(results)
    for given, ours, theirs in zip(calls, *both, strict=True):
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
    """In a program, dmljax needs the size only if the condition is traced."""
    function = getattr(dnp, name)
    arrays = copy.deepcopy(arrays)  # as in `test_programs`
    expected = jax.device_put(getattr(np, name)(*arrays))
    assert_alike(function(*arrays), expected)
    assert_alike(function(*jax.device_put(arrays)), expected)
    assert_alike(jax.jit(lambda: function(*arrays))(), expected)
    first, *others = arrays
    for way, x in ((jax.jit, first), (jax.vmap, first[None])):
        with pytest.raises(jax.errors.ConcretizationTypeError, match="needs size="):
            way(lambda x: function(x, *others))(x)


def each_function(library, x, fill=2.5, values=(3, 2.5)):
    """The results of every function that returns elements of `x`."""
    chosen = jnp.real(x).astype(bool)
    for value in (fill, values):
        yield library.pad(x, PAIRS, constant_values=value)
    yield library.extract(chosen, x, size=x.size, fill_value=fill)
    yield library.compress(chosen[0], x, 1, size=x.shape[1], fill_value=fill)
    yield library.tril(x)
    yield library.triu(x, 1)


def test_types(both_x64):
    def results(library):
        for name in WIDE if both_x64 else TYPES:
            x = jnp.asarray(CUBE[0].astype(jnp.dtype(name)))
            yield library.nonzero(x, size=9)
            yield from each_function(library, x)

    assert_alike(*run_both(results))


def test_transformations():
    """The gradients of batches, also in the added values, and a batch of searches."""
    batch = np.float32([X, X[::-1], 0 * X])

    def differentiate(library, x):
        given = x, jnp.float32(7), jnp.ones((2, 2))
        outputs, pull = jax.vjp(lambda *xs: [*each_function(library, *xs)], *given)
        weights = [jnp.arange(y.size, dtype=y.dtype).reshape(y.shape) for y in outputs]
        return outputs, pull(weights)

    def results(library, batch):
        yield jax.vmap(partial(differentiate, library))(batch)
        yield jax.vmap(partial(library.argwhere, size=9))(batch)

    assert_alike(*run_both(results, batch))


def test_gradients_outside_of_jit():
    """Here the search sees the values of x, so it needs no size."""

    gradient = jax.grad(lambda x: dnp.extract(x, 2 * x).sum())(np.float32([0, 1, 3]))
    assert gradient.tolist() == [0, 2, 2]


def test_differences():
    """Calls where jax.numpy raises an error or returns a wrong result."""

    def rows():
        for far in (2**31 - 1, 2**31, 2**40):
            yield dnp.tril(X, far), X
            yield dnp.triu(X, -far), X
            yield dnp.triu(X, far), 0 * X
            yield dnp.tril(X, -far), 0 * X
        yield dnp.one_hot(np.int8(-1), 300), np.zeros(300)
        for index in (np.uint8(4), jnp.int4(4), jnp.bfloat16(4)):
            yield dnp.one_hot(index, 300, dtype=bool), np.arange(300) == 4
        most = 2**32 - 1  # wraps in jax.numpy's default type of integers
        padded = dnp.pad(np.zeros(1, np.uint32), 1, constant_values=most)
        yield padded, np.uint32([most, 0, most])
        yield dnp.flatnonzero(np.float32([0, 1e-45])), [1]
        yield dnp.compress(COUNTS, COUNTS, size=7), [3, 7, -1, 0, 0, 0, 0]
        # Elements of NumPy that become 0 in JAX.
        for small in (2**32, 1e-300):
            yield dnp.flatnonzero(np.array([1, 0, small])), [0]
            yield dnp.compress(np.array([1, 0, small]), np.ones(1)), [1]
        nothing = np.zeros((0, 2))
        for axis, sizes in ((0, (3, 2)), (1, (0, 3))):
            filled = dnp.compress(nothing[:, 0], nothing, axis, size=3, fill_value=4)
            yield filled, np.full(sizes, 4)

    for found, expected in jax.jit(lambda: list(rows()))():
        np.testing.assert_array_equal(found, expected)
    with jax.enable_x64(True):  # an int64, which is cast as in jax.numpy
        assert dnp.pad(np.zeros(1, np.int8), 1, constant_values=2**40 + 5)[0] == 5


def test_weak_types():
    """A weak array does not widen the type of a sum."""
    arrays = [jnp.full((2, 3), number) for number in (-2, 1.5, 1j)]

    def results(library, *arrays):
        for x in arrays:
            yield from each_function(library, x)
            yield library.extract(np.ones(4, bool), x, size=4)

    assert_alike(*run_both(results, *arrays))
    one = np.array([True])
    for chosen in one, jax.device_put(one):
        found = dnp.extract(chosen, arrays[0])
        assert (found.weak_type, found.tolist()) == (True, [-2])


@pytest.mark.usefixtures("both_x64", "standard_promotion")
def test_a_fill_of_few_bits_does_not_narrow_the_coordinates():
    """They have JAX's default type, or one that holds its fills as well."""
    fills = np.int8(-1), np.uint32(7), np.bool(1)
    line = np.ones(300)

    def results(library, *traced):
        for fill in (*fills, *traced, np.float16(0.5)):
            yield library.flatnonzero(line, size=301, fill_value=fill)
        yield library.argwhere(line[None], size=301, fill_value=traced[:2])

    assert_alike(*run_both(results, *fills))
    (nothing,) = dnp.nonzero(line, size=0, fill_value=2.5)
    assert nothing.dtype == jnp.result_type(int)


# LONGER has a coordinate that does not fit in int32.
LONG, LONGER = (struct(bool, n) for n in (2**31, 2**31 + 1))


@pytest.mark.parametrize(
    ("argument", "find"),
    [
        ("a", lambda x: dnp.flatnonzero(x, size=2)),
        ("a", lambda x: dnp.nonzero(x[None], size=2)[1]),
        ("a", lambda x: dnp.argwhere(x[:, None], size=2)),
        ("x", lambda x: dox.nonzero(x, size=2)),
    ],
)
def test_coordinates_beyond_int32(argument, find):
    """The sizes decide the type. No array is made."""
    assert jax.eval_shape(find, LONG).dtype == np.int32
    text = rf": {argument} has sizes .*x64 mode.* dmljax\.nonzero_coordinates"
    with pytest.raises(ValueError, match=text):
        jax.eval_shape(find, LONGER)
    with jax.enable_x64(True):
        assert jax.eval_shape(find, LONGER).dtype == np.int64


def test_elements_beyond_int32():
    """They are returned, and not their coordinates."""

    def choose(chosen, x):
        flat = dnp.extract(chosen, x, size=2)
        return flat.sum() + dnp.compress(chosen, x[None], 1, size=2).sum()

    for chosen in LONG, LONGER:  # the gradient indexes past the end, at 2^31 for LONG
        values = struct(np.float32, *chosen.shape)
        assert jax.eval_shape(jax.grad(choose, 1), chosen, values) == values


def test_slices_beyond_the_type_of_indices(monkeypatch):
    """Faults: valid rows and fills are swapped, or the indices of a known mask wrap.

    No test has memory for a dimension of 2^31, so the type of indices is int8.
    """
    x, fill = np.arange(400, dtype=np.float32).reshape(200, 2), np.float32([-1, -2])
    monkeypatch.setattr(jnp, "result_type", lambda _: np.dtype(np.int8))
    chosen = np.isin(np.arange(200), (3, 199))
    for mask in chosen, jnp.asarray(chosen):
        found = dnp.compress(mask, x, 0, size=3, fill_value=fill)
        assert found.tolist() == [[6, 7], [398, 399], [-1, -2]]


def triangles(x, k):
    return (
        *(dnp.tril(x, k), dox.trilu(x, k, upper=False)),
        *(dnp.triu(x, k), dox.trilu(x, k)),
        dox.eye_like(x, k=k),
    )


def expected_triangles(x, k):
    lower, upper = np.tril(x, k), np.triu(x, k)
    return lower, lower, upper, upper, np.eye(*x.shape, k)


def test_diagonals_that_are_data(x64):
    """A diagonal for each matrix of a batch, and one that is a symbolic size."""
    several = jax.jit(jax.vmap(triangles, (None, 0)))
    for dtype in ("int8", "int32", "uint32", "int64", "uint64"):
        ks, near = diagonals(dtype)
        expected = [expected_triangles(X, k) for k in near]
        assert_equal(several(X, ks), stacked(expected))
    (n,) = jax.export.symbolic_shape("n")
    program = jax.jit(lambda x: triangles(x, x.shape[0] - 4))
    exported = jax.export.export(program)(struct(np.float64, n, 4))
    assert_equal(exported.call(X), expected_triangles(X, -1))


def test_a_known_mask_and_a_symbolic_size():
    """A planted fault: NumPy slices by the symbolic size. Other sizes cost nothing."""
    (n,) = jax.export.symbolic_shape("n")
    find = jax.jit(lambda x: dnp.nonzero(COUNTS, size=x.shape[0]))
    exported = jax.export.export(find)(struct(np.int8, n))
    assert_equal(exported.call(np.zeros(4, np.int8)), [np.array([0, 3, 4, 0])])
    program = jax.make_jaxpr(lambda x: dnp.extract(X > 1, x, size=20))(X)
    assert not re.search("dmljax|cumsum", str(program))


def test_divided_arrays():
    rows = np.arange(16, dtype=np.float32).reshape(8, 2)

    def results(library, x):
        chosen = x[:, 0] > 5
        yield library.extract(x > 2, x, size=3)
        yield library.compress(chosen, x, 0, size=3)
        yield library.nonzero(x, size=3)
        yield library.argwhere(x, size=3)
        # No side alone has rows that 8 devices could share.
        widths = (4, 4), (1, 0)
        pad = partial(library.pad, pad_width=widths, constant_values=(1, 2))
        yield pad(x)
        yield jax.grad(lambda x: (pad(x) ** 2).sum())(x)
        yield library.tril(x, -1)
        yield jax.grad(lambda x: library.compress(x[:, 0], x, 0, size=8).sum())(x)
        yield library.triu(jax.lax.full(x.shape, 2.0, sharding=jax.typeof(x).sharding))

    ours, theirs = (partial(lambda n, x: [*results(n, x)], n) for n in (dnp, jnp))
    one = jax.jit(theirs)(rows)
    for kind in AxisType.Auto, AxisType.Explicit:
        by_rows = sharding_of("8", P("a"), kind)
        _, found = run(ours, by_rows, rows, one=one)
        assert found[-1].weak_type
    with jax.set_mesh(by_rows.mesh):
        lit = dnp.one_hot(np.arange(8), 8, out_sharding=by_rows)
    assert lit.sharding.spec[0] == "a"


def test_compressed_slices_are_divided_as_before():
    """Alone, with the gradient, and mapped: as in jax.numpy."""
    mesh = sharding_of("2x2", P(), AxisType.Explicit).mesh
    chosen = np.arange(2)
    # Rows of 16 values and more are wide.
    divisions = (2, P("a", None, "b")), (4, P("a", None, "b")), (2, P(("a", "b")))

    def results(library, *arrays):
        for x in arrays:
            run = partial(library.compress, jnp.asarray(chosen), size=1)
            yield run(x, axis=1)
            yield jax.grad(lambda x, run=run: (run(x, axis=1) ** 2).sum())(x)
            yield jax.vmap(partial(run, axis=0))(x)

    with jax.set_mesh(mesh):
        arrays = [
            jax.device_put(np.arange(8.0 * width, dtype="f4").reshape(4, 2, -1), spec)
            for width, spec in divisions
        ]
        found, wanted = run_both(results, *arrays)
        assert_alike(found, wanted)
        assert [*map(jax.typeof, found)] == [*map(jax.typeof, wanted)]


def test_a_result_stays_on_the_device_of_its_array():
    device = jax.devices("cpu")[3]
    for sizes in ((0,), (3,)):
        x, row = jax.device_put((np.zeros(sizes), np.zeros((1, *sizes))), device)
        results = [
            dnp.extract(x, x),
            dnp.extract(np.zeros(sizes), x),
            dmljax.nonzero_coordinates(x, size=0).take(x),
            dnp.argwhere(x),
            dnp.one_hot(x, 0),
            dnp.tril(row),
            dox.eye_like(row),
        ]
        assert {y.device for y in results} == {device}


def test_nan_that_gives_no_nan():
    def results(x, z):
        yield from (dnp.one_hot(x, 2, dtype=bool), dnp.one_hot(z, 2, dtype=bool))
        yield from (dnp.argwhere(x, size=3), dnp.extract(x, np.int8([5, 6]), size=3))
        yield from (dox.nonzero(x, size=3), dox.one_hot(x, 3, np.int8([0, 9])))

    arrays = jax.device_put((np.float32([np.nan, 1]), np.complex64([np.nan, 1j])))
    expected = list(results(*arrays))
    for program in (results, jax.jit(lambda *arrays: list(results(*arrays)))):
        with jax.debug_nans(True), jax.debug_infs(True):
            assert_equal(list(program(*arrays)), expected)


@pytest.mark.parametrize("width", [1, ((1, 2), (0, 3))])
def test_a_second_call_enters_few_functions(width):
    """Counts Python functions. The trace of the first call does most of the work."""
    x = jnp.asarray(X)
    entered = []

    def note(frame, event, _):
        if event == "call":
            entered.append(frame.f_code.co_qualname)

    dnp.pad(x, width)
    sys.setprofile(note)
    try:
        dnp.pad(x, width)
    finally:
        sys.setprofile(None)
    assert len(entered) <= 35, entered


def refused(error, text, function, *arrays, **options):
    with pytest.raises(error, match=text):
        function(*arrays, **options)


def test_missing_features():
    unknown = partial(refused, NotImplementedError)
    missing = "linear_ramp", "empty", "maximum", "mean", "median", "minimum"
    calls = [{"mode": mode} for mode in (*missing, lambda row, *_: row)]
    for mode in ("reflect", "symmetric"):
        calls.append({"mode": mode, "reflect_type": "odd"})
    for options in calls:
        jax.eval_shape(partial(jnp.pad, pad_width=1, **options), X)
        unknown("Use jax.numpy.pad", dnp.pad, X, 1, **options)
    for mode in ("Mean", None):
        listed = "constant, edge, reflect, symmetric, wrap"
        unknown(rf"{listed}, not mode={mode!r}\.$", dnp.pad, X, 1, mode)
    for mode, other in (("edge", "odd"), ("reflect", "other"), ("wrap", COUNTS)):
        text = r"pad has reflect_type='even', not .*\.$"
        unknown(text, dnp.pad, X, 1, mode, reflect_type=other)
    for name, mode in {"symm": "symmetric", "EDGE": "edge"}.items():
        unknown(f"not mode='{name}'. Write mode='{mode}'.$", dnp.pad, X, 1, name)
    for after in (2, (1, 2), [1, 2], COUNTS, jnp.array(2)):
        unknown(r"pad .* not mode=.* stand in pad_width", dnp.pad, X, 1, after)
    unknown("no axis 'i'. Use jax.nn", dnp.one_hot, X, 3, axis="i")
    unknown("writes into no array", dnp.compress, COUNTS, COUNTS, out=COUNTS)


def test_wrong_types():
    wrong = partial(refused, TypeError)
    wrong("pad_width must be an integer", dnp.pad, X, 1.5)
    # Fault: the coordinates of the condition, if `y` is missing.
    wrong("where requires", dnp.where, X, X)
    wrong("where requires", dnp.where, X, None, X)
    wrong("an axis of pad_width must be an integer", dnp.pad, X, {0: 1, "x": 1})
    wrong("num_classes must be an integer", dnp.one_hot, X, 2.0)
    wrong("one_hot: x has elem", dnp.one_hot, jax.random.key(0), 3)
    wrong("one_hot: dtype is <U3", dnp.one_hot, X, 3, dtype="U3")
    wrong("fill_value must be a number", dnp.extract, X, X, fill_value=None)
    wrong("triu: k must be an integer", dnp.triu, X, 0.5)
    bound = "nonzero: size is traced; it must be an upper bound of the count"
    wrong(bound, jax.jit(lambda n: dnp.nonzero(X, size=n)), 1)
    for argument, call in (
        ("axis", lambda n: dnp.compress(COUNTS, X, n, size=1)),
        ("onnx.nonzero: size", lambda n: dox.nonzero(X, size=n)),
        ("onnx.pad: axes", lambda n: dox.pad(X, [1, 2], axes=n)),
        ("onnx.one_hot: depth", lambda n: dox.one_hot(X, n, X[0, :2])),
        ("pad_width", lambda n: dnp.pad(X[0], n)),
        ("pad_width", lambda n: dnp.pad(X[0], ((n, 1),))),
    ):
        wrong(f"{argument} is traced; it must be", jax.jit(call), 1)


def test_wrong_values():
    wrong = partial(refused, ValueError)
    # A planted fault: the widths at one end are not checked.
    for pair in ((1, -1), (-1, 2)):
        text = re.escape(f"pad_width is [{pair}, (0, 0)]; none may be negative")
        wrong(text, dnp.pad, X, (pair, (0, 0)))
    wrong("array has an element 1099511627776", dnp.pad, 2**40, 1)
    for text, width in (
        ("pad_width has sizes .* each of the 2 axes", (1, 2, 3)),
        (r"pad_width is \(\(1,\), .* a pair", ((1,), (1, 2))),
        # Planted faults: the key is looked up, or remembered, and not its axis.
        ("pad_width names axis 1 twice", {1: 1, -1: 2}),
        ("pad_width names axis 1 twice", {-1: 2, 1: 1}),
        (r"an axis of pad_width is 2; .* \[-2, 2\)", {2: 1}),
        # A planted fault: a single number in a tuple is taken for both sides.
        (r"pad_width\[0\] is \(1,\); .* a pair", {0: (1,)}),
        ("none may be negative", {0: (0, -1)}),
    ):
        wrong(text, dnp.pad, X, width)
    wrong("values has sizes", dnp.pad, X, 1, constant_values=(1, 2, 3))
    # Fault: an option is not handed to jnp.where, and is ignored.
    for option in ("size", "fill_value"):
        wrong("in three-term where", dnp.where, X > 0, X, 0, **{option: 3})
    wrong(r"condition has .*atleast_1d\(condition\)", dnp.where, np.array(3))
    # A planted fault: the condition has the name of nonzero's argument.
    refused(TypeError, "where: condition must be a number or an", dnp.where, [True])
    for fill in ((1,), [1, 2]):
        wrong("a tuple of 2", dnp.nonzero, X, size=9, fill_value=fill)
    wrong("condition has .* must have one dimension", dnp.compress, X, COUNTS)
    wrong("past the end .* of 4 el", dnp.compress, jnp.asarray(COUNTS), COUNTS[:4])
    wrong("past the end", jax.jit(lambda x: dnp.compress(COUNTS, x)), COUNTS[:4])
    fill = np.array([1, 2])
    wrong("extract: fill_value has", dnp.extract, X, X, size=1, fill_value=fill)
    wrong(
        r"or a slice of sizes \{3\}", dnp.compress, X[0], X.T, 0, size=4, fill_value=X.T
    )
    for text, option in (
        ("constant_values is given, which mode='edge'", "constant_values"),
        ("no stat_length and no end", "stat_length"),
        ("no stat_length and no end", "end_values"),
    ):
        wrong(text, dnp.pad, X, 1, "edge", **{option: 0})
    wrong("one_hot: num_classes is -1", dnp.one_hot, COUNTS, -1)
    wrong(r"compress: axis is 5; it must be in \[-2, 2\)", dnp.compress, COUNTS, X, 5)
    wrong(r"one_hot: axis is 3; it must be in \[-3", dnp.one_hot, X, 3, axis=3)
    wrong("it must have at least 2 dimensions", dnp.triu, COUNTS)
    wrong("nonzero: size is -1; it must be at least 0", dnp.nonzero, X, size=-1)
