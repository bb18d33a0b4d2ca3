"""The kernels for TPUs down to machine code, where the compiler is installed.

No TPU is needed: `pip install libtpu`, of the version that `jax[tpu]` asks for. It is
large, and so this is a check of its own:

    JAX_PLATFORMS=cpu python -m pytest tests/test_tpu_compiled.py
"""

import functools
import importlib.util

import jax
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding

import dmljax
from benchmarks import tpu
from dmljax import PaddingMode
from tests import test_sharding
from tests.checks import needs_x64
from tests.subjects import SUBJECTS
from tests.test_tpu_lowering import TYPES, WITH_KERNEL, has_work, uses

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("libtpu") is None or jax.default_backend() != "cpu",
    reason="the compiler for TPUs is not installed, or there is an accelerator",
)
# What a kernel may use of a core's vector memory without asking for more.
VECTOR_MEMORY = 16 * 2**20
each_chip = pytest.mark.parametrize("chip", tpu.CHIPS)
each_operator = pytest.mark.parametrize("name", WITH_KERNEL)
struct = jax.ShapeDtypeStruct


def kernels(program, name):
    """How many kernels of this name a compiled program has, which fit into memory."""
    assert tpu.vector_memory(program) <= VECTOR_MEMORY
    lines = program.as_text().splitlines()
    return sum("tpu_custom_call" in x and f"%dmljax_{name}" in x for x in lines)


def check(sample, chip, dtype="float32"):
    arrays = [struct(x.shape, x.dtype) for x in sample.arrays(dtype)]
    program = tpu.compiled(lambda *x: sample.run(*x), chip, *arrays)
    assert kernels(program, sample.operator) == has_work(sample)


@pytest.mark.parametrize("dtype", TYPES)
@each_operator
@each_chip
def test_every_type(chip, name, dtype):
    for sample in uses(name, edges=False):
        check(sample, chip, dtype)


@each_operator
@each_chip
def test_edges(chip, name):
    for sample in uses(name):
        with jax.enable_x64(needs_x64(sample)):
            check(sample, chip)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(5, 700, 1300), (100_003,), (3, 1, 70_001)])
@each_chip
def test_blocks_of_selects(chip, shape, dtype):
    x, condition = struct(shape, dtype), struct(shape, bool)
    select = functools.partial(dmljax.element_wise_if, implementation="pallas")
    assert kernels(tpu.compiled(select, chip, condition, x, x), "element_wise_if") == 1
    fill = functools.partial(dmljax.diagonal_matrix1, implementation="pallas")
    if len(shape) > 1:
        program = tpu.compiled(lambda x: fill(x), chip, x)
        assert kernels(program, "diagonal_matrix1") == 1
    indices, values = struct((*shape, 1), np.int32), struct((2,), dtype)
    hot = functools.partial(dmljax.one_hot, size=300, implementation="pallas")
    assert kernels(tpu.compiled(hot, chip, indices, values), "one_hot") == 1


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    ("shape", "pads", "expected"),
    [
        ((5, 300, 700), (3, 0, 0), 1),
        ((5, 300, 700), (0, 400, 0), 1),
        ((5, 300, 700), (0, 0, 800), 1),
        ((2, 3, 100, 200), (1, 0, 7, 9), 1),
        ((3, 800, 600), (0, 9, 9), 2),
        ((30_000, 3), (300, 0), 0),
    ],
)
@each_chip
def test_blocks_of_padding(chip, shape, pads, expected, dtype):
    """One kernel, or two where a matrix is large; a column of tiles must fit."""
    pad = functools.partial(dmljax.padding, mode=PaddingMode.SYMMETRIC)
    x = struct(shape, dtype)
    if not expected:
        with pytest.raises(dmljax.DescriptorError, match="too large"):
            tpu.compiled(lambda x: pad(x, pads, pads, implementation="pallas"), chip, x)
        return
    program = tpu.compiled(
        lambda x: pad(x, pads, pads, implementation="pallas"), chip, x
    )
    assert kernels(program, "padding") == expected


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(1000, 1100), (3, 40_000)])
@each_chip
def test_blocks_of_nonzero_coordinates(chip, shape, dtype):
    find = functools.partial(dmljax.nonzero_coordinates, implementation="pallas")
    batch = jax.vmap(find) if shape[0] == 3 else find
    program = tpu.compiled(batch, chip, struct(shape, dtype))
    assert kernels(program, "nonzero_coordinates") == 1


@each_operator
@each_chip
def test_batches(chip, name):
    sample = SUBJECTS[name].kernel_samples[0]
    arrays = [struct((3, *x.shape), x.dtype) for x in sample.arrays()]
    program = tpu.compiled(jax.vmap(sample.run), chip, *arrays)
    assert kernels(program, name) == 1


@each_chip
def test_a_part_of_a_matrix(chip):
    """The diagonal of its first element is an operand."""
    static = {"matrix": (70, 300), "fill_begin": -40, "fill_end": 9}
    part = functools.partial(
        SUBJECTS["diagonal_matrix1"].primitive, implementation="pallas", **static
    )
    origin, value = struct((1, 1, 1), np.int32), struct((1, 1, 1), np.float32)
    x = struct((3, 70, 300), np.float32)
    program = tpu.compiled(lambda *x: part(*x), chip, origin, value, x)
    assert kernels(program, "diagonal_matrix1") == 1


# The lines of the pages whose programs have no kernel for TPUs: a sum, and K rows.
WITHOUT_KERNEL = (
    ("`jax.grad` of `one_hot`, by `values`", "batch"),
    ("`nonzero_coordinates`, `size=K`", "the first dimension"),
)


@pytest.mark.parametrize("implementation", ["xla", "pallas"])
@test_sharding.divisions(["4", "2x2"])
def test_four_chips_communicate_what_the_page_says(case, mesh, spec, implementation):
    """With explicit axes, which make a shard_map: this compiler can't ask."""
    if implementation == "pallas" and case.line in WITHOUT_KERNEL:
        pytest.skip("this program has no kernel for TPUs")
    sizes, names = test_sharding.MESHES[mesh]
    chips = np.array(tpu.devices("v5e")[:4]).reshape(sizes)
    square = Mesh(chips, names, axis_types=(AxisType.Explicit,) * len(sizes))
    sharding = NamedSharding(square, spec)
    placed = [struct(x.shape, x.dtype, sharding=sharding) for x in case.arrays]
    function = functools.partial(case.function, implementation=implementation)
    program = jax.jit(function).lower(*placed).compile()
    parts = test_sharding.parts_of(mesh, spec)
    found = test_sharding.collectives(program.as_text())
    words = test_sharding.table()[case.line][AxisType.Explicit]
    meaning = test_sharding.MEANINGS[words]
    assert meaning(found, case=case, parts=parts, gradient=False), found
    if case.line != ("`padding`", "a padded dimension"):  # where WRAP only slices
        assert ("dmljax_" in program.as_text()) == (implementation == "pallas")
