"""Errors: the exception classes, `require`, and how messages show a value.

Rules are enforced by plain code, so that nothing can switch them off. What chex asserts
elsewhere are invariants of the package itself, which no input of a user breaks.
"""

import enum
from collections.abc import Hashable, Iterable
from typing import Any, TypeVar

import numpy as np

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
        return "{" + ",".join(map(str, value)) + "}"
    return str(getattr(value, "name", value)).upper()
