"""Errors: the exception classes, `require`, and how messages show a value.

Rules are enforced by plain code, so that nothing can switch them off. What chex asserts
elsewhere are invariants of the package itself, which no input of a user breaks.

How values and names appear in messages is here as well: in one line, with control
characters escaped, and shortened with a count where they are long.
"""

import enum
import json
from collections.abc import Hashable, Iterable
from typing import Any, TypeVar

import numpy as np
from jax.errors import InconclusiveDimensionOperation

Member = TypeVar("Member", bound=enum.IntEnum)


class DescriptorError(ValueError):
    """A tensor or an attribute breaks a rule of its operator.

    The message names the operator, the tensor or attribute, the rule and the values:

    >>> import dmljax, jax.numpy as jnp
    >>> dmljax.padding(jnp.zeros((2, 3)), (1,), (1, 1))
    Traceback (most recent call last):
    ...
    dmljax.DescriptorError: PADDING: StartPadding has 1 elements, while tensor \
'InputTensor' has 2 dimensions; both must be the same.
    """

    __module__ = "dmljax"  # the public name, in tracebacks and in pickles


class NoKernelError(DescriptorError):
    """There is no kernel for this call: its platform, its type or its size.

    A caller who asked for the kernel by name sees this error. Where the kernel was only
    the default, the XLA form runs instead.
    """


def require(
    operator: str,
    condition: bool,
    rule: str,
    error: type[DescriptorError] = DescriptorError,
) -> None:
    """Raises ``error("OPERATOR: rule")`` unless `condition` holds."""
    if not condition:
        raise error(f"{operator}: {rule}")


def at_most(low: int, high: int) -> bool:
    """Whether low <= high, for all values that symbolic sizes in them may have."""
    try:
        return low <= high
    except InconclusiveDimensionOperation:
        return False


def decide_at_most(operator: str, low: int, high: int) -> bool:
    """Whether low <= high, where a rule depends on it.

    An error if they have symbolic sizes, and it holds for some of their values only.
    """
    try:
        return low <= high
    except InconclusiveDimensionOperation as error:
        constraint = f"{high} >= {low}"
        raise DescriptorError(
            f"{operator}: JAX can't decide whether {constraint} for these symbolic "
            "sizes. Say so where they are made: jax.export.symbolic_shape(..., "
            f"constraints=['{constraint}'])."
        ) from error


def require_same(
    operator: str, what: str, first: tuple[str, Any], second: tuple[str, Any]
) -> None:
    """Requires that two tensors, given as (name, value), agree in `what`."""
    (first_name, first_value), (second_name, second_value) = first, second
    if first_value != second_value:
        raise DescriptorError(
            f"{operator}: mismatched tensor {what}. Tensor '{first_name}' has "
            f"{show(first_value)}, while tensor '{second_name}' has "
            f"{show(second_value)}; both must be the same."
        )


def require_one_of(
    operator: str, name: str, value: Hashable, choices: Iterable[Hashable]
) -> None:
    """Requires that the attribute `name` is one of `choices`."""
    choices = list(choices)
    if value not in choices:
        names = ", ".join(getattr(choice, "name", repr(choice)) for choice in choices)
        raise DescriptorError(
            f"{operator}: {name} is {value!r}; it must be one of {names}."
        )


def is_number_of(value: Any, kind: type[enum.Enum]) -> bool:
    """Whether `value` is the number of a member of an enum, and nothing more."""
    # A boolean and a member of another enum are integers too, but mean something else.
    number = isinstance(value, (int, np.integer))
    return number and not isinstance(value, (bool, enum.Enum)) and value in list(kind)


def as_member(operator: str, name: str, value: Any, kind: type[Member]) -> Member:
    """The member of an enum that `value` is, or whose number it is."""
    if isinstance(value, kind):
        return value
    if is_number_of(value, kind):
        return kind(int(value))
    names = list(kind.__members__)
    known = isinstance(value, str) and value in names
    example = f"{kind.__name__}.{value if known else names[-1]}"
    raise DescriptorError(
        f"{operator}: {name} is {show_number(value)}; it must be one of "
        f"{', '.join(names)}. Write {'' if known else 'for example '}{example}."
    )


def show_number(value: Any) -> str:
    """A value as Python writes it, but for an integer of very many digits.

    >>> show_number(10**400), show_number(-7)
    ('about 2^1328', '-7')
    """
    if type(value) is int and value.bit_length() > 128:
        return f"about {'-' * (value < 0)}2^{value.bit_length() - 1}"
    return repr(value)


def show(value: Any) -> str:
    """A value as DirectML's debug layer writes it: sizes as {2,3}, types in capitals.

    >>> import numpy as np
    >>> show((2, 3)), show(np.dtype("float16"))
    ('{2,3}', 'FLOAT16')
    """
    if isinstance(value, tuple):
        sizes = value[:MOST_SIZES]
        items = [show(n) if type(n) is int else str(n) for n in sizes]
        more = [f"... ({len(value)} elements)"] if len(value) > MOST_SIZES else []
        return "{" + ",".join([*items, *more]) + "}"
    if type(value) is int and abs(value) >= 10**MOST_DIGITS:
        return f"about {'-' * (value < 0)}10^{int(value.bit_length() * 0.30103)}"
    return str(getattr(value, "name", value)).upper()


# How much of a value, a path and a list a message shows.
LONGEST, LONGEST_PATH, MOST_NAMES, MOST_SIZES, MOST_DIGITS = 60, 300, 12, 16, 40


def escaped(text: str) -> str:
    r"""The text without characters that could move a terminal's cursor or colour it.

    >>> escaped("a\x1b[31m\nb")
    'a\\x1b[31m\\nb'
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode() for c in text
    )


def shortened(text: str, most: int = LONGEST) -> str:
    """The text, escaped; of a long one the beginning, and its length."""
    if len(text) <= most:
        return escaped(text)
    return f"{escaped(text[: most - 3])}... ({len(text)} characters)"


def quoted(name: str, most: int = LONGEST) -> str:
    """A name from outside as a message shows it."""
    return f"'{shortened(name, most)}'"


def shown(value: Any) -> str:
    """A value of a JSON file as a message shows it: None as null, True as true."""
    if isinstance(value, str):
        return quoted(value)
    try:
        text = json.dumps(value, default=repr, skipkeys=True, ensure_ascii=False)
    except (ValueError, RecursionError):  # a number too long for text, or too deep
        return f"too long to show (of type {type(value).__name__})"
    return shortened(text)


def listed(names: Iterable[str]) -> str:
    """Names in a row; of many the first, and how many there are."""
    every = list(names)
    if not every:
        return "none"
    more = f", ... ({len(every)} in all)" if len(every) > MOST_NAMES else ""
    return ", ".join(map(quoted, every[:MOST_NAMES])) + more
