"""What the compiler for TPUs says of the kernels and of XLA's forms, without a TPU.

    python -m benchmarks.tpu                  adds to benchmarks/results/tpu.jsonl
    python -m benchmarks.tpu --only padding   the operators whose name begins so
    python -m benchmarks.tpu --page           writes docs/background/tpu_estimates.md

It needs libtpu, of the version that `pip install "jax[tpu]"` brings. Nothing runs: the
figures are estimates, of the memory that a program moves and of the cycles that the
compiler has scheduled.
"""

import argparse
import contextlib
import dataclasses
import functools
import importlib.metadata
import math
import os
import pathlib
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
from jax.experimental import topologies
from jax.sharding import SingleDeviceSharding

import dmljax
from benchmarks import ledger
from benchmarks.run import named
from dmljax import PaddingMode

Struct = jax.ShapeDtypeStruct
TYPES = ("float32", "bfloat16", "int8")
FORMS = ("xla", "pallas")
# Where there is no TPU, the compiler must be told that there is none to ask; and that
# it is not alone, if it is not.
ENVIRONMENT = {
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_WORKER_HOSTNAMES": "localhost",
}


@dataclasses.dataclass(frozen=True)
class Chip:
    """A TPU, by what its maker publishes.

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


@dataclasses.dataclass(frozen=True)
class Case:
    """A use of an operator.

    Attributes:
      operator: under what name the default looks it up.
      name: the sizes and attributes.
      function: `(*arrays, implementation)`.
      arrays: what it takes; the last has the type that is moved.
      context: "alone", or "pipeline" between two elementwise operations.
    """

    operator: str
    name: str
    function: Callable[..., Any]
    arrays: tuple[Struct, ...]
    context: str = "alone"

    def form(self, implementation: str) -> Callable[..., Any]:
        """The program, by one of the forms."""
        call = functools.partial(self.function, implementation=implementation)
        if self.context == "alone":
            return call

        def between(*arrays: jax.Array) -> Any:
            *others, last = arrays
            one = np.ones((), last.dtype)
            return jax.tree.map(lambda y: y + y, call(*others, last + one))

        return between


def cases() -> Iterator[Case]:
    """All cases, alone and in a pipeline."""
    for dtype in TYPES:
        for case in (*_selects(dtype), *_paddings(dtype), *_nonzeros(dtype)):
            yield case
            yield dataclasses.replace(case, context="pipeline")


def _selects(dtype: str) -> Iterator[Case]:
    x = Struct((4096, 4096), dtype)
    yield Case(
        "element_wise_if",
        f"{dtype} {x.shape}",
        dmljax.element_wise_if,
        (Struct(x.shape, np.uint8), x, x),
    )
    yield Case(
        "diagonal_matrix1",
        f"{dtype} {x.shape}",
        lambda x, implementation: dmljax.diagonal_matrix1(
            x, value=0, implementation=implementation
        ),
        (x,),
    )
    for axis, shape in ((-1, (65536, 1)), (1, (64, 1, 1024))):
        yield Case(
            "one_hot",
            f"{dtype} {shape}, size 256, axis {axis}",
            functools.partial(dmljax.one_hot, size=256, axis=axis),
            (Struct(shape, np.int32), Struct((2,), dtype)),
        )


IMAGES = (16, 64, 128, 128)
MATRICES = (64, 512, 512)
# What is padded and by how much, and in which modes.
ALL = tuple(PaddingMode)
MOST = (PaddingMode.CONSTANT, PaddingMode.REFLECTION)
PADDINGS = (
    (MATRICES, (3, 0, 0), MOST),
    (MATRICES, (0, 3, 0), ALL),
    (MATRICES, (0, 0, 3), MOST),
    (MATRICES, (0, 8, 128), MOST[1:]),
    ((16, 128, 128, 128), (0, 3, 3, 0), MOST[1:]),
    (IMAGES, (0, 0, 3, 3), MOST),
    ((256, 1024), (100, 0), MOST[1:]),
    ((64, 512, 4), (0, 0, 1000), MOST[1:]),
)


def _paddings(dtype: str) -> Iterator[Case]:
    for shape, pads, modes in PADDINGS:
        for mode in modes:
            constant = mode is PaddingMode.CONSTANT
            yield Case(
                "padding constant" if constant else "padding",
                f"{dtype} {shape} by {pads}, {mode.name.lower()}",
                functools.partial(_pad, pads, mode),
                (Struct(shape, dtype),),
            )


def _pad(
    pads: tuple[int, ...], mode: PaddingMode, x: jax.Array, implementation: Any
) -> jax.Array:
    return dmljax.padding(x, pads, pads, mode=mode, implementation=implementation)


def _nonzeros(dtype: str) -> Iterator[Case]:
    for shape in ((2**16,), (1024, 1024)):
        function = dmljax.nonzero_coordinates
        name = f"{dtype} {shape}"
        yield Case("nonzero_coordinates", name, function, (Struct(shape, dtype),))


# WHAT THE COMPILER SAYS


@contextlib.contextmanager
def schedules() -> Iterator[pathlib.Path]:
    """Has the compiler, before it is loaded, write its schedules to a folder."""
    with tempfile.TemporaryDirectory(prefix="schedules") as folder:
        os.environ["LIBTPU_INIT_ARGS"] = (
            f"--xla_jf_dump_to={folder} --xla_jf_dump_llo_text=true"
        )
        yield pathlib.Path(folder)


@functools.cache
def devices(chip: str) -> list[jax.Device]:
    """Chips that can be compiled for."""
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
    """The most bytes of vector memory that an operation of the program has."""
    sizes = re.findall(
        r'used_scoped_memory_configs":\[\{"memory_space":"1","offset":"0","size":"(\d+)',
        program.as_text(),
    )
    return max(map(int, sizes), default=0)


def cycles(schedule: str) -> int:
    """The bundles of instructions that are issued, one a cycle.

    A bundle counts as often as the loops around it go round; where the schedule does
    not say how often, once.
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
        empty = line.split("{", 1)[1].startswith("}")  # has no marks of its loops
        depth = len(loops) - 1 if empty else len(bundle[2])
        close(depth if bundle[1] == "LB" else depth + 1)
        loops += [Loop() for _ in range(depth + 1 - len(loops))]
        loops[-1].bundles += 1
        # An outer loop's test may stand among the bundles of an inner one's end.
        for test in re.finditer(r"scmp\.ge\.s32[^;]*, (\d+) /\* loop exit test", line):
            tested = [loop for loop in loops if loop.rounds is None]
            if tested:
                tested[-1].rounds = int(test[1])
    close(1)
    return loops[0].bundles


