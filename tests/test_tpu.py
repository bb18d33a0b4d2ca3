"""The kernels for TPUs, without one: in the interpreter for TPUs, and lowered.

The interpreter keeps a TPU's memories apart. Here it reports races, also of two cores
that share many blocks, fills what nobody has written with NaN, and does not let a
kernel read outside of an array. `test_tpu_compiled.py` goes on to machine code.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu

import dmljax
from dmljax import PaddingMode, _primitive
from dmljax.pallas.tpu import _blocks, _padding
from tests import blocks, oracles, samples, test_tpu_lowering
from tests.checks import check, needs_x64
from tests.subjects import SUBJECTS

INTERPRETER = tpu.InterpretParams(
    detect_races=True,
    uninitialized_memory="nan",
    out_of_bounds_reads="raise",
)
WITH_KERNEL = [name for name, one in SUBJECTS.items() if "tpu" in one.primitive.kernels]
# One of each width, and one that is widened. `test_words.py` has all types.
INTERPRETED = ("float32", "bfloat16", "int8", "bool")


def interpreter(cores):
    """The same for so many cores."""
    return dataclasses.replace(INTERPRETER, num_cores_or_threads=cores)


@pytest.fixture(scope="module", autouse=True)
def on_a_cpu():
    """The two cores of the interpreter wait for each other forever on a GPU."""
    with jax.default_device(jax.devices("cpu")[0]):
        yield


@pytest.fixture
def cores(request, monkeypatch):
    """How many share the programs (an indirect parameter); two take twice the time."""
    monkeypatch.setitem(globals(), "INTERPRETER", interpreter(request.param))
    jax.clear_caches()
    yield
    jax.clear_caches()


@pytest.fixture(scope="module")
def kernels_for_tpus():
    """Every operator is its kernel for TPUs, interpreted, in a whole file.

    The interpreter has effects, for which a primitive's lowering has no place: the
    kernel takes the place of the primitive.
    """

    def call(self, *operands, implementation, alone, **static):
        del alone  # it matters to a default
        assert implementation == "pallas"
        return self.kernels["tpu"](*operands, **static, interpret=INTERPRETER)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_primitive.OperatorPrimitive, "__call__", call)
        blocks.put(patch, blocks.SMALL_ON_TPU)
        jax.clear_caches()
        yield
    jax.clear_caches()


@pytest.fixture
def interpreted(kernels_for_tpus, capfd):
    """Likewise; and no race is reported."""
    yield
    tpu.reset_tpu_interpret_mode_state()
    assert "RACE" not in capfd.readouterr().out


@pytest.fixture
def many_blocks(monkeypatch):
    """Blocks of so few elements that small arrays have many, the last ones cut."""
    monkeypatch.setattr(_blocks, "ELEMENTS", 2**12)


# RESULTS


def uses():
    """A sample in a type of each width and kind, the others and the edges in one."""
    for name in WITH_KERNEL:
        first, *others = test_tpu_lowering.uses(name)
        slow = pytest.mark.slow
        for dtype in INTERPRETED:
            marks = () if dtype in ("float32", "bool") else slow
            yield pytest.param(first, dtype, id=f"{first}-{dtype}", marks=marks)
        for sample in others:
            yield pytest.param(sample, "float32", id=str(sample), marks=slow)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(("sample", "dtype"), list(uses()))
def test_samples_and_edges(sample, dtype):
    with jax.enable_x64(needs_x64(sample)):
        check(sample, dtype)


def _numbers(shape, dtype, seed=0):
    return jnp.asarray(samples.numbers(shape, dtype, seed))


def agrees(name, *operands, **static):
    """The kernel against the definition, in the operator's normal form."""
    operator = SUBJECTS[name].primitive
    kernel = operator.kernels["tpu"](*operands, **static, interpret=INTERPRETER)
    jax.tree.map(
        np.testing.assert_array_equal, kernel, operator.xla(*operands, **static)
    )


SELECTS = {
    "element_wise_if": lambda x, one: (_numbers(x.shape, "uint8"), x, one),
    "element_wise_if of columns": lambda x, one: (
        *(_numbers((*x.shape[:2], 1), "uint8"), one, x),
    ),
    "diagonal_matrix1": lambda x, one: (one, x),
    "diagonal_matrix1 of a part": lambda x, one: (
        *(jnp.full((1, 1, 1), 30, np.int32), one, x),
    ),
    "one_hot": lambda x, one: (
        *(_numbers((*x.shape[:2], 1), "int32") * 40, one, one + one),
    ),
    "one_hot of rows": lambda x, one: (
        *(_numbers((x.shape[0], 1, x.shape[1]), "int32") * 40, one, one + one),
    ),
}
STATIC = {
    "element_wise_if": {},
    "diagonal_matrix1": {"matrix": (40, 140), "fill_begin": -20, "fill_end": 9},
    "one_hot": {"size": 140, "axis": -1},
    "one_hot of rows": {"size": 90, "axis": -2},
}


