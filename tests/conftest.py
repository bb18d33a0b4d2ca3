"""What every test runs under: strict types, eight CPU devices, repeatable examples.

Programs are compiled as fast as XLA can. `XLA_FLAGS=--xla_backend_optimization_level=3`
compiles them as users' programs are compiled.
"""

import gc
import os

from tests import compiling

os.environ["XLA_FLAGS"] = compiling.flags(os.environ.get("XLA_FLAGS", ""))
# Several processes share a GPU; each would otherwise take most of its memory.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import hypothesis
import jax
import jax.numpy as jnp
import pytest

from dmljax.pallas import _platforms
from tests import samples
from tests.pallas import blocks, lockstep

# Tracing makes many small objects that live on; looking through all of them for cycles
# as often as Python does took a seventh of the time. A GPU's memory is scarcer: there,
# arrays that only a cycle keeps alive must go soon.
if blocks.SIMULATED:
    gc.freeze()
    gc.set_threshold(200_000, 20, 50)

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
# pytest tests/fuzz --hypothesis-profile=long draws more, and others each time.
hypothesis.settings.register_profile("long", max_examples=300, deadline=None)
hypothesis.settings.load_profile("dmljax")


@pytest.fixture
def x64():
    """JAX's x64 mode."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="module")
def standard_promotion():
    """The promotion of users' programs. The tests themselves forbid it."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


@pytest.fixture
def dtype(request):
    """A data type by its name (an indirect parameter), in x64 mode if it needs it."""
    name = request.param
    with jax.enable_x64(name in samples.WIDE):
        yield jnp.dtype(name)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder that is the current directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True, scope="session")
def simulator():
    """A CPU has simulated kernels of GPUs; with small blocks if there is no GPU."""
    with pytest.MonkeyPatch.context() as patch, lockstep.registered():
        if blocks.SIMULATED:
            blocks.put(patch, blocks.SMALL)
        yield


@pytest.fixture
def any_jax(monkeypatch):
    """Each JAX can build the toy's kernels, which are functions of jax.numpy."""
    monkeypatch.setattr(_platforms, "kernels_available", lambda platform: True)


@pytest.fixture
def real_blocks(monkeypatch):
    """Kernels have the blocks that users run."""
    blocks.put(monkeypatch, blocks.REAL)
