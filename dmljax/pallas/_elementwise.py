"""A frame for kernels on a GPU that compute each output element from its coordinates.

ELEMENT_WISE_IF, DIAGONAL_MATRIX1 and ONE_HOT use it. There is one launch of code per
thread (`_threads`). A thread writes *chunks*: neighbouring elements of the output, 16
bytes where it can be. Here a *row* is the last dimension of the output, or several of
the last ones, if every operand has all of them or none (`Group`). A chunk lies in one
row:

    output, 3 rows of 8    | a b c d e f g h | i j k l m n o p | q r s t u v w x |
    chunks of four         |------- -------- | ------- ------- | ------- --------|

So the coordinates of a chunk are computed once, by divisions, and its elements differ
in the last coordinate only. An operand is loaded once for a chunk, too: as a vector if
its elements are neighbours as well, else as one element for all. The price is that rows
of odd size have chunks of one element.

PADDING has odd rows more often than not, and a kernel of its own. It shares `packed`
and `on_bits` with this frame.
"""

import contextlib
import dataclasses
import functools
import math
import operator as operators
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from dmljax._tensor import Form, Outputs, is_floating, x64_enabled
from dmljax.pallas import WARP
from dmljax.pallas._launch import launch_threads

CHUNK_BYTES = 16  # of a chunk at most: the widest load and store of a thread
# The warps of a program. On an H200, four took up to 1.3 times as long for 1 MiB, and
# sixteen up to 1.05 times as long for 64 MiB.
WARPS = 8
# The chunks of a thread, if no operand is as large as the output: a thread that loads
# little has time to write more. On an H200, a thread with one chunk took 1.1 to 1.2
# times as long for one-hot sequences. Where all threads load much, one is the best.
FILLED = 2
# If chunks have fewer bytes than CHUNK_BYTES, a thread has more of them, but at most so
# many times as many.
NARROW = 4

# value(t, coordinates, values) is an element: a number that holds its bits. The
# coordinates are those of the dimensions that `elementwise` is asked for, and the
# values are the operands' elements.
Value = Callable[..., Any]


class Operand(NamedTuple):
    """An array that a kernel reads.

    Attributes:
      array: its elements, and perhaps those of other operands.
      sizes: its size in each dimension of the output, 1 where it is shared.
      first: the offset of its first element in the array, a multiple of a chunk unless
        the operand is shared along the last dimension.
    """

    array: jax.Array
    sizes: tuple[int, ...]
    first: int = 0


@dataclasses.dataclass(frozen=True)
class Group:
    """Neighbouring dimensions of the output in which each operand is alike.

    Attributes:
      size: the product of their sizes.
      owned: for each operand, whether it has these dimensions. Otherwise it is shared
        along them.
      asked: whether `value` takes the coordinate.
    """

    size: int
    owned: tuple[bool, ...]
    asked: bool


