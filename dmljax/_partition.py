"""How an operator is divided among the devices of a mesh.

An operator says which dimensions of its operands and outputs belong together, and what
a device does with its part of them. Where JAX infers shardings (automatic mesh axes),
XLA's partitioner asks for that while it compiles; where they are types (explicit axes),
it becomes a shard_map when the program is traced.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental.custom_partitioning import (
    ArrayMapping,
    SdyShardingRule,
    custom_partitioning,
)
from jax.interpreters import mlir
from jax.sharding import (
    AbstractDevice,
    AbstractMesh,
    AxisType,
    Mesh,
    NamedSharding,
    PartitionSpec,
    Sharding,
)

from dmljax._check import require, show

Outputs = tuple[jax.Array, ...]
Sizes = tuple[int, ...]
Names = tuple[str, ...]  # of dimensions, or of mesh axes


@dataclasses.dataclass(frozen=True)
class Layout:
    """Names for all dimensions. Those of the same name are divided alike.

    Attributes:
      operands: for each operand, a name for each dimension.
      outputs: for each output, likewise.
      whole: the names of dimensions that can't be divided.
    """

    operands: tuple[Names, ...]
    outputs: tuple[Names, ...]
    whole: frozenset[str]


@dataclasses.dataclass(frozen=True)
class Place:
    """Where the part of a device lies. Dimensions are those of the first output.

    Attributes:
      mesh: the sizes of the mesh axes.
      axes: for each dimension that is divided, by name, over which mesh axes.
      outputs: the sizes of a part of each output. Where they don't divide a size, the
        last parts reach past the end.
    """

    mesh: Mapping[str, int]
    axes: Mapping[str, Names]
    outputs: tuple[Sizes, ...]

    def along(self, dimension: int) -> Names:
        """The mesh axes over which a dimension is divided."""
        return self.axes.get(_name(dimension), ())

    def parts(self, dimension: int) -> int:
        """Into how many parts a dimension is divided."""
        return _parts(self.mesh, self.along(dimension))

    def index(self, dimension: int) -> jax.Array:
        """Which of the parts this is, an int32."""
        axes = self.along(dimension)
        return lax.axis_index(axes) if axes else jnp.int32(0)

    def shift(
        self, x: jax.Array, dimension: int, by: int, *, around: bool = False
    ) -> jax.Array:
        """The `x` of the device that lies `by` parts before.

        Where there is none, it is zero, or that of the other end if it goes `around`.
        """
        parts = self.parts(dimension)
        pairs = [
            (i, (i + by) % parts) for i in range(parts) if around or 0 <= i + by < parts
        ]
        shifted: jax.Array = lax.ppermute(x, self.along(dimension), pairs)
        return shifted

    def collected(self, number: jax.Array, dimension: int) -> jax.Array:
        """(..., parts): the numbers of all parts."""
        shape = (*number.shape, self.parts(dimension))
        part = lax.broadcasted_iota(np.int32, shape, number.ndim)
        own = jnp.where(part == self.index(dimension), number[..., None], 0)
        table: jax.Array = lax.psum(own, self.along(dimension))
        return table

    def exchanged(self, x: jax.Array, dimension: int, axis: int) -> jax.Array:
        """Along `axis`, for each part what it has in the place of this one."""
        axes = self.along(dimension)
        came: jax.Array = lax.all_to_all(x, axes, axis, axis, tiled=True)
        return came

    def gathered(self, x: jax.Array, dimension: int) -> jax.Array:
        """All parts of `x`, joined."""
        axes = self.along(dimension)
        whole: jax.Array = lax.all_gather(x, axes, axis=dimension, tiled=True)
        return whole


def aligned(
    operands: Sequence[Sizes], outputs: Sequence[Sizes], **static: Any
) -> Layout:
    """The layout where equal numbers of dimensions mean that they belong together.

    What has size 1 is shared, and not divided.
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


def _parts(mesh: Mapping[str, int], axes: Names) -> int:
    return math.prod(mesh[axis] for axis in axes)


def _stays(**static: Any) -> bool:
    del static
    return False


