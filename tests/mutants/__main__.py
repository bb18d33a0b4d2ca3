"""Puts small faults into the source of dmljax, one at a time, and runs the tests.

`python -m tests.mutants` names for each fault the test that caught it, or says that it
survived. No file changes: only the memory of one process has the fault. A test that
catches a fault is run without it as well, and has to pass then.
"""

import argparse
import contextlib
import importlib
import json
import multiprocessing
import os
import random
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from multiprocessing import connection
from pathlib import Path
from typing import Any, NamedTuple

from tests import compiling

os.environ["XLA_FLAGS"] = compiling.flags(os.environ.get("XLA_FLAGS", ""))
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a fork does not copy threads

from tests.mutants.child import run
from tests.mutants.fault import TESTS, Fault, TableError, parts
from tests.mutants.table import FAULTS

# The modules of other packages that dmljax and its tests import. They are imported
# once, before the processes are forked, which saves seconds for each fault.
PRELOADED = (
    *("jax", "jax.export", "jax.extend.core", "jax.experimental.jet"),
    *("jax.experimental.pallas", "jax.experimental.pallas.tpu"),
    *("jax.experimental.shard_map", "jax.test_util"),
    *("chex", "hypothesis", "hypothesis.extra.numpy", "numpy", "PIL.Image"),
    *("xdist.plugin", "_hypothesis_pytestplugin"),
)
NOT_PROVED = "the test does not pass without the fault, or the fault breaks the import"
FORK = multiprocessing.get_context("fork")


class Outcome(NamedTuple):
    """The end of a run of tests: the test that failed, if one did, and how."""

    test: str | None
    how: str
    passed: frozenset[str]
    log: Path


class Run(NamedTuple):
    """A run of tests that waits to be started."""

    fault: Fault | None
    arguments: list[str]
    tests: Sequence[str]


def main() -> int:
    options = parsed()
    chosen = [fault for fault in FAULTS if options.only in fault.name]
    if not chosen:
        raise SystemExit(f"no fault has {options.only!r} in its name")
    if options.sample:
        chosen = random.Random(options.seed).sample(
            chosen, min(options.sample, len(chosen))
        )
    if options.list:
        for fault in chosen:
            print(fault.name)
        print(f"{len(chosen)} faults")
        return 0
    try:
        for fault in chosen:
            fault.check()
        preload()
        return show(chosen, options)
    except TableError as error:
        print(f"tests.mutants: {error}", file=sys.stderr)
        return 2


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.mutants", description=__doc__)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--sample", type=int, default=0, help="only so many faults")
    parser.add_argument("--seed", type=int, default=0, help="which ones")
    parser.add_argument("--only", default="", help="faults whose name contains this")
    parser.add_argument("--list", action="store_true", help="name them, run nothing")
    parser.add_argument(
        "--first", action="store_true", help="run no more than the tests that are named"
    )
    parser.add_argument(
        "--limit", type=int, default=120, help="seconds that one test may take"
    )
    return parser.parse_args()


def preload() -> None:
    """Imports the other packages that are installed. JAX starts no backend for that."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in PRELOADED:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)


def show(chosen: Sequence[Fault], options: argparse.Namespace) -> int:
    """Runs the faults, and prints a line for each of them and a summary."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(Path(folder), options.jobs, options.limit)
        caught, survived = {}, []
        for fault, outcome in of_faults(runs, chosen, options.first):
            if outcome.test is None:
                survived.append(fault)
                print(f"{fault.name}\n    SURVIVED", flush=True)
            else:
                caught[fault] = outcome
                print(f"{fault.name}\n    caught by {outcome.test}", end="")
                print(f", {outcome.how}" if outcome.how else "", flush=True)
        wrong = control(runs, caught)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    for fault in wrong:
        print(f"{fault.name}\n    NOT PROVED: {NOT_PROVED}")
    for module, count in sorted(Counter(fault.module for fault in chosen).items()):
        left = sum(fault.module == module for fault in survived)
        print(f"{module}: {count} faults, {count - left} caught")
    print(
        f"{len(chosen)} faults, {len(caught)} caught, {len(survived)} survived, "
        f"{len(wrong)} not proved; {time.perf_counter() - start:.0f} s, "
        f"{usage.ru_utime + usage.ru_stime:.0f} s of CPU time"
    )
    return 1 if survived or wrong else 0


