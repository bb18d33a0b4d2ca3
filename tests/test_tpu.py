"""The kernels for TPUs, without one: in the interpreter for TPUs, and lowered.

The interpreter keeps a TPU's memories apart. Here it reports races, also of two cores
that share many blocks, fills what nobody has written with NaN, and does not let a
kernel read outside of an array. `test_tpu_compiled.py` goes on to machine code.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import dmljax
from dmljax import DescriptorError, PaddingMode, _operator
from dmljax._default import KERNEL_FROM
from dmljax.pallas.tpu import _blocks, _nonzero_coordinates, _padding
from tests import oracles, samples
from tests.samples import SUBJECTS
from tests.test_operators import assert_same, needs_x64
from tests.test_transforms import eight_devices

INTERPRETER = tpu.InterpretParams(
    detect_races=True,
    uninitialized_memory="nan",
    out_of_bounds_reads="raise",
)
WITH_KERNEL = [name for name, one in SUBJECTS.items() if "tpu" in one.primitive.kernels]
TYPES = (
    *("float32", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int32", "int16", "int8"),
    *("uint32", "uint16", "uint8", "bool", "int4", "uint4"),
)
# One of each width and kind: the interpreter is slow.
INTERPRETED = ("float32", "bfloat16", "float8_e5m2", "int8", "uint16", "bool", "int4")
WIDE = ("float16", "complex64", "float64", "int64")
TARGET = "tpu_custom_call"
each_operator = pytest.mark.parametrize("name", WITH_KERNEL)
# The kernel of the other operator is given truth values, whatever the type.
MOVERS = [name for name in WITH_KERNEL if name != "nonzero_coordinates"]
each_mover = pytest.mark.parametrize("name", MOVERS)
struct = jax.ShapeDtypeStruct


def interpreter(cores):
    """The same for so many cores."""
    return dataclasses.replace(INTERPRETER, num_cores_or_threads=cores)


@pytest.fixture
def cores(request, monkeypatch):
    """How many share the programs (an indirect parameter); two take twice the time."""
    monkeypatch.setitem(globals(), "INTERPRETER", interpreter(request.param))


@pytest.fixture
def interpreted(monkeypatch, capfd):
    """Every operator is its kernel for TPUs, interpreted; and no race is reported.

    The interpreter has effects, for which a primitive's lowering has no place: the
    kernel takes the place of the primitive.
    """

    def call(self, *operands, implementation, **static):
        assert implementation == "pallas"
        return self.kernels["tpu"](*operands, **static, interpret=INTERPRETER)

    monkeypatch.setattr(_operator.Operator, "__call__", call)
    # Each row is several calls of the interpreter.
    monkeypatch.setattr(_nonzero_coordinates, "ROWS", 8)
    monkeypatch.setattr(_nonzero_coordinates, "REACH", 24)
    jax.clear_caches()
    yield
    jax.clear_caches()
    tpu.reset_tpu_interpret_mode_state()
    assert "RACE" not in capfd.readouterr().out


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of so few elements that small arrays have many, the last ones cut."""
    monkeypatch.setattr(_blocks, "ELEMENTS", 2**12)


def uses(name, *, edges=False):
    """The operator's samples, by its kernel."""
    subject = SUBJECTS[name]
    found = subject.samples + (subject.edges if edges else ())
    return [one.by_kernel() for one in found if one.implementation is None]


def has_work(sample):
    """Whether there is something to read and to write, and not the same."""
    arrays = sample.arrays()
    outputs = jax.tree.leaves(sample.expected(*arrays))
    same = sample.operator == "padding" and outputs[0].shape == arrays[0].shape
    return not same and all(x.size for x in (*outputs, *arrays))


def run(sample, dtype="float32", fill=samples.bits):
    arrays = sample.arrays(dtype, fill)
    assert_same(sample.run(*map(jnp.asarray, arrays)), sample.expected(*arrays))


# RESULTS


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("dtype", INTERPRETED)
@each_operator
def test_every_type(name, dtype):
    """Of one sample; all of them are below in one type."""
    run(uses(name)[0], dtype)


@pytest.mark.usefixtures("interpreted")
@each_operator
def test_edges(name):
    for sample in uses(name, edges=True):
        with jax.enable_x64(needs_x64(sample)):
            run(sample)


def _numbers(shape, dtype, seed=0):
    return jnp.asarray(samples.numbers(shape, dtype, seed))


def agrees(name, *operands, **static):
    """The kernel against the definition, in the operator's normal form."""
    operator = SUBJECTS[name].primitive
    kernel = operator.kernels["tpu"](*operands, **static, interpret=INTERPRETER)
    jax.tree.map(
        np.testing.assert_array_equal, kernel, operator.xla(*operands, **static)
    )


