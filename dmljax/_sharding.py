"""What a device does with its part of an array that is sharded over explicit mesh axes.

A *part* is what one device holds of an array. With explicit axes a sharding belongs to
an array's type (https://docs.jax.dev/en/latest/parallel.html has all kinds of axes),
and the parts are known when a call is traced. The call then becomes a
`jax.shard_map`, in which each device runs the operator on its own part. With automatic
axes XLA divides a program when it compiles it, without this file. What a single
operator sends between devices is in that operator's file.
"""

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax import lax
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

from dmljax._check import require, show
from dmljax._jax import knows_manual_axes, names_axes
from dmljax._types import Outputs

Names = tuple[str, ...]  # names of dimensions, or of mesh axes


@dataclasses.dataclass(frozen=True)
class Layout:
    """Names for all dimensions of one call. Dimensions of one name are divided alike.

    Attributes:
      operands: for each operand, a name for each of its dimensions.
      outputs: for each output, a name for each of its dimensions.
      whole: the names of the dimensions that must not be divided. An operand that is
        sharded along one of them is gathered along it before the operator runs.
    """

    operands: tuple[Names, ...]
    outputs: tuple[Names, ...]
    whole: frozenset[str]


@dataclasses.dataclass(frozen=True)
class Part:
    """Which part of the arrays a device holds.

    The methods take the number of a dimension as the first output counts it.
    """

    mesh: Mapping[str, int]  # the size of each mesh axis
    axes: Mapping[str, Names]  # the mesh axes that divide a dimension, by its name
    outputs: tuple[tuple[int, ...], ...]  # the sizes of a part of each output

    def mesh_axes(self, dimension: int) -> Names:
        """Returns the mesh axes over which a dimension is divided."""
        return self.axes.get(_name(dimension), ())

    def count(self, dimension: int) -> int:
        """Returns the number of parts into which a dimension is divided."""
        return _parts(self.mesh, self.mesh_axes(dimension))

    def index(self, dimension: int) -> jax.Array:
        """Returns which of these parts the device holds, as an int32."""
        return lax.axis_index(self.mesh_axes(dimension))

    def neighbour(
        self, x: jax.Array, dimension: int, distance: int, *, cyclic: bool
    ) -> jax.Array:
        """Returns the `x` of the device that has the part `distance` before this one.

        A device at the end of the dimension has no such neighbour. It gets zeros, or,
        if `cyclic`, the `x` of the device at the other end.
        """
        # ppermute numbers the devices in the order of the mesh. A dimension may be
        # divided over mesh axes in another order. `devices` has the number by part.
        names = self.mesh_axes(dimension)
        count = self.count(dimension)
        ordered = tuple(axis for axis in self.mesh if axis in names)
        parts = np.arange(count).reshape([self.mesh[axis] for axis in names])
        devices = np.argsort(parts.transpose(list(map(names.index, ordered))).ravel())
        # A device that is the target of no pair receives zeros from ppermute.
        pairs = [
            (int(devices[i]), int(devices[(i + distance) % count]))
            for i in range(count)
            if cyclic or 0 <= i + distance < count
        ]
        received: jax.Array = lax.ppermute(x, ordered, pairs)
        return received

    def gathered(self, x: jax.Array, dimension: int) -> jax.Array:
        """Joins the parts of `x` along a dimension. Every device gets the result."""
        mesh_axes = self.mesh_axes(dimension)
        if not mesh_axes:
            return x
        # `tiled` joins along the dimension itself; the default stacks along a new one.
        whole: jax.Array = lax.all_gather(x, mesh_axes, axis=dimension, tiled=True)
        return whole

    def cut(self, whole: jax.Array, dimension: int) -> jax.Array:
        """Returns the device's part of an array that is whole along a dimension."""
        if not self.mesh_axes(dimension):
            return whole
        size = whole.shape[dimension] // self.count(dimension)
        first = self.index(dimension) * size
        return lax.dynamic_slice_in_dim(whole, first, size, axis=dimension)


def aligned(
    operands: Sequence[tuple[int, ...]],
    outputs: Sequence[tuple[int, ...]],
    **static: Any,
) -> Layout:
    """Returns the layout in which dimensions of the same number belong together.

    For example, operands of (8, 3) and (1, 3) give an output of (8, 3). All second
    dimensions are named `d1`, and the first ones `d0`, except in the second operand: a
    dimension of size 1 is shared, as every device needs its one element. It has a name
    of its own, and is not divided.
    """
    del static
    names = tuple(
        tuple(
            _name(i) if size != 1 else f"shared{number}x{i}"
            for i, size in enumerate(sizes)
        )
        for number, sizes in enumerate([*operands, *outputs])
    )
    shared = {name for each in names for name in each if name.startswith("shared")}
    return Layout(names[: len(operands)], names[len(operands) :], frozenset(shared))


def _name(dimension: int) -> str:
    return f"d{dimension}"


def _parts(mesh: Mapping[str, int], mesh_axes: Names) -> int:
    return math.prod(mesh[axis] for axis in mesh_axes)


@dataclasses.dataclass(frozen=True)
class Partition:
    """The division of one operator among devices.

    Attributes:
      shard: what one device does, `(part, *operands, **static) -> outputs`. It gets
        parts of the operands and returns parts of the outputs, and calls the operator's
        primitive again. None: it does nothing else.
      layout: says which dimensions belong together, `(sizes of the operands, sizes of
        the outputs, **static) -> Layout`. We give no default: with `aligned`, an
        operator whose output is longer than its input needs a `shard` that knows it.
    """

    shard: Callable[..., Outputs] | None
    layout: Callable[..., Layout]