def of_faults(
    runs: "Runs", chosen: Sequence[Fault], only_first: bool
) -> Iterator[tuple[Fault, Outcome]]:
    """Yields the outcome of each fault: of the named tests, then of the files."""
    for fault in chosen:
        functions = {"::".join(parts(test)[:2]): None for test in fault.first}
        named = [str(TESTS / test) for test in functions]
        runs.add(Run(fault, named, fault.first))
    for done, outcome in runs.finished():
        assert done.fault is not None
        if outcome.test is None and done.tests and not only_first:
            files = [str(TESTS / file) for file in done.fault.files]
            runs.add(Run(done.fault, files, ()), next_=True)
        else:
            yield done.fault, outcome


def control(runs: "Runs", caught: dict[Fault, Outcome]) -> list[Fault]:
    """Returns the faults whose tests do not pass without the fault."""
    tested = {fault: str(one.test) for fault, one in caught.items()}
    by_file: dict[str, list[str]] = {}
    for test in dict.fromkeys(tested.values()):
        file, _, function = test.partition("::")
        if function:
            by_file.setdefault(file, []).append(test)
    for tests in by_file.values():
        runs.add(Run(None, [str(TESTS.parent / test) for test in tests], ()))
    passed = {test for _, outcome in runs.finished() for test in outcome.passed}
    return [fault for fault, test in tested.items() if test not in passed]


class Runs:
    """Runs of tests, several at a time, each in a process of its own."""

    def __init__(self, folder: Path, jobs: int, limit: int) -> None:
        self.folder, self.jobs, self.limit = folder, jobs, limit
        self.waiting: list[Run] = []
        self.started = 0

    def add(self, run: Run, *, next_: bool = False) -> None:
        """Adds a run to those that wait, before or after them."""
        self.waiting.insert(0 if next_ else len(self.waiting), run)

    def finished(self) -> Iterator[tuple[Run, Outcome]]:
        """Yields each run when it ends. More runs may be added in between."""
        going: dict[int, tuple[Any, Run, Path]] = {}
        try:
            while self.waiting or going:
                while self.waiting and len(going) < self.jobs:
                    process, one, path = self.start(self.waiting.pop(0))
                    going[process.sentinel] = process, one, path
                for sentinel in connection.wait(list(going)):
                    process, one, path = going.pop(int(sentinel))  # type: ignore[call-overload]
                    process.join()
                    end_group(process.pid)
                    yield one, outcome_of(one, process.exitcode, path)
        finally:
            for process, *_ in going.values():
                end_group(process.pid)

    def start(self, one: Run) -> tuple[Any, Run, Path]:
        self.started += 1
        path = self.folder / f"{self.started}.txt"
        path.touch()
        process = FORK.Process(
            target=run, args=(one.fault, one.arguments, one.tests, path, self.limit)
        )
        process.start()
        return process, one, path


def end_group(leader: int) -> None:
    """Ends the processes that a run and its tests have started and left behind."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def outcome_of(one: Run, status: int, path: Path) -> Outcome:
    """Reads the outcome of a run from its notes and from the end of its process."""
    noted: dict[str, list[str]] = defaultdict(list)
    for line in path.read_text().splitlines():
        event, test = json.loads(line)
        noted[event].append(test)
    log = path.with_suffix(".log")
    passed = frozenset(noted["passed"])
    if noted["failed"]:
        return Outcome(noted["failed"][0], "", passed, log)
    if noted["broken"]:
        return Outcome(noted["broken"][0], "which was not imported", passed, log)
    if status < 0:
        last = (noted["started"] or ["the import"])[-1]
        ended = status == -signal.SIGALRM
        how = "which did not end" if ended else f"which ended by signal {-status}"
        return Outcome(last, how, passed, log)
    if one.fault is not None and not passed:
        raise TableError(
            f"{one.fault.name}: no test ran of "
            f"{', '.join(one.tests or one.arguments)}:\n{log.read_text()[-2000:]}"
        )
    return Outcome(None, "", passed, log)


if __name__ == "__main__":
    sys.exit(main())
