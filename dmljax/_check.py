"""Where every rule is enforced: chex decides, DescriptorError explains."""

from collections.abc import Hashable, Iterable
from typing import Any

import chex


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


def require(
    operator: str,
    condition: bool,
    rule: str,
    error: type[DescriptorError] = DescriptorError,
) -> None:
    """Raises ``error("OPERATOR: rule")`` unless `condition` holds."""
    try:
        chex.assert_equal(condition, True, exception_type=DescriptorError)
    except DescriptorError:
        # chex appends a message in brackets to its own; only ours helps the reader.
        raise error(f"{operator}: {rule}") from None


def require_same(
    operator: str, what: str, first: tuple[str, Any], second: tuple[str, Any]
) -> None:
    """Requires that two tensors, given as (name, value), agree in `what`."""
    (first_name, first_value), (second_name, second_value) = first, second
    require(
        operator,
        first_value == second_value,
        f"mismatched tensor {what}. Tensor '{first_name}' has {show(first_value)}, "
        f"while tensor '{second_name}' has {show(second_value)}; "
        "both must be the same.",
    )


def require_one_of(
    operator: str, name: str, value: Hashable, choices: Iterable[Hashable]
) -> None:
    """Requires that the attribute `name` is one of `choices`."""
    choices = list(choices)
    names = ", ".join(getattr(choice, "name", repr(choice)) for choice in choices)
    require(
        operator, value in choices, f"{name} is {value!r}; it must be one of {names}."
    )


def show(value: Any) -> str:
    """A value as DirectML's debug layer writes it: sizes as {2,3}, types in capitals.

    >>> import numpy as np
    >>> show((2, 3)), show(np.dtype("float16"))
    ('{2,3}', 'FLOAT16')
    """
    if isinstance(value, tuple):
        return "{" + ",".join(map(str, value)) + "}"
    return str(getattr(value, "name", value)).upper()
