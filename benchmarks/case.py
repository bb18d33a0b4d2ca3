"""`Case`: a piece of work that we time. `benchmarks.cases` has all of them."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from benchmarks.data import Data

# By contender, for example "jnp" or "jnp scatter": a library, and a word for the way
# if a library does the work in several ways. The first is "dmljax".
Functions = Mapping[str, Callable[..., Any]]


@dataclasses.dataclass(frozen=True)
class Case:
    """A piece of work, and its contenders.

    Attributes:
      operator: its name.
      name: the work in words; unique with `direction` and `context`.
      inputs: the arrays, not yet made.
      functions: by contender, a function that does the work on arrays of its library.
      moves: whether memory limits the work: we compare it with a copy.
      direction: "forward" or "gradient".
      context: "program": a program of users. "shape": see `benchmarks.shapes`. In both,
        functions of JAX run inside `jit`. "call": we call them outside of `jit`.
      rtol: the relative difference between contenders that we allow, and an absolute
        one, as a part of the largest number.
    """

    operator: str
    name: str
    inputs: tuple[Data, ...]
    functions: Functions
    moves: bool = True
    direction: str = "forward"
    context: str = "program"
    rtol: float = 0.0

    @property
    def label(self) -> str:
        """The unique text of this case."""
        return f"{self.operator} {self.name} {self.direction} {self.context}"

    @property
    def structs(self) -> list[jax.ShapeDtypeStruct]:
        """The sizes and types of the inputs."""
        return [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in self.inputs]

    @property
    def _arrays(self) -> list[Any]:
        function = next(iter(self.functions.values()))
        outputs = jax.eval_shape(function, *self.structs)
        return [*self.structs, *jax.tree.leaves(outputs)]

    @property
    def bytes(self) -> int:
        """The fewest bytes to read and write: those of all inputs and outputs."""
        return int(sum(x.size * x.dtype.itemsize for x in self._arrays))

    @property
    def elements(self) -> int:
        """The elements of the largest array."""
        return int(max(x.size for x in self._arrays))

    def arrays(self) -> tuple[np.ndarray, ...]:
        """The inputs, made at each call: memory can't hold the arrays of all cases."""
        return tuple(data.array() for data in self.inputs)
