"""`Program`: a program to time, and its cases by type and direction."""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax

from benchmarks.case import Case, Functions
from benchmarks.data import Data

# About how many elements an array has on a GPU and on a CPU. The shapes of each program
# are written out for these two. A quick test has the CPU's batches, divided by 16.
GPU, CPU, QUICK = SIZES = (2**26, 2**22, 2**18)
FORWARD, BOTH = ("forward",), ("forward", "gradient")
# How far sums of products may be off. A GPU multiplies float32 with 11 bits (TF32).
RTOL = {"float32": 0.01, "bfloat16": 0.05}
# Contenders that only a GPU runs, and their types.
ON_GPUS = {
    "jnp cudnn": "bfloat16",
    "dmljax xla": "bfloat16 float32",
    "cub flagged": "bool uint8",
}
Shape = tuple[int, ...]


class Numbers(NamedTuple):
    """An input: whole numbers from 0 to `high` - 1, of the case's type by default.

    A `density` below 1 is the share of the elements that are not zero.
    """

    high: int
    dtype: str = ""
    density: float = 1.0


@dataclasses.dataclass(frozen=True)
class Program:
    """A program of users.

    Attributes:
      operator: the operator in the program.
      functions: the program in every spelling, by contender; "dmljax" is the first. A
        "reference" is another program, which shows the cost of a part of this program.
      inputs: the numbers in the arrays.
      shapes: the shapes of the inputs, by the number of elements.
      chosen: how many elements a selection chooses, and how many have room.
      dtypes: its types.
      directions: "gradient" is the result and the gradient by inputs `wrt`.
      wrt: the inputs of the derivative.
      rtol: as in `Case`; None is that of sums of products in the type.
      moves: as in `Case`.
    """

    operator: str
    functions: Functions
    inputs: Sequence[Numbers]
    shapes: Mapping[int, Sequence[Shape]]
    chosen: str = ""
    dtypes: Sequence[str] = ("bfloat16", "float32")
    directions: Sequence[str] = FORWARD
    wrt: Sequence[int] = (0,)
    rtol: float | None = None
    moves: bool = True


def spellings(run: Callable[..., Any], **ways: Functions) -> dict[str, Any]:
    """The program by contender. Each way replaces the default of one argument."""
    ((argument, functions),) = ways.items()
    return {
        contender: functools.partial(run, **{argument: function})
        for contender, function in functions.items()
    }


def cases_of(
    platform: str, name: str, program: Program, elements: int
) -> Iterator[Case]:
    """A case for each type and direction."""
    words = f"{name}, {program.chosen}" if program.chosen else name
    for dtype in program.dtypes:
        if (platform, dtype) == ("cpu", "bfloat16"):
            continue  # few CPUs have instructions for it
        inputs: list[Data] = []
        shapes = program.shapes.get(elements) or quick(program.shapes[CPU])
        for shape, numbers in zip(shapes, program.inputs, strict=True):
            high, kind, density = numbers
            least = 0 if density == 1 else 1
            inputs.append(
                Data(shape, kind or dtype, least, high, density, seed=len(inputs))
            )
        case = Case(
            program.operator,
            f"{words}, {dtype} {inputs[0].shape}",
            tuple(inputs),
            _functions(platform, program, dtype),
            moves=program.moves,
            rtol=RTOL.get(dtype, 0.0) if program.rtol is None else program.rtol,
        )
        if "forward" in program.directions:
            yield case
        if "gradient" in program.directions:
            yield gradient(case, program.wrt)


def quick(shapes: Sequence[Shape]) -> list[Shape]:
    """The shapes of a sixteenth of the batch, which is the first axis of the first."""
    batch = shapes[0][0]
    part = max(batch // 16, 1)
    return [(part, *shape[1:]) if shape[0] == batch else shape for shape in shapes]


def _functions(platform: str, program: Program, dtype: str) -> Functions:
    """The contenders of a case."""
    functions = {
        name: function
        for name, function in program.functions.items()
        if name not in ON_GPUS or (platform == "gpu" and dtype in ON_GPUS[name])
    }
    # It takes 10 s to compile, on a CPU 30 s.
    if platform == "gpu" and "torch" in functions:
        functions["torch compiled"] = _compiled(functions["torch"])
    return functions


def gradient(case: Case, wrt: Sequence[int]) -> Case:
    """The result and its gradient, for cotangents of 1 and 2."""
    functions: dict[str, Any] = {}
    for name, function in case.functions.items():
        if name.startswith("torch"):
            functions[name] = functools.partial(_torch_both, function, wrt)
        elif name.startswith(("dmljax", "jnp", "reference")):
            functions[name] = functools.partial(_both, function, wrt)
    result = jax.eval_shape(case.functions["dmljax"], *case.structs)
    cotangent = Data(result.shape, result.dtype.name, low=1, high=3, seed=9)
    inputs = (cotangent, *case.inputs)
    return dataclasses.replace(
        case, functions=functions, inputs=inputs, direction="gradient"
    )


def _both(
    function: Callable[..., Any],
    wrt: Sequence[int],
    cotangent: jax.Array,
    *inputs: jax.Array,
) -> Any:
    def of(*chosen: jax.Array) -> Any:
        known = dict(enumerate(inputs)) | dict(zip(wrt, chosen, strict=True))
        return function(*known.values())

    result, back = jax.vjp(of, *(inputs[i] for i in wrt))
    return result, *back(cotangent)


def _torch_both(
    function: Callable[..., Any], wrt: Sequence[int], cotangent: Any, *inputs: Any
) -> Any:
    import torch

    leaves = [
        x.detach().requires_grad_() if i in wrt else x for i, x in enumerate(inputs)
    ]
    result = function(*leaves)
    # A result may have fewer rows than a static size allows for.
    cotangent = cotangent[: len(result)]
    return result, *torch.autograd.grad(result, [leaves[i] for i in wrt], cotangent)


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function by torch.compile. A reset makes PyTorch forget earlier functions."""

    @functools.cache
    def compiled() -> Any:
        import torch

        torch.compiler.reset()
        return torch.compile(function, dynamic=False)

    return lambda *arrays: compiled()(*arrays)