@dataclasses.dataclass(frozen=True)
class Partition:
    """How one operator is divided.

    Attributes:
      shard: what a device does, `(place, *operands, **static) -> outputs`, with parts;
        it calls the operator again, with what lies on the device.
      layout: which dimensions belong together, `(sizes of the operands, sizes of the
        outputs, **static) -> Layout`.
      moves: whether elements may have to move between devices, `(**static) -> bool`.
        Where they stay, XLA divides its form of the operator as well.
    """

    shard: Callable[..., Outputs]
    layout: Callable[..., Layout] = aligned
    moves: Callable[..., bool] = _stays


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

    def divides(self, parts: int, name: str) -> bool:
        """Whether what has this name can be divided into so many equal parts.

        By the smallest size: an output may have more, and then needs not be even.
        """
        lines = zip(
            self.layout.operands + self.layout.outputs,
            self.operands + self.outputs,
            strict=True,
        )
        sizes = (
            size
            for names, sizes in lines
            for own, size in zip(names, sizes, strict=True)
            if own == name
        )
        return name not in self.layout.whole and min(sizes) % parts == 0

    def shard(
        self, mesh: Mapping[str, int], axes: Mapping[str, Names]
    ) -> Callable[..., Outputs]:
        """What a device does, if these dimensions are divided over these mesh axes."""

        def part(names: Names, sizes: Sizes) -> Sizes:
            parts = (_parts(mesh, axes.get(name, ())) for name in names)
            return tuple(-(-size // n) for size, n in zip(sizes, parts, strict=True))

        outputs = map(part, self.layout.outputs, self.outputs)
        place = Place(mesh, axes, tuple(outputs))
        return lambda *operands: self.partition.shard(place, *operands, **self.static)


def _divided(spec: PartitionSpec, names: Names) -> Iterator[tuple[str, Names]]:
    """The names of the dimensions that a spec divides, and over which mesh axes."""
    for entry, name in zip(spec, names, strict=False):
        if entry is not None and entry != ():
            yield name, entry if isinstance(entry, tuple) else (entry,)


def _specs(lines: Sequence[Names], axes: Mapping[str, Names]) -> list[PartitionSpec]:
    return [PartitionSpec(*(axes.get(name) for name in names)) for names in lines]


def mesh_sizes(context: mlir.LoweringRuleContext, platform: str) -> Sizes | None:
    """The sizes of the mesh over which XLA will partition what is being lowered.

    None if there is none, or if XLA can't ask how to divide: in a program that is
    exported, or for TPUs, whose compiler has no place for it. Where JAX does not say
    what the mesh is, it is a line of all devices. The attributes of JAX's context are
    undocumented; without them XLA divides alone as well.
    """
    module = context.module_context
    axes = getattr(module, "axis_context", None)
    parameters = getattr(module, "lowering_parameters", None)
    devices = getattr(axes, "num_devices", 1)
    changeable = hasattr(axes, "device_assignment") and hasattr(module, "replace")
    exported = getattr(parameters, "for_export", True)
    if devices == 1 or not changeable or exported or platform == "tpu":
        return None
    arrays: list[Any] = [*context.avals_in, *context.avals_out]
    meshes = [array.sharding.mesh for array in arrays]
    sizes = (mesh.axis_sizes for mesh in meshes if mesh.size == devices)
    return next(sizes, (devices,))


def lower_partitioned(
    context: mlir.LoweringRuleContext,
    sizes: Sizes,
    division: Division,
    definition: Callable[..., Outputs],
    operands: Sequence[Any],
) -> Any:
    """Lowers a call such that XLA, once it has chosen shardings, divides it so.

    `sizes` are those of a mesh; `definition` computes the same as a whole.
    """
    layout, mesh = division.layout, _fine_mesh(sizes)

    def divide(_: Any, operands: Any, outputs: Any) -> Any:
        lengths = dict(mesh.shape)
        arrays = (*outputs, *operands)
        specs = [_spec(array.sharding, mesh, len(array.shape)) for array in arrays]
        axes = _proposed(division, lengths, specs)
        taken, given = (
            tuple(NamedSharding(mesh, spec) for spec in _specs(lines, axes))
            for lines in (layout.operands, layout.outputs)
        )
        return mesh, division.shard(lengths, axes), given, taken

    # Shardy wants names in the order in which they are used first.
    names = dict.fromkeys(itertools.chain(*layout.operands, *layout.outputs))
    divided = custom_partitioning(definition)
    divided.def_partition(
        divide,
        decode_shardings=False,  # it fails where a part of a mesh axis divides
        sharding_rule=SdyShardingRule(
            tuple(ArrayMapping(*names) for names in layout.operands),
            tuple(ArrayMapping(*names) for names in layout.outputs),
            need_replication_factors=tuple(n for n in names if n in layout.whole),
        ),
    )
    return mlir.lower_fun(divided, multiple_results=True)(
        _with_devices(context, mesh), *operands
    )


def _fine_mesh(sizes: Sizes) -> Mesh:
    """A mesh of these sizes, each split into its prime factors.

    So that also a part of an axis has a name: where an array was reshaped, XLA may
    divide a dimension over no more than that. What devices there are does not matter,
    but which is which.
    """
    factors = [factor for size in sizes for factor in _prime_factors(size)]
    devices = [
        AbstractDevice(device_kind=f"{i}", num_cores=None, platform="cpu")
        for i in range(math.prod(sizes))
    ]
    names = tuple(f"part{i}" for i in range(len(factors)))
    return Mesh(np.array(devices, object).reshape(factors), names)


def _prime_factors(size: int) -> list[int]:
    """The prime factors of a size.

    >>> _prime_factors(12), _prime_factors(1)
    ([2, 2, 3], [])
    """
    for factor in range(2, math.isqrt(size) + 1):
        if size % factor == 0:
            return [factor, *_prime_factors(size // factor)]
    return [size] if size > 1 else []


def _spec(sharding: Sharding, mesh: Mesh, rank: int) -> PartitionSpec:
    """XLA's sharding in the names of the mesh; of none if it has no words for it."""
    if sharding.is_fully_replicated:
        return PartitionSpec()
    places = sharding.devices_indices_map((mesh.size,) * rank)
    # One step along a mesh axis from the first device leads to another part of what it
    # divides, which is the further away, the earlier the axis among the dimension's.
    steps: list[list[tuple[int, str]]] = [[] for _ in range(rank)]
    ones = np.eye(mesh.devices.ndim, dtype=int)
    for axis, one in zip(mesh.axis_names, ones, strict=True):
        place = places[mesh.devices[tuple(one)]]
        step, dimension = max((part.start or 0, i) for i, part in enumerate(place))
        if step:
            steps[dimension].append((step, axis))
    axes = (tuple(axis for _, axis in sorted(line, reverse=True)) for line in steps)
    spec = PartitionSpec(*axes)
    same = NamedSharding(mesh, spec).is_equivalent_to(sharding, rank)
    return spec if same else PartitionSpec()


def _with_devices(
    context: mlir.LoweringRuleContext, mesh: Mesh
) -> mlir.LoweringRuleContext:
    """The context as custom_partitioning wants it: with the devices of the mesh.

    JAX provides them to primitives that it has in a private list. A partition depends
    on their number alone.
    """
    module = context.module_context
    axis_context: Any = module.axis_context
    axes = dataclasses.replace(axis_context, device_assignment=tuple(mesh.devices.flat))
    with_devices: mlir.LoweringRuleContext = context.replace(
        module_context=module.replace(axis_context=axes)
    )
    return with_devices


def _proposed(
    division: Division, mesh: Mapping[str, int], specs: Sequence[PartitionSpec]
) -> dict[str, Names]:
    """The mesh axes of each dimension that XLA proposes and that can be divided.

    The specs are those of the outputs and then of the operands.
    """
    axes: dict[str, Names] = {}
    lines = division.layout.outputs + division.layout.operands
    for spec, names in zip(specs, lines, strict=True):
        for name, over in _divided(spec, names):
            taken = {axis for used in axes.values() for axis in used}
            fits = division.divides(_parts(mesh, over), name)
            if name not in axes and taken.isdisjoint(over) and fits:
                axes[name] = over
    return axes


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


def is_whole(sharding: NamedSharding) -> bool:
    """Whether a type says that every device has all of an array."""
    divided = any(entry not in (None, ()) for entry in sharding.spec)
    types = sharding.mesh.axis_types
    return bool(types) and AxisType.Auto not in types and not divided


def over_explicit_mesh(
    operator: str,
    mesh: AbstractMesh,
    division: Division,
    operands: Sequence[jax.Array],
) -> Outputs:
    """The outputs, made by each device of its part of what is sharded explicitly."""
    layout, sizes = division.layout, dict(mesh.shape)
    axes = _declared(operator, division, operands)
    for output, names in zip(division.outputs, layout.outputs, strict=True):
        _check_even(operator, output, [axes.get(name, ()) for name in names], sizes)
    specs = _specs(layout.operands, axes)
    mapped = jax.shard_map(
        division.shard(sizes, axes),
        mesh=mesh,
        in_specs=tuple(specs),
        out_specs=tuple(_specs(layout.outputs, axes)),
        axis_names={axis for over in axes.values() for axis in over},
    )
    placed = (
        jax.reshard(operand, NamedSharding(mesh, spec))
        for operand, spec in zip(operands, specs, strict=True)
    )
    outputs: Outputs = mapped(*placed)
    return outputs


def _declared(
    operator: str, division: Division, operands: Sequence[jax.Array]
) -> dict[str, Names]:
    """The mesh axes of each dimension, as the operands' types have them."""
    axes: dict[str, Names] = {}
    for operand, names in zip(operands, division.layout.operands, strict=True):
        spec = jax.typeof(operand).sharding.spec
        for name, over in _divided(spec, names):
            require(
                operator,
                name not in division.layout.whole,
                f"an operand of sizes {show(operand.shape)} is sharded over the mesh "
                f"axes {show(over)} along dimension {names.index(name)}, along which "
                "it must be whole; use jax.reshard first.",
            )
            axes.setdefault(name, over)
            others = {axis for other in axes if other != name for axis in axes[other]}
            require(
                operator,
                axes[name] == over and others.isdisjoint(over),
                f"an operand of sizes {show(operand.shape)} is sharded as {spec}, "
                "while another operand is sharded in a way that does not go with it; "
                "use jax.reshard to make them alike.",
            )
    return axes


def _check_even(
    operator: str, output: Sizes, axes: Sequence[Names], mesh: Mapping[str, int]
) -> None:
    """Explicit shardings know no part that is smaller than the others."""
    for i, (size, over) in enumerate(zip(output, axes, strict=True)):
        parts = _parts(mesh, over)
        require(
            operator,
            size % parts == 0,
            f"the output has sizes {show(output)}, and {parts} devices can't share "
            f"the {size} elements along dimension {i} equally. The mesh axes are "
            f"explicit ({show(over)}), so that they must: choose other sizes, or use "
            "jax.reshard to make the input whole along this dimension.",
        )
