"""Which form a program has, and what of it is a kernel: programs as text, not run.

They are lowered for an NVIDIA GPU on whatever machine this is, with the blocks that
users run.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import dmljax
from dmljax import DescriptorError, PaddingMode, _default, _jax, _primitive, pallas
from dmljax.pallas import BACKENDS
from dmljax.pallas.gpu import _nonzero_coordinates
from tests.checks import eight_devices
from tests.subjects import SUBJECTS

pytestmark = pytest.mark.usefixtures("real_blocks")
WITH_KERNEL = [name for name, one in SUBJECTS.items() if one.kernel_samples]
TARGET = "mosaic_gpu_v2"  # the custom call of Pallas' backend
each_operator = pytest.mark.parametrize("name", WITH_KERNEL)

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
    """Every type once; all samples in one type."""
    found = SUBJECTS[name].kernel_samples
    for sample in found if dtype == "float32" else found[:1]:
        text = lowered(function_of(sample), *sample.arrays(dtype))
        assert launches(text) == 1
        assert f"dmljax_{name}" in text


@each_operator
def test_small_arrays_run_in_xla(name):
    for sample in SUBJECTS[name].samples:
        assert launches(lowered(function_of(sample), *sample.arrays())) == 0


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("dtype", ["float64", "int64", "complex128"])
@each_operator
def test_kernels_of_wide_types_are_lowered_for_cuda(name, dtype):
    sample = SUBJECTS[name].kernel_samples[0]
    text = lowered(function_of(sample), *sample.arrays(dtype))
    assert launches(text) >= 1


@each_operator
def test_kernels_of_wide_types_are_lowered_outside_of_x64_mode(name):
    """As in a thread of JAX's that is not in the mode in which they were traced."""
    sample = SUBJECTS[name].kernel_samples[0]
    with jax.enable_x64(True):
        traced = jax.jit(function_of(sample)).trace(*sample.arrays("float64"))
    text = traced.lower(lowering_platforms=("cuda",)).as_text()
    assert launches(text) >= 1


@pytest.mark.parametrize("name", ["diagonal_matrix1", "element_wise_if"])
def test_gradients_of_batches_run_the_kernel(name):
    """Forward and backward; what is shared is summed, which is XLA's to do."""
    for sample in SUBJECTS[name].kernel_samples:
        arrays = tuple(np.stack([x, x]) for x in sample.arrays())
        large = [i for i in sample.open_operands if arrays[i].size > 4]
        if not large:
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
    monkeypatch.setattr(_primitive, "KERNEL_FROM", {"cuda": rule})
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
    xla = dataclasses.replace(sample, implementation="xla")
    assert launches(lowered(function_of(xla), *arrays)) == 0


@pytest.mark.parametrize(
    ("wrapped", "expected"),
    [
        (lambda f: f, True),
        (jax.disable_jit()(lambda f: f), True),
        *((jax.jit, False), (jax.vmap, False), (lambda f: jax.jit(jax.vmap(f)), False)),
        (lambda f: lambda x: jax.jvp(f, (x,), (x,)), False),
        (lambda f: lambda x: jax.lax.map(f, x), False),
    ],
)
def test_a_call_knows_whether_it_is_a_program_of_its_own(wrapped, expected):
    seen = []

    def function(x):
        seen.append(_jax.stands_alone())
        return x

    wrapped(function)(jnp.ones(3))
    assert set(seen) == {expected}


def test_where_jax_does_not_say_what_is_traced_no_call_is_alone(monkeypatch):
    monkeypatch.setattr(_jax, "_trace_state", object)
    assert not _jax.stands_alone()


def test_a_call_on_constants_inside_jit_is_not_alone():
    jaxpr = jax.make_jaxpr(lambda: dmljax.diagonal_matrix1(jnp.ones((3, 3))))()
    assert "alone=False" in str(jaxpr)


