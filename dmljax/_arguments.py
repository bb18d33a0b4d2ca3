"""Turns what callers pass into arrays, scalars, sizes and integers.

This module also has the types of arrays and the conversions between them, but no rules
of single operators.

Every call checks what a compiled program would get wrong in silence: JAX truncates
64-bit values where x64 mode is off, and a Python number may not fit. Other rules are
checked while a call is traced, and cost a repeated call nothing.

Messages begin with the argument. `public` puts the function in front.
"""

import functools
import sys
import typing
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.export import is_symbolic_dim
from jax.typing import DTypeLike

from dmljax._check import ArgumentError, ArgumentTypeError, as_python, show
from dmljax._types import WIDE, Sizes, constant, keeps_64_bits

TURN_ON_X64 = "Turn it on with jax.config.update('jax_enable_x64', True)"


# TYPES


@functools.cache
def is_integer(dtype: np.dtype) -> bool:
    """Whether `dtype` is an integer type, including those of 4 bits."""
    return bool(jnp.issubdtype(dtype, jnp.integer))


def check_x64(name: str, dtype: np.dtype) -> None:
    """Requires JAX's x64 mode for 64-bit types: JAX would truncate them in silence."""
    if dtype in WIDE and not keeps_64_bits():
        narrow = np.dtype(f"{dtype.kind}{dtype.itemsize // 2}")
        raise ArgumentError(
            f"{name} has data type {show(dtype)}, which needs JAX's x64 mode. "
            f"{TURN_ON_X64} or JAX_ENABLE_X64=1. If {show(narrow)} holds the "
            f"values, use it: .astype('{narrow}') converts an array."
        )


def cast_hint(name: str, dtype: np.dtype, wanted: np.dtype) -> str:
    """Suggests a cast, for the end of an error message.

    If `wanted` does not hold every value of `dtype`, the caller has to choose a type.

    >>> cast_hint("b", np.dtype("int8"), jnp.dtype("bfloat16"))
    " Write b.astype('bfloat16')."
    >>> cast_hint("b", np.dtype("int64"), np.dtype("float64"))[:48]
    ' FLOAT64 does not hold every value of INT64: cho'
    """
    fits = np.can_cast(dtype, wanted)
    # NumPy says that float64 holds each int64, a float8 each int8, and every type of a
    # byte each float8.
    if fits and is_integer(dtype) and not is_integer(wanted):
        fits = bool(jnp.iinfo(dtype).bits <= jnp.finfo(wanted).nmant + 1)
    elif jnp.issubdtype(dtype, np.floating):
        fits = fits and dtype.itemsize < wanted.itemsize
    if fits:
        return f" Write {name}.astype('{wanted}')."
    return (
        f" {show(wanted)} does not hold every value of {show(dtype)}: choose a type "
        "that holds yours, and write .astype(dtype)."
    )


@functools.lru_cache
def check_numbers(name: str, has: str, dtype: np.dtype) -> None:
    """Requires a type of numbers, or bool, of which JAX has arrays.

    `has` is the verb of the message, such as "has elements of type".
    """
    # For NumPy, a timedelta64 is a number.
    is_number = jnp.issubdtype(dtype, np.number) and dtype.kind != "m"
    # XLA may end the process while it compiles floats of 6 bits.
    has_six_bits = dtype.name.startswith("float6_")
    fits = dtype.itemsize <= 8 or dtype == np.complex128  # no longdouble
    # JAX refuses a NumPy array whose bytes are not in native order, unless a program is
    # cached for the type in native order: this program reads the bytes, and is wrong.
    if dtype == np.bool_ or (
        is_number and fits and dtype.isnative and not has_six_bits
    ):
        return
    remedy = ""
    if has_six_bits:
        remedy = " Floats of 6 bits are not supported."
    elif is_number and not dtype.isnative:
        remedy = ' Write a.astype(a.dtype.newbyteorder("=")) for an array a.'
    elif jnp.issubdtype(dtype, jax.dtypes.prng_key):
        remedy = (
            " jax.random.key_data makes numbers of keys, and jax.random.wrap_key_data "
            "makes keys of them."
        )
    raise ArgumentTypeError(
        f"{name} {has} {dtype}; it must be a type of numbers that JAX has, in "
        f"native byte order.{remedy}"
    )