@pytest.mark.usefixtures("interpreted", "small_blocks", "cores")
@pytest.mark.parametrize(
    ("dtype", "cores"),
    [("float32", 2), ("bfloat16", 1), ("int8", 1)],
    indirect=["cores"],
)
def test_many_blocks_of_selects(dtype):
    shape = (3, 70, 300)
    x = _numbers(shape, dtype)
    one = _numbers((1, 1, 1), dtype, 2)
    condition = _numbers(shape, "uint8")
    agrees("element_wise_if", condition, x, one)
    agrees("element_wise_if", condition[:, :, :1], one, x)
    bounds = {"matrix": shape[1:], "fill_begin": -40, "fill_end": 9}
    agrees("diagonal_matrix1", one, x, **bounds)
    part = bounds | {"fill_end": 310}  # which no diagonal of a whole matrix reaches
    agrees("diagonal_matrix1", jnp.full((1, 1, 1), 30, np.int32), one, x, **part)
    index = _numbers((3, 70, 1), "int32") * 40
    agrees("one_hot", index, one, one + one, size=300, axis=-1)
    agrees("one_hot", index.reshape(3, 1, 70), one, one + one, size=90, axis=-2)


@pytest.mark.usefixtures("interpreted", "small_blocks", "cores")
@pytest.mark.parametrize(
    ("mode", "dtype", "cores"),
    [
        *((mode, "float32", 1) for mode in PaddingMode),
        (PaddingMode.REFLECTION, "bfloat16", 2),
        (PaddingMode.REFLECTION, "int8", 1),
    ],
    indirect=["cores"],
)
def test_many_blocks_of_padding(mode, dtype):
    """Along every axis and two, in more than one tile, with padding past the size."""
    value = [_numbers((1, 1, 1), dtype, 5)] if mode is PaddingMode.CONSTANT else []
    for start, end in (
        ((3, 0, 0), (4, 0, 0)),
        ((0, 11, 0), (0, 30, 0)),
        ((0, 0, 140), (0, 0, 7)),
        ((1, 2, 3), (0, 1, 290)),
    ):
        x = _numbers((2, 19, 140), dtype)
        agrees("padding", x, *value, start=start, end=end, mode=mode)


@pytest.mark.usefixtures("interpreted", "small_blocks")
def test_rows_and_columns_too_many_for_one_block_are_padded_in_turn(monkeypatch):
    monkeypatch.setattr(_padding, "ELEMENTS", 64 * 256)  # both need 64 by 384
    x = _numbers((2, 20, 130), "float32")
    pads = {"start": (1, 30, 140), "end": (0, 10, 1)}
    agrees("padding", x, **pads, mode=PaddingMode.REFLECTION)


def check_coordinates(x, **options):
    count, coordinates = dmljax.nonzero_coordinates(
        x, implementation="pallas", **options
    )
    expected = oracles.nonzero_coordinates(np.asarray(x), **options)
    assert int(count) == expected[0]
    np.testing.assert_array_equal(coordinates, expected[1])


@pytest.mark.usefixtures("interpreted", "cores")
@pytest.mark.parametrize(
    ("density", "cores"),
    [(0.0, 1), (0.001, 2), (0.1, 2), (0.6, 1), (1.0, 1)],
    indirect=["cores"],
)
def test_nonzero_coordinates_of_many_blocks(density):
    """Blocks of 8 rows of 128: the last is cut, and others are empty or full."""
    x = np.random.default_rng(0).random((3, 3001)) < density
    x[0, :2048], x[1, :2048] = True, False
    check_coordinates(x, fill=7)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("dtype", [*WIDE, "complex128"])
def test_nonzero_coordinates_of_wide_types(dtype):
    with jax.enable_x64(True):
        x = jnp.asarray(samples.bits((7, 99), dtype, 3))
        check_coordinates(x.at[:, ::2].set(0))


@pytest.mark.usefixtures("interpreted")
def test_nonzero_coordinates_of_batches():
    x = jnp.asarray(np.random.default_rng(0).random((2, 2, 70, 40)) < 0.4)
    agrees("nonzero_coordinates", x, rank=2, columns=2, fill=3)
    first = jnp.arange(2, dtype=np.uint32).reshape(1, 2, 1, 1) * 2800
    agrees("nonzero_coordinates", x, first, rank=2, columns=2, fill=3)


