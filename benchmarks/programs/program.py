"""`Program`: a program to time, and its cases by type and direction."""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from benchmarks.case import Case, Functions
from benchmarks.data import Data
from benchmarks.oracles import RTOL, Sample, grid

# About how many elements a large array has on a GPU and on a CPU, a small array, and
# an array of the tests. The shapes of each program are written out for these four.
GPU, CPU, SMALL, TINY = SIZES = (2**26, 2**22, 2**18, 2**10)
FORWARD, BOTH = ("forward",), ("forward", "gradient")
# How far an input is moved to find a derivative: sums of whole numbers stay exact.
STEP = 2.0**-7
# Contenders on some platforms and in some types alone.
ONLY = {
    "jnp cudnn": ("gpu", "bfloat16"),
    "dmljax pallas": ("gpu", "bfloat16 float32 uint8"),
    "onnxruntime": ("cpu", "float32 int32"),
}
Arrays = Sequence[np.ndarray]
Shape = tuple[int, ...]


class Numbers(NamedTuple):
    """An input: whole numbers from 0 to `high` - 1. The default is the case's type."""

    high: int
    dtype: str = ""


@dataclasses.dataclass(frozen=True)
class Program:
    """A program of users, and its check.

    Attributes:
      operator: the operator in the program.
      functions: the program in every spelling, by contender; "dmljax" is the first. A
        "reference" is another program, which shows the cost of a part of this program.
      inputs: the numbers in the arrays.
      shapes: the shapes of the inputs, by the number of elements.
      oracle: the program in NumPy. It takes float64 in place of other floats, and
        returns one array.
      dtypes: its types.
      directions: "gradient" is the result and the gradient by inputs `wrt`.
      wrt: the inputs of the derivative.
      shared: the inputs without a batch. All other inputs and the result have a batch
        along their first axis, and each part of the batch can be computed alone.
      whole: whether no input has a batch.
      count: maps the inputs to the number of rows of the result before its padding, if
        any.
      rtol: the relative error that we allow; None is the error of sums of products in
        the type.
      atol: an additional error, as a part of the largest number of a gradient.
      ceiling: as in `Case`.
    """

    operator: str
    functions: Functions
    inputs: Sequence[Numbers]
    shapes: Mapping[int, Sequence[Shape]]
    oracle: Callable[..., np.ndarray]
    dtypes: Sequence[str] = ("bfloat16", "float32")
    directions: Sequence[str] = FORWARD
    wrt: Sequence[int] = (0,)
    shared: Sequence[int] = ()
    whole: bool = False
    count: Callable[..., int] | None = None
    rtol: float | None = None
    atol: float = 0.0
    ceiling: str | None = "copy"


def spellings(run: Callable[..., Any], **ways: Functions) -> dict[str, Any]:
    """The program by contender. Each way replaces the default of one argument."""
    ((argument, functions),) = ways.items()
    return {
        contender: functools.partial(run, **{argument: function})
        for contender, function in functions.items()
    }


def cases_of(
    platform: str, name: str, program: Program, elements: int, dtypes: Sequence[str]
) -> Iterator[Case]:
    """A case for each type and direction."""
    for dtype in dtypes:
        inputs: list[Data] = []
        for shape, numbers in zip(
            program.shapes[elements], program.inputs, strict=True
        ):
            kind = numbers.dtype or dtype
            seed = len(inputs)
            inputs.append(Data(shape, kind, low=0, high=numbers.high, seed=seed))
        structs = [jax.ShapeDtypeStruct(data.shape, data.dtype) for data in inputs]
        result = jax.eval_shape(program.functions["dmljax"], *structs)
        output = Data(result.shape, result.dtype.name)
        for direction in program.directions:
            back = direction == "gradient"
            read, written = inputs, [output]
            if back:
                cotangent = dataclasses.replace(output, low=1, high=3, seed=9)
                read = [cotangent, *inputs]
                written = [output, *(inputs[i] for i in program.wrt)]
            yield Case(
                program.operator,
                f"{name}, {dtype} {inputs[0].shape}",
                tuple(read),
                output,
                _functions(platform, program, dtype, back, elements > SMALL),
                functools.partial(_samples, program, back, result.dtype),
                moved=sum(data.nbytes for data in (*read, *written)),
                ceiling=program.ceiling,
                direction=direction,
                context="program",
            )


def _functions(
    platform: str, program: Program, dtype: str, back: bool, large: bool
) -> Functions:
    """The contenders of a case."""
    functions = dict(program.functions)
    if large and platform == "gpu":  # it takes 10 s to compile, on a CPU 30 s
        functions["torch compiled"] = _compiled(functions["torch"])
    found = {}
    for name, function in functions.items():
        only_on, in_types = ONLY.get(name, (platform, dtype))
        library = name.split()[0]
        if platform != only_on or dtype not in in_types:
            continue
        if not back:
            found[name] = function
        elif library == "torch":
            found[name] = _torch_both(function, program.wrt)
        elif library in ("dmljax", "jnp", "reference"):
            found[name] = _both(function, program.wrt)
    return found