@pytest.mark.usefixtures("interpreted", "many_blocks", "cores")
@pytest.mark.parametrize(
    ("use", "dtype", "cores"),
    [
        *((use, "float32", 2) for use in SELECTS),
        *((use, "int8", 1) for use in SELECTS),
    ],
    indirect=["cores"],
)
@pytest.mark.slow
def test_many_blocks_of_selects(use, dtype):
    x = _numbers((2, 40, 140), dtype)
    one = _numbers((1, 1, 1), dtype, 2)
    name = use.split(" of ")[0]
    agrees(name, *SELECTS[use](x, one), **STATIC.get(use, STATIC[name]))


# Along every axis and two, in more than one tile, with padding past the size.
PADS = (
    ((3, 0, 0), (4, 0, 0)),
    ((0, 11, 0), (0, 30, 0)),
    ((0, 0, 140), (0, 0, 7)),
    ((1, 2, 3), (0, 1, 290)),
)
CONSTANT, EDGE, REFLECTION, SYMMETRIC, WRAP = PaddingMode


@pytest.mark.usefixtures("interpreted", "many_blocks", "cores")
@pytest.mark.parametrize(
    ("mode", "dtype", "pads", "cores"),
    [
        *((mode, "float32", pads, 1) for mode in (CONSTANT, WRAP) for pads in PADS),
        *((mode, "float32", PADS[3], 1) for mode in (EDGE, SYMMETRIC)),
        (REFLECTION, "float32", PADS[0], 1),
        (REFLECTION, "bfloat16", PADS[3], 2),
        (REFLECTION, "int8", PADS[1], 1),
    ],
    indirect=["cores"],
)
@pytest.mark.slow
def test_many_blocks_of_padding(mode, dtype, pads):
    value = [_numbers((1, 1, 1), dtype, 5)] if mode is CONSTANT else []
    start, end = pads
    x = _numbers((2, 19, 140), dtype)
    agrees("padding", x, *value, start=start, end=end, mode=mode)


@pytest.mark.usefixtures("interpreted", "many_blocks")
@pytest.mark.slow
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
@pytest.mark.slow
def test_nonzero_coordinates_of_many_blocks(density):
    """Blocks of 8 rows of 128: the last is cut, and others are empty or full."""
    x = np.random.default_rng(0).random((3, 3001)) < density
    x[0, :2048], x[1, :2048] = True, False
    check_coordinates(x, fill=7)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("dtype", ["complex64", "float64"])
@pytest.mark.slow
def test_nonzero_coordinates_of_wide_types(dtype):
    with jax.enable_x64(True):
        x = jnp.asarray(samples.bits((7, 99), dtype, 3))
        check_coordinates(x.at[:, ::2].set(0))


@pytest.mark.usefixtures("interpreted")
@pytest.mark.slow
def test_nonzero_coordinates_of_batches():
    x = jnp.asarray(np.random.default_rng(0).random((2, 2, 70, 40)) < 0.4)
    agrees("nonzero_coordinates", x, rank=2, columns=2, fill=3, size=None)
    first = jnp.arange(2, dtype=np.uint32).reshape(1, 2, 1, 1) * 2800
    agrees("nonzero_coordinates", x, first, rank=2, columns=2, fill=3, size=None)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.slow
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
    agrees("padding", x[:1], few, **wide)
    line = pads | {"start": (1,), "end": (3,)}
    agrees("padding", x[:1, 0], few[..., 0], **line)
    own = _numbers((3, 5, 1), "float32", 3)
    agrees("padding", x[0], own, **line)
    agrees("padding", x[0, :1], own, **line)
    agrees("diagonal_matrix1", many, x[:1], **span)


# THE INTERPRETER, FOR WHICH NOTHING GETS PAST IT


def planted(kernel, *, into=lambda i: (i, 0), out_of=lambda i: (i, 0)):
    """Two programs, on two cores."""
    return pl.pallas_call(
        kernel,
        grid=(2,),
        in_specs=[pl.BlockSpec((8, 128), out_of)],
        out_specs=pl.BlockSpec((8, 128), into),
        out_shape=jax.ShapeDtypeStruct((16, 128), np.float32),
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
