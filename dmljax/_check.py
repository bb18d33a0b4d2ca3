"""Errors: the exception classes, and how messages show a value.

Plain code enforces the rules for arguments. chex asserts only what the package itself
promises (`_directml.operator`), because `chex.disable_asserts` turns its asserts off.

In messages, values and names stand in one line, with control characters escaped. A long
one is cut, and followed by its length.
"""

import contextlib
import difflib
import enum
import functools
import inspect
import json
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np

from dmljax._jax import InconclusiveDimensionOperation

T = TypeVar("T")  # a function, or the type of its result


class DescriptorError(ValueError):
    """A tensor or an attribute breaks a rule of its operator.

    Functions, descriptors and ``create_operator`` name the operator, the tensor or
    attribute, the rule, and the values, as DirectML's debug layer does:

    >>> import dmljax, jax.numpy as jnp
    >>> dmljax.padding(jnp.zeros((2, 3)), (1,), (1, 1))
    Traceback (most recent call last):
    ...
    dmljax.DescriptorError: PADDING: start_padding (StartPadding) is {1}, while x \
(InputTensor) has sizes {2,3}; write one integer for each axis, and 0 where nothing is \
added.
    """

    __module__ = "dmljax"  # the public name, in tracebacks and in pickles


class ArgumentError(DescriptorError):
    """A broken rule whose message begins with the argument; see `naming`."""


class ArgumentTypeError(TypeError):
    """A wrong type whose message begins with the argument; see `naming`."""


@contextlib.contextmanager
def naming(operator: str) -> Iterator[None]:
    """Puts the name of an operator in front of the messages about its arguments.

    An ArgumentError becomes a DescriptorError, and an ArgumentTypeError a TypeError.
    Other errors, of JAX or with a name already, remain as they are.

    >>> with naming("PADDING"):
    ...     raise ArgumentError("value is missing.")
    Traceback (most recent call last):
    ...
    dmljax.DescriptorError: PADDING: value is missing.
    """
    try:
        yield
    except ArgumentError as error:
        raise DescriptorError(f"{operator}: {error}") from error.__cause__
    except ArgumentTypeError as error:
        raise TypeError(f"{operator}: {error}") from error.__cause__


def public(called: T) -> T:
    """Puts the name of a public function or method in front of its argument errors.

    A function of `dmljax` itself appears under the name of its operator, PADDING.
    """
    function: Any = called
    name = function.__qualname__
    if function.__module__ in ("dmljax.numpy", "dmljax.onnx"):
        name = f"{function.__module__}.{name}"
    elif "." not in name:
        name = name.upper()

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:  # faster than a `with` for each call
            return function(*args, **kwargs)
        except (ArgumentError, TypeError):
            # For an unknown keyword, `_check_keywords` raises a better error than
            # Python's. Otherwise the caught error is raised again. Either error passes
            # through `naming`, which puts the name in front.
            with naming(name):
                _check_keywords(function, kwargs)
                raise

    return typing.cast("T", call)


def _check_keywords(function: Callable[..., Any], given: Iterable[str]) -> None:
    """Requires that a function knows the keywords of a call."""
    parameters = inspect.signature(function).parameters
    named = (p for p in parameters.values() if p.kind != p.POSITIONAL_ONLY)
    known = [f"{p.name}=" for p in named]
    for name in given:
        if name not in parameters:
            wrong = f"{name}="
            meant = difflib.get_close_matches(wrong, known, 1) or known
            takes = ", ".join(meant) or "no keywords"
            raise ArgumentTypeError(f"it takes {takes}, not {wrong}.")


class ModelError(ValueError):
    """A model file breaks a rule, or can't be read, run or shown.

    ``run_model`` names the place in the model, the rule and the values, in one line:

    >>> import dmljax
    >>> dmljax.run_model({"resources": {}, "dispatchables": {}})
    Traceback (most recent call last):
    ...
    dmljax.ModelError: model: the field 'commands' is missing; it must be a list.
    """

    __module__ = "dmljax"


def surely_le(low: int, high: int) -> bool:
    """Whether low <= high for all values of symbolic sizes; False if JAX can't say."""
    try:
        return low <= high
    except InconclusiveDimensionOperation:
        return False


def decide_le(low: int, high: int) -> bool:
    """Whether low <= high, for a rule: an error if JAX can't decide it."""
    try:
        return low <= high
    except InconclusiveDimensionOperation as error:
        constraint = f"{high} >= {low}"
        raise ArgumentError(
            f"JAX can't decide whether {constraint} for these symbolic "
            "sizes. Say so where they are made: jax.export.symbolic_shape(..., "
            f"constraints=['{constraint}'])."
        ) from error


