"""JAX's undocumented names: they are in one file, and we hide each name in turn.

Without a name the operators do with less, or raise an error that names the part that
this JAX lacks. The table in `dmljax._jax` has the names.
"""

import ast
import functools
import itertools
import re
import sys
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

import dmljax
from dmljax import DescriptorError, _jax
from tests.checks import launches, needs_kernels, python, struct
from tests.meshes import sharding_of
from tests.pallas import blocks
from tests.pallas.nonzero import by_kernel
from tests.project import test_layout

pytestmark = pytest.mark.usefixtures("simulator")

X = np.arange(32, dtype=np.float32).reshape(4, 8) % 5


# NAMES IN THE OTHER FILES

# The names that the package uses of each module. Each has a page in JAX's documentation
# or is in the tutorial (https://docs.jax.dev/en/latest/jax-primitives.html). The page
# of a class also describes its members.
DOCUMENTED = {
    "jax": """
        Array Device ShapeDtypeStruct __version__ checkpoint config
        custom_jvp debug_infs debug_nans device_get device_put disable_jit enable_x64
        eval_shape jit local_devices named_scope new_ref reshard shard_map typeof vmap
    """,
    "jax.custom_batching": "custom_vmap",
    "jax.core": "ShapedArray Tracer max_dim",
    "jax.dtypes": "canonicalize_dtype prng_key",
    "jax.errors": "ConcretizationTypeError JaxRuntimeError",
    "jax.experimental.pallas": """
        BlockSpec cdiv ds kernel pallas_call program_id run_scoped when
    """,
    "jax.experimental.pallas.mosaic_gpu": """
        CompilerParams LoweringSemantics SMEM kernel
    """,
    "jax.experimental.pallas.tpu": "PrefetchScalarGridSpec SMEM",
    "jax.export": "is_symbolic_dim register_pytree_node_serialization",
    "jax.extend.core": "Primitive",
    "jax.interpreters.ad": """
        UndefinedPrimal Zero deflinear2 is_undefined_primal primitive_jvps
    """,
    "jax.interpreters.batching": "primitive_batchers",
    "jax.interpreters.mlir": "register_lowering",
    "jax.sharding": """
        AbstractMesh AxisType NamedSharding PartitionSpec Sharding auto_axes
        get_abstract_mesh
    """,
    "jax.tree": "leaves map map_with_path structure unflatten",
    "jax.tree_util": "GetAttrKey all_leaves keystr register_pytree_with_keys",
    "jax.typing": "ArrayLike DTypeLike",
}
# A test of JAX itself compares all names of these modules with their pages, except the
# names in LEFT_OUT and primitives, whose names end in "_p".
WHOLE = ("jax.numpy", "jax.lax")
LEFT_OUT = {f"jax.lax.{name}" for name in ("create_token", "dtype", "pcast", "pvary")}
TREES = {name: tree for name, tree in test_layout.TREES.items() if name != "_jax.py"}


def is_documented(name):
    if name in DOCUMENTED or name in WHOLE:
        return True
    parent, _, last = name.rpartition(".")
    if parent in WHOLE:
        return not last.endswith("_p") and name not in LEFT_OUT
    if parent in DOCUMENTED:
        return last in DOCUMENTED[parent].split()
    *_, class_of = parent.split(".")
    return class_of[:1].isupper() and is_documented(parent)


