"""A kernel's frame for operators that give each output element by its number.

A program has a block of consecutive elements, whatever the shape, so that loads and
stores are contiguous and as wide as the hardware has them, also in rows of odd sizes.
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

BLOCK_BYTES = 4096  # of the output; the best on an H200 for 1, 2 and 4 bytes


class Number(NamedTuple):
    """The numbers `first + lane` of a block's elements.

    Attributes:
      first: a scalar, which may need 64 bits.
      lane: (block,) uint32, or a scalar if all are the same. Apart from `first`, it is
        divided in 32 bits.
      run: the size of the block if its elements follow one another, else 1.
    """

    first: Any
    lane: Any
    run: int = 1

    def divided(self, size: int) -> tuple["Number", Any]:
        """The quotients by `size`, and the remainders, uint32 like the lanes."""
        integer = self.first.dtype.type
        first = lax.div(self.first, integer(size))
        rest = lax.rem(self.first, integer(size)).astype(np.uint32) + self.lane
        if self.run > 1 and size % self.run == 0:  # all have the same quotient
            return Number(first, np.uint32(0)), rest
        quotient = lax.div(rest, jnp.full_like(rest, size))
        return Number(first, quotient), rest - quotient * np.uint32(size)

    def whole(self) -> Any:
        """The numbers themselves."""
        return self.first + self.lane.astype(self.first.dtype)


# (number, *loads) -> values; a load takes the places of the elements in its operand.
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
    """An array of `shape` and of the last operand's type; `element` gives its values.

    A program has `blocks` of it. `element` is called with the `Number` of its elements,
    and for each operand with a function that loads them, at `place_in` it.
    """
    dtype = operands[-1].dtype
    elements = math.prod(shape)
    block = blocks * BLOCK_BYTES // dtype.itemsize
    if not elements:
        return (jnp.zeros(shape, dtype),)
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
    first = program.astype(integer) * integer.type(block)
    number = Number(first, lax.iota(np.uint32, block), run=block)

    def put(mask: Any) -> None:
        loads = [_loader(operand, mask) for operand in operands]
        values = jnp.broadcast_to(element(number, *loads), (block,))
        store(output.at[number.whole()], values, mask=mask)

    # A mask makes accesses narrow: only the block that reaches past the end has one.
    whole, rest = divmod(elements, block)
    if whole:
        pl.when(program < whole)(lambda: put(None))
    if rest:
        pl.when(program == whole)(lambda: put(number.whole() < elements))


def _loader(reference: Any, mask: Any) -> Callable[[Any], Any]:
    def load_at(place: Any) -> Any:
        shared = jnp.ndim(place) == 0
        return reference[place] if shared else load(reference.at[place], mask=mask)

    return load_at


def place_in(operand: Sequence[int], number: Number, shape: Sequence[int]) -> Any:
    """The places of elements in an operand of these sizes, 1 where it is shared.

    Neighbouring dimensions that are alike in that are one: it is divided as seldom as
    possible.
    """
    groups: list[tuple[int, bool]] = []
    for size, own in zip(shape, operand, strict=True):
        if size == 1:
            continue
        if groups and groups[-1][1] == (own > 1):
            size *= groups.pop()[0]
        groups.append((size, own > 1))
    if groups == [(math.prod(shape), True)]:
        return number.whole()
    integer = number.first.dtype
    place, stride = integer.type(0), 1
    for i, (size, own) in reversed(list(enumerate(groups))):
        coordinate: Any
        if i:
            number, coordinate = number.divided(size)
        else:
            coordinate = number.whole()
        if own:
            place += coordinate.astype(integer) * integer.type(stride)
            stride *= size
    return place


def on_words(form: Form) -> Form:
    """`form` for every type of its last two operands, which it only moves.

    It is given them as integers, or as truth values. Complex numbers are moved in two
    parts, and what is smaller than a byte is widened.
    """

    def on_all_types(*operands: jax.Array, **static: Any) -> Outputs:
        *data, a, b = operands
        outputs = [
            form(*data, *parts, **static)[0]
            for parts in zip(_words(a), _words(b), strict=True)
        ]
        return (_from_words(outputs, a.dtype),)

    return on_all_types


def _words(x: jax.Array) -> list[jax.Array]:
    if jnp.issubdtype(x.dtype, np.complexfloating):
        return [*_words(x.real), *_words(x.imag)]
    if is_floating(x.dtype):
        bits = jnp.finfo(x.dtype).bits
        x = x.astype(np.float32) if bits < 8 else x
        return [lax.bitcast_convert_type(x, np.dtype(f"uint{max(bits, 8)}"))]
    small = x.dtype != bool and jnp.iinfo(x.dtype).bits < 8
    return [x.astype(np.int8) if small else x]


def _from_words(words: Sequence[jax.Array], dtype: np.dtype) -> jax.Array:
    if jnp.issubdtype(dtype, np.complexfloating):
        part = np.dtype(f"float{4 * dtype.itemsize}")
        return lax.complex(*(_from_words([word], part) for word in words))
    (word,) = words
    if is_floating(dtype):
        wide = dtype if jnp.finfo(dtype).bits >= 8 else np.dtype(np.float32)
        word = lax.bitcast_convert_type(word, wide)
    return word.astype(dtype)
