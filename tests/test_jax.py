"""Each name of JAX outside its documented API, hidden in turn.

The operators then do with less, or raise one error that names what this JAX lacks, as
the table in `dmljax._jax` says.
"""

import functools
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from jax.experimental import jet, roofline
from jax.extend.core import Primitive
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import dmljax
from dmljax import _jax
from tests import blocks

X = np.arange(32, dtype=np.float32).reshape(4, 8) % 5
PAIR = np.array([2, 7], np.float32)


def operators(x, pair, **options):
    """Every operator that has a derivative."""
    indices = x[:, :1].astype(np.int32)
    return (
        dmljax.diagonal_matrix1(x, value=pair[1], **options),
        dmljax.element_wise_if(x > 3, x, 2 * x, **options),
        dmljax.one_hot(indices, pair, size=4, **options),
        dmljax.padding(x, (0, 2), (0, 2), mode=dmljax.PaddingMode.WRAP, **options),
    )


def everything(x, pair, **options):
    return operators(x, pair, **options), dmljax.nonzero_coordinates(x, **options)


def energy(x, pair):
    return sum(jnp.sum(y**2) for y in operators(x, pair))


@jax.jit
def transformed(batch, pair):
    outputs = jax.vmap(everything, (0, None))(batch, pair)
    return outputs, jax.grad(energy, (0, 1))(batch[0], pair)


def mesh(axis_type):
    devices = jax.devices("cpu")[:2]
    return jax.make_mesh((2,), ("rows",), axis_types=(axis_type,), devices=devices)


def exported():
    """What it gives here; and then for a GPU, where a kernel would be the default."""
    outputs = export.export(jax.jit(everything))(X, PAIR).call(X, PAIR)
    many = jax.ShapeDtypeStruct((2**14,), np.float32)
    find = jax.jit(dmljax.nonzero_coordinates)
    return outputs, export.export(find, platforms=["cuda"])(many).out_avals[0].shape


def per_thread():
    """Counts the launches of kernels in the program for a GPU."""
    find = functools.partial(dmljax.nonzero_coordinates, implementation="pallas")
    program = jax.jit(find).trace(X).lower(lowering_platforms=("cuda",))
    return program.as_text().count("@mosaic_gpu_v2(")


def automatic():
    x = jax.device_put(X, NamedSharding(mesh(AxisType.Auto), P("rows")))
    return jax.jit(everything)(x, PAIR)


def explicit():
    """The lines of nonzero_coordinates as a batch, as it does not divide a tensor."""
    both = mesh(AxisType.Explicit)
    with jax.set_mesh(both):
        x = jax.device_put(X, NamedSharding(both, P("rows")))
        outputs = jax.jit(operators)(x, PAIR)
        found = jax.jit(jax.vmap(dmljax.nonzero_coordinates))(x)
        return outputs, found, jax.jit(jax.grad(energy, (0, 1)))(x, PAIR)


def mapped(**options):
    both = mesh(AxisType.Auto)
    shard = jax.shard_map(
        operators, mesh=both, in_specs=(P("rows"), P()), out_specs=P("rows"), **options
    )
    return jax.jit(
        jax.grad(lambda *xs: sum(jnp.sum(y**2) for y in shard(*xs)), (0, 1))
    )(X, PAIR)


