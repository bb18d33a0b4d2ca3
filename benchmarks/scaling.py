"""Times one program over 1, 2, 4, .. devices, and writes the figures to the ledger.

    python -m benchmarks.scaling                    on all devices of this machine
    python -m benchmarks.scaling --elements 4096    small arrays: a quick test

Weak: each device has as much as the one; strong: all share what the one has. The
efficiency is the time of one device over that of several, in strong scaling divided by
their number. A time on GPUs is that of what one call launches, on the device that takes
longest, waiting in collectives included; wall is the host's time for a call, of many
that are queued. Every program is first compared with that of one device.

With automatic axes, XLA may divide another form than one device runs. Then there is a
second efficiency: that beside one device which runs the same form.
"""

import dataclasses
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import dmljax
from benchmarks import ledger
from benchmarks.command import circumstances, device_name, named, parsed
from benchmarks.libraries import ALL
from benchmarks.timing import Timing, has_clock, in_rounds, traced_by_device
from dmljax._operators import OPERATORS

# Of an array on one device: 1 GiB of float32 on a GPU.
ELEMENTS = {"cpu": 2**20, "gpu": 2**28}
COLUMNS, DEPTH, IMAGE = 512, 128, (4, 64, 64)
CHECKED = 2**17  # elements of the arrays that are compared
PARTS = 64  # of rows that stay where they are, a multiple of the devices
ROWS = 8  # of padding above and below, so that up to 16 devices share them evenly
REFLECTION = dmljax.PaddingMode.REFLECTION


@dataclasses.dataclass(frozen=True)
class Work:
    """One operator on arrays whose first dimension is divided.

    If the first dimension of an array has size 1, every device has a copy of the array.

    Attributes:
      operator: its name.
      case: what is done, in words.
      function: of the arrays.
      shapes: of the arrays, given the number of elements.
      dtypes: theirs.
      gradient: whether the way back is timed, in the last array.
      divided: what several devices run with automatic axes, if one device runs another
        form by default.
      kind: of the mesh axis.
    """

    operator: str
    case: str
    function: Callable[..., Any]
    shapes: Callable[[int], Sequence[tuple[int, ...]]]
    dtypes: Sequence[str]
    gradient: bool = False
    divided: Callable[..., Any] | None = None
    kind: AxisType = AxisType.Auto

    @property
    def axes(self) -> str:
        """The kind of the mesh axis, in words."""
        return f"{'explicit' if self.kind == AxisType.Explicit else 'automatic'} axes"

    @property
    def direction(self) -> str:
        """As in the ledger of one device."""
        return "gradient" if self.gradient else "forward"

    @property
    def label(self) -> str:
        """What tells it from all others."""
        return f"{self.operator} {self.case} {self.direction}, {self.axes}"

    def run(self, *operands: jax.Array) -> Any:
        """What is timed; a gradient's last operand is the cotangent."""
        if not self.gradient:
            return self.function(*operands)
        *first, last, cotangent = operands
        return jax.vjp(lambda x: self.function(*first, x), last)[1](cotangent)[0]

    def arrays(self, elements: int, sharding: NamedSharding) -> list[jax.Array]:
        """Made where they lie, a tenth of them not zero."""
        shapes, dtypes = list(self.shapes(elements)), list(self.dtypes)
        if self.gradient:
            inputs = map(jax.ShapeDtypeStruct, shapes, dtypes)
            shapes.append(jax.eval_shape(self.function, *inputs).shape)
            dtypes.append(dtypes[-1])
        copied = NamedSharding(sharding.mesh, PartitionSpec())

        def array(seed: int, shape: tuple[int, ...], dtype: str) -> jax.Array:
            placed = copied if shape[0] == 1 else sharding
            make = jax.jit(_made, static_argnums=(0, 1, 2), out_shardings=placed)
            made: jax.Array = make(seed, shape, dtype)
            return made

        return list(map(array, range(len(shapes)), shapes, dtypes))