def _both(function: Callable[..., Any], wrt: Sequence[int]) -> Callable[..., Any]:
    def both(cotangent: jax.Array, *inputs: jax.Array) -> Any:
        def of(*chosen: jax.Array) -> Any:
            known = dict(enumerate(inputs)) | dict(zip(wrt, chosen, strict=True))
            return function(*known.values())

        result, back = jax.vjp(of, *(inputs[i] for i in wrt))
        return result, *back(cotangent)

    return both


def _torch_both(function: Callable[..., Any], wrt: Sequence[int]) -> Callable[..., Any]:
    def both(cotangent: Any, *inputs: Any) -> Any:
        import torch

        leaves = [
            x.detach().requires_grad_() if i in wrt else x for i, x in enumerate(inputs)
        ]
        result = function(*leaves)
        chosen = [leaves[i] for i in wrt]
        # A result may have fewer rows than a static size allows for.
        cotangent = cotangent[: len(result)]
        return result, *torch.autograd.grad(result, chosen, cotangent)

    return both


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function by torch.compile. A reset makes PyTorch forget earlier functions."""

    @functools.cache
    def compiled() -> Any:
        import torch

        torch.compiler.reset()
        return torch.compile(function, dynamic=False)

    return lambda *arrays: compiled()(*arrays)


# EXPECTED RESULTS


def _samples(
    program: Program, back: bool, dtype: Any, *arrays: np.ndarray
) -> list[Sample]:
    """The result at some parts of the batch, and the gradients at some places."""
    cotangent, inputs = (arrays[0], arrays[1:]) if back else (None, arrays)
    rtol = program.rtol
    if rtol is None:
        rtol = RTOL.get(str(inputs[0].dtype), 0.0)
    size = len(inputs[0])
    parts = np.arange(size) if program.whole else np.unique([0, size - 1])
    values = program.oracle(*_parts(program, inputs, parts))
    rows = program.count(*inputs) if program.count else None
    if program.whole:
        shape, axes = values.shape, grid(values.shape)
        values = values[np.ix_(*axes)]
    else:
        shape, rest = (size, *values.shape[1:]), grid(values.shape[1:])
        axes, values = (parts, *rest), values[np.ix_(np.arange(len(parts)), *rest)]
    found = [Sample(shape, axes, values.astype(dtype), rows, rtol)]
    if cotangent is None:
        return found
    last = parts if program.whole else np.array([size - 1])
    some = _parts(program, inputs, last)
    pulled = cotangent if program.whole else cotangent[last]
    for i in program.wrt:
        axes = _places(some[i].shape, program.whole)
        values = _gradient(program, some, i, pulled.astype(np.float64), axes)
        values = values.astype(inputs[i].dtype)
        at = axes if program.whole else (last, *axes[1:])
        atol = program.atol * float(np.abs(values).max())
        found.append(Sample(inputs[i].shape, at, values, rtol=rtol, atol=atol))
    return found


def _parts(program: Program, inputs: Arrays, parts: np.ndarray) -> list[np.ndarray]:
    """These parts of the batch, with float64 in place of other floats."""
    chosen = [
        x if program.whole or i in program.shared else x[parts]
        for i, x in enumerate(inputs)
    ]
    return [x.astype(np.float64) if x.dtype.kind in "fV" else x for x in chosen]


def _places(shape: Sequence[int], whole: bool) -> tuple[np.ndarray, ...]:
    """A grid of a few random places; in a batch, only its first part."""
    random = np.random.default_rng(1)
    # The oracle runs twice for each place, which takes seconds on large arrays.
    count = 2 if math.prod(shape) < 2**16 else 1
    axes = [np.unique(random.integers(0, size, count)) for size in shape]
    return tuple(axes) if whole else (np.zeros(1, np.int64), *axes[1:])


def _gradient(
    program: Program, inputs: Arrays, i: int, cotangent: np.ndarray, axes: Arrays
) -> np.ndarray:
    """The derivatives at the grid, by differences of the oracle's results."""
    values = np.empty([len(axis) for axis in axes])
    for place in np.ndindex(*values.shape):
        at = tuple(axis[n] for axis, n in zip(axes, place, strict=True))
        x = inputs[i]
        ends = []
        before = x[at]
        for step in (STEP, -STEP):
            x[at] = before + step
            ends.append(program.oracle(*inputs))
        x[at] = before
        values[place] = (cotangent * (ends[0] - ends[1])).sum() / (2 * STEP)
    return values
