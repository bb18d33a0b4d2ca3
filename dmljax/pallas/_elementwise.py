"""A frame for kernels on a GPU that compute each output element from its offset.

ELEMENT_WISE_IF and DIAGONAL_MATRIX1 use it. There is one launch. A program has a block
of consecutive elements of the flat output, whatever its shape:

    output, 3 rows of 7    | a b c d e f g | h i j k l m n | o p q r s t u |
    programs               |-- program 0 --:-- program 1 --:-- program 2 --|
                             8 elements      8 elements      5, masked

So loads and stores are contiguous and as wide as the hardware allows, in rows of any
size. The price is that positions have to be computed from offsets, by divisions;
`Offsets` makes these few and cheap. A kernel whose programs have rows or tiles instead
(`_one_hot`, `_padding`) does not belong here, but borrows `Offsets` and `on_bits`.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl

from dmljax._tensor import Form, Outputs, index_mode, is_floating
from dmljax.pallas._launch import launch, load, store

# The bytes of the output that a program writes. With 8 warps of 32 threads a thread
# then stores 16 bytes, the widest store of a GPU. It was the best size on an H200 for
# elements of 1, 2 and 4 bytes alike.
BLOCK_BYTES = 4096


class Offsets(NamedTuple):
    """The offsets `base + within` of the elements of a block, in two parts.

    Only the base may need 64 bits. A GPU divides integers of 64 bits in many
    instructions, so it divides one base for the whole block, and for each element only
    32 bits.

    Attributes:
      base: a scalar, int32 or int64.
      within: (block,) uint32, or a scalar if all offsets are the same.
      run: the size of the block if its offsets follow one another, else 1.
    """

    base: Any
    within: Any
    run: int = 1

    def divided(self, size: int) -> tuple["Offsets", Any]:
        """The quotients by `size`, and the remainders, which are uint32.

        For offsets in an array whose last dimension has this size, they are the offsets
        in the array without it, and the positions along it.
        """
        integer = self.base.dtype.type
        base = lax.div(self.base, integer(size))
        rest = lax.rem(self.base, integer(size)).astype(np.uint32) + self.within
        # A row of whole blocks: every element of a block has the same quotient, and no
        # element needs a division.
        if self.run > 1 and size % self.run == 0:
            return Offsets(base, np.uint32(0)), rest
        quotient = lax.div(rest, jnp.full_like(rest, size))
        return Offsets(base, quotient), rest - quotient * np.uint32(size)

    def total(self) -> Any:
        """The offsets as one array, in the type of the base."""
        return self.base + self.within.astype(self.base.dtype)


# element(offsets, *loads) gives the values of a block's elements. There is one load for
# each operand: load(offsets_in_operand) reads elements of it.
Element = Callable[..., Any]


def elementwise(
    element: Element,
    *operands: jax.Array,
    shape: tuple[int, ...],
    operator: str,
    warps: int,
    interpret: bool,
    blocks: int = 1,
) -> Outputs:
    """An array of `shape` and of the last operand's type, with values from `element`.

    A program writes `blocks` times BLOCK_BYTES. `element` turns the `Offsets` of its
    elements into offsets in an operand with `offsets_in`.
    """
    dtype = operands[-1].dtype
    elements = math.prod(shape)
    block = blocks * BLOCK_BYTES // dtype.itemsize
    if not elements:
        return (jnp.zeros(shape, dtype),)
    # The last block may reach past the end, and its offsets must not wrap around.
    with index_mode(elements + block) as integer:
        (output,) = launch(
            _kernel,
            *(operand.ravel() for operand in operands),
            operator=operator,
            grid=(pl.cdiv(elements, block),),
            outputs=(jax.ShapeDtypeStruct((elements,), dtype),),
            warps=warps,
            interpret=interpret,
            element=element,
            elements=elements,
            block=block,
            integer=integer,
        )
    return (output.reshape(shape),)


def _kernel(
    *references: Any, element: Element, elements: int, block: int, integer: np.dtype
) -> None:
    *operands, output = references
    program = pl.program_id(0)
    base = program.astype(integer) * integer.type(block)
    offsets = Offsets(base, lax.iota(np.uint32, block), run=block)

    def write(mask: Any) -> None:
        loads = [_loader(operand, mask) for operand in operands]
        values = jnp.broadcast_to(element(offsets, *loads), (block,))
        store(output.at[offsets.total()], values, mask=mask)

    # Triton makes masked loads and stores narrow. So only the block that reaches past
    # the end of the output is masked.
    whole, rest = divmod(elements, block)
    if whole:
        pl.when(program < whole)(lambda: write(None))
    if rest:
        pl.when(program == whole)(lambda: write(offsets.total() < elements))


def _loader(reference: Any, mask: Any) -> Callable[[Any], Any]:
    def load_at(offsets: Any) -> Any:
        # One offset for the whole block: a scalar is read once, and is always inside.
        one = jnp.ndim(offsets) == 0
        return reference[offsets] if one else load(reference.at[offsets], mask=mask)

    return load_at


def offsets_in(operand: Sequence[int], offsets: Offsets, shape: Sequence[int]) -> Any:
    """Offsets in an array of `shape`, turned into offsets in an operand.

    The sizes of the operand are those of `shape`, or 1 where the operand is shared.
    """
    # Each group of dimensions costs a division. So neighbouring dimensions count as one
    # if the operand is shared along all of them, or along none.
    groups: list[tuple[int, bool]] = []
    for size, own in zip(shape, operand, strict=True):
        if size == 1:
            continue
        if groups and groups[-1][1] == (own > 1):
            size *= groups.pop()[0]
        groups.append((size, own > 1))
    if groups == [(math.prod(shape), True)]:
        return offsets.total()
    integer = offsets.base.dtype
    result, stride = integer.type(0), 1
    for i, (size, own) in reversed(list(enumerate(groups))):
        position: Any
        if i:
            offsets, position = offsets.divided(size)
        else:  # what is left of the offsets is the position along the first group
            position = offsets.total()
        if own:
            result += position.astype(integer) * integer.type(stride)
            stride *= size
    return result


def on_bits(form: Form) -> Form:
    """`form` for every type of its last two operands, which it only moves.

    The form gets the bits of these operands as unsigned integers. So a kernel has fewer
    types to compile, and keeps the bits of a NaN. Booleans and integers stay as they
    are, complex numbers are moved in two calls, and what is narrower than a byte is
    widened, because a GPU addresses no less.
    """

    def on_all_types(*operands: jax.Array, **static: Any) -> Outputs:
        *data, a, b = operands
        outputs = [
            form(*data, *parts, **static)[0]
            for parts in zip(_to_bits(a), _to_bits(b), strict=True)
        ]
        return (_from_bits(outputs, a.dtype),)

    return on_all_types


def _to_bits(x: jax.Array) -> list[jax.Array]:
    """The bits of `x`: one array, or two if it is complex."""
    if jnp.issubdtype(x.dtype, np.complexfloating):
        return [*_to_bits(x.real), *_to_bits(x.imag)]
    if is_floating(x.dtype):
        # Floats of less than a byte have no integer type of their size in memory.
        x = x.astype(np.float32) if jnp.finfo(x.dtype).bits < 8 else x
        bits = jnp.finfo(x.dtype).bits
        return [lax.bitcast_convert_type(x, np.dtype(f"uint{bits}"))]
    narrow = x.dtype != bool and jnp.iinfo(x.dtype).bits < 8
    return [x.astype(np.int8) if narrow else x]


def _from_bits(parts: Sequence[jax.Array], dtype: np.dtype) -> jax.Array:
    """The array of type `dtype` that has these bits: the inverse of `_to_bits`."""
    if jnp.issubdtype(dtype, np.complexfloating):
        part = np.dtype(f"float{4 * dtype.itemsize}")
        return lax.complex(*(_from_bits([bits], part) for bits in parts))
    (bits,) = parts
    if is_floating(dtype):
        wide = dtype if jnp.finfo(dtype).bits >= 8 else np.dtype(np.float32)
        bits = lax.bitcast_convert_type(bits, wide)
    return bits.astype(dtype)
