"""JAX outside its documented API: each name hidden in turn.

Without a name the operators do with less, or raise one error that says what this JAX
lacks, as the table in `dmljax._jax` says.
"""

import functools
import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

import dmljax
from dmljax import DescriptorError, _jax
from tests.checks import launches, python
from tests.meshes import sharding_of
from tests.pallas import blocks

X = np.arange(32, dtype=np.float32).reshape(4, 8) % 5
PAIR = np.array([2, 7], np.float32)


# WHAT IS RUN WITHOUT A NAME


def operators(x, pair):
    """Every operator that has a derivative."""
    indices = x[:, :1].astype(np.int32)
    return (
        dmljax.diagonal_matrix1(x, value=pair[1]),
        dmljax.element_wise_if(x > 3, x, 2 * x),
        dmljax.one_hot(indices, pair, size=4),
        dmljax.padding(x, (0, 2), (0, 2), mode=dmljax.PaddingMode.WRAP),
    )


def everything(x, pair):
    return operators(x, pair), dmljax.nonzero_coordinates(x)


def energy(x, pair):
    return sum(jnp.sum(y**2) for y in operators(x, pair))


@jax.jit
def transformed(batch, pair):
    outputs = jax.vmap(everything, (0, None))(batch, pair)
    return outputs, jax.grad(energy, (0, 1))(batch[0], pair)


MANY = jax.ShapeDtypeStruct((2**14,), np.float32)


def exported():
    """What it gives here; and then for a GPU, where a kernel would be the default."""
    outputs = export.export(jax.jit(everything))(X, PAIR).call(X, PAIR)
    find = jax.jit(dmljax.nonzero_coordinates)
    return outputs, export.export(find, platforms=["cuda"])(MANY).out_avals[0].shape


by_kernel = functools.partial(dmljax.nonzero_coordinates, implementation="pallas")


def automatic():
    x = jax.device_put(X, sharding_of("2", P("a")))
    return jax.jit(everything)(x, PAIR)


def explicit():
    """The lines of nonzero_coordinates as a batch, as it does not divide a tensor."""
    sharding = sharding_of("2", P("a"), AxisType.Explicit)
    with jax.set_mesh(sharding.mesh):
        x = jax.device_put(X, sharding)
        outputs = jax.jit(operators)(x, PAIR)
        found = jax.jit(jax.vmap(dmljax.nonzero_coordinates))(x)
        return outputs, found, jax.jit(jax.grad(energy, (0, 1)))(x, PAIR)


def mapped(**options):
    specs = {"in_specs": (P("a"), P()), "out_specs": P("a")}
    mesh = sharding_of("2", P("a")).mesh
    shard = jax.shard_map(operators, mesh=mesh, **specs, **options)
    loss = jax.grad(lambda *xs: sum(jnp.sum(y**2) for y in shard(*xs)), (0, 1))
    return jax.jit(loss)(X, PAIR)


USES = {
    "eager": lambda: everything(X, PAIR),
    "jit, grad and vmap": lambda: transformed(np.stack([X, -X]), PAIR),
    "export": exported,
    "automatic": automatic,
    "explicit": explicit,
    "mapped": mapped,
    "mapped without check_vma": lambda: mapped(check_vma=False),
    "kernel per thread": lambda: launches(by_kernel, X),
    "kernel": lambda: by_kernel(X),
}
LACKS = "mosaic_gpu, which this JAX, .*, does not have"
PER_THREAD = ("code per thread", "pointer", "dialects")
# The uses that fail, and what is in the message. All others give the same as before.
ERRORS = {
    ("devices", "kernel"): (DescriptorError, "axis_context.num_devices"),
    ("devices", "kernel per thread"): (DescriptorError, "num_devices"),
    ("manual axes", "mapped"): (ValueError, "cotangent type"),
    ("replace", "explicit"): (NotImplementedError, "LoweringRuleContext.replace"),
    ("replace", "mapped"): (NotImplementedError, "LoweringRuleContext.replace"),
}
for name in PER_THREAD:
    ERRORS[name, "kernel per thread"] = (DescriptorError, LACKS)
    if not blocks.SIMULATED:  # then the kernel runs as code per thread, too
        ERRORS[name, "kernel"] = (DescriptorError, LACKS)
# The names that are read when a program is made. Each takes seconds, because everything
# is compiled again. We hide names together if the same use fails without them.
ALONE = ("devices", "export", "manual axes", "replace", "compute capability")
HIDDEN = [PER_THREAD] + [(name,) for name in ALONE]


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
    assert set(_jax.UNDOCUMENTED) == {*PER_THREAD, *ALONE}


@pytest.mark.parametrize(("name", "use"), ERRORS)
def test_an_error_without(name, use, hide):
    hide(name)
    error, message = ERRORS[name, use]
    with pytest.raises(error, match=message):
        USES[use]()


@pytest.mark.slow
@pytest.mark.parametrize("names", HIDDEN, ids=", ".join)
def test_the_same_without(names, hide):
    uses = [use for use in USES if not any((name, use) in ERRORS for name in names)]
    expected = [before(use) for use in uses]
    hide(*names)
    outputs = [USES[use]() for use in uses]
    jax.tree.map(np.testing.assert_array_equal, outputs, expected)


def test_an_export_has_the_default_kernel_where_jax_does_not_say_that_it_is_one(hide):
    find = jax.jit(dmljax.nonzero_coordinates)
    for calls in (0, 1):
        program = export.export(find, platforms=["cuda"])(MANY)
        assert program.mlir_module().count("@mosaic_gpu_v2(") == calls
        hide("export")


# MODULES


def test_a_module_that_jax_does_not_have(monkeypatch):
    """Or a module of a package that it does not have."""
    assert _jax.module("jax.experimental.no_such_module") is None
    assert _jax._read("export", None) is _jax._MISSING
    monkeypatch.setitem(sys.modules, "jax.experimental.mosaic", None)
    monkeypatch.delitem(sys.modules, "jax.experimental.mosaic.gpu", raising=False)
    assert _jax.module("jax.experimental.mosaic.gpu") is None


def test_a_module_that_lacks_another_is_an_error(tmp_path, monkeypatch):
    (tmp_path / "lacking.py").write_text("import there_is_no_such_module")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="there_is_no_such_module"):
        _jax.module("lacking")


IMPORTS = """
import sys, jax, jax.extend.core, chex
before = set(sys.modules)
import dmljax
print(*(set(sys.modules) - before))
x = jax.numpy.ones(2**16)
dmljax.padding(x, (1,), (1,)), dmljax.nonzero_coordinates(x, size=1)
print(*(name for name in sys.modules if name.startswith("dmljax")))
dmljax.run_model, dmljax.numpy.pad, dmljax.onnx.pad
print("dmljax._model.run" in sys.modules)
"""


def test_an_import_loads_only_what_programs_use():
    """No module besides what `import jax, jax.extend.core, chex` loads and our own.

    Neither the import nor calls on a CPU load a kernel, or what reads model files.
    """
    done = python("-c", IMPORTS, JAX_PLATFORMS="cpu")
    imported, loaded, asked = done.stdout.splitlines()
    assert set(loaded.split()) == set(imported.split())
    # A kernel is in a folder of dmljax.pallas.
    own = re.compile(r"dmljax(\.pallas)?(\._(?!model|main)\w+)?|dmljax\._directml\.\w+")
    assert [name for name in imported.split() if not own.fullmatch(name)] == []
    assert asked == "True"
