"""The choice of a kernel of NONZERO_COORDINATES, with the toy of test_primitive.py."""

import dataclasses
from functools import partial

import jax
import numpy as np
import pytest
from jax import export
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

import dmljax
from dmljax import DescriptorError, _nonzero_kernels
from tests.checks import assert_same, lowered, struct
from tests.meshes import sharding_of
from tests.pallas.nonzero import by_kernel
from tests.test_primitive import FORMS, TOY, chosen, form, forms_in, shard

LEAST = 8  # the fewest elements for the GPU kernel by default
SEARCH = dataclasses.replace(TOY, kernel=_nonzero_kernels.choose_kernel)
ASKED = partial(SEARCH, implementation="pallas")


def kernel(flags, **static):
    """The entry of a platform in KERNELS."""
    return form("kernel")


@pytest.fixture(autouse=True)
def kernels(monkeypatch):
    """Any JAX can build these kernels, because they are functions of jax.numpy."""
    for platform in ("cuda", "tpu"):
        monkeypatch.setitem(_nonzero_kernels.KERNELS, platform, kernel)
    monkeypatch.delitem(_nonzero_kernels.KERNELS, "cpu", raising=False)
    monkeypatch.setitem(_nonzero_kernels.DEFAULT_MIN_ELEMENTS, "cuda", LEAST)
    monkeypatch.setattr(_nonzero_kernels, "code_per_thread", lambda: ())


# THE DEFAULT


@pytest.mark.parametrize(
    ("size", "times", "expected"),
    [
        (LEAST - 1, 1, "definition"),
        (LEAST, 0, "kernel"),
        (LEAST // 2 - 1, 2, "definition"),
        (LEAST // 2, 2, "kernel"),
    ],
)
def test_the_default_looks_at_the_largest_operand_or_output(size, times, expected):
    assert chosen("cuda", times, SEARCH, size) == expected
    # The kernel for TPUs never ran on one.
    assert chosen("tpu", times, SEARCH, size) == "definition"
    # Fault: the kernel runs although XLA's form was asked for.
    by_xla = partial(SEARCH, implementation="xla")
    assert chosen("cuda", times, by_xla, size) == "definition"


def test_a_call_outside_of_jit_runs_the_same_code(monkeypatch):
    """As if a CPU had a kernel by default."""
    monkeypatch.setitem(_nonzero_kernels.KERNELS, "cpu", kernel)
    monkeypatch.setitem(_nonzero_kernels.DEFAULT_MIN_ELEMENTS, "cpu", LEAST)
    # JAX has compiled nothing of another primitive.
    call = partial(dataclasses.replace(SEARCH), times=1)
    for size, expected in (LEAST, "kernel"), (LEAST - 1, "for CPUs"):
        x = np.linspace(1, 2, size, dtype="f4")
        (alone,) = call(x)
        (inside,) = jax.jit(call)(x)
        assert_same(alone, inside)
        if jax.default_backend() == "cpu":
            np.testing.assert_allclose(alone, FORMS[expected][0](x), 1e-6)


def test_sizes_that_the_kernel_refuses_run_in_xla_by_default(monkeypatch):
    monkeypatch.setitem(_nonzero_kernels.KERNELS, "cuda", lambda flags, **static: None)
    x = struct(np.float32, LEAST)
    with pytest.raises(DescriptorError, match=r"can't count .* of sizes \{8\}; use"):
        lowered(by_kernel, x)
    text = lowered(dmljax.nonzero_coordinates, x)
    xla = partial(dmljax.nonzero_coordinates, implementation="xla")
    assert text.count("scatter") == lowered(xla, x).count("scatter")


# A KERNEL BY REQUEST


def assert_refused(message, platform="cuda", **options):
    """The kernel is, and no other form runs instead."""
    with pytest.raises(DescriptorError, match=f"^NONZERO_COORDINATES: .*{message}"):
        chosen(platform, toy=ASKED, **options)


def test_other_platforms_have_no_kernel():
    for platform, name in ("rocm", "this platform"), ("cpu", "the pl.* 'cpu'"):
        assert_refused(f"no kernel for {name}; .*None or 'xla'", platform)


def test_a_jax_without_code_per_thread_has_no_kernel_for_gpus(monkeypatch):
    monkeypatch.setattr(_nonzero_kernels, "code_per_thread", lambda: None)
    assert chosen("cuda", toy=SEARCH) == "definition"
    assert_refused("jax.experimental.pallas.mosaic_gpu as JAX .*; .*None or 'xla'")
    # Fault: a kernel for a TPU needs it, too.
    assert chosen("tpu", toy=ASKED) == "kernel"


@pytest.mark.parametrize("found", [(7, 5), (8, 0), (8, 9), (9, 0), (10, 0)])
def test_old_gpus_run_a_kernel_only_if_it_is_asked_for(found, monkeypatch):
    """Then it runs for any size."""
    monkeypatch.setattr(_nonzero_kernels, "compute_capability", lambda: found)
    by_default = "kernel" if found >= (9, 0) else "definition"
    assert chosen("cuda", toy=SEARCH) == by_default
    assert chosen("tpu", toy=ASKED, size=1) == "kernel"
    least = (8, 0) if jax.__version_info__ >= (0, 11, 2) else (9, 0)
    if found >= least:
        assert chosen("cuda", toy=ASKED, size=1) == "kernel"
    else:
        assert_refused(rf"compute capability {least[0]}\.0 or later")


# EXPORTS AND MANY DEVICES


@pytest.mark.parametrize(
    ("size", "toy", "expected"),
    [
        (LEAST, ASKED, "kernel"),
        (LEAST, SEARCH, "definition"),
        ("size", SEARCH, "definition"),
    ],
)
def test_an_export_has_a_kernel_only_if_it_is_asked_for(size, toy, expected):
    """Another machine may run the export, with an older GPU."""
    shape = export.symbolic_shape(str(size))
    function = jax.jit(partial(toy, times=1))
    program = export.export(function, platforms=("cuda",))
    text = program(struct(np.float32, *shape)).mlir_module()
    assert forms_in(text) == expected


def test_a_kernel_that_xla_would_have_to_divide_is_refused():
    """The message shows a shard_map around the call."""
    message = r"XLA may divide [^#]*jax\.shard_map\(f, mesh=mesh, in_specs="
    sharding = sharding_of("8", P("a"))
    options = {"size": 8 * LEAST, "sharding": sharding}
    assert_refused(message, **options)
    assert chosen("cuda", toy=SEARCH, **options) == "auto-sharded"


def test_each_device_runs_the_kernel_where_the_types_say_how_arrays_are_divided():
    """The sizes are those of a part."""
    mapped = shard({"a", "b"}, SEARCH)
    for size, expected in (2 * LEAST, "kernel"), (2 * LEAST - 2, "definition"):
        x = struct(np.float32, size)
        assert forms_in(lowered(mapped, x)) == expected
        sharding = sharding_of("2x4", P("a"), AxisType.Explicit)
        assert chosen("cuda", toy=SEARCH, size=size, sharding=sharding) == expected


def test_a_kernel_in_a_shard_map_over_some_axes_is_refused():
    message = r"over the axes that are not manual; leave out axis_names="
    with pytest.raises(DescriptorError, match=message):
        lowered(shard({"a"}, ASKED), struct(np.float32, LEAST))
