"""Plain forms, beside dmljax's special forms for speed.

A second form, a threshold or a branch for speed stays in dmljax only if it gains 15 %
in a program that users run, or if we can't reach a goal without it. The ledger has a
row with the special form, and a row without it, marked by a word in brackets. For
example, "dmljax [gather]" is dmljax after `FORMS["gather"]` has replaced some names.
"""

import contextlib
import dataclasses
import functools
import re
from collections.abc import Iterator
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from benchmarks.case import Case
from dmljax import _nonzero_forms, _nonzero_rows, _one_hot, _padding_forms
from dmljax._nonzero_coordinates import NONZERO_COORDINATES as NONZERO
from dmljax._nonzero_kernels import DEFAULT_MIN_ELEMENTS
from dmljax._padding import ADJOINT, PADDING

EXTRACTED = "^nonzero_coordinates elements above a limit, .* gradient"
# From 2^20 elements on, the kernel of NONZERO_COORDINATES is the default.
SELECTED = r"^nonzero_coordinates (elements|half|rows|edges|tokens kept).*"
FEWER = r"(16384|262144),"
SMALL, LARGE = rf"{SELECTED}\({FEWER}", rf"{SELECTED}\((?!{FEWER})"
PADDED = "^padding (reflect padding|mean|frames|patches|REFLECTION).* forward"
WRITTEN = "^padding (reflect padding|6 reflect).* forward"
# Without a kernel, the form changes at 2^23 elements, and where half of them have rows:
# MANY has bit words, and FEW has none.
FEW = (
    r"elements above a limit, .* float32 \((16384|262144|1048576|4194304),"
    r"|half of the elements"
)
MANY = r"elements above a limit, .* float32 \((8388608|16777216),"
SEARCHED = r"coordinates elements above a limit, .* float32 \((16777216|67108864),"


@dataclasses.dataclass(frozen=True)
class Plain:
    """dmljax without one of its special forms.

    Attributes:
      platforms: the platforms that run the special form, where we time both forms.
      cases: a pattern for the labels of the cases with both forms.
      patch: a context manager that replaces names.
      of: the contender with the special form.
    """

    platforms: str
    cases: str
    patch: Any
    of: str = "dmljax"


def search(words: Array, starts: Array, rows: int) -> Array:
    """Finds the bit word of each row by bisection: the form before the forward fill."""
    row = lax.iota(np.uint32, rows)
    word = jnp.searchsorted(starts, row, side="right") - 1
    offset = 32 * word.astype(np.uint32)
    offset += _nonzero_forms.find_bit(words[word], row - starts[word])
    return jnp.where(row < starts[-1] + lax.population_count(words[-1]), offset, 0)


_swapped, _dict = mock.patch.object, mock.patch.dict
_from_first = functools.partial(PADDING.definition, last_first=False)
_join = PADDING.on_platform["tpu"]
FORMS = {
    # Padding that repeats elements would compute each several times.
    "no barrier": Plain(
        "cpu",
        r"^padding pad, .*\(64, 16, 16\)",
        _swapped(lax, "optimization_barrier", lambda numbers: numbers),
    ),
    "select": Plain("cpu gpu", "smooth", _swapped(_one_hot, "_choose_bits", jnp.where)),
    "values": Plain(
        "cpu gpu",
        "loss of labels",
        _swapped(_one_hot, "_are_truth_values", lambda _: False),
    ),
    # PADDING on a CPU by two plain forms: joined strips, and a gather.
    "join": Plain(
        "cpu",
        rf"{PADDED}|^padding pad, .*bfloat16 \(4096",
        _dict(PADDING.on_platform, cpu=_join),
    ),
    "gather": Plain(
        "cpu",
        rf"{PADDED}|^padding pad, .*\((16, 512, 256|2, 128, 128, 64)\)",
        _dict(PADDING.on_platform, clear=True),
    ),
    # A signal as an array of one dimension.
    "flat": Plain(
        "cpu",
        r"^padding pad, .*float32 \(1048576,\)",
        _dict(PADDING.on_platform, cpu=_join),
    ),
    # The adjoint of wide padding, in which many periods are summed at once.
    "whole periods": Plain(
        "cpu",
        r"^padding pad, .*\(64, 16, 16\) gradient",
        _swapped(_padding_forms, "MAX_UNROLLED", 0),
    ),
    # Gradients on a CPU by the form of all platforms, which adds strips between zeros.
    "zeros": Plain(
        "cpu", "^padding .* gradient", _dict(ADJOINT.on_platform, clear=True)
    ),
    # PADDING on a CPU or GPU: we gather the last axis first, or the first axis first.
    "first axis first": Plain(
        "cpu gpu",
        PADDED,
        _dict(PADDING.on_platform, dict.fromkeys(("cpu", "cuda"), _from_first)),
    ),
    # PADDING on one GPU: the form for several GPUs.
    "strips": Plain(
        "gpu", WRITTEN, _dict(PADDING.on_platform, cuda=_padding_forms.pad_strips)
    ),
    # NONZERO_COORDINATES.
    "scatter": Plain("cpu", EXTRACTED, _dict(NONZERO.on_platform, clear=True)),
    "bit words": Plain(
        "gpu",
        FEW,
        _swapped(_nonzero_forms, "nonzero_scatter", _nonzero_forms.nonzero_words),
        "dmljax xla",
    ),
    "elements": Plain(
        "gpu",
        MANY,
        _swapped(_nonzero_forms, "nonzero_words", _nonzero_forms.nonzero_scatter),
        "dmljax xla",
    ),
    "search": Plain(
        "gpu", SEARCHED, _swapped(_nonzero_forms, "fill_forward", search), "dmljax xla"
    ),
    "no kernel": Plain("gpu", LARGE, _dict(DEFAULT_MIN_ELEMENTS, clear=True)),
    "kernel": Plain("gpu", SMALL, _dict(DEFAULT_MIN_ELEMENTS, cuda=0)),
    # The rows that `put` writes back.
    "rows scattered": Plain(
        "cpu gpu",
        "rows of a mask and back",
        _swapped(_nonzero_rows, "select_rows", _nonzero_rows.scatter_rows),
    ),
}


def with_plain(case: Case, platform: str) -> Case:
    """The case with the plain forms of the platform's special forms."""
    more = {
        f"{plain.of} [{word}]": functools.partial(case.functions[plain.of])
        for word, plain in FORMS.items()
        if platform in plain.platforms and plain.of in case.functions
        if re.search(plain.cases, case.label)
    }
    return dataclasses.replace(case, functions={**case.functions, **more})


@contextlib.contextmanager
def replaced(contender: str) -> Iterator[None]:
    """Replaces names while a contender is traced, lowered and compiled."""
    word = re.search(r"\[(.+)\]", contender)
    if not word:
        yield
        return
    jax.clear_caches()  # they have traces of the special form
    with FORMS[word[1]].patch:
        yield
    jax.clear_caches()