def explicit_mesh(*operands: jax.Array) -> AbstractMesh | None:
    """Returns the mesh if an operand is sharded over explicit axes of it, else None."""
    for operand in operands:
        sharding = jax.typeof(operand).sharding
        # The type of an array names explicit axes alone: an array that is sharded over
        # automatic axes, and a part inside a shard_map, have None for each dimension.
        if any(map(names_axes, sharding.spec)):
            mesh: AbstractMesh = sharding.mesh
            return mesh
    return None


def explicit_parts(x: jax.Array, dimension: int) -> int:
    """Returns the number of parts of a dimension that explicit mesh axes divide."""
    sharding = jax.typeof(x).sharding
    divided = dict(_divided(sharding.spec, tuple(map(_name, range(x.ndim)))))
    return _parts(dict(sharding.mesh.shape), divided.get(_name(dimension), ()))


def over_explicit_mesh(
    operator: str,
    run: Callable[..., Outputs],
    mesh: AbstractMesh,
    partition: Partition,
    operands: Sequence[jax.Array],
    outputs: Sequence[tuple[int, ...]],
    static: Mapping[str, Any],
) -> Outputs:
    """Returns the outputs, of these sizes. Each device computes its parts of them.

    `run` is the operator itself.
    """
    sizes = dict(mesh.shape)
    layout = partition.layout([x.shape for x in operands], outputs, **static)
    axes = _declared(operator, layout, operands)
    parts = [
        _sizes_of_part(operator, output, [axes.get(name, ()) for name in names], sizes)
        for output, names in zip(outputs, layout.outputs, strict=True)
    ]
    part = Part(sizes, axes, tuple(parts))
    in_specs, out_specs = (
        tuple(PartitionSpec(*(axes.get(name) for name in names)) for names in arrays)
        for arrays in (layout.operands, layout.outputs)
    )

    def shard(*own: jax.Array) -> Outputs:
        if partition.shard is None:
            return run(*own, **static)
        return partition.shard(part, *own, **static)

    mapped = jax.shard_map(
        # The index of a part must not become a residual of a gradient: inside of the
        # caller's own shard_map over other axes, JAX has no sharding for it.
        jax.checkpoint(shard),
        mesh=mesh,
        in_specs=in_specs,
        out_specs=out_specs,
        # Only these axes become manual, and the caller's other axes stay as they are.
        # If there are none, all become manual, and every device computes the whole.
        axis_names={axis for mesh_axes in axes.values() for axis in mesh_axes},
        # The check compares on which devices values vary. Without the name that
        # `varying_alike` reads, the operands can't be made to vary alike.
        check_vma=knows_manual_axes(operands[0]),
    )
    # An operand that has less of a sharding than another is divided like it, and one
    # that is sharded along a whole dimension is gathered. This is where that is sent.
    placed = (
        jax.reshard(operand, NamedSharding(mesh, spec))
        for operand, spec in zip(operands, in_specs, strict=True)
    )
    results: Outputs = mapped(*placed)
    return results


def _divided(spec: PartitionSpec, names: Names) -> Iterator[tuple[str, Names]]:
    """Yields each dimension that a spec divides, by name, with its mesh axes."""
    # A spec may be shorter than the rank; the dimensions that it leaves out are whole.
    for entry, name in zip(spec, names, strict=False):
        if names_axes(entry):
            yield name, entry if isinstance(entry, tuple) else (entry,)


def _declared(
    operator: str, layout: Layout, operands: Sequence[jax.Array]
) -> dict[str, Names]:
    """Returns the mesh axes of each divided dimension, as the operands' types say.

    Two operands may not divide a dimension over different mesh axes, nor two dimensions
    over the same mesh axis: one `shard_map` can't do both.
    """
    axes: dict[str, Names] = {}
    for operand, names in zip(operands, layout.operands, strict=True):
        spec = jax.typeof(operand).sharding.spec
        for name, mesh_axes in _divided(spec, names):
            if name in layout.whole:
                continue
            axes.setdefault(name, mesh_axes)
            others = {axis for other in axes if other != name for axis in axes[other]}
            require(
                operator,
                axes[name] == mesh_axes and others.isdisjoint(mesh_axes),
                f"an operand of sizes {show(operand.shape)} is sharded as {spec}, "
                "while another operand is sharded in a way that does not go with it; "
                "use jax.reshard to make them alike.",
            )
    return axes


def _sizes_of_part(
    operator: str,
    output: tuple[int, ...],
    axes: Sequence[Names],
    mesh: Mapping[str, int],
) -> tuple[int, ...]:
    """Returns the sizes of a part. JAX has no uneven sharding over explicit axes."""
    counts = [_parts(mesh, mesh_axes) for mesh_axes in axes]
    for i, (size, count) in enumerate(zip(output, counts, strict=True)):
        require(
            operator,
            size % count == 0,
            f"the output has sizes {show(output)}, and {count} devices can't share "
            f"the {size} elements along dimension {i} equally. The mesh axes are "
            f"explicit ({show(axes[i])}), and JAX then needs equal parts. Choose other "
            "sizes, or use jax.reshard to make the input whole along this dimension.",
        )
    return tuple(size // count for size, count in zip(output, counts, strict=True))
