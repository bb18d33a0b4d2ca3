"""The libraries: each converts arrays, prepares a call, and returns elements."""

import ctypes
import dataclasses
import functools
import importlib
import importlib.util
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

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
      module: the module that must be installed.
      platforms: JAX's platforms on which it is a contender.
    """

    module = "numpy"
    platforms: tuple[str, ...] = ("cpu",)

    def missing(self) -> str:
        """The name of a part that is not installed."""
        return "" if importlib.util.find_spec(self.module) else self.module

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


class Jax(Library):
    """JAX: dmljax and jax.numpy."""

    module = "jax"
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

    module = "torch"
    platforms = ("cpu", "gpu")

    def put(self, array: np.ndarray) -> Any:
        """A tensor on JAX's device. PyTorch does not know NumPy's bfloat16."""
        import torch

        # On a GPU, PyTorch may multiply float32 in TF32, as XLA does.
        torch.set_float32_matmul_precision("high")
        if array.dtype == "bfloat16":
            tensor = torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
        else:
            tensor = torch.from_numpy(array)
        return tensor.to("cuda" if jax.default_backend() == "gpu" else "cpu")

    def wait(self, result: Any) -> None:
        """Waits for all launches."""
        import torch

        if jax.default_backend() == "gpu":
            torch.cuda.synchronize()

    def take(self, output: Any, positions: np.ndarray) -> np.ndarray:
        """Gathers on the device. NumPy does not know bfloat16."""
        import torch

        where = torch.from_numpy(positions).to(output.device)
        taken = output.detach().reshape(-1)[where].cpu()
        if taken.dtype == torch.bfloat16:
            taken = taken.float()
        elements: np.ndarray = taken.numpy()
        return elements

    def release(self) -> None:
        """Empties the cache of the GPU's memory."""
        import torch

        if jax.default_backend() == "gpu":
            torch.cuda.empty_cache()


class Cub(Jax):
    """CUB's DeviceSelect, by the functions of cub.cu, on arrays of JAX.

    A function is a name and options: the number of rows, and the least element.
    """

    platforms = ("gpu",)

    def missing(self) -> str:
        """CUB is compiled by nvcc."""
        return "" if _nvcc() else "nvcc"

    def prepare(self, function: Call, arrays: Arrays, jit: bool = True) -> Prepared:
        """The call of a function of the library."""
        (x,) = arrays
        name, rows, dtype, *options = function(x)
        outputs = jnp.zeros(1, np.int32), jnp.zeros(rows, dtype)
        arrays = jax.block_until_ready((x, *outputs[::-1]))
        places = [ctypes.c_void_p(a.unsafe_buffer_pointer()) for a in arrays]
        select = getattr(_cub(), name)

        def run() -> Any:
            error = select(*places, ctypes.c_longlong(x.size), *options)
            if error:
                raise RuntimeError(f"CUDA's error {error}")
            return outputs  # the count, and the elements

        return Prepared(run, lambda _: _cub().finish())

    def before_check(self, result: Any) -> None:
        """The output was zero, and CUB leaves the elements past the count so."""
        _cub().finish()


def _nvcc() -> str | None:
    return shutil.which("nvcc", path="/usr/local/cuda/bin") or shutil.which("nvcc")


@functools.cache
def _cub() -> Any:
    source = pathlib.Path(__file__).with_name("cub.cu")
    library = pathlib.Path(tempfile.mkdtemp(), "cub.so")
    options = ["-O3", "-std=c++17", "-arch=native", "-shared", "-Xcompiler", "-fPIC"]
    subprocess.run([str(_nvcc()), *options, "-o", library, source], check=True)
    return ctypes.CDLL(str(library))


_JAX = Jax()
# By the first word of a contender's name.
ALL: dict[str, Library] = {
    "dmljax": _JAX,
    "jnp": _JAX,
    "reference": _JAX,
    "numpy": Library(),
    "torch": Torch(),
    "cub": Cub(),
}


def available(platform: str) -> dict[str, Library]:
    """The libraries for `platform`. Prints the names of missing ones."""
    found = {}
    for name, library in ALL.items():
        if platform in library.platforms:
            if library.missing():
                print(f"{name} is left out: no {library.missing()}", file=sys.stderr)
            else:
                found[name] = library
    return found


def versions(libraries: Mapping[str, Library]) -> dict[str, str]:
    """The versions of the modules of these libraries."""
    names = {"numpy", *(library.module for library in libraries.values())}
    return {name: importlib.import_module(name).__version__ for name in sorted(names)}
