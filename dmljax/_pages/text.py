"""The examples of the pages as text: what goes in, the call, and what comes out.

`dmljax examples` shows this text. The examples themselves are in `examples`.
"""

import collections
import dataclasses
import enum
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from dmljax._check import show
from dmljax._pages.examples import Example, Verdict
from dmljax._struct import c_name
from dmljax._tensor import TensorDesc

# The imports that the shown calls need.
IMPORTS = "import numpy as np\nfrom dmljax import *"


def show_example(example: Example, verbose: bool) -> tuple[str, Verdict]:
    """Runs an example, and returns a line or a text that shows it, and the verdict."""
    outputs = example.outputs()
    verdict = example.verdict(outputs)
    if not verbose:
        agrees = verdict is Verdict.AGREES
        comment = verdict.value if agrees else _comment(example, verdict)
        return f"    {example.name:33}{comment}", verdict
    lines = [f"{example.page}: {example.title}"]
    for name, array in zip(example.desc.input_tensors(), example.arrays(), strict=True):
        lines += _array_lines(name, array)
    lines.append(call(example))
    for name, array in zip(example.desc.outputs, outputs, strict=True):
        lines += _array_lines(name, array)
    lines.append(f"    {_comment(example, verdict)}\n")
    return "\n".join(lines), verdict


def _comment(example: Example, verdict: Verdict) -> str:
    """Writes the verdict, and what there is to say about the page."""
    if verdict is Verdict.DISAGREES:
        return f"{verdict.value}, which has {example.printed}."
    if verdict is Verdict.KNOWN_ERROR:
        return f"{verdict.value}: {example.known_error}"
    error = example.known_error and f"Known error of the page: {example.known_error}"
    return " ".join(filter(None, (f"{verdict.value}.", example.note, error)))


def summary(verdicts: Sequence[Verdict]) -> str:
    """Says how many examples agree with their pages.

    >>> summary([Verdict.AGREES, Verdict.KNOWN_ERROR])
    '1 of 1 agree; in 1 more the page has a known error, as it says'
    """
    count = collections.Counter(verdicts)
    wrong = count[Verdict.KNOWN_ERROR]
    compared = len(verdicts) - wrong
    more = f"; in {wrong} more the page has a known error, as it says" if wrong else ""
    return f"{count[Verdict.AGREES]} of {compared} agree{more}"


def _array_lines(name: str, array: np.ndarray) -> list[str]:
    """Writes an array as the pages do."""
    # `{:g}` writes 1.0 as 1, as the pages do for floats as well.
    text = np.array2string(array, separator=", ", formatter={"all": "{:g}".format})
    title = f"{c_name(name)}: (Sizes:{show(array.shape)} DataType:{show(array.dtype)})"
    return [f"    {title}", textwrap.indent(text, " " * 8)]


def call(example: Example) -> str:
    """Writes the call in Python. It runs as it is after `IMPORTS`."""
    fields = dataclasses.fields(example.desc)
    parts = (_code(f.name, getattr(example.desc, f.name)) for f in fields)
    descriptor = f"{type(example.desc).__name__}({', '.join(parts)})"
    arrays = ", ".join(
        f"np.array({array.tolist()}, {array.dtype.name!r})"
        for array in example.arrays()
    )
    return f"create_operator({descriptor})({arrays})"


def _code(name: str, value: Any) -> str:
    """Writes a field of a descriptor as an argument in Python."""
    # The repr of a descriptor or of an enum is not Python that can be run.
    if isinstance(value, TensorDesc):
        return f"TensorDesc(DataType.{value.data_type.name}, {value.sizes})"
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    return "None" if value is None else f"{name}={value!r}"
