"""The forms of PADDING and of its adjoint, one by one."""

import itertools
import re
from functools import partial

import jax
import numpy as np
import pytest
from jax import export

from dmljax import PaddingMode, padding
from dmljax._jax import VERSION
from dmljax._padding import ADJOINT, PADDING
from dmljax._padding_forms import by_axes, gather_by_table, is_inside
from tests import samples
from tests.checks import assert_same, each_mode, lowered, struct
from tests.subjects.padding import adjoint_oracle, oracle

REPEATING = tuple(PaddingMode)[1:]
ON_CPU = PADDING.on_platform["cpu"]
BY_TABLE = partial(by_axes, gather_by_table)
CASES = [
    ((3, 4), (2, 3), (0, 1)),
    ((3, 4), (0, 0), (0, 0)),
    ((3, 4), (7, 1), (9, 2)),
    ((2, 3, 4), (1, 0, 2), (1, 0, 1)),
]
# Any amount at either end: a fold may begin and end anywhere.
for size, start in itertools.product((1, 2, 5), range(12)):
    CASES.append(((size,), (start,), (11 - start,)))


def assert_each(form, inputs, expected):
    """Compares a form with the oracle, with all cases in one program."""

    @jax.jit
    def program(inputs):
        cases = zip(inputs, CASES, strict=True)
        return [form(x, start=start, end=end)[0] for x, (_, start, end) in cases]

    for x, (_, start, end), found in zip(inputs, CASES, program(inputs), strict=True):
        name = f"{x.shape} {start} {end}"
        assert_same(found, expected(x, start=start, end=end), name)


@pytest.mark.parametrize(
    "form",
    [
        PADDING.definition,
        PADDING.auto_sharded,
        ON_CPU,
        PADDING.on_platform["tpu"],
        BY_TABLE,
    ],
    ids=["gather", "strips", "cpu", "join", "table"],
)
@each_mode
def test_padding(mode, form):
    """Few cases take the forms of a CPU, so each of these is called as well."""

    def padded(x, **pads):
        values = [np.full((1,) * x.ndim, 7, x.dtype)] * (mode is PaddingMode.CONSTANT)
        return form(x, *values, **pads, mode=mode)

    inputs = [samples.numbers(shape, "int8", 1) for shape, _, _ in CASES]
    expected = partial(oracle, mode=mode, value=7)
    assert_each(padded, inputs, expected)


@each_mode
@pytest.mark.parametrize(
    ("form", "dtype"),
    [(ADJOINT.definition, "float32"), (ADJOINT.on_platform["cpu"], "int8")],
    ids=["zeros", "pieces"],
)
def test_adjoint(form, dtype, mode):
    """Each fold is added to its element. Sums keep their type, and wrap around."""
    shapes = [tuple(map(sum, zip(*case, strict=True))) for case in CASES]
    inputs = [samples.numbers(n, dtype, 1) * np.asarray(40, dtype) for n in shapes]
    expected = partial(adjoint_oracle, mode=mode)
    assert_each(partial(form, mode=mode), inputs, expected)


@pytest.mark.parametrize(
    ("way", "shape", "start", "dtype"),
    [
        ("table" if VERSION < (0, 11, 2) else "join", (2, 9), (0, 1), "bfloat16"),
        ("join", (2, 96), (1, 1), "bool"),
        ("table", (2, 96), (1, 1), "int32"),
        ("table", (2, 96), (1, 1), "bfloat16"),
        ("table", (2, 95), (1, 1), "int8"),
        ("join", (2, 7, 15), (1, 1, 0), "int8"),
        ("table", (2, 6, 16), (1, 1, 0), "int8"),
        ("join", (2, 9), (0, 72), "float32"),  # a single axis, and 8 repetitions
        ("table", (2, 9), (0, 73), "float32"),
        ("computed", (2**20, 2**20), (1, 1), "float32"),
    ],
)
def test_the_form_of_a_cpu(way, shape, start, dtype):
    """Single axes are joined, and long rows of narrow types. Others are gathered."""
    pads = {"start": start, "end": start, "mode": PaddingMode.WRAP}
    program = jax.make_jaxpr(partial(ON_CPU, **pads))
    text = str(program(struct(dtype, *shape)))
    assert ["gather" in text, "concatenate" in text] == [way != "join", way == "join"]
    assert ("iota" in text) == (way == "computed")
    assert ("optimization_barrier" in text) == (max(start) > 72)  # it repeats