def as_dtype(dtype: DTypeLike) -> np.dtype:
    """Returns a data type of numbers or bool from what NumPy takes as `dtype`."""
    try:
        # NumPy takes an array, with a warning, or a NumPy scalar, and uses its type. We
        # refuse both.
        if isinstance(dtype, (Array, np.generic)):
            raise TypeError
        result = jnp.dtype(dtype)
    except (TypeError, ValueError):
        raise ArgumentTypeError(
            f"dtype is {as_python(dtype)}; it must be a data type such as jnp.float32."
        ) from None
    check_numbers("dtype", "is", result)
    return result


# ARRAYS


def as_number(value: Any) -> Any:
    """Returns a Python number for a value whose type nobody chose, and otherwise None.

    Nobody chose the type of a Python number, or of a NumPy scalar of a type in `WIDE`,
    such as ``np.mean([1, 2])``, a float64.
    """
    # A float64 of NumPy is an instance of `float`, too.
    if isinstance(value, (int, float, complex)) and not isinstance(value, np.generic):
        return value
    array = unwrap_array(value)
    is_scalar = isinstance(array, (np.ndarray, np.generic)) and array.ndim == 0
    is_masked = isinstance(array, np.ma.MaskedArray)
    if is_scalar and array.dtype in WIDE and not is_masked:
        return array.item()
    return None


def as_array(name: str, value: Any, *, strict: bool = False) -> Array | np.ndarray:
    """Returns `value` as an array of a type that JAX keeps.

    Where x64 mode is off, a JAX array of 64 bits is an error, and so is a NumPy array
    with `strict`. Otherwise a NumPy array becomes 32 bits, as in JAX.

    Raises:
      TypeError: if `value` is not an array, or its elements are not numbers.
      DescriptorError: if its type needs x64 mode, and the mode is off, or if an integer
        does not fit in 32 bits.
    """
    array = unwrap_array(value)
    if isinstance(array, Array):  # the usual case is short
        dtype = array.dtype
        check_numbers(name, "has elements of type", dtype)
        if dtype in WIDE:
            check_x64(name, dtype)
        return array
    if isinstance(array, np.ma.MaskedArray):
        raise ArgumentTypeError(
            f"{name} is a masked array, whose mask would be lost; pass "
            "its filled() values, and the mask as an array of its own."
        )
    has_type = isinstance(array, (np.ndarray, np.generic))
    if not has_type and not isinstance(array, (int, float, complex)):
        remedy = ""
        if isinstance(array, jax.ShapeDtypeStruct):
            remedy = ", which has no elements; jax.eval_shape traces a function with it"
        elif isinstance(array, dict):
            remedy = "; jax.tree.map calls a function with each array of a tree"
        elif isinstance(array, (list, tuple)) or hasattr(array, "__array__"):
            remedy = "; convert it with jnp.asarray"
        raise ArgumentTypeError(
            f"{name} must be a number or an array, not {type(array).__name__}{remedy}."
        )
    array = np.asarray(array)
    if not has_type and array.dtype == object:
        raise ArgumentError(
            f"{name} is {as_python(value)}; it must be an integer of at most 64 bits."
        )
    check_numbers(name, "has elements of type", array.dtype)
    if strict and has_type:
        check_x64(name, array.dtype)
        # JAX would narrow an array of NumPy, even if its own may have 64 bits.
        return constant(array, array.dtype)
    return _narrow(name, array)


def _narrow(name: str, array: np.ndarray) -> np.ndarray:
    """Converts an array to the type that JAX gives it. An integer must fit."""
    dtype = jax.dtypes.canonicalize_dtype(array.dtype)
    if dtype == array.dtype:
        return array
    if is_integer(dtype) and array.size:
        limits = jnp.iinfo(dtype)
        for extreme in (array.min(), array.max()):
            if not limits.min <= extreme <= limits.max:
                raise ArgumentError(
                    f"{name} has an element {extreme}, which {show(dtype)} "
                    f"does not hold. {show(array.dtype)} needs JAX's x64 mode. "
                    f"{TURN_ON_X64}."
                )
    with np.errstate(over="ignore"):  # a number past the largest float is infinity
        return array.astype(dtype)


def unwrap_array(value: Any) -> Any:
    """Returns the array inside of an object that wraps it, such as flax's nnx.Param."""
    # A class has the method as well, but its instances are the arrays.
    if isinstance(value, (Array, jax.ShapeDtypeStruct, type)):
        return value
    if hasattr(value, "__jax_array__"):
        return value.__jax_array__()
    if hasattr(value, "weak_type"):  # JAX 0.9.0 wraps a constant while it traces
        return jnp.asarray(value)
    return value


# SCALARS


