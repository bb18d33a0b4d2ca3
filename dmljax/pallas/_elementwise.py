"""A frame for kernels on a GPU that choose between two values for each output element.

ELEMENT_WISE_IF, DIAGONAL_MATRIX1 and ONE_HOT use it. There is one launch of code per
thread (`_threads`). A thread writes *chunks*: neighbouring elements of the output, 16
bytes where it can be. Here a *row* is the last dimension of the output, or several of
the last ones, if every operand has all of them or none (`Group`). A chunk lies in one
row:

    output, 3 rows of 8    | a b c d e f g h | i j k l m n o p | q r s t u v w x |
    chunks of four         |------- -------- | ------- ------- | ------- --------|

So the coordinates of a chunk are computed once, by divisions, and its elements differ
in the last coordinate only. An operand is loaded once for a chunk, too: as a vector if
its elements are neighbours as well, else as one element for all. Several chunks that
need the same elements of the operands are a *run*: a thread loads for all of them once.
The price is that rows of odd size have chunks of one element.

PADDING has odd rows more often than not, and a kernel of its own. It has the groups,
the chunks and the programs in common with this frame.
"""

import contextlib
import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from dmljax._tensor import Outputs
from dmljax.pallas import WARP
from dmljax.pallas._launch import launch_threads
from dmljax.pallas._words import unpacked

CHUNK_BYTES = 16  # of a chunk at most: the widest load and store of a thread
WARPS = 4  # of a program: the fewest that can be launched
# The chunks of a thread by the bytes of an element, if no operand is as large as the
# output: a thread that loads little has time to write more. On an H200, a thread with
# one chunk took 1.15 to 1.3 times as long for one-hot sequences, and one with four
# chunks of float32 took 1.04 times as long as one with two. Where all threads load
# much, one is the best.
FILLED = {1: 4, 2: 4, 4: 2}
# If its chunks have fewer bytes than CHUNK_BYTES, a thread has more of them, so that it
# writes as many bytes, but at most this number. On an H200, a triangle of 8191 x 8191
# int8 took 1.5 times as long with 4 chunks of one byte as with 16.
MOST = 16