def test_a_lone_signal_is_joined_as_a_row_on_a_cpu():
    """XLA joins slices of one dimension by masked loads, which may be very slow."""
    pad = partial(ON_CPU, start=(1,), end=(1,), mode=PaddingMode.REFLECTION)
    text = str(jax.make_jaxpr(pad)(struct(np.float16, 9)))
    joins = re.findall(r":f16\[([\d,]+)\] = concatenate", text)
    assert joins
    assert all("," in sizes for sizes in joins)


@pytest.mark.parametrize(
    ("joins", "sizes", "end", "dtype"),
    [
        (False, "6", (2,), "float32"),  # a single axis, and a short strip
        (True, "5", (2,), "float32"),
        (True, "6", (2,), "bfloat16"),
        (True, "4, 6", (1, 2), "float32"),
        (False, "4, n + 6", (1, 2), "bfloat16"),
        (False, "4, 6", (0, 2), "float32"),
        # Faults: JAX can't compare 7-n with 1, nor cut pieces of a symbolic size.
        (False, "9", export.symbolic_shape("7-n", constraints=["n<=7"]), "f4"),
    ],
)
def test_the_adjoint_of_a_cpu(joins, sizes, end, dtype):
    """A single axis of a wide type is added between zeros, unless a strip is long."""
    pads = {"start": (1,) * len(end), "end": end, "mode": PaddingMode.SYMMETRIC}
    if end[0] == 0:
        pads["start"] = (0, 1)
    form = partial(ADJOINT.on_platform["cpu"], **pads)
    text = str(jax.make_jaxpr(form)(struct(dtype, *export.symbolic_shape(sizes))))
    assert ["pad[" in text, "concatenate" in text] == [not joins, joins]
    # Under CONSTANT, there is nothing to add and to join.
    form = partial(form, mode=PaddingMode.CONSTANT)
    text = str(jax.make_jaxpr(form)(struct(dtype, *export.symbolic_shape(sizes))))
    assert "concatenate" not in text


@pytest.mark.parametrize("sizes", ["8, n", "0, n, 4"])
def test_rows_of_an_unknown_length_are_gathered_on_a_cpu(sizes):
    """JAX can't say whether a symbolic length is long. An empty array has a size."""
    shape = export.symbolic_shape(sizes)
    pad = partial(ON_CPU, start=(1, 1), end=(1, 1), mode=PaddingMode.EDGE)
    text = str(jax.make_jaxpr(pad)(struct(np.int8, *shape)))
    assert "gather" in text


# LONG AXES

LONG = 720_000_000


@pytest.mark.parametrize("mode", REPEATING)
def test_indices_of_long_axes_have_64_bits(mode):
    x = struct(np.int32, LONG)
    ends = [2**31 - LONG]
    if mode in (PaddingMode.REFLECTION, PaddingMode.SYMMETRIC):
        # Start 1 is folded to almost two sizes ahead: the last is at about 2^31.
        ends.append(1)
    for end in ends:
        pad = partial(padding, start_padding=(1,), end_padding=(end,))
        assert "xi64>" in lowered(partial(pad, mode=mode), x)


@pytest.mark.parametrize("mode", REPEATING)
def test_strips_of_long_axes_are_placed_in_64_bits(mode):
    form = partial(PADDING.auto_sharded, start=(1,), end=(1,), mode=mode)
    # A fault: the size of the input, which needs 31 bits, decides about the type.
    text = jax.jit(form).lower(struct(np.int8, 2**31 - 1)).as_text()
    placed = re.findall(r"stablehlo.dynamic_update_slice .*<(i\d+)>\) ->", text)
    assert placed == ["i64", "i64"]


def test_the_inside_of_a_long_axis_is_compared_in_64_bits():
    """A planted fault: the positions along the axis are int32, whatever its size."""
    text = jax.jit(lambda: is_inside((2**31,), (1,), (1,))).lower().as_text()
    assert "tensor<2147483648xi64>" in text