def test_the_rule_looks_at_type_and_size():
    rule = _default.KERNEL_FROM["cuda"]["pipeline"]["nonzero_coordinates"]
    for dtype in (np.uint8, np.float16, np.float32):
        least = rule[np.dtype(dtype).itemsize]
        for elements, expected in ((least, 1), (least - 1, 0)):
            struct = jax.ShapeDtypeStruct((elements,), dtype)
            assert launches(lowered(dmljax.nonzero_coordinates, struct)) == expected


# Rows of the input with many bytes and little padding, and with fewer or more.
@pytest.mark.parametrize(
    ("shape", "pads", "dtype", "expected"),
    [
        ((300, 16), (0, 16), np.int8, True),
        ((300, 16), (0, 20), np.int8, False),
        ((300, 12), (0, 4), np.int8, False),
        ((300, 16), (2, 2), np.float16, True),
        ((300, 14), (2, 2), np.float16, False),
        ((300, 8, 3), (2, 2, 0), np.int8, True),
        ((300, 4, 3), (1, 1, 0), np.int8, False),
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


def test_a_program_exported_from_a_cpu_has_the_kernel_that_was_asked_for():
    """By default an export has XLA's form, for which JAX promises compatibility."""
    for implementation, expected in (("pallas", 1), (None, 0)):
        exporting = export.export(
            jax.jit(
                functools.partial(
                    dmljax.nonzero_coordinates, implementation=implementation
                )
            ),
            platforms=("cuda",),
        )
        assert launches(exporting(LARGE).mlir_module()) == expected


@pytest.mark.parametrize(
    ("axis_type", "expected"), [(AxisType.Auto, 0), (AxisType.Explicit, 1)]
)
def test_a_sharded_program_runs_kernels_where_the_types_say_how(axis_type, expected):
    """With automatic axes XLA divides the program, and can't divide a kernel."""
    mesh = eight_devices(axis_type)
    sharding = NamedSharding(mesh, P("batch"))
    struct = jax.ShapeDtypeStruct((8, 1 << 20), np.float32, sharding=sharding)
    with jax.set_mesh(mesh):
        text = lowered(jax.vmap(dmljax.nonzero_coordinates), struct)
    assert launches(text) == expected


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (dmljax.nonzero_coordinates, 1),
        (lambda x: dmljax.element_wise_if(x > 0, x, x, implementation="pallas"), 1),
    ],
)
def test_each_device_of_a_shard_map_runs_the_kernel(function, expected):
    mesh = eight_devices(AxisType.Auto)
    mapped = jax.shard_map(
        jax.vmap(function), mesh=mesh, in_specs=P("batch"), out_specs=P("batch")
    )
    struct = jax.ShapeDtypeStruct((8, 1 << 20), np.float32)
    assert launches(lowered(mapped, struct)) == expected


# WHAT IS NOT THERE


@pytest.fixture
def no_backend(monkeypatch):
    """A JAX without the backend of the kernels."""
    monkeypatch.setattr(_primitive, "kernels_available", lambda platform: False)
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
    expected = rf"{name.upper()}: .*{BACKENDS['cuda']}, which this JAX.*None or 'xla'"
    with pytest.raises(DescriptorError, match=expected):
        lowered(function_of(sample), *sample.arrays())


@pytest.mark.parametrize("found", [(7, 5), (8, 0), (8, 9)])
@each_operator
def test_old_gpus_run_a_kernel_only_if_it_is_asked_for(name, found, monkeypatch):
    monkeypatch.setattr(pallas, "compute_capability", lambda: found)
    sample = SUBJECTS[name].samples[0]
    by_kernel = function_of(sample.by_kernel())
    least = (8, 0) if jax.__version_info__ >= (0, 11, 2) else (9, 0)
    if found >= least:
        assert launches(lowered(by_kernel, *sample.arrays())) == 1
        return
    expected = rf"compute capability \({least[0]}, 0\) or later"
    with pytest.raises(DescriptorError, match=expected):
        lowered(by_kernel, *sample.arrays())


