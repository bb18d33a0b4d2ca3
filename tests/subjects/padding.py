"""PADDING under test: samples, edges, errors, sharding, support."""

import itertools
from functools import partial

import numpy as np

import dmljax
from dmljax import PaddingMode as Mode
from dmljax._directml.support import support_table
from tests import oracles
from tests.samples import (
    NUMPY,
    Described,
    Sample,
    Subject,
    Wrong,
    shape_of_rank,
    tensor,
)
from tests.sharded import Case
from tests.subjects import tables


def oracle(x, value=0, *, start, end, mode):
    """Pads by NumPy, whose modes are the same."""
    pads = [*zip(map(int, start), map(int, end), strict=True)]
    if not pads:
        return x
    values = {"constant_values": oracles.typed(value, x.dtype)}
    return np.pad(x, pads, NUMPY[mode], **(values if mode is Mode.CONSTANT else {}))


def adjoint_oracle(cotangent, *, start, end, mode):
    """Adds each element of the cotangent to its source. Integers wrap around."""
    axes = zip(cotangent.shape, start, end, strict=True)
    sizes = [n - s - e for n, s, e in axes]
    places = np.arange(np.prod(sizes)).reshape(sizes)
    # The padding of CONSTANT has the source -1.
    source = oracle(places, -1, start=start, end=end, mode=mode)
    sums = np.zeros(places.size + 1, cotangent.dtype)
    np.add.at(sums, source, cotangent)
    return sums[:-1].reshape(sizes)


def padding(x, value=0, *, start, end, **options):
    """The function, with the value as an operand."""
    return dmljax.padding(x, start, end, value=value, **options)


def padding_sample(name, mode, shape, start, end):
    """A sample of a padding; CONSTANT adds the value as an operand."""
    operands = (shape, ()) if mode is Mode.CONSTANT else (shape,)
    attributes = {"mode": mode, "start": start, "end": end}
    name = f"{mode.name.lower()} {name}"
    return Sample("padding", padding, oracle, name, operands, attributes)


# Padding of the first dimension, by less than a part.
NARROW = (3, 5)


def pad_rows(x, pads, mode, **options):
    """Pads the first of three dimensions."""
    start, end = ((n, 0, 0) for n in pads)
    return dmljax.padding(x, start, end, mode=mode, **options)


def _padded(maker):
    """The two tensors and the mode of a descriptor, and its paddings behind a count."""
    sizes = maker.sizes(most=20)
    rank = len(sizes)
    start, end = [0] * rank, [0] * rank
    for axis in maker.random.sample(range(rank), min(rank, 2)):
        start[axis], end[axis] = maker.random.choices((0, 1, 2, 3, 9), k=2)
    padded = tuple(map(sum, zip(sizes, start, end, strict=True)))
    tensors = maker.tensors(tables.ALL, sizes, padded)
    mode = maker.random.choice(list(Mode))
    return *tensors, mode, (rank, start, end)


def _make(maker):
    source, output, mode, pads = _padded(maker)
    return dmljax.PaddingDesc(source, output, mode, maker.float32(), *pads)


def _make1(maker):
    source, output, mode, pads = _padded(maker)
    data_type = output.data_type
    value = maker.number(data_type)
    return dmljax.Padding1Desc(source, output, mode, data_type, value, *pads)


def _expected1(desc, x, value=None):
    if value is None:
        value = oracles.read_value(desc.padding_value, desc.output_tensor.dtype)
    pads = {"start": desc.start_padding, "end": desc.end_padding}
    return (oracle(x, value, **pads, mode=desc.padding_mode),)


def _expected(desc, x):
    value = oracles.cast_padding_value(desc.padding_value, desc.output_tensor.dtype)
    return _expected1(desc, x, value)


DESC = dmljax.PaddingDesc(
    tensor("FLOAT32", 2, 3), tensor("FLOAT32", 3, 5), Mode.EDGE, 0.0, 2, (1, 0), (0, 2)
)
WHOLE = tensor("INT32", 2), tensor("INT32", 3), Mode.CONSTANT, dmljax.DataType.INT32
TYPED = dmljax.Padding1Desc(*WHOLE, 1, 1, (0,), (1,))

# SAMPLES

# tests/test_padding_forms.py has any amount at either end.
EDGES = [
    padding_sample("empty elsewhere", mode, (0, 2), (0, 3), (0, 1)) for mode in Mode
]
for rank, mode in zip(range(9), itertools.cycle(Mode), strict=False):
    shape = shape_of_rank(rank)
    ones = (1,) * rank
    EDGES.append(padding_sample(f"rank {rank}", mode, shape, ones, (0,) * rank))
EDGES += [
    padding_sample("empty", Mode.CONSTANT, (0,), (2,), (1,)),
    # Fault: the strips of complex numbers are cast to bits, which JAX refuses.
    padding_sample("complex", Mode.WRAP, np.complex64([1, 2j]), (3,), (1,)),
    padding_sample("of rank 8", Mode.CONSTANT, shape_of_rank(8), (1,) * 8, (0,) * 8),
]

