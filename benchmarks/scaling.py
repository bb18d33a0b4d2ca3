"""Times programs on 1, 2, 4, .. devices, and writes the figures to the ledger.

    python -m benchmarks.scaling                    on all devices of this machine
    python -m benchmarks.scaling --only padding     some programs
    python -m benchmarks.scaling --elements 262144  small arrays: a quick test

Each device has as much work as the single device. The efficiency is the time of one
device divided by that of several: two GPUs with an efficiency of 0.5 take twice as long
as one GPU takes for half of the work, and the second GPU gains nothing.

All numbers of devices, and jax.numpy's twins, take turns, by the host's clock. We first
compare the results with those of the twin.
"""

import dataclasses
import functools
import re
import sys
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, SingleDeviceSharding

from benchmarks import ledger
from benchmarks.command import circumstances, device_name, named, parsed
from benchmarks.data import Data
from benchmarks.divided import WORK, Work
from benchmarks.libraries import ALL, Prepared
from benchmarks.run import Sample, compare, sample
from benchmarks.timing import columns, wall_times

# The elements of an array on one device: as many as the programs of `benchmarks.run`.
ELEMENTS = {"cpu": 2**20, "gpu": 2**26}
CALLS = 10  # in flight


def main(argv: Sequence[str] | None = None) -> int:
    """Times all work on every number of devices."""
    options = parsed(argv, "benchmarks.scaling", __doc__, "--elements", "--rounds")
    chosen = named(WORK, options.only)
    elements = options.elements or ELEMENTS[jax.default_backend()]
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
            failed = 1
            continue
        ledger.write(f"{name} scaling", run, found, options.out)
        for line in found:
            times = f"{line['wall_ms']:.4g} ms, efficiency {line['efficiency']:.2f}"
            print(f"  {line['contender']}: {times}", flush=True)
    return failed


def counts() -> list[int]:
    """The numbers of devices: 1, 2, 4, .."""
    return [2**i for i in range(len(jax.devices()).bit_length())]


def lines(work: Work, elements: int, rounds: int) -> list[ledger.Line]:
    """The rows of a program and of its twin."""
    contenders = {"": work}
    if work.twin:
        contenders["jnp, "] = dataclasses.replace(work, function=work.twin)
    calls: dict[str, Prepared] = {}
    for devices in counts():
        arrays: list[jax.Array] = []
        samples: list[Sample] = []
        for prefix, one in contenders.items():
            first = jax.devices()[:devices]
            program, structs = compiled(one, first, elements * devices)
            arrays = arrays or made(structs)
            run = functools.partial(program, *arrays)
            alone = SingleDeviceSharding(first[0])
            outputs = jax.device_put(jax.tree.leaves(run()), alone)
            if prefix:
                compare(samples, outputs, ALL["jnp"], work.rtol)
            samples = [sample(output, ALL["jnp"]) for output in outputs]
            prepared = Prepared(run, jax.block_until_ready)
            calls[prefix + words_for(devices)] = prepared
    timings = wall_times(calls, rounds=rounds, repeats=CALLS)
    return [
        {
            "operator": work.operator,
            "name": work.case,
            "direction": "gradient" if work.gradient else "forward",
            "context": f"weak scaling, {work.axes} axes",
            "elements": elements,
            "contender": name,
            **columns("wall_ms", times),
            "efficiency": float(
                np.median(timings[re.sub(r"\d+ devices", "1 device", name)])
                / np.median(times)
            ),
        }
        for name, times in timings.items()
    ]


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
    """Arrays on their devices; a tenth of each is not zero."""
    found = []
    for seed, like in enumerate(structs):
        data = Data(like.shape, like.dtype.name, density=0.1, seed=seed)
        found.append(jax.device_put(data.array(), like.sharding))
    return found


if __name__ == "__main__":
    sys.exit(main())
