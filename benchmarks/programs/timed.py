"""A program that is timed, `Timed`, and its cases: by type and by direction."""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

from benchmarks.case import Case, Functions
from benchmarks.data import Data
from benchmarks.oracles import RTOL, Sample, grid
from benchmarks.others import module
from benchmarks.programs.ten import Program, Ways

FORWARD, BOTH = ("forward",), ("forward", "gradient")
SMALL = 2**18  # the elements of the arrays of a small program
# How far an input is moved to find a derivative: sums of whole numbers stay exact.
STEP = 2.0**-7
# Contenders that run on some platforms and in some types alone.
ONLY = {
    "jnp cudnn": ("gpu", "bfloat16"),
    "dmljax pallas": ("gpu", "bfloat16 float32 uint8"),
    "onnxruntime": ("cpu", "float32 int32"),
}
Arrays = Sequence[np.ndarray]


@dataclasses.dataclass(frozen=True)
class Timed:
    """A program, and what it is timed beside.

    Attributes:
      program: in JAX.
      dtypes: the types that it is used with.
      oracle: the program in NumPy. It gets float64 in place of other floats, and
        returns one array.
      torch: the program in PyTorch, by contender.
      more: other spellings in JAX, by contender.
      references: other programs. They show what a part of this one costs.
      directions: "gradient" is the result and the gradient by inputs `wrt`.
      wrt: the inputs that are differentiated.
      shared: the inputs that have no batch. All others, and the result, have one along
        their first axis; and each part of it can be computed alone.
      whole: no input has a batch.
      count: from the inputs, how many rows of a result are not padding, if some are.
      rtol: how far a number may be off; None is what sums of products in the type need.
      atol: the same, as a part of the largest number of a gradient.
      ceiling: as in `Case`.
    """

    program: Program
    oracle: Callable[..., np.ndarray]
    torch: Functions
    more: Functions = dataclasses.field(default_factory=dict)
    references: Functions = dataclasses.field(default_factory=dict)
    dtypes: Sequence[str] = ("bfloat16", "float32")
    directions: Sequence[str] = FORWARD
    wrt: Sequence[int] = (0,)
    shared: Sequence[int] = ()
    whole: bool = False
    count: Callable[..., int] | None = None
    rtol: float | None = None
    atol: float = 0.0
    ceiling: str | None = "copy"


def with_ways(program: Program, ways: Ways) -> Program:
    """The program, in more ways."""
    return program._replace(ways={**program.ways, **ways})


def cases_of(
    platform: str, name: str, timed: Timed, elements: int, dtypes: Sequence[str]
) -> Iterator[Case]:
    """A case for each type and direction."""
    for dtype in dtypes:
        inputs = tuple(
            Data(shape, type_, low=0, high=high, seed=seed)
            for seed, (shape, type_, high) in enumerate(
                timed.program.inputs(elements, dtype)
            )
        )
        structs = [jax.ShapeDtypeStruct(data.shape, data.dtype) for data in inputs]
        result = jax.eval_shape(timed.program.spellings["dmljax"], *structs)
        output = Data(result.shape, result.dtype.name)
        for direction in timed.directions:
            back = direction == "gradient"
            functions = _functions(platform, timed, dtype, back, elements > SMALL)
            cotangent = dataclasses.replace(output, low=1, high=3, seed=9)
            read = (cotangent, *inputs) if back else inputs
            pulled = sum(inputs[i].nbytes for i in timed.wrt) if back else 0
            yield Case(
                timed.program.operator,
                f"{name}, {dtype} {inputs[0].shape}",
                read,
                output,
                functions,
                functools.partial(_samples, timed, back, result.dtype),
                moved=sum(data.nbytes for data in (*read, output)) + pulled,
                ceiling=timed.ceiling,
                direction=direction,
                context="program",
            )


