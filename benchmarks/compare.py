"""Times the programs of docs/benchmarks.md here, beside every spelling that we know.

    python -m benchmarks.compare                  a minute or two on a CPU
    python -m benchmarks.compare --only padding   the programs with this in their text
    python -m benchmarks.compare --write          writes the figures into the ledger

The programs are cases of the ledger, with the same inputs. JAX runs inside `jit`, and
NumPy and PyTorch are there if they are installed. All take turns: whatever else the
machine does disturbs all of them alike. "jnp scatter" and "jnp take" are other
spellings of jnp.compress, jnp.nonzero and jnp.pad, and often faster.
"""

import sys
from collections.abc import Iterator, Sequence

import jax

from benchmarks.case import Case
from benchmarks.command import named, parsed
from benchmarks.libraries import available
from benchmarks.programs import FRONT, PROGRAMS
from benchmarks.programs.program import cases_of
from benchmarks.run import ELEMENTS, time_cases


def cases(elements: int) -> Iterator[Case]:
    """The first type and direction of each program."""
    for name in FRONT:
        yield next(cases_of(jax.default_backend(), name, PROGRAMS[name], elements))


def main(argv: Sequence[str] | None = None) -> int:
    """Compares the programs of the page's table."""
    options = parsed(
        argv,
        "benchmarks.compare",
        __doc__,
        "--elements",
        "--rounds",
        "--device",
        "--write",
    )
    platform = jax.default_backend()
    chosen = named(cases(options.elements or ELEMENTS[platform]), options.only)
    table = "{}" if options.write else ""
    return time_cases(chosen, available(platform), options, table)


if __name__ == "__main__":
    sys.exit(main())
