"""Every name of JAX that is neither documented nor in JAX's tutorial of primitives.

The tutorial is https://docs.jax.dev/en/latest/jax-primitives.html. A test compares all
names of JAX in the other files with a list, and other tests hide each name of this file
in turn. Names that differ between the supported versions of JAX stand here, too. How
the package uses a name is up to the callers.
"""

import contextlib
import dataclasses
import importlib
from collections.abc import Callable, Iterator
from typing import Any

import jax
from jax import Array, lax
from jax.interpreters import mlir
from jax.sharding import AbstractMesh, AxisType, use_abstract_mesh

VERSION = jax.__version_info__
if VERSION < (0, 10, 1):  # the error moved
    from jax.core import (
        InconclusiveDimensionOperation as InconclusiveDimensionOperation,
    )
else:
    from jax.errors import (
        InconclusiveDimensionOperation as InconclusiveDimensionOperation,
    )
# The option `inline` of jax.jit: a jaxpr has the operations of a function in place of a
# call. From JAX 0.11 on, `inline=True` would do so in the lowered program alone.
INLINE: Any = getattr(getattr(jax, "Inline", None), "JAX_EARLY", True)
# JAX documents this class in jax.extend.lowering, which JAX 0.9 lacks.
Context = mlir.LoweringRuleContext

# For each undocumented name, by a key of ours, the attributes that lead to it.
UNDOCUMENTED = {
    # `mlir.lower_fun` lowers a function inside of a lowering rule. The rule's context
    # has the types of operands and results. Without one of these three names, every
    # call is an error.
    "lower": "lower_fun",
    "operand types": "avals_in",
    "result types": "avals_out",
    # The context says for how many devices a program is lowered. Without this name
    # there may be several: the auto-sharded form runs, and implementation="pallas" is
    # an error.
    "devices": "module_context.axis_context.num_devices",
    # The context says whether a program is exported. An export takes XLA's form.
    # Without this name, an export holds the default kernel, and fails on older GPUs;
    # implementation="xla" exports no kernel.
    "export": "module_context.lowering_parameters.for_export",
    # The type of an array says over which mesh axes of a shard_map the array varies,
    # under a new or an old name. Without both names, a shard_map needs check_vma=False
    # for kernels and derivatives.
    "manual axes": "manual_axis_type",
    "old manual axes": "vma",
    # Kernels for NVIDIA GPUs are built with these names of
    # jax.experimental.pallas.mosaic_gpu, jax.experimental.mosaic.gpu and jaxlib.mlir.
    # Without one of them, XLA's form runs, and implementation="pallas" is an error.
    "code per thread": "inline_mgpu",
    "reference": "RefType",
    "pointer": "utils.memref_ptr",
    "mesh of threads": "Mesh",
    "dialects": "dialects",
    # A device says its compute capability. Without this name, we try a kernel on every
    # GPU, and JAX raises an error when it compiles the kernel for an older one.
    "compute capability": "compute_capability",
}


def _read(name: str, source: Any) -> Any:
    """Reads a name of `UNDOCUMENTED` from `source`, or returns None for a missing name.

    A missing name that every operator needs is an error.
    """
    for attribute in UNDOCUMENTED[name].split("."):
        source = getattr(source, attribute, None)
    if source is None and name in ("lower", "operand types", "result types"):
        raise NotImplementedError(
            f"dmljax: this JAX, {jax.__version__}, has no {UNDOCUMENTED[name]}, which "
            "every operator needs. Use another version of JAX."
        )
    return source


def module(name: str) -> Any:
    """Imports a module of JAX or jaxlib, or returns None for a missing one."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # The module or its package is missing. A missing module that the named module
        # imports is an error.
        if f"{name}.".startswith(f"{error.name}."):
            return None
        raise


# LOWERING


def types_of(context: Context) -> list[Any]:
    """Returns the types of the operands and of the results."""
    return [*_read("operand types", context), *_read("result types", context)]


def is_local(context: Context) -> bool:
    """Whether XLA leaves these arrays whole.

    XLA divides nothing in a program for one device, in the body of a shard_map over all
    axes, and where all mesh axes are explicit: the operands of a primitive are whole
    along these (`OperatorPrimitive.__call__`).
    """
    if _read("devices", context) == 1:
        return True
    # The number of devices counts the devices of a shard_map as well. Inside a
    # shard_map, and with explicit axes, the types show what is left to divide.
    kinds = [array.sharding.mesh.axis_types for array in types_of(context)]
    # XLA may also divide an array that has no mesh, for which JAX has an empty mesh
    # without axis types, and an array whose mesh has automatic axes.
    return all(each and AxisType.Auto not in each for each in kinds)


def why_divided(context: Context) -> str | None:
    """Says why XLA may divide these arrays, and what to do; None for whole arrays."""
    if is_local(context):
        return None
    axes = {axis for x in types_of(context) for axis in x.sharding.mesh.axis_types}
    if axes >= {AxisType.Manual, AxisType.Auto}:
        return (
            "XLA may divide these arrays over the axes that are not manual; leave out "
            "axis_names=, so that jax.shard_map makes all axes manual, or use "
            "implementation=None."
        )
    reason = "XLA may divide these arrays among devices, but can't divide a kernel"
    if _read("devices", context) is None:
        reason = (
            f"this JAX, {jax.__version__}, does not say for how many devices it lowers "
            f"a program ({UNDOCUMENTED['devices']})"
        )
    # Only a batch may be divided by hand. Along another dimension, each device would
    # find coordinates in its own part.
    return f"""{reason}; use implementation=None, or, if only a batch is divided, run \
