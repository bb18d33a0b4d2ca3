"""Code for one thread of a GPU, built for Pallas' Mosaic GPU backend.

Such a kernel is a Python function: the code of one thread. It takes a `Threads` object
and memories, and is traced once: each operation on a `Number` adds an instruction to
the program. Pallas offers `plgpu.inline_mgpu` for this.

    def add_one(t, source, target, *, size):
        i = t.program * t.threads + t.thread
        with t.when(i < size):
            target.store(i, source.load(i) + 1)

The tests run the same kernels on a CPU: there, each operation works on arrays with a
value for each thread (tests/pallas/lockstep.py).
"""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dmljax._jax import code_per_thread
from dmljax.pallas.gpu import WARP, Body

_parts = code_per_thread()
assert _parts is not None  # otherwise no kernel is chosen
inline, reference_type, address_of, mesh_of, ir, dialects = _parts
arith = dialects.arith
gpu = dialects.gpu
llvm = dialects.llvm
nvvm = dialects.nvvm
scf = dialects.scf
compare = arith.CmpIPredicate
integer = ir.IntegerType.get_signless  # MLIR's type of integers, by number of bits

_ALL_OF_A_WARP = 2**WARP - 1  # a bit for each thread of a warp
# This bit marks a posted word. `_WAIT` compares signed numbers, for which the word is
# then less than 0.
_POSTED = 2**31
_WAIT = """{
.reg .pred missing;
again:
ld.relaxed.gpu.global.u32 $0, [$1];
setp.ge.s32 missing, $0, 0;
@missing bra again;
}"""


def constant(value: int, bits: int = 32) -> "Number":
    """Returns the same number in all threads."""
    return Number(arith.constant(integer(bits), int(value)))


def _alike(*operands: Any) -> list[Any]:
    """Returns the MLIR values of operands, all with the width of the widest one.

    An operand is a number, or an integer of Python or NumPy.
    """
    widths = [operand.bits for operand in operands if isinstance(operand, Number)]
    bits = max(widths, default=32)
    numbers = (o if isinstance(o, Number) else constant(o, bits) for o in operands)
    return [number.in_bits(bits).value for number in numbers]


def _operation(build: Callable[..., Any], *kind: Any) -> Callable[..., "Number"]:
    """Makes a method of `Number` out of an operation of MLIR, such as a comparison.

    A comparison has a `kind`, such as `compare.ult`.
    """
    return lambda self, other: Number(build(*kind, *_alike(self, other)))


@dataclasses.dataclass(frozen=True, eq=False)
class Number:
    """An unsigned integer of 32 or 64 bits, or a truth value, of one thread."""

    value: Any

    __add__ = _operation(arith.addi)
    __sub__ = _operation(arith.subi)
    __mul__ = _operation(arith.muli)
    __floordiv__ = _operation(arith.divui)
    __mod__ = _operation(arith.remui)
    __and__ = _operation(arith.andi)
    __or__ = _operation(arith.ori)
    __xor__ = _operation(arith.xori)
    __lt__ = _operation(arith.cmpi, compare.ult)
    __gt__ = _operation(arith.cmpi, compare.ugt)
    __ge__ = _operation(arith.cmpi, compare.uge)
    __eq__ = _operation(arith.cmpi, compare.eq)  # type: ignore[assignment]
    __ne__ = _operation(arith.cmpi, compare.ne)  # type: ignore[assignment]

    def __rsub__(self, other: int) -> "Number":
        return constant(other, self.bits) - self

    @property
    def bits(self) -> int:  # 32 or 64, or 1 for a truth value
        return int(self.value.type.width)

    def in_bits(self, bits: int) -> "Number":
        """Widens the number to `bits` bits."""
        if self.bits == bits:
            return self
        return Number(arith.extui(integer(bits), self.value))


