"""Times programs on 1, 2, 4, .. devices, and writes the figures to the ledger.

    python -m benchmarks.scaling                    on all devices of this machine
    python -m benchmarks.scaling --only padding     some programs
    python -m benchmarks.scaling --elements 262144  small arrays: a quick test
    python -m benchmarks.scaling --sent             only the bytes that devices send

Each device has as much work as the single device. The efficiency is the time of one
device divided by that of several: two GPUs with an efficiency of 0.5 take twice as long
as one GPU takes for half of the work, and the second GPU gains nothing.

All numbers of devices, and jax.numpy's twins, take turns, by the host's clock. We first
compare the results with those of the twin. We read the bytes that each device sends off
the compiled program. `--sent` prints them, for CPUs with
XLA_FLAGS=--xla_force_host_platform_device_count=16.
"""

import dataclasses
import functools
import sys
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, SingleDeviceSharding

from benchmarks import ledger
from benchmarks.collectives import sent, show_bytes
from benchmarks.command import circumstances, device_name, named, parsed
from benchmarks.divided import WORK, Work
from benchmarks.libraries import ALL, Prepared
from benchmarks.run import Sample, compare, sample
from benchmarks.timing import wall_times

# The elements of an array on one device: as many as the programs of `benchmarks.run`.
ELEMENTS = {"cpu": 2**20, "gpu": 2**26}
CALLS = 10  # in flight


def main(argv: Sequence[str] | None = None) -> int:
    """Times all work on every number of devices."""
    own = "--elements", "--rounds", "--sent"
    options = parsed(argv, "benchmarks.scaling", __doc__, *own)
    chosen = named(WORK, options.only, lambda work: work.label)
    elements = options.elements or ELEMENTS[jax.default_backend()]
    if options.sent:
        for work in chosen:
            sizes = (sent_by(work, jax.devices()[:n], elements * n) for n in counts())
            print(f"| {work.title} | {work.axes} | {' | '.join(sizes)} |")
        return 0
    ledger.ready(options.out)
    name = device_name(jax.devices()[0])
    run = circumstances(options, name, {"dmljax": ALL["dmljax"]})
    failed = 0
    for work in chosen:
        print(work.label, flush=True)
        try:
            found = lines(work, elements, options.rounds)
        except Exception as error:
            # We go on: machines with several GPUs are rare.
            print(f"  fails: {type(error).__name__}: {error}", flush=True)
            failed += 1
            continue
        ledger.write(f"{name} scaling", run, found, options.out)
        for line in found:
            times = f"{line['wall_ms']:.4g} ms, efficiency {line['efficiency']:.2f}"
            size = show_bytes(line["sent"])
            print(f"  {line['contender']}: {times}, each sends {size}", flush=True)
    return min(failed, 1)


def counts() -> list[int]:
    """The numbers of devices: 1, 2, 4, .."""
    return [2**i for i in range(len(jax.devices()).bit_length())]


def sent_by(work: Work, devices: Sequence[jax.Device], elements: int) -> str:
    """The bytes that each of these devices sends, as text."""
    program, _ = compiled(work, devices, elements)
    return show_bytes(sent(program.as_text(), len(devices)))


def lines(work: Work, elements: int, rounds: int) -> list[ledger.Line]:
    """The rows of a program and of its twin."""
    contenders = {"": work}
    if work.twin:
        contenders["jnp, "] = dataclasses.replace(work, function=work.twin)
    alone = SingleDeviceSharding(jax.devices()[0])
    calls: dict[tuple[str, int], Prepared] = {}
    sizes: dict[tuple[str, int], int] = {}
    for devices in counts():
        arrays: list[jax.Array] = []
        samples: list[Sample] = []
        for prefix, one in contenders.items():
            first = jax.devices()[:devices]
            program, structs = compiled(one, first, elements * devices)
            arrays = arrays or made(structs)
            run = functools.partial(program, *arrays)
            outputs = jax.device_put(jax.tree.leaves(run()), alone)
            if prefix:
                compare(samples, outputs, ALL["jnp"], work.rtol)
            samples = [sample(output, ALL["jnp"]) for output in outputs]
            calls[prefix, devices] = Prepared(run, jax.block_until_ready)
            sizes[prefix, devices] = sent(program.as_text(), devices)
    by_name = {f"{p}{words_for(n)}": call for (p, n), call in calls.items()}
    timings = wall_times(by_name, rounds=rounds, repeats=CALLS)
    found = []
    for prefix, devices in calls:
        name = prefix + words_for(devices)
        line: ledger.Line = {
            "operator": work.operator,
            "name": work.case,
            "direction": work.direction,
            "context": f"weak scaling, {work.axes} axes",
            "elements": elements,
            "contender": name,
            **timings[name].columns("wall_ms"),
        }
        single = timings[prefix + words_for(1)].median
        line["efficiency"] = single / timings[name].median
        line["sent"] = sizes[prefix, devices]
        found.append(line)
    return found


def words_for(devices: int) -> str:
    """A number of devices, in words."""
    return "1 device" if devices == 1 else f"{devices} devices"


def compiled(
    work: Work, devices: Sequence[jax.Device], elements: int
) -> tuple[Any, list[jax.ShapeDtypeStruct]]:
    """The program for these devices, and the types of its arrays."""
    mesh = Mesh(np.array(devices), ("d",), axis_types=(work.kind,))
    structs = work.structs(elements, mesh)
    return jax.jit(work.run).lower(*structs).compile(), structs


def made(structs: Sequence[jax.ShapeDtypeStruct]) -> list[jax.Array]:
    """Arrays, made where they lie; a tenth of each is not zero."""
    found = []
    for seed, like in enumerate(structs):
        make = _maker(like.shape, like.dtype, like.sharding)
        found.append(make(np.uint32(seed)))
    return found


@functools.cache
def _maker(shape: tuple[int, ...], dtype: Any, sharding: Any) -> Any:
    """A program that makes such arrays from a seed; we compile it once."""

    def make(seed: jax.Array) -> jax.Array:
        number = jnp.full(shape, seed, np.uint32)
        for axis in range(len(shape)):
            line = jax.lax.broadcasted_iota(np.uint32, shape, axis)
            number = (number ^ line) * np.uint32(2654435761)
        digit = (number >> np.uint32(7)) % np.uint32(10)
        return jnp.where(digit == 0, number >> np.uint32(24) | 1, 0).astype(dtype)

    return jax.jit(make, out_shardings=sharding)


if __name__ == "__main__":
    sys.exit(main())
