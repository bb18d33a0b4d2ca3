"""Lists the programs that we time, and shows the code of a program.

python -m benchmarks                     the list, the commands, and an example
python -m benchmarks "causal softmax"    every spelling of this program
"""

import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import dmljax
from benchmarks.programs import PROGRAMS
from benchmarks.programs.program import CPU
from dmljax import numpy as dnp

EXAMPLE = "rows of a mask"
# How functions of libraries are written.
MODULES = {dnp: "dnp", dmljax: "dmljax", jnp: "jnp", jax.nn: "jax.nn", np: "np"}
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


def code(name: str, elements: int = CPU) -> str:
    """A program in Python: functions, arrays, and a call of dmljax's spelling."""
    program = PROGRAMS[name]
    functions: dict[str, Callable[..., Any]] = {}
    spellings = []
    for contender, function in program.functions.items():
        if contender != "onnxruntime":  # models of ONNX are not written in Python
            for part in parts_of(function):
                functions.setdefault(part.__name__, part)
            spellings.append(f"# {contender}: {expression(function)}")
    arrays = []
    dtype = "float32" if "float32" in program.dtypes else program.dtypes[0]
    for shape, numbers in zip(program.shapes[elements], program.inputs, strict=True):
        drawn = f"random.integers({numbers.high}, size={shape})"
        arrays.append(f'    {drawn}.astype("{numbers.dtype or dtype}"),')
    call = [
        *spellings,
        "random = np.random.default_rng(0)",
        "arrays = [",
        *arrays,
        "]",
        f"run = {expression(program.functions['dmljax'])}",
        "result = jax.jit(run)(*map(jax.device_put, arrays))",
    ]
    sources = map(inspect.getsource, functions.values())
    return "\n\n".join([IMPORTS, *sources, "\n".join(call)])


def parts_of(function: Any) -> Iterator[Callable[..., Any]]:
    """The functions in a program's spelling, each after the functions it calls."""
    if isinstance(function, functools.partial):
        for part in (function.func, *function.keywords.values()):
            yield from parts_of(part)
    elif is_ours(function):
        for name in function.__code__.co_names:
            helper = function.__globals__.get(name)
            if helper is not function:
                yield from parts_of(helper)
        for parameter in inspect.signature(function).parameters.values():
            yield from parts_of(parameter.default)
        yield function


def is_ours(function: Any) -> bool:
    """Whether a function belongs to a program."""
    module = getattr(function, "__module__", None) or ""
    return inspect.isfunction(function) and module.startswith("benchmarks.programs")


def expression(value: Any) -> str:
    """The Python text of a spelling or of a way."""
    if isinstance(value, functools.partial):
        parts = [expression(value.func)]
        for argument, way in value.keywords.items():
            parts.append(f"{argument}={expression(way)}")
        return f"functools.partial({', '.join(parts)})"
    name = getattr(value, "__name__", None)
    if name is None:
        return repr(value)
    if is_ours(value):
        return str(name)
    for module, short in MODULES.items():
        if getattr(module, name, None) is value:
            return f"{short}.{name}"
    raise ValueError(f"{value} is in none of the modules")


if __name__ == "__main__":
    sys.exit(main())
