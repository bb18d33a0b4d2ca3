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

# A module's own examples run first and without a conftest, and start JAX's devices.
os.environ["XLA_FLAGS"] = compiling.flags(os.environ.get("XLA_FLAGS", ""))
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a fork does not copy threads

from tests.mutants.child import run
from tests.mutants.generate import Fault
from tests.mutants.modules import drawn, is_equivalent, tests_of

# The modules of other packages that dmljax and its tests import. They bring others. We
# import them once, before the processes are forked. This saves seconds for each fault.
PRELOADED = [
    "chex",
    "jax.extend.core",
    "jax.experimental.jet",
    "jax.experimental.pallas.tpu",
    "hypothesis.extra.numpy",
    "PIL.Image",
    "xdist.plugin",
    "_hypothesis_pytestplugin",
]
FORK = multiprocessing.get_context("fork")
# The tests of a run, with a fault or without one.
Run = tuple[Fault | None, Sequence[str]]


class Outcome(NamedTuple):
    """The end of a run: the test that failed, if one did, how, and what passed."""

    test: str | None
    how: str
    passed: list[str]


def main() -> int:
    options = _parsed()
    chosen = list(drawn(options.module, options.sample, options.seed))
    if options.list:
        print(*chosen, f"{len(chosen)} faults", sep="\n")
        return 0
    _preload()
    # Raised, it ends the processes that were started, as any other error does.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    return _show(chosen, options)


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


def _preload() -> None:
    """Imports the other packages that are installed. JAX starts no backend for that."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in PRELOADED:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)


def _show(chosen: Sequence[Fault], options: argparse.Namespace) -> int:
    """Runs the faults, and prints a line for each of them and a summary."""
    start = time.perf_counter()
    tested = [fault for fault in chosen if not is_equivalent(fault)]
    # Tests that can't be imported as they are would catch every fault.
    files = sorted({file for fault in tested for file in tests_of(fault.module)})
    for _, outcome in _finished([(None, ("--collect-only", *files))], options):
        if outcome.test is not None:
            raise SystemExit(f"tests.mutants: {outcome.test} can't be imported")
    caught: dict[Fault, Outcome] = {}
    survivors = []
    runs = [(fault, tests_of(fault.module)) for fault in tested]
    for fault, outcome in _finished(runs, options):
        if outcome.test is None:
            survivors.append(fault)
            print(f"{fault}\n    SURVIVED", flush=True)
            if options.show:
                print(fault.diff(), flush=True)
        else:
            caught[fault] = outcome
            print(f"{fault}\n    {outcome.how} {outcome.test}", flush=True)
    wrong = _not_proved(caught, options)
    for fault in wrong:
        print(f"{fault}\n    NOT PROVED: {caught[fault].test} fails without the fault")
    for module, count in sorted(Counter(fault.module for fault in tested).items()):
        left = sum(fault.module == module for fault in survivors)
        print(f"{module}: {count - left} of {count}")
    imports = sum(outcome.how == "import:" for outcome in caught.values())
    equivalent = len(chosen) - len(tested)
    seconds = time.perf_counter() - start
    print(
        f"{len(chosen)} faults: {equivalent} equivalent, {len(caught)} caught "
        f"({imports} by the import), {len(survivors)} survived, "
        f"{len(wrong)} not proved; {seconds:.0f} s"
    )
    return 1 if survivors or wrong else 0


def _not_proved(
    caught: dict[Fault, Outcome], options: argparse.Namespace
) -> list[Fault]:
    """Returns the faults that were caught by tests that fail without them as well."""
    tested = {f: str(o.test) for f, o in caught.items() if o.how != "import:"}
    by_file: dict[str, list[str]] = defaultdict(list)
    for test in dict.fromkeys(tested.values()):
        by_file[test.partition("::")[0]].append(test)
    passed: set[str] = set()
    for _, outcome in _finished([(None, tests) for tests in by_file.values()], options):
        passed.update(outcome.passed)
    return [fault for fault, test in tested.items() if test not in passed]


def _finished(
    runs: Sequence[Run], options: argparse.Namespace
) -> Iterator[tuple[Any, Outcome]]:
    """Yields the fault and the outcome of each run when it ends.

    Each has a process of its own, and several run at a time.
    """
    waiting = list(enumerate(runs))[::-1]
    going: dict[Any, tuple[Any, Any, Path]] = {}
    with tempfile.TemporaryDirectory() as folder:
        try:
            while waiting or going:
                while waiting and len(going) < options.processes:
                    number, (fault, tests) = waiting.pop()
                    path = Path(folder, f"{number}.txt")
                    path.touch()
                    given = (fault, tests, path, options.limit)
                    process = FORK.Process(target=run, args=given)
                    process.start()
                    going[process.sentinel] = process, fault, path
                for sentinel in connection.wait(list(going)):
                    process, fault, path = going.pop(sentinel)
                    process.join()
                    _end_group(process.pid)
                    yield fault, _outcome(fault, process.exitcode, path)
        finally:
            for process, *_ in going.values():
                _end_group(process.pid)


def _end_group(leader: int) -> None:
    """Ends the processes that a run and its tests have started and left behind."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def _outcome(fault: Fault | None, status: int, path: Path) -> Outcome:
    """Reads the outcome of a run from its notes and from the end of its process."""
    noted: dict[str, list[str]] = defaultdict(list)
    for line in path.read_text().splitlines():
        event, test = json.loads(line)
        noted[event].append(test)
    if noted["failed"]:
        return Outcome(noted["failed"][0], "caught by", noted["passed"])
    if noted["import"]:
        return Outcome(noted["import"][0], "import:", noted["passed"])
    if status < 0:
        last = (noted["started"] or ["the import"])[-1]
        ended = "no end of" if status == -signal.SIGALRM else f"signal {-status} in"
        return Outcome(last, ended, noted["passed"])
    if fault is not None and not noted["passed"]:
        log = path.with_suffix(".log").read_text()
        raise SystemExit(f"{fault}: no test ran:\n{log[-2000:]}")
    return Outcome(None, "", noted["passed"])


if __name__ == "__main__":
    sys.exit(main())
