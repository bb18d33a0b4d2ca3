"""Times one program over 1, 2, 4, .. devices, and writes the figures to the ledger.

    python -m benchmarks.scaling                    on all devices of this machine
    python -m benchmarks.scaling --elements 262144  small arrays: a quick test
    python -m benchmarks.scaling --sent             what devices send; nothing is timed

In weak scaling, each device has as much as the one; in strong scaling, all share what
the one has. The efficiency is the time of one device over that of several, in strong
scaling divided by their number. On GPUs, we time what one call launches, on the slowest
device and with the waiting in collectives; wall is the host's time for a call, of many
that are queued. We first compare every program with that of one device. We read the
bytes that each device sends off the compiled program. `--sent` prints them, for CPUs
with XLA_FLAGS=--xla_force_host_platform_device_count=16.

With automatic axes, XLA may divide another form than one device runs. Then a second
efficiency compares with one device that runs the same form.
"""

import dataclasses
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from benchmarks import ledger
from benchmarks.collectives import sent, show_bytes
from benchmarks.command import circumstances, device_name, named, parsed
from benchmarks.divided import WORK, Work
from benchmarks.libraries import ALL
from benchmarks.timing import Timing, has_clock, in_rounds, traced_by_device

# Of an array on one device: 1 GiB of float32 on a GPU.
ELEMENTS = {"cpu": 2**20, "gpu": 2**28}
CHECKED = {"cpu": 2**18, "gpu": 2**24}  # elements of the arrays that are compared


def main(argv: Sequence[str] | None = None) -> int:
    """Times all work on every number of devices."""
    own = "--elements", "--rounds", "--sent"
    options = parsed(argv, "benchmarks.scaling", __doc__, *own)
    chosen = named(WORK, options.only, lambda work: work.label)
    elements = options.elements or ELEMENTS[jax.default_backend()]
    if options.sent:
        print_sent(chosen, elements)
        return 0
    ledger.ready(options.out)
    name = device_name(jax.devices()[0])
    run = circumstances(options, name, {"dmljax": ALL["dmljax"]})
    columns = ("contender", "ms", "wall_ms", "efficiency", "efficiency_of_form", "sent")
    for work in chosen:
        for line in lines(work, elements, options.rounds):
            ledger.write(table_of(name), run, [line], options.out)
            print(work.label, line["context"], *(line[column] for column in columns))
    return 0


def table_of(device: str) -> str:
    """The name of the ledger's table of several devices of a kind."""
    return f"{device} scaling"


def counts() -> list[int]:
    """The numbers of devices: 1, 2, 4, .."""
    return [2**i for i in range(len(jax.devices()).bit_length())]


def print_sent(chosen: Sequence[Work], elements: int) -> None:
    """Prints a table: what each device sends, if each has as much as the one."""
    several = counts()[1:]
    print(f"| work | axes | {' | '.join(map(str, several))} |")
    print("|---" * (2 + len(several)) + "|")
    for work in chosen:
        sizes = (sent_by(work, jax.devices()[:n], elements * n) for n in several)
        print(f"| {work.title} | {work.axes} | {' | '.join(sizes)} |")


def sent_by(work: Work, devices: Sequence[jax.Device], elements: int) -> str:
    """The bytes that each of these devices sends."""
    program, _ = compiled(work, devices, elements)
    return show_bytes(sent(program.as_text(), len(devices)))


def lines(work: Work, elements: int, rounds: int) -> Iterator[ledger.Line]:
    """The rows of one kind of work."""
    expected = results(work, 1)
    for devices in counts()[1:]:
        check(work, devices, expected)
    single = of_form = None
    if work.divided:
        form = dataclasses.replace(work, function=work.divided)
        of_form = _timed(form, 1, elements, rounds)[0].median
    for scaling in ("weak", "strong"):
        for devices in counts():
            total = elements * (devices if scaling == "weak" else 1)
            taken, wall, size = _timed(work, devices, total, rounds)
            part = taken.median * (1 if scaling == "weak" else devices)
            single = single or taken.median
            of_form = of_form or single
            yield {
                "operator": work.operator,
                "name": work.case,
                "direction": work.direction,
                "context": f"{scaling} scaling, {work.axes} axes",
                "elements": elements,
                "contender": f"{devices} device{'s' if devices > 1 else ''}",
                **taken.columns("ms"),
                "wall_ms": wall,
                "launches": taken.launches,
                "efficiency": round(single / part, 3),
                "efficiency_of_form": round(of_form / part, 3),
                "sent": size,
            }


def compiled(
    work: Work, devices: Sequence[jax.Device], elements: int
) -> tuple[Any, list[jax.ShapeDtypeStruct]]:
    """The program for these devices, and what it takes."""
    mesh = Mesh(np.array(devices), ("d",), axis_types=(work.kind,))
    structs = work.structs(elements, mesh)
    return jax.jit(work.run).lower(*structs).compile(), structs


def _ready(work: Work, devices: int, elements: int) -> tuple[Any, list[jax.Array]]:
    """The program for the first devices, and its arrays."""
    program, structs = compiled(work, jax.devices()[:devices], elements)
    return program, list(map(_made, range(len(structs)), structs))


def _made(seed: int, like: jax.ShapeDtypeStruct) -> jax.Array:
    """An array that is made where it lies, a tenth of it not zero."""

    def make() -> jax.Array:
        number = jnp.full(like.shape, seed, np.uint32)
        for axis in range(len(like.shape)):
            line = jax.lax.broadcasted_iota(np.uint32, like.shape, axis)
            number = (number ^ line) * np.uint32(2654435761)
        digit = (number >> np.uint32(7)) % np.uint32(10)
        return jnp.where(digit == 0, number >> np.uint32(24) | 1, 0).astype(like.dtype)

    made: jax.Array = jax.jit(make, out_shardings=like.sharding)()
    return made


def results(work: Work, devices: int) -> list[np.ndarray]:
    """The results of a program for this number of devices, from small arrays."""
    program, arrays = _ready(work, devices, CHECKED[jax.default_backend()])
    return [np.asarray(output) for output in jax.tree.leaves(program(*arrays))]


def check(work: Work, devices: int, expected: Sequence[np.ndarray]) -> None:
    """Compares a program for several devices with the results of one."""
    for one, other in zip(results(work, devices), expected, strict=True):
        assert other.any()
        np.testing.assert_allclose(one, other, rtol=work.rtol)


def _timed(
    work: Work, devices: int, elements: int, rounds: int
) -> tuple[Timing, float, int]:
    """A call's time on the slowest device, the host's milliseconds, and bytes sent."""
    program, arrays = _ready(work, devices, elements)
    size = sent(program.as_text(), devices)
    jax.block_until_ready(program(*arrays))

    def run() -> None:
        """Queues all calls, and waits for the results of the last."""
        for _ in range(rounds):
            outputs = program(*arrays)
        jax.block_until_ready(outputs)

    start = time.perf_counter()
    run()
    wall = (time.perf_counter() - start) / rounds * 1e3
    if not has_clock():
        return Timing((wall,)), wall, size
    times = [device for device in traced_by_device(run) if device]
    if len(times) != devices or any(len(device) % rounds for device in times):
        events = [len(device) for device in times]
        raise RuntimeError(f"{devices} GPUs have {events} events in {rounds} calls")
    found = [in_rounds([event.ms for event in device], rounds) for device in times]
    longest = np.max([one.times for one in found], axis=0)
    return Timing(tuple(longest.tolist()), found[0].launches), wall, size


if __name__ == "__main__":
    sys.exit(main())
