"""The initial values of a resource: lists, repeated values, sequences and files."""

import io
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dmljax._arguments import check_x64
from dmljax._check import LONGEST_PATH, listed, quoted, show, shown
from dmljax._fields import (
    DATA_TYPE,
    DATA_TYPES,
    NUMBER,
    STRING,
    UNSIGNED,
    Field,
    Fields,
    ModelError,
    read_fields,
)
from dmljax._images import codec, is_image, read_image
from dmljax._json import NONFINITE, enum_prefix, number_from_json
from dmljax._memory import Budget, read_file
from dmljax._support import UP_TO_64_BITS
from dmljax._tensor import MAX_ELEMENTS, DataType, is_floating

COUNT = Field(UNSIGNED, "How many elements there are.", required=True)
# The objects that `initialValues` may be, by the field that each of them alone has.
GENERATORS: Mapping[str, Fields] = {
    "value": {
        "valueCount": COUNT,
        "value": Field(NUMBER, "Every element.", required=True),
    },
    "valueStart": {
        "valueCount": COUNT,
        "valueStart": Field(NUMBER, "The first element.", required=True),
        "valueDelta": Field(NUMBER, "What is added for each next one.", required=True),
    },
    "sourcePath": {
        "sourcePath": Field(
            STRING,
            "A .npy file, a .png or .jpg image, or raw little-endian data; relative "
            "to the folder of the model, or else to the current directory.",
            required=True,
        ),
    },
}
# An element of a list without a common type.
MIXED_ELEMENT: Fields = {
    "type": Field(DATA_TYPE, "The data type of this element.", required=True),
    "value": Field(NUMBER, "The element.", required=True),
    "name": Field(STRING, "A name for the reader."),
}
NPY_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


class Recipe(NamedTuple):
    """An object that says how the values are made, and what it may need for that."""

    generator: Mapping[str, Any]
    fields: Mapping[str, Any]  # of the resource
    data_type: DataType
    folder: Path
    budget: Budget


def data_type_of(fields: Mapping[str, Any], key: str) -> DataType:
    """The data type that a field names, UNKNOWN if it does not."""
    name: str = fields.get(key, "UNKNOWN")
    return DataType[name.removeprefix(enum_prefix(DataType))]


def initial_values(
    fields: Mapping[str, Any], folder: Path, budget: Budget
) -> tuple[DataType, np.ndarray]:
    """The flat initial values of a resource and their type.

    Of a list of mixed types they are bytes, and the type is UNKNOWN.

    Args:
      fields: of the resource.
      folder: what the path of a file is relative to.
      budget: what the values may use.

    Raises:
      ModelError: if the values do not fit the type, or a file cannot be read.
    """
    values = fields["initialValues"]
    data_type = data_type_of(fields, "initialValuesDataType")
    if values == "deferred":
        raise ModelError(
            "the field 'initialValues' is 'deferred', which only ONNX dispatchables "
            "have; give the values."
        )
    if isinstance(values, dict):
        array = _generated(values, fields, data_type, folder, budget)
    elif not isinstance(values, list):
        raise ModelError(
            f"the field 'initialValues' is {shown(values)}; it must be a list or an "
            "object."
        )
    elif data_type == DataType.UNKNOWN and values and isinstance(values[0], dict):
        array = _mixed(values)
    else:
        array = _numbers(values, _known(data_type), "initialValues[{}]")
    if not 1 <= array.size <= MAX_ELEMENTS:
        raise ModelError(
            f"the initial values have {array.size} elements; there must be 1 to "
            f"{MAX_ELEMENTS}."
        )
    mixed = isinstance(values, list) and data_type == DataType.UNKNOWN
    return DataType.UNKNOWN if mixed else DataType[array.dtype.name.upper()], array


def _known(data_type: DataType) -> DataType:
    if data_type == DataType.UNKNOWN:
        raise ModelError(
            "the field 'initialValuesDataType' is missing or UNKNOWN; only a .npy file "
            "and a list of objects with 'type' and 'value' carry their own types."
        )
    check_x64("initialValuesDataType", "initialValues", data_type.dtype)
    return data_type


