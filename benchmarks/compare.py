"""Times ten programs on this machine, beside every spelling of other libraries.

    python -m benchmarks.compare                  a minute or two on a CPU
    python -m benchmarks.compare --only padding   the programs with this in their text

The programs are cases of the ledger, with the same inputs. JAX runs inside `jit`, and
NumPy and PyTorch are there if they are installed. All take turns: whatever else the
machine does disturbs all of them alike. "jnp scatter" and "jnp take" are other
spellings of jnp.compress, jnp.nonzero and jnp.pad, and often faster.
"""

import os
import platform
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import jax
import numpy as np

from benchmarks.case import Case
from benchmarks.command import device_name, named, parsed
from benchmarks.libraries import available, versions
from benchmarks.programs import PROGRAMS, TEN
from benchmarks.programs.program import cases_of
from benchmarks.run import ELEMENTS, LARGE_CALLS, checked
from benchmarks.timing import wall_times
from dmljax import __version__

# Two times are level if they are no further apart, or no further than the noise.
LEVEL = 0.05
COLUMNS = "{:66}{:>8}{:>8}{:>7}{:>7}  {}"
LEGEND = """\
Median milliseconds of a call. ratio: theirs divided by ours. noise: the difference
between the ratios of even and of odd rounds; ~ marks more than 10 %.
"""


class Row(NamedTuple):
    """A program, and its spelling in another library."""

    program: str
    beside: str
    ours: float
    theirs: float
    noise: float

    @property
    def ratio(self) -> float:
        """Their time divided by ours."""
        return self.theirs / self.ours

    @property
    def verdict(self) -> str:
        """Whether dmljax is ahead, behind, or level."""
        apart = 1 + max(self.noise, LEVEL)
        if 1 / apart <= self.ratio <= apart:
            return "level"
        return "ahead" if self.ratio > 1 else "behind"

    def line(self) -> str:
        """The row of the printed table."""
        noise = f"{'~' * (self.noise > 0.1)}{self.noise:.0%}"
        times = f"{self.ours:.3g}", f"{self.theirs:.3g}", f"{self.ratio:.2f}"
        return COLUMNS.format(self.program, *times, noise, self.beside)


def cases(elements: int) -> Iterator[Case]:
    """The first type and direction of each program."""
    device = jax.default_backend()
    for name in TEN:
        program = PROGRAMS[name]
        kinds = [one for one in program.dtypes if (device, one) != ("cpu", "bfloat16")]
        yield next(cases_of(device, name, program, elements, kinds[:1]))


def rows_of(case: Case, rounds: int) -> list[Row]:
    """A row for each spelling of another library."""
    calls, errors = checked(case, available(jax.default_backend()))
    print(*errors, sep="", end="")
    repeats = LARGE_CALLS[jax.default_backend()]
    timed = wall_times(calls, rounds=rounds, repeats=repeats)
    ours = np.array(timed["dmljax"].times)
    rows = []
    for contender, timing in timed.items():
        if not contender.startswith(("dmljax", "reference")):
            theirs = np.array(timing.times)
            even, odd = (
                np.median(theirs[i::2]) / np.median(ours[i::2]) for i in range(2)
            )
            medians = float(np.median(ours)), float(np.median(theirs))
            noise = float(max(even, odd) / min(even, odd) - 1)
            rows.append(Row(case.name.split(" (")[0], contender, *medians, noise))
    return rows


def main(argv: Sequence[str] | None = None) -> int:
    """Prints a table with a line for each spelling, and a summary."""
    options = parsed(argv, "benchmarks.compare", __doc__, "--elements", "--rounds")
    elements = options.elements or ELEMENTS[jax.default_backend()]
    chosen = named(cases(elements), options.only, lambda case: case.label)
    known = versions(available(jax.default_backend()))
    words = [f"{name} {version}" for name, version in known.items()]
    machine = f"{device_name(jax.devices()[0])}, {os.cpu_count()} cores"
    print(f"{machine}, {platform.system()}, dmljax {__version__}, {', '.join(words)}")
    print(LEGEND)
    header = "program", "dmljax", "theirs", "ratio", "noise", "beside"
    print(COLUMNS.format(*header), flush=True)
    counts = dict.fromkeys(("ahead", "level", "behind"), 0)
    for case in chosen:
        rows = rows_of(case, options.rounds)
        for row in rows:
            print(row.line(), flush=True)
        counts[min(rows, key=lambda row: row.theirs).verdict] += 1
    verdicts = ", ".join(f"{verdict} in {n}" for verdict, n in counts.items())
    print(f"\nBeside the fastest spelling of each program, dmljax is {verdicts}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
