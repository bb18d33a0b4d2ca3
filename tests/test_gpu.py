"""Tests of what only a GPU can show: races, real sizes, memory.

They are skipped where there is no GPU. The rest of the suite runs the kernels for real,
too, where it finds one.
"""

import functools
import os
import pathlib
import shutil
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType

import dmljax
from dmljax import PaddingMode
from tests import sanitized, test_sharding

pytestmark = pytest.mark.skipif(
    jax.default_backend() != "gpu", reason="there is no GPU here"
)
LARGE = 2**24 + 5  # many blocks, of which the last is cut


def normal(*shape):
    return jax.random.normal(jax.random.key(0), shape)


def sparse(elements, density):
    x = jax.random.uniform(jax.random.key(1), (elements,))
    return jnp.where(x < density, 1 + x, 0)


def kernel(function, **options):
    return functools.partial(function, implementation="pallas", **options)


# A function and its arrays, by name: forward and gradient of all operators.
@functools.cache
def uses():
    x, square = normal(LARGE), normal(4097, 4095)
    condition = (x > 0).astype(jnp.uint8)
    indices = jax.random.randint(jax.random.key(2), (2**17 + 1, 1), -130, 130)
    values = jnp.array([0.0, 1.0])
    image = normal(3, 5, 251, 509)
    pads = (0, 0, 3, 300)
    diagonal = kernel(dmljax.diagonal_matrix1, value=0, fill_begin=-(2**31))
    found = {
        "diagonal_matrix1": (diagonal, (square,)),
        "element_wise_if": (kernel(dmljax.element_wise_if), (condition, x, -x)),
        "one_hot": (kernel(dmljax.one_hot, size=129), (indices, values)),
        **{
            f"nonzero_coordinates {density}": (
                kernel(dmljax.nonzero_coordinates),
                (sparse(LARGE, density),),
            )
            for density in (0.001, 0.1, 0.6, 1.0)
        },
        **{
            f"padding {mode.name}": (
                lambda x, mode=mode: dmljax.padding(x, pads, pads, mode=mode),
                (image,),
            )
            for mode in PaddingMode
        },
        **{
            f"padding {mode.name} of {dtype} by kernel": (
                lambda x, mode=mode: kernel(dmljax.padding)(x, pads, pads, mode=mode),
                (image[..., 1:].astype(dtype),),
            )
            for mode in PaddingMode
            for dtype in ("float32", "float16", "int8")
        },
    }
    for name in ("diagonal_matrix1", "element_wise_if", "one_hot"):
        function, arrays = found[name]
        found[f"gradient of {name}"] = (gradient(function), arrays)
    for mode in PaddingMode:
        function, arrays = found[f"padding {mode.name}"]
        found[f"gradient of padding {mode.name}"] = (gradient(function), arrays)
    return found


def gradient(function):
    def energy(last, *first):
        out = function(*first, last)
        return (out * jnp.cos(out)).sum()

    return lambda *arrays: jax.grad(energy)(arrays[-1], *arrays[:-1])


FILLS = ("diagonal_matrix1", "element_wise_if", "one_hot")
MODES = [f"padding {mode.name}" for mode in PaddingMode]
FORWARD = [
    *FILLS,
    *(f"nonzero_coordinates {density}" for density in (0.001, 0.1, 0.6, 1.0)),
    *MODES,
    *(
        f"{name} of {dtype} by kernel"
        for name in MODES
        for dtype in ("float32", "float16", "int8")
    ),
]
BACK = [f"gradient of {name}" for name in (*FILLS, *MODES)]


def test_all_uses_are_tested():
    assert set(uses()) == {*FORWARD, *BACK}


@pytest.mark.parametrize("name", [*FORWARD, *BACK])
def test_twenty_runs_have_the_same_bits(name):
    function, arrays = uses()[name]
    call = jax.jit(function)
    equal = jax.jit(jnp.array_equal)
    first = jax.tree.map(bits, call(*arrays))
    for _ in range(20):
        again = jax.tree.map(bits, call(*arrays))
        assert jax.tree.all(jax.tree.map(equal, first, again))


def bits(x):
    return jax.lax.bitcast_convert_type(x, f"uint{8 * x.dtype.itemsize}")


@pytest.mark.parametrize("name", FORWARD)
def test_memory_is_that_of_the_arguments_and_the_outputs(name):
    function, arrays = uses()[name]
    memory = jax.jit(function).lower(*arrays).compile().memory_analysis()
    needed = memory.argument_size_in_bytes + memory.output_size_in_bytes
    assert memory.temp_size_in_bytes <= 0.05 * needed


# MORE THAN 2^31 ELEMENTS


def sampled(size, count=100_000):
    """Sorted numbers of elements: the first, the last, those around 2^31, any."""
    random = np.random.default_rng(0).integers(0, size, count)
    chosen = [*range(64), *range(size - 64, size)]
    chosen += range(2**31 - 64, min(2**31 + 64, size))
    return np.unique(np.concatenate([random, chosen]))


def test_nonzero_coordinates_of_more_than_31_bits():
    """In one process, because JAX keeps the memory that it once took from a GPU."""
    for elements in (2**31 + 12, 2**32 - 4):
        for fill in (0, None):
            check_many_rows(elements, fill)