# Lists


def _numbers(values: list[Any], data_type: DataType, place: str) -> np.ndarray:
    """The numbers as an array; `place` is where one stands.

    Past the largest number of a floating type is infinity.
    """
    if is_floating(data_type.dtype):
        named = (NONFINITE.get(v.lower(), v) if type(v) is str else v for v in values)
        numbers: list[Any] = list(named)
        kinds, high = {int, float}, int(np.finfo(np.float64).max)
        low = -high
    else:
        numbers, kinds, limits = values, {int}, np.iinfo(data_type.dtype)
        low, high = int(limits.min), int(limits.max)
    for index, number in enumerate(numbers):
        kind = type(number)
        if kind not in kinds or (kind is int and not low <= number <= high):
            _number(values[index], data_type, place.format(index))  # says what is wrong
    return _array(numbers, data_type)


def _array(numbers: list[int | float], data_type: DataType) -> np.ndarray:
    wide = np.float64 if is_floating(data_type.dtype) else data_type.dtype
    with np.errstate(over="ignore"):
        return np.array(numbers, wide).astype(data_type.dtype)


def _number(value: Any, data_type: DataType, what: str) -> int | float:
    """`value` as a number that `data_type` holds."""
    if is_floating(data_type.dtype):
        names = ", ".join(f"'{name}'" for name in NONFINITE)
        wrong = ModelError(f"{what} is {shown(value)}; it must be a number or {names}.")
        try:
            return float(number_from_json(value, wrong))
        except OverflowError:
            raise ModelError(
                f"{what} is {shown(value)}, which is too large for {data_type.name}."
            ) from None
    limits = np.iinfo(data_type.dtype)
    if type(value) is int and limits.min <= value <= limits.max:
        return value
    raise ModelError(
        f"{what} is {shown(value)}; {data_type.name} holds the integers "
        f"{limits.min} to {limits.max}."
    )


def _mixed(values: list[Any]) -> np.ndarray:
    """The bytes of elements that each have their own type, without gaps."""
    parts = []
    for index, value in enumerate(values):
        place = f"initialValues[{index}]"
        try:
            fields = read_fields(value, MIXED_ELEMENT)
        except ModelError as error:
            raise ModelError(f"{place}: {error}") from error
        data_type = data_type_of(fields, "type")
        if data_type == DataType.UNKNOWN:
            raise ModelError(
                f"{place}: the field 'type' is UNKNOWN; it must be one of "
                f"{', '.join(DATA_TYPES[:-1])}."
            )
        element = _number(fields["value"], data_type, f"{place}: the field 'value'")
        parts.append(_array([element], data_type).tobytes())
    return np.frombuffer(b"".join(parts), np.uint8)


# Generators


def _generated(
    values: dict[str, Any],
    fields: Mapping[str, Any],
    data_type: DataType,
    folder: Path,
    budget: Budget,
) -> np.ndarray:
    kinds = [kind for kind in GENERATORS if kind in values]
    if len(kinds) != 1:
        raise ModelError(
            f"the field 'initialValues' has the fields {listed(values)}; it must have "
            f"one of {', '.join(GENERATORS)}."
        )
    try:
        checked = read_fields(values, GENERATORS[kinds[0]])
    except ModelError as error:
        raise ModelError(f"the field 'initialValues': {error}") from error
    return _MAKERS[kinds[0]](Recipe(checked, fields, data_type, folder, budget))


def _counted(recipe: Recipe) -> int:
    """The number of elements, for which there is room."""
    count: int = recipe.generator["valueCount"]
    if not 1 <= count <= MAX_ELEMENTS:
        raise ModelError(
            f"the field 'valueCount' is {count}; it must be 1 to {MAX_ELEMENTS}."
        )
    size = count * _known(recipe.data_type).dtype.itemsize
    recipe.budget.check(size, f"the field 'valueCount' is {count}, which")
    return count


