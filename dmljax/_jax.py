"""Every name of JAX outside its documented API that the package rests on.

Nothing else in the package touches such a name. A test hides each in turn. What the
package does with a name belongs to the callers.
"""

import dataclasses
import importlib
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax import lax
from jax.interpreters import mlir
from jax.sharding import AxisType

_MISSING = object()  # stands for a name that this JAX lacks; None could be a value

# The attributes that lead to each name, from an object that JAX documents.
UNDOCUMENTED = {
    # Of a lowering rule's context: for how many devices a program is lowered. Without
    # it, it may be for several: the form is one that XLA can divide, and a kernel that
    # was asked for is an error.
    "devices": "module_context.axis_context.num_devices",
    # Of a lowering rule's context: whether a program is exported. An export takes XLA's
    # form. Without it, a kernel that is the default is in the export, and older GPUs
    # can't run it; implementation="xla" exports without one.
    "export": "module_context.lowering_parameters.for_export",
    # Of a lowering rule's context: gives a form types that know no mesh. Without it,
    # arrays over explicit mesh axes are an error, and a shard_map without
    # check_vma=False.
    "replace": "replace",
    # Of an array's type: over which mesh axes of a shard_map it varies. Without it, a
    # shard_map needs check_vma=False for kernels and derivatives.
    "manual axes": "manual_axis_type",
    # Of jax.experimental.pallas.mosaic_gpu, of jax.experimental.mosaic.gpu, and of
    # jaxlib.mlir: what kernels for NVIDIA GPUs are built with. Without them XLA's form
    # runs, and a kernel that was asked for is an error.
    "code per thread": "inline_mgpu",
    "pointer": "utils.memref_ptr",
    "dialects": "dialects",
    # Of a device. Without it, a kernel is taken to serve the GPU of this machine, and
    # JAX raises an error when it compiles the kernel for an older one.
    "compute capability": "compute_capability",
}


def _read(name: str, source: Any) -> Any:
    """Reads a name of the table from `source`; `_MISSING` if it is not there."""
    for attribute in UNDOCUMENTED[name].split("."):
        source = getattr(source, attribute, _MISSING)
    return source


