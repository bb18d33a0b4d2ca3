"""The work that is timed: every case of the ledger comes from `cases`.

Here belong the operators as programs of their own, by size, type and attributes. What
users run belongs into `benchmarks.programs`.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

import dmljax
from benchmarks import calls, forms, oracles, others
from benchmarks.case import FORMS, Case, Functions
from benchmarks.data import Data
from benchmarks.oracles import Oracle, Sample
from benchmarks.programs import programs
from dmljax import PaddingMode
from dmljax._operators import OPERATORS

# Bytes of data: what a launch costs shows in the first, the caches in the last.
SMALL = (2**12, 2**16, 2**20, 2**24)
TYPES = ("float32", "float16", "int8")
DENSITIES = (0.001, 0.01, 0.1, 0.5, 1.0)
# The diagonals below the strictly upper triangle, and the main one.
BELOW, MAIN = (-(2**31), 1), (0, 1)
# What runs inside `jit`.
INSIDE_JIT = ("dmljax", *FORMS, "jnp")


def cases(elements: int) -> Iterator[Case]:
    """All cases, for large arrays of about `elements` elements and for small ones."""
    own = {
        "element_wise_if": element_wise_if_cases,
        "diagonal_matrix1": diagonal_matrix1_cases,
        "one_hot": one_hot_cases,
        "padding": padding_cases,
        "nonzero_coordinates": nonzero_coordinates_cases,
    }
    for generator in own.values():
        yield from generator(elements)
    for operator in sorted(OPERATORS.keys() - own):
        # It imports the tests' samples, which need what only tests need.
        from benchmarks import samples

        yield from samples.of_operator(operator, elements)
    yield from programs(elements)
    yield from calls.cases()
    yield from forms.cases(jax.default_backend(), elements)


def ours(
    operator: str, function: Callable[..., Any], *arguments: Any, **attributes: Any
) -> Functions:
    """The operator by default, and by each of its forms if it has a kernel."""

    def call(*arrays: Any, **form: str) -> Any:
        return function(*arrays, *arguments, **attributes, **form)

    has_kernel = bool(OPERATORS[operator].primitive.kernels)
    forms = {f: f.split()[1] for f in FORMS if has_kernel}
    return {"dmljax": call} | {
        name: functools.partial(call, implementation=form)
        for name, form in forms.items()
    }


def gradient(
    case: Case, wrt: int, oracle: Oracle, inputs: Sequence[int], **more: Any
) -> Case:
    """The cotangent of input `wrt`, which needs to read only `inputs`."""
    cotangent = dataclasses.replace(
        case.output, low=1, high=101, density=1.0, values=(), seed=3
    )
    result = case.inputs[wrt]
    read = [cotangent, *(case.inputs[i] for i in inputs)]
    return dataclasses.replace(
        case,
        inputs=(cotangent, *case.inputs),
        output=result,
        functions=_only(case.functions | more, (*INSIDE_JIT, "torch")),
        oracle=oracle,
        moved=sum(data.nbytes for data in (*read, result)),
        ceiling="copy",
        direction="gradient",
        wrt=wrt,
    )


def _only(functions: Functions, names: Sequence[str]) -> Functions:
    return {name: functions[name] for name in names if name in functions}


def with_pipeline(case: Case) -> Iterator[Case]:
    """The case, and the same between an operation on its data and one on its result."""
    yield case

    def pipeline(function: Callable[..., Any], *arrays: Any) -> Any:
        leaves, tree = jax.tree.flatten(function(*_doubled(case, arrays)))
        leaves[-1] += 1
        return jax.tree.unflatten(tree, leaves)

    def oracle(*arrays: Any) -> list[Sample]:
        *others, last = case.oracle(*_doubled(case, arrays))
        return [*others, dataclasses.replace(last, values=last.values + 1)]

    yield dataclasses.replace(
        case,
        functions={
            name: functools.partial(pipeline, function)
            for name, function in _only(case.functions, INSIDE_JIT).items()
        },
        oracle=oracle,
        context="pipeline",
    )


def _doubled(case: Case, arrays: Sequence[Any]) -> list[Any]:
    """What the pipeline does first: to the indices of one_hot, else to the data."""
    chosen = {"element_wise_if": (1, 2)}.get(case.operator, (0,))
    return [x * 2 if i in chosen else x for i, x in enumerate(arrays)]


def sizes(elements: int, dtype: str) -> list[int]:
    """Small and large numbers of elements, none above `elements`."""
    small = (size // np.dtype(dtype).itemsize for size in SMALL)
    return sorted({elements, *(min(size, elements) for size in small)})


# ELEMENT_WISE_IF


def element_wise_if_cases(elements: int) -> Iterator[Case]:
    """Three types, both types of the condition, and both gradients."""
    for dtype in TYPES:
        for size in sizes(elements, dtype):
            yield from with_pipeline(select((size,), dtype))
    yield select((elements,), "float32", "bool")
    case = select((elements,), "float32")
    for wrt, name in ((1, "a"), (2, "b")):
        oracle = functools.partial(oracles.element_wise_if_gradient, of_a=name == "a")
        one = gradient(case, wrt, oracle, (0,))
        yield dataclasses.replace(one, name=f"{case.name}, of {name}")


def select(shape: tuple[int, ...], dtype: str, condition: str = "uint8") -> Case:
    """Selects from two arrays, by a condition of this type."""
    return Case(
        "element_wise_if",
        f"{dtype} {shape}, {condition} condition",
        (
            Data(shape, condition, low=0, high=2),
            Data(shape, dtype, seed=1),
            Data(shape, dtype, seed=2),
        ),
        Data(shape, dtype),
        ours("element_wise_if", dmljax.element_wise_if)
        | others.element_wise_if(dtype, condition),
        oracles.element_wise_if,
    )


# DIAGONAL_MATRIX1


def diagonal_matrix1_cases(elements: int) -> Iterator[Case]:
    """Triangles of three types, batched, of odd width, gradients; identities."""
    for dtype in TYPES:
        for size in sizes(elements, dtype):
            yield from with_pipeline(upper(_square(size), dtype))
        yield _identity(_square(elements), dtype)
    height, width = _square(elements)
    yield upper((max(elements // 4096, 1), 64, 64), "float32")
    yield upper((height - 1, width + 1), "float32")
    for dtype in ("float32", "float16"):
        case = upper(_square(elements), dtype)
        oracle = _filled(oracles.diagonal_matrix1_gradient, case.output, 0, BELOW)
        yield gradient(case, 0, oracle, ())


def _square(elements: int) -> tuple[int, int]:
    return (math.isqrt(elements), math.isqrt(elements))


def _filled(
    formula: Callable[..., list[Sample]],
    output: Data,
    value: int,
    span: tuple[int, int],
) -> Oracle:
    begin, end = span
    fill = {"value": value, "begin": begin, "end": end}
    return functools.partial(formula, shape=output.shape, dtype=output.dtype, **fill)


def upper(shape: tuple[int, ...], dtype: str) -> Case:
    """Keeps what lies above the main diagonal."""
    begin, end = BELOW
    fill = {"value": 0, "fill_begin": begin, "fill_end": end}
    return Case(
        "diagonal_matrix1",
        f"strictly upper triangle, {dtype} {shape}",
        (Data(shape, dtype),),
        Data(shape, dtype),
        ours("diagonal_matrix1", dmljax.diagonal_matrix1, **fill)
        | others.strictly_upper(dtype),
        _filled(oracles.diagonal_matrix1, Data(shape, dtype), 0, BELOW),
    )


def _identity(shape: tuple[int, ...], dtype: str) -> Case:
    begin, end = MAIN
    fill = {"shape": shape, "dtype": dtype, "fill_begin": begin, "fill_end": end}
    return Case(
        "diagonal_matrix1",
        f"identity, {dtype} {shape}",
        (),
        Data(shape, dtype),
        ours("diagonal_matrix1", dmljax.diagonal_matrix1, **fill)
        | others.identity(shape, dtype),
        _filled(oracles.diagonal_matrix1, Data(shape, dtype), 1, MAIN),
        ceiling="fill",
    )


# ONE_HOT


def one_hot_cases(elements: int) -> Iterator[Case]:
    """Shallow to very deep, along two axes, types of indices and of values."""
    for dtype in TYPES:
        for size in sizes(elements, dtype):
            yield from with_pipeline(hot(_rows(size, 128), 128, dtype))
    for depth in (4, 1000, 50000):
        yield hot(_rows(elements, depth), depth, "float32")
    yield hot(_rows(elements, 128), 128, "float32", index="uint8")
    side = math.isqrt(_rows(elements, 128)[0])
    for dtype in TYPES:
        yield hot((side, 1, side), 128, dtype, axis=1)
    case = hot(_rows(elements, 128), 128, "float32")
    oracle = functools.partial(oracles.one_hot_gradient, axis=-1)
    functions = others.one_hot_by_comparison(128, -1)
    yield gradient(case, 1, oracle, (0,), torch=functions["torch"])


def _rows(elements: int, depth: int) -> tuple[int, int]:
    return (max(elements // depth, 1), 1)


def hot(
    indices: tuple[int, ...],
    depth: int,
    dtype: str,
    *,
    axis: int = -1,
    index: str = "int32",
) -> Case:
    """Sequences of a depth along an axis."""
    shape = list(indices)
    shape[axis] = depth
    output = Data(tuple(shape), dtype)
    return Case(
        "one_hot",
        f"{dtype} {output.shape}, axis {axis}, {index} indices",
        (Data(indices, index, low=0, high=depth), Data((2,), dtype, values=(0, 1))),
        output,
        ours("one_hot", dmljax.one_hot, size=depth, axis=axis)
        | others.one_hot(output.shape, axis, dtype, index),
        functools.partial(oracles.one_hot, size=depth, axis=axis),
        ceiling="fill",
    )


# PADDING


def padding_cases(elements: int) -> Iterator[Case]:
    """All modes of few and many elements, on several axes, forward and back."""
    image = _image(elements)
    *batch, side, _ = image
    odd, wide = (*batch, side - 1, side + 1), min(100, side - 1)
    around = [
        (image, ((0, 0), (0, 0), (wide, wide), (wide, wide))),
        (image, ((0, 0), (0, 0), (0, 0), (0, 3))),
        (odd, ((0, 0), (0, 0), (3, 3), (5, 5))),
    ]
    for mode in PaddingMode:
        for shape, pads in [(image, _by_three(image)), *around]:
            case = padded(shape, pads, mode, "float32")
            yield case
            oracle = functools.partial(
                oracles.padding_gradient, pads=pads, mode=others.numpy_mode(mode)
            )
            # The adjoint has no kernel.
            functions = _only(case.functions, ("dmljax", "jnp", "torch"))
            case = dataclasses.replace(case, functions=functions)
            yield gradient(case, 0, oracle, ())
        for dtype in ("float16", "int8"):
            yield padded(image, _by_three(image), mode, dtype)
    for size in sizes(elements, "float32")[:-1]:
        small = _image(size)
        mode = PaddingMode.REFLECTION
        yield from with_pipeline(padded(small, _by_three(small), mode, "float32"))
    for dtype in ("float16", "int8"):
        for size in sizes(elements, dtype)[:-1]:
            rows = (1, max(size // 256, 4), 256)
            for mode in (PaddingMode.CONSTANT, PaddingMode.REFLECTION):
                yield padded(rows, _by_three(rows), mode, dtype)
        colours = (max(elements // 2**18, 1), *_image(elements)[2:], 3)
        borders = ((0, 0), (3, 3), (3, 3), (0, 0))
        yield padded(colours, borders, PaddingMode.EDGE, dtype)


def _image(elements: int) -> tuple[int, int, int, int]:
    """(16, 64, 256, 256) for 2^26 elements, and images of that form for others."""
    side = 2 ** max(round(math.log2(elements) * 4 / 13), 3)
    images = max(elements // side**2, 4)
    batch = 16 if images >= 256 else 4
    return (batch, images // batch, side, side)


def _by_three(image: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    return ((0, 0),) * (len(image) - 2) + ((3, 3), (3, 3))


def padded(
    shape: tuple[int, ...],
    pads: tuple[tuple[int, int], ...],
    mode: PaddingMode,
    dtype: str,
) -> Case:
    """Adds so many elements before and after each axis."""
    start, end = zip(*pads, strict=True)
    output = tuple(map(sum, zip(start, shape, end, strict=True)))
    amounts = f"{start}" if start == end else f"{start}, {end}"
    name = others.numpy_mode(mode)
    return Case(
        "padding",
        f"{mode.name} {amounts} of {dtype} {shape}",
        (Data(shape, dtype),),
        Data(output, dtype),
        ours("padding", dmljax.padding, start, end, mode=mode)
        | others.padding(shape, pads, name, dtype),
        functools.partial(oracles.padding, pads=pads, mode=name),
    )


# NONZERO_COORDINATES


def nonzero_coordinates_cases(elements: int) -> Iterator[Case]:
    """From almost empty to full, of three types and ranks; with an undefined tail."""
    line, image = (elements,), _image(elements)
    for dtype in ("float32", "uint8"):
        for kept in (1024, elements // 16):
            yield nonzero(line, dtype, 0.01, size=min(kept, elements))
    for dtype in ("float32", "float16", "uint8"):
        for size in sizes(elements, dtype)[:-1]:
            yield from with_pipeline(nonzero((size,), dtype, 0.1))
        for density in DENSITIES:
            yield from with_pipeline(nonzero(line, dtype, density))
            yield nonzero(image, dtype, density)
        for density in (0.01, 0.5):
            yield nonzero(line, dtype, density, undefined=True)
            yield nonzero(image, dtype, density, undefined=True)


def nonzero(
    shape: tuple[int, ...],
    dtype: str,
    density: float,
    *,
    undefined: bool = False,
    size: int | None = None,
) -> Case:
    """Finds the non-zero elements, of which there is this part."""
    x = Data(shape, dtype, density=density)
    rows = Data((size or x.size, len(shape)), "uint32")
    written = x.nonzeros() if undefined else rows.shape[0]
    words = f"{dtype} {shape}, {density:.1%} non-zero"
    words += ", undefined tail" if undefined else ""
    options = {"fill": None if undefined else 0, "size": size}
    return Case(
        "nonzero_coordinates",
        words + (f", {size} rows" if size else ""),
        (x,),
        rows,
        ours("nonzero_coordinates", dmljax.nonzero_coordinates, **options)
        | others.nonzero_coordinates(dtype, undefined=undefined, size=size),
        functools.partial(oracles.nonzero_coordinates, undefined=undefined, size=size),
        # The count has 4 bytes, as a coordinate has.
        moved=x.nbytes + (written * len(shape) + 1) * 4,
    )