@pytest.mark.usefixtures("interpreted")
def test_batches():
    """Batch dimensions in which an operand is shared, and others in which it is not."""
    x = _numbers((2, 3, 5, 4), "float32")
    few = _numbers((2, 1, 1, 1), "float32", 3)
    many = _numbers((2, 3, 1, 1), "float32", 3)
    span = {"matrix": (5, 4), "fill_begin": 0, "fill_end": 2}
    pads = {"start": (0, 2, 1), "end": (1, 0, 3), "mode": PaddingMode.CONSTANT}
    wide = pads | {"start": (2, 1), "end": (0, 3)}
    index = _numbers((1, 3, 5, 1), "int32")
    for value in (few, many):
        agrees("diagonal_matrix1", value, x, **span)
        agrees("padding", x, value, **wide)
        agrees("one_hot", index, value, few, size=4, axis=-1)
        agrees("element_wise_if", _numbers((1, 3, 5, 4), "uint8"), x, value)
    agrees("padding", x, few, **pads)
    agrees("padding", x, few[:1], **wide)


# THE INTERPRETER, FOR WHICH NOTHING GETS PAST IT


def planted(kernel, *, into=lambda i: (i, 0), out_of=lambda i: (i, 0)):
    """Two programs, on two cores."""
    return pl.pallas_call(
        kernel,
        grid=(2,),
        in_specs=[pl.BlockSpec((8, 128), out_of)],
        out_specs=pl.BlockSpec((8, 128), into),
        out_shape=struct((16, 128), np.float32),
        interpret=interpreter(cores=2),
        compiler_params=tpu.CompilerParams(dimension_semantics=("parallel",)),
    )(jnp.ones((16, 128), np.float32))


def copy(x, out):
    out[...] = x[...]


@pytest.fixture
def reset():
    yield
    tpu.reset_tpu_interpret_mode_state()


@pytest.mark.usefixtures("reset")
def test_it_finds_a_race(capfd):
    try:
        jax.block_until_ready(planted(copy, into=lambda i: (0, 0)))
        found = capfd.readouterr().out
    except Exception as error:
        found = str(error)
    assert "RACE" in found


@pytest.mark.usefixtures("reset")
def test_it_finds_a_read_outside():
    with pytest.raises(Exception, match=r"(?i)out.of.bounds"):
        jax.block_until_ready(planted(copy, out_of=lambda i: (i + 1, 0)))


@pytest.mark.usefixtures("reset")
def test_it_fills_memory_with_nan():
    def half(x, out):
        out[:4] = x[:4]

    result = planted(half)
    assert np.isnan(result).sum() == result.size / 2


# LOWERING AND THE CHOICE


def lowered(function, *arguments):
    """The program's text for a TPU, whatever machine this is."""
    traced = jax.jit(function).trace(*arguments)
    return traced.lower(lowering_platforms=("tpu",)).as_text()


def launches(text):
    return text.count(f"@{TARGET}(")


@pytest.mark.parametrize("dtype", TYPES)
@each_operator
def test_kernels_are_lowered(name, dtype):
    for sample in uses(name):
        text = lowered(lambda *x, sample=sample: sample.run(*x), *sample.arrays(dtype))
        assert launches(text) == 1
        assert f"dmljax_{name}" in text


@each_operator
def test_edges_are_lowered(name):
    for sample in uses(name, edges=True):
        arrays = sample.arrays()
        with jax.enable_x64(needs_x64(sample)):
            text = lowered(lambda *x, sample=sample: sample.run(*x), *arrays)
            assert launches(text) == has_work(sample)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("dtype", WIDE)
@each_mover
def test_what_mosaic_has_not_is_refused_to_who_asks_for_it(name, dtype):
    sample = uses(name)[0]
    expected = rf"^{name.upper()}: .*no {dtype.upper()}.*None or 'xla'"
    with pytest.raises(DescriptorError, match=expected):
        lowered(sample.run, *sample.arrays(dtype))


@pytest.fixture
def preferred(monkeypatch):
    """Every kernel is the default, for arrays of any size."""
    sizes = dict.fromkeys((1, 2, 4, 8, 16), 0)
    rule = {"pipeline": dict.fromkeys(WITH_KERNEL, sizes)}
    monkeypatch.setattr(_operator, "KERNEL_FROM", {"tpu": rule})
    jax.clear_caches()
    yield
    jax.clear_caches()


@pytest.mark.usefixtures("preferred")
@pytest.mark.parametrize(
    ("dtype", "expected"), [("float32", 1), ("bfloat16", 1), ("float16", 0)]
)
@each_mover
def test_by_default_float16_runs_in_xla(name, dtype, expected):
    *_, sample = (one for one in SUBJECTS[name].samples if one.implementation is None)
    assert launches(lowered(sample.run, *sample.arrays(dtype))) == expected


@pytest.mark.usefixtures("preferred")
def test_constant_padding_has_a_rule_of_its_own():
    sample = SUBJECTS["padding"].samples[0]
    assert sample.attributes["mode"] is PaddingMode.CONSTANT
    assert launches(lowered(sample.run, *sample.arrays())) == 0


