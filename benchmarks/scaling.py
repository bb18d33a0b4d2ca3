"""Times work on 1, 2, 4, .. devices, and writes the figures to the ledger.

    python -m benchmarks.scaling                    on all devices of this machine
    python -m benchmarks.scaling --only "beside jax.numpy"    some programs
    python -m benchmarks.scaling --elements 262144  small arrays: a quick test
    python -m benchmarks.scaling --sent             only the bytes that devices send

For example, two GPUs with an efficiency of 0.5 in weak scaling take twice as long as
one GPU takes for half of the work: the second GPU gains nothing. In weak scaling, each
device has as much work as the single device; in strong scaling, all devices share the
work of the single device. The efficiency is the time of one device over the time of
several, in strong scaling divided by their number: the part of their speed that is
left.

We time operators by the clock of the slowest device of several, with the waiting in
collectives; wall is the host's time for a call, of many that are queued. We time
programs beside jax.numpy by the host's clock, and all numbers of devices and both
libraries take turns. Where the devices take much less, the host is slow to start a
program on several. jax.numpy can't pad a divided axis that is explicit, and has no
figure there.

We first compare every program with that of one device, or with jax.numpy's. We read the
bytes that each device sends off the compiled program. `--sent` prints them, for CPUs
with XLA_FLAGS=--xla_force_host_platform_device_count=16.

With automatic axes, XLA may divide another form than one device runs. Then a second
efficiency compares with one device in the same form.
"""

import dataclasses
import functools
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
from benchmarks.divided import BESIDE_JNP, WORK, Work
from benchmarks.libraries import ALL, Prepared
from benchmarks.timing import (
    Timing,
    has_clock,
    in_rounds,
    traced_by_device,
    wall_times,
)

# The elements of an array on one device: 1 GiB of float32 on a GPU.
ELEMENTS = {"cpu": 2**20, "gpu": 2**28}
CHECKED = {"cpu": 2**18, "gpu": 2**25}  # the elements of the arrays that we compare
# A program that we time in turns has CALLS in flight, and a SHARE of the elements: on a
# GPU, as many as the programs of `benchmarks.run`.
CALLS, SHARE = 10, 4


def main(argv: Sequence[str] | None = None) -> int:
    """Times all work on every number of devices."""
    own = "--elements", "--rounds", "--sent"
    options = parsed(argv, "benchmarks.scaling", __doc__, *own)
    chosen = named((*WORK, *BESIDE_JNP), options.only, lambda work: work.label)
    elements = options.elements or ELEMENTS[jax.default_backend()]
    if options.sent:
        print_sent([work for work in chosen if work in WORK], elements)
        return 0
    ledger.ready(options.out)
    name = device_name(jax.devices()[0])
    run = circumstances(options, name, {"dmljax": ALL["dmljax"]})
    failed = 0
    for work in chosen:
        timed = lines_in_turns if work.timed_in_turns else lines
        print(work.label, flush=True)
        try:
            found = list(timed(work, elements, options.rounds))
        except Exception as error:
            # We go on: machines with several GPUs are rare.
            print(f"  fails: {type(error).__name__}: {error}", flush=True)
            failed += 1
            continue
        ledger.write(table_of(name), run, found, options.out)
        for line in found:
            clock = "wall_ms" if work.timed_in_turns else "ms"
            print(f"  {explained(line, found, clock)}", flush=True)
    return min(failed, 1)


def explained(line: ledger.Line, others: Sequence[ledger.Line], clock: str) -> str:
    """The text of a figure, and its meaning for a reader with as many devices."""
    taken = line[clock]
    contender, scaling = line["contender"], line["context"].split()[0]
    text = f"{scaling} scaling, {contender}: {taken:.4g} ms"
    if clock == "wall_ms" and line["ms"]:
        text += f" ({line['ms']:.4g} on the devices)"
    count = devices_in(contender)
    if count > 1:
        efficiency = line["efficiency"]
        if scaling == "weak":
            text += f"; {count} times the work in {1 / efficiency:.2f} times the time"
        else:
            text += f"; the same work {count * efficiency:.2f} times as fast"
        text += f", efficiency {efficiency:.2f}"
        if line["efficiency_of_form"] != efficiency:
            text += f" ({line['efficiency_of_form']:.2f} beside one with this form)"
        text += f"; each device sends {show_bytes(line['sent'])}"
    if not contender.startswith("jnp"):
        for other in others:
            if other["contender"] == f"jnp, {contender}":
                text += f"; {taken / other[clock]:.2f} of jax.numpy's time"
    return text


def devices_in(contender: str) -> int:
    """The number in the name of a contender."""
    return int(contender.split()[-2])


def table_of(device: str) -> str:
    """The name of the ledger's table of several devices of a kind."""
    return f"{device} scaling"


def counts() -> list[int]:
    """The numbers of devices: 1, 2, 4, .."""
    return [2**i for i in range(len(jax.devices()).bit_length())]


def print_sent(chosen: Sequence[Work], elements: int) -> None:
    """Prints the bytes that each device sends in weak scaling, as a table."""
    several = counts()[1:]
    print(f"| work | axes | {' | '.join(map(str, several))} |")
    print("|---" * (2 + len(several)) + "|")
    for work in chosen:
        sizes = (sent_by(work, jax.devices()[:n], elements * n) for n in several)
        print(f"| {work.title} | {work.axes} | {' | '.join(sizes)} |")


def sent_by(work: Work, devices: Sequence[jax.Device], elements: int) -> str:
    """The bytes that each of these devices sends, as text."""
    program, _ = compiled(work, devices, elements)
    return show_bytes(sent(program.as_text(), len(devices)))


