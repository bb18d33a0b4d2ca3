"""Times ten programs on this machine, in dmljax and in every spelling of jax.numpy.

    python -m benchmarks.compare                  about a minute on a CPU
    python -m benchmarks.compare --only padding   the programs with this in their text
    python -m benchmarks.compare --json           the same as JSON

The programs are cases of the ledger, with the same inputs: `python -m benchmarks.run`
times them beside other libraries, too. All spellings run inside `jit` and take turns:
whatever else the machine does disturbs all of them alike. "jnp scatter" and "jnp take"
are other spellings of jnp.compress, jnp.nonzero and jnp.pad, and often faster.
"""

import argparse
import dataclasses
import json
import os
import platform
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np

from benchmarks.case import Case
from benchmarks.command import named
from benchmarks.libraries import ALL
from benchmarks.programs import PROGRAMS, TEN
from benchmarks.programs.program import CPU, GPU, SIZES, cases_of
from benchmarks.run import LARGE_CALLS, checked
from benchmarks.timing import wall_times
from dmljax import __version__

# Two times are level if they are no further apart, or no further than the noise.
LEVEL = 0.05
# We time a row with more noise again, up to TRIES times in all.
NOISY, TRIES = 0.1, 2
COLUMNS = "{:49}{:>8}{:>10}{:>7}{:>7}  {}"
LEGEND = """\
Median milliseconds of a call inside jit. ratio: theirs divided by ours. noise: the
difference between the ratios of even and of odd rounds; ~ marks more than 10 %.
"""


@dataclasses.dataclass(frozen=True)
class Row:
    """A program, and a spelling of it in jax.numpy."""

    program: str
    beside: str
    dmljax_ms: float
    ms: float
    noise: float

    @property
    def ratio(self) -> float:
        """The time of jax.numpy divided by ours."""
        return self.ms / self.dmljax_ms

    @property
    def noisy(self) -> bool:
        """Whether the noise is too large for the figures."""
        return self.noise > NOISY

    @property
    def verdict(self) -> str:
        """Whether dmljax is ahead, behind, or level."""
        apart = 1 + max(self.noise, LEVEL)
        if self.ratio > apart:
            return "ahead"
        if self.ratio < 1 / apart:
            return "behind"
        return "level"

    def line(self) -> str:
        """The row of the printed table."""
        noise = f"{'~' * self.noisy}{self.noise:.0%}"
        times = _digits(self.dmljax_ms), _digits(self.ms)
        ratio = f"{self.ratio:.2f}"
        return COLUMNS.format(self.program, *times, ratio, noise, self.beside)

    def columns(self) -> dict[str, Any]:
        """The row as JSON."""
        derived = {name: getattr(self, name) for name in ("ratio", "noisy", "verdict")}
        return dataclasses.asdict(self) | derived


def _digits(ms: float) -> str:
    """Three digits."""
    return np.format_float_positional(ms, 3, fractional=False, trim="-")


def cases(elements: int) -> Iterator[Case]:
    """The first type and direction of each program, in JAX alone."""
    on_cpu = jax.default_backend() == "cpu"
    for name in TEN:
        program = PROGRAMS[name]
        dtypes = [one for one in program.dtypes if one != "bfloat16" or not on_cpu]
        case = next(cases_of("tpu", name, program, elements, dtypes[:1]))
        functions = {}
        for contender, function in case.functions.items():
            if contender == "dmljax" or contender.startswith("jnp"):
                functions[contender] = function
        yield dataclasses.replace(case, functions=functions)


def rows_of(case: Case, rounds: int) -> list[Row]:
    """A row for each spelling of jax.numpy, of the quietest try."""
    calls = checked(case, ALL)
    tries = []
    for _ in range(TRIES):
        repeats = LARGE_CALLS.get(jax.default_backend(), LARGE_CALLS["gpu"])
        timed = wall_times(calls, rounds=rounds, repeats=repeats)
        ours = np.array(timed.pop("dmljax").times)
        rows = [
            _row(case, contender, ours, np.array(timing.times))
            for contender, timing in timed.items()
        ]
        tries.append(rows)
        if not any(row.noisy for row in rows):
            break
    return min(tries, key=lambda rows: max(row.noise for row in rows))


def _row(case: Case, contender: str, ours: np.ndarray, theirs: np.ndarray) -> Row:
    even = np.median(theirs[::2]) / np.median(ours[::2])
    odd = np.median(theirs[1::2]) / np.median(ours[1::2])
    noise = float(max(even, odd) / min(even, odd) - 1)
    name = case.name.split(" (")[0]
    if case.direction == "gradient":
        name += ", gradient"
    medians = float(np.median(ours)), float(np.median(theirs))
    return Row(name, contender, *medians, noise)


def summary(found: Sequence[Sequence[Row]]) -> dict[str, int]:
    """In how many programs dmljax is ahead, level and behind the fastest spelling."""
    counts = dict.fromkeys(("ahead", "level", "behind"), 0)
    for rows in found:
        fastest = min(rows, key=lambda row: row.ms)
        counts[fastest.verdict] += 1
    return counts


def main(argv: Sequence[str] | None = None) -> int:
    """Prints a table with a line for each spelling, and a summary."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.compare",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    default = CPU if jax.default_backend() == "cpu" else GPU
    parser.add_argument("--only", default="", help="text in a program's name")
    parser.add_argument("--json", action="store_true", help="print JSON")
    text = "of each program (default here: %(default)s)"
    parser.add_argument(
        "--elements", type=int, choices=SIZES, default=default, help=text
    )
    text = "how often each spelling is timed (default: %(default)s)"
    parser.add_argument("--rounds", type=int, default=20, help=text)
    options = parser.parse_args(argv)
    chosen = named(cases(options.elements), options.only, lambda case: case.label)
    device = jax.devices()[0]
    machine = device.device_kind
    if device.platform == "cpu":
        machine = f"{platform.machine()} CPU, {os.cpu_count()} cores"
    about = {
        "machine": f"{machine}, {platform.system()}",
        "dmljax": __version__,
        "jax": jax.__version__,
        "numpy": np.__version__,
    }
    if not options.json:
        versions = [f"{name} {about[name]}" for name in ("dmljax", "jax", "numpy")]
        print(about["machine"], ", ".join(versions), LEGEND, sep="\n")
        header = ("program", "dmljax", "jax.numpy", "ratio", "noise", "beside")
        print(COLUMNS.format(*header), flush=True)
    found = []
    for case in chosen:
        rows = rows_of(case, options.rounds)
        found.append(rows)
        if not options.json:
            for row in rows:
                print(row.line(), flush=True)
    counts = summary(found)
    if options.json:
        every = [row.columns() for rows in found for row in rows]
        print(json.dumps(about | {"rows": every, "summary": counts}, indent=2))
    else:
        words = ", ".join(f"{verdict} in {n}" for verdict, n in counts.items())
        print(f"\nBeside the fastest spelling of each program, dmljax is {words}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