# ERRORS


MATRIX = np.ones((2, 3), np.float32)


def pad(x=MATRIX, start=(1, 1), end=(1, 1), **options):
    return dmljax.padding(x, start, end, **options)


START = "start_padding (StartPadding)"
END = "end_padding (EndPadding)"
LENGTH = "; write one integer for each axis, and 0 where nothing is added"
LARGE = "; each element must be a UINT32, less than 2^32"
_call = partial(Wrong.of_call, "PADDING", pad)
_desc = partial(Wrong.of_descriptor, DESC)
_typed = partial(Wrong.of_descriptor, TYPED)
ERRORS = [
    _call(f"{START} is {{1}}, while...has sizes {{2,3}}{LENGTH}", start=(1,)),
    _call(f"{END} is {{1,1,1}}, while...has sizes {{2,3}}{LENGTH}", end=(1, 1, 1)),
    _call(f"{START} is {{-1,0}}; no element may be negative", start=(-1, 0)),
    _call(f"{END} is {{0,{2**32}}}{LARGE}", end=(0, 2**32)),
    _desc(
        "is 1, while the length of StartPadding is 2; both",
        dimension_count=1,
    ),
    # Fault: only the first list behind a count is checked.
    _desc(
        "DimensionCount is 2...of EndPadding is 1; both",
        end_padding=(0,),
    ),
    _desc(
        ": start_padding (StartPadding) is {1}, while...has sizes {",
        dimension_count=1,
        start_padding=(1,),
        end_padding=(0,),
    ),
    _typed(
        "PaddingValueDataType is FLOAT16, while tensor 'OutputTensor' has INT32; both",
        padding_value_data_type=dmljax.DataType.FLOAT16,
    ),
    _typed("is 2147483648; INT32 holds -2147483648 to 2147483647", padding_value=2**31),
    # The value must fit under every mode, although only CONSTANT uses it.
    _typed(
        "PaddingValue is 10.6; INT32 holds whole numbers",
        padding_value=10.6,
        padding_mode=Mode.WRAP,
    ),
]
for mode in tuple(Mode)[1:]:
    text = f"x (InputTensor) has sizes {{2,0}}; {mode.name} has nothing to repeat along"
    text += " axis 1, whose size is 0. Only CONSTANT"
    ERRORS.append(_call(text, MATRIX[:, :0], mode=mode))
    # The value is not used, but must have numbers.
    text = "value (PaddingValue) must be a number or an array, not str"
    ERRORS.append(_call(text, value="1", mode=mode, error=TypeError))

# SHARDING

# By row of the table: the padding, and a test whether the row applies to a division.
ALONG = {
    "batch": (
        NARROW,
        "dimensions that are not padded",
        lambda parts: parts[0] == 1 and parts[2] == 8,
    ),
    "narrow": (NARROW, "a padded dimension", lambda parts: parts[0] > 1),
    "wide": (
        (40, 8),  # longer than a part of 4 or 8
        "a dimension padded by more than a part",
        lambda parts: parts[0] in (4, 8) and max(parts[1:]) == 1,
    ),
}
SHARDED = {}
for mode in Mode:
    for name, (pads, along, fits) in ALONG.items():
        function = partial(pad_rows, pads=pads, mode=mode)
        row = ("`padding`", along)
        case = Case(function, row, fits, pads=pads)
        SHARDED[f"{mode.name}, {name}"] = case


def padded(mode, x):
    """Padding of more than the input may have."""
    return dmljax.padding(x, (1, 3), (2, 0), mode=mode)


def _symbolic(x, value):
    height, width = x.shape
    to_a_multiple = (0, width), (-height % 8, 1)
    return (
        *[padded(mode, x) for mode in Mode],
        dmljax.padding(x, *to_a_multiple, mode=Mode.REFLECTION),
        dmljax.padding(x, *to_a_multiple, value=value),
    )


SUBJECT = Subject(
    signature=(
        "(x, /, start_padding, end_padding, *, mode=<PaddingMode.CONSTANT: 0>, value=0)"
    ),
    arguments=(MATRIX, (1, 1), (1, 1), 0, np.float32(7)),
    names=("PaddingMode",),
    samples=tuple(
        padding_sample("matrix", mode, (4, 2), (5, 1), (3, 3)) for mode in Mode
    ),
    edges=EDGES,
    errors=ERRORS,
    sharded=SHARDED,
    symbolic=_symbolic,
    descriptors={
        "PADDING": Described(
            example=DESC,
            table=support_table(
                "InputTensor OutputTensor",
                V1_0=(4, 5, tables.FLOATS),
                V2_1=(4, 5, tables.SMALL),
                V3_1=(1, 8, tables.SMALL),
                V5_0=(1, 8, tables.ALL),
            ),
            make=_make,
            oracle=_expected,
        ),
        "PADDING1": Described(
            example=TYPED,
            table=support_table("InputTensor OutputTensor", V5_0=(1, 8, tables.ALL)),
            make=_make1,
            oracle=_expected1,
        ),
    },
)
