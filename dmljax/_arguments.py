"""What callers pass, as arrays, scalars, sizes and integers of one meaning each.

Every public function and every descriptor's callable sends its arguments through here,
so that all of them accept and refuse the same things in the same words. Rules of single
operators do not belong here.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.export import is_symbolic_dim
from jax.typing import ArrayLike

from dmljax._check import require, require_same, show
from dmljax._tensor import (
    INT32_MAX,
    INT32_MIN,
    is_floating,
    is_integer,
    x64_enabled,
)


def check_x64(operator: str, name: str, dtype: np.dtype) -> None:
    """Requires JAX's x64 mode for 64-bit types: JAX would truncate them in silence."""
    wide = (dtype.itemsize == 8 and dtype.kind in "fiu") or dtype == np.complex128
    require(
        operator,
        x64_enabled() or not wide,
        f"'{name}' has data type {show(dtype)}, which needs JAX's x64 mode. Turn it on "
        "with jax.config.update('jax_enable_x64', True) or JAX_ENABLE_X64=1, or "
        "convert the data to a 32-bit type.",
    )


def is_python_number(value: Any) -> bool:
    """Whether `value` is a number without a data type of its own."""
    # NumPy's float64 is a subclass of Python's float, and does have a type.
    python = isinstance(value, (bool, int, float, complex))
    return python and not isinstance(value, np.generic)


def as_array(operator: str, name: str, value: ArrayLike) -> jax.Array | np.ndarray:
    """`value` as an array whose type JAX keeps; TypeError if it is none."""
    if isinstance(value, jax.Array):
        if not jnp.issubdtype(value.dtype, np.number) and value.dtype != bool:
            raise TypeError(f"{operator}: '{name}' has elements of type {value.dtype}.")
        return value
    if not (isinstance(value, (np.ndarray, np.generic)) or is_python_number(value)):
        raise TypeError(
            f"{operator}: '{name}' must be an array, not {type(value).__name__}; "
            "convert it with jnp.asarray."
        )
    array = np.asarray(value)
    if is_python_number(value):
        default = jnp.asarray(type(value)(0)).dtype
        # An integer that does not fit stays what it is: a 64-bit one, or an object.
        least = np.min_scalar_type(value) if isinstance(value, int) else default
        array = array.astype(default) if np.can_cast(least, default) else array
    # JAX's compiled functions take swapped bytes as they are, once they are cached.
    wide = array.dtype.itemsize > (16 if array.dtype.kind == "c" else 8)
    number = jnp.issubdtype(array.dtype, np.number) or array.dtype == bool
    if wide or not number or not array.dtype.isnative:
        raise TypeError(
            f"{operator}: '{name}' has elements of type {array.dtype}; they must be "
            "numbers of a type that JAX has, in native byte order."
        )
    check_x64(operator, name, array.dtype)
    return array


def as_scalar(
    operator: str, name: str, value: ArrayLike, dtype: np.dtype
) -> jax.Array | np.ndarray:
    """`value` as an array of rank 0 and of type `dtype`.

    A Python number takes the type, and must be exact in it but for floating-point
    rounding; an array must have it.
    """
    if is_python_number(value):
        return _from_python(operator, name, value, dtype)
    array = as_array(operator, name, value)
    require(
        operator,
        array.shape == (),
        f"{name} has sizes {show(array.shape)}; it must be a scalar.",
    )
    return typed_as(operator, name, array, dtype)


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Constant:
    """A scalar that is part of a program, and not copied to the device in each call.

    Attributes:
      value: 0 or 1, which are usual; for another number nothing should compile anew.
      dtype: its type.
    """

    value: int
    dtype: np.dtype

    def array(self) -> np.ndarray:
        """The scalar."""
        return np.asarray(self.value).astype(self.dtype)


def as_operand(
    operator: str, name: str, value: ArrayLike, dtype: np.dtype
) -> jax.Array | np.ndarray | Constant:
    """As `as_scalar`; a Python number that is 0 or 1 is a constant.

    `strong` makes an array of both.
    """
    scalar = as_scalar(operator, name, value, dtype)
    if is_python_number(value):
        for constant in (Constant(number, dtype) for number in (0, 1)):
            if constant.array().tobytes() == np.asarray(scalar).tobytes():
                return constant
    return scalar


def typed_as(
    operator: str, name: str, array: jax.Array | np.ndarray, dtype: np.dtype
) -> jax.Array | np.ndarray:
    """`array` if it has type `dtype`, or takes it as a weakly typed one does.

    A weak type is a Python number's that was traced. What value it has is not known
    then, so it must not be of a kind that the type could not hold.
    """
    if array.dtype == dtype:
        return array
    weak = isinstance(array, jax.Array) and jax.typeof(array).weak_type
    require(
        operator,
        weak and array.dtype.kind in _kinds_held(dtype),
        f"{name} has data type {show(array.dtype)}, while the tensor has "
        f"{show(dtype)}; both must be the same.",
    )
    return lax.convert_element_type(array, dtype)