def module(name: str) -> Any:
    """Imports a module of JAX or jaxlib, or returns None if they don't have it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # The module is missing, or a package that would hold it. If it is there, and
        # lacks a module that it imports, that is an error.
        if f"{name}.".startswith(f"{error.name}."):
            return None
        raise


def is_local(context: mlir.LoweringRuleContext) -> bool:
    """Whether each of these arrays lies on one device as a whole.

    Then XLA does not divide them: the program is for one device, or this is the body of
    a shard_map, or the explicit mesh axes do not divide these arrays.
    """
    if _read("devices", context) == 1:
        return True
    # The number of devices counts those of a shard_map as well. Inside of it, and with
    # explicit axes, the types say that nothing is left to divide.
    arrays: list[Any] = [*context.avals_in, *context.avals_out]
    divided = any(names_axes(entry) for x in arrays for entry in x.sharding.spec)
    # With an automatic axis in the mesh, XLA may divide what the type does not.
    meshes = [x.sharding.mesh.axis_types for x in arrays]
    return not divided and all(kinds and AxisType.Auto not in kinds for kinds in meshes)


def why_divided(context: mlir.LoweringRuleContext) -> str | None:
    """Says why XLA may divide these arrays, and what to do; None if it does not."""
    if is_local(context):
        return None
    arrays: list[Any] = [*context.avals_in, *context.avals_out]
    kinds = {kind for array in arrays for kind in array.sharding.mesh.axis_types}
    if kinds >= {AxisType.Manual, AxisType.Auto}:
        return (
            "XLA may divide these arrays over the axes that are not manual. Leave out "
            "axis_names=, so that jax.shard_map makes all axes manual"
        )
    reason = "XLA may divide these arrays among devices, which it can't do here"
    if _read("devices", context) is _MISSING:
        reason = (
            f"this JAX, {jax.__version__}, does not say for how many devices it lowers "
            f"a program ({UNDOCUMENTED['devices']})"
        )
    return (
        f"{reason}. Run the kernel on each device's part: jax.shard_map(f, mesh=mesh, "
        "in_specs=spec, out_specs=spec), where f calls the operator"
    )


def names_axes(entry: Any) -> bool:
    """Whether an entry of a PartitionSpec has mesh axes that divide a dimension."""
    return entry not in (None, ())


def is_exported(context: mlir.LoweringRuleContext) -> bool:
    """Whether JAX says that the program is lowered to be exported."""
    return _read("export", context) is True


def on_one_device(context: mlir.LoweringRuleContext) -> mlir.LoweringRuleContext:
    """Returns the context with types that have no mesh, for a form for one device.

    With a mesh in them, JAX would ask of each operation how its result is sharded.
    """
    replace = _read("replace", context)
    if replace is _MISSING:
        arrays: list[Any] = [*context.avals_in, *context.avals_out]
        if any(_varying(array) for array in arrays):
            raise NotImplementedError(
                f"dmljax: this JAX, {jax.__version__}, has no LoweringRuleContext."
                "replace, which the operators need inside of a shard_map and for "
                "arrays that are sharded over explicit mesh axes. Use jax.shard_map "
                "with check_vma=False, or another version of JAX."
            )
        return context

    def bare(array: Any) -> jax.core.ShapedArray:
        return jax.core.ShapedArray(array.shape, array.dtype)

    bare_context: mlir.LoweringRuleContext = replace(
        avals_in=list(map(bare, context.avals_in)),
        avals_out=list(map(bare, context.avals_out)),
    )
    return bare_context


def varying_alike(*arrays: jax.Array) -> list[jax.Array]:
    """Casts arrays inside of a shard_map so that they vary over the same mesh axes.

    JAX requires it of the operands of one operation
    (https://docs.jax.dev/en/latest/notebooks/shard_map.html). An array that is the same
    on all devices varies over no axis. The transpose of its cast is the sum over the
    devices. Its cotangent must be that sum.
    """
    axes = [_varying(jax.typeof(array)) for array in arrays]
    everywhere = frozenset().union(*axes)
    return [
        lax.pcast(array, tuple(everywhere - own), to="varying")
        if everywhere - own
        else array
        for array, own in zip(arrays, axes, strict=True)
    ]


def knows_manual_axes(array: jax.Array) -> bool:
    """Whether JAX says over which mesh axes of a shard_map an array varies."""
    return _read("manual axes", jax.typeof(array)) is not _MISSING


def _varying(array: Any) -> frozenset[str]:
    """Returns the mesh axes over which an array of this type varies, if JAX says so."""
    axes = _read("manual axes", array)
    return getattr(axes, "varying", frozenset())


def struct(
    shape: Sequence[int], dtype: np.dtype, operand: jax.Array
) -> jax.ShapeDtypeStruct:
    """Returns the type of a kernel's output. It varies as `operand` does.

    Pallas asks for it inside of a shard_map that checks over which axes arrays vary.
    """
    axes = _read("manual axes", jax.typeof(operand))
    if axes is _MISSING:
        return jax.ShapeDtypeStruct(shape, dtype)
    return jax.ShapeDtypeStruct(shape, dtype, manual_axis_type=axes)


@dataclasses.dataclass(frozen=True)
class CodePerThread:
    """The parts of JAX with which code for one thread of a GPU is built."""

    inline: Any  # makes a function that builds MLIR a part of a Mosaic GPU kernel
    pointer: Callable[..., Any]  # the address of a reference that such a function gets
    ir: Any  # MLIR's types, attributes and places to insert operations
    dialects: Any  # MLIR's operations, by dialect


def code_per_thread() -> CodePerThread | None:
    """Returns what code per thread is built with; None where JAX lacks a part of it."""
    for dialect in ("arith", "gpu", "llvm", "nvvm", "scf"):
        module(f"jaxlib.mlir.dialects.{dialect}")
    inline = _read("code per thread", module("jax.experimental.pallas.mosaic_gpu"))
    pointer = _read("pointer", module("jax.experimental.mosaic.gpu"))
    dialects = _read("dialects", module("jaxlib.mlir"))
    if _MISSING in (inline, pointer, dialects):
        return None
    return CodePerThread(inline, pointer, module("jaxlib.mlir.ir"), dialects)


def compute_capability() -> tuple[int, ...] | None:
    """The lowest of this machine's GPUs, such as (9, 0); None if JAX says nothing."""
    gpus = [device for device in jax.local_devices() if device.platform == "gpu"]
    known = [_read("compute capability", device) for device in gpus]
    if not known or _MISSING in known:
        return None
    return min(tuple(map(int, str(each).split("."))) for each in known)
