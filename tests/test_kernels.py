"""The kernels: what the samples of every operator do not reach.

On a CPU they run in Pallas' interpreter, on a GPU for real.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import dmljax
from dmljax import DescriptorError, PaddingMode, _default, _one_hot, _operator, _padding
from dmljax.pallas import _elementwise, _nonzero_coordinates
from dmljax.pallas import _one_hot as one_hot_kernel
from dmljax.pallas import _padding as padding_kernel
from tests import oracles, samples
from tests.samples import SUBJECTS
from tests.test_operators import assert_same, needs_x64
from tests.test_transforms import eight_devices

WITH_KERNEL = [
    name for name, one in SUBJECTS.items() if "cuda" in one.primitive.kernels
]
LAUNCHES = {"nonzero_coordinates": ("_count", "_scan", "_write")}
TARGET = "__gpu$xla.gpu.triton"
each_operator = pytest.mark.parametrize("name", WITH_KERNEL)


# WHAT A BLOCK MEETS

# Of one block and of several, even and odd, and of every number of columns.
SHAPES = ((), (5,), (9001,), (3, 700), (2, 3, 4, 5, 7), (1, 2, 1, 2, 1, 2, 1, 300))
DENSITIES = (0.0, 0.01, 0.9, 1.0)
NONZERO_TYPES = (
    *("float32", "float16", "bfloat16", "float8_e4m3fn", "complex64"),
    *("int32", "int16", "int8", "uint32", "uint16", "uint8", "bool"),
)


def sparse(shape, density, dtype="float32"):
    """Ones, negative where the type has them, in zeros of both signs."""
    random = np.random.default_rng(0)
    values = np.where(random.random(shape) < density, 1.0, -0.0)
    return np.asarray(values).astype(jnp.dtype(dtype))


def check_coordinates(x, **options):
    count, coordinates = dmljax.nonzero_coordinates(
        jnp.asarray(x), implementation="pallas", **options
    )
    undefined = options.get("fill", 0) is None
    filled = options | {"fill": 0} if undefined else options
    expected = oracles.nonzero_coordinates(x, **filled)
    assert int(count) == int(expected[0])
    rows = int(count) if undefined else x.size
    np.testing.assert_array_equal(coordinates[:rows], expected[1][:rows])


@pytest.mark.parametrize("density", DENSITIES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_nonzero_coordinates_of_every_rank(shape, density):
    check_coordinates(sparse(shape, density))


@pytest.mark.parametrize(
    ("dtype", "elements"),
    [
        *((dtype, 97) for dtype in NONZERO_TYPES),
        ("uint8", 8196),
        ("uint8", 8194),
        ("uint8", 8193),
        ("bfloat16", 8194),
    ],
)
def test_nonzero_coordinates_of_every_type(dtype, elements):
    """Narrow types are read in words of two or four, if their number allows it."""
    check_coordinates(sparse((elements,), 0.3, dtype))


@pytest.mark.parametrize("dtype", ["uint8", "float8_e4m3fn", "int16", "float16"])
def test_nonzero_coordinates_of_every_bit_pattern(dtype):
    width = 8 * jnp.dtype(dtype).itemsize
    check_coordinates(np.arange(2**width, dtype=f"u{width // 8}").view(dtype))


def test_nonzero_coordinates_by_bits():
    """Subnormals, NaN and infinities are not zero."""
    x = np.array([0.0, -0.0, 1e-45, -1e-45, np.nan, np.inf, 1.0], np.float32)
    check_coordinates(x)


@pytest.mark.parametrize("options", [{"fill": 7}, {"fill": None}, {"columns": 2}])
def test_nonzero_coordinates_options(options):
    check_coordinates(sparse((1, 30, 30), 0.3), **options)


@pytest.mark.parametrize("count", [0, 2047, 2048, 20000])
def test_nonzero_coordinates_fills_from_any_count_on(count):
    """The count may cut a chunk, which the block that has it fills in part."""
    check_coordinates((np.arange(20001) < count).astype(np.int8), fill=9)


def test_nonzero_coordinates_of_crowded_and_sparse_blocks_side_by_side():
    check_coordinates(np.concatenate([sparse((8192,), 1.0), sparse((20000,), 0.001)]))


def test_nonzero_coordinates_of_a_run_in_a_sparse_block():
    """All bits of its words are set, and few in others."""
    x = np.zeros(9001, np.int8)
    x[[5, 700, 8191, 8192, 9000]] = 1
    x[60:130] = 1
    check_coordinates(x)


def test_nonzero_coordinates_of_lines_that_are_not_aligned():
    x = jnp.asarray(sparse((3, 9001), 0.4))
    kernel, xla = (
        jax.vmap(lambda x, i=i: dmljax.nonzero_coordinates(x, implementation=i))
        for i in ("pallas", "xla")
    )
    jax.tree.map(np.testing.assert_array_equal, kernel(x), xla(x))


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of so few elements that small arrays have many, the last one cut."""
    for frame in (_elementwise, one_hot_kernel):
        monkeypatch.setattr(frame, "BLOCK_BYTES", 64)
    monkeypatch.setattr(one_hot_kernel, "NARROW_BYTES", 64)
    monkeypatch.setattr(one_hot_kernel, "TILE", 32)
    monkeypatch.setattr(one_hot_kernel, "ROW", 16)
    monkeypatch.setattr(padding_kernel, "TILE", 16)
    monkeypatch.setattr(padding_kernel, "GAPS", 4)
    jax.clear_caches()
    yield
    jax.clear_caches()


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *(("diagonal_matrix1", "float32"), ("element_wise_if", "float32")),
        *(("one_hot", "float32"), ("one_hot", "int8")),
    ],
)
def test_many_blocks(name, dtype):
    """The frame of two; the chunks and the tiles of one_hot."""
    for sample in SUBJECTS[name].samples + SUBJECTS[name].edges:
        if sample.implementation == "pallas" and not needs_x64(sample):
            arrays = sample.arrays(dtype, samples.bits)
            assert_same(sample.run(*map(jnp.asarray, arrays)), sample.expected(*arrays))


