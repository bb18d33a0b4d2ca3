"""`Case`: a piece of work that we time. `benchmarks.cases` has all of them.

`benchmarks.run` times a case, and `benchmarks.libraries` gives each library its arrays.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from benchmarks.data import Data
from benchmarks.oracles import Oracle

# By contender, for example "jnp" or "dmljax pallas": a library, and a word for the way
# if a library does the work in several ways.
Functions = Mapping[str, Callable[..., Any]]
# The contenders of an operator with a kernel, besides the default.
FORMS = ("dmljax xla", "dmljax pallas")


@dataclasses.dataclass(frozen=True)
class Case:
    """A piece of work, and its contenders.

    Attributes:
      operator: its name.
      name: the work in words; unique with `direction` and `context`.
      inputs: the arrays, not yet made.
      output: the largest output; we use only its sizes and its type.
      functions: by contender, a function that does the work on arrays of its library.
      oracle: computes the expected results from the inputs, in NumPy.
      moved: the fewest bytes to read and write, if not those of all inputs and of the
        output.
      ceiling: "copy" or "fill", the bandwidth to which we compare the work. None if
        memory does not limit the work.
      direction: "forward" or "gradient".
      context: "program": a program of users. "operator": the operator alone is a
        program. "pipeline": the operator between two elementwise operations. In these
        three, functions of JAX run inside `jit`. "call": we call them outside of `jit`.
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
        """The type of the array that the operator moves."""
        return self.inputs[-1].dtype if self.inputs else self.output.dtype

    @property
    def bytes(self) -> int:
        """The fewest bytes to read and write."""
        if self.moved is not None:
            return self.moved
        return sum(data.nbytes for data in (*self.inputs, self.output))

    @property
    def elements(self) -> int:
        """The elements of the largest array."""
        return max(data.size for data in (*self.inputs, self.output))

    @property
    def label(self) -> str:
        """The unique text of this case."""
        return f"{self.operator} {self.name} {self.direction} {self.context}"

    def arrays(self) -> tuple[np.ndarray, ...]:
        """The inputs, made at each call: memory can't hold the arrays of all cases."""
        return tuple(data.array() for data in self.inputs)
