"""Puts small faults into the source of dmljax, one at a time, and runs the tests.

`python -m tests.mutants --sample 200 --seed 1` draws 200 faults, and says how many of
them the tests caught. No file changes: only the memory of one process has the fault. A
test that catches a fault is run without it as well, and has to pass then.
"""

import argparse
import contextlib
import importlib
import json
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from multiprocessing import connection
from pathlib import Path
from typing import Any, NamedTuple

from tests import compiling

os.environ["XLA_FLAGS"] = compiling.flags(os.environ.get("XLA_FLAGS", ""))
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a fork does not copy threads

from tests.mutants.child import run
from tests.mutants.generate import Fault, faults
from tests.mutants.modules import equivalent, modules, tests_of

# The modules of other packages that dmljax and its tests import. They are imported
# once, before the processes are forked, which saves seconds for each fault.
PRELOADED = (
    *("jax", "jax.export", "jax.extend.core", "jax.experimental.jet"),
    *("jax.experimental.pallas", "jax.experimental.pallas.tpu"),
    *("jax.experimental.shard_map", "jax.test_util"),
    *("chex", "hypothesis", "hypothesis.extra.numpy", "numpy", "PIL.Image"),
    *("xdist.plugin", "_hypothesis_pytestplugin"),
)
FORK = multiprocessing.get_context("fork")


class Run(NamedTuple):
    """Tests to run in a process of their own, with a fault or without one."""

    fault: Fault | None
    tests: Sequence[str]


class Outcome(NamedTuple):
    """The end of a run: the test that failed, if one did, how, and what passed."""

    test: str | None
    how: str
    passed: frozenset[str]


def main() -> int:
    options = _parsed()
    chosen = list(_drawn(options.module, options.sample, options.seed))
    if options.list:
        print(*chosen, f"{len(chosen)} faults", sep="\n")
        return 0
    _preload()
    with tempfile.TemporaryDirectory() as folder:
        return _show(chosen, options, Path(folder))


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.mutants", description=__doc__)
    add = parser.add_argument
    add("--sample", type=int, default=0, help="how many faults; all without it")
    add("--seed", type=int, default=0, help="which ones")
    add("--module", action="append", default=[], help="such as _overlap; repeatable")
    add("--processes", type=int, default=os.cpu_count() or 1)
    add("--limit", type=int, default=120, help="seconds that one test may take")
    add("--show", action="store_true", help="print the diff of each survivor")
    add("--list", action="store_true", help="name the faults, run nothing")
    return parser.parse_args()


def _drawn(names: Sequence[str], sample: int, seed: int) -> Iterator[Fault]:
    """Yields faults in a random order, without those that change no code."""
    every = [fault for module in modules(names) for fault in faults(module)]
    random.Random(seed).shuffle(every)
    left = sample or len(every)
    for fault in every:
        if left and fault.has_effect():
            left -= 1
            yield fault


def _preload() -> None:
    """Imports the other packages that are installed. JAX starts no backend for that."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in PRELOADED:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)


def _show(chosen: Sequence[Fault], options: argparse.Namespace, folder: Path) -> int:
    """Runs the faults, and prints a line for each of them and a summary."""
    start = time.perf_counter()
    tested = [fault for fault in chosen if not equivalent(fault)]
    files = {file for fault in tested for file in tests_of(fault.module)}
    runs = Runs(folder, options.processes, options.limit)
    # Tests that can't be imported as they are would catch every fault.
    _collect(runs, sorted(files))
    caught: dict[Fault, Outcome] = {}
    survivors = []
    for one, outcome in runs.finished(Run(f, tests_of(f.module)) for f in tested):
        assert one.fault is not None
        if outcome.test is None:
            survivors.append(one.fault)
            print(f"{one.fault}\n    SURVIVED", flush=True)
            if options.show:
                print(one.fault.diff(), flush=True)
        else:
            caught[one.fault] = outcome
            print(f"{one.fault}\n    {outcome.how} {outcome.test}", flush=True)
    wrong = _not_proved(runs, caught)
    for fault in wrong:
        print(f"{fault}\n    NOT PROVED: {caught[fault].test} fails without the fault")
    for module, count in sorted(Counter(fault.module for fault in tested).items()):
        left = sum(fault.module == module for fault in survivors)
        print(f"{module}: {count - left} of {count}")
    imports = sum(outcome.how == "import:" for outcome in caught.values())
    print(
        f"{len(chosen)} faults: {len(chosen) - len(tested)} equivalent, "
        f"{len(caught)} caught ({imports} by the import), {len(survivors)} survived, "
        f"{len(wrong)} not proved; {time.perf_counter() - start:.0f} s"
    )
    return 1 if survivors or wrong else 0


def _collect(runs: "Runs", files: Sequence[str]) -> None:
    """Ends the program if the tests can't be collected without any fault."""
    for _, outcome in runs.finished([Run(None, ("--collect-only", *files))]):
        if outcome.test is not None:
            raise SystemExit(f"tests.mutants: {outcome.test} can't be imported")