@dataclasses.dataclass
class Loop:
    """Of a loop, the bundles of a round and how many rounds there are, if known."""

    bundles: int = 0
    rounds: int | None = None


def _settled(folder: pathlib.Path) -> list[pathlib.Path]:
    """The files in a folder, once no more are written: the compiler goes on a while."""
    before, now = None, _files(folder)
    while before != now:
        time.sleep(0.3)
        before, now = now, _files(folder)
    return list(now)


def _files(folder: pathlib.Path) -> dict[pathlib.Path, int]:
    return {path: path.stat().st_size for path in folder.iterdir()}


def figures(case: Case, form: str, chip: str, folder: pathlib.Path) -> ledger.Line:
    """A line of the ledger."""
    for path in _settled(folder):
        path.unlink()
    program = compiled(case.form(form), chip, *case.arrays)
    moved = float(program.cost_analysis()["bytes accessed"])
    issued = sum(
        cycles(path.read_text())
        for path in _settled(folder)
        if path.name.endswith("-final_bundles.txt")
        and not re.search(r"-(TLP|<late-\w+>)-|schedule-analysis", path.name)
    )
    seconds = moved / CHIPS[chip].bandwidth, issued / CHIPS[chip].clock
    outputs = jax.tree.leaves(jax.eval_shape(case.form(form), *case.arrays))
    return {
        "operator": case.operator,
        "case": f"{chip} {case.name}",
        "direction": "forward",
        "context": case.context,
        "contender": f"dmljax, {form}",
        "dtype": np.dtype(case.arrays[-1].dtype).name,
        "elements": max(math.prod(x.shape) for x in (*case.arrays, *outputs)),
        "bytes": int(moved),
        "cycles": issued,
        "vmem": vector_memory(program),
        "temporary": program.memory_analysis().temp_size_in_bytes,
        "estimated_ms": float(f"{1e3 * max(seconds):.4g}"),
        "jax": jax.__version__,
        "libtpu": importlib.metadata.version("libtpu"),
    }


DOCS = pathlib.Path(__file__).parent.parent / "docs"
PAGE = DOCS / "background" / "tpu_estimates.md"
MARK = "<!-- python -m benchmarks.tpu --page writes what follows. -->\n"


def page(text: str, lines: list[ledger.Line]) -> str:
    """The page with the figures of the ledger."""
    return text[: text.index(MARK) + len(MARK)] + "\n" + table(lines)


def table(lines: list[ledger.Line]) -> str:
    """The newest figures, XLA's form before the kernel: a table for each operator.

    The vector memory has no column: with six columns, words break on a phone.
    """
    tables: dict[str, list[str]] = {}
    for (operator, case, _, context), row in ledger.newest(lines).items():
        forms = [row[f"dmljax, {form}"] for form in FORMS]
        columns = [
            " / ".join(f"{form[key] / unit:{shown}}" for form in forms)
            for key, unit, shown in (
                ("bytes", 1e6, ".1f"),
                ("cycles", 1e3, ".0f"),
                ("estimated_ms", 1, ".3g"),
            )
        ]
        ratio = forms[1]["estimated_ms"] / forms[0]["estimated_ms"]
        cells = [f"{case}, {context}", *columns, f"{ratio:.2f}"]
        head = [
            f"## {operator}",
            "",
            "| call | MB moved | 1000 cycles | estimated ms | ratio |",
            "|---|---|---|---|---|",
        ]
        tables.setdefault(operator, head).append(f"| {' | '.join(cells)} |")
    return "\n\n".join("\n".join(rows) for rows in tables.values()) + "\n"


def main() -> None:
    """Writes the ledger."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=pathlib.Path, default=ledger.path("TPU"))
    parser.add_argument("--only", default="", help="text in an operator's name")
    parser.add_argument("--page", action="store_true")
    arguments = parser.parse_args()
    if arguments.page:
        PAGE.write_text(page(PAGE.read_text(), ledger.read(arguments.out)))
        return
    chosen = named(tuple(cases()), arguments.only, lambda case: case.operator)
    with schedules() as folder:
        for chip in CHIPS:
            for case in chosen:
                for form in FORMS:
                    line = figures(case, form, chip, folder)
                    ledger.append(arguments.out, [line])
                    print(*(line[key] for key in list(line)[:11]), line["estimated_ms"])


if __name__ == "__main__":
    main()
