"""The cases of an operator that has none of its own: large batches of a typical sample.

The sample is the first one of the operator's file in tests/subjects/. Every operator
has a batching rule, so a batch can be as large as the other cases are. The oracle of
the sample is a loop in Python, so only some lines of the batch are compared.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from benchmarks import cases
from benchmarks.case import Case
from benchmarks.data import Data
from benchmarks.oracles import Sample
from tests import samples
from tests.subjects import SUBJECTS

COMPARED = 16  # lines of a batch


def of_operator(operator: str, elements: int) -> Iterator[Case]:
    """The sample in batches of all sizes and types, and its gradients."""
    subject = SUBJECTS[operator]
    sample = subject.samples[0]
    for dtype in (dtype for dtype in cases.TYPES if dtype in subject.data_types):
        for size in cases.sizes(elements, dtype):
            case = _batch(sample, dtype, size)
            yield from cases.with_pipeline(case)
    case = _batch(sample, "float32", elements)
    fixed = set(range(len(sample.operands))) - set(sample.open_operands)
    for wrt in sample.differentiable:
        oracle = _by_lines(functools.partial(_pulled_back, sample, wrt))
        one = cases.gradient(case, wrt, oracle, sorted(fixed))
        yield dataclasses.replace(one, name=f"{case.name}, of operand {wrt}")


def _batch(sample: samples.Sample, dtype: str, size: int) -> Case:
    arrays = sample.arrays(dtype)
    outputs = jax.tree.leaves(sample.expected(*arrays))
    lines = max(size // max(array.size for array in (*arrays, *outputs)), 1)

    def run(*arrays: Any, implementation: Any = None) -> Any:
        form = dataclasses.replace(sample, implementation=implementation)
        return jax.vmap(form.run)(*arrays)

    return Case(
        sample.operator,
        f"{sample.name}, {dtype} x {size}",
        tuple(_data(sample, i, array, lines) for i, array in enumerate(arrays)),
        max((_like(output, lines) for output in outputs), key=lambda data: data.size),
        cases.ours(sample.operator, run),
        _by_lines(lambda *line: jax.tree.leaves(sample.expected(*line))),
    )


def _like(array: np.ndarray, lines: int) -> Data:
    return Data((lines, *array.shape), array.dtype.name)


def _data(sample: samples.Sample, i: int, array: np.ndarray, lines: int) -> Data:
    """An operand: of random numbers, or the sample's own ones in every line."""
    if i in sample.open_operands:
        return dataclasses.replace(_like(array, lines), seed=i)
    return dataclasses.replace(_like(array, lines), values=tuple(array.flat))


def _by_lines(function: Callable[..., list[np.ndarray]]) -> Callable[..., list[Sample]]:
    """An oracle for a batch, from one for a line of it."""

    def oracle(*arrays: np.ndarray) -> list[Sample]:
        lines = len(arrays[0])
        chosen = np.unique(np.linspace(0, lines - 1, COMPARED, dtype=int))
        results = [function(*(array[line] for array in arrays)) for line in chosen]
        return [
            Sample(
                (lines, *values[0].shape),
                (chosen, *map(np.arange, values[0].shape)),
                np.stack(values),
            )
            for values in zip(*results, strict=True)
        ]

    return oracle


def _pulled_back(
    sample: samples.Sample, wrt: int, cotangent: np.ndarray, *line: np.ndarray
) -> list[np.ndarray]:
    """The cotangent of an operand: an element for each unit vector in its place."""
    basis = [
        np.zeros_like(array) if i in sample.open_operands else array
        for i, array in enumerate(line)
    ]
    shape = line[wrt].shape
    pulled = np.empty(math.prod(shape), cotangent.dtype)
    for i in range(pulled.size):
        unit = np.zeros(pulled.size, cotangent.dtype)
        unit[i] = 1
        basis[wrt] = unit.reshape(shape)
        pulled[i] = (sample.expected(*basis) * cotangent).sum()
    return [pulled.reshape(shape)]