@pytest.mark.usefixtures("small_blocks")
def test_the_last_of_many_blocks_is_cut():
    x = jnp.arange(1.0, 36.0)
    output = dmljax.element_wise_if(x > 9, x, -x, implementation="pallas")
    np.testing.assert_array_equal(output, jnp.where(x > 9, x, -x))


def test_places_in_an_operand_that_is_shared_along_some_axes():
    """Whose own dimensions lie in three groups."""
    shape, own = (2, 3, 4, 5, 6), (2, 1, 4, 1, 6)
    number = _elementwise.Number(np.int32(0), jnp.arange(720, dtype=np.uint32))
    places = np.arange(np.prod(own)).reshape(own)
    found = _elementwise.place_in(own, number, shape)
    np.testing.assert_array_equal(found, np.broadcast_to(places, shape).ravel())


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_one_hot_along_every_axis_in_many_blocks(axis, dtype):
    shape = [5, 7, 1001]
    shape[axis] = 1
    indices = np.random.default_rng(0).integers(-40, 40, shape)
    values = np.array([2, 3], dtype)
    kernel, xla = (
        dmljax.one_hot(
            indices.astype(np.int32), values, size=33, axis=axis, implementation=i
        )
        for i in ("pallas", "xla")
    )
    np.testing.assert_array_equal(kernel, xla)


# How many sequences, and the positions of each: fewer than a chunk of 16 bytes has, as
# many, or more; and totals that a word divides or not.
@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("dtype", "sequences", "size"),
    [
        *(("int8", 12, size) for size in (1, 2, 3, 4, 6, 15, 16, 17, 33)),
        *(("float16", 12, size) for size in (1, 2, 3, 7, 8, 9)),
        *(("float32", 12, size) for size in (1, 3, 4, 5)),
        *(("bool", 12, size) for size in (3, 16, 17)),
        *((dtype, n, 17) for dtype in ("int8", "float16") for n in (1, 2, 7)),
    ],
)
def test_one_hot_of_sequences_that_share_words(dtype, sequences, size):
    """Also indices of no position, whose place is in the sequence before or after."""
    random = np.random.default_rng(0)
    indices = random.integers(-2 * size, 2 * size, (sequences, 1)).astype(np.int32)
    values = np.array([5, -1]).astype(dtype)
    result = dmljax.one_hot(indices, values, size=size, implementation="pallas")
    expected = oracles.one_hot(indices, values, size=size, axis=-1)
    np.testing.assert_array_equal(result, expected)


