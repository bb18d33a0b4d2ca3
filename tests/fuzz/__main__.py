"""Runs the fuzzer for some minutes. The exit status is 1 if anything failed."""

import argparse
import collections
import contextlib
import math
import os
import pathlib
import random
import resource
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from tests import compiling

os.environ["XLA_FLAGS"] = compiling.flags(os.environ.get("XLA_FLAGS", ""))
# Several processes share a GPU.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import numpy as np

import dmljax
from dmljax._check import ModelError, NoKernelError
from dmljax._model import output, parse
from dmljax._model import run as _model
from dmljax._model.format import Model, Print
from dmljax._primitive import OperatorPrimitive
from tests.fuzz import damage, expected
from tests.fuzz.descriptors import Maker, changed
from tests.fuzz.rules import accepts

# How many programs we compile at once. One by one they take far longer.
BATCH = 100
# Ten descriptors are checked for each that runs.
CHECKS = 10
SLOWEST = 2.0  # seconds that a check may take
LARGEST = 2**30  # bytes of memory that it may add
MOST_OF_MODEL = 2**24  # elements
# The oracles are loops in Python, so larger tensors are not compared.
MOST_ELEMENTS = 4096
COUNTS = ("descriptors checked", "run", "files read", "models run", "failures")


class Report:
    """Counts what happened, and keeps each failure in a small file."""

    def __init__(self, seed: int, folder: pathlib.Path) -> None:
        self.seed = seed
        self.folder = folder
        self.counts: collections.Counter[str] = collections.Counter()
        self.slowest = 0.0

    def fail(self, what: str, content: Any) -> None:
        """Keeps a failure in a file: a line about what is wrong, then its cause."""
        self.counts["failures"] += 1
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{self.seed}_{self.counts['failures']}.txt"
        content = content if isinstance(content, bytes) else repr(content).encode()
        path.write_bytes(what.encode("utf-8", "replace") + b"\n" + content)
        print(f"FAILED: {what.strip().splitlines()[-1][:200]} ({path})", flush=True)

    def raised(self, content: Any) -> None:
        """Keeps the exception that is handled. It should not have been raised."""
        self.fail(traceback.format_exc(limit=-3), content)

    @contextlib.contextmanager
    def check(self, count: str, content: Any) -> Iterator[None]:
        """Counts a check. It must be quick and small, and must raise no error."""
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start = time.process_time()  # whatever else the machine does
        try:
            yield
        except Exception:
            self.raised(content)
        seconds = time.process_time() - start
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        self.counts[count] += 1
        self.slowest = max(self.slowest, seconds)
        if seconds > SLOWEST or grown * 1024 > LARGEST:
            self.fail(f"{seconds:.1f} s and {grown} KiB for a check", content)

    def row(self) -> str:
        """A row of the table of docs/development/reliability.md."""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        counts = (str(self.counts[name]) for name in COUNTS)
        cells = [str(self.seed), *counts, f"{self.slowest:.3f}", f"{peak:.2f}"]
        return f"| {' | '.join(cells)} |"


class Case(NamedTuple):
    """What is run beside others."""

    count: str  # what it counts as
    content: Any  # what is kept if it raises an error
    run: Callable[..., Any]
    arrays: Any
    compare: Callable[[Any], None]


def run_together(cases: Sequence[Case], report: Report) -> None:
    """Runs all cases by one program; or if it fails, each by a program of its own."""

    def program(arrays: list[Any]) -> list[Any]:
        return [case.run(own) for case, own in zip(cases, arrays, strict=True)]

    try:
        results = jax.device_get(jax.jit(program)([case.arrays for case in cases]))
    except Exception as error:
        if len(cases) > 1:
            for case in cases:
                run_together([case], report)
        elif not isinstance(error, NoKernelError):
            report.raised(cases[0].content)
        return
    for case, result in zip(cases, results, strict=True):
        report.counts[case.count] += 1
        case.compare(result)