def lines(work: Work, elements: int, rounds: int) -> Iterator[ledger.Line]:
    """The rows of a piece of work, by the devices' clocks."""
    expected = results(work, 1)
    for devices in counts()[1:]:
        check(work, devices, expected)
    single = of_form = None
    if work.divided:
        form = dataclasses.replace(work, function=work.divided)
        of_form = _timed(form, 1, elements, rounds)[0].median
    # On one device, weak and strong scaling have the same work.
    timed = functools.cache(functools.partial(_timed, work, rounds=rounds))
    for scaling in ("weak", "strong"):
        for devices in counts():
            total = elements * (devices if scaling == "weak" else 1)
            taken, wall, size = timed(devices, total)
            part = taken.median * (1 if scaling == "weak" else devices)
            single = single or taken.median
            of_form = of_form or single
            yield {
                **case_of(work, elements, scaling),
                "contender": words_for(devices),
                **taken.columns("ms"),
                "wall_ms": wall,
                "launches": taken.launches,
                "efficiency": single / part,
                "efficiency_of_form": of_form / part,
                "sent": size,
            }


def lines_in_turns(work: Work, elements: int, rounds: int) -> Iterator[ledger.Line]:
    """The rows of a program and of its twin in weak scaling, by the host's clock."""
    elements //= SHARE
    contenders = {"": work}
    if work.twin:
        contenders["jnp, "] = dataclasses.replace(work, function=work.twin)
    *_, other = contenders.values()
    expected = results(other, 1)
    for devices in counts():
        check(work, devices, expected)
    calls: dict[str, Prepared] = {}
    sizes: dict[str, int] = {}
    for devices in counts():
        arrays: list[jax.Array] = []
        for prefix, one in contenders.items():
            first = jax.devices()[:devices]
            program, structs = compiled(one, first, elements * devices)
            arrays = arrays or made(structs)
            name = prefix + words_for(devices)
            run = functools.partial(program, *arrays)
            jax.block_until_ready(run())  # the first collective makes its channels
            calls[name] = Prepared(run, jax.block_until_ready)
            sizes[name] = sent(program.as_text(), devices)
    timings = wall_times(calls, rounds=rounds, repeats=CALLS)
    on_devices = {}
    if has_clock():
        on_devices = {
            name: by_slowest(call, devices_in(name), rounds)
            for name, call in calls.items()
        }
    for prefix in contenders:
        single = timings[prefix + words_for(1)].median
        for devices in counts():
            name = prefix + words_for(devices)
            efficiency = single / timings[name].median
            yield {
                **case_of(work, elements, "weak"),
                "contender": name,
                **(on_devices[name].columns("ms") if on_devices else {"ms": None}),
                **timings[name].columns("wall_ms"),
                "efficiency": efficiency,
                "efficiency_of_form": efficiency,
                "sent": sizes[name],
            }


def case_of(work: Work, elements: int, scaling: str) -> ledger.Line:
    """The columns of a case."""
    return {
        "operator": work.operator,
        "name": work.case,
        "direction": work.direction,
        "context": f"{scaling} scaling, {work.axes} axes",
        "elements": elements,
    }


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


def _ready(work: Work, devices: int, elements: int) -> tuple[Any, list[jax.Array]]:
    """The program for the first devices, and its arrays."""
    program, structs = compiled(work, jax.devices()[:devices], elements)
    return program, made(structs)


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


def results(work: Work, devices: int) -> list[np.ndarray]:
    """The results of a program for this number of devices, from small arrays."""
    program, arrays = _ready(work, devices, CHECKED[jax.default_backend()])
    return [np.asarray(output) for output in jax.tree.leaves(program(*arrays))]


def check(work: Work, devices: int, expected: Sequence[np.ndarray]) -> None:
    """Compares the results of several devices with the results of one."""
    for one, other in zip(results(work, devices), expected, strict=True):
        assert other.any()
        # NumPy's assert_allclose takes ten times as long.
        if not np.array_equal(one, other):
            atol = work.atol and work.atol * float(np.abs(other).max())
            np.testing.assert_allclose(one, other, rtol=work.rtol, atol=atol)


def _timed(
    work: Work, devices: int, elements: int, rounds: int
) -> tuple[Timing, float, int]:
    """A call's time on the slowest device, the host's milliseconds, and bytes sent."""
    program, arrays = _ready(work, devices, elements)
    size = sent(program.as_text(), devices)
    jax.block_until_ready(program(*arrays))
    call = Prepared(functools.partial(program, *arrays), jax.block_until_ready)
    start = time.perf_counter()
    queue(call, rounds)
    wall = (time.perf_counter() - start) / rounds * 1e3
    if not has_clock():
        return Timing((wall,)), wall, size
    return by_slowest(call, devices, rounds), wall, size


def queue(call: Prepared, rounds: int) -> None:
    """Queues all calls, and waits for the results of the last."""
    for _ in range(rounds):
        outputs = call.run()
    call.wait(outputs)


def by_slowest(call: Prepared, devices: int, rounds: int) -> Timing:
    """A call's time on the slowest of its devices."""
    traced = traced_by_device(functools.partial(queue, call, rounds))
    times = [device for device in traced if device]
    if len(times) != devices or any(len(device) % rounds for device in times):
        events = [len(device) for device in times]
        raise RuntimeError(f"{devices} GPUs have {events} events in {rounds} calls")
    found = [in_rounds([event.ms for event in device], rounds) for device in times]
    longest = np.max([one.times for one in found], axis=0)
    return Timing(tuple(longest.tolist()), found[0].launches)


if __name__ == "__main__":
    sys.exit(main())