# Outside of the axis, along it and inside: in tiles of words of four, two and one, that
# fit and that are cut, and element by element where there are few.
@pytest.mark.parametrize(
    ("dtype", "sizes"),
    [
        ("int8", (2, 40, 724)),
        ("int8", (2, 300, 264)),
        ("int8", (3, 9, 130)),
        ("int8", (2, 1030, 2)),
        ("int8", (2, 3, 2060)),
        ("int8", (50, 5, 8)),
        ("float16", (2, 40, 130)),
        ("float16", (2, 129, 64)),
        ("float16", (50, 4, 4)),
        ("bool", (2, 40, 130)),
        ("bool", (50, 5, 8)),
        ("float32", (2, 40, 130)),
    ],
)
def test_one_hot_of_sequences_side_by_side(dtype, sizes):
    outer, size, inner = sizes
    random = np.random.default_rng(0)
    indices = random.integers(-2 * size, 2 * size, (outer, 1, inner)).astype(np.int32)
    values = jnp.array([5, -6]).astype(dtype)
    kernel, xla = (
        dmljax.one_hot(indices, values, size=size, axis=1, implementation=i)
        for i in ("pallas", "xla")
    )
    np.testing.assert_array_equal(kernel, xla)


@pytest.mark.parametrize("in_axes", [(0, 0), (0, None), (None, 0)])
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_one_hot_of_batches_of_values(dtype, in_axes):
    random = np.random.default_rng(0)
    indices = random.integers(-9, 9, (4, 70, 1)).astype(np.int32)
    values = random.integers(0, 99, (4, 2)).astype(dtype)
    operands = [
        x if axis == 0 else x[0]
        for x, axis in zip((indices, values), in_axes, strict=True)
    ]
    kernel, xla = (
        jax.vmap(lambda *x, i=i: dmljax.one_hot(*x, size=7, implementation=i), in_axes)
        for i in ("pallas", "xla")
    )
    np.testing.assert_array_equal(kernel(*operands), xla(*operands))


@pytest.mark.parametrize("shared", ["on", "off"])
def test_one_hot_of_a_value_for_each_sequence_and_one_for_all(shared):
    indices, one = np.arange(6, dtype=np.int32)[:, None], np.full((1, 1), 9, np.int8)
    each = np.arange(10, 16, dtype=np.int8)[:, None]
    on, off = (one, each) if shared == "on" else (each, one)
    kernel, xla = (
        _one_hot.OPERATOR(indices, on, off, size=5, axis=-1, implementation=i)[0]
        for i in ("pallas", "xla")
    )
    np.testing.assert_array_equal(kernel, xla)


