"""Tests that need a GPU: races and real sizes.

They are skipped without a GPU. With a GPU, all other tests run the kernels on it, too.
"""

import shutil
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import meshes
from tests.checks import python
from tests.pallas.nonzero import by_kernel as find

pytestmark = pytest.mark.skipif(
    jax.default_backend() != "gpu", reason="there is no GPU here"
)
LARGE = 2**24 + 5  # many programs, of which the last is cut


def sparse(density):
    x = jax.random.uniform(jax.random.key(1), (LARGE,))
    return jnp.where(x < density, 1 + x, 0)


@pytest.mark.parametrize("size", [None, 2**20])
@pytest.mark.parametrize("density", [0.001, 0.1, 0.2, 0.6, 1.0])
def test_twenty_runs_have_the_rows_of_xla(density, size):
    """All of them, or some. Many programs find them."""
    x = sparse(density)
    by_kernel, by_xla = (
        jax.jit(partial(find, size=size, implementation=implementation))
        for implementation in ("pallas", "xla")
    )
    wanted = by_xla(x)
    for _ in range(20):
        same = jax.tree.map(jnp.array_equal, by_kernel(x), wanted)
        assert jax.tree.all(same)


# MORE THAN 2^31 ELEMENTS


def sampled(size, count=100_000):
    """Sorted offsets of elements: the first, the last, those around 2^31, any."""
    random = np.random.default_rng(0).integers(0, size, count)
    first = np.arange(64)
    last = np.arange(size - 64, size)
    middle = np.arange(2**31 - 64, min(2**31 + 64, size))
    return np.unique(np.concatenate([random, first, last, middle]))


def test_nonzero_coordinates_of_more_than_31_bits():
    """In one process, because JAX keeps the memory that it has taken from a GPU."""
    for elements in (2**31 + 12, 2**32 - 4):
        for fill in (0, None):
            check_many_rows(elements, fill)


def check_many_rows(elements, fill):
    """Every 61st element is not zero, so row r is 61 r; and the last 3 elements."""

    @jax.jit
    def run():
        offset = jax.lax.broadcasted_iota(np.uint32, (elements,), 0)
        x = ((offset % 61 == 0) | (offset >= np.uint32(elements - 3))).astype(np.uint8)
        return find(x, fill=fill)

    count, rows = run()
    every = -(-elements // 61)
    tail = [n for n in range(elements - 3, elements) if n % 61]
    assert int(count) == every + len(tail)
    some = sampled(every)
    with jax.enable_x64(True):
        picked = np.asarray(rows[:, 0].at[jnp.asarray(some)].get())
        past = sampled(elements - int(count)) + int(count)
        filled = np.asarray(rows[:, 0].at[jnp.asarray(past)].get())
    np.testing.assert_array_equal(picked, (61 * some).astype(np.uint32))
    assert np.asarray(rows[every : every + len(tail), 0]).tolist() == tail
    assert fill is None or not filled.any()


# PROGRAMS THAT WAIT FOR ONE ANOTHER


def test_every_call_of_a_program_has_posts_of_its_own():
    """Programs of a launch wait for numbers. They must be 0 before each launch."""
    x = np.random.default_rng(0).random((3, 1 << 20)) < 0.1

    @partial(jax.jit, static_argnums=0)
    def run(implementation, lines):
        rows = partial(find, implementation=implementation)
        _, found = jax.lax.scan(lambda _, line: (None, rows(line)), None, lines)
        return found, [rows(line) for line in lines], jax.vmap(rows)(lines)

    for _ in range(3):
        same = jax.tree.map(jnp.array_equal, run("pallas", x), run("xla", x))
        assert jax.tree.all(same)


# THE SANITIZER

sanitizer = shutil.which("compute-sanitizer")
TOOLS = ["memcheck", "racecheck", "initcheck"]


@pytest.mark.skipif(sanitizer is None, reason="compute-sanitizer is not installed")
@pytest.mark.parametrize("tool", TOOLS)
def test_the_sanitizer_finds_nothing(tool):
    """Small runs of the kernels, in a new process.

    There, every array is a separate allocation, so that no neighbour hides an access
    out of bounds.
    """
    # Ports of its own: other tests may hold the default ones.
    port = str(20000 + 100 * TOOLS.index(tool))
    command = [sanitizer, "--tool", tool, "--error-exitcode", "1", "--port", port]
    # A kernel that waits without end would stop all tests: there is a time limit.
    done = python(
        *("-m", "tests.pallas.gpu.sanitized"),
        under=command,
        XLA_PYTHON_CLIENT_ALLOCATOR="platform",
    )
    printed = done.stdout + done.stderr
    assert done.returncode == 0, printed
    wanted = ("ERROR SUMMARY: 0 errors", "RACECHECK SUMMARY: 0 hazards")
    assert any(summary in printed for summary in wanted)
    assert "every kernel ran" in done.stdout


# SEVERAL GPUS


@meshes.each_kind
@meshes.divisions("2", "4", "2x2", devices=jax.device_count())
def test_several_gpus(case, mesh, spec, kind):
    """Values and collectives, as on virtual devices."""
    meshes.check_both(case, mesh, spec, kind, "gpu")
