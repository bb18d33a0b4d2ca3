"""The choice of an operator's form, as the text of the program shows it.

A toy operator has every kind of form. Each form computes another function, so the
program shows its form.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

import dmljax
from dmljax import DescriptorError
from dmljax._check import NoKernelError
from dmljax._primitive import Kernel, OperatorPrimitive
from tests.checks import assert_same, lowered
from tests.meshes import sharding_of
from tests.subjects import SUBJECTS

pytestmark = pytest.mark.usefixtures("any_jax")
# For each form, its function, and the operation of StableHLO that shows it.
FORMS = {
    "definition": (jnp.sin, "sine"),
    "for CPUs": (jnp.cos, "cosine"),
    "divisible": (jnp.tan, "tan"),
    "kernel": (jnp.tanh, "tanh"),
}
LEAST = 8  # the fewest elements for the GPU kernel by default


def form(name):
    return lambda x, *, times: (jnp.tile(FORMS[name][0](x), times),)


def kernel(x, *, times):
    if x.dtype == np.float16:
        raise NoKernelError("TOY: the kernel has no float16.")
    return form("kernel")(x, times=times)


TOY = OperatorPrimitive(
    "toy",
    form("definition"),
    lambda *operands, **static: {0},
    on_platform={"cpu": form("for CPUs")},
    divisible=form("divisible"),
    kernels={"cuda": Kernel(kernel, LEAST), "tpu": Kernel(kernel)},
)


def toy(x, times=1, implementation=None):
    (output,) = TOY(x, times=times, implementation=implementation)
    return output


def struct(size=LEAST, dtype="float32", **options):
    return jax.ShapeDtypeStruct((size,), dtype, **options)


def forms_in(text):
    """The forms of the toy in a program's text."""
    found = [name for name, (_, shown) in FORMS.items() if f".{shown} " in text]
    return ", ".join(found)


def chosen(*arrays, platform="cuda", **options):
    """The name of the form that runs."""
    function = functools.partial(toy, **options)
    return forms_in(lowered(function, *arrays or (struct(),), platform=platform))


# THE DEFAULT


@pytest.mark.parametrize(
    ("platform", "expected"),
    [
        ("cpu", "for CPUs"),
        ("cuda", "kernel"),
        ("tpu", "definition"),
        ("rocm", "definition"),
        ("METAL", "definition"),
    ],
)
def test_the_default(platform, expected):
    assert chosen(platform=platform) == expected
    of_jnp = expected.replace("kernel", "definition")
    assert chosen(platform=platform, implementation="xla") == of_jnp


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
    assert chosen(struct(size), times=times) == expected


def test_a_call_outside_of_jit_runs_the_same_code():
    """As if a CPU had a kernel."""
    fresh = dataclasses.replace(TOY, kernels={"cpu": Kernel(kernel, LEAST)})
    call = functools.partial(fresh, times=1)
    for size, expected in (LEAST, "kernel"), (LEAST - 1, "for CPUs"):
        x = np.linspace(1, 2, size, dtype="f4")
        (alone,) = call(x)
        (inside,) = jax.jit(call)(x)
        assert_same(alone, inside)
        if jax.default_backend() == "cpu":
            np.testing.assert_allclose(alone, FORMS[expected][0](x), 1e-6)


@pytest.mark.parametrize("name", SUBJECTS)
def test_a_program_names_the_operator(name):
    """In a profile; and in a jaxpr, if it has a primitive."""
    sample = SUBJECTS[name].samples[0]
    jaxpr = jax.make_jaxpr(sample.run)(*sample.arrays())
    assert (f"dmljax_{name}" in str(jaxpr)) == bool(SUBJECTS[name].primitive)
    text = jax.jit(sample.run).lower(*sample.arrays()).as_text(debug_info=True)
    assert f"dmljax.{name}" in text


# A KERNEL BY REQUEST


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_a_kernel_that_is_asked_for_runs_for_any_size(platform):
    assert chosen(struct(1), platform=platform, implementation="pallas") == "kernel"