def imports_of(tree):
    """The local names of a file's imports from JAX, with their full names."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = getattr(node, "module", "")
            for alias in node.names:
                name = alias.asname or (alias.name if module else "jax")
                full = f"{module}.{alias.name}".strip(".")
                names[name] = "jax" if name == "jax" else full
    return {name: full for name, full in names.items() if full.startswith("jax")}


def undocumented_names(tree):
    """The names of JAX in a file that no page has."""
    names = imports_of(tree)
    used = {*names.values()}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute):
            continue
        root, _, rest = ast.unparse(node).partition(".")
        if root in names and re.fullmatch(r"[\w.]+", rest):
            used.add(f"{names[root]}.{rest}")
        # The context of a lowering rule is not documented.
        if root == "context" or node.attr in HIDDEN_ATTRIBUTES:
            used.add(f"context.{node.attr}")
    return {name for name in used if not is_documented(name)}


# The attributes in the table of `_jax`. `_threads` has a name "dialects" of its own.
HIDDEN_ATTRIBUTES = {
    attribute
    for names in _jax.UNDOCUMENTED.values()
    for attribute in names.split(".")
    if attribute != "dialects"
}


@pytest.mark.parametrize("name", TREES)
def test_names_of_jax_are_documented_or_in_one_file(name):
    assert undocumented_names(TREES[name]) == set()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("import jax._src.core as core", "jax._src.core"),
        ("from jax.interpreters import ad; ad.linear_jvp", "ad.linear_jvp"),
        ("from jax import lax; lax.add_p", "jax.lax.add_p"),
        ("context.tokens_in", "context.tokens_in"),
        ("jax.typeof(x).vma", "vma"),
    ],
)
def test_a_name_that_is_undocumented_is_found(line, found):
    assert any(found in name for name in undocumented_names(ast.parse(line)))


# PROGRAMS THAT RUN WITHOUT A NAME


def padded(x):
    """The operator that has a primitive and a derivative."""
    return dmljax.padding(x, (0, 2), (0, 2), mode=dmljax.PaddingMode.WRAP)


def both(x):
    return padded(x), dmljax.nonzero_coordinates(x)


def energy(x):
    return jnp.sum(padded(x) ** 2)


@jax.jit
def transformed(batch):
    return jax.vmap(both)(batch), jax.grad(energy)(batch[0])


MANY = struct(np.float32, 2**20)


def exported():
    """The sizes of an export for a GPU, where a kernel would be the default."""
    find = jax.jit(dmljax.nonzero_coordinates)
    return export.export(find, platforms=["cuda"])(MANY).out_avals[0].shape


def automatic():
    return jax.jit(both)(jax.device_put(X, sharding_of("2", P("a"))))


def explicit():
    """nonzero_coordinates does not divide a tensor, so its lines are a batch."""
    sharding = sharding_of("2", P("a"), AxisType.Explicit)
    with jax.set_mesh(sharding.mesh):
        x = jax.device_put(X, sharding)
        found = jax.jit(jax.vmap(dmljax.nonzero_coordinates))(x)
        return jax.jit(padded)(x), found, jax.jit(jax.grad(energy))(x)


def mapped():
    mesh = sharding_of("2", P("a")).mesh
    shard = jax.shard_map(padded, mesh=mesh, in_specs=P("a"), out_specs=P("a"))
    return jax.jit(jax.grad(lambda x: jnp.sum(shard(x) ** 2)))(X)


USES = {
    "jit, grad and vmap": lambda: transformed(np.stack([X, -X])),
    "export": exported,
    "automatic": automatic,
    "explicit": explicit,
    "mapped": mapped,
    "kernel": lambda: by_kernel(X),
}
LACKS = "it needs .*mosaic_gpu as JAX 0.10.2 has it, while this is JAX"
PER_THREAD = "code per thread", "reference", "pointer", "mesh of threads", "dialects"
NEEDED = ("lower", "operand types", "result types")
# The uses that fail without a name, and a part of the message. All other uses give the
# same result as before. Of the names that every operator needs, we test one use.
ERRORS = {
    ("devices", "kernel"): (DescriptorError, "axis_context.num_devices"),
    ("manual axes", "mapped"): (ValueError, "xpected cotangent type"),
}
for name in NEEDED:
    text = f"no {_jax.UNDOCUMENTED[name]}, wh"
    ERRORS[name, "automatic"] = (NotImplementedError, text)
# Where nothing is simulated, the kernel runs as code per thread, too.
per_thread = ["kernel"] * (not blocks.SIMULATED)
if _jax.code_per_thread() is not None:
    USES["kernel per thread"] = lambda: launches(by_kernel, X)
    ERRORS["devices", "kernel per thread"] = (DescriptorError, "num_devices")
    per_thread.append("kernel per thread")
for case in itertools.product(PER_THREAD, per_thread):
    ERRORS[case] = (DescriptorError, LACKS)
# The names that a program reads when it is made. Each takes seconds, because everything
# is compiled again. We hide names together if the same use fails without each.
ALONE = ("devices", "manual axes")
HIDDEN = [PER_THREAD] + [(name,) for name in ALONE]
# Each JAX has one of these two names.
SECOND = {"manual axes": "old manual axes"}


@functools.cache
def before(use):
    """The results of a use with all names."""
    return USES[use]()


@pytest.fixture
def hide(monkeypatch):
    """A function that hides a name of the table."""

    def hide(*names):
        names += tuple(map(SECOND.get, names))
        read = _jax._read
        monkeypatch.setattr(
            _jax, "_read", lambda n, x: read(n, None if n in names else x)
        )
        jax.clear_caches()

    yield hide
    jax.clear_caches()


def test_the_table_is_complete():
    tested = {*PER_THREAD, *NEEDED, *ALONE, *SECOND.values()}
    # Two names have tests of their own.
    assert set(_jax.UNDOCUMENTED) == tested | {"export", "compute capability"}


def test_versions_of_jax_with_kernels_for_gpus(monkeypatch):
    assert (_jax.code_per_thread() is not None) == (_jax.VERSION >= (0, 10, 2))
    monkeypatch.setattr(_jax, "VERSION", (0, 10, 1))
    assert _jax.code_per_thread() is None


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


@needs_kernels
def test_an_export_has_the_default_kernel_where_jax_does_not_say_that_it_is_one(hide):
    find = jax.jit(dmljax.nonzero_coordinates)
    for calls in (0, 1):
        program = export.export(find, platforms=["cuda"])(MANY)
        assert program.mlir_module().count("@mosaic_gpu_v2(") == calls
        hide("export")


@pytest.mark.parametrize(
    ("found", "least"),
    [(["10.0", "9.0", "12.0"], (9, 0)), (["9.0", None], None), ([], None)],
)
def test_the_lowest_compute_capability(found, least, monkeypatch):
    """Faults: the highest; versions that are compared as texts."""
    devices = [SimpleNamespace(platform="gpu", compute_capability=n) for n in found]
    devices.append(SimpleNamespace(platform="cpu"))
    monkeypatch.setattr(jax, "local_devices", lambda: devices)
    assert _jax.compute_capability() == least


# MODULES


def test_missing_modules(monkeypatch):
    """A missing module, and a module of a missing package."""
    assert _jax.module("jax.experimental.no_such_module") is None
    assert _jax._read("export", None) is None
    monkeypatch.setitem(sys.modules, "jax.experimental.mosaic", None)
    monkeypatch.delitem(sys.modules, "jax.experimental.mosaic.gpu", raising=False)
    assert _jax.module("jax.experimental.mosaic.gpu") is None


@pytest.mark.parametrize(
    "lost", ["jax.experimental.mosaic.gpu", "jaxlib.mlir.dialects.scf"]
)
def test_code_per_thread_needs_every_module(lost, monkeypatch):
    """Fault: a dialect of MLIR may be missing."""
    load = _jax.module
    monkeypatch.setattr(_jax, "module", lambda n: None if n == lost else load(n))
    assert _jax.code_per_thread() is None


def test_a_module_that_lacks_another_is_an_error(tmp_path, monkeypatch):
    """Fault: "lack" is taken for a package of "lacking"."""
    (tmp_path / "lacking.py").write_text("import lack")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="'lack'"):
        _jax.module("lacking")


IMPORTS = """
import sys, jax, jax.extend.core, chex
before, values = set(sys.modules), dict(jax.config.values)
import dmljax
assert dict(jax.config.values) == values
print(*(set(sys.modules) - before))
try:
    jax.devices()
