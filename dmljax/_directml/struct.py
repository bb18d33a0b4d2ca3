"""Structs of the C header as frozen dataclasses: their fields and converters.

Nothing here knows a struct of DirectML. The tensor is in `tensor`, and the descriptors
of the operators have a module each. `json` reads structs by the types of their fields.
"""

import dataclasses
import functools
import typing
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from dmljax._arguments import integer, is_sequence
from dmljax._check import Member, is_number_of
from dmljax._types import Sizes

Given = TypeVar("Given")
Converted = TypeVar("Converted")


def field(
    *, converter: Callable[[Any], Any], default: Any = dataclasses.MISSING
) -> Any:
    """Declares a field of a `Struct` that callers may give as another type.

    Converters of this module return a value that they can't convert as it is. The
    checks of the descriptor then refuse the value, with a message that names the
    operator. `TensorDesc` refuses it by itself.
    """
    return dataclasses.field(default=default, metadata={"converter": converter})


@typing.dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Struct:
    """A base class that makes its subclasses frozen dataclasses with converters."""

    def __init_subclass__(cls, *, eq: bool = True, **options: Any) -> None:
        """Makes the subclass a dataclass. Ours get their public names."""
        super().__init_subclass__(**options)
        # Tracebacks and pickles show where a class is public. A user's class is where
        # it is written, and there its annotations are resolved.
        if cls.__module__.startswith("dmljax."):
            cls.__module__ = "dmljax"
        dataclasses.dataclass(frozen=True, eq=eq)(cls)

    def __post_init__(self) -> None:
        """Converts the fields."""
        for each in dataclasses.fields(typing.cast(Any, self)):
            if "converter" in each.metadata:
                value = each.metadata["converter"](getattr(self, each.name))
                # The way to set a field of a frozen dataclass.
                object.__setattr__(self, each.name, value)


def integers(values: Sizes) -> tuple[int, ...]:
    """Converts a sequence or an array of integers to a tuple."""
    if is_sequence(values):
        return tuple(map(integer, values))
    return typing.cast("tuple[int, ...]", values)


def member(enum_type: type[Member]) -> Callable[[Member | int], Member]:
    """Makes a converter from the number of an enum's member."""

    def convert(value: Member | int) -> Member:
        if is_number_of(value, enum_type):
            return enum_type(value)
        return typing.cast("Member", value)

    return convert


def optional(
    converter: Callable[[Given], Converted],
) -> Callable[[Given | None], Converted | None]:
    """Says to type checkers that a field may be None, which converters return."""
    return typing.cast("Callable[[Given | None], Converted | None]", converter)


def c_name(name: str) -> str:
    """Returns the name that a field has in the C struct.

    >>> c_name("diagonal_fill_begin")
    'DiagonalFillBegin'
    """
    return "".join(part.capitalize() for part in name.split("_"))


@functools.cache
def field_types(cls: Any) -> dict[str, tuple[Any, bool]]:
    """Returns the fields of a dataclass or a NamedTuple by name, in their order.

    Each is a type without None, and whether None is another alternative.
    """
    fields = {}
    for name, hint in typing.get_type_hints(cls).items():
        alternatives = typing.get_args(hint)
        types = [each for each in alternatives if each is not type(None)]
        optional = len(types) < len(alternatives)
        if ClassVar not in (hint, typing.get_origin(hint)):
            fields[name] = (typing.Union[*types] if optional else hint), optional
    return fields
