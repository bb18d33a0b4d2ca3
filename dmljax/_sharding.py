"""Calls on arrays that are sharded over explicit mesh axes: JAX divides them.

With explicit axes a sharding belongs to an array's type, and is known when a call is
traced (https://docs.jax.dev/en/latest/parallel.html has all kinds of axes). An operator
says along which dimensions it is *independent*: an output's part along them needs the
same part of the operands alone. For example, padding is independent along the
dimensions that it does not pad. If only such dimensions are divided, `jax.shard_map`
runs the operator on each device's part, as a program for one device does. The operands
of an operator that *gathers* are first made whole along all other dimensions; then it
runs so, too. Otherwise `jax.sharding.auto_axes` hands the call to XLA, which divides it
as it divides programs with automatic axes. No operator has code of its own for a
division.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import jax
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

from dmljax._check import DescriptorError, show
from dmljax._jax import manual_axes
from dmljax._types import Form, Outputs


def explicit_mesh(*operands: jax.Array) -> AbstractMesh | None:
    """Returns the mesh if an operand is sharded over explicit axes of it, else None."""
    for operand in operands:
        if _divided(operand):
            mesh: AbstractMesh = jax.typeof(operand).sharding.mesh
            return mesh
    return None


def devices_along(x: jax.Array, dimension: int) -> int:
    """Returns the number of devices that share a dimension over explicit mesh axes."""
    mesh = jax.typeof(x).sharding.mesh
    names = _divided(x).get(dimension, ())
    return math.prod(mesh.shape[name] for name in names)


def over_explicit_mesh(
    operator: str,
    run: Form,
    mesh: AbstractMesh,
    operands: Sequence[jax.Array],
    outputs: Sequence[tuple[int, ...]],
    *,
    independent: Collection[int],
    aligned: bool,
    gathers: bool,
) -> Outputs:
    """Returns the outputs of `run(*operands)`, which have these sizes.

    Args:
      operator: the name in messages.
      run: the operator.
      mesh: the mesh of the operands.
      operands: arrays, of which at least one is sharded.
      outputs: the sizes of each output.
      independent: the dimensions along which the operator is independent.
      aligned: whether the outputs have all dimensions of the operands, in their order.
        Otherwise they share the independent dimensions alone, and are whole along
        others.
      gathers: whether the operands are gathered along all other dimensions, instead of
        being divided by XLA.
    """
    axes = _axes_of_dimensions(operator, operands)
    independent_axes = {i: names for i, names in axes.items() if i in independent}
    by_shard_map = gathers or len(independent_axes) == len(axes)
    input_axes = independent_axes if by_shard_map else axes
    in_specs = tuple(_spec(x.shape, input_axes) for x in operands)
    output_axes = input_axes if aligned else independent_axes
    out_specs = tuple(_spec(sizes, output_axes) for sizes in outputs)
    for sizes in outputs:
        _check_even(operator, mesh, sizes, output_axes)
    # An operand that has less of a sharding than another is divided like it.
    placed = [
        jax.reshard(operand, NamedSharding(mesh, spec))
        for operand, spec in zip(operands, in_specs, strict=True)
    ]
    # A gradient keeps residuals. Inside of the caller's own shard_map over other axes,
    # JAX has no sharding for a residual that lies on one device. With jax.checkpoint
    # there is none.
    run = jax.checkpoint(run)
    if not by_shard_map:
        shardings = tuple(NamedSharding(mesh, spec) for spec in out_specs)
        results: Outputs = by_xla(run, mesh, shardings)(*placed)
        return results
    names = {name for each in input_axes.values() for name in each}
    are_explicit = {*mesh.axis_types} == {AxisType.Explicit}
    mapped: Form = jax.shard_map(
        run,
        mesh=mesh,
        in_specs=in_specs,
        out_specs=out_specs,
        # No names stand for all axes. With some of them, JAX 0.12 ends the process for
        # a vmap over another axis (docs/development/lab_notes.md, "Manual axes must be
        # sorted"). The other kinds of axes of a caller's mesh stay as they are.
        axis_names=set() if are_explicit else names,
        # The check compares on which devices values vary. If JAX does not say it, the
        # operands can't be made to vary alike.
        check_vma=bool(manual_axes(operands[0])),
    )
    return mapped(*placed)


def by_xla(
    function: Callable[..., Any], mesh: AbstractMesh, shardings: Any
) -> Callable[..., Any]:
    """Lets XLA divide a function of arrays that are sharded over explicit axes.

    `shardings` are those of the results.
    """
    kinds = zip(mesh.axis_names, mesh.axis_types, strict=True)
    explicit = tuple(name for name, kind in kinds if kind == AxisType.Explicit)
    divided: Callable[..., Any]
    divided = jax.sharding.auto_axes(function, axes=explicit, out_sharding=shardings)
    return divided


def _divided(x: jax.Array) -> dict[int, tuple[str, ...]]:
    """Returns the mesh axes of each dimension that the type of `x` divides.

    The type of an array names explicit axes alone: an array that is sharded over
    automatic axes, and a part inside a shard_map, have None for each dimension.
    """
    divided = {}
    spec = jax.typeof(x).sharding.spec
    if spec.unreduced:
        raise NotImplementedError(
            f"dmljax: an array of sizes {show(x.shape)} is unreduced over the mesh "
            f"axes {sorted(spec.unreduced)}; jax.reshard to another sharding sums it."
        )
    for dimension, entry in enumerate(spec):
        if entry:
            divided[dimension] = entry if isinstance(entry, tuple) else (entry,)
    return divided


def _axes_of_dimensions(
    operator: str, operands: Sequence[jax.Array]
) -> dict[int, tuple[str, ...]]:
    """Returns the mesh axes of each divided dimension, as the operands' types say.

    Two operands may not divide a dimension over different mesh axes, nor two dimensions
    over the same mesh axis: no output could be divided as both are.
    """
    axes: dict[int, tuple[str, ...]] = {}
    for operand in operands:
        for dimension, names in _divided(operand).items():
            # A dimension of size 1 is shared: every device needs its one element.
            if operand.shape[dimension] == 1:
                continue
            axes.setdefault(dimension, names)
            others = {name for i in axes if i != dimension for name in axes[i]}
            if axes[dimension] != names or not others.isdisjoint(names):
                raise DescriptorError(
                    f"{operator}: an operand of sizes {show(operand.shape)} is sharded "
                    f"as {jax.typeof(operand).sharding.spec}, while another operand is "
                    "sharded in a way that does not go with it; use jax.reshard to "
                    "make them alike."
                )
    return axes


def _spec(sizes: tuple[int, ...], axes: Mapping[int, tuple[str, ...]]) -> PartitionSpec:
    """Returns how an array of these sizes is divided. A size of 1 is shared."""
    return PartitionSpec(
        *(None if size == 1 else axes.get(i) for i, size in enumerate(sizes))
    )


def _check_even(
    operator: str,
    mesh: AbstractMesh,
    sizes: tuple[int, ...],
    axes: Mapping[int, tuple[str, ...]],
) -> None:
    """Requires equal parts: JAX has no others over explicit axes."""
    for dimension, names in axes.items():
        size = sizes[dimension]
        count = math.prod(mesh.shape[name] for name in names)
        if size != 1 and size % count:  # a size of 1 is shared
            raise DescriptorError(
                f"{operator}: the output has sizes {show(sizes)}, and {count} devices "
                f"can't share the {size} elements along dimension {dimension} equally. "
                f"The mesh axes are explicit ({show(names)}), and JAX then needs equal "
                "parts. Choose other sizes, or use jax.reshard to make the input whole "
                "along this dimension."
            )