def _made(seed: int, shape: tuple[int, ...], dtype: str) -> jax.Array:
    number = jnp.full(shape, seed, np.uint32)
    for axis in range(len(shape)):
        line = jax.lax.broadcasted_iota(np.uint32, shape, axis)
        number = (number ^ line) * np.uint32(2654435761)
    digit = (number >> np.uint32(7)) % np.uint32(10)
    return jnp.where(digit == 0, number >> np.uint32(24) | 1, 0).astype(dtype)


def _matrix(elements: int) -> tuple[int, int]:
    return elements // COLUMNS, COLUMNS


def _strips(x: jax.Array) -> Any:
    static = {"start": (3, 3), "end": (3, 3), "mode": REFLECTION}
    return _divisible("padding")(x, **static)


def _in_parts_by_divisible(x: jax.Array) -> Any:
    first = jnp.arange(PARTS, dtype=np.uint32)[:, None] * np.uint32(x.size // PARTS)
    static = {"rank": 1, "size": None, "columns": 1, "fill": 0}
    return _divisible("nonzero_coordinates")(x.reshape(PARTS, -1), first, **static)


def _divisible(operator: str) -> Callable[..., Any]:
    form = OPERATORS[operator].primitive.divisible
    assert form is not None
    return form


def _with_gradient(work: Work) -> tuple[Work, Work]:
    # The gradient has one form on all platforms that scale.
    return work, dataclasses.replace(work, gradient=True, divided=None)


def _explicit(work: Work) -> Work:
    return dataclasses.replace(work, divided=None, kind=AxisType.Explicit)


FLOAT, ON = ("float32",), np.array([[0, 1]], np.float32)
IMAGES = Work(
    *("padding", "REFLECTION 3 of float32 images, batch divided"),
    lambda x: dmljax.padding(x, (0, 0, 3, 3), (0, 0, 3, 3), mode=REFLECTION),
    *(lambda n: [(n // math.prod(IMAGE), *IMAGE)], FLOAT),
    divided=_strips,
)
HALO = Work(
    *("padding", f"REFLECTION {ROWS} of float32, the padded rows divided"),
    lambda x: dmljax.padding(x, (ROWS, 0), (ROWS, 0), mode=REFLECTION),
    *(lambda n: [_matrix(n)], FLOAT),
)
IN_PARTS = Work(
    *("nonzero_coordinates", "float32, 10 % non-zero, in parts"),
    lambda x: dmljax.nonzero_coordinates(x, parts=PARTS),
    *(lambda n: [(n,)], FLOAT),
    divided=_in_parts_by_divisible,
)
SELECT = Work(
    *("element_wise_if", "float32", dmljax.element_wise_if),
    *(lambda n: [_matrix(n)] * 3, ("uint8", *FLOAT, *FLOAT)),
)
TRIANGLE = Work(
    *("diagonal_matrix1", "strictly upper triangle, float32, rows divided"),
    lambda x: dmljax.diagonal_matrix1(x, value=0, fill_begin=-(2**31), fill_end=1),
    *(lambda n: [_matrix(n)], FLOAT),
)
ONE_HOT = Work(
    *("one_hot", f"of {DEPTH}, float32"),
    lambda indices, off_on: dmljax.one_hot(indices, off_on + ON, size=DEPTH),
    *(lambda n: [(n // DEPTH, 1), (1, 2)], ("int32", *FLOAT)),
)
WORK = (
    *_with_gradient(SELECT),
    *_with_gradient(TRIANGLE),
    *_with_gradient(ONE_HOT),
    *_with_gradient(IMAGES),
    *map(_explicit, _with_gradient(IMAGES)),
    *_with_gradient(HALO),
    *map(_explicit, _with_gradient(HALO)),
    IN_PARTS,
    _explicit(IN_PARTS),
    Work(
        "nonzero_coordinates",
        "float32, 10 % non-zero, as a whole",
        *(dmljax.nonzero_coordinates, lambda n: [(n,)], FLOAT),
    ),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Times all work on every number of devices."""
    options = parsed(argv, "benchmarks.scaling", __doc__, "--elements", "--rounds")
    chosen = named(WORK, options.only, lambda work: work.label)
    ledger.ready(options.out)
    elements = options.elements or ELEMENTS[jax.default_backend()]
    name = device_name(jax.devices()[0])
    run = circumstances(options, name, {"dmljax": ALL["dmljax"]})
    for work in chosen:
        for line in lines(work, elements, options.rounds):
            ledger.write(table_of(name), run, [line], options.out)
            columns = ("contender", "ms", "wall_ms", "efficiency", "efficiency_of_form")
            print(work.label, line["context"], *(line[column] for column in columns))
    return 0


def table_of(device: str) -> str:
    """The name of the ledger's table of several devices of a kind."""
    return f"{device} scaling"


def lines(work: Work, elements: int, rounds: int) -> Iterator[ledger.Line]:
    """The lines of one kind of work."""
    counts = [2**i for i in range(len(jax.devices()).bit_length())]
    expected = results(work, 1, CHECKED)
    for devices in counts:
        for one, other in zip(results(work, devices, CHECKED), expected, strict=True):
            np.testing.assert_array_equal(one, other)
    single = of_form = None
    if work.divided:
        form = dataclasses.replace(work, function=work.divided)
        of_form = _timed(form, 1, elements, rounds)[0].median
    for scaling in ("weak", "strong"):
        for devices in counts:
            total = elements * (devices if scaling == "weak" else 1)
            taken, wall = _timed(work, devices, total, rounds)
            part = taken.median * (1 if scaling == "weak" else devices)
            single = single or taken.median
            of_form = of_form or single
            yield {
                "operator": work.operator,
                "name": work.case,
                "direction": work.direction,
                "context": f"{scaling} scaling, {work.axes}",
                "elements": elements,
                "contender": f"{devices} device{'s' if devices > 1 else ''}",
                **taken.columns("ms"),
                "wall_ms": wall,
                "launches": taken.launches,
                "efficiency": round(single / part, 3),
                "efficiency_of_form": round(of_form / part, 3),
            }


def _compiled(work: Work, devices: int, elements: int) -> tuple[Any, list[jax.Array]]:
    """The program for so many devices, and its arrays."""
    chosen = jax.devices()[:devices]
    mesh = jax.make_mesh((devices,), ("d",), axis_types=(work.kind,), devices=chosen)
    arrays = work.arrays(elements, NamedSharding(mesh, PartitionSpec("d")))
    return jax.jit(work.run).lower(*arrays).compile(), arrays


def results(work: Work, devices: int, elements: int) -> list[np.ndarray]:
    """What a program for so many devices computes."""
    program, arrays = _compiled(work, devices, elements)
    return [np.asarray(output) for output in jax.tree.leaves(program(*arrays))]


def _timed(
    work: Work, devices: int, elements: int, rounds: int
) -> tuple[Timing, float]:
    """What a call takes on the slowest device, and the host's milliseconds."""
    program, arrays = _compiled(work, devices, elements)
    jax.block_until_ready(program(*arrays))

    def run() -> None:
        """Queues all calls; the results of the last are waited for."""
        for _ in range(rounds):
            outputs = program(*arrays)
        jax.block_until_ready(outputs)

    start = time.perf_counter()
    run()
    wall = (time.perf_counter() - start) / rounds * 1e3
    if not has_clock():
        return Timing((wall,)), wall
    times = [device for device in traced_by_device(run) if device]
    if len(times) != devices or any(len(device) % rounds for device in times):
        events = [len(device) for device in times]
        raise RuntimeError(f"{devices} GPUs have {events} events in {rounds} calls")
    found = [in_rounds([event.ms for event in device], rounds) for device in times]
    longest = np.max([one.times for one in found], axis=0)
    return Timing(tuple(longest.tolist()), found[0].launches), wall


if __name__ == "__main__":
    sys.exit(main())
