"""Resources and their initial values: lists, repeated values, sequences and files.

A resource begins with the values that DxDispatch gives it, or the model is refused.
Image files are read in `images`. The places of tensors in resources are in `parse`.
"""

import contextlib
import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dmljax._arguments import check_x64
from dmljax._check import LONGEST_PATH, ModelError, as_json, listed, quoted, shortened
from dmljax._directml.json import enum_prefix, number_from_json
from dmljax._directml.tensor import DataType
from dmljax._model.fields import at_place, read_fields
from dmljax._model.format import (
    DATA_TYPES,
    GENERATORS,
    MIXED_ELEMENT,
    RESOURCE,
    Resource,
)
from dmljax._model.images import converting, is_image, read_image
from dmljax._model.limits import Room, read_file


def read_resource(value: Any, folder: Path, room: Room) -> Resource:
    """Makes a buffer with its initial values. Paths are relative to `folder`."""
    fields = read_fields(value, RESOURCE)
    given = _data_type_of(fields.get("initialValuesDataType", "UNKNOWN"))
    data_type, values = _initial_values(fields, given, folder, room)
    offset = fields.get("initialValuesOffsetInBytes", 0)
    end = offset + values.nbytes
    # A buffer without a given size has a multiple of 4 bytes, as the size has that a
    # tensor description implies.
    size = fields.get("sizeInBytes", -(-values.nbytes // 4) * 4)
    if size < end:
        begin = ""
        if offset:
            begin = f" and begin at byte {offset}"
        raise ModelError(
            f"the field 'sizeInBytes' is {fields.get('sizeInBytes', 'missing')}, while "
            f"the initial values have {values.nbytes} bytes{begin}; it must be at "
            f"least {end}."
        )
    room.take(size // values.itemsize)
    content = np.zeros(size, np.uint8)
    content[offset:end] = values.view(np.uint8)
    # With `sizeInBytes` we show the whole buffer, and else the initial values without
    # the bytes that rounding has added.
    shown = values.nbytes
    if "sizeInBytes" in fields:
        shown = size
    return Resource(data_type, content, shown // values.itemsize)


def _initial_values(
    fields: Mapping[str, Any], data_type: DataType, folder: Path, room: Room
) -> tuple[DataType, np.ndarray]:
    """Makes the flat initial values of a resource, and says their type.

    For a list of mixed types the values are bytes, and the type is UNKNOWN.
    """
    values = fields["initialValues"]
    if values == "deferred":
        raise ModelError(
            "the field 'initialValues' is 'deferred', which only ONNX dispatchables "
            "have; give the values."
        )
    if isinstance(values, dict):
        array = _generate(fields, data_type, folder, room)
        data_type = DataType[array.dtype.name.upper()]  # a .npy file brings its own
    elif data_type == DataType.UNKNOWN and values and isinstance(values[0], dict):
        array = _join_mixed(values)
    else:
        _require_type(data_type)
        array = _read_numbers(values, data_type)
    if not array.size:
        raise ModelError("the initial values have 0 elements; there must be one.")
    return data_type, array


def _data_type_of(name: str) -> DataType:
    """Returns a data type by its short or its full name."""
    return DataType[name.removeprefix(enum_prefix(DataType))]


def _require_type(data_type: DataType) -> None:
    """Requires that the type of the values is given, and that JAX has it now."""
    if data_type == DataType.UNKNOWN:
        raise ModelError(
            "the field 'initialValuesDataType' is missing or UNKNOWN; only a .npy file "
            "and a list of objects with 'type' and 'value' carry their own types."
        )
    check_x64("initialValuesDataType", "'initialValues'", data_type.dtype)


def _read_numbers(values: list[Any], data_type: DataType) -> np.ndarray:
    """Makes an array of a list of numbers."""
    plain: set[type] = {int}
    if data_type.dtype.kind == "f":
        plain = {int, float}
    # A list may have millions of elements, and NumPy takes them all at once. If it
    # can't, `_read_number` finds the element that is wrong.
    with contextlib.suppress(OverflowError):
        if plain.issuperset(map(type, values)):
            return _as_array(values, data_type)
    numbers = []
    for index, value in enumerate(values):
        numbers.append(_read_number(value, data_type, f"initialValues[{index}]"))
    return _as_array(numbers, data_type)


def _as_array(values: Any, data_type: DataType) -> np.ndarray:
    """A number past the largest one of a floating type becomes infinity."""
    with np.errstate(over="ignore"):
        if data_type == DataType.FLOAT16:
            # The tool reads a half as a float32, and so rounds it twice.
            values = np.array(values, np.float32)
        return np.array(values, data_type.dtype)


def _read_number(value: Any, data_type: DataType, what: str) -> int | float:
    """Returns a number; ModelError if `data_type` does not hold it."""
    if data_type.dtype.kind == "f":
        number = number_from_json(value)
        if number is None:
            raise ModelError(
                f"{what} is {as_json(value)}; it must be a number or 'nan', 'inf', "
                "'-inf'."
            )
        try:
            return float(number)
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


def _join_mixed(values: list[Any]) -> np.ndarray:
    """Joins the bytes of elements that each have their own type, without gaps."""
    content = bytearray()
    for index, value in enumerate(values):
        with at_place(f"initialValues[{index}]"):
            fields = read_fields(value, MIXED_ELEMENT)
            data_type = _data_type_of(fields["type"])
            if data_type == DataType.UNKNOWN:
                raise ModelError(
                    "the field 'type' is UNKNOWN; it must be one of "
                    f"{', '.join(DATA_TYPES)}."
                )
            number = _read_number(fields["value"], data_type, "the field 'value'")
        content += _as_array([number], data_type).tobytes()
    return np.frombuffer(content, np.uint8)


def _generate(
    resource: Mapping[str, Any], data_type: DataType, folder: Path, room: Room
) -> np.ndarray:
    """Makes the values that an object describes."""
    values = resource["initialValues"]
    kinds = [kind for kind in GENERATORS if kind in values]
    if len(kinds) != 1:
        raise ModelError(
            f"the field 'initialValues' has the fields {listed(values)}; it must have "
            f"one of {', '.join(GENERATORS)}."
        )
    with at_place("the field 'initialValues'"):
        fields = read_fields(values, GENERATORS[kinds[0]])
    if "sourcePath" in fields:
        return _read_source(fields["sourcePath"], resource, data_type, folder, room)
    count = fields.pop("valueCount")
    _require_type(data_type)
    given = []  # either [value] or [start, delta]
    for key, value in fields.items():
        given.append(_read_number(value, data_type, f"the field '{key}'"))
    numbers = _as_array(given, data_type)
    if count < 1:
        raise ModelError(f"the field 'valueCount' is {count}; it must be at least 1.")
    room.check(count, "it")
    array = np.full(count, numbers[-1])
    if len(numbers) == 1:
        return array
    # The sum is computed in the type, as the tool does it: floats are rounded in every
    # step, and integers wrap around.
    array[0] = numbers[0]
    with np.errstate(over="ignore", invalid="ignore"):
        return np.add.accumulate(array, dtype=array.dtype)


def _read_source(
    name: str,
    resource: Mapping[str, Any],
    data_type: DataType,
    folder: Path,
    room: Room,
) -> np.ndarray:
    """Reads a file. Its ending says whether it is an array, an image or raw data."""
    path = folder / name
    # Unlike the methods of a Path, os.path.exists never raises.
    if os.path.exists(name) and not os.path.exists(path):
        path = Path(name)
    place = f"sourcePath {quoted(name, LONGEST_PATH)}"
    what = f"{place} (in {quoted(str(folder), LONGEST_PATH)} or the current directory)"
    content = read_file(path, what, room.left)
    if path.suffix.lower() == ".npy":
        return _read_npy(content, data_type, place)
    _require_type(data_type)
    if is_image(path):
        return read_image(content, resource, data_type, place, room)
    width = data_type.dtype.itemsize
    if len(content) % width:
        raise ModelError(
            f"{place} has {len(content)} bytes; they must be a multiple of {width}, "
            f"the size of an element of {data_type.name}."
        )
    # Raw files are little-endian, as the tool's are.
    return np.frombuffer(content, data_type.dtype.newbyteorder("<"))


def _read_npy(content: bytes, data_type: DataType, place: str) -> np.ndarray:
    """Reads a .npy file. It must have the given type, if there is one."""
    with converting(place):
        array = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    if array.dtype == bool:
        array = array.astype(np.uint8)
    name = array.dtype.name.upper()
    if name not in DATA_TYPES:
        raise ModelError(
            f"{place} has type {shortened(str(array.dtype))}; it must be one of "
            f"{', '.join(DATA_TYPES)}."
        )
    if data_type not in (DataType.UNKNOWN, DataType[name]):
        raise ModelError(
            f"{place} has data type {name}, while 'initialValuesDataType' is "
            f"{data_type.name}; both must be the same."
        )
    _require_type(DataType[name])
    return array.astype(DataType[name].dtype, order="C", copy=False).ravel()
