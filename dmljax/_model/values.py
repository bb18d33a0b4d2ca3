"""Resources and their initial values: lists, repeated values, steps and files.

A resource begins with the values that DxDispatch gives it, or the model is refused.
`files` reads values from files.
"""

import contextlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dmljax._arguments import check_x64
from dmljax._check import ModelError, as_json
from dmljax._directml.tensor import DataType
from dmljax._model.files import Room, read_source
from dmljax._model.format import (
    DATA_TYPES,
    Element,
    Repeated,
    ResourceFields,
    SourceFile,
)


class Resource(NamedTuple):
    """A flat buffer."""

    data_type: DataType  # of the initial values; UNKNOWN for a list of mixed types
    content: np.ndarray  # all initial bytes
    # The elements for commands to show, a view of `content`. For mixed types these are
    # bytes, which only `writeFile` shows.
    values: np.ndarray


# A resource at some time: its name, and the place of the last dispatch with it as an
# output, or "" for the initial values.
Version = tuple[str, str]


def make_resource(fields: ResourceFields, folder: Path, room: Room) -> Resource:
    """Makes a buffer with its initial values. Paths are relative to `folder`."""
    values = _initial_values(fields, folder, room)
    if not values.size:
        raise ModelError(
            "the initial values have 0 elements; there must be at least one."
        )
    data_type = fields.initial_values_data_type
    if isinstance(fields.initial_values, SourceFile):  # a .npy file has its own
        data_type = DataType[values.dtype.name.upper()]
    # Without `sizeInBytes`, the bytes of a buffer are rounded up to a multiple of 4, as
    # a tensor's bytes are. Commands do not show the added bytes.
    shown = values.nbytes
    size = -(-shown // 4) * 4
    if fields.size_in_bytes is not None:
        size = shown = fields.size_in_bytes
    offset = fields.initial_values_offset_in_bytes
    end = offset + values.nbytes
    if end > shown:
        raise ModelError(
            f"the initial values have {values.nbytes} bytes and begin at byte "
            f"{offset}, while the buffer has {shown} bytes; the field 'sizeInBytes' "
            f"must be at least {end}."
        )
    room.take(size // values.itemsize)
    check_x64("'initialValues'", values.dtype)
    content = np.zeros(size, np.uint8)
    content[offset:end] = values.view(np.uint8)
    shown -= shown % values.itemsize
    return Resource(data_type, content, content[:shown].view(values.dtype))


def _initial_values(fields: ResourceFields, folder: Path, room: Room) -> np.ndarray:
    """Makes the flat initial values of a resource: bytes for a list of mixed types."""
    values = fields.initial_values
    data_type = fields.initial_values_data_type
    if isinstance(values, list) and values and isinstance(values[0], Element):
        return _join_mixed(values, data_type)
    source = Path(getattr(values, "source_path", ""))
    if data_type == DataType.UNKNOWN and source.suffix.lower() != ".npy":
        raise ModelError(
            "the field 'initialValuesDataType' is missing or UNKNOWN; only a .npy file "
            "and a list of objects with 'type' and 'value' carry their own types."
        )
    if isinstance(values, list):
        return _as_array(values, data_type, "initialValues")
    if isinstance(values, SourceFile):
        return read_source(fields, folder, room)
    room.check(values.value_count, "it")
    if isinstance(values, Repeated):
        value = _as_array(values.value, data_type, "the field 'value'")
        return np.full(values.value_count, value)
    start = _as_array(values.value_start, data_type, "the field 'valueStart'")
    delta = _as_array(values.value_delta, data_type, "the field 'valueDelta'")
    array = np.full(values.value_count, delta)
    array[:1] = start
    # The sum is computed in the type, as the tool does it: floats are rounded in every
    # step, and integers wrap around.
    with np.errstate(over="ignore", invalid="ignore"):
        return np.add.accumulate(array, dtype=array.dtype)


def _as_array(values: Any, data_type: DataType, what: str) -> np.ndarray:
    """Makes an array of a number or a list of numbers, which messages call `what`.

    An integer must fit. Python can't convert an integer past the largest double, while
    other numbers past the largest float become infinity.
    """
    dtype = data_type.dtype
    numbers = values if isinstance(values, list) else [values]
    # A list may have millions of elements, and NumPy takes them all at once.
    with contextlib.suppress(OverflowError), np.errstate(over="ignore"):
        if dtype.kind == "f" or {int}.issuperset(map(type, numbers)):
            if data_type == DataType.FLOAT16:
                # The tool reads a half as a float32, and so rounds it twice.
                values = np.array(values, np.float32)
            return np.array(values, dtype)
    if isinstance(values, list):
        # This raises the error of the first element that is wrong.
        for index, value in enumerate(values):
            _as_array(value, data_type, f"{what}[{index}]")
    if dtype.kind == "f":
        raise ModelError(
            f"{what} is {as_json(values)}, which is too large for {data_type.name}."
        )
    limits = np.iinfo(dtype)
    raise ModelError(
        f"{what} is {as_json(values)}; {data_type.name} holds the integers "
        f"{limits.min} to {limits.max}."
    )


def _join_mixed(elements: list[Element], data_type: DataType) -> np.ndarray:
    """Joins the bytes of elements of mixed types, without gaps."""
    if data_type != DataType.UNKNOWN:
        raise ModelError(
            f"the field 'initialValuesDataType' is {data_type.name}, while the initial "
            "values are objects with their own types; it must be UNKNOWN or missing."
        )
    content = bytearray()
    for index, element in enumerate(elements):
        what = f"initialValues[{index}]: the field"
        if element.type == DataType.UNKNOWN:
            raise ModelError(
                f"{what} 'type' is UNKNOWN; it must be one of {', '.join(DATA_TYPES)}."
            )
        number = _as_array(element.value, element.type, f"{what} 'value'")
        content += number.tobytes()
    return np.frombuffer(content, np.uint8)