def require_same(
    what: str,
    values: Mapping[str, Any],
    remedy: str | None = None,
) -> None:
    """Requires the same value for each name.

    `what` says what the values are, such as "sizes". With ``remedy=None``, the names
    are tensors of a descriptor, written Tensor 'Name'. Otherwise they are written as
    given, and `remedy`, which may be empty, ends the message.
    """
    first = next(iter(values), "")  # there may be no tensors
    for name, value in values.items():
        wanted = values[first]
        if value != wanted:
            if remedy is None:
                name = f"Tensor '{name}'"
                first = f"tensor '{first}'"
            raise ArgumentError(
                f"mismatched tensor {what}. {name} has {show(value)}, "
                f"while {first} has {show(wanted)}; both must be the same."
                f"{remedy or ''}"
            )


def is_number_of(value: Any, enum_type: Any) -> bool:
    """Whether `value` is the plain number of a member of an enum."""
    # A bool, a member of another enum and a timedelta64 are integers for `isinstance`,
    # but mean something else.
    is_integer = isinstance(value, (int, np.integer))
    is_other = isinstance(value, (bool, enum.Enum, np.timedelta64))
    members = getattr(enum_type, "__members__", {})
    return is_integer and not is_other and value in members.values()


def as_member(name: str, value: Any, enum_type: Any) -> Any:
    """Returns a member of an enum, given the member or its number."""
    if isinstance(value, enum_type):
        return value
    if is_number_of(value, enum_type):
        return enum_type(int(value))
    # A string is refused. If it names a member, the message shows this member.
    names = list(enum_type.__members__)
    written = value.upper() if isinstance(value, str) else ""
    meant = getattr(enum_type, "OTHER_NAMES", {}).get(written, written)
    known = meant in names
    example = f"{enum_type.__name__}.{meant if known else names[-1]}"
    raise ArgumentError(
        f"{name} is {as_python(value)}; it must be one of "
        f"{', '.join(names)}. Write {'' if known else 'for example '}{example}."
    )


# How many characters of a path a message shows.
LONGEST_PATH = 300


def as_python(value: Any) -> str:
    """Writes a value as Python does, in one line, and shortened.

    Python itself refuses to write an integer of more than 4300 digits.

    >>> as_python(10**400), as_python(-7), as_python("7")
    ('about 2^1328', '-7', "'7'")
    """
    if type(value) is int and value.bit_length() > 128:  # no legal value has more
        return f"about {'-' * (value < 0)}2^{value.bit_length() - 1}"
    try:
        return shortened(" ".join(repr(value).split()))
    except ValueError:  # there is such an integer inside
        return f"too long to show (of type {type(value).__name__})"


def show(value: Any) -> str:
    """Writes a value as DirectML's debug layer does: sizes as {2,3}, types in capitals.

    >>> import numpy as np
    >>> show((2, 3)), show(np.dtype("float16")), show(10**400)
    ('{2,3}', 'FLOAT16', 'about 2^1328')
    """
    if isinstance(value, tuple):
        most = 16  # no tensor has more dimensions
        sizes = value[:most]
        # A symbolic size is no int, and its text is an expression such as "n + 1".
        items = [as_python(n) if type(n) is int else shortened(str(n)) for n in sizes]
        if len(value) > most:
            items.append(f"... ({len(value)} elements)")
        return "{" + ",".join(items) + "}"
    if type(value) is int:
        return as_python(value)
    return str(getattr(value, "name", value)).upper()


def shortened(text: str, most: int | None = 60) -> str:
    r"""Escapes what could control a terminal, and cuts a text of more than `most`.

    Names and values in messages come from files by anybody. Of a long text, the
    beginning and the length are kept.

    >>> shortened("a\x1b[31m\nb"), shortened("\x1b" * 99, 5)
    ('a\\x1b[31m\\nb', '\\x1b\\x1b... (99 characters)')
    """
    if most is not None and len(text) > most:
        return f"{shortened(text[: most - 3], None)}... ({len(text)} characters)"
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode() for c in text
    )


def one_line(text: str, most: int = 300) -> str:
    """Joins the lines of a text, such as an error of JAX, and shortens it."""
    return shortened(" ".join(text.split()), most)


def quoted(name: str, most: int = 60) -> str:
    """Quotes a name that comes from a file, escaped and shortened."""
    return f"'{shortened(name, most)}'"


def as_json(value: Any) -> str:
    """Writes a value of a JSON file as the file does: None as null, True as true."""
    if isinstance(value, str):
        return quoted(value)
    # Python writes no integer of more than 4300 digits (ValueError), and no lists that
    # are nested more deeply than its stack (RecursionError). A file may have both.
    try:
        text = json.dumps(value, default=repr, skipkeys=True, ensure_ascii=False)
    except (ValueError, RecursionError):
        return f"too long to show (of type {type(value).__name__})"
    return shortened(text)


def listed(names: Iterable[str]) -> str:
    """Joins names by commas, or the first names and the number of all."""
    every = list(names)
    most = 12
    text = ", ".join(map(quoted, every[:most]))
    if len(every) > most:
        text += f", ... ({len(every)} in all)"
    return text or "none"
