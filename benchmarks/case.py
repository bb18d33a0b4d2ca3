"""A piece of work that is timed: `Case`. All of them are in `benchmarks.cases`.

How it is timed belongs to `benchmarks.run`, and how a library gets its arrays to
`benchmarks.libraries`.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from benchmarks.data import Data
from benchmarks.oracles import Oracle

# By contender, for example "jnp" or "dmljax pallas": a library, and a word for the way
# if the library has several ways to do the work.
Functions = Mapping[str, Callable[..., Any]]
# The contenders of an operator that has a kernel, besides the one that is the default.
FORMS = ("dmljax xla", "dmljax pallas")


@dataclasses.dataclass(frozen=True)
class Case:
    """One piece of work and the contenders that do it.

    Attributes:
      operator: its name.
      name: what is done, in words; unique with `direction` and `context`.
      inputs: the arrays, not made yet.
      output: the largest output. Only its sizes and its type count.
      functions: what does the work, by contender. It takes arrays of its library.
      oracle: computes what the results must hold, from the inputs in NumPy.
      moved: the fewest bytes that must be read and written, if these are not those of
        all inputs and of the output.
      ceiling: "copy" or "fill", the bandwidth that the work is held against. None if
        memory is not what limits it.
      direction: "forward" or "gradient".
      context: "program": what users run. "operator": an operator is a program of its
        own. "pipeline": an elementwise operation stands before and after it. In these
        three, functions of JAX run inside `jit`. "call": they are called outside.
    """

    operator: str
    name: str
    inputs: tuple[Data, ...]
    output: Data
    functions: Functions
    oracle: Oracle
    moved: int | None = None
    ceiling: str | None = "copy"
    direction: str = "forward"
    context: str = "operator"

    @property
    def dtype(self) -> str:
        """The type of what the operator moves."""
        return self.inputs[-1].dtype if self.inputs else self.output.dtype

    @property
    def bytes(self) -> int:
        """The fewest bytes that must be read and written."""
        if self.moved is not None:
            return self.moved
        return sum(data.nbytes for data in (*self.inputs, self.output))

    @property
    def elements(self) -> int:
        """The elements of the largest array."""
        return max(data.size for data in (*self.inputs, self.output))

    @property
    def label(self) -> str:
        """The text that tells this case from all others."""
        return f"{self.operator} {self.name} {self.direction} {self.context}"

    def arrays(self) -> tuple[np.ndarray, ...]:
        """The inputs, made now. The arrays of all cases do not fit into memory."""
        return tuple(data.array() for data in self.inputs)
