"""Calls on arrays that are sharded over explicit mesh axes: JAX divides them.

With explicit axes a sharding belongs to an array's type, and is known when a call is
traced (https://docs.jax.dev/en/latest/parallel.html explains all kinds of axes).

An operator is *independent* along a dimension if a part of the output along the
dimension needs only the same part of the operands, and otherwise *dependent*. For
example, padding is independent along dimensions without padding. If only independent
dimensions are divided, `jax.shard_map` runs the operator on each device's part, like a
program for one device. Otherwise `jax.sharding.auto_axes` lets XLA divide the call, as
with automatic axes, or each device gathers the operands first: the operator's
`Division` says which. The forms of an operator have no code for meshes.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal

import jax
from jax import Array
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

from dmljax._check import DescriptorError, show
from dmljax._jax import varying_keyword
from dmljax._types import Form, Outputs


def explicit_mesh(*operands: Array) -> AbstractMesh | None:
    """Returns the mesh of an operand that is sharded over explicit axes, or None."""
    divided = (x for x in operands if divided_axes(x))
    return next((jax.typeof(x).sharding.mesh for x in divided), None)


def divided_axes(x: Array) -> dict[int, tuple[str, ...]]:
    """Returns the explicit mesh axes that divide `x`, by dimension.

    For example, {0: ("a", "b")} for ``PartitionSpec(("a", "b"), None)``. The type of an
    array names only explicit axes. So the result is empty for an array that is sharded
    over automatic axes, and for a device's part inside a shard_map.
    """
    spec = jax.typeof(x).sharding.spec
    if spec.unreduced:
        raise NotImplementedError(
            f"dmljax: an array of sizes {show(x.shape)} is unreduced over the mesh "
            f"axes {sorted(spec.unreduced)}; jax.reshard to another sharding sums it."
        )
    return {
        dimension: axes if isinstance(axes, tuple) else (axes,)
        for dimension, axes in enumerate(spec)
        if axes
    }


def whole(x: Array, dimensions: Collection[int]) -> Array:
    """Returns `x`, whole along `dimensions`: gathered where explicit axes divide it."""
    mesh = explicit_mesh(x)
    if mesh is None:
        return x
    spec = enumerate(jax.typeof(x).sharding.spec)
    kept = (None if i in dimensions else axes for i, axes in spec)
    gathered: Array = jax.reshard(x, NamedSharding(mesh, PartitionSpec(*kept)))
    return gathered


@dataclasses.dataclass(frozen=True)
class Division:
    """How to divide a call of an operator over explicit mesh axes.

    Attributes:
      independent: the dimensions along which the operator is independent. Dimension i
        of the outputs belongs to dimension i of the operands.
      otherwise: what to do if a dependent dimension is divided, too:

        - "keep": XLA divides the call, and outputs are sharded like the operands;
        - "replicate": XLA divides the call, and outputs are whole along dependent
          dimensions;
        - "gather": each device gathers the operands along dependent dimensions.
    """

    independent: Collection[int]
    otherwise: Literal["keep", "replicate", "gather"]


def over_explicit_mesh(
    operator: Any,
    mesh: AbstractMesh,
    operands: tuple[Array, ...],
    static: dict[str, Any],
) -> Outputs:
    """Returns the outputs of an `OperatorPrimitive` for operands sharded on a mesh."""
    # A dimension of size 1 stays whole. No two operands disagree about a dimension:
    # only a batch dimension has a larger size in more than one, and `jax.vmap` requires
    # the same mesh axes of all.
    divided = {
        dimension: axes
        for operand in operands
        for dimension, axes in divided_axes(operand).items()
        if operand.shape[dimension] != 1
    }
    division: Division = operator.division(*operands, **static)
    independent = {i: axes for i, axes in divided.items() if i in division.independent}
    by_parts = independent == divided or division.otherwise == "gather"
    if by_parts:
        operand_axes = output_axes = independent
    else:
        operand_axes = divided
        output_axes = divided if division.otherwise == "keep" else independent
    outputs = operator.types(*operands, **static)
    operand_shardings = _shardings(operator.name, mesh, operands, operand_axes)
    output_shardings = _shardings(operator.name, mesh, outputs, output_axes)
    # Inside of a caller's shard_map, JAX can't differentiate a function that saves
    # residuals sharded over further, explicit axes (jax-ml/jax#29162). Under
    # jax.checkpoint a function saves none. An operator without a derivative needs this,
    # too: JAX would save its zero tangents.
    run: Form = jax.checkpoint(functools.partial(operator, **static))
    dividing: set[str] = set().union(*operand_axes.values())
    all_explicit = mesh.explicit_axes == mesh.axis_names
    # A call by parts takes one of three ways:
    # - all axes are explicit: a shard_map over all, even if none divides the operands;
    # - some axes are automatic: a shard_map over the axes that divide the operands;
    # - some are automatic, and no axis divides the operands: no shard_map.
    if not by_parts:
        run = by_xla(run, mesh, output_shardings)
    elif all_explicit or dividing:
        run = jax.shard_map(
            run,
            mesh=mesh,
            in_specs=tuple(sharding.spec for sharding in operand_shardings),
            out_specs=tuple(sharding.spec for sharding in output_shardings),
            # For JAX, `set()` means all axes. With some alone, JAX may end the process
            # for a vmap over another axis (docs/development/lab_notes.md, "Manual axes
            # must be sorted"). Automatic axes are left to XLA.
            axis_names=set() if all_explicit else dividing,
            # JAX's check needs operands that vary over the same mesh axes. The
            # primitive casts them, if this JAX has a keyword for these axes.
            check_vma=bool(varying_keyword(jax.typeof(0))),
        )
    # With "gather", it is this reshard that gathers the operands.
    return run(*jax.reshard(operands, operand_shardings))


def by_xla(function: Callable[..., Any], mesh: AbstractMesh, shardings: Any) -> Any:
    """Makes XLA divide a function of arrays over explicit axes.

    The results get these `shardings`.
    """
    return jax.sharding.auto_axes(
        function, axes=mesh.explicit_axes, out_sharding=shardings
    )


def _shardings(
    operator: str,
    mesh: AbstractMesh,
    arrays: Sequence[Any],
    axes: Mapping[int, tuple[str, ...]],
) -> tuple[NamedSharding, ...]:
    """Returns the shardings of operands or outputs. A dimension of size 1 stays whole.

    Over explicit axes, JAX has only equal parts. Operands have equal parts already. An
    output that can't have them is an error.
    """
    shardings = []
    for array in arrays:
        entries: list[Any] = [None] * len(array.shape)
        for dimension, names in axes.items():
            size = array.shape[dimension]
            if size == 1:
                continue
            entries[dimension] = names
            count = math.prod(mesh.shape[name] for name in names)
            if size % count:
                raise DescriptorError(
                    f"{operator.upper()}: the output has sizes {show(array.shape)}, "
                    f"and {count} devices can't share the {size} elements along "
                    f"dimension {dimension} equally. The mesh axes are explicit "
                    f"({show(names)}), and JAX then needs equal parts. Choose other "
                    "sizes, or use jax.reshard to make the input whole along this "
                    "dimension."
                )
        shardings.append(NamedSharding(mesh, PartitionSpec(*entries)))
    return tuple(shardings)