class Fuzzer:
    """Makes descriptors and model files, and compares what comes of them."""

    def __init__(self, seed: int, report: Report) -> None:
        self.maker = Maker(random.Random(seed))
        self.generator = np.random.default_rng(seed)
        self.report = report

    def descriptors(self) -> None:
        """Checks descriptors, and runs one in ten."""
        found = [self._checked() for _ in range(CHECKS * BATCH)]
        run_together([self._run(desc) for desc in found if desc][:BATCH], self.report)

    def _checked(self) -> dmljax.OperatorDesc | None:
        """Makes a descriptor, and checks it. Returns one that can run."""
        desc = self.maker.desc()
        level = self.maker.level()
        with contextlib.suppress(dmljax.DescriptorError, TypeError):
            for _ in range(self.maker.random.choice((0, 0, 1, 1, 2))):
                desc = changed(self.maker, desc)
        accepted = False
        with self.report.check("descriptors checked", desc):
            try:
                dmljax.create_operator(desc, feature_level=level)
                accepted = True
            except (dmljax.DescriptorError, TypeError) as error:
                if not str(error).startswith(f"{desc.operator}: "):
                    raise
        if accepts(desc, level) != accepted:
            self.report.fail(f"accepted: {accepted}, at {level!r}", desc)
        tensors = desc.tensors().values() if accepted else ()
        sizes = [max(t.buffer_length, math.prod(t.sizes)) for t in tensors]
        newest = level == max(dmljax.FeatureLevel)
        return desc if newest and sizes and max(sizes) <= MOST_ELEMENTS else None

    def _run(self, desc: dmljax.OperatorDesc) -> Case:
        arrays = expected.random_inputs(self.generator, desc)
        operator = dmljax.create_operator(desc)

        def compare(result: Any) -> None:
            outputs = jax.tree.leaves(result)
            wanted = expected.outputs(desc, arrays)
            if not all(map(expected.same_bits, outputs, wanted)):
                given = [array.tobytes().hex() for array in arrays]
                kept = (desc, given, outputs)
                self.report.fail(f"{desc.operator} differs from the oracle", kept)

        return Case("run", (desc, arrays), lambda own: operator(*own), arrays, compare)

    def models(self) -> None:
        """Damages model files, and runs those that are accepted."""
        cases: list[Case] = []
        for number in range(BATCH):
            if not number or self.maker.random.random() < 0.1:
                source = damage.base_model(self.maker)
            text = damage.damaged(self.maker.random, source)
            with self.report.check("files read", text):
                try:
                    model = parse.parse_model(text, max_elements=MOST_OF_MODEL)
                except ModelError as error:
                    if not str(error).isprintable() or len(str(error)) > 600:
                        raise
                    continue
                if _is_small(model):
                    cases.append(self._run_model(model, text))
        run_together(cases, self.report)

    def _run_model(self, model: Model, text: bytes) -> Case:
        def compare(versions: Any) -> None:
            result = _model.results_of(model, versions)
            given = {n: np.asarray(v).tobytes() for n, v in result.resources.items()}
            if given != damage.final_bytes(model):
                self.report.fail("a model differs from the oracle", text)
            # What is shown is made in full. No file is written.
            for command, values in zip(model.outputs, result.snapshots, strict=True):
                if isinstance(command, Print):
                    "".join(output.text_of(command.resource, values))
                else:
                    command.output.encode(values)

        state = _model.initial_state(model)
        return Case("models run", text, _model.program(model), state, compare)


def _is_small(model: Model) -> bool:
    elements = sum(r.content.size for r in model.resources.values())
    for command in model.dispatches:
        for tensor in command.desc.tensors().values():
            elements += max(tensor.extent, math.prod(tensor.sizes))
    return elements <= MOST_ELEMENTS * 4 and len(model.dispatches) < 20


def use_form(form: str) -> None:
    """Makes the operators that have a kernel run in this form where they may choose."""
    call = OperatorPrimitive.__call__

    def chosen(self: Any, *operands: Any, implementation: Any = None, **static: Any):
        wanted = form if self.kernels else None
        return call(self, *operands, implementation=implementation or wanted, **static)

    OperatorPrimitive.__call__ = chosen


def main(argv: Sequence[str] | None = None) -> int:
    """Fuzzes as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--device", default="cpu", help="cpu, gpu or tpu")
    parser.add_argument("--only", choices=("descriptors", "models"))
    parser.add_argument("--form", choices=("xla", "pallas"), help="where both exist")
    parser.add_argument("--seed", type=int, help="another one each time if absent")
    parser.add_argument("--keep", type=pathlib.Path, default="build/fuzz")
    arguments = parser.parse_args(argv)
    seed = arguments.seed if arguments.seed is not None else time.time_ns() % 10**9
    print(f"seed {seed}", flush=True)
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_default_device", jax.devices(arguments.device)[0])
    if arguments.form:
        use_form(arguments.form)
    report = Report(seed, arguments.keep.absolute())
    fuzzer = Fuzzer(seed, report)
    kinds = {"descriptors": fuzzer.descriptors, "models": fuzzer.models}
    chosen = [kinds[arguments.only]] if arguments.only else kinds.values()
    end = time.monotonic() + 60 * arguments.minutes
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # the files that models write go there
        while True:
            for batch in chosen:
                batch()
            jax.clear_caches()
            if time.monotonic() >= end:
                break
    print(f"| seed | {' | '.join(COUNTS)} | slowest s | GiB |\n{report.row()}")
    return int(report.counts["failures"] > 0)


if __name__ == "__main__":
    sys.exit(main())