def check_many_rows(elements, fill):
    """One element in 61 is not zero: row r is element 61 r, and more is at the end."""

    @jax.jit
    def run():
        number = jax.lax.broadcasted_iota(np.uint32, (elements,), 0)
        x = ((number % 61 == 0) | (number >= np.uint32(elements - 3))).astype(np.uint8)
        return dmljax.nonzero_coordinates(x, fill=fill, implementation="pallas")

    count, rows = run()
    every = -(-elements // 61)
    tail = [n for n in range(elements - 3, elements) if n % 61]
    assert int(count) == every + len(tail)
    places = sampled(every)
    with jax.enable_x64(True):
        picked = np.asarray(rows[:, 0].at[jnp.asarray(places)].get())
    np.testing.assert_array_equal(picked, (61 * places).astype(np.uint32))
    assert np.asarray(rows[every : every + len(tail), 0]).tolist() == tail
    if fill is not None:
        with jax.enable_x64(True):
            past = sampled(elements - int(count)) + int(count)
            assert not np.asarray(rows[:, 0].at[jnp.asarray(past)].get()).any()


def test_every_call_of_a_program_has_posts_of_its_own():
    """Programs of a launch wait for numbers, which must be 0 before each launch."""
    x = np.random.default_rng(0).random((3, 1 << 20)) < 0.1

    @functools.partial(jax.jit, static_argnums=0)
    def run(implementation, lines):
        find = functools.partial(
            dmljax.nonzero_coordinates, implementation=implementation
        )
        _, found = jax.lax.scan(lambda _, line: (None, find(line)), None, lines)
        return found, [find(line) for line in lines], jax.vmap(find)(lines)

    for _ in range(3):
        same = jax.tree.map(jnp.array_equal, run("pallas", x), run("xla", x))
        assert all(jax.tree.leaves(same))


@pytest.mark.parametrize("density", [0.01, 0.2, 0.6])
def test_rows_of_one_piece_and_of_several_are_those_of_xla(density):
    """A piece has all tiles of a warp, half of them, or one."""
    x = sparse(LARGE, density)
    find = functools.partial(jax.jit, static_argnums=1)(
        lambda x, implementation: dmljax.nonzero_coordinates(
            x, implementation=implementation
        )
    )
    same = jax.tree.map(jnp.array_equal, find(x, "pallas"), find(x, "xla"))
    assert all(jax.tree.leaves(same))


@pytest.mark.parametrize("implementation", ["xla", "pallas"])
@pytest.mark.parametrize("mode", PaddingMode)
def test_padding_of_more_than_31_bits(mode, implementation):
    """As bytes in two dimensions, whose element is a hash of its place."""
    odd = (2**16 + 1, 2**15 + 3)
    shape = odd if implementation == "xla" else (2**16 + 2, 2**15 + 6)
    pads = (5, 7)

    def value(row, column):
        return (row * 31 + column * 17) % 251

    @jax.jit
    def run():
        row, column = (jax.lax.broadcasted_iota(np.int32, shape, i) for i in (0, 1))
        x = value(row, column).astype(np.uint8)
        return dmljax.padding(
            *(x, pads, pads), mode=mode, value=253, implementation=implementation
        )

    modes = ("constant", "edge", "reflect", "symmetric", "wrap")
    sources = [
        np.pad(
            np.arange(size),
            pad,
            modes[mode],
            **({"constant_values": -1} if mode == PaddingMode.CONSTANT else {}),
        )
        for size, pad in zip(shape, pads, strict=True)
    ]
    out = run()
    assert out.size > 2**31
    places = sampled(out.size)
    where = np.unravel_index(places, out.shape)
    row, column = (s[i] for s, i in zip(sources, where, strict=True))
    expected = np.where((row < 0) | (column < 0), 253, value(row, column))
    np.testing.assert_array_equal(out[where], expected)


@pytest.mark.parametrize("dtype", ["uint16", "uint8"])
def test_kernels_of_more_than_32_bits(dtype):
    """Bytes that take 64 bits to count, in elements that need 32 and more."""
    shape = (2**16 + 1, 2**15 + 3 if dtype == "uint16" else 2**16 + 3)

    @jax.jit
    def run():
        row, column = (jax.lax.broadcasted_iota(np.int32, shape, i) for i in (0, 1))
        x = ((row * 31 + column * 17) % 251).astype(dtype)
        return kernel(dmljax.diagonal_matrix1, value=255, fill_begin=-7)(x)

    out = run()
    where = np.unravel_index(sampled(out.size), out.shape)
    row, column = where
    expected = (row * 31 + column * 17) % 251
    expected = np.where((column - row >= -7) & (column - row < 1), 255, expected)
    np.testing.assert_array_equal(out[where], expected)


# THE SANITIZER

ROOT = pathlib.Path(__file__).parent.parent
sanitizer = shutil.which("compute-sanitizer")


@pytest.mark.skipif(sanitizer is None, reason="compute-sanitizer is not installed")
@pytest.mark.parametrize("tool", ["memcheck", "racecheck", "initcheck"])
@pytest.mark.parametrize("operator", sanitized.RUNS)
def test_the_sanitizer_finds_nothing(operator, tool):
    """Small runs of the kernels of an operator, in a process of its own.

    Every array has an allocation of its own there, so that no neighbour hides an
    access out of bounds.
    """
    command = [sanitizer, "--tool", tool, "--error-exitcode", "1"]
    done = subprocess.run(
        [*command, sys.executable, "-m", "tests.sanitized", operator],
        cwd=ROOT,
        env={**os.environ, "XLA_PYTHON_CLIENT_ALLOCATOR": "platform"},
        capture_output=True,
        text=True,
        timeout=300,  # A kernel that waits without end would stop all tests.
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ERROR SUMMARY: 0 errors" in done.stdout + done.stderr or (
        "RACECHECK SUMMARY: 0 hazards" in done.stdout + done.stderr
    )
    assert "every kernel ran" in done.stdout


# SEVERAL GPUS


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
@test_sharding.divisions(["2", "4", "2x2"], devices=jax.device_count())
def test_several_gpus(case, mesh, spec, kind):
    """Values and collectives, as on virtual devices."""
    test_sharding.check_both(case, mesh, spec, kind, "gpu")