def test_a_gpu_that_no_kernel_was_run_on_has_xla_by_default(monkeypatch):
    """With any JAX, also where the kernel is compiled for this GPU."""
    monkeypatch.setattr(pallas, "compute_capability", lambda: (8, 0))
    monkeypatch.setattr(_primitive, "LEAST_CAPABILITY", (8, 0))
    kernel = functools.partial(dmljax.nonzero_coordinates, implementation="pallas")
    assert launches(lowered(kernel, LARGE)) == 1
    assert launches(lowered(lambda x: dmljax.nonzero_coordinates(x), LARGE)) == 0


@pytest.mark.parametrize("platform", ["rocm", "METAL"])
def test_other_platforms_have_no_kernel(platform):
    """A kernel that is asked for is refused there, and not run by an interpreter."""
    kernel = functools.partial(dmljax.nonzero_coordinates, implementation="pallas")
    with pytest.raises(DescriptorError, match="no kernel for this platform"):
        jax.jit(kernel).trace(LARGE).lower(lowering_platforms=(platform,))
    default = jax.jit(dmljax.nonzero_coordinates).trace(LARGE)
    assert launches(default.lower(lowering_platforms=(platform,)).as_text()) == 0


# Its places need all 32 bits.
ODD = jax.ShapeDtypeStruct((2**31 + 1,), np.uint8)


def test_kernels_address_arrays_of_any_size():
    assert launches(lowered(dmljax.nonzero_coordinates, ODD)) == 1
    select = functools.partial(dmljax.element_wise_if, implementation="pallas")
    assert launches(lowered(lambda x: select(x, x, x), ODD)) == 1


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


def test_no_array_of_the_kernel_has_a_value_for_each_row(monkeypatch):
    """Programs keep bits to themselves, and K rows are written."""
    launched = record_launches(monkeypatch)
    x = jax.ShapeDtypeStruct((2**20,), np.float32)
    lowered(
        lambda x: dmljax.nonzero_coordinates(x, size=10, implementation="pallas"), x
    )
    (options,) = launched
    assert [out.size for out in options["outputs"]] == [1, 10]
    assert options["posts"] == [(1, options["programs"])]
    assert options["programs"] <= x.size // 8192


def test_a_batch_may_exceed_what_a_gpu_allows_the_later_dimensions_of_a_grid(
    monkeypatch,
):
    launched = record_launches(monkeypatch)
    struct = jax.ShapeDtypeStruct((70_000, 300_000), np.uint8)
    function = functools.partial(dmljax.nonzero_coordinates, implementation="pallas")
    lowered(jax.vmap(function), struct)
    (options,) = launched
    shares = -(-300_000 // (16 * 8192))
    assert options["programs"] == 70_000 * shares
    assert options["posts"] == [(70_000, shares)]


def test_a_batch_of_more_tensors_than_a_grid_has_programs_is_refused():
    struct = jax.ShapeDtypeStruct((2**31, 1), np.uint8)
    kernel = functools.partial(dmljax.nonzero_coordinates, implementation="pallas")
    with pytest.raises(DescriptorError, match="in 2147483648 tensors at once; use"):
        lowered(jax.vmap(kernel), struct)
    assert launches(lowered(jax.vmap(dmljax.nonzero_coordinates), struct)) == 0


def test_a_line_of_one_program_waits_for_nobody(monkeypatch):
    launched = record_launches(monkeypatch)
    struct = jax.ShapeDtypeStruct((70_000, 8192), np.float32)
    function = functools.partial(dmljax.nonzero_coordinates, implementation="pallas")
    lowered(jax.vmap(function), struct)
    assert launched[0]["posts"] == []
    assert launched[0]["programs"] == 70_000


def record_launches(monkeypatch):
    """A list to which each launch of code per thread adds its options."""
    launched, launch = [], _nonzero_coordinates.launch_threads

    def record(*arguments, **options):
        launched.append(options)
        return launch(*arguments, **options)

    monkeypatch.setattr(_nonzero_coordinates, "launch_threads", record)
    jax.clear_caches()
    return launched
