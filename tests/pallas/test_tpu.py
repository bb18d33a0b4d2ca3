"""NONZERO_COORDINATES on a TPU: results in the interpreter, with small blocks.

The interpreter is slow. It reports races, fills unwritten
memory, and refuses reads outside of an array.
"""

import functools

import jax
import numpy as np
import pytest
from jax.experimental.pallas import tpu as pallas_tpu

from dmljax import DescriptorError
from dmljax.pallas import tpu
from tests.checks import launches, slow, struct
from tests.pallas.nonzero import KERNELS, assert_finds, by_kernel

BLOCK = 256  # the elements of a small block, and its rows


@pytest.fixture
def interpreter(monkeypatch, capfd):
    """The interpreter for TPUs; the test fails if there is a race."""
    monkeypatch.setattr(tpu, "WORDS", BLOCK // 32)
    settings = pallas_tpu.InterpretParams(
        detect_races=True, uninitialized_memory="nan", out_of_bounds_reads="raise"
    )
    # On a GPU, the interpreter would wait forever.
    interpreted = pallas_tpu.force_tpu_interpret_mode(settings)
    with jax.default_device(jax.devices("cpu")[0]), interpreted:
        yield
    pallas_tpu.reset_tpu_interpret_mode_state()
    assert "RACE" not in capfd.readouterr().out


def lines(elements):
    """Dense and sparse, empty and full lines, and lines cut at the edge of a block."""
    random = np.random.default_rng(0)
    offset = np.arange(elements)
    dense = random.random(elements) < 0.7
    edges = [offset < edge for edge in (0, BLOCK - 1, BLOCK + 1, elements)]
    last = offset == elements - 1
    return np.stack([dense, (offset >= BLOCK) & dense, *edges, dense & ~last, last])


@pytest.mark.parametrize(
    ("elements", "some", "rows", "fill"),
    [
        # A line of three blocks. In the output, it begins and ends between two blocks.
        slow(2 * BLOCK + 71, slice(1), None, 7),
        # Lines that share a block, with more set bits than rows and with fewer. A
        # planted fault: the words that fill the block begin at row 0.
        (100, slice(7), 40, 0),
        # Planted faults: bit words past the last row are kept, or begin past the count.
        slow(BLOCK + 71, slice(4, 7), 40, 0),
        slow(2 * BLOCK, slice(2, 6), None, 0),
        slow(2 * BLOCK + 71, slice(1, None, 2), BLOCK + 120, 2**32 - 1),
        slow(3 * BLOCK - 1, slice(0, None, 2), BLOCK, 0),
        slow(31, slice(None), 70, 7),
        # A planted fault: no room behind the rows for the rest of the last bit word.
        slow(2 * BLOCK + 71, slice(1), BLOCK - 1, 0),
    ],
)
def test_lines(interpreter, elements, some, rows, fill):
    batch = lines(elements)[some]
    assert_finds([batch], size=rows, fill=fill, kernel=KERNELS["tpu"])


@pytest.mark.parametrize("more", [0, 1])
def test_31_bits_count_all_elements_and_rows(more):
    most = 2**31 - 64 * tpu.WORDS - 32
    lines = 2**15
    for x, size in (
        (struct(np.uint8, most + more), 9),
        (struct(np.uint8, lines, 5), most // lines - 32 + more),
    ):
        find = functools.partial(by_kernel, size=size)
        call = find if x.ndim == 1 else jax.vmap(find)
        if more:
            with pytest.raises(DescriptorError, match=r"can't count .*; .*'xla'"):
                launches(call, x, platform="tpu")
        else:
            assert launches(call, x, platform="tpu") == 1