# Rows of one word and of many, of which the first and the last are shared with padding
# or with other rows; elements side by side that are padded alike; planes.
@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("dtype", "mode"),
    [
        *(("int8", mode) for mode in PaddingMode),
        ("float16", PaddingMode.CONSTANT),
        ("float32", PaddingMode.EDGE),
    ],
)
def test_padding_of_rows(dtype, mode):
    for shape, start, end in (
        ((40,), (3,), (5,)),
        ((3, 4, 5, 24), (0, 0, 3, 3), (0, 0, 3, 3)),
        ((5, 7, 21), (1, 2, 3), (2, 0, 4)),
        ((4, 9, 10, 3), (0, 2, 1, 0), (0, 1, 2, 0)),
        ((4, 100), (2, 0), (1, 0)),
        ((4, 3, 300), (1, 1, 0), (0, 1, 0)),
        ((6, 2), (0, 5), (0, 7)),
        ((17, 64), (0, 30), (0, 63)),
        ((2, 1000), (0, 4), (0, 4)),
        ((16, 1), (1, 0), (2, 0)),
    ):
        x = np.random.default_rng(0).integers(0, 99, shape).astype(dtype)
        pad = functools.partial(dmljax.padding, x, start, end, mode=mode, value=7)
        np.testing.assert_array_equal(
            pad(implementation="pallas"), pad(implementation="xla"), str(shape)
        )


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("sizes", "own"), [((3, 4), (3, 4)), ((3, 1), (3, 4)), ((1, 4), (3, 1))]
)
@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_padding_with_values_of_a_batch(sizes, own, dtype):
    random = np.random.default_rng(0)
    x = jnp.asarray(random.integers(0, 99, (*own, 5, 20)).astype(dtype))
    value = jnp.asarray(random.integers(0, 99, (*sizes, 1, 1)).astype(dtype))
    whole = np.broadcast_shapes(sizes, own)
    kernel, xla = (
        _padding.OPERATOR(
            *(operand, value),
            start=(1, 2),
            end=(0, 3),
            mode=PaddingMode.CONSTANT,
            implementation=i,
        )[0]
        for i, operand in (
            ("pallas", x),
            ("xla", jnp.broadcast_to(x, whole + x.shape[2:])),
        )
    )
    np.testing.assert_array_equal(kernel, xla)


# THE CHOICE


def lowered(function, *arguments):
    """The program's text for an NVIDIA GPU, whatever machine this is."""
    traced = jax.jit(function).trace(*arguments)
    return traced.lower(lowering_platforms=("cuda",)).as_text()


def launches(text):
    """How many kernels a program's text launches."""
    return text.count(f"@{TARGET}(")


def function_of(sample):
    """A function of the sample's operands with all types."""
    return lambda *arrays: sample.run(*arrays)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "uint8", "bool"])
@each_operator
def test_kernels_are_lowered_for_cuda(name, dtype):
    for sample in SUBJECTS[name].samples:
        text = lowered(function_of(sample), *sample.arrays(dtype))
        names = LAUNCHES.get(name, ("",)) if sample.implementation else ()
        assert launches(text) == len(names)
        assert all(f"dmljax_{name}{part}" in text for part in names)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("dtype", ["float64", "int64", "complex128"])
@each_operator
def test_kernels_of_wide_types_are_lowered_for_cuda(name, dtype):
    for sample in SUBJECTS[name].samples:
        if sample.implementation:
            text = lowered(function_of(sample), *sample.arrays(dtype))
            assert launches(text) >= 1


@pytest.mark.parametrize("name", ["diagonal_matrix1", "element_wise_if"])
def test_gradients_of_batches_run_the_kernel(name):
    """Forward and backward; what is shared is summed, which is XLA's to do."""
    for sample in SUBJECTS[name].samples:
        arrays = tuple(np.stack([x, x]) for x in sample.arrays())
        large = [i for i in sample.open_operands if arrays[i].size > 4]
        if not (sample.implementation and large):
            continue

        def pull(*arrays, run=sample.run, position=large[-1]):
            output, back = jax.vjp(jax.vmap(run), *arrays)
            return back(output)[position]

        assert launches(lowered(pull, *arrays)) == 2


@pytest.fixture
def preferred(monkeypatch):
    """Every kernel is the default, for arrays of any size."""
    sizes = dict.fromkeys((1, 2, 4, 8, 16), 0)
    rule = {"pipeline": dict.fromkeys((*WITH_KERNEL, "padding otherwise"), sizes)}
    monkeypatch.setattr(_operator, "KERNEL_FROM", {"cuda": rule})
    jax.clear_caches()
    yield
    jax.clear_caches()


@pytest.mark.usefixtures("preferred")
@each_operator
def test_the_default_is_what_the_rule_says(name):
    sample = SUBJECTS[name].samples[0]
    assert sample.implementation is None
    arrays = sample.arrays()
    assert launches(lowered(function_of(sample), *arrays)) >= 1
    xla = samples.dataclasses.replace(sample, implementation="xla")
    assert launches(lowered(function_of(xla), *arrays)) == 0