def as_scalar(
    name: str,
    value: Any,
    dtype: np.dtype,
    *,
    cast: bool = False,
    strict: bool = False,
    owner: str = "the tensor",
) -> Array | np.ndarray:
    """Returns a scalar of type `dtype`, the type of `owner`.

    A Python number takes this type, and so does a NumPy scalar of 64 bits, except with
    `strict`. Only rounding to a float may change the number. See `convert` for `cast`
    and for arrays of another type.
    """
    is_strict = strict and isinstance(value, np.generic)
    number = None if is_strict else as_number(value)
    if number is not None:
        is_truncated = cast and isinstance(number, float) and is_integer(dtype)
        if not is_truncated:
            return from_python(name, number, dtype)
        value = jnp.asarray(number)  # `convert` truncates it, as a traced float
    array = as_array(name, value, strict=strict)
    if array.shape != ():
        raise ArgumentError(
            f"{name} has sizes {show(array.shape)}; it must be a scalar. "
            "jax.vmap gives each array of a batch a scalar of its own."
        )
    return convert(name, array, dtype, cast=cast, owner=owner)


def convert(
    name: str,
    array: Any,
    dtype: np.dtype,
    *,
    cast: bool = False,
    owner: str = "the tensor",
) -> Array:
    """Converts a weakly typed array to `dtype`, the type of `owner`.

    An array without a weak type must have this type, or be a bool.

    A traced Python number has a weak type and an unknown value. An integer too large
    for the type saturates, and never wraps. A float for an integer type is an error,
    or, with `cast`, is truncated and saturates. A traced Python bool has no weak type,
    and passes for a number, because 0 and 1 fit all types.
    """
    if array.dtype == dtype:
        same: Array = array
        return same
    kinds = "iufc"  # the kinds of weak types that `dtype` accepts
    if dtype == np.bool_:
        kinds = ""
    elif not jnp.issubdtype(dtype, np.complexfloating):
        kinds = "iu" if is_integer(dtype) and not cast else "iuf"
    is_number = jax.typeof(array).weak_type and array.dtype.kind in kinds
    if array.dtype != np.bool_ and not is_number:
        raise ArgumentError(
            f"{name} has data type {show(array.dtype)}, while {owner} has "
            f"{show(dtype)}; both must be the same."
            f"{cast_hint(name.split()[0], array.dtype, dtype)}"
        )
    if array.dtype == np.bool_:  # which XLA for GPUs can't convert to 4 bits
        array = lax.convert_element_type(array, np.int8)
    return cast_array(array, dtype)


def cast_array(array: Array, dtype: np.dtype) -> Array:
    """Converts an array. In an integer type, numbers saturate, and NaN becomes 0.

    Devices already convert floats in this way. But JAX converts a literal in a program
    by NumPy, and the uint8 of 300.7 then wraps around to 44 (jax-ml/jax#10005). A
    barrier hides the literal from JAX. A complex number loses its imaginary part.
    """
    if is_integer(dtype) and is_integer(array.dtype) and dtype != array.dtype:
        limits = [jnp.iinfo(each) for each in (dtype, array.dtype)]
        low = constant(max(each.min for each in limits), array.dtype)
        high = constant(min(each.max for each in limits), array.dtype)
        array = lax.clamp(low, array, high)
    elif is_integer(dtype) and jnp.issubdtype(array.dtype, jnp.inexact):
        array = lax.optimization_barrier(jnp.real(array))
    return lax.convert_element_type(array, dtype)


def drop_weak_type(array: Array) -> Array:
    """Returns `array` without a weak type: its type no longer yields to another."""
    return lax.convert_element_type(array, array.dtype)


def from_python(name: str, value: Any, dtype: np.dtype) -> Array | np.ndarray:
    """Returns a Python number as a scalar array of `dtype`, which must hold it.

    A float past the largest float of the type becomes infinity, or NaN in a type
    without infinity.
    """
    # The usual case is short, without np.errstate: every type of floats holds 65504,
    # and NumPy has nothing to warn of.
    is_real = type(value) in (int, float)
    if is_real and dtype.kind == "f" and -65504 <= value <= 65504:
        return constant(np.array(value, dtype), dtype)
    for_integers = is_integer(dtype)
    if isinstance(value, complex):
        fits = dtype.kind == "c"
        rule = "has no imaginary part"
    elif dtype.kind == "b":
        fits = value in (0, 1)
        rule = "holds False and True"
    elif not for_integers:
        # float(), below, raises an error for an integer past this limit.
        fits = not isinstance(value, int) or abs(value) <= sys.float_info.max
        rule = "holds no numbers of this size"
    elif value % 1 != 0:
        fits = False
        rule = "holds whole numbers"
    else:
        limits = jnp.iinfo(dtype)
        fits = limits.min <= value <= limits.max
        rule = f"holds {limits.min} to {limits.max}"
    if not fits:
        raise ArgumentError(f"{name} is {as_python(value)}; {show(dtype)} {rule}.")
    if not for_integers and not isinstance(value, complex):
        value = float(value)  # large integers have no cast to bfloat16
    with np.errstate(over="ignore"):
        return constant(np.array(value, dtype), dtype)


