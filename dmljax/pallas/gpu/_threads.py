"""Code for one thread of a GPU, built for Pallas' Mosaic GPU backend.

A kernel in this style is a Python function that says what one thread does. It takes a
`Threads` object and references to memory, and is traced once: each operation on a
`Number` adds an instruction to the program. This is what `plgpu.inline_mgpu` is for.

    def add_one(t, source, target, *, size):
        i = t.program * THREADS + t.thread
        with t.when(i < size):
            target.store(i, source.load(i) + 1)

`_lockstep` has the same operations on arrays that hold a value for each thread. There a
CPU runs the same kernels.

Here belongs how an operation is expressed in MLIR. What a kernel computes does not.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dmljax._jax import code_per_thread
from dmljax.pallas import WARP

_mlir = code_per_thread()
assert _mlir is not None  # `_launch` imports this module where JAX has all of it
ir, dialects = _mlir.ir, _mlir.dialects
_COMPARISONS = {"eq": 0, "ne": 1, "lt": 6, "le": 7, "gt": 8, "ge": 9}  # unsigned

_ALL_OF_A_WARP = 2**WARP - 1  # a bit for each of its threads
_POSTED = 2**31  # the bit of a word in memory that says that it was posted
_WAIT = """{
.reg .pred missing;
again:
ld.relaxed.gpu.global.u32 $0, [$1];
setp.ge.s32 missing, $0, 0;
@missing bra again;
}"""


def integer(bits: int) -> Any:
    """MLIR's type of integers of so many bits."""
    return ir.IntegerType.get_signless(bits)


def constant(value: int, bits: int = 32) -> "Number":
    """A number that is the same in all threads."""
    return Number(dialects.arith.constant(integer(bits), value))


def _arithmetic(name: str) -> Callable[[Any, Any], "Number"]:
    def method(self: "Number", other: Any) -> "Number":
        operation = getattr(dialects.arith, name)
        return Number(operation(self.value, self.like(other)))

    return method


def _comparison(name: str) -> Callable[[Any, Any], "Number"]:
    def method(self: "Number", other: Any) -> "Number":
        predicate = ir.IntegerAttr.get(integer(64), _COMPARISONS[name])
        return Number(dialects.arith.cmpi(predicate, self.value, self.like(other)))

    return method


@dataclasses.dataclass(frozen=True, eq=False)
class Number:
    """An unsigned integer of 32 or 64 bits, or a truth value, that one thread holds.

    The other operand may be a Python or NumPy integer. Shifts by all bits or more are
    undefined, as they are in LLVM.
    """

    value: Any

    __add__, __sub__ = _arithmetic("addi"), _arithmetic("subi")
    __mul__, __floordiv__ = _arithmetic("muli"), _arithmetic("divui")
    __mod__, __and__ = _arithmetic("remui"), _arithmetic("andi")
    __or__, __xor__ = _arithmetic("ori"), _arithmetic("xori")
    __lshift__, __rshift__ = _arithmetic("shli"), _arithmetic("shrui")
    __lt__, __le__ = _comparison("lt"), _comparison("le")
    __gt__, __ge__ = _comparison("gt"), _comparison("ge")
    __eq__, __ne__ = _comparison("eq"), _comparison("ne")  # type: ignore[assignment]

    @property
    def bits(self) -> int:
        """The number's bits: 32 or 64, or 1 for a truth value."""
        width: int = self.value.type.width
        return width

    def like(self, other: Any) -> Any:
        """The MLIR value of another operand, of this number's type."""
        if isinstance(other, Number):
            return other.value
        return constant(int(other), self.bits).value

    def wide(self) -> "Number":
        """The number in 64 bits."""
        return Number(dialects.arith.extui(integer(64), self.value))