# condition(t, coordinates, values) is a truth value: whether an element is that of the
# last operand but one, and not that of the last one. The coordinates are those of the
# dimensions that `elementwise` is asked for, and the values are elements of the other
# operands.
Condition = Callable[..., Any]


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
      asked: whether `condition` takes the coordinate.
      run: how many coordinates the chunks of a run have, one chunk for each. It is 1 in
        all groups but one.
    """

    size: int
    owned: tuple[bool, ...]
    asked: bool
    run: int = 1

    @property
    def runs(self) -> int:
        """How many runs the coordinates are divided into."""
        return -(-self.size // self.run)


class Run(NamedTuple):
    """A run of chunks, with all that a thread needs to write it.

    Attributes:
      inside: whether the output has the first of them; None if every thread has one.
      coordinates: of the first element of the first chunk, in each group.
      values: the elements of each operand, or the one that they share.
    """

    inside: Any
    coordinates: list[Any]
    values: list[list[Any]]


def elementwise(
    condition: Condition,
    operands: Sequence[Operand],
    *,
    shape: tuple[int, ...],
    asked: Sequence[int],
    operator: str,
    interpret: bool,
) -> Outputs:
    """An array of `shape`: the last operand but one where `condition` holds.

    Elsewhere it is the last operand. `asked` has the dimensions whose coordinates
    `condition` takes.
    """
    dtype = operands[-1].array.dtype
    elements = math.prod(shape)
    if not elements:
        return (jnp.zeros(shape, dtype),)
    groups = groups_of(shape, [operand.sizes for operand in operands], asked)
    chunk = math.gcd(groups[-1].size, CHUNK_BYTES // dtype.itemsize)
    large = elements in (math.prod(operand.sizes) for operand in operands)
    each = 1 if large else FILLED[dtype.itemsize]
    each = min(each * CHUNK_BYTES // (chunk * dtype.itemsize), MOST)
    groups, each = in_runs(groups, each)
    runs = math.prod(group.runs for group in groups) // chunk
    # A program may reach past the end, and so may the last run.
    slack = WARPS * WARP * each * chunk
    reach = math.prod(group.runs * group.run for group in groups) + slack
    sizes = (operand.array.size for operand in operands)
    # Vectors are loaded from multiples of their size.
    for owned, operand in zip(groups[-1].owned, operands, strict=True):
        assert not owned or operand.first % chunk == 0
    (output,) = launch_threads(
        _kernel,
        *(operand.array.reshape(1, -1) for operand in operands),
        operator=operator,
        programs=-(-runs // (WARPS * WARP * each)),
        warps=WARPS,
        outputs=(jax.ShapeDtypeStruct((1, elements), dtype),),
        shared=(),
        interpret=interpret,
        condition=condition,
        groups=groups,
        first=[operand.first for operand in operands],
        chunk=chunk,
        runs=runs,
        each=each,
        # Offsets of 2^32 and more need 64 bits, which a GPU divides in many
        # instructions.
        wide=max(reach, *sizes) >= 2**32,
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


def in_runs(groups: Sequence[Group], each: int) -> tuple[list[Group], int]:
    """Puts chunks that share what a thread loads into runs, if there are such chunks.

    Takes how many chunks a thread has, and returns how many runs it has. On an H200,
    one-hot sequences of int8 that lie side by side took 1.9 times as long without runs,
    because a thread loaded the indices for each chunk. Those of float16 and of float32
    took 0.97 to 1.01 times as long.
    """
    groups = list(groups)
    for i in reversed(range(len(groups) - 1)):
        group = groups[i]
        if any(groups[-1].owned) and not any(group.owned) and group.size > 1:
            runs = -(-group.size // each)
            run = -(
                -group.size // runs
            )  # so the last run is about as long as the others
            groups[i] = dataclasses.replace(group, run=run)
            return groups, max(each // run, 1)
    return groups, each


def _kernel(
    t: Any,
    *memories: Any,
    condition: Condition,
    groups: Sequence[Group],
    first: Sequence[int],
    chunk: int,
    runs: int,
    each: int,
    wide: bool,
) -> None:
    *operands, output = memories
    whole = runs % (t.threads * each) == 0
    program, thread = (t.wide(n) if wide else n for n in (t.program, t.thread))
    work = []
    for i in range(each):
        number = (program * each + i) * t.threads + thread
        # A thread past the end loads what the first one does, and stores nothing.
        inside = None if whole else number < runs
        offset = (number if whole else t.select(inside, number, 0)) * chunk
        work.append(_loaded(inside, offset, operands, first, groups, chunk))
    # All is loaded before the first store, so that a thread waits only once.
    for found in work:
        for step in range(max(group.run for group in groups)):
            _write(t, output, found, step, condition, groups, chunk)


def _loaded(
    inside: Any,
    offset: Any,
    memories: Sequence[Any],
    first: Sequence[int],
    groups: Sequence[Group],
    chunk: int,
) -> Run:
    """Loads what a run needs.

    `offset` is that of the run in an output in which each run is one chunk.
    """
    coordinates = []
    for group in groups[:0:-1]:
        offset, coordinate = divided(offset, group.runs)
        coordinates.append(coordinate * group.run)
    # The rest of the offset is the coordinate in the first group.
    coordinates = [offset * groups[0].run, *coordinates[::-1]]
    values = []
    for i, memory in enumerate(memories):
        count = chunk if groups[-1].owned[i] else 1
        place = _place(coordinates, groups, [group.owned[i] for group in groups])
        values.append(_load(memory, place + first[i], count))
    return Run(inside, coordinates, values)


def _write(
    t: Any,
    output: Any,
    found: Run,
    step: int,
    condition: Condition,
    groups: Sequence[Group],
    chunk: int,
) -> None:
    """Writes one chunk of a run: the one with this number."""
    inside, coordinates, values = found
    coordinates = list(coordinates)
    for i, group in enumerate(groups):
        if group.run > 1:
            coordinates[i] = coordinates[i] + step
            if group.size % group.run:
                fits = coordinates[i] < group.size
                inside = fits if inside is None else fits & inside
    last = len(groups) - 1
    asked = [i for i, group in enumerate(groups) if group.asked]
    words: list[Any] = [0] * max(chunk * output.bits // 32, 1)
    for slot in range(chunk):
        at = [t.narrow(coordinates[i]) + (slot if i == last else 0) for i in asked]
        *own, a, b = (line[slot % len(line)] for line in values)
        word, shift = divmod(slot * output.bits, 32)
        # An operand that is shared is shifted once for all chunks, because it is
        # shifted before the choice.
        element = t.select(condition(t, at, own), a << shift, b << shift)
        words[word] = element | words[word]
    place = _place(coordinates, groups, [True] * len(groups))
    with contextlib.nullcontext() if inside is None else t.when(inside):
        output.put(place, chunk, words)


def _place(
    coordinates: Sequence[Any], groups: Sequence[Group], owned: Sequence[bool]
) -> Any:
    """The offset of an element in an array that has the groups that are `owned`."""
    place: Any = 0
    stride = 1
    for i in reversed(range(len(groups))):
        if owned[i]:
            place = coordinates[i] * stride + place
            stride *= groups[i].size
    return place


def divided(a: Any, size: int) -> tuple[Any, Any]:
    """The quotient of a number and a size, and the remainder."""
    quotient = a // size
    return quotient, a - quotient * size


def _load(memory: Any, place: Any, count: int) -> list[Any]:
    """So many elements from a place on, which is a multiple of their number."""
    each = min(count, CHUNK_BYTES * 8 // memory.bits)  # that are loaded at once
    found = []
    for i in range(0, count, each):
        words = memory.words(place + i, each)
        found += unpacked(words, each, memory.bits)
    return found