def _kinds_held(dtype: np.dtype) -> str:
    """The kinds of Python numbers that a type holds, by NumPy's letters."""
    if jnp.issubdtype(dtype, np.complexfloating):
        return "biufc"
    return "biuf" if is_floating(dtype) else "biu" if is_integer(dtype) else "b"


def strong(array: jax.Array | Constant) -> jax.Array:
    """`array` without a weak type, which would let a result be promoted later."""
    return lax.convert_element_type(_given(array), array.dtype)


def _given(array: jax.Array | Constant) -> jax.Array:
    return jnp.asarray(array.array()) if isinstance(array, Constant) else array


def strong_types(
    operator: str,
    first: tuple[str, jax.Array | Constant],
    second: tuple[str, jax.Array | Constant],
) -> tuple[jax.Array, jax.Array]:
    """Two tensors, given as (name, array), of one type; a weak type gives way."""
    first, second = ((name, _given(x)) for name, x in (first, second))
    (_, a), (_, b) = first, second
    weak_a, weak_b = (jax.typeof(x).weak_type for x in (a, b))
    if weak_a != weak_b:
        (name, weak), (_, other) = (first, second) if weak_a else (second, first)
        typed = jnp.asarray(typed_as(operator, name, weak, other.dtype))
        return (typed, other) if weak_a else (other, typed)
    pair = ((name, array.dtype) for name, array in (first, second))
    require_same(operator, "data types", *pair)
    return strong(a), strong(b)


def _from_python(operator: str, name: str, value: Any, dtype: np.dtype) -> np.ndarray:
    """A Python number as an array of rank 0 of type `dtype`."""
    problem = _misfit(value, dtype)
    if problem:
        require(operator, False, f"{name} is {value!r}; {show(dtype)} {problem}.")
    with np.errstate(over="ignore"):  # past the largest float is infinity
        exact = (
            value if is_integer(dtype) or isinstance(value, complex) else float(value)
        )
        return np.asarray(exact).astype(dtype)


def _misfit(value: Any, dtype: np.dtype) -> str | None:
    """What keeps a Python number from being of type `dtype`, if anything does."""
    if isinstance(value, complex):
        fits = jnp.issubdtype(dtype, np.complexfloating)
        return None if fits else "has no imaginary part"
    if jnp.issubdtype(dtype, np.bool_):
        return None if value in (0, 1) else "holds False and True"
    if is_integer(dtype):
        limits = jnp.iinfo(dtype)
        low, high = int(limits.min), int(limits.max)
        if not (math.isfinite(value) and value == int(value)):
            return "holds whole numbers"
        return None if low <= value <= high else f"holds {low} to {high}"
    huge = isinstance(value, int) and abs(value) >= 2**1023
    return "holds no numbers of this size" if huge else None


def as_integer(operator: str, name: str, value: Any) -> int:
    """`value` as a Python integer, from whatever says that it is one."""
    try:
        return int(value.__index__())
    except (AttributeError, TypeError):
        raise TypeError(
            f"{operator}: {name} must be an integer that is known when the program is "
            f"traced, not {type(value).__name__}."
        ) from None


def as_size(operator: str, name: str, value: Any) -> int:
    """`value` as a Python integer, or as it is if it is a symbolic size."""
    symbolic: int = value  # it computes as an integer does
    if is_symbolic_dim(value):
        return symbolic
    return as_integer(operator, name, value)


def as_sizes(operator: str, name: str, values: Sequence[Any]) -> tuple[int, ...]:
    """`values` as a tuple of sizes."""
    if isinstance(values, str) or not isinstance(values, (Sequence, np.ndarray)):
        raise TypeError(
            f"{operator}: {name} must be a sequence of integers, not "
            f"{type(values).__name__}."
        )
    return tuple(as_size(operator, name, value) for value in values)


def check_int32(operator: str, name: str, value: int) -> None:
    """Requires that an attribute is an INT of the C struct."""
    require(
        operator,
        INT32_MIN <= value <= INT32_MAX,
        f"{name} is {value}; it must be an INT32, {INT32_MIN} to {INT32_MAX}.",
    )


def cast_float_value(value: float, dtype: np.dtype) -> np.ndarray:
    """A FLOAT attribute as a scalar of the tensor's type.

    For integers it is truncated toward zero and saturated, and NaN gives 0, as JAX
    casts; no page says what happens out of range.

    >>> [int(cast_float_value(v, np.dtype("uint8"))) for v in (10.6, -1.0, math.nan)]
    [10, 0, 0]
    """
    with np.errstate(over="ignore"):  # past the largest float is infinity
        single = np.float32(value)
        if not is_integer(dtype):
            return np.asarray(single).astype(dtype)
    limits = jnp.iinfo(dtype)
    low, high = int(limits.min), int(limits.max)
    if math.isnan(single):
        return np.zeros((), dtype)
    whole = int(single) if math.isfinite(single) else high if single > 0 else low
    return np.asarray(min(max(whole, low), high)).astype(dtype)
