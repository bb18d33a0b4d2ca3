"""Estimates for TPUs, of dmljax and of jax.numpy, by the compiler and without a TPU.

    python -m benchmarks.tpu                  estimates all cases, for the ledger
    python -m benchmarks.tpu --only padding   the cases with this in their text

It needs libtpu, of the version that `pip install "jax[tpu]"` brings. Nothing runs: the
figures are the compiler's estimates of the memory that a program moves, and of the
cycles in its schedules.
"""

import contextlib
import dataclasses
import functools
import importlib.metadata
import os
import pathlib
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import topologies
from jax.sharding import SingleDeviceSharding

import dmljax
from benchmarks import ledger
from benchmarks.case import Case
from benchmarks.cases import nonzero
from benchmarks.command import circumstances, named, parsed
from benchmarks.data import Data
from benchmarks.forms import replaced, with_plain
from benchmarks.libraries import ALL
from benchmarks.oracles import Sample
from dmljax import PaddingMode

Struct = jax.ShapeDtypeStruct
TYPES = ("float32", "bfloat16", "int8")
# The compiler reads these: there is no TPU to ask, and other processes may have loaded
# the compiler.
ENVIRONMENT = {
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_WORKER_HOSTNAMES": "localhost",
}


@dataclasses.dataclass(frozen=True)
class Chip:
    """A TPU, as its maker describes it.

    Attributes:
      topology: its name for the compiler.
      bandwidth: of the memory, bytes a second.
      clock: cycles a second, from the published operations a second.
    """

    topology: str
    bandwidth: float
    clock: float


CHIPS = {
    "v5e": Chip("v5e:2x2", 819e9, 1.5e9),
    "v6e": Chip("v6e:2x2", 1640e9, 1.75e9),
}
CHIP = "v5e"  # the chip of the ledger's estimates

SQUARE = (4096, 4096)
MATRICES = (64, 512, 512)
CLASSES = 256
REFLECTION = PaddingMode.REFLECTION
# The arrays, and their padding on both sides of each axis: all types in the default
# mode, and float32 in more modes.
PADDINGS = {
    MATRICES: (0, 3, 3),
    (16, 64, 128, 128): (0, 0, 3, 3),
    (16, 128, 128, 64): (0, 1, 1, 0),
}
OF_FLOAT32 = (
    *((MATRICES, (0, 3, 3), mode) for mode in PaddingMode if mode != REFLECTION),
    (MATRICES, (3, 0, 0), REFLECTION),
    (MATRICES, (0, 8, 128), REFLECTION),
    ((256, 1024), (100, 0), REFLECTION),
    ((64, 512, 4), (0, 0, 1000), REFLECTION),
)
# A gather of these takes minutes to compile.
TOO_LONG = ("int8", (16, 64, 128, 128))


def cases() -> Iterator[Case]:
    """All cases, by themselves and between two operations."""
    for dtype in TYPES:
        for make in (_selects, _one_hots, _paddings, _nonzeros):
            for operator, name, inputs, output, functions in make(dtype):
                about = (operator, name, inputs, output)
                between = {}
                for contender, function in functions.items():
                    between[contender] = functools.partial(_between, function)
                alone = Case(*about, functions, _unknown, context="operator")
                pipeline = Case(*about, between, _unknown, context="pipeline")
                for case in (alone, pipeline):
                    too_long = (dtype, inputs[0].shape) == TOO_LONG
                    yield case if too_long else with_plain(case, "tpu")


def _unknown(*arrays: Any) -> list[Sample]:
    raise AssertionError("nothing runs")


def _between(function: Callable[..., Any], *arrays: Any) -> Any:
    *others, last = arrays
    results = function(*others, last + np.ones((), last.dtype))
    return jax.tree.map(lambda y: y + y, results)


def _selects(dtype: str) -> Iterator[tuple[Any, ...]]:
    x, flags = Data(SQUARE, dtype), Data(SQUARE, "uint8")
    where = {"dmljax": dmljax.element_wise_if, "jnp": jnp.where}
    yield "element_wise_if", f"{dtype} {SQUARE}", (flags, x, x), x, where
    triangles = {
        "dmljax": lambda x: dmljax.diagonal_matrix1(
            x, value=0, fill_begin=None, fill_end=1
        ),
        "jnp": lambda x: jnp.triu(x, 1),
    }
    yield "diagonal_matrix1", f"strict triangle, {dtype} {SQUARE}", (x,), x, triangles


def _one_hots(dtype: str) -> Iterator[tuple[Any, ...]]:
    functions = {
        "dmljax": lambda i, values: dmljax.one_hot(
            i[:, None], values, size=CLASSES, axis=1
        ),
        "jnp": lambda i, values: jnp.where(
            jax.nn.one_hot(i, CLASSES, dtype=bool, axis=1), values[1], values[0]
        ),
    }
    for shape in ((65536,), (64, 1024)):
        inputs = Data(shape, "int32"), Data((2,), dtype)
        output = Data((shape[0], CLASSES, *shape[1:]), dtype)
        yield "one_hot", f"{dtype} {output.shape}", inputs, output, functions


def _paddings(dtype: str) -> Iterator[tuple[Any, ...]]:
    every = [(shape, pads, REFLECTION) for shape, pads in PADDINGS.items()]
    for shape, pads, mode in (*every, *(OF_FLOAT32 if dtype == "float32" else ())):
        around = [(pad, pad) for pad in pads]
        sizes = tuple(n + 2 * pad for n, pad in zip(shape, pads, strict=True))
        name = "reflect" if mode is REFLECTION else mode.name.lower()
        functions = {
            "dmljax": functools.partial(_padding, pads=pads, mode=mode),
            "jnp": functools.partial(jnp.pad, pad_width=around, mode=name),
        }
        words = f"{mode.name} {pads} of {dtype} {shape}"
        x = Data(shape, dtype)
        yield "padding", words, (x,), Data(sizes, dtype), functions