the kernel on each device's part of x, where f calls the operator:
    mesh, spec = x.sharding.mesh, x.sharding.spec
    mapped = jax.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec)
    outputs = mapped(x)"""


def is_exported(context: Context) -> bool:
    """Whether the program is lowered to be exported."""
    return _read("export", context) is True


def lower(
    form: Callable[..., Any], context: Context, *operands: Any, **static: Any
) -> Any:
    """Lowers a form as if its arrays had no mesh.

    With a mesh, Mosaic GPU would look for a GPU in this machine, which may have none,
    and operations of a form would need `out_sharding`.
    """

    def bare(array: Any) -> jax.core.ShapedArray:
        return jax.core.ShapedArray(array.shape, array.dtype)

    bare_context = dataclasses.replace(
        context,
        avals_in=list(map(bare, _read("operand types", context))),
        avals_out=list(map(bare, _read("result types", context))),
    )
    rule = _read("lower", mlir)(form, multiple_results=True)
    with use_abstract_mesh(AbstractMesh((), ())):
        return rule(bare_context, *operands, **static)


# TYPES OF ARRAYS


def varying_alike(*arrays: Array) -> list[Array]:
    """Casts arrays inside of a shard_map, so that all vary over the same mesh axes.

    JAX requires this of the operands of an operation
    (https://docs.jax.dev/en/latest/notebooks/shard_map.html). An array that is equal
    on all devices varies over no axis. The transpose of its cast sums the cotangents of
    all devices.
    """
    axes: list[frozenset[str]] = []
    for array in arrays:
        keyword = varying_keyword(jax.typeof(array))
        varying: Any = next(iter(keyword.values()), frozenset())
        # The value of the new name has the axes in an attribute. The value of the old
        # name is the set of axes.
        axes.append(frozenset(getattr(varying, "varying", varying)))
    all_axes = frozenset().union(*axes)
    return [
        lax.pcast(array, tuple(all_axes - varying), to="varying")
        for array, varying in zip(arrays, axes, strict=True)
    ]


def varying_keyword(array_type: Any) -> dict[str, Any]:
    """Returns a keyword argument of jax.ShapeDtypeStruct: over which axes arrays vary.

    A new type then varies over the same axes as `array_type`. For example, the keyword
    is {"vma": frozenset({"x"})} in a shard_map over the axis "x". The types of outputs
    need it inside of a shard_map with check_vma=True. Its name depends on the version
    of JAX, and the dict is empty if JAX has neither name.
    """
    for name in ("manual axes", "old manual axes"):
        axes = _read(name, array_type)
        if axes is not None:
            return {UNDOCUMENTED[name]: axes}
    return {}


# JAX 0.9.0


@contextlib.contextmanager
def whole_mesh() -> Iterator[None]:
    """Lets a batching rule divide arrays over the explicit mesh axes of the batch.

    Only JAX 0.9.0 hides these axes (docs/development/lab_notes.md, "The vmap of
    explicit axes in JAX 0.9.0").
    """
    if VERSION >= (0, 9, 1):
        yield
        return
    core: Any = jax.core
    before = core.trace_ctx.axis_env
    whole = dataclasses.replace(before, explicit_mesh_axis_names=frozenset())
    core.trace_ctx.set_axis_env(whole)
    try:
        yield
    finally:
        core.trace_ctx.set_axis_env(before)


# GPUS


def code_per_thread() -> tuple[Any, ...] | None:
    """Returns the parts of JAX with which code for one thread of a GPU is built.

    The parts are, in this order:

    - a decorator for a function that builds MLIR: a part of a Mosaic GPU kernel;
    - the class of the types of the function's arguments;
    - a function from a reference to its address;
    - the class for the numbers of programs and threads of a kernel;
    - MLIR's types, attributes and places to insert operations;
    - MLIR's operations, by dialect.

    The result is None where JAX lacks a part, or is older than all versions that have
    run our kernels.
    """
    # The import of a dialect makes it an attribute of `dialects`.
    names = ("arith", "gpu", "llvm", "nvvm", "scf")
    imported = [module(f"jaxlib.mlir.dialects.{name}") for name in names]
    mosaic_gpu = module("jax.experimental.pallas.mosaic_gpu")
    inline = _read("code per thread", mosaic_gpu)
    reference = _read("reference", mosaic_gpu)
    pointer = _read("pointer", module("jax.experimental.mosaic.gpu"))
    dialects = _read("dialects", module("jaxlib.mlir"))
    mesh = _read("mesh of threads", mosaic_gpu)
    parts = inline, reference, pointer, mesh, module("jaxlib.mlir.ir"), dialects
    lacks_a_part = None in (*parts, *imported)
    return None if lacks_a_part or VERSION < (0, 10, 2) else parts


def compute_capability() -> tuple[int, ...] | None:
    """The lowest compute capability of this machine's GPUs, such as (9, 0), or None."""
    gpus = [device for device in jax.local_devices() if device.platform == "gpu"]
    versions = [_read("compute capability", device) for device in gpus]
    if not versions or None in versions:
        return None
    return min(tuple(map(int, str(each).split("."))) for each in versions)
