"""Resources and their initial values: lists, repeated values, sequences and files.

A resource begins with the values that DxDispatch gives it, or the model is refused.
How image files become values is in `images`.
"""

import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dmljax._arguments import check_x64
from dmljax._check import LONGEST_PATH, ModelError, as_json, listed, quoted, shortened
from dmljax._json import NONFINITE, enum_prefix, number_from_json
from dmljax._model.fields import at, read_fields, require
from dmljax._model.format import (
    DATA_TYPES,
    GENERATORS,
    MIXED_ELEMENT,
    RESOURCE,
    Resource,
)
from dmljax._model.images import FILE_COPIES, converting, is_image, read_image
from dmljax._model.limits import Budget, read_file
from dmljax._tensor import MAX_ELEMENTS, DataType
from dmljax._types import LARGEST_DOUBLE, is_floating

# A resource is in memory three times: as it is made, on the device, and as it is after
# the run.
COPIES = 3
# A .npy file is read as bytes, as an array, and as one in the order of this machine.
NPY_COPIES = 3
TYPE = "initialValuesDataType"


def read_resource(value: Any, folder: Path, budget: Budget) -> Resource:
    """Makes a buffer, filled with its initial values.

    Args:
      value: the object in the model.
      folder: the folder that the path of a file is relative to.
      budget: the memory that the model may use.

    Raises:
      ModelError: if the values do not fit their type or the buffer, or if a file can't
        be read.
    """
    fields = read_fields(value, RESOURCE)
    data_type, values = initial_values(fields, folder, budget)
    offset = fields.get("initialValuesOffsetInBytes", 0)
    end = offset + values.nbytes
    # A buffer without a given size has a multiple of 4 bytes, as the size has that a
    # tensor description implies.
    size = fields.get("sizeInBytes", -(-values.nbytes // 4) * 4)
    if not end <= size <= MAX_ELEMENTS * values.itemsize:
        begin = f" and begin at byte {offset}" if offset else ""
        raise ModelError(
            f"the field 'sizeInBytes' is {fields.get('sizeInBytes', 'missing')}, while "
            f"the initial values have {values.nbytes} bytes{begin}; it must be at "
            f"least {end}, and hold at most {MAX_ELEMENTS} elements."
        )
    budget.take(COPIES * size, "it")
    content = np.zeros(size, np.uint8)
    content[offset:end] = values.view(np.uint8)
    # With a size of its own the whole buffer is shown. Otherwise the initial values
    # are, without what rounding has added.
    whole = "sizeInBytes" in fields
    return Resource(
        data_type, content, size // values.itemsize if whole else values.size
    )


def initial_values(
    fields: Mapping[str, Any], folder: Path, budget: Budget
) -> tuple[DataType, np.ndarray]:
    """Makes the flat initial values of a resource, and says their type.

    For a list of mixed types the values are bytes, and the type is UNKNOWN.
    """
    values = fields["initialValues"]
    data_type = _data_type_of(fields, TYPE)
    mixed = data_type == DataType.UNKNOWN and isinstance(values, list)
    if values == "deferred":
        raise ModelError(
            "the field 'initialValues' is 'deferred', which only ONNX dispatchables "
            "have; give the values."
        )
    if isinstance(values, dict):
        array = _generate(fields, folder, budget)
    elif not isinstance(values, list):
        raise ModelError(
            f"the field 'initialValues' is {as_json(values)}; it must be a list or an "
            "object."
        )
    elif mixed and values and isinstance(values[0], dict):
        array = _join_mixed(values)
    else:
        array = _read_numbers(values, _require_type(data_type))
    rule = f"{array.size} elements; there must be 1 to {MAX_ELEMENTS}."
    require(1 <= array.size <= MAX_ELEMENTS, f"the initial values have {rule}")
    return DataType.UNKNOWN if mixed else DataType[array.dtype.name.upper()], array


def _data_type_of(fields: Mapping[str, Any], key: str) -> DataType:
    """Returns the data type that a field names, or UNKNOWN if it is not there."""
    name: str = fields.get(key, "UNKNOWN")
    return DataType[name.removeprefix(enum_prefix(DataType))]


def _require_type(data_type: DataType) -> DataType:
    """Returns the type of the values. It must be given, and be one of JAX's now."""
    if data_type == DataType.UNKNOWN:
        raise ModelError(
            "the field 'initialValuesDataType' is missing or UNKNOWN; only a .npy file "
            "and a list of objects with 'type' and 'value' carry their own types."
        )
    check_x64("initialValuesDataType", "'initialValues'", data_type.dtype)
    return data_type


# Numbers


def _read_numbers(values: list[Any], data_type: DataType) -> np.ndarray:
    """Makes an array of a list of numbers.

    A number past the largest one of a floating type becomes infinity.
    """
    # Lists may have millions of elements. This loop tests each by plain comparisons,
    # and only what fails goes to the slower _read_number. It says what is wrong.
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
            _read_number(values[index], data_type, f"initialValues[{index}]")
    return _as_array(numbers, data_type)


def _as_array(numbers: list[Any], data_type: DataType) -> np.ndarray:
    dtype = data_type.dtype
    # The tool reads a half as a float32, and so rounds it twice.
    first = np.promote_types(dtype, np.float32) if is_floating(dtype) else dtype
    with np.errstate(over="ignore"):
        return np.array(numbers, first).astype(dtype)


def _read_number(value: Any, data_type: DataType, what: str) -> np.ndarray:
    """Makes an array of one number; ModelError if `data_type` does not hold it."""
    if is_floating(data_type.dtype):
        names = ", ".join(f"'{name}'" for name in NONFINITE)
        wrong = ModelError(
            f"{what} is {as_json(value)}; it must be a number or {names}."
        )
        try:
            return _as_array([float(number_from_json(value, wrong))], data_type)
        except OverflowError:
            raise ModelError(
                f"{what} is {as_json(value)}, which is too large for {data_type.name}."
            ) from None
    limits = np.iinfo(data_type.dtype)
    if type(value) is int and limits.min <= value <= limits.max:
        return _as_array([value], data_type)
    raise ModelError(
        f"{what} is {as_json(value)}; {data_type.name} holds the integers "
        f"{limits.min} to {limits.max}."
    )


def _join_mixed(values: list[Any]) -> np.ndarray:
    """Joins the bytes of elements that each have their own type, without gaps."""
    content = bytearray()
    for index, value in enumerate(values):
        place = f"initialValues[{index}]"
        with at(place):
            fields = read_fields(value, MIXED_ELEMENT)
        data_type = _data_type_of(fields, "type")
        if data_type == DataType.UNKNOWN:
            rule = f"it must be one of {', '.join(DATA_TYPES)}."
            raise ModelError(f"{place}: the field 'type' is UNKNOWN; {rule}")
        what = f"{place}: the field 'value'"
        content += _read_number(fields["value"], data_type, what).tobytes()
    return np.frombuffer(content, np.uint8)


# Objects that make the values


def _generate(resource: Mapping[str, Any], folder: Path, budget: Budget) -> np.ndarray:
    """Makes the values that an object describes."""
    values, data_type = resource["initialValues"], _data_type_of(resource, TYPE)
    kinds = [kind for kind in GENERATORS if kind in values]
    rule = f"{listed(values)}; it must have one of {', '.join(GENERATORS)}."
    require(len(kinds) == 1, f"the field 'initialValues' has the fields {rule}")
    with at("the field 'initialValues'"):
        fields = read_fields(values, GENERATORS[kinds[0]])
    if "sourcePath" in fields:
        return _read_source(fields["sourcePath"], resource, folder, budget)
    count, width = fields.pop("valueCount"), _require_type(data_type).dtype.itemsize
    # One value for every element, or the first one and what is added for each next one.
    first, *steps = (
        _read_number(value, data_type, f"the field '{key}'")
        for key, value in fields.items()
    )
    rule = f"the field 'valueCount' is {count}; it must be 1 to {MAX_ELEMENTS}."
    require(1 <= count <= MAX_ELEMENTS, rule)
    budget.check(count * width, f"the field 'valueCount' is {count}, which")
    if not steps:
        return np.repeat(first, count)
    # The sum is computed in the type, as the tool does it: floats are rounded in every
    # step, and integers wrap around. It is in place, because the budget has counted one
    # array.
    array = np.repeat(steps[0], count)
    array[:1] = first
    with np.errstate(over="ignore", invalid="ignore"):
        return np.add.accumulate(array, dtype=array.dtype, out=array)


def _read_source(
    name: str, resource: Mapping[str, Any], folder: Path, budget: Budget
) -> np.ndarray:
    """Reads a file. Its ending says whether it is an array, an image or raw data."""
    data_type = _data_type_of(resource, TYPE)
    place = f"sourcePath {quoted(name, LONGEST_PATH)}"
    # Unlike the methods of a Path, os.path.exists never raises.
    inside, outside = folder / name, Path(name)
    path = outside if os.path.exists(outside) > os.path.exists(inside) else inside
    where = f"in {quoted(str(folder), LONGEST_PATH)} or the current directory"
    is_npy = path.suffix.lower() == ".npy"
    factor = NPY_COPIES if is_npy else FILE_COPIES if is_image(path) else 1
    content = read_file(path, budget, f"{place} ({where})", factor)
    if is_npy:
        return _read_npy(content, data_type, place)
    dtype = _require_type(data_type).dtype
    if is_image(path):
        return read_image(content, data_type, resource, place, budget)
    size, width = len(content), dtype.itemsize
    rule = f"a multiple of {width}, the size of an element of {data_type.name}."
    require(size % width == 0, f"{place} has {size} bytes; they must be {rule}")
    # Raw files are little-endian, as the tool's are.
    return np.frombuffer(content, dtype.newbyteorder("<"))


def _read_npy(content: bytes, data_type: DataType, place: str) -> np.ndarray:
    """Reads a .npy file. It must have the given type, if there is one."""
    with converting(place):
        array = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    if array.dtype == bool:
        array = array.astype(np.uint8)
    name = array.dtype.name.upper()
    rule = f"{shortened(str(array.dtype))}; it must be one of {', '.join(DATA_TYPES)}."
    require(name in DATA_TYPES, f"{place} has type {rule}")
    rule = f"'initialValuesDataType' is {data_type.name}; both must be the same."
    same = data_type in (DataType.UNKNOWN, DataType[name])
    require(same, f"{place} has data type {name}, while {rule}")
    dtype = _require_type(DataType[name]).dtype
    return array.astype(dtype, order="C", copy=False).ravel()
