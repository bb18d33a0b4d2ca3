"""One piece of work that is timed."""

import dataclasses

import numpy as np

from benchmarks.data import Data
from benchmarks.oracles import Oracle
from benchmarks.others import Functions


@dataclasses.dataclass(frozen=True)
class Case:
    """One piece of work and the contenders that do it.

    Attributes:
      operator: its name.
      name: what is done, in words; unique with `direction` and `context`.
      inputs: the arrays, not made yet.
      output: the largest output, of which only the sizes and the type count.
      functions: by contender, the operator as a function of its library's arrays.
      oracle: what the results must hold, a function of the inputs in NumPy.
      dtype: the type of what the operator moves.
      bytes: the fewest that must be read and written.
      ceiling: "copy" or "fill", the bandwidth that the work is held against. None if
        memory is not what limits it.
      direction: "forward" or "gradient".
      context: "alone"; "pipeline" between two elementwise operations inside jit; or
        "program", a larger part of what users run.
      wrt: the input whose gradient is computed, if it is. The first of `inputs`, which
        `functions` do not take, is then the cotangent.
    """

    operator: str
    name: str
    inputs: tuple[Data, ...]
    output: Data
    functions: Functions
    oracle: Oracle
    dtype: str
    bytes: int
    ceiling: str | None = "copy"
    direction: str = "forward"
    context: str = "alone"
    wrt: int | None = None

    @property
    def elements(self) -> int:
        """Of the largest array."""
        return max(data.size for data in (*self.inputs, self.output))

    @property
    def label(self) -> str:
        """The text that tells this case from all others."""
        return f"{self.operator} {self.name} {self.direction} {self.context}"

    def arrays(self) -> tuple[np.ndarray, ...]:
        """The inputs, made now: not all cases' arrays fit into memory."""
        return tuple(data.array() for data in self.inputs)
