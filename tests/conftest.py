"""The setting of every test: strict types, eight CPU devices, repeatable examples.

Programs are compiled as fast as XLA can. `XLA_FLAGS=--xla_backend_optimization_level=3`
compiles them as users do.
"""

import gc
import os
from unittest import mock

from tests import compiling

os.environ["XLA_FLAGS"] = compiling.flags(os.environ.get("XLA_FLAGS", ""))
# Several processes share a GPU. By default, each would take most of its memory.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import hypothesis
import jax
import jax.numpy as jnp
import pytest

from dmljax._nonzero_coordinates import NONZERO_COORDINATES
from dmljax._nonzero_kernels import KERNELS
from tests import samples
from tests.pallas import blocks, lockstep

# Tracing makes many small objects that stay alive. Python searches them for cycles so
# often that this took a seventh of the time. On a GPU we keep Python's defaults: memory
# is scarce there, and arrays in a cycle must be freed soon.
if blocks.SIMULATED:
    gc.freeze()
    gc.set_threshold(200_000, 20, 50)

# Otherwise JAX adds a note to an error, and doctest takes the note for its message.
jax.config.update("jax_traceback_filtering", "off")
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

hypothesis.settings.register_profile(
    "dmljax",
    max_examples=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
# `nox -s fuzz` draws more, and others each time.
hypothesis.settings.register_profile("long", max_examples=300, deadline=None)
hypothesis.settings.load_profile("dmljax")


@pytest.fixture
def x64():
    """JAX's x64 mode."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(params=[False, True])
def both_x64(request):
    """JAX's x64 mode, off and on."""
    with jax.enable_x64(request.param):
        yield request.param


@pytest.fixture(scope="module")
def standard_promotion():
    """The promotion of users' programs. The tests themselves forbid it."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


@pytest.fixture
def dtype(request):
    """A data type by its name (an indirect parameter); wide types in x64 mode."""
    name = request.param
    with jax.enable_x64(name in samples.WIDE):
        yield jnp.dtype(name)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty current directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True, scope="session")
def small_blocks():
    """Simulated kernels have small blocks."""
    with pytest.MonkeyPatch.context() as patch:
        if blocks.SIMULATED:
            blocks.put(patch, blocks.SMALL)
        yield


@pytest.fixture(scope="module")
def simulator():
    """A CPU has simulated kernels of GPUs."""
    with mock.patch.dict(KERNELS, cpu=lockstep.kernel_of):
        yield


@pytest.fixture
def plain_kernels(monkeypatch):
    """A CPU has kernels that are the definitions.

    JAX exports no program that calls the simulator, and refuses the call where only
    some axes of a mesh are manual.
    """
    plain = NONZERO_COORDINATES.definition
    monkeypatch.setitem(KERNELS, "cpu", lambda flags, **static: plain)


@pytest.fixture
def real_blocks(monkeypatch):
    """The kernels have the block sizes of users."""
    blocks.put(monkeypatch, blocks.REAL)