def _scalar(recipe: Recipe, key: str) -> np.ndarray:
    data_type = _known(recipe.data_type)
    number = _number(recipe.generator[key], data_type, f"the field '{key}'")
    return _array([number], data_type)


def _constant(recipe: Recipe) -> np.ndarray:
    return np.repeat(_scalar(recipe, "value"), _counted(recipe))


def _sequence(recipe: Recipe) -> np.ndarray:
    """The start, and each value plus the delta; added up in the type, as the tool does.

    Integers wrap around.
    """
    start, delta = _scalar(recipe, "valueStart"), _scalar(recipe, "valueDelta")
    steps = np.repeat(delta, _counted(recipe))
    steps[:1] = start
    with np.errstate(over="ignore", invalid="ignore"):
        return np.add.accumulate(steps, dtype=steps.dtype, out=steps)


# Files


def _file(recipe: Recipe) -> np.ndarray:
    generator, fields, data_type, folder, budget = recipe
    name = generator["sourcePath"]
    place = f"sourcePath {quoted(name, LONGEST_PATH)}"
    path = _found(name, folder, place)
    content = read_file(path, budget, place)
    if path.suffix.lower() == ".npy":
        return _from_npy(content, data_type, place)
    data_type = _known(data_type)
    if is_image(path):
        return read_image(content, data_type, fields, place, budget)
    if len(content) % data_type.dtype.itemsize:
        raise ModelError(
            f"{place} has {len(content)} bytes; they must be a multiple of "
            f"{data_type.dtype.itemsize}, the size of an element of {data_type.name}."
        )
    return np.frombuffer(content, data_type.dtype.newbyteorder("<"))


def _found(name: str, folder: Path, place: str) -> Path:
    """The path relative to the model's folder, or else to the current directory."""
    for path in (folder / name, Path(name)):
        if os.path.exists(path):  # which, unlike a Path's, takes any string
            return path
    raise ModelError(
        f"{place} is not a file: there is none in the model's folder "
        f"{quoted(str(folder), LONGEST_PATH)}, nor in the current directory."
    )


_MAKERS: Mapping[str, Callable[[Recipe], np.ndarray]] = {
    "value": _constant,
    "valueStart": _sequence,
    "sourcePath": _file,
}


def _from_npy(content: bytes, data_type: DataType, place: str) -> np.ndarray:
    array = _npy_array(content, place)
    if array.dtype == bool:
        array = array.astype(np.uint8)
    own = DataType.__members__.get(array.dtype.name.upper())
    if own not in UP_TO_64_BITS:
        names = ", ".join(t.name for t in UP_TO_64_BITS)
        raise ModelError(f"{place} has type {array.dtype}; it must be one of {names}.")
    if data_type not in (DataType.UNKNOWN, own):
        raise ModelError(
            f"{place} has data type {own.name}, while 'initialValuesDataType' is "
            f"{data_type.name}; both must be the same."
        )
    return array.ravel().astype(_known(own).dtype)


def _npy_array(content: bytes, place: str) -> np.ndarray:
    """The array in a .npy file; nothing is allocated because its header says so."""
    with codec(place):
        file = io.BytesIO(content)
        version = np.lib.format.read_magic(file)
        if version not in NPY_HEADERS:
            raise ValueError(f"it has version {version}; it must be 1.0 or 2.0")
        shape, fortran_order, dtype = NPY_HEADERS[version](file)
        if dtype.hasobject:
            raise ValueError("it holds Python objects")
        start, count = file.tell(), math.prod(shape)
        size = len(content) - start
        if min(shape, default=1) < 1 or size < count * dtype.itemsize:
            raise ValueError(f"it has {size} bytes of data for sizes {show(shape)}")
        array = np.frombuffer(content, dtype, count, start)
        return array.reshape(shape, order="F" if fortran_order else "C")
