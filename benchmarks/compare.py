"""Times ten programs on this machine, beside every spelling of other libraries.

    python -m benchmarks.compare                  a minute or two on a CPU
    python -m benchmarks.compare --only padding   the programs with this in their text

The programs are cases of the ledger, with the same inputs. JAX runs inside `jit`, and
NumPy and PyTorch are there if they are installed. All take turns: whatever else the
machine does disturbs all of them alike. "jnp scatter" and "jnp take" are other
spellings of jnp.compress, jnp.nonzero and jnp.pad, and often faster.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence

import jax

from benchmarks import ledger
from benchmarks.case import Case
from benchmarks.command import circumstances, device_name, named, parsed
from benchmarks.libraries import Library, available
from benchmarks.programs import PROGRAMS, TEN
from benchmarks.programs.program import cases_of
from benchmarks.run import ELEMENTS, time_case

# Where we take more than this part of the best other time, we are behind.
BEHIND = 1.15


def cases(elements: int) -> Iterator[Case]:
    """The first type and direction of each program."""
    device = jax.default_backend()
    for name in TEN:
        program = PROGRAMS[name]
        kinds = [one for one in program.dtypes if (device, one) != ("cpu", "bfloat16")]
        yield next(cases_of(device, name, program, elements, kinds[:1]))


def report(
    chosen: Sequence[Case],
    libraries: Mapping[str, Library],
    options: argparse.Namespace,
    table: str = "",
) -> int:
    """Prints the times of cases, and where we are behind; writes a table, if any."""
    if table:
        ledger.ready(options.out)
    run = circumstances(options, device_name(jax.devices()[0]), libraries)
    known = ", ".join(f"{n} {run[n]}" for n in ledger.VERSIONED if n in run)
    print(f"{run['device']}, {known}: milliseconds, and ours in theirs", flush=True)
    behind = []
    for case in chosen:
        rows, errors = time_case(case, libraries, options.rounds)
        times = {row["contender"]: row["wall_ms"] for row in rows}
        ours = times["dmljax"]
        print(f"{case.name}, {case.direction}: dmljax {ours:.3g}", *errors)
        others = [n for n in times if not n.startswith(("dmljax", "reference"))]
        for name in others:
            print(
                f"    {name} {times[name]:.3g} ({ours / times[name]:.2f})", flush=True
            )
        ratio = ours / min(times[name] for name in others)
        if ratio > BEHIND:
            behind.append(f"{case.name}, {case.direction}: {ratio:.2f}")
        if table:
            ledger.write(table.format(run["device"]), run, rows, options.out)
    print(f"behind in {len(behind)} of {len(chosen)}", *behind, sep="\n  ")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Compares the ten programs."""
    options = parsed(argv, "benchmarks.compare", __doc__, "--elements", "--rounds")
    elements = options.elements or ELEMENTS[jax.default_backend()]
    chosen = named(cases(elements), options.only, lambda case: case.label)
    return report(chosen, available(jax.default_backend()), options)


if __name__ == "__main__":
    sys.exit(main())