def test_the_default_is_that_of_the_ledger():
    rule = KERNEL_FROM["tpu"]["pipeline"]["nonzero_coordinates"]
    for dtype in (np.uint8, jnp.bfloat16, np.float32):
        least = rule[np.dtype(dtype).itemsize]
        for elements, expected in ((least, 1), (least - 1, 0)):
            x = struct((elements,), dtype)
            assert launches(lowered(dmljax.nonzero_coordinates, x)) == expected


def test_the_default_alone_is_that_of_the_ledger():
    least = KERNEL_FROM["tpu"]["alone"]["padding"][4]

    def alone(x, mode):
        value = [jnp.zeros((1, 1))] if mode is PaddingMode.CONSTANT else []
        return SUBJECTS["padding"].primitive(
            *(x, *value),
            start=(0, 0),
            end=(0, 128),
            mode=mode,
            implementation=_operator.Context.ALONE,
        )

    for rows, expected in ((least // 256, 1), (least // 256 - 1, 0)):
        x = struct((rows, 128), np.float32)
        text = lowered(functools.partial(alone, mode=PaddingMode.WRAP), x)
        assert launches(text) == expected
        text = lowered(functools.partial(alone, mode=PaddingMode.CONSTANT), x)
        assert launches(text) == 0


def test_a_padded_axis_that_memory_has_no_place_for_is_refused_or_runs_in_xla(
    monkeypatch,
):
    long = struct((2, 2**20), np.float32)

    def pad(x, implementation):
        return dmljax.padding(
            x, (0, 1), (0, 0), mode=PaddingMode.WRAP, implementation=implementation
        )

    with pytest.raises(DescriptorError, match=r"^PADDING: .*\{2,1048577\}.*'xla'"):
        lowered(functools.partial(pad, implementation="pallas"), long)
    sizes = dict.fromkeys((4,), 0)
    monkeypatch.setattr(
        _operator, "KERNEL_FROM", {"tpu": {"pipeline": {"padding": sizes}}}
    )
    assert launches(lowered(functools.partial(pad, implementation=None), long)) == 0


@pytest.mark.parametrize("name", ["diagonal_matrix1", "element_wise_if", "padding"])
def test_gradients(name):
    """Those of selects by kernel are kernels; that of a padding is XLA's form."""
    for sample in uses(name):
        arrays = sample.arrays()
        large = [i for i in sample.open_operands if arrays[i].size > 1]
        if not large:
            continue

        def pull(*arrays, run=sample.run, position=large[-1]):
            output, back = jax.vjp(run, *arrays)
            return output, back(output)[position]

        expected = 1 if name == "padding" else 2
        assert launches(lowered(pull, *arrays)) == expected


@each_operator
def test_each_device_of_a_shard_map_runs_the_kernel(name):
    mesh = eight_devices(AxisType.Auto)
    sample = uses(name)[0]
    arrays = [np.stack([x] * 8) for x in sample.arrays()]
    mapped = jax.shard_map(
        jax.vmap(sample.run), mesh=mesh, in_specs=P("batch"), out_specs=P("batch")
    )
    assert launches(lowered(mapped, *arrays)) == 1


@each_operator
def test_a_sharded_program_leaves_partitioning_to_xla(name):
    """Whose compiler for TPUs can't ask us how; a kernel by name is refused by JAX."""
    mesh = eight_devices(AxisType.Auto)
    sample = SUBJECTS[name].samples[0]
    sharding = NamedSharding(mesh, P("batch"))
    arrays = [
        struct((8, *x.shape), x.dtype, sharding=sharding) for x in sample.arrays()
    ]
    text = lowered(jax.vmap(sample.run), *arrays)
    assert "CustomSPMDPartitioning" not in text
    assert launches(text) == 0
    with pytest.raises(NotImplementedError, match="wrap the call in a shard_map"):
        lowered(jax.vmap(sample.by_kernel().run), *arrays)


@pytest.mark.usefixtures("preferred")
def test_a_sharded_program_runs_no_kernel_by_default():
    mesh = eight_devices(AxisType.Auto)
    x = struct((8, 128), np.float32, sharding=NamedSharding(mesh, P("batch")))
    assert launches(lowered(lambda x: dmljax.element_wise_if(x > 0, x, -x), x)) == 0


def test_a_kernel_that_is_not_there_is_named_with_its_platform(monkeypatch):
    monkeypatch.delitem(SUBJECTS["padding"].primitive.kernels, "cuda")
    pad = functools.partial(dmljax.padding, implementation="pallas")
    with pytest.raises(NotImplementedError, match=r"PADDING: .*no kernel .* 'cpu'"):
        pad(jnp.ones(3), (1,), (1,))
    traced = jax.jit(lambda x: pad(x, (1,), (1,))).trace(jnp.ones(3))
    with pytest.raises(NotImplementedError, match=r"PADDING: .*no kernel .* 'cuda'"):
        traced.lower(lowering_platforms=("cuda",))