def _padding(x: jax.Array, pads: tuple[int, ...], mode: PaddingMode) -> jax.Array:
    return dmljax.padding(x, pads, pads, mode=mode)


def _nonzeros(dtype: str) -> Iterator[tuple[Any, ...]]:
    for shape in ((2**14,), (2**16,), (1024, 1024)):
        case = nonzero(shape, dtype, 0.1)
        names = ("dmljax", "dmljax pallas", "jnp")
        functions = {name: case.functions[name] for name in names}
        yield case.operator, f"{dtype} {shape}", case.inputs, case.output, functions


# THE COMPILER'S OUTPUT


@contextlib.contextmanager
def schedules() -> Iterator[pathlib.Path]:
    """Makes the compiler, before it is loaded, write its schedules to a folder."""
    with tempfile.TemporaryDirectory(prefix="schedules") as folder:
        os.environ["LIBTPU_INIT_ARGS"] = (
            f"--xla_jf_dump_to={folder} --xla_jf_dump_llo_text=true"
        )
        yield pathlib.Path(folder)


@functools.cache
def devices(chip: str) -> list[jax.Device]:
    """Chips to compile for."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    topology = topologies.get_topology_desc(
        platform="tpu", topology_name=CHIPS[chip].topology
    )
    return list(topology.devices)


def compiled(function: Callable[..., Any], chip: str, *arrays: Struct) -> Any:
    """The program for one chip."""
    one = SingleDeviceSharding(devices(chip)[0])
    placed = [Struct(x.shape, x.dtype, sharding=one) for x in arrays]
    return jax.jit(function).lower(*placed).compile()


def vector_memory(program: Any) -> int:
    """The most bytes of vector memory in one operation of the program."""
    sizes = re.findall(
        r'used_scoped_memory_configs":\[\{"memory_space":"1","offset":"0","size":"(\d+)',
        program.as_text(),
    )
    return max(map(int, sizes), default=0)


def cycles(schedule: str) -> int:
    """The number of instruction bundles that the chip issues, one a cycle.

    A bundle counts as often as the loops around it run; once, if the schedule does not
    say how often.
    """
    loops: list[Loop] = [Loop(rounds=1)]

    def close(depth: int) -> None:
        while len(loops) > depth:
            inner = loops.pop()
            loops[-1].bundles += inner.bundles * (inner.rounds or 1)

    for line in schedule.splitlines():
        bundle = re.match(r" *0x\w+ *(L[HBE])?: (>*) ?\{", line)
        if not bundle:
            continue
        empty = line.split("{", 1)[1].startswith("}")  # no marks of its loops
        depth = len(loops) - 1 if empty else len(bundle[2])
        close(depth if bundle[1] == "LB" else depth + 1)
        loops += [Loop() for _ in range(depth + 1 - len(loops))]
        loops[-1].bundles += 1
        # An outer loop's test may stand among the bundles at an inner loop's end.
        for test in re.finditer(r"scmp\.ge\.s32[^;]*, (\d+) /\* loop exit test", line):
            tested = [loop for loop in loops if loop.rounds is None]
            if tested:
                tested[-1].rounds = int(test[1])
    close(1)
    return loops[0].bundles


@dataclasses.dataclass
class Loop:
    """A loop: the bundles of a round, and how many rounds there are, if known."""

    bundles: int = 0
    rounds: int | None = None


def _settled(folder: pathlib.Path) -> list[pathlib.Path]:
    """The files in a folder, once no more are written: the compiler goes on a while."""
    before = None
    now = _files(folder)
    while before != now:
        time.sleep(0.3)
        before, now = now, _files(folder)
    return list(now)


def _files(folder: pathlib.Path) -> dict[pathlib.Path, int]:
    return {path: path.stat().st_size for path in folder.iterdir()}


def figures(case: Case, contender: str, chip: str, folder: pathlib.Path) -> ledger.Line:
    """A row of the ledger."""
    for path in _settled(folder):
        path.unlink()
    arrays = [Struct(data.shape, data.dtype) for data in case.inputs]
    with replaced(contender):
        program = compiled(case.functions[contender], chip, *arrays)
    moved = float(program.cost_analysis()["bytes accessed"])
    issued = sum(
        cycles(path.read_text())
        for path in _settled(folder)
        if path.name.endswith("-final_bundles.txt")
        and not re.search(r"-(TLP|<late-\w+>)-|schedule-analysis", path.name)
    )
    seconds = moved / CHIPS[chip].bandwidth, issued / CHIPS[chip].clock
    return {column: getattr(case, column) for column in ledger.CASE} | {
        "name": f"{chip} {case.name}",
        "contender": contender,
        "moved_mb": moved / 1e6,
        "cycles": issued,
        "vmem": vector_memory(program),
        "temporary": program.memory_analysis().temp_size_in_bytes,
        "estimated_ms": 1e3 * max(seconds),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Writes the estimates to the ledger."""
    options = parsed(argv, "benchmarks.tpu", __doc__)
    every = []
    for case in cases():
        for name in case.functions:
            every.append((case, name))
    chosen = named(every, options.only, lambda pair: f"{pair[0].label} {pair[1]}")
    ledger.ready(options.out)
    with schedules() as folder:
        libtpu = {"libtpu": importlib.metadata.version("libtpu")}
        run = circumstances(options, "TPU", {"dmljax": ALL["dmljax"]}) | libtpu
        for case, contender in chosen:
            line = figures(case, contender, CHIP, folder)
            ledger.write("TPU", run, [line], options.out)
            print(CHIP, case.label, contender, line["cycles"], line["estimated_ms"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