@pytest.mark.parametrize(
    ("wrapped", "expected"),
    [
        (lambda f: f, _operator.Context.ALONE),
        (jax.disable_jit()(lambda f: f), _operator.Context.ALONE),
        *((jax.jit, None), (jax.vmap, None), (lambda f: jax.jit(jax.vmap(f)), None)),
        (lambda f: lambda x: jax.jvp(f, (x,), (x,)), None),
        (lambda f: lambda x: jax.lax.map(f, x), None),
    ],
)
def test_a_call_knows_whether_it_is_a_program_of_its_own(wrapped, expected):
    seen = []

    def function(x):
        seen.append(_operator.in_context(None))
        assert _operator.in_context("xla") == "xla"
        return x

    wrapped(function)(jnp.ones(3))
    assert set(seen) == {expected}


def test_where_jax_does_not_say_what_is_traced_no_call_is_alone(monkeypatch):
    monkeypatch.setattr(_operator, "_trace_state", object)
    assert _operator.in_context(None) is None


def test_a_call_on_constants_inside_jit_is_not_alone():
    jaxpr = jax.make_jaxpr(lambda: dmljax.diagonal_matrix1(jnp.ones((3, 3))))()
    assert "implementation=None" in str(jaxpr)


def test_the_rule_looks_at_type_and_size():
    rule = _default.KERNEL_FROM["cuda"]["pipeline"]["nonzero_coordinates"]
    for dtype in (np.uint8, np.float16, np.float32):
        least = rule[np.dtype(dtype).itemsize]
        for elements, expected in ((least, 3), (least - 1, 0)):
            struct = jax.ShapeDtypeStruct((elements,), dtype)
            assert launches(lowered(dmljax.nonzero_coordinates, struct)) == expected


# Rows of the input with many bytes and little padding, and with fewer or more.
@pytest.mark.parametrize(
    ("shape", "pads", "dtype", "expected"),
    [
        ((300, 192), (0, 48), np.int8, True),
        ((300, 192), (0, 52), np.int8, False),
        ((300, 188), (0, 4), np.int8, False),
        ((300, 96), (2, 2), np.float16, True),
        ((300, 64, 3), (2, 2, 0), np.int8, True),
        ((300, 60, 3), (2, 2, 0), np.int8, False),
        ((300, 3, 256), (2, 2, 0), np.int8, True),
        ((301, 193), (0, 2), np.int8, False),
        ((300, 192), (0, 48), np.bool_, False),
    ],
)
def test_the_rule_of_padding_looks_at_rows(shape, pads, dtype, expected):
    x, static = jax.ShapeDtypeStruct(shape, dtype), {"start": pads, "end": pads}
    static["start"] = (0,) * len(pads)
    measured_as = SUBJECTS["padding"].primitive.measured_as
    name = measured_as("cuda", (x,), static | {"mode": PaddingMode.EDGE})
    assert (name == "padding") == expected


LARGE = jax.ShapeDtypeStruct((1 << 22,), np.float32)


def test_a_program_exported_from_a_cpu_has_the_kernel():
    exporting = export.export(
        jax.jit(dmljax.nonzero_coordinates),
        platforms=("cuda",),
        disabled_checks=[export.DisabledSafetyCheck.custom_call(TARGET)],
    )
    assert launches(exporting(LARGE).mlir_module()) == 3


@pytest.mark.parametrize(
    ("axis_type", "now"), [(AxisType.Auto, 0), (AxisType.Explicit, 3)]
)
def test_a_sharded_program_runs_the_kernel_on_each_device(axis_type, now):
    """XLA asks for it when it has divided the program, unless the types say how."""
    mesh = eight_devices(axis_type)
    sharding = NamedSharding(mesh, P("batch"))
    struct = jax.ShapeDtypeStruct((8, 1 << 20), np.float32, sharding=sharding)
    with jax.set_mesh(mesh):
        text = lowered(jax.vmap(dmljax.nonzero_coordinates), struct)
    assert launches(text) == now
    assert ("@CustomSPMDPartitioning" in text) == (now == 0)


