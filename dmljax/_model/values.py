"""The initial values of a resource: lists, repeated values, sequences and files.

A resource begins with the values that DxDispatch gives it, or the model is refused.
Images are in `_images`.
"""

import io
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dmljax._arguments import check_x64
from dmljax._check import LONGEST_PATH, ModelError, as_json, listed, quoted, show
from dmljax._json import NONFINITE, enum_prefix, number_from_json
from dmljax._model.fields import (
    DATA_TYPE,
    DATA_TYPES,
    NUMBER,
    STRING,
    UNSIGNED,
    Field,
    Fields,
    read_fields,
)
from dmljax._model.images import codec, is_image, read_image
from dmljax._model.limits import Budget, read_file
from dmljax._support import UP_TO_64_BITS
from dmljax._tensor import MAX_ELEMENTS, DataType
from dmljax._types import LARGEST_DOUBLE, is_floating

COUNT = Field(UNSIGNED, "How many elements there are.", required=True)
# The objects that `initialValues` may be, by the field that no other of them has.
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
# An element of a list whose elements have their own types.
MIXED_ELEMENT: Fields = {
    "type": Field(DATA_TYPE, "The data type of this element.", required=True),
    "value": Field(NUMBER, "The element.", required=True),
    "name": Field(STRING, "A name for the reader."),
}
# The versions of .npy files, and NumPy's public readers of their headers. There is none
# for version 3.0, which only adds names in Unicode to structured types.
NPY_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


class Recipe(NamedTuple):
    """The parts that make initial values by an object.

    Attributes:
      generator: the object.
      fields: the fields of the resource, some of which are about images.
      data_type: the type of the values, or UNKNOWN.
      folder: the folder of the model.
      budget: the memory that the model may use.
    """

    generator: Mapping[str, Any]
    fields: Mapping[str, Any]
    data_type: DataType
    folder: Path
    budget: Budget


def data_type_of(fields: Mapping[str, Any], key: str) -> DataType:
    """Returns the data type that a field names, or UNKNOWN if it is not there."""
    name: str = fields.get(key, "UNKNOWN")
    return DataType[name.removeprefix(enum_prefix(DataType))]


def initial_values(
    fields: Mapping[str, Any], folder: Path, budget: Budget
) -> tuple[DataType, np.ndarray]:
    """Makes the flat initial values of a resource, and says their type.

    For a list of mixed types the values are bytes, and the type is UNKNOWN.

    Args:
      fields: the fields of the resource.
      folder: the folder that the path of a file is relative to.
      budget: the memory that the values may use.

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
            f"the field 'initialValues' is {as_json(values)}; it must be a list or an "
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
    """Makes an array of numbers. `place` is where one stands, for messages.

    A number past the largest one of a floating type becomes infinity.
    """
    # Lists may have millions of elements. This loop tests each by plain comparisons,
    # and only what fails goes to the slower _number, which says what is wrong.
    if is_floating(data_type.dtype):
        named = (NONFINITE.get(v.lower(), v) if type(v) is str else v for v in values)
        numbers: list[Any] = list(named)
        kinds, low, high = {int, float}, -LARGEST_DOUBLE, LARGEST_DOUBLE
    else:
        numbers, kinds, limits = values, {int}, np.iinfo(data_type.dtype)
        low, high = int(limits.min), int(limits.max)
    for index, number in enumerate(numbers):
        kind = type(number)
        if kind not in kinds or (kind is int and not low <= number <= high):
            _number(values[index], data_type, place.format(index))
    return _array(numbers, data_type)


def _array(numbers: list[int | float], data_type: DataType) -> np.ndarray:
    wide = np.float64 if is_floating(data_type.dtype) else data_type.dtype
    with np.errstate(over="ignore"):
        return np.array(numbers, wide).astype(data_type.dtype)


def _number(value: Any, data_type: DataType, what: str) -> int | float:
    """Returns `value` as a number that `data_type` holds; ModelError if it is none."""
    if is_floating(data_type.dtype):
        names = ", ".join(f"'{name}'" for name in NONFINITE)
        wrong = ModelError(
            f"{what} is {as_json(value)}; it must be a number or {names}."
        )
        try:
            return float(number_from_json(value, wrong))
        except OverflowError:
            raise ModelError(
                f"{what} is {as_json(value)}, which is too large for {data_type.name}."
            ) from None
    limits = np.iinfo(data_type.dtype)
    if type(value) is int and limits.min <= value <= limits.max:
        return value
    raise ModelError(
        f"{what} is {as_json(value)}; {data_type.name} holds the integers "
        f"{limits.min} to {limits.max}."
    )


def _mixed(values: list[Any]) -> np.ndarray:
    """Joins the bytes of elements that each have their own type, without gaps."""
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
    """Reads the number of elements, and requires that there is room for them."""
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
    """Makes a sequence of a start and steps of a delta.

    Each value is the one before plus the delta, added in the type as the tool does it:
    floats are rounded in every step, and integers wrap around.
    """
    start, delta = _scalar(recipe, "valueStart"), _scalar(recipe, "valueDelta")
    steps = np.repeat(delta, _counted(recipe))
    steps[:1] = start
    # In place, because the budget has counted one array.
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
    # Raw files are little-endian, as the tool's are.
    return np.frombuffer(content, data_type.dtype.newbyteorder("<"))


def _found(name: str, folder: Path, place: str) -> Path:
    """Finds a file in the model's folder, or else in the current directory."""
    for path in (folder / name, Path(name)):
        # Unlike the method of a Path, this function takes any string.
        if os.path.exists(path):
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
    """Reads the array in a .npy file."""
    # np.load would allocate what the header asks for, before it finds that the file has
    # less. Here the array is a view of the content.
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