def _not_proved(runs: "Runs", caught: dict[Fault, Outcome]) -> list[Fault]:
    """Returns the faults that were caught by tests that fail without them as well."""
    tested = {f: str(o.test) for f, o in caught.items() if o.how != "import:"}
    by_file: dict[str, list[str]] = defaultdict(list)
    for test in dict.fromkeys(tested.values()):
        by_file[test.partition("::")[0]].append(test)
    control = [Run(None, tests) for tests in by_file.values()]
    passed = {test for _, outcome in runs.finished(control) for test in outcome.passed}
    return [fault for fault, test in tested.items() if test not in passed]


class Runs:
    """Runs tests, several at a time, each in a process of its own."""

    def __init__(self, folder: Path, processes: int, limit: int) -> None:
        self.folder, self.processes, self.limit = folder, processes, limit
        self.started = 0

    def finished(self, waiting: Iterable[Run]) -> Iterator[tuple[Run, Outcome]]:
        """Yields each run when it ends."""
        waiting = list(waiting)[::-1]
        going: dict[Any, tuple[Any, Run, Path]] = {}
        try:
            while waiting or going:
                while waiting and len(going) < self.processes:
                    one = waiting.pop()
                    process, path = self._start(one)
                    going[process.sentinel] = process, one, path
                for sentinel in connection.wait(list(going)):
                    process, one, path = going.pop(sentinel)
                    process.join()
                    _end_group(process.pid)
                    yield one, _outcome(one, process.exitcode, path)
        finally:
            for process, *_ in going.values():
                _end_group(process.pid)

    def _start(self, one: Run) -> tuple[Any, Path]:
        self.started += 1
        path = self.folder / f"{self.started}.txt"
        path.touch()
        process = FORK.Process(target=run, args=(*one, path, self.limit))
        process.start()
        return process, path


def _end_group(leader: int) -> None:
    """Ends the processes that a run and its tests have started and left behind."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def _outcome(one: Run, status: int, path: Path) -> Outcome:
    """Reads the outcome of a run from its notes and from the end of its process."""
    noted: dict[str, list[str]] = defaultdict(list)
    for line in path.read_text().splitlines():
        event, test = json.loads(line)
        noted[event].append(test)
    passed = frozenset(noted["passed"])
    if noted["failed"]:
        return Outcome(noted["failed"][0], "caught by", passed)
    if noted["import"]:
        return Outcome(noted["import"][0], "import:", passed)
    if status < 0:
        last = (noted["started"] or ["the import"])[-1]
        ended = "no end of" if status == -signal.SIGALRM else f"signal {-status} in"
        return Outcome(last, ended, passed)
    if one.fault is not None and not passed:
        log = path.with_suffix(".log").read_text()
        raise SystemExit(f"{one.fault}: no test ran of {one.tests}:\n{log[-2000:]}")
    return Outcome(None, "", passed)


if __name__ == "__main__":
    sys.exit(main())