def test_each_device_of_a_shard_map_runs_the_kernel():
    mesh = eight_devices(AxisType.Auto)
    mapped = jax.shard_map(
        jax.vmap(dmljax.nonzero_coordinates),
        mesh=mesh,
        in_specs=P("batch"),
        out_specs=P("batch"),
    )
    struct = jax.ShapeDtypeStruct((8, 1 << 20), np.float32)
    assert launches(lowered(mapped, struct)) == 3


# WHAT IS NOT THERE


@pytest.fixture
def no_backend(monkeypatch):
    """A JAX without the backend of the kernels."""
    monkeypatch.setattr(_operator, "kernels_available", lambda platform: False)
    jax.clear_caches()
    yield
    jax.clear_caches()


@pytest.mark.usefixtures("no_backend")
def test_without_the_backend_the_default_is_xla():
    assert launches(lowered(dmljax.nonzero_coordinates, LARGE)) == 0


@pytest.mark.usefixtures("no_backend")
@each_operator
def test_without_the_backend_a_kernel_is_refused(name):
    sample = SUBJECTS[name].samples[0].by_kernel()
    expected = rf"{name.upper()}: .*triton, which this JAX.*None or 'xla'"
    with pytest.raises(NotImplementedError, match=expected):
        sample.run(*sample.arrays())


def test_there_is_no_kernel_for_other_gpus():
    kernel = functools.partial(dmljax.nonzero_coordinates, implementation="pallas")
    with pytest.raises(NotImplementedError, match="no kernel for platform 'rocm'"):
        jax.jit(kernel).trace(LARGE).lower(lowering_platforms=("rocm",))


# Its places are beyond what the backend computes with 32 bits, of which it takes one
# for the sign, and too few bytes for 64.
ODD = jax.ShapeDtypeStruct((2**31 + 1,), np.uint8)


def test_what_a_kernel_can_not_address_runs_in_xla():
    assert launches(lowered(dmljax.nonzero_coordinates, ODD)) == 0
    even = jax.ShapeDtypeStruct((2**31 + 2,), np.uint8)
    assert launches(lowered(dmljax.nonzero_coordinates, even)) == 3


def test_what_a_kernel_can_not_address_is_refused_to_who_asks_for_it():
    kernel = functools.partial(dmljax.nonzero_coordinates, implementation="pallas")
    with pytest.raises(
        DescriptorError, match=r"^NONZERO_COORDINATES: .*2147483649 .*'xla'"
    ):
        lowered(kernel, ODD)


@pytest.mark.parametrize("elements", [2**31 + 8, 2**32 + 8])
def test_places_past_32_bits_are_lowered(elements):
    struct = jax.ShapeDtypeStruct((elements,), np.uint16)
    fill = functools.partial(dmljax.diagonal_matrix1, value=1, implementation="pallas")
    wide = lowered(lambda x: fill(x.reshape(8, -1)), struct)
    assert launches(wide) == 1


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("mode", [PaddingMode.CONSTANT, PaddingMode.WRAP])
@pytest.mark.parametrize("shape", [(2**31 + 8, 8), (4, 2**31 + 8), (2**31 + 8, 8, 1)])
def test_padding_of_rows_past_32_bits_is_lowered(shape, mode):
    pads = (0, 4, 0)[: len(shape)]
    pad = functools.partial(dmljax.padding, mode=mode, implementation="pallas")
    struct = jax.ShapeDtypeStruct(shape, np.uint8)
    assert launches(lowered(lambda x: pad(x, pads, pads), struct)) == 1


def test_a_batch_may_exceed_what_a_gpu_allows_the_later_dimensions_of_a_grid():
    form = SUBJECTS["nonzero_coordinates"].primitive.kernels["cuda"]
    kernel = functools.partial(form, rank=1, columns=1, fill=0, interpret=False)
    struct = jax.ShapeDtypeStruct((70_000, 9000), np.float32)
    calls = [
        equation.params["grid_mapping"].grid
        for equation in jax.make_jaxpr(kernel)(struct).eqns
        if equation.primitive.name == "pallas_call"
    ]
    blocks = -(-9000 // _nonzero_coordinates.BLOCK)
    writers = 2 * blocks  # of rows, and of what is past the count
    assert calls == [(70_000 * blocks,), (70_000,), (70_000 * writers,)]
