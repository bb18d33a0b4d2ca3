"""A kernel's frame for operators that give each output element by its coordinates.

A program has a block of the output, in as many dimensions as that has, and of each
operand what the block needs: along a dimension in which an operand is shared, its one
element. The two minor dimensions stay as they are, so that no array is laid out anew.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl

from dmljax._check import NoKernelError, require, show
from dmljax._tensor import Outputs, is_floating
from dmljax.pallas._launch import Block, launch_blocks

LANES = 128
ROWS = 32  # a multiple of the rows of every type's tiles: 8, 16 and 32
ELEMENTS = 2**18  # of a block, with what its tiles do not use
# (positions, *values) -> values; `positions(axis)` are those along an axis, int32.
Formula = Callable[..., Any]


def by_blocks(
    formula: Formula,
    *operands: jax.Array,
    shape: tuple[int, ...],
    operator: str,
    interpret: Any,
) -> Outputs:
    """An array of `shape` and of the last operand's type, with the formula's values."""
    if math.prod(shape) == 0:
        return (jnp.zeros(shape, operands[-1].dtype),)
    ones = (1,) * max(2 - len(shape), 0)
    sizes = ones + shape
    taken = for_mosaic(operator, operands)
    taken = [operand.reshape(ones + operand.shape) for operand in taken]
    block = block_of(sizes)
    grid = tuple(map(pl.cdiv, sizes, block))
    (output,) = launch_blocks(
        _kernel,
        *taken,
        operator=operator,
        grid=grid,
        blocks=[
            *(shared_block(operand.shape, sizes, block) for operand in taken),
            shared_block(sizes, sizes, block),
        ],
        outputs=(jax.ShapeDtypeStruct(sizes, taken[-1].dtype),),
        interpret=interpret,
        formula=formula,
    )
    return (output.reshape(shape).astype(operands[-1].dtype),)


def block_of(
    shape: tuple[int, ...], given: Mapping[int, int] = MappingProxyType({})
) -> tuple[int, ...]:
    """The sizes of a block: whole minor dimensions as far as they find room.

    Those of some dimensions are given. The others are multiples of a tile, or all.

    >>> block_of((7, 3, 200)), block_of((3, 5000, 1000)), block_of((1, 10**6))
    ((7, 3, 200), (1, 256, 1000), (1, 32768))
    >>> block_of((9, 5000, 1000), {1: 5000})
    (1, 5000, 128)
    """
    last = len(shape) - 1
    rows = given.get(last - 1, min(shape[-2], ROWS))
    room = ELEMENTS // padded(rows, 8)
    block: list[int] = []
    for axis in range(last, -1, -1):
        step = {last: LANES, last - 1: ROWS}.get(axis, 1)
        if axis == last - 1:
            room = ELEMENTS // padded(block[0], LANES)
        fits = max(room // step, 1) * step
        block.append(given.get(axis, min(shape[axis], fits)))
        room //= padded(block[-1], step)
    return tuple(reversed(block))


def padded(size: int, step: int) -> int:
    return pl.cdiv(size, step) * step


def shared_block(
    operand: Sequence[int], shape: Sequence[int], block: Sequence[int]
) -> Block:
    """Of an operand of these sizes what a block needs: 1 where it is shared."""
    own = [
        axis
        for axis, (size, whole) in enumerate(zip(operand, shape, strict=True))
        if size == whole
    ]

    def place(*program: Any) -> tuple[Any, ...]:
        return tuple(
            number if axis in own else jnp.int32(0)
            for axis, number in enumerate(program)
        )

    sizes = tuple(size if axis in own else 1 for axis, size in enumerate(block))
    return Block(sizes, place, tuple(own))


def _kernel(*references: Any, formula: Formula) -> None:
    *operands, output = references
    block = output.shape

    def positions(axis: int) -> Any:
        axis %= len(block)
        line = tuple(size if i == axis else 1 for i, size in enumerate(block))
        first = pl.program_id(axis) * np.int32(block[axis])
        return first + lax.broadcasted_iota(np.int32, line, axis)

    values = [operand[...] for operand in operands]
    # Mosaic can't select between two narrow values that are each spread over a block.
    spread = all(value.shape[-2:] != block[-2:] for value in values[-2:])
    if spread:
        values[-2:] = map(in_words, values[-2:])
    result = jnp.broadcast_to(formula(positions, *values), block)
    output[...] = from_words(result, output.dtype) if spread else result


def in_words(x: Any) -> Any:
    """The bits of `x`, each element in 32 of them, inside a kernel."""
    if is_floating(x.dtype):
        x = lax.bitcast_convert_type(x, np.dtype(f"int{8 * x.dtype.itemsize}"))
    return x.astype(np.int32)


def from_words(words: Any, dtype: np.dtype) -> Any:
    """The values of type `dtype` that have these bits."""
    if is_floating(dtype):
        words = words.astype(np.dtype(f"int{8 * dtype.itemsize}"))
        return lax.bitcast_convert_type(words, dtype)
    return words.astype(dtype)


def for_mosaic(operator: str, operands: Sequence[jax.Array]) -> list[jax.Array]:
    """The operands in types that Mosaic computes with; all others are refused.

    Truth values, and what is smaller than a byte, become bytes.
    """
    for operand in operands:
        require(
            operator.upper(),
            _has(operand.dtype),
            f"the kernel for TPUs takes no {show(operand.dtype)}, for which Mosaic has "
            "no vectors; use implementation=None or 'xla'.",
            NoKernelError,
        )
    return [x.astype(np.int8) if _is_small(x.dtype) else x for x in operands]


def _has(dtype: np.dtype) -> bool:
    """Whether Mosaic has vectors of this type, or of one that holds its values."""
    if is_floating(dtype):
        return dtype != np.float16 and jnp.finfo(dtype).bits in (8, 16, 32)
    return dtype.itemsize <= 4 and not jnp.issubdtype(dtype, np.complexfloating)


def _is_small(dtype: np.dtype) -> bool:
    truth = jnp.issubdtype(dtype, np.bool_)
    return truth or (not is_floating(dtype) and jnp.iinfo(dtype).bits < 8)
