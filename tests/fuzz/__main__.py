"""Runs the fuzzer for some minutes. The exit status is 1 if anything failed."""

import argparse
import collections
import contextlib
import io
import itertools
import os
import pathlib
import random
import resource
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from typing import Any

from tests import compiling

os.environ["XLA_FLAGS"] = compiling.flags(os.environ.get("XLA_FLAGS", ""))

import jax
import numpy as np

import dmljax
from dmljax._check import ModelError, NoKernelError
from dmljax._model import parse as _model_parse
from dmljax._model import run as _model
from dmljax._model.format import Model
from dmljax._primitive import OperatorPrimitive
from tests.fuzz import damage, expected
from tests.fuzz.descriptors import Maker, broken, supported

# One compilation has so many programs: compiling each by itself takes far longer.
BATCH = 100
# The seconds that reading a file may take, and the bytes of memory that it may add.
SLOWEST, LARGEST = 2.0, 2**30
# The oracles are loops in Python, so larger tensors are not compared.
MOST_ELEMENTS = 4096


class Report:
    """Counts what happened, and keeps each failure in a small file."""

    def __init__(self, seed: int, folder: pathlib.Path) -> None:
        self.seed, self.folder = seed, folder
        self.counts: collections.Counter[str] = collections.Counter()
        self.failures = 0
        self.slowest = 0.0

    def fail(self, what: str, content: str | bytes) -> None:
        """Keeps a failure in a file: a line about what is wrong, then its cause."""
        self.failures += 1
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{self.seed}_{self.failures}.txt"
        content = content.encode() if isinstance(content, str) else content
        path.write_bytes(what.encode("utf-8", "replace") + b"\n" + content)
        print(f"FAILED: {what.strip().splitlines()[-1][:200]} ({path})", flush=True)

    def raised(self, content: str | bytes) -> None:
        """Keeps the exception that is handled, which should not have been raised."""
        self.fail(traceback.format_exc(limit=-3), content)

    def show(self, seconds: float) -> None:
        """Prints the counts."""
        for name, count in sorted(self.counts.items()):
            print(f"{count:9} {name}")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"{self.failures:9} failures, kept in {self.folder}")
        print(
            f"seed {self.seed}: {seconds:.0f} s, a file at most {self.slowest:.3f} s, "
            f"{peak:.2f} GiB at most"
        )


# Descriptors


class DescriptorFuzzer:
    """Runs random descriptors in batches, and compares them with the oracles."""

    def __init__(self, seed: int, report: Report) -> None:
        self.maker = Maker(random.Random(seed))
        self.generator = np.random.default_rng(seed)
        self.report = report

    def batch(self) -> None:
        """Makes the descriptors of one program, and runs them."""
        cases: list[tuple[dmljax.OperatorDesc, list[np.ndarray]]] = []
        while len(cases) < BATCH:
            desc = self.maker.desc()
            kind = self.maker.random.random()
            if kind < 0.15:
                self._must_refuse(broken(self.maker, desc))
                continue
            if kind < 0.25:
                desc = self._damaged(desc)
            else:
                self._check_level(desc)
            if desc is not None:
                cases.append((desc, expected.random_inputs(self.generator, desc)))
        self._run(cases)

    def _check_level(self, desc: dmljax.OperatorDesc) -> None:
        """Checks that a descriptor is accepted exactly where the pages support it."""
        level = self.maker.level()
        try:
            dmljax.create_operator(desc, feature_level=level)
            accepted = True
        except dmljax.DescriptorError:
            accepted = False
        self.report.counts["valid descriptors checked at a level"] += 1
        if accepted != supported(desc, level):
            self.report.fail(f"accepted: {accepted}, at {level!r}", repr(desc))

    def _must_refuse(self, desc: dmljax.OperatorDesc) -> None:
        self.report.counts["broken descriptors refused"] += 1
        try:
            dmljax.create_operator(desc)
            self.report.fail("a broken descriptor is accepted", repr(desc))
        except Exception as error:
            ours = isinstance(error, (dmljax.DescriptorError, TypeError))
            if not (ours and str(error).startswith(f"{desc.operator}: ")):
                self.report.raised(repr(desc))

    def _damaged(self, desc: dmljax.OperatorDesc) -> dmljax.OperatorDesc | None:
        """Damages the JSON of a descriptor; None if it is then refused, or large."""
        fields, choose = {"desc": desc.to_json()["desc"]}, self.maker.random
        choose.choice(damage.STRUCTURAL)(choose, fields)
        try:
            found = type(desc).from_json(fields.get("desc"))
            dmljax.create_operator(found)
        except dmljax.DescriptorError:
            self.report.counts["damaged descriptors refused"] += 1
            return None
        except Exception:
            self.report.raised(repr(fields))
            return None
        tensors = found.tensors().values()
        if max(max(t.buffer_length, np.prod(t.sizes)) for t in tensors) > MOST_ELEMENTS:
            self.report.counts["large descriptors accepted, not run"] += 1
            return None
        return found

    def _run(
        self, cases: Sequence[tuple[dmljax.OperatorDesc, list[np.ndarray]]]
    ) -> None:
        """Computes the outputs of all cases by one program, and compares them."""
        operators = [dmljax.create_operator(desc) for desc, _ in cases]

        def run(inputs: list[list[jax.Array]]) -> list[list[jax.Array]]:
            pairs = zip(operators, inputs, strict=True)
            return [jax.tree.leaves(operator(*arrays)) for operator, arrays in pairs]

        try:
            results = jax.device_get(jax.jit(run)([arrays for _, arrays in cases]))
        except Exception as error:
            if len(cases) > 1:
                for case in cases:
                    self._run([case])
            elif isinstance(error, NoKernelError):
                self.report.counts["descriptors that no kernel takes"] += 1
            else:
                self.report.raised(repr(cases[0]))
            return
        for (desc, arrays), outputs in zip(cases, results, strict=True):
            self.report.counts["descriptors run and compared"] += 1
            wanted = expected.outputs(desc, arrays)
            if not all(map(expected.same_bits, outputs, wanted)):
                bits = [array.tobytes().hex() for array in arrays]
                self.report.fail(
                    f"{desc.operator} differs from the oracle",
                    f"{desc!r}\n{bits}\n{outputs}\n{wanted}",
                )


