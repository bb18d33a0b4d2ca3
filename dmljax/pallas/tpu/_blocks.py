"""A frame for kernels on a TPU that compute each output element from its positions.

ELEMENT_WISE_IF, DIAGONAL_MATRIX1 and ONE_HOT use it. There is one launch. A program has
a block of the output, in as many dimensions as the output has, and the part of each
operand that the block needs. Along a dimension in which an operand is shared, that part
has size 1:

    output (6, 512)        first operand (6, 512)   second operand (1, 512)
    | block 0 | block 1 |  | block 0 | block 1 |    | block 0 | block 1 |
    | block 2 | block 3 |  | block 2 | block 3 |    (both rows of blocks read these)

The arrays keep their two minor dimensions. A reshape of these would lay out the tiles
of an array anew, which is a copy. `_padding` also uses what this file knows about
blocks and types. A kernel that does more than evaluate a formula has its own file.
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
from dmljax._types import Outputs, is_floating
from dmljax.pallas.tpu._launch import Block, launch_blocks

LANES = 128  # columns of a tile
# Rows of a block are a multiple of this, which is a multiple of the rows of a tile of
# each type: 8 for elements of 4 bytes, 16 for 2, and 32 for 1.
ROWS = 32
# The elements of a block at most, with those that its tiles have and do not use. In 4
# bytes each they are 1 MiB; three operands and the output, each of them twice for the
# pipeline, fit into the 16 MiB of vector memory.
ELEMENTS = 2**18
# formula(positions, *values) gives the values of a block. positions(axis) are its
# positions along an axis, int32, of size 1 along all other axes.
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
    # Mosaic needs two minor dimensions.
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
    shape: tuple[int, ...], fixed: Mapping[int, int] = MappingProxyType({})
) -> tuple[int, ...]:
    """The sizes of a block of an array of `shape`, which has ELEMENTS at most.

    `fixed` has the sizes along some dimensions. Along the others the block has the
    whole size, or if that does not fit, a multiple of a tile's size. The last dimension
    takes the room first, then the one before it, and so on.

    >>> block_of((7, 3, 200)), block_of((3, 5000, 1000)), block_of((1, 10**6))
    ((7, 3, 200), (1, 256, 1000), (1, 32768))
    >>> block_of((9, 5000, 1000), {1: 5000})
    (1, 5000, 128)
    """
    last = len(shape) - 1
    # The rows are not known yet when the columns are. They have at least this many.
    rows = fixed.get(last - 1, min(shape[-2], ROWS))
    room = ELEMENTS // padded(rows, 8)
    block: list[int] = []
    for axis in range(last, -1, -1):
        step = {last: LANES, last - 1: ROWS}.get(axis, 1)
        if axis == last - 1:
            room = ELEMENTS // padded(block[0], LANES)
        fits = max(room // step, 1) * step
        block.append(fixed.get(axis, min(shape[axis], fits)))
        room //= padded(block[-1], step)
    return tuple(reversed(block))


def padded(size: int, step: int) -> int:
    """The size, rounded up to a multiple of `step`."""
    return pl.cdiv(size, step) * step


def shared_block(
    operand: Sequence[int], shape: Sequence[int], block: Sequence[int]
) -> Block:
    """The part of an operand of these sizes that a block of an array needs."""
    own = [
        axis
        for axis, (size, whole) in enumerate(zip(operand, shape, strict=True))
        if size == whole
    ]

    def index_map(*program: Any) -> tuple[Any, ...]:
        # A shared operand has one block, so the pipeline fetches it once.
        return tuple(
            index if axis in own else jnp.int32(0) for axis, index in enumerate(program)
        )

    sizes = tuple(size if axis in own else 1 for axis, size in enumerate(block))
    return Block(sizes, index_map, tuple(own))


def _kernel(*references: Any, formula: Formula) -> None:
    *operands, output = references
    block = output.shape

    def positions(axis: int) -> Any:
        axis %= len(block)
        line = tuple(size if i == axis else 1 for i, size in enumerate(block))
        first = pl.program_id(axis) * np.int32(block[axis])
        return first + lax.broadcasted_iota(np.int32, line, axis)

    values = [operand[...] for operand in operands]
    # Mosaic can't select between two values of less than 32 bits if both are shared
    # along a minor dimension, and so are spread over the block.
    spread = all(value.shape[-2:] != block[-2:] for value in values[-2:])
    if spread:
        values[-2:] = map(to_bits, values[-2:])
    result = jnp.broadcast_to(formula(positions, *values), block)
    output[...] = from_bits(result, output.dtype) if spread else result


def to_bits(x: Any) -> Any:
    """The bits of `x` as int32, inside a kernel."""
    if is_floating(x.dtype):
        x = lax.bitcast_convert_type(x, np.dtype(f"int{8 * x.dtype.itemsize}"))
    return x.astype(np.int32)


def from_bits(bits: Any, dtype: np.dtype) -> Any:
    """The values of type `dtype` that have these bits: the inverse of `to_bits`."""
    if is_floating(dtype):
        bits = bits.astype(np.dtype(f"int{8 * dtype.itemsize}"))
        return lax.bitcast_convert_type(bits, dtype)
    return bits.astype(dtype)


def for_mosaic(operator: str, operands: Sequence[jax.Array]) -> list[jax.Array]:
    """The operands in types that Mosaic computes with.

    Booleans, and integers of less than a byte, become bytes. Types of which Mosaic has
    no vectors are an error; by default the operator then runs in XLA's form instead.
    """
    for operand in operands:
        require(
            operator.upper(),
            _has(operand.dtype),
            f"the kernel for TPUs takes no {show(operand.dtype)}, for which Mosaic has "
            "no vectors; use implementation=None or 'xla'.",
            NoKernelError,
        )
    return [x.astype(np.int8) if _is_narrow(x.dtype) else x for x in operands]


def _has(dtype: np.dtype) -> bool:
    """Whether Mosaic has vectors of this type, or of one that holds its values."""
    if is_floating(dtype):
        # A TPU computes with bfloat16, and not with float16.
        return dtype != np.float16 and jnp.finfo(dtype).bits in (8, 16, 32)
    return dtype.itemsize <= 4 and not jnp.issubdtype(dtype, np.complexfloating)


def _is_narrow(dtype: np.dtype) -> bool:
    boolean = jnp.issubdtype(dtype, np.bool_)
    return boolean or (not is_floating(dtype) and jnp.iinfo(dtype).bits < 8)
