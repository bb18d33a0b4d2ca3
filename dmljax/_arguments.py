"""What callers pass, as arrays, scalars, sizes and integers of one meaning each.

Every public function and every descriptor's callable sends its arguments through here,
so that all of them accept and refuse the same things in the same words. Rules of single
operators do not belong here.
"""

import math
import typing
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.export import is_symbolic_dim
from jax.typing import ArrayLike, DTypeLike

from dmljax._check import (
    DescriptorError,
    require,
    show,
    show_number,
)
from dmljax._tensor import (
    INT32_MAX,
    INT32_MIN,
    Sizes,
    is_floating,
    is_integer,
    is_sequence,
    x64_enabled,
)

# The types that JAX keeps as they are, whether or not its x64 mode is on. Other types
# are looked at more closely.
KEPT = frozenset(
    map(
        np.dtype,
        (
            np.bool_,
            *(np.int8, np.int16, np.int32, np.uint8, np.uint16, np.uint32),
            *(np.float16, jnp.bfloat16, np.float32),
        ),
    )
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
    """`value` as an array whose type JAX keeps; TypeError if it is none.

    This runs in every call, and so it is fast for what is usual. The type and the sizes
    that an operator asks for are checked where they are known without a cost per call:
    in the compiled function, while it is traced.
    """
    if isinstance(value, jax.Array) and value.dtype in KEPT:
        return value
    return _converted(operator, name, value)


def _converted(operator: str, name: str, value: Any) -> jax.Array | np.ndarray:
    """As `as_array`, for what is not simply an array of a usual type."""
    if hasattr(value, "__jax_array__") and not isinstance(value, jax.Array):
        value = value.__jax_array__()
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(
            f"{operator}: '{name}' is a masked array, whose mask would be lost; pass "
            "its filled() values, and the mask as an array of its own."
        )
    if not (
        isinstance(value, (jax.Array, np.ndarray, np.generic))
        or is_python_number(value)
    ):
        raise TypeError(
            f"{operator}: '{name}' must be an array, not {type(value).__name__}; "
            "convert it with jnp.asarray."
        )
    array = value if isinstance(value, jax.Array) else np.asarray(value)
    if is_python_number(value):
        default = jnp.asarray(type(value)(0)).dtype
        # An integer that does not fit stays what it is: a 64-bit one, or an object.
        least = np.min_scalar_type(value) if isinstance(value, int) else default
        array = array.astype(default) if np.can_cast(least, default) else array
    _check_type(operator, name, array.dtype)
    check_x64(operator, name, array.dtype)
    return array


def _check_type(operator: str, name: str, dtype: np.dtype) -> None:
    """Requires a type of numbers that JAX has; TypeError otherwise."""
    # JAX's compiled functions take swapped bytes as they are, once they are cached.
    number = jnp.issubdtype(dtype, np.number) or jnp.issubdtype(dtype, np.bool_)
    wide = number and dtype.itemsize > (16 if dtype.kind == "c" else 8)
    if wide or not number or not dtype.isnative:
        raise TypeError(
            f"{operator}: '{name}' has elements of type {dtype}; they must be "
            "numbers of a type that JAX has, in native byte order."
        )


def as_dtype(operator: str, dtype: DTypeLike) -> np.dtype:
    """Returns a data type of numbers or bool from whatever stands for one."""
    try:
        kind = jnp.dtype(dtype)
    except TypeError:
        raise TypeError(f"{operator}: dtype {dtype!r} is no data type.") from None
    if not jnp.issubdtype(kind, np.number) and kind != np.dtype(bool):
        raise TypeError(f"{operator}: dtype is {kind}; it must be a type of numbers.")
    return kind


class Scalar(NamedTuple):
    """A scalar operand: two arguments of a compiled function, of which one is None.

    Attributes:
      array: an argument like others. For another number nothing compiles anew.
      constant: the Python number 0 or 1, a static argument. These two are usual, and a
        GPU gets no copy of them in each call.
    """

    array: Any
    constant: int | None


CONSTANTS = Scalar(None, 0), Scalar(None, 1)


def as_scalar(
    operator: str,
    name: str,
    value: Any,
    tensor: Any,
    *,
    cast: bool = False,
) -> Scalar:
    """A scalar operand of the type of `tensor`.

    A Python number takes the type, and must be exact in it but for floating-point
    rounding; with `cast`, a float becomes an integer as `cast_float_value` says.
    `in_type` checks an array, while the compiled function is traced.
    """
    kind = type(value)
    number = kind is int or kind is float or kind is bool
    usual = number and (value == 0 or value == 1)
    if usual and math.copysign(1, value) > 0:  # -0.0 is another number
        return CONSTANTS[int(value)]
    if not is_python_number(value):
        return Scalar(as_array(operator, name, value), None)
    dtype: np.dtype = tensor.dtype
    if cast and isinstance(value, float) and is_integer(dtype):
        return Scalar(cast_float_value(value, dtype), None)
    return Scalar(_from_python(operator, name, value, dtype), None)


def in_type(
    operator: str, name: str, scalar: Scalar, dtype: np.dtype, *, cast: bool = False
) -> jax.Array:
    """`scalar` as an array of rank 0 and of type `dtype`, not weakly typed.

    With `cast`, a traced Python float is truncated for an integer type.
    """
    if scalar.constant is not None:
        return jnp.asarray(np.asarray(scalar.constant).astype(dtype))
    array = jnp.asarray(scalar.array)
    require(
        operator,
        array.shape == (),
        f"{name} has sizes {show(array.shape)}; it must be a scalar.",
    )
    return strong(typed_as(operator, name, array, dtype, cast=cast))


def typed_as(
    operator: str, name: str, array: jax.Array, dtype: np.dtype, *, cast: bool = False
) -> jax.Array:
    """`array` if it has type `dtype`, or takes it as a weakly typed one does.

    A weak type is a Python number's that was traced. What value it has is not known
    then, so it must not be of a kind that the type could not hold. An integer
    saturates; with `cast`, a float is truncated and saturates.
    """
    if array.dtype == dtype:
        return array
    weak = isinstance(array, jax.Array) and jax.typeof(array).weak_type
    held = _kinds_held(dtype) + ("f" if cast else "")
    require(
        operator,
        weak and array.dtype.kind in held,
        f"{name} has data type {show(array.dtype)}, while the tensor has "
        f"{show(dtype)}; both must be the same.",
    )
    return _saturated(array, dtype)


def _saturated(array: jax.Array, dtype: np.dtype) -> jax.Array:
    """`array` in `dtype`; what an integer type does not hold becomes its limit."""
    if is_integer(dtype) and is_integer(array.dtype):
        wanted, own = jnp.iinfo(dtype), jnp.iinfo(array.dtype)
        low, high = max(wanted.min, own.min), min(wanted.max, own.max)
        limits = (np.asarray(limit, array.dtype) for limit in (low, high))
        array = jnp.clip(array, *limits)
    return lax.convert_element_type(array, dtype)  # which saturates floats


def _kinds_held(dtype: np.dtype) -> str:
    """The kinds of Python numbers that a type holds, by NumPy's letters."""
    if jnp.issubdtype(dtype, np.complexfloating):
        return "biufc"
    return "biuf" if is_floating(dtype) else "biu" if is_integer(dtype) else "b"


def strong(array: jax.Array) -> jax.Array:
    """`array` without a weak type, which would let a result be promoted later."""
    return lax.convert_element_type(array, array.dtype)


def _from_python(operator: str, name: str, value: Any, dtype: np.dtype) -> np.ndarray:
    """A Python number as an array of rank 0 of type `dtype`, which must hold it."""
    problem = _misfit(value, dtype)
    if problem:
        require(
            operator, False, f"{name} is {show_number(value)}; {show(dtype)} {problem}."
        )
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
        if isinstance(value, float) and not value.is_integer():
            return "holds whole numbers"
        return None if low <= value <= high else f"holds {low} to {high}"
    huge = isinstance(value, int) and abs(value) >= 2**1023
    return "holds no numbers of this size" if huge else None


def _check_static(operator: str, name: str, value: Any) -> None:
    if isinstance(value, jax.core.Tracer):
        raise TypeError(
            f"{operator}: {name} is traced; it must be an integer, or be made of "
            "integers, known when the program is traced. Close over it, or name it in "
            "jax.jit's static_argnums or static_argnames."
        )


def as_integer(operator: str, name: str, value: Any) -> int:
    """`value` as a Python integer, from whatever says that it is one."""
    if type(value) is int and -(2**64) < value < 2**64:
        return value
    _check_static(operator, name, value)
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(
            f"{operator}: {name} is {value}, a boolean; it must be an integer."
        )
    try:
        number = int(value.__index__())
    except (AttributeError, TypeError):
        raise TypeError(
            f"{operator}: {name} must be an integer that is known when the program is "
            f"traced, not {type(value).__name__}."
        ) from None
    if abs(number) >= 2**64:
        raise DescriptorError(
            f"{operator}: {name} is {show_number(number)}; it must be an integer of at "
            "most 64 bits."
        )
    return number


def as_size(operator: str, name: str, value: Any) -> int:
    """`value` as a Python integer, or as it is if it is a symbolic size."""
    symbolic: int = value  # it computes as an integer does
    if is_symbolic_dim(value):
        return symbolic
    return as_integer(operator, name, value)


def as_sizes(operator: str, name: str, values: Sizes) -> tuple[int, ...]:
    """`values` as a tuple of sizes: Python integers, and symbolic sizes as they are."""
    usual = type(values) is tuple and {*map(type, values)} == {int}
    if usual and max(values) < 2**64 and min(values) > -(2**64):
        return typing.cast("tuple[int, ...]", values)
    _check_static(operator, name, values)
    if not is_sequence(values):
        raise TypeError(
            f"{operator}: {name} must be a sequence of integers, not "
            f"{type(values).__name__}."
        )
    return tuple([as_size(operator, name, value) for value in values])


def check_int32(operator: str, name: str, value: int) -> None:
    """Requires that an attribute is an INT of the C struct."""
    require(
        operator,
        INT32_MIN <= value <= INT32_MAX,
        f"{name} is {show_number(value)}; it must be an INT32, {INT32_MIN} to "
        f"{INT32_MAX}.",
    )


def check_float(operator: str, name: str, value: Any) -> None:
    """Requires that an attribute is a real number, and not past what a double holds."""
    number = isinstance(value, (int, float, np.integer, np.floating))
    huge = isinstance(value, int) and abs(value) >= 2**1023
    require(
        operator,
        number and not huge,
        f"{name} is {show_number(value)}; it must be a real number that a "
        "floating-point type holds.",
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