def use_form(form: str) -> None:
    """Makes the operators that have a kernel run in this form where they may choose."""
    call = OperatorPrimitive.__call__

    def chosen(self: Any, *operands: Any, implementation: Any = None, **static: Any):
        wanted = form if self.kernels else None
        return call(self, *operands, implementation=implementation or wanted, **static)

    OperatorPrimitive.__call__ = chosen


# Model files


class ModelFuzzer:
    """Damages model files, and runs those that are accepted in batches."""

    def __init__(self, seed: int, report: Report) -> None:
        self.maker = Maker(random.Random(seed + 1))
        self.report = report

    def batch(self) -> None:
        """Damages model files until enough of them are still accepted."""
        accepted: list[tuple[Model, bytes]] = []
        for _ in range(10 * BATCH):
            if not accepted or self.maker.random.random() < 0.1:
                source = damage.base_model(self.maker)
            text = damage.damaged(self.maker.random, source)
            model = self._parsed(text)
            if model is not None and self._is_small(model):
                accepted.append((model, text))
            if len(accepted) == BATCH:
                break
        self._run(accepted)

    def _parsed(self, text: bytes) -> Model | None:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start = time.process_time()  # whatever else the machine does
        model = None
        try:
            given = _model_parse.ModelText("the fuzzer", text)
            model = _model_parse.parse_model(given, max_memory=LARGEST)
        except ModelError as error:
            self.report.counts["damaged model files refused"] += 1
            message = str(error)
            if not message.isprintable() or len(message) > 600:
                self.report.fail(f"a message of {len(message)} characters", text)
        except Exception:
            self.report.raised(text)
        seconds = time.process_time() - start
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        self.report.slowest = max(self.report.slowest, seconds)
        self.report.counts["damaged model files read"] += 1
        if seconds > SLOWEST or grown * 1024 > LARGEST:
            self.report.fail(f"{seconds:.1f} s and {grown} KiB for a model", text)
        return model

    def _is_small(self, model: Model) -> bool:
        descs = [c.desc for c in model.commands if hasattr(c, "desc")]
        tensors = [t for desc in descs for t in desc.tensors().values()]
        sizes = [max(t.extent, int(np.prod(t.sizes))) for t in tensors]
        sizes += [r.content.size for r in model.resources.values()]
        small = sum(sizes) <= MOST_ELEMENTS * 4 and len(descs) < 20
        self.report.counts["large models accepted, not run"] += not small
        return small

    def _run(self, accepted: Sequence[tuple[Model, bytes]]) -> None:
        programs = [_model.program(model) for model, _ in accepted]
        states = [_model.initial_state(model) for model, _ in accepted]

        def run(states: list[Any]) -> list[Any]:
            return [f(state) for f, state in zip(programs, states, strict=True)]

        try:
            results = jax.device_get(jax.jit(run)(states))
        except Exception:
            for case in accepted if len(accepted) > 1 else ():
                self._run([case])
            if len(accepted) == 1:
                self.report.raised(accepted[0][1])
            return
        for (model, text), versions in zip(accepted, results, strict=True):
            result = _model.results_of(model, versions)
            self.report.counts["model files run and compared"] += 1
            given = {n: np.asarray(v).tobytes() for n, v in result.resources.items()}
            if given != damage.final_bytes(model):
                self.report.fail("a model differs from the oracle", text)
            # What is printed is made in full. No file is written.
            with contextlib.redirect_stdout(io.StringIO()):
                _model.print_outputs(model, result)


def main(argv: Sequence[str] | None = None) -> int:
    """Fuzzes as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--device", default="cpu", help="cpu, gpu or tpu")
    parser.add_argument("--only", choices=("descriptors", "models"))
    parser.add_argument(
        "--form", choices=("xla", "pallas"), help="of operators with a kernel"
    )
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
    kinds = {"descriptors": DescriptorFuzzer, "models": ModelFuzzer}
    chosen = [arguments.only] if arguments.only else kinds
    fuzzers = [kinds[name](seed, report) for name in chosen]
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # so that the files that models write go there
        for fuzzer in itertools.cycle(fuzzers):
            fuzzer.batch()
            jax.clear_caches()
            seconds = time.perf_counter() - start
            if seconds >= 60 * arguments.minutes:
                break
    report.show(seconds)
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