def elementwise(
    value: Value,
    operands: Sequence[Operand],
    *,
    shape: tuple[int, ...],
    asked: Sequence[int],
    operator: str,
    interpret: bool,
) -> Outputs:
    """An array of `shape` and of the last operand's type, with elements from `value`.

    `asked` has the dimensions whose coordinates `value` takes.
    """
    dtype = operands[-1].array.dtype
    elements = math.prod(shape)
    if not elements:
        return (jnp.zeros(shape, dtype),)
    groups = groups_of(shape, [operand.sizes for operand in operands], asked)
    chunk = math.gcd(groups[-1].size, CHUNK_BYTES // dtype.itemsize)
    large = elements in (math.prod(operand.sizes) for operand in operands)
    each = 1 if large else FILLED
    each *= min(CHUNK_BYTES // (chunk * dtype.itemsize), NARROW)
    chunks = elements // chunk
    slack = WARPS * WARP * each * chunk  # of a program that reaches past the end
    sizes = (operand.array.size for operand in operands)
    # Vectors are loaded from multiples of their size.
    for owned, operand in zip(groups[-1].owned, operands, strict=True):
        assert not owned or operand.first % chunk == 0
    (output,) = launch_threads(
        _kernel,
        *(operand.array.reshape(1, -1) for operand in operands),
        operator=operator,
        step="",
        programs=-(-chunks // (WARPS * WARP * each)),
        warps=WARPS,
        outputs=(jax.ShapeDtypeStruct((1, elements), dtype),),
        shared=(),
        interpret=interpret,
        value=value,
        groups=groups,
        first=[operand.first for operand in operands],
        chunk=chunk,
        chunks=chunks,
        each=each,
        # Offsets of 2^32 and more need 64 bits, which a GPU divides in many
        # instructions.
        wide=max(elements + slack, *sizes) >= 2**32,
    )
    return (output.reshape(shape),)


def groups_of(
    shape: Sequence[int], operands: Sequence[Sequence[int]], asked: Sequence[int] = ()
) -> list[Group]:
    """The groups of the output's dimensions: at least one, and as few as there can be.

    Each group costs a division.
    """
    groups: list[Group] = []
    for axis, size in enumerate(shape):
        if size == 1 and axis not in asked:
            continue
        owned = tuple(sizes[axis] > 1 for sizes in operands)
        alike = groups and groups[-1].owned == owned and not groups[-1].asked
        if alike and axis not in asked:
            size *= groups.pop().size
        groups.append(Group(size, owned, axis in asked))
    return groups or [Group(1, (False,) * len(operands), False)]


def _kernel(
    t: Any,
    *memories: Any,
    value: Value,
    groups: Sequence[Group],
    first: Sequence[int],
    chunk: int,
    chunks: int,
    each: int,
    wide: bool,
) -> None:
    *operands, output = memories
    whole = chunks % (t.threads * each) == 0
    program, thread = (t.wide(n) if wide else n for n in (t.program, t.thread))
    work = []
    for i in range(each):
        number = (program * each + i) * t.threads + thread
        # A thread past the end loads what the first one does, and stores nothing.
        inside = None if whole else number < chunks
        offset = (number if whole else t.select(inside, number, 0)) * chunk
        loaded = _loaded(t, offset, operands, first, groups, chunk)
        work.append((inside, offset, *loaded))
    # All is loaded before the first store, so that a thread waits only once.
    for inside, offset, coordinates, values in work:
        elements = []
        for slot in range(chunk):
            at = [c + slot if along else c for c, along in coordinates]
            own = [line[slot % len(line)] for line in values]
            elements.append(value(t, at, own))
        with contextlib.nullcontext() if inside is None else t.when(inside):
            output.put(offset, chunk, packed(elements, output.bits))


def _loaded(
    t: Any,
    offset: Any,
    memories: Sequence[Any],
    first: Sequence[int],
    groups: Sequence[Group],
    chunk: int,
) -> tuple[list[tuple[Any, bool]], list[list[Any]]]:
    """What a chunk needs.

    Returns the coordinates that were asked for, of the chunk's first element, and
    whether they grow along the chunk; and for each operand its elements, or the one
    that is shared by all elements of the chunk.
    """
    coordinates = []
    places: list[Any] = list(first)
    strides = [1] * len(memories)
    last = len(groups) - 1
    for i, group in reversed(list(enumerate(groups))):
        coordinate = offset
        if i:  # what is left of the offset is the coordinate in the first group
            offset, coordinate = divided(offset, group.size)
        for j in np.flatnonzero(group.owned):
            places[j] = coordinate * strides[j] + places[j]
            strides[j] *= group.size
        if group.asked:
            coordinates.append((t.narrow(coordinate), i == last))
    values = [
        load(memory, place, chunk if owned else 1)
        for memory, place, owned in zip(memories, places, groups[-1].owned, strict=True)
    ]
    return coordinates[::-1], values


def divided(a: Any, size: int) -> tuple[Any, Any]:
    """The quotient of a number and a size, and the remainder."""
    quotient = a // size
    return quotient, a - quotient * size


def load(memory: Any, place: Any, count: int) -> list[Any]:
    """So many elements from a place on, which is a multiple of their number."""
    each = min(count, CHUNK_BYTES * 8 // memory.bits)  # that are loaded at once
    found = []
    for i in range(0, count, each):
        words = memory.words(place + i, each)
        found += unpacked(words, each, memory.bits)
    return found


def unpacked(words: Sequence[Any], count: int, bits: int) -> list[Any]:
    """The elements of words of 32 bits, each in a number of its own."""
    if bits == 32 or count == 1:
        return list(words)
    per_word = 32 // bits
    return [
        (words[i // per_word] >> (i % per_word * bits)) & (2**bits - 1)
        for i in range(count)
    ]


def packed(elements: Sequence[Any], bits: int) -> list[Any]:
    """Words of 32 bits that hold elements of fewer bits, the first in the lowest."""
    per_word = 32 // bits
    return [
        functools.reduce(
            operators.or_,
            (n << (i * bits) for i, n in enumerate(elements[first:][:per_word])),
        )
        for first in range(0, len(elements), per_word)
    ]


# THE TYPES


def on_bits(form: Form) -> Form:
    """`form` for every type of its last two operands, which it only moves.

    The form gets the bits of these operands as unsigned integers of 1, 2 or 4 bytes, or
    truth values. So a kernel has fewer types to compile, and keeps the bits of a NaN.
    Elements of 8 bytes and more are moved in several calls, and what is narrower than a
    byte is widened, because a GPU addresses no less.
    """

    def on_all_types(*operands: jax.Array, **static: Any) -> Outputs:
        *data, a, b = operands
        # JAX may lower this in another thread, which is not in x64 mode although there
        # are elements of 64 bits.
        with jax.enable_x64(any(map(_has_64_bits, operands)) or x64_enabled()):
            outputs = [
                form(*data, *parts, **static)[0]
                for parts in zip(_to_bits(a), _to_bits(b), strict=True)
            ]
            return (_from_bits(outputs, a.dtype),)

    return on_all_types


def _has_64_bits(x: jax.Array) -> bool:
    wide = 16 if jnp.issubdtype(x.dtype, np.complexfloating) else 8
    return bool(x.dtype.itemsize >= wide)


def _to_bits(x: jax.Array) -> list[jax.Array]:
    """The bits of `x`: an array, or one for each 4 bytes of an element."""
    if jnp.issubdtype(x.dtype, np.complexfloating):
        return [*_to_bits(x.real), *_to_bits(x.imag)]
    if x.dtype.kind == "b":  # which JAX does not turn into integers without a copy
        return [x]
    if (jnp.finfo if is_floating(x.dtype) else jnp.iinfo)(x.dtype).bits < 8:
        # Floats of less than a byte have no integer type of their size in memory.
        return _to_bits(x.astype(np.float32 if is_floating(x.dtype) else np.int8))
    bits = lax.bitcast_convert_type(x, np.dtype(f"uint{8 * min(x.dtype.itemsize, 4)}"))
    return [bits[..., i] for i in range(2)] if x.dtype.itemsize == 8 else [bits]


def _from_bits(parts: Sequence[jax.Array], dtype: np.dtype) -> jax.Array:
    """The array of type `dtype` that has these bits: the inverse of `_to_bits`."""
    if jnp.issubdtype(dtype, np.complexfloating):
        half, part = len(parts) // 2, np.dtype(f"float{4 * dtype.itemsize}")
        return lax.complex(*(_from_bits(p, part) for p in (parts[:half], parts[half:])))
    if dtype.kind == "b":
        return parts[0]
    if (jnp.finfo if is_floating(dtype) else jnp.iinfo)(dtype).bits < 8:
        wide = np.dtype(np.float32 if is_floating(dtype) else np.int8)
        return _from_bits(parts, wide).astype(dtype)
    bits = jnp.stack(parts, -1) if len(parts) > 1 else parts[0]
    return lax.bitcast_convert_type(bits, dtype)