def assert_refused(message, *arrays, platform="cuda", function=toy):
    """The kernel is, and no other form runs instead."""
    asking = functools.partial(function, implementation="pallas")
    with pytest.raises(DescriptorError, match=f"^TOY: .*{message}"):
        lowered(asking, *arrays or (struct(),), platform=platform)


def test_arrays_that_the_kernel_refuses_run_in_xla_by_default():
    x = struct(LEAST, "float16")
    assert_refused("the kernel has no float16", x)
    assert chosen(x) == "definition"


# EXPORTS AND MANY DEVICES


@pytest.mark.parametrize(
    ("size", "implementation", "expected"),
    [
        (LEAST, "pallas", "kernel"),
        (LEAST, None, "definition"),
        ("size", None, "definition"),
    ],
)
def test_an_export_has_a_kernel_only_if_it_is_asked_for(size, implementation, expected):
    """Another machine may run the export, with an older GPU."""
    shape = export.symbolic_shape(str(size))
    function = functools.partial(toy, implementation=implementation)
    program = export.export(jax.jit(function), platforms=("cuda",))
    text = program(jax.ShapeDtypeStruct(shape, np.float32)).mlir_module()
    assert forms_in(text) == expected


@pytest.mark.parametrize("platform", ["cpu", "cuda", "tpu"])
def test_the_divisible_form_runs_where_xla_divides_a_program(platform):
    """With automatic axes, also if only the output has a sharding."""
    sharding = sharding_of("8", P("a"))
    x = struct(8 * LEAST, sharding=sharding)
    assert chosen(x, platform=platform) == "divisible"
    function = jax.jit(lambda: toy(jnp.ones(8 * LEAST)), out_shardings=sharding)
    text = function.trace().lower(lowering_platforms=(platform,)).as_text()
    assert forms_in(text) == "divisible"


MESSAGE = r"XLA may divide [^#]*jax\.shard_map\(f, mesh=mesh, in_specs="


def test_a_kernel_that_xla_would_have_to_divide_is_refused():
    """The message shows a shard_map around the call."""
    assert_refused(MESSAGE, struct(8 * LEAST, sharding=sharding_of("8", P("a"))))


def shard(axis_names, **options):
    """The function of each part, over one or both axes of a mesh."""
    sharding = sharding_of("2x4", P("a"))
    return jax.shard_map(
        functools.partial(toy, **options),
        mesh=sharding.mesh,
        in_specs=P("a"),
        out_specs=P("a"),
        axis_names=axis_names,
        check_vma=axis_names == {"a", "b"},
    )


def test_each_device_runs_the_kernel_where_the_types_say_how_arrays_are_divided():
    """The sizes are those of a part."""
    for size, expected in (2 * LEAST, "kernel"), (2 * LEAST - 2, "definition"):
        assert forms_in(lowered(shard({"a", "b"}), struct(size))) == expected
        sharding = sharding_of("2x4", P("a"), AxisType.Explicit)
        assert chosen(struct(size, sharding=sharding)) == expected


def test_a_kernel_in_a_shard_map_over_some_axes_is_refused():
    assert forms_in(lowered(shard({"a"}), struct())) == "divisible"

    def function(x, **options):
        return shard({"a"}, **options)(x)

    message = r"over the axes that are not manual; leave out axis_names="
    assert_refused(message, struct(), function=function)


def test_a_nan_is_found_where_debug_nans_asks_for_it():
    """JAX evaluates each primitive by itself then."""
    calls = [
        lambda: dmljax.padding(x, (0, 1), (1, 0)),
        lambda: dmljax.diagonal_matrix1(x, fill_begin=1, fill_end=1),
        lambda: dmljax.element_wise_if(np.ones((1, 2), bool), x, x),
        lambda: dmljax.one_hot(np.int32([[0]]), x, size=2),
    ]
    for check, given in ((jax.debug_nans, np.nan), (jax.debug_infs, np.inf)):
        x = jax.device_put(np.float32([[given, 1]]))
        with check(True):
            assert dmljax.nonzero_coordinates(x).count == 2
            for call in calls:
                with pytest.raises(FloatingPointError, match="invalid value"):
                    call()
