"""What a device does with its part of an array that is sharded over explicit mesh axes.

With explicit axes a sharding is part of an array's type, so the division is known when
a call is traced: the call becomes a `jax.shard_map`, in which each device runs the
operator on its own part. An operator says which dimensions of its operands and outputs
belong together, and what a device does. With automatic axes XLA divides a program by
itself when it compiles; nothing here takes part in that.

A *part* is what one device holds of an array.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
from jax import lax
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

from dmljax._check import require, show
from dmljax._jax import knows_manual_axes
from dmljax._tensor import Outputs

Sizes = tuple[int, ...]
Names = tuple[str, ...]  # of dimensions, or of mesh axes


@dataclasses.dataclass(frozen=True)
class Layout:
    """Names for all dimensions of one call. Dimensions of one name are divided alike.

    Attributes:
      operands: for each operand, a name for each dimension.
      outputs: for each output, likewise.
      whole: the names of dimensions that are not divided. An operand that is sharded
        along one of them is gathered along it first.
    """

    operands: tuple[Names, ...]
    outputs: tuple[Names, ...]
    whole: frozenset[str]


@dataclasses.dataclass(frozen=True)
class Part:
    """Which part of the arrays a device holds.

    Dimensions are counted as those of the first output.

    Attributes:
      mesh: the sizes of the mesh axes.
      axes: for each dimension that is divided, by name, over which mesh axes.
      outputs: the sizes of a part of each output.
    """

    mesh: Mapping[str, int]
    axes: Mapping[str, Names]
    outputs: tuple[Sizes, ...]

    def mesh_axes(self, dimension: int) -> Names:
        """The mesh axes over which a dimension is divided."""
        return self.axes.get(_name(dimension), ())

    def count(self, dimension: int) -> int:
        """Into how many parts a dimension is divided."""
        return _parts(self.mesh, self.mesh_axes(dimension))

    def index(self, dimension: int) -> jax.Array:
        """Which of these parts the device holds, an int32."""
        return lax.axis_index(self.mesh_axes(dimension))

    def neighbour(
        self, x: jax.Array, dimension: int, distance: int, *, cyclic: bool
    ) -> jax.Array:
        """The `x` of the device that holds the part `distance` before this one.

        Where there is none, the result is zero, or the other end's if it is `cyclic`.
        """
        count = self.count(dimension)
        pairs = [
            (i, (i + distance) % count)
            for i in range(count)
            if cyclic or 0 <= i + distance < count
        ]
        received: jax.Array = lax.ppermute(x, self.mesh_axes(dimension), pairs)
        return received

    def gathered(self, x: jax.Array, dimension: int) -> jax.Array:
        """All parts of `x` along a dimension, joined."""
        mesh_axes = self.mesh_axes(dimension)
        whole: jax.Array = lax.all_gather(x, mesh_axes, axis=dimension, tiled=True)
        return whole


def aligned(
    operands: Sequence[Sizes], outputs: Sequence[Sizes], **static: Any
) -> Layout:
    """The layout where dimensions of the same number belong together.

    A dimension of size 1 is shared among the devices, and so is whole.
    """
    del static
    names = tuple(
        tuple(
            _name(i) if size != 1 else f"shared{number}x{i}"
            for i, size in enumerate(sizes)
        )
        for number, sizes in enumerate([*operands, *outputs])
    )
    shared = {name for line in names for name in line if name.startswith("shared")}
    return Layout(names[: len(operands)], names[len(operands) :], frozenset(shared))


def _name(dimension: int) -> str:
    return f"d{dimension}"


def _parts(mesh: Mapping[str, int], mesh_axes: Names) -> int:
    return math.prod(mesh[axis] for axis in mesh_axes)


@dataclasses.dataclass(frozen=True)
class Partition:
    """How one operator is divided.

    Attributes:
      shard: what a device does, `(part, *operands, **static) -> outputs`, with parts of
        the operands and outputs. It calls the operator again.
      layout: which dimensions belong together, `(sizes of the operands, sizes of the
        outputs, **static) -> Layout`.
    """

    shard: Callable[..., Outputs]
    layout: Callable[..., Layout] = aligned


@dataclasses.dataclass(frozen=True)
class Division:
    """The partition of one call, whose sizes and attributes are known."""

    partition: Partition
    operands: tuple[Sizes, ...]
    outputs: tuple[Sizes, ...]
    static: Mapping[str, Any]

    @functools.cached_property
    def layout(self) -> Layout:
        """The names of the dimensions."""
        return self.partition.layout(self.operands, self.outputs, **self.static)

    def shard(
        self, mesh: Mapping[str, int], axes: Mapping[str, Names]
    ) -> Callable[..., Outputs]:
        """What a device does if dimensions are divided over these mesh axes."""

        def sizes_of_part(names: Names, sizes: Sizes) -> Sizes:
            counts = (_parts(mesh, axes.get(name, ())) for name in names)
            return tuple(size // n for size, n in zip(sizes, counts, strict=True))

        outputs = map(sizes_of_part, self.layout.outputs, self.outputs)
        part = Part(mesh, axes, tuple(outputs))
        return lambda *operands: self.partition.shard(part, *operands, **self.static)


def explicit_mesh(*operands: jax.Array) -> AbstractMesh | None:
    """The mesh over whose explicit axes operands are sharded, if any are."""
    for operand in operands:
        sharding = jax.typeof(operand).sharding
        # In the types of JAX, only explicit axes divide a dimension.
        if any(entry not in (None, ()) for entry in sharding.spec):
            mesh: AbstractMesh = sharding.mesh
            return mesh
    return None


def explicit_parts(x: jax.Array, dimension: int) -> int:
    """Into how many parts a dimension is divided, as far as the type says so."""
    sharding = jax.typeof(x).sharding
    divided = dict(_divided(sharding.spec, tuple(map(_name, range(x.ndim)))))
    return _parts(dict(sharding.mesh.shape), divided.get(_name(dimension), ()))


def over_explicit_mesh(
    operator: str,
    mesh: AbstractMesh,
    division: Division,
    operands: Sequence[jax.Array],
) -> Outputs:
    """The outputs, each part computed by the device that holds it."""
    layout, sizes = division.layout, dict(mesh.shape)
    axes = _declared(operator, division, operands)
    for output, names in zip(division.outputs, layout.outputs, strict=True):
        _check_even(operator, output, [axes.get(name, ()) for name in names], sizes)
    in_specs, out_specs = (
        tuple(PartitionSpec(*(axes.get(name) for name in names)) for names in lines)
        for lines in (layout.operands, layout.outputs)
    )
    mapped = jax.shard_map(
        division.shard(sizes, axes),
        mesh=mesh,
        in_specs=in_specs,
        out_specs=out_specs,
        axis_names={axis for mesh_axes in axes.values() for axis in mesh_axes},
        check_vma=knows_manual_axes(operands[0]),
    )
    placed = (
        jax.reshard(operand, NamedSharding(mesh, spec))
        for operand, spec in zip(operands, in_specs, strict=True)
    )
    outputs: Outputs = mapped(*placed)
    return outputs


def _divided(spec: PartitionSpec, names: Names) -> Iterator[tuple[str, Names]]:
    """The names of the dimensions that a spec divides, and over which mesh axes."""
    for entry, name in zip(spec, names, strict=False):
        if entry is not None and entry != ():
            yield name, entry if isinstance(entry, tuple) else (entry,)


def _declared(
    operator: str, division: Division, operands: Sequence[jax.Array]
) -> dict[str, Names]:
    """The mesh axes of each dimension that is divided, as the operands' types say."""
    axes: dict[str, Names] = {}
    for operand, names in zip(operands, division.layout.operands, strict=True):
        spec = jax.typeof(operand).sharding.spec
        for name, mesh_axes in _divided(spec, names):
            if name in division.layout.whole:
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


def _check_even(
    operator: str, output: Sizes, axes: Sequence[Names], mesh: Mapping[str, int]
) -> None:
    """Explicit shardings know no part that is smaller than the others."""
    for i, (size, mesh_axes) in enumerate(zip(output, axes, strict=True)):
        parts = _parts(mesh, mesh_axes)
        require(
            operator,
            size % parts == 0,
            f"the output has sizes {show(output)}, and {parts} devices can't share "
            f"the {size} elements along dimension {i} equally. The mesh axes are "
            f"explicit ({show(mesh_axes)}), so that they must: choose other sizes, or "
            "use jax.reshard to make the input whole along this dimension.",
        )