# What is run, by name.
USES = {
    "eager": lambda: everything(X, PAIR),
    "jit, grad and vmap": lambda: transformed(np.stack([X, -X]), PAIR),
    "export": exported,
    "automatic": automatic,
    "explicit": explicit,
    "mapped": mapped,
    "mapped without check_vma": lambda: mapped(check_vma=False),
    "kernel per thread": per_thread,
    "kernel": lambda: dmljax.nonzero_coordinates(X, implementation="pallas"),
}
LACKS = "mosaic_gpu, which this JAX, .*, does not have"
# The uses that fail, and what is in the message. All others give the same as before.
ERRORS = {
    ("devices", "kernel"): (dmljax.DescriptorError, "axis_context.num_devices"),
    ("devices", "kernel per thread"): (dmljax.DescriptorError, "num_devices"),
    ("code per thread", "kernel per thread"): (dmljax.DescriptorError, LACKS),
    ("pointer", "kernel per thread"): (dmljax.DescriptorError, LACKS),
    ("dialects", "kernel per thread"): (dmljax.DescriptorError, LACKS),
    ("manual axes", "mapped"): (ValueError, "cotangent type"),
    ("replace", "explicit"): (NotImplementedError, "LoweringRuleContext.replace"),
    ("replace", "mapped"): (NotImplementedError, "LoweringRuleContext.replace"),
}
if not blocks.INTERPRETED:  # then the kernel runs as code per thread, too
    for name in ("code per thread", "pointer", "dialects"):
        ERRORS[name, "kernel"] = (dmljax.DescriptorError, LACKS)
# The names that are read when a program is made; the others when dmljax is imported.
LATE = (
    *("trace state", "devices", "export", "manual axes", "replace"),
    *("code per thread", "pointer", "dialects", "compute capability"),
)


@functools.cache
def before(use):
    """What a use gives with all names."""
    return USES[use]()


@pytest.fixture
def hide(monkeypatch):
    """A function that hides a name of the table."""

    def hide(*names):
        read = _jax._read
        monkeypatch.setattr(
            _jax, "_read", lambda n, x: _jax._MISSING if n in names else read(n, x)
        )
        jax.clear_caches()

    yield hide
    jax.clear_caches()


def test_the_table_is_complete():
    early = {"jet", "roofline", "roofline result"}
    assert set(_jax.UNDOCUMENTED) == early.union(LATE)


@pytest.mark.parametrize(("name", "use"), ERRORS)
def test_an_error_without(name, use, hide):
    hide(name)
    error, message = ERRORS[name, use]
    with pytest.raises(error, match=message):
        USES[use]()


# Each takes seconds, because everything is compiled again. So those without which the
# same use fails are hidden together.
PER_THREAD = ("code per thread", "pointer", "dialects")
HIDDEN = [PER_THREAD, *((name,) for name in LATE if name not in PER_THREAD)]


@pytest.mark.slow
@pytest.mark.parametrize("names", HIDDEN, ids=", ".join)
def test_the_same_without(names, hide):
    uses = [use for use in USES if not any((name, use) in ERRORS for name in names)]
    expected = [before(use) for use in uses]
    hide(*names)
    outputs = [USES[use]() for use in uses]
    jax.tree.map(np.testing.assert_array_equal, outputs, expected)


def test_an_export_has_the_default_kernel_where_jax_does_not_say_that_it_is_one(hide):
    many = jax.ShapeDtypeStruct((2**14,), np.float32)
    find = jax.jit(dmljax.nonzero_coordinates)
    for calls in (0, 1):
        program = export.export(find, platforms=["cuda"])(many)
        assert program.mlir_module().count("@mosaic_gpu_v2(") == calls
        hide("export")


@pytest.mark.parametrize("name", ["jet", "roofline", "roofline result"])
def test_rules_without(name, hide):
    hide(name)
    primitive = Primitive("with_fewer_rules")
    _jax.register_experimental(primitive, lambda: None, lambda arrays: 0)
    assert (primitive in jet.jet_rules) == (name != "jet")
    primitive.def_abstract_eval(lambda x: x)
    _, result = roofline.roofline(primitive.bind)(X)
    assert result.unfused_hbm_bytes == 0


def test_a_module_that_jax_does_not_have():
    assert _jax._read("jet", _jax._experimental("no_such_module")) is _jax._MISSING


def test_a_module_whose_package_jax_does_not_have(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax.experimental.mosaic", None)
    monkeypatch.delitem(sys.modules, "jax.experimental.mosaic.gpu", raising=False)
    assert _jax._experimental("mosaic.gpu") is None


def test_a_module_that_lacks_another_is_an_error(tmp_path, monkeypatch):
    (tmp_path / "lacking.py").write_text("import there_is_no_such_module")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="there_is_no_such_module"):
        _jax.module("lacking")