@dataclasses.dataclass(frozen=True)
class Memory:
    """An array in a GPU's memory, of lines of `size` integers of `bits` bits.

    Offsets are computed in 64 bits.
    """

    pointer: Any
    bits: int
    size: int

    @staticmethod
    def of(pointer: Any, kind: Any) -> "Memory":
        """The memory of a reference of this type, at this address."""
        reference = ir.MemRefType(kind)
        # A truth value is a byte in memory.
        bits = max(reference.element_type.width, 8)
        return Memory(pointer, bits, reference.shape[-1])

    def at(self, line: Any) -> "Memory":
        """The memory of one line."""
        if isinstance(line, int) and line == 0:
            return self
        return dataclasses.replace(self, pointer=self._address(line, self.size))

    def part(self, offset: Any) -> "Memory":
        """The memory from this offset on."""
        return dataclasses.replace(self, pointer=self._address(offset))

    def load(self, offset: Any) -> Number:
        """The element at this offset, in 32 bits."""
        value = Number(dialects.llvm.load(integer(self.bits), self._address(offset)))
        return value if self.bits == 32 else _widened(value)

    def words(self, offset: Any, elements: int) -> list[Number]:
        """So many elements from this offset on, as words of 32 bits.

        Their address is a multiple of their size.
        """
        size = elements * self.bits
        count = max(size // 32, 1)
        if count == 1:
            value = dialects.llvm.load(integer(size), self._address(offset))
            return [Number(value) if size == 32 else _widened(Number(value))]
        vector = ir.VectorType.get([count], integer(32))
        address = self._address(offset)
        loaded = dialects.llvm.load(vector, address, alignment=size // 8)
        return [
            Number(dialects.llvm.extractelement(loaded, constant(i).value))
            for i in range(count)
        ]

    def store(self, offset: Any, *numbers: Number) -> None:
        """Stores numbers from this offset on, at an address as for `words`."""
        if len(numbers) > 1:
            assert self.bits == 32
        self.put(offset, len(numbers), numbers)

    def put(self, offset: Any, elements: int, words: Sequence[Number]) -> None:
        """Stores so many elements from this offset on, which lie in words of 32 bits.

        Their address is a multiple of their size.
        """
        size = elements * self.bits
        value = words[0].value
        if size < 32:
            value = dialects.arith.trunci(integer(size), value)
        if len(words) > 1:
            kind = ir.VectorType.get([len(words)], integer(32))
            value = dialects.llvm.mlir_undef(kind)
            for i, word in enumerate(words):
                value = dialects.llvm.insertelement(
                    value, word.value, constant(i).value
                )
        dialects.llvm.store(value, self._address(offset), alignment=size // 8)

    def post(self, offset: Any, number: Number) -> None:
        """Posts a number of at most 31 bits for other programs, at most once."""
        dialects.llvm.inline_asm(
            ir.Type.parse("!llvm.void"),
            [self._address(offset), (number | _POSTED).value],
            "st.relaxed.gpu.global.u32 [$0], $1;",
            "l,r",
            has_side_effects=True,
        )

    def wait(self, offset: Any) -> Number:
        """Waits until another program posts a number, and returns it."""
        return self._asm(_WAIT, offset) & (_POSTED - 1)

    def peek(self, offset: Any) -> Number:
        """The number that another program posted, plus 1; or 0 if none has yet."""
        word = self._asm("ld.relaxed.gpu.global.u32 $0, [$1];", offset)
        return (word & (_POSTED - 1)) + (word >> 31)

    def claim(self, offset: Any) -> Number:
        """Counts in a word of memory: the first call returns 0, the second one 1."""
        return self._asm("atom.relaxed.gpu.global.add.u32 $0, [$1], 1;", offset)

    def _asm(self, code: str, offset: Any) -> Number:
        """The word $0 that PTX code makes of the address $1."""
        address = [self._address(offset)]
        word = dialects.llvm.inline_asm(
            integer(32), address, code, "=r,l", has_side_effects=True
        )
        return Number(word)

    def _address(self, offset: Any, unit: int = 1) -> Any:
        if not isinstance(offset, Number):
            offset = constant(offset)
        offset = offset if offset.bits == 64 else offset.wide()
        return dialects.llvm.getelementptr(
            self.pointer.type,
            self.pointer,
            [(offset * (unit * self.bits // 8)).value],
            [-(2**31)],  # the index is not a constant
            integer(8),
            dialects.llvm.GEPNoWrapFlags.none,
        )


def _widened(value: Number) -> Number:
    return Number(dialects.arith.extui(integer(32), value.value))


class Threads:
    """The numbers of one thread, and the operations that are not a number's.

    All threads of a warp must run its operations together: `warp_scan`, `warp_sum`, the
    shuffles and `warp_barrier`.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads  # of a program
        gpu, index = dialects.gpu, dialects.arith.index_cast
        self.thread = Number(index(integer(32), gpu.thread_id(gpu.Dimension.x)))
        self.program = Number(index(integer(32), gpu.block_id(gpu.Dimension.x)))

    @staticmethod
    def constant(value: int, like: Number | None = None) -> Number:
        """A number that is the same in all threads, of 32 bits or as many as `like`."""
        return constant(value, 32 if like is None else like.bits)

    @staticmethod
    def narrow(number: Number) -> Number:
        """The lower 32 bits of a number."""
        if number.bits == 32:
            return number
        return Number(dialects.arith.trunci(integer(32), number.value))

    @staticmethod
    def as_wide(number: Number, other: Number) -> Number:
        """The number in as many bits as the other one has, which are not fewer."""
        return number if number.bits == other.bits else number.wide()

    @staticmethod
    def wide(number: Number) -> Number:
        """The number in 64 bits."""
        return number.wide()

    @staticmethod
    def select(condition: Number, one: Any, other: Any) -> Number:
        """`one` where the condition holds, else `other`."""
        number = one if isinstance(one, Number) else other
        values = (number.like(one), number.like(other))
        return Number(dialects.arith.select(condition.value, *values))

    @staticmethod
    def ones(number: Number) -> Number:
        """Counts the bits that are set."""
        return Number(dialects.llvm.intr_ctpop(number.value))

    @staticmethod
    @contextlib.contextmanager
    def when(condition: Number) -> Iterator[None]:
        """A context whose operations only threads with this condition run."""
        branch = dialects.scf.IfOp(condition.value)
        with ir.InsertionPoint(branch.then_block):
            yield
            dialects.scf.yield_([])

    @staticmethod
    def loop(
        rounds: Any, body: Callable[..., Sequence[Number]], *carry: Number
    ) -> Sequence[Number]:
        """`carry = body(i, *carry)` for all i below `rounds`, which may vary."""
        stop = rounds if isinstance(rounds, Number) else constant(rounds)
        bounds = (constant(0).value, stop.value, constant(1).value)
        loop = dialects.scf.ForOp(*bounds, [number.value for number in carry])
        with ir.InsertionPoint(loop.body):
            results = body(
                Number(loop.induction_variable), *map(Number, loop.inner_iter_args)
            )
            dialects.scf.yield_([number.value for number in results])
        return [Number(result) for result in loop.results]

    @staticmethod
    def repeat(
        condition: Callable[..., Number],
        body: Callable[..., Sequence[Number]],
        *carry: Number,
    ) -> Sequence[Number]:
        """`carry = body(*carry)` while the condition holds for them."""
        values = [number.value for number in carry]
        kinds = [value.type for value in values]
        loop = dialects.scf.WhileOp(kinds, values)
        before, after = (part.blocks.append(*kinds) for part in loop.regions)
        with ir.InsertionPoint(before):
            holds = condition(*map(Number, before.arguments))
            dialects.scf.condition(holds.value, before.arguments)
        with ir.InsertionPoint(after):
            results = body(*map(Number, after.arguments))
            dialects.scf.yield_([number.value for number in results])
        return [Number(result) for result in loop.results]

    def warp_scan(self, number: Number) -> Number:
        """The sum of this thread's number and of those below it in the warp."""
        lane = self.thread % WARP
        for distance in (1, 2, 4, 8, 16):
            below = self._shuffle("UP", number, distance)
            number = number + self.select(lane >= distance, below, 0)
        return number

    @staticmethod
    def warp_sum(number: Number) -> Number:
        """The sum of the numbers of the warp."""
        # One instruction, where adding up what threads exchange takes ten.
        nvvm, threads = dialects.nvvm, constant(_ALL_OF_A_WARP).value
        return Number(nvvm.redux_sync(number.value, nvvm.ReductionKind.ADD, threads))

    def shuffle_xor(self, number: Number, mask: int) -> Number:
        """The number of the thread of the warp whose number differs in these bits."""
        return self._shuffle("XOR", number, mask)

    def shuffle(self, number: Number, lane: Any) -> Number:
        """The number of this thread of the warp."""
        return self._shuffle("IDX", number, lane)

    @staticmethod
    def _shuffle(mode: str, number: Number, argument: Any) -> Number:
        gpu = dialects.gpu
        operands = (number.value, number.like(argument), constant(WARP).value)
        return Number(gpu.ShuffleOp(*operands, gpu.ShuffleMode[mode]).results[0])

    @staticmethod
    def barrier() -> None:
        """Waits for all threads of the program, and for what they stored."""
        dialects.gpu.barrier()

    @staticmethod
    def warp_barrier() -> None:
        """Waits for all threads of the warp, and for what they stored."""
        dialects.nvvm.bar_warp_sync(constant(_ALL_OF_A_WARP).value)
