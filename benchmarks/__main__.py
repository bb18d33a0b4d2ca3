"""Lists the programs that are timed, and shows the code of one.

python -m benchmarks                     the list, the commands, and an example
python -m benchmarks "causal softmax"    every spelling of this program
"""

import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from benchmarks.programs import PROGRAMS
from benchmarks.programs.program import CPU

EXAMPLE = "rows of a mask"
COMMANDS = """\
Commands:
  python -m benchmarks NAME        every spelling of a program
  python -m benchmarks.compare     ten programs beside jax.numpy, in a minute
  python -m benchmarks.run         all cases beside all libraries, for the ledger
  python -m benchmarks.tracing     the time to trace, lower and compile
  python -m benchmarks.scaling     several devices
  python -m benchmarks.tpu         estimates for TPUs, which need libtpu
  python -m benchmarks.plot        the tables and pictures of docs/benchmarks.md
"""
IMPORTS = """\
import functools
from typing import Any

import dmljax
import jax
import jax.numpy as jnp
import numpy as np
from dmljax import numpy as dnp
from jax import lax
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the list, or a program."""
    arguments = sys.argv[1:] if argv is None else argv
    if not arguments:
        print(listed(), COMMANDS, f"Example: {EXAMPLE}\n", code(EXAMPLE), sep="\n")
        return 0
    name = " ".join(arguments)
    if name in ("-h", "--help"):
        print(__doc__)
        return 0
    if name not in PROGRAMS:
        print(f"no program is named {name!r}; {listed()}", file=sys.stderr)
        return 2
    print(code(name))
    return 0


def listed() -> str:
    """The programs, by operator."""
    lines = ["Programs:"]
    for operator in dict.fromkeys(one.operator for one in PROGRAMS.values()):
        lines.append(f"  {operator}")
        for name, program in PROGRAMS.items():
            if program.operator == operator:
                lines.append(f"    {name:45}{' '.join(program.dtypes)}")
    return "\n".join(lines) + "\n"


def code(name: str) -> str:
    """A program in Python that makes the arrays and calls dmljax's spelling."""
    program = PROGRAMS[name]
    functions: dict[str, Callable[..., Any]] = {}
    spellings = []
    for contender, function in program.functions.items():
        for part in parts_of(function):
            for needed in (*helpers(part), part):
                functions.setdefault(needed.__name__, needed)
        spellings.append(f"{contender}: {call_of(function)}")
    arrays = []
    for shape, numbers in zip(program.shapes[CPU], program.inputs, strict=True):
        dtype = numbers.dtype or program.dtypes[-1]
        drawn = f"random.integers({numbers.high}, size={shape})"
        arrays.append(f'jnp.asarray({drawn}).astype("{dtype}"),')
    sources = [inspect.getsource(function) for function in functions.values()]
    call = f"result = jax.jit({call_of(program.functions['dmljax'])})(*arrays)"
    return "\n\n".join(
        [
            IMPORTS,
            *sources,
            "\n".join(f"# {line}" for line in spellings)
            + "\nrandom = np.random.default_rng(0)\narrays = [\n    "
            + "\n    ".join(arrays)
            + f"\n]\n{call}\n",
        ]
    )


def parts_of(function: Any) -> Iterator[Callable[..., Any]]:
    """The functions of our own that a spelling is made of."""
    if isinstance(function, functools.partial):
        for part in (function.func, *function.keywords.values()):
            yield from parts_of(part)
    elif is_ours(function):
        yield function


def helpers(function: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """The functions of our own that a function needs, and those that these need."""
    names = [*function.__code__.co_names]
    found = [function.__globals__.get(name) for name in names]
    for helper in (*found, *(function.__defaults__ or ())):
        if is_ours(helper):
            yield from helpers(helper)
            yield helper


def is_ours(function: Any) -> bool:
    """Whether a function belongs to a program."""
    module = getattr(function, "__module__", None) or ""
    return inspect.isfunction(function) and module.startswith("benchmarks.programs")


def call_of(function: Any) -> str:
    """A spelling as an expression."""
    if isinstance(function, functools.partial):
        ways = []
        for argument, way in function.keywords.items():
            ways.append(f"{argument}={call_of(way)}")
        return f"functools.partial({', '.join([call_of(function.func), *ways])})"
    if is_ours(function):
        return str(function.__name__)
    name = getattr(function, "__name__", None)
    if name is None:
        return repr(function)
    module = function.__module__ or ""
    for prefix, short in {"dmljax.numpy": "dnp", "dmljax": "dmljax"}.items():
        if module.startswith(prefix):
            return f"{short}.{name}"
    for prefix, short in {"jax.nn": "jax.nn", "jax._src.nn": "jax.nn"}.items():
        if module.startswith(prefix):
            return f"{short}.{name}"
    return f"{'np' if module.startswith('numpy') else 'jnp'}.{name}"


if __name__ == "__main__":
    sys.exit(main())
