"""The choice of an operator's form, as the text of the program shows it.

A toy operator has every kind of form. Each form computes another function, so the
program shows its form. test_nonzero_kernels.py has the choice of a kernel.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

import dmljax
from dmljax._nonzero_coordinates import NONZERO_COORDINATES
from dmljax._padding import PADDING
from dmljax._primitive import OperatorPrimitive
from dmljax._sharding import Division
from tests.checks import assert_same, lowered, struct
from tests.meshes import sharding_of
from tests.subjects import SUBJECTS

# For each form, its function, and the operation of StableHLO that shows it.
FORMS = {
    "definition": (jnp.sin, "sine"),
    "for CPUs": (jnp.cos, "cosine"),
    "auto-sharded": (jnp.tan, "tan"),
    "kernel": (jnp.tanh, "tanh"),
}


def form(name):
    return lambda x, *, times=1: (jnp.tile(FORMS[name][0](x), times),)


TOY = OperatorPrimitive(
    "toy",
    form("definition"),
    lambda x, *, times=1, **_: [struct(x.dtype, x.shape[0] * times)],
    lambda *_, **__: Division({0}, "keep"),
    on_platform={"cpu": form("for CPUs")},
    auto_sharded=form("auto-sharded"),
    kernel=lambda platform, *_, **__: form("kernel") if platform == "tpu" else None,
)


def forms_in(text):
    """The forms of the toy in a program's text."""
    found = [name for name, (_, shown) in FORMS.items() if f".{shown} " in text]
    return ", ".join(found)


def chosen(platform, times=1, toy=TOY, size=64, **options):
    """The name of the form that runs."""
    x = jax.ShapeDtypeStruct((size,), np.float32, **options)
    return forms_in(lowered(partial(toy, times=times), x, platform=platform))


@pytest.mark.parametrize(
    ("platform", "expected"),
    [
        ("cpu", "for CPUs"),
        ("cuda", "definition"),
        ("tpu", "kernel"),
    ],
)
def test_the_default(platform, expected):
    assert chosen(platform) == expected


@pytest.mark.parametrize("name", SUBJECTS)
def test_a_program_names_the_operator(name):
    """In a profile; and in a jaxpr, if it has a primitive."""
    sample = SUBJECTS[name].samples[0]
    jaxpr = jax.make_jaxpr(sample.run)(*sample.arrays())
    assert (f"dmljax_{name}" in str(jaxpr)) == bool(SUBJECTS[name].primitive)
    text = jax.jit(sample.run).lower(*sample.arrays()).as_text(debug_info=True)
    assert f"dmljax.{name}" in text


@pytest.mark.parametrize("mesh", ["1", "8"])
def test_64_bits_are_lowered_outside_of_x64_mode(mesh):
    """A program may be lowered after the context of its trace has ended."""
    pull = jax.grad(lambda x: jnp.sum(dmljax.padding(x, (8,), (8,), mode="wrap") ** 2))
    x = np.arange(16.0)
    with jax.enable_x64(True):
        placed = jax.device_put(x, sharding_of(mesh, P("a")))
        traced = jax.jit(pull).trace(placed)
    assert_same(traced.lower().compile()(placed), 4 * x)


# MANY DEVICES


@pytest.mark.parametrize("platform", ["cpu", "cuda"])
def test_the_auto_sharded_form_runs_where_xla_divides_a_program(platform):
    """With automatic axes, also if only the output has a sharding."""
    sharding = sharding_of("8", P("a"))
    assert chosen(platform, sharding=sharding) == "auto-sharded"
    function = jax.jit(lambda: TOY(jnp.ones(64)), out_shardings=sharding)
    text = function.trace().lower(lowering_platforms=(platform,)).as_text()
    assert forms_in(text) == "auto-sharded"


def shard(axis_names, toy=TOY):
    """The function of each part, over one or both axes of a mesh."""
    sharding = sharding_of("2x4", P("a"))
    return jax.shard_map(
        lambda x: toy(x)[0],
        mesh=sharding.mesh,
        in_specs=P("a"),
        out_specs=P("a"),
        axis_names=axis_names,
        check_vma=axis_names == {"a", "b"},
    )


def test_a_part_by_itself_runs_the_form_of_one_device():
    """Where the types say how arrays are divided."""
    x = struct(np.float32, 16)
    assert forms_in(lowered(shard({"a", "b"}), x, platform="cpu")) == "for CPUs"
    assert forms_in(lowered(shard({"a"}), x, platform="cpu")) == "auto-sharded"
    sharding = sharding_of("2x4", P("a"), AxisType.Explicit)
    assert chosen("cpu", sharding=sharding) == "for CPUs"


SEARCH = {"rank": 1, "size": 3, "columns": 1, "fill": 0}
WIDEN = {"start": (1, 0), "end": (2, 0), "mode": dmljax.PaddingMode.EDGE}


def check_types(x):
    """The rule gives the types that the operations of the definition give."""
    for primitive, operand, static in (
        (NONZERO_COORDINATES, x != 0, SEARCH),
        (NONZERO_COORDINATES, np.ones(9, bool), SEARCH),
        (PADDING, x, WIDEN),
    ):
        rule = partial(primitive, **static)
        forms = partial(primitive.definition, **static)
        rule, forms = (jax.make_jaxpr(f)(operand).out_avals for f in (rule, forms))
        assert rule == forms
        assert list(map(str, rule)) == list(map(str, forms))
    return x


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
@pytest.mark.parametrize("manual", [set(), {"a"}, {"a", "b"}], ids=len)
def test_the_types_of_the_outputs(kind, manual):
    """Without a mesh, on a mesh, and inside of a shard_map over one axis or both."""
    sharding = sharding_of("2x4", P("a"), kind)
    x = np.ones((8, 8), np.float32)
    check_types(jnp.asarray(x))
    mapped = check_types
    if manual:
        specs = {"in_specs": P("a"), "out_specs": P("a"), "axis_names": manual}
        mapped = jax.shard_map(check_types, mesh=sharding.mesh, **specs)
    placed = jax.device_put(x, sharding if manual else sharding_of("2x4", P(), kind))
    if manual or kind == AxisType.Explicit:
        jax.eval_shape(mapped, placed)
    with jax.set_mesh(sharding.mesh):
        jax.eval_shape(mapped, placed)


def test_a_nan_is_found_where_debug_nans_asks_for_it():
    """JAX evaluates each primitive by itself then.

    A planted fault: the error names no operator. JAX's own errors have the same words.
    """
    pad = partial(dmljax.padding, start_padding=(0, 1), end_padding=(1, 0))
    for check, given in ((jax.debug_nans, np.nan), (jax.debug_infs, np.inf)):
        x = jax.device_put(np.float32([[given, 1]]))
        with check(True):
            assert dmljax.nonzero_coordinates(x).count == 2
            named = rf"^invalid value \({given}\) encountered in padding$"
            with pytest.raises(FloatingPointError, match=named):
                pad(x)
