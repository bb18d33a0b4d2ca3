"""The libraries: each converts arrays, prepares a call, and returns elements.

`benchmarks.others` and `benchmarks.programs` have the calls.
"""

import dataclasses
import functools
import importlib.util
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.others import module, torch_device

POISON = 0xA5
Call = Callable[..., Any]
Arrays = Sequence[Any]


@dataclasses.dataclass(frozen=True)
class Prepared:
    """A call that is ready to run, and the cost of its preparation.

    Attributes:
      run: the call.
      wait: waits for a result of the call.
      compile_ms: from the function to the compiled program; None without a program.
      peak_bytes: the memory of a program's inputs, outputs and temporaries.
    """

    run: Callable[[], Any]
    wait: Callable[[Any], Any]
    compile_ms: float | None = None
    peak_bytes: int | None = None


class Library:
    """NumPy, and the default methods of the other libraries.

    Attributes:
      needs: the modules that must be installed.
      platforms: JAX's platforms on which it is a contender.
    """

    needs: tuple[str, ...] = ("numpy",)
    platforms: tuple[str, ...] = ("cpu",)

    def put(self, array: np.ndarray) -> Any:
        """An array of the library, on the device."""
        return array

    def prepare(self, function: Call, arrays: Arrays, jit: bool = True) -> Prepared:
        """The call of `function`. Only JAX has `jit`."""
        return Prepared(functools.partial(function, *arrays), self.wait)

    def before_check(self, result: Any) -> None:
        """Makes sure that we notice an element that the call does not write."""

    def wait(self, result: Any) -> None:
        """Waits for a result."""

    def take(self, output: Any, positions: np.ndarray) -> np.ndarray:
        """The elements with these row-major numbers, in NumPy."""
        elements: np.ndarray = np.asarray(output).reshape(-1)[positions]
        return elements

    def release(self) -> None:
        """Frees memory that the library keeps for later."""


class OnnxRuntime(Library):
    """ONNX Runtime. It takes and returns NumPy's arrays."""

    needs = ("onnx", "onnxruntime")


class Jax(Library):
    """JAX: dmljax and jax.numpy."""

    needs = ("jax",)
    platforms: tuple[str, ...] = ("cpu", "gpu")

    def put(self, array: np.ndarray) -> jax.Array:
        """The array on JAX's first device."""
        on_device: jax.Array = jax.device_put(array, jax.devices()[0])
        return on_device

    def prepare(self, function: Call, arrays: Arrays, jit: bool = True) -> Prepared:
        """The call, compiled for these arrays if `jit` is true."""
        if not jit:
            return super().prepare(function, arrays)
        start = time.perf_counter()
        compiled = jax.jit(function).lower(*arrays).compile()
        compile_ms = (time.perf_counter() - start) * 1e3
        run = functools.partial(compiled, *arrays)
        return Prepared(run, self.wait, compile_ms, _peak_bytes(compiled))

    def before_check(self, result: Any) -> None:
        """Fills the memory that the allocator will hand out next with a pattern.

        The memory of `result` may hold the right elements. We free it, and the pattern
        takes it.
        """
        outputs = jax.block_until_ready(jax.tree.leaves(result))
        for output in outputs:
            output.delete()
        poison = [jnp.full(out.nbytes, POISON, np.uint8) for out in outputs]
        for array in jax.block_until_ready(poison):
            array.delete()

    def wait(self, result: Any) -> None:
        """Waits for a result."""
        jax.block_until_ready(result)

    def take(self, output: Any, positions: np.ndarray) -> np.ndarray:
        """Gathers on the device: a large result is not copied."""
        # Unsigned: numbers of more than 2^31 elements must not become negative.
        return np.asarray(_gather(output, positions.astype(np.uint32)))


def _peak_bytes(compiled: jax.stages.Compiled) -> int | None:
    memory = compiled.memory_analysis()
    if memory is None:
        return None
    peak_bytes: int = (
        memory.argument_size_in_bytes
        + memory.output_size_in_bytes
        + memory.temp_size_in_bytes
        - memory.alias_size_in_bytes
    )
    return peak_bytes


@jax.jit
def _gather(output: jax.Array, positions: jax.Array) -> jax.Array:
    return output.reshape(-1)[positions]


class Torch(Library):
    """PyTorch, eagerly."""

    needs = ("torch",)
    platforms = ("cpu", "gpu")

    def put(self, array: np.ndarray) -> Any:
        """A tensor on JAX's device. PyTorch does not know NumPy's bfloat16."""
        torch = module("torch")
        if array.dtype == "bfloat16":
            tensor = torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
        else:
            tensor = torch.from_numpy(array)
        return tensor.to(torch_device())

    def prepare(self, function: Call, arrays: Arrays, jit: bool = True) -> Prepared:
        """On a GPU, PyTorch may multiply float32 in TF32, as XLA does."""
        module("torch").set_float32_matmul_precision("high")
        return super().prepare(function, arrays)

    def wait(self, result: Any) -> None:
        """Waits for all launches."""
        if torch_device() == "cuda":
            module("torch").cuda.synchronize()

    def take(self, output: Any, positions: np.ndarray) -> np.ndarray:
        """Gathers on the device."""
        where = module("torch").from_numpy(positions).to(output.device)
        taken = output.detach().reshape(-1)[where].cpu()
        if taken.dtype == module("torch").bfloat16:
            taken = taken.float()
        elements: np.ndarray = taken.numpy()
        return elements

    def release(self) -> None:
        """Empties the cache of the GPU's memory."""
        if torch_device() == "cuda":
            module("torch").cuda.empty_cache()


_JAX = Jax()
# By the first word of a contender's name.
ALL: dict[str, Library] = {
    "dmljax": _JAX,
    "jnp": _JAX,
    "reference": _JAX,
    "numpy": Library(),
    "torch": Torch(),
    "onnxruntime": OnnxRuntime(),
}


def available(platform: str) -> dict[str, Library]:
    """The libraries for `platform`. Prints the names of missing ones."""
    found = {}
    for name, library in ALL.items():
        if platform in library.platforms:
            missing = [need for need in library.needs if not _installed(need)]
            if missing:
                print(f"{name} is left out: no {', '.join(missing)}", file=sys.stderr)
            else:
                found[name] = library
    return found


def versions(libraries: Mapping[str, Library]) -> dict[str, str]:
    """The versions of the modules of these libraries."""
    names = {"numpy"} | {name for one in libraries.values() for name in one.needs}
    return {name: module(name).__version__ for name in sorted(names)}


def _installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None
