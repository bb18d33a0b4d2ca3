"""The kernels for TPUs, lowered: the choice of form, and what is refused.

`test_tpu_compiled.py` goes on to machine code, and `test_tpu.py` has the results.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dmljax._default import KERNEL_FROM
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import dmljax
from dmljax import DescriptorError, PaddingMode, _primitive
from dmljax.pallas.gpu._launch import Block
from tests.checks import eight_devices, needs_x64
from tests.subjects import SUBJECTS

WITH_KERNEL = [name for name, one in SUBJECTS.items() if "tpu" in one.primitive.kernels]
TYPES = (
    *("float32", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int32", "int16", "int8"),
    *("uint32", "uint16", "uint8", "bool", "int4", "uint4"),
)
# Their size is that of another type that is lowered.
ALIKE = ("float8_e5m2", "uint32", "uint16", "uint8", "uint4")
WIDE = ("float16", "complex64", "float64", "int64")
TARGET = "tpu_custom_call"
each_operator = pytest.mark.parametrize("name", WITH_KERNEL)
# The kernel of the other operator is given truth values, whatever the type.
MOVERS = [name for name in WITH_KERNEL if name != "nonzero_coordinates"]
each_mover = pytest.mark.parametrize("name", MOVERS)
struct = jax.ShapeDtypeStruct


def cuts_rows(sample):
    """Whether it asks for another number of rows, which the kernel for TPUs refuses."""
    return sample.operator == "nonzero_coordinates" and "size" in sample.attributes


def uses(name, *, edges=True):
    """What the kernel for TPUs runs of the operator's samples and edges."""
    subject = SUBJECTS[name]
    found = subject.kernel_samples + (subject.kernel_edges if edges else ())
    return [sample for sample in found if not cuts_rows(sample)]


def has_work(sample):
    """Whether there is something to read and to write, and not the same."""
    arrays = sample.arrays()
    outputs = jax.tree.leaves(sample.expected(*arrays))
    same = sample.operator == "padding" and outputs[0].shape == arrays[0].shape
    return not same and all(x.size for x in (*outputs, *arrays))


def lowered(function, *arguments):
    """The program's text for a TPU, whatever machine this is."""
    traced = jax.jit(function).trace(*arguments)
    return traced.lower(lowering_platforms=("tpu",)).as_text()


def launches(text):
    return text.count(f"@{TARGET}(")


@pytest.mark.parametrize(
    "dtype",
    [
        pytest.param(dtype, marks=pytest.mark.slow if dtype in ALIKE else ())
        for dtype in TYPES
    ],
)
@each_operator
def test_kernels_are_lowered(name, dtype):
    """Every type once; all samples in one type."""
    found = uses(name, edges=False)
    for sample in found if dtype == TYPES[0] else found[:1]:
        text = lowered(lambda *x, sample=sample: sample.run(*x), *sample.arrays(dtype))
        assert launches(text) == 1
        assert f"dmljax_{name}" in text


@each_operator
def test_edges_are_lowered(name):
    for sample in uses(name):
        arrays = sample.arrays()
        with jax.enable_x64(needs_x64(sample)):
            text = lowered(lambda *x, sample=sample: sample.run(*x), *arrays)
            assert launches(text) == has_work(sample)


def test_what_the_pipeline_moves():
    """Of blocks that are cut what is inside; of shared ones as often as they change."""
    grid, shape = (3, 2), (20, 200)
    block = Block((8, 128), lambda i, j: (i, j), (0, 1))
    row = Block((1, 128), lambda i, j: (0, j), (1,))
    column = Block((8, 1), lambda i, j: (i, 0), (0,))
    assert block.moved(grid, shape) == 20 * 200
    assert row.moved(grid, (1, 200)) == 3 * 200
    assert column.moved(grid, (20, 1)) == 20


CUT = [edge for edge in SUBJECTS["nonzero_coordinates"].kernel_edges if cuts_rows(edge)]


@pytest.mark.parametrize("sample", [edge for edge in CUT if has_work(edge)], ids=str)
def test_a_cut_number_of_rows_is_refused_to_who_asks_for_the_kernel(sample):
    with pytest.raises(DescriptorError, match=r"rows, one for each element.*'xla'"):
        lowered(sample.run, *sample.arrays())


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("dtype", WIDE)
@each_mover
def test_what_mosaic_has_not_is_refused_to_who_asks_for_it(name, dtype):
    sample = SUBJECTS[name].kernel_samples[0]
    expected = rf"^{name.upper()}: .*no {dtype.upper()}.*None or 'xla'"
    with pytest.raises(DescriptorError, match=expected):
        lowered(sample.run, *sample.arrays(dtype))


@pytest.fixture
def preferred(monkeypatch):
    """Every kernel is the default, for arrays of any size."""
    sizes = dict.fromkeys((1, 2, 4, 8, 16), 0)
    rule = {"pipeline": dict.fromkeys(WITH_KERNEL, sizes)}
    monkeypatch.setattr(_primitive, "KERNEL_FROM", {"tpu": rule})
    jax.clear_caches()
    yield
    jax.clear_caches()


@pytest.mark.usefixtures("preferred")
@pytest.mark.parametrize(
    ("dtype", "expected"), [("float32", 1), ("bfloat16", 1), ("float16", 0)]
)
@each_mover
def test_by_default_float16_runs_in_xla(name, dtype, expected):
    sample = SUBJECTS[name].samples[-1]
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
            implementation=None,
            alone=True,
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
        _primitive, "KERNEL_FROM", {"tpu": {"pipeline": {"padding": sizes}}}
    )
    assert launches(lowered(functools.partial(pad, implementation=None), long)) == 0


@pytest.mark.parametrize("name", ["diagonal_matrix1", "element_wise_if", "padding"])
def test_gradients(name):
    """Those of selects by kernel are kernels; that of a padding is XLA's form."""
    for sample in uses(name, edges=False):
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
    sample = SUBJECTS[name].kernel_samples[0]
    arrays = [np.stack([x] * 8) for x in sample.arrays()]
    mapped = jax.shard_map(
        jax.vmap(sample.run), mesh=mesh, in_specs=P("batch"), out_specs=P("batch")
    )
    assert launches(lowered(mapped, *arrays)) == 1


@each_operator
def test_a_sharded_program_leaves_partitioning_to_xla(name):
    """XLA can't divide a kernel: one that is asked for by name is refused."""
    mesh = eight_devices(AxisType.Auto)
    sample = SUBJECTS[name].samples[0]
    sharding = NamedSharding(mesh, P("batch"))
    arrays = [
        struct((8, *x.shape), x.dtype, sharding=sharding) for x in sample.arrays()
    ]
    text = lowered(jax.vmap(sample.run), *arrays)
    assert launches(text) == 0
    with pytest.raises(DescriptorError, match=r"jax\.shard_map\(f, mesh=mesh"):
        lowered(jax.vmap(sample.by_kernel().run), *arrays)


def test_a_kernel_that_is_not_there_is_named_with_its_platform(monkeypatch):
    monkeypatch.delitem(SUBJECTS["padding"].primitive.kernels, "cuda")
    pad = functools.partial(dmljax.padding, implementation="pallas")
    with pytest.raises(DescriptorError, match=r"PADDING: .*no kernel .* '(cpu|cuda)'"):
        pad(jnp.ones(3), (1,), (1,))
    traced = jax.jit(lambda x: pad(x, (1,), (1,))).trace(jnp.ones(3))
    with pytest.raises(DescriptorError, match=r"PADDING: .*no kernel .* 'cuda'"):
        traced.lower(lowering_platforms=("cuda",))