def _functions(
    platform: str, timed: Timed, dtype: str, back: bool, large: bool
) -> Functions:
    in_jax = {}
    for name, function in {**timed.program.spellings, **timed.more}.items():
        only_on, in_types = ONLY.get(name, (platform, dtype))
        if platform == only_on and dtype in in_types:
            in_jax[name] = function
    in_jax |= {f"reference {name}": one for name, one in timed.references.items()}
    in_torch = {**timed.torch}
    if large and platform == "gpu":  # it takes 10 s to compile, on a CPU 30 s
        in_torch["torch compiled"] = _compiled(timed.torch["torch"])
    if back:
        in_jax = {name: _both(one, timed.wrt) for name, one in in_jax.items()}
        in_torch = {n: _torch_both(one, timed.wrt) for n, one in in_torch.items()}
    return in_jax | in_torch


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
        leaves = [
            x.detach().requires_grad_() if i in wrt else x for i, x in enumerate(inputs)
        ]
        result = function(*leaves)
        chosen = [leaves[i] for i in wrt]
        # A result may have fewer rows than a static size allows for.
        grad = module("torch").autograd.grad
        return result, *grad(result, chosen, cotangent[: len(result)])

    return both


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function by torch.compile. A reset makes it forget earlier functions."""

    @functools.cache
    def program() -> Any:
        torch = module("torch")
        torch.compiler.reset()
        return torch.compile(function, dynamic=False)

    return lambda *arrays: program()(*arrays)


# WHAT THE RESULTS MUST BE


def _samples(timed: Timed, back: bool, dtype: Any, *arrays: np.ndarray) -> list[Sample]:
    """The result at some parts of the batch, and the gradients at some places."""
    cotangent, inputs = (arrays[0], arrays[1:]) if back else (None, arrays)
    rtol = timed.rtol
    if rtol is None:
        rtol = RTOL.get(str(inputs[0].dtype), 0.0)
    size = len(inputs[0])
    parts = np.arange(size) if timed.whole else np.unique([0, size - 1])
    values = timed.oracle(*_parts(timed, inputs, parts))
    rows = timed.count(*inputs) if timed.count else None
    if timed.whole:
        shape, axes = values.shape, grid(values.shape)
        values = values[np.ix_(*axes)]
    else:
        shape, rest = (size, *values.shape[1:]), grid(values.shape[1:])
        axes, values = (parts, *rest), values[np.ix_(np.arange(len(parts)), *rest)]
    found = [Sample(shape, axes, values.astype(dtype), rows, rtol)]
    if cotangent is None:
        return found
    last = parts if timed.whole else np.array([size - 1])
    some = _parts(timed, inputs, last)
    pulled = cotangent if timed.whole else cotangent[last]
    for i in timed.wrt:
        axes = _places(some[i].shape, timed.whole)
        values = _gradient(timed, some, i, pulled.astype(np.float64), axes)
        values = values.astype(inputs[i].dtype)
        at = axes if timed.whole else (last, *axes[1:])
        atol = timed.atol * float(np.abs(values).max())
        found.append(Sample(inputs[i].shape, at, values, rtol=rtol, atol=atol))
    return found


def _parts(timed: Timed, inputs: Arrays, parts: np.ndarray) -> list[np.ndarray]:
    """These parts of the batch, with float64 in place of other floats."""
    chosen = [
        x if timed.whole or i in timed.shared else x[parts]
        for i, x in enumerate(inputs)
    ]
    return [x.astype(np.float64) if x.dtype.kind in "fV" else x for x in chosen]


def _places(shape: Sequence[int], whole: bool) -> tuple[np.ndarray, ...]:
    """A grid of a few random places; of a batch there is one part alone."""
    random = np.random.default_rng(1)
    # The oracle runs twice for each place. This takes seconds if the arrays are large.
    count = 2 if math.prod(shape) < 2**16 else 1
    axes = [np.unique(random.integers(0, size, count)) for size in shape]
    return tuple(axes) if whole else (np.zeros(1, np.int64), *axes[1:])


def _gradient(
    timed: Timed, inputs: Arrays, i: int, cotangent: np.ndarray, axes: Arrays
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
            ends.append(timed.oracle(*inputs))
        x[at] = before
        values[place] = (cotangent * (ends[0] - ends[1])).sum() / (2 * STEP)
    return values