except RuntimeError as error:
    print(error)
jax.config.update("jax_platforms", "cpu")
x = jax.numpy.ones(2**16)
dmljax.padding(x, (1,), (1,)), dmljax.nonzero_coordinates(x, size=1)
print(*(name for name in sys.modules if name.startswith("dmljax")))
dmljax.run_model, dmljax.numpy.pad, dmljax.onnx.pad
print("dmljax._model.run" in sys.modules)
"""


def test_an_import_loads_few_modules_and_changes_nothing():
    """It warns of nothing, starts no backend, and leaves the configuration alone.

    We load only our own modules and those of `import jax, jax.extend.core, chex`.
    Neither the import nor calls on a CPU load a kernel or the code for model files.
    """
    done = python("-W", "error", "-c", IMPORTS, JAX_PLATFORMS="nowhere")
    assert (done.returncode, done.stderr) == (0, "")
    imported, error, loaded, asked = done.stdout.splitlines()
    assert "'nowhere'" in error  # an import that looks for a backend would fail
    assert set(loaded.split()) == set(imported.split())
    # A kernel is in a folder of dmljax.pallas.
    own = re.compile(r"dmljax(\.pallas)?(\._(?!model|main)\w+)?|dmljax\._directml\.\w+")
    assert [name for name in imported.split() if not own.fullmatch(name)] == []
    assert asked == "True"