def as_real(name: str, value: Any) -> float:
    """Returns a real number, which must be in the range of a double."""
    is_real = isinstance(value, (int, float, np.integer, np.floating))
    is_other = isinstance(value, (bool, np.timedelta64))  # subclasses of integers
    is_huge = isinstance(value, int) and abs(value) > sys.float_info.max
    if not is_real or is_other or is_huge:
        raise ArgumentError(
            f"{name} is {as_python(value)}; it must be a real number that "
            "a floating-point type holds."
        )
    return typing.cast("float", value)


# INTEGERS AND SIZES


def check_static(name: str, value: Any, must_be: str) -> None:
    """Refuses a traced value."""
    if isinstance(value, jax.core.Tracer):
        raise ArgumentTypeError(
            f"{name} is traced; it must be {must_be}, known when the "
            "program is traced. Close over it, or name it in jax.jit's static_argnums "
            "or static_argnames."
        )


def as_integer(name: str, value: Any, must_be: str = "an integer") -> int:
    """Returns an integer of Python, NumPy or JAX, of up to 64 bits, as a Python int.

    `must_be` says what to pass in place of a traced number.
    """
    if type(value) is int and -(2**64) < value < 2**64:
        return value
    check_static(name, value, must_be)
    if isinstance(value, (bool, np.bool_)):
        raise ArgumentTypeError(f"{name} is {value}, a boolean; it must be an integer.")
    try:
        number = int(value.__index__())
        if isinstance(value, np.ma.MaskedArray):
            raise TypeError
    except (AttributeError, TypeError):
        raise ArgumentTypeError(
            f"{name} must be an integer that is known when the program is "
            f"traced, not {type(value).__name__}."
        ) from None
    if abs(number) >= 2**64:
        raise ArgumentError(
            f"{name} is {as_python(number)}; it must be an integer of at most 64 bits."
        )
    return number


def as_axis(name: str, axis: int, rank: int) -> int:
    """Returns an axis. A negative axis counts from the end."""
    number = as_integer(name, axis)
    if not -rank <= number < rank:
        raise ArgumentError(f"{name} is {number}; it must be in [{-rank}, {rank}).")
    return number % rank


def as_size(name: str, value: Any, must_be: str = "an integer") -> int:
    """Returns an integer like `as_integer`, or a symbolic size as given."""
    if is_symbolic_dim(value):
        return typing.cast("int", value)  # a symbolic size has an int's operators
    return as_integer(name, value, must_be)


def is_sequence(values: Any) -> bool:
    """Whether `values` may be a list of integers."""
    if isinstance(values, np.ndarray):
        return values.ndim > 0 and not isinstance(values, np.ma.MaskedArray)
    is_text = isinstance(values, (str, bytes, bytearray, memoryview))
    return isinstance(values, Sequence) and not is_text  # a text is a sequence, too


def as_sizes(name: str, values: Sizes, hint: str = "") -> tuple[int, ...]:
    """Returns `values` as a tuple of Python integers and symbolic sizes, with a hash.

    `hint` ends the message about a sequence of sequences.
    """
    # The usual case is short: a tuple of Python integers, found without a loop.
    has_integers = type(values) is tuple and {*map(type, values)} == {int}
    if has_integers and max(values) < 2**64 and min(values) > -(2**64):
        return values  # type: ignore[return-value]
    check_static(name, values, "a tuple of integers")
    if not is_sequence(values):
        raise ArgumentTypeError(
            f"{name} must be a sequence of integers, one for each axis, "
            f"not {type(values).__name__}."
        )
    for value in values:
        rank = getattr(value, "ndim", None)
        is_nested = is_sequence(value) if rank is None else rank > 0
        if is_nested:
            raise ArgumentTypeError(
                f"{name} has {as_python(value)} for an axis; it must have "
                f"one integer for each axis.{hint}"
            )
        check_static(name, value, "a tuple of integers")
    element = f"an element of {name}"
    return tuple([as_size(element, value) for value in values])