@dataclasses.dataclass(frozen=True)
class Memory:
    """An array of integers in a GPU's memory. Offsets are computed in 64 bits."""

    pointer: Any
    bits: int  # of an element

    @staticmethod
    def of(reference: Any) -> "Memory":
        """Returns the memory of a reference of MLIR, which has one dimension."""
        kind = ir.MemRefType(reference.type)
        # A truth value is a byte in memory.
        return Memory(address_of(reference), max(kind.element_type.width, 8))

    def part(self, offset: Any) -> "Memory":
        """Returns the memory from this offset on."""
        return dataclasses.replace(self, pointer=self._address(offset))

    def load(self, offset: Any) -> Number:
        """Loads the element at this offset, in 32 bits."""
        return self.words(offset, 1)[0]

    def words(self, offset: Any, elements: int) -> list[Number]:
        """Loads `elements` elements from this offset on, as words of 32 bits.

        The address must be a multiple of the size of all these elements.
        """
        size = elements * self.bits
        address = self._address(offset)
        if size <= 32:
            return [Number(llvm.load(integer(size), address)).in_bits(32)]
        count = size // 32
        vector = ir.VectorType.get([count], integer(32))
        loaded = llvm.load(vector, address, alignment=size // 8)
        return [
            Number(llvm.extractelement(loaded, constant(i).value)) for i in range(count)
        ]

    def store(self, offset: Any, *words: Number) -> None:
        """Stores an element for each word. The address is aligned as for `words`."""
        size = len(words) * self.bits
        value = words[0].value
        if size < 32:
            value = arith.trunci(integer(size), value)
        if len(words) > 1:
            assert size == 32 * len(words)
            value = llvm.mlir_undef(ir.VectorType.get([len(words)], integer(32)))
            for i, word in enumerate(words):
                value = llvm.insertelement(value, word.value, constant(i).value)
        llvm.store(value, self._address(offset), alignment=size // 8)

    def post(self, offset: Any, number: Number) -> None:
        """Posts a number of at most 31 bits for other programs, at most once.

        `relaxed` is enough, because other programs read this word alone:
        https://docs.nvidia.com/cuda/parallel-thread-execution/#memory-consistency-model
        """
        llvm.inline_asm(
            ir.Type.parse("!llvm.void"),
            [self._address(offset), (number | _POSTED).value],
            "st.relaxed.gpu.global.u32 [$0], $1;",
            "l,r",
            has_side_effects=True,
        )

    def wait(self, offset: Any) -> Number:
        """Waits for the number of another program, and returns the number."""
        word = llvm.inline_asm(
            integer(32), [self._address(offset)], _WAIT, "=r,l", has_side_effects=True
        )
        return Number(word) & (_POSTED - 1)

    def take(self, offset: Any) -> Number:
        """Adds 1 to a word, and returns the old word: no two callers get the same."""
        return Number(
            llvm.inline_asm(
                integer(32),
                [self._address(offset)],
                "atom.relaxed.gpu.global.add.u32 $0, [$1], 1;",
                "=r,l",
                has_side_effects=True,
            )
        )

    def _address(self, offset: Any) -> Any:
        offset = offset if isinstance(offset, Number) else constant(offset)
        return llvm.getelementptr(
            self.pointer.type,
            self.pointer,
            [(offset.in_bits(64) * (self.bits // 8)).value],
            [-(2**31)],  # the index is not a constant
            integer(8),
            llvm.GEPNoWrapFlags.none,
        )


class Threads:
    """The indices of one thread and its program, and the operations of a thread.

    All threads of a warp must together run `warp_scan`, `warp_sum`, `shuffle` and
    `warp_barrier`. All threads of a program must reach a `barrier`.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads  # of a program
        self.thread = self._index(gpu.thread_id)
        self.program = self._index(gpu.block_id)

    def _index(self, read: Callable[[Any], Any]) -> Number:
        return Number(arith.index_cast(integer(32), read(gpu.Dimension.x)))

    constant = staticmethod(constant)

    def narrow(self, number: Number) -> Number:
        """Returns the lower 32 bits of a number."""
        if number.bits == 32:
            return number
        return Number(arith.trunci(integer(32), number.value))

    def wide(self, number: Number) -> Number:
        """Returns the number in 64 bits."""
        return number.in_bits(64)

    def select(self, condition: Number, one: Any, other: Any) -> Number:
        """Returns `one` where the condition holds, else `other`."""
        return Number(arith.select(condition.value, *_alike(one, other)))

    def minimum(self, one: Any, other: Any) -> Number:
        return self.select(one < other, one, other)

    def ones(self, number: Number) -> Number:
        """Counts the set bits."""
        return Number(llvm.intr_ctpop(number.value))

    @contextlib.contextmanager
    def when(self, condition: Number) -> Iterator[None]:
        """Makes a context: only threads with this condition run its operations."""
        branch = scf.IfOp(condition.value)
        with ir.InsertionPoint(branch.then_block):
            yield
            scf.yield_([])

    def loop(self, rounds: Any, body: Body, *carry: Number) -> Sequence[Number]:
        """Runs `carry = body(i, *carry)` for all i below `rounds`.

        Each thread may have its own number of rounds.
        """
        bounds = _alike(0, rounds, 1)
        loop = scf.ForOp(*bounds, [number.value for number in carry])
        with ir.InsertionPoint(loop.body):
            carried = map(Number, loop.inner_iter_args)
            results = body(Number(loop.induction_variable), *carried) or ()
            scf.yield_([number.value for number in results])
        return [Number(result) for result in loop.results]

    def repeat(
        self, condition: Callable[..., Number], body: Body, *carry: Number
    ) -> Sequence[Number]:
        """Runs `carry = body(*carry)` while `condition(*carry)` is true."""
        values = [number.value for number in carry]
        kinds = [value.type for value in values]
        loop = scf.WhileOp(kinds, values)
        before, after = (part.blocks.append(*kinds) for part in loop.regions)
        with ir.InsertionPoint(before):
            holds = condition(*map(Number, before.arguments))
            scf.condition(holds.value, before.arguments)
        with ir.InsertionPoint(after):
            results = body(*map(Number, after.arguments)) or ()
            scf.yield_([number.value for number in results])
        return [Number(result) for result in loop.results]

    def warp_scan(self, number: Number) -> Number:
        """Adds up the numbers of this thread and of all lower threads in the warp.

        Hillis and Steele describe the steps (https://doi.org/10.1145/7902.7903).
        """
        lane = self.thread % WARP
        for distance in (1, 2, 4, 8, 16):
            below = self.shuffle(number, distance, mode="UP")  # from a lower thread
            number = number + self.select(lane >= distance, below, 0)
        return number

    def warp_sum(self, number: Number) -> Number:
        """Adds up the numbers of the warp."""
        # One instruction, instead of five shuffles and five additions.
        threads = constant(_ALL_OF_A_WARP).value
        return Number(nvvm.redux_sync(number.value, nvvm.ReductionKind.ADD, threads))

    def shuffle(self, number: Number, lane: Any, mode: str = "IDX") -> Number:
        """Returns the number that thread `lane` of the warp has."""
        operands = _alike(number, lane, WARP)
        return Number(gpu.ShuffleOp(*operands, gpu.ShuffleMode[mode]).results[0])

    def barrier(self) -> None:
        """Waits for all threads of the program, and for their stores."""
        gpu.barrier()

    def warp_barrier(self) -> None:
        """Waits for all threads of the warp, and for their stores."""
        nvvm.bar_warp_sync(constant(_ALL_OF_A_WARP).value)
