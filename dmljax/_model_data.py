"""The data of model files: a resource's initial values, and what is printed or written.

Pillow is imported only where an image is read or written.
"""

import contextlib
import functools
import io
import math
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from dmljax._arguments import check_x64
from dmljax._check import show
from dmljax._descriptor import number_from_json
from dmljax._support import UP_TO_64_BITS
from dmljax._tensor import MAX_ELEMENTS, DataType, is_floating

Kind = TypeVar("Kind")
Encoder = Callable[[np.ndarray], bytes]
KINDS = {dict: "an object", list: "a list", str: "a string", int: "an integer"}
IMAGES = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG"}
IMAGE_TYPES = (DataType.FLOAT64, DataType.FLOAT32, DataType.FLOAT16, DataType.UINT8)
PILLOW_MODES = {1: "L", 3: "RGB", 4: "RGBA"}
CHANNEL_ORDERS = ("RGB", "BGR")


class ModelError(ValueError):
    """A model file breaks a rule; the message names the place, the rule and the values.

    >>> import dmljax
    >>> dmljax.run_model({"resources": {}, "dispatchables": {}})
    Traceback (most recent call last):
    ...
    dmljax.ModelError: model: the field 'commands' is missing; it must be a list.
    """

    __module__ = "dmljax"


def shown(value: Any) -> str:
    """A value of the file as an error shows it."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def take(
    fields: Mapping[str, Any], key: str, kind: type[Kind], default: Kind | None = None
) -> Kind:
    """The field `key`, which must be of type `kind`; `default` if absent or null."""
    value = fields.get(key)
    if value is None and default is not None:
        return default
    if key not in fields:
        raise ModelError(f"the field '{key}' is missing; it must be {KINDS[kind]}.")
    return typed(value, kind, f"the field '{key}'")


def typed(value: Any, kind: type[Kind], what: str) -> Kind:
    """`value`, which must be of type `kind`; `what` names it in the error."""
    if type(value) is not kind:
        raise ModelError(f"{what} is {shown(value)}; it must be {KINDS[kind]}.")
    return value


def sizes_from(fields: Mapping[str, Any], key: str) -> tuple[int, ...] | None:
    """The field `key` as sizes, all at least 1; None if it is absent, null or empty."""
    values = take(fields, key, list, [])
    if not all(type(value) is int and value >= 1 for value in values):
        raise ModelError(
            f"the field '{key}' is {shown(values)}; each element must be an integer of "
            "at least 1."
        )
    return tuple(values) or None


# Initial values


def initial_values(
    fields: Mapping[str, Any], data_type: DataType, folder: Path
) -> np.ndarray:
    """The flat initial values of the resource that `fields` describe.

    Args:
      fields: of the resource.
      data_type: UNKNOWN if the file does not say.
      folder: what the path of a file is relative to.

    Raises:
      ModelError: if the values do not fit the type, or a file cannot be read.
    """
    values = fields.get("initialValues")
    if isinstance(values, list):
        data_type = _known(data_type)
        items = enumerate(values)
        numbers = [_number(v, data_type, f"initialValues[{i}]") for i, v in items]
        array = _array(numbers, data_type)
    elif not isinstance(values, dict):
        given = shown(values) if "initialValues" in fields else "missing"
        raise ModelError(
            f"the field 'initialValues' is {given}; it must be a list or an object."
        )
    else:
        kinds = [kind for kind in _GENERATORS if kind in values]
        if len(kinds) != 1:
            raise ModelError(
                f"the field 'initialValues' has the fields {', '.join(values)}; it "
                f"must have one of {', '.join(_GENERATORS)}."
            )
        array = _GENERATORS[kinds[0]](fields, values, data_type, folder)
    if not 1 <= array.size <= MAX_ELEMENTS:
        raise ModelError(
            f"the initial values have {array.size} elements; there must be 1 to "
            f"{MAX_ELEMENTS}."
        )
    return array


def _known(data_type: DataType) -> DataType:
    if data_type == DataType.UNKNOWN:
        raise ModelError(
            "the field 'initialValuesDataType' is missing or UNKNOWN; only a .npy file "
            "carries its own type."
        )
    check_x64("initialValuesDataType", "initialValues", data_type.dtype)
    return data_type


def _number(value: Any, data_type: DataType, what: str) -> int | float:
    """`value` as a number that `data_type` holds."""
    if is_floating(data_type.dtype):
        rule = "a number, 'nan', 'inf' or '-inf'"
        return number_from_json(
            value, ModelError(f"{what} is {shown(value)}; it must be {rule}.")
        )
    limits = np.iinfo(data_type.dtype)
    if type(value) is int and limits.min <= value <= limits.max:
        return value
    raise ModelError(
        f"{what} is {shown(value)}; {data_type.name} holds the integers "
        f"{limits.min} to {limits.max}."
    )


def _array(numbers: list[int | float], data_type: DataType) -> np.ndarray:
    """The numbers as an array; past the largest float is infinity."""
    floating = is_floating(data_type.dtype)
    try:
        wide = np.array(numbers, np.float64 if floating else data_type.dtype)
    except OverflowError:
        raise ModelError(
            f"an integer of 'initialValues' is too large for {data_type.name}."
        ) from None
    with np.errstate(over="ignore"):
        return wide.astype(data_type.dtype)


def _count(generator: Mapping[str, Any]) -> int:
    count = take(generator, "valueCount", int)
    if not 1 <= count <= MAX_ELEMENTS:
        raise ModelError(
            f"the field 'valueCount' is {count}; it must be 1 to {MAX_ELEMENTS}."
        )
    return count


def _scalar(generator: Mapping[str, Any], key: str, data_type: DataType) -> np.ndarray:
    if key not in generator:
        raise ModelError(f"the field '{key}' of 'initialValues' is missing.")
    return _array([_number(generator[key], data_type, f"'{key}'")], data_type)


def _constant(
    fields: Mapping[str, Any],
    generator: Mapping[str, Any],
    data_type: DataType,
    _: Path,
) -> np.ndarray:
    value = _scalar(generator, "value", _known(data_type))
    return np.repeat(value, _count(generator))


def _sequence(
    fields: Mapping[str, Any],
    generator: Mapping[str, Any],
    data_type: DataType,
    _: Path,
) -> np.ndarray:
    """The start, and each value plus the delta; added up in the type, as the tool does.

    Integers wrap around.
    """
    start = _scalar(generator, "valueStart", _known(data_type))
    delta = _scalar(generator, "valueDelta", data_type)
    steps = np.repeat(delta, _count(generator))
    steps[:1] = start
    with np.errstate(over="ignore", invalid="ignore"):
        return np.add.accumulate(steps, dtype=steps.dtype)


def _file(
    fields: Mapping[str, Any],
    generator: Mapping[str, Any],
    data_type: DataType,
    folder: Path,
) -> np.ndarray:
    source = take(generator, "sourcePath", str)
    path = folder / source
    extension = path.suffix.lower()
    place = f"sourcePath '{source}'"
    if extension != ".npy":
        data_type = _known(data_type)
    content = _content(path, place)
    if extension == ".npy":
        return _from_npy(content, data_type, place)
    if extension in IMAGES:
        return _from_image(content, data_type, fields, place)
    if len(content) % data_type.dtype.itemsize:
        raise ModelError(
            f"{place} has {len(content)} bytes; they must be a multiple of "
            f"{data_type.dtype.itemsize}, the size of an element of {data_type.name}."
        )
    little = data_type.dtype.newbyteorder("<")
    return np.frombuffer(content, little).astype(data_type.dtype)


_GENERATORS = {"value": _constant, "valueStart": _sequence, "sourcePath": _file}


def _content(path: Path, place: str) -> bytes:
    if not os.path.isfile(path):  # which, unlike a Path's, takes any string
        raise ModelError(f"{place} is not a file: there is none at '{path}'.")
    try:
        return path.read_bytes()
    except OSError as error:
        raise ModelError(f"{place} cannot be read: {error.strerror}.") from error


@contextlib.contextmanager
def _codec(place: str) -> Iterator[None]:
    """Turns whatever a decoder or an encoder raises into an error of the model."""
    try:
        yield
    except Exception as error:  # a damaged file makes decoders raise almost anything
        reason = str(error) or type(error).__name__
        raise ModelError(f"{place} cannot be converted: {reason}") from error


def _from_npy(content: bytes, data_type: DataType, place: str) -> np.ndarray:
    with _codec(place):
        array = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
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


def _from_image(
    content: bytes, data_type: DataType, fields: Mapping[str, Any], place: str
) -> np.ndarray:
    """The pixels in the order of {1, channels, height, width}; floats are in [0, 1]."""
    _check_image_type(data_type)
    size = _resample_size(fields)
    order = _channel_order(fields)
    pillow = _pillow()
    with _codec(place):
        image = pillow.open(io.BytesIO(content), formats=("PNG", "JPEG"))
        own = _channels(image)
        channels = size[0] if size else own
        if channels != 1 and image.mode not in ("L", "LA", "P", "PA", "RGB", "RGBA"):
            image = image.convert("RGB")  # Pillow has no way from CMYK to RGBA
        image = image.convert(PILLOW_MODES[channels])
        if size:
            height, width = size[1:]
            image = image.resize((width, height), pillow.Resampling.BICUBIC)
        pixels = np.asarray(image).reshape(image.height, image.width, channels)
    planes = _reorder(pixels, order).transpose(2, 0, 1).ravel()
    if data_type == DataType.UINT8:
        return planes
    return (planes / 255).astype(data_type.dtype)


def _channels(image: Any) -> int:
    """1 for grey, 3 for colours, 4 for what has transparent places."""
    if image.mode.startswith(("I", "F")):
        raise ValueError(f"its pixels have more than 8 bits (mode {image.mode})")
    if image.mode in ("1", "L"):
        return 1
    return 4 if "A" in image.mode or "transparency" in image.info else 3


def _resample_size(fields: Mapping[str, Any]) -> tuple[int, int, int] | None:
    """Channels, height and width, None for the image's own."""
    mode = take(fields, "resampleMode", str, "scale")
    if mode != "scale":
        raise ModelError(f"the field 'resampleMode' is '{mode}'; it must be 'scale'.")
    sizes = sizes_from(fields, "resampleSize")
    if sizes is None:
        return None
    if len(sizes) != 4 or sizes[0] != 1 or sizes[1] not in PILLOW_MODES:
        raise ModelError(
            f"the field 'resampleSize' is {show(sizes)}; it must be "
            "{1,channels,height,width} with 1, 3 or 4 channels."
        )
    return sizes[1], sizes[2], sizes[3]


def _channel_order(fields: Mapping[str, Any]) -> str:
    order = take(fields, "channelOrder", str, "RGB")
    if order not in CHANNEL_ORDERS:
        raise ModelError(
            f"the field 'channelOrder' is '{order}'; it must be one of "
            f"{', '.join(CHANNEL_ORDERS)}."
        )
    return order


def _check_image_type(data_type: DataType) -> None:
    if data_type not in IMAGE_TYPES:
        raise ModelError(
            f"an image has data type {data_type.name}; it must be one of "
            f"{', '.join(t.name for t in IMAGE_TYPES)}."
        )


def _reorder(pixels: np.ndarray, order: str) -> np.ndarray:
    """(height, width, channels) with red and blue swapped for BGR; alpha stays last."""
    if order == "RGB" or pixels.shape[-1] == 1:
        return pixels
    swapped: np.ndarray = pixels[..., [2, 1, 0, 3][: pixels.shape[-1]]]
    return swapped


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise ModelError(
            'images need Pillow, which is not installed: pip install "dmljax[images]"'
        ) from None
    return Image


# Printed text and written files


def printed(name: str, values: np.ndarray) -> str:
    """What the command ``print`` shows of a resource.

    >>> printed("output", np.array([6, 1.5, np.nan]))
    "Resource 'output': 6, 1.5, nan"
    """
    if is_floating(values.dtype):
        numbers = [f"{value:g}" for value in values.astype(np.float64).tolist()]
    else:
        numbers = [str(value) for value in values.tolist()]
    return f"Resource '{name}': {', '.join(numbers)}"


def encoder(
    fields: Mapping[str, Any], path: Path, data_type: DataType, length: int
) -> Encoder:
    """What turns a resource of `length` elements into the content of the file `path`.

    Raises:
      ModelError: if the file's kind, the dimensions and the type do not go together.
    """
    dimensions = sizes_from(fields, "dimensions") or (length,)
    if math.prod(dimensions) != length:
        raise ModelError(
            f"the field 'dimensions' is {show(dimensions)}, {math.prod(dimensions)} "
            f"elements, while the resource has {length}; both must be the same."
        )
    extension = path.suffix.lower()
    if extension == ".npy":
        return functools.partial(_to_npy, dimensions)
    if extension not in IMAGES:
        return _to_bytes
    _check_image_type(data_type)
    order = _channel_order(fields)
    pillow = _pillow()
    sizes = _image_sizes(dimensions, (1, 3) if extension != ".png" else (1, 3, 4))
    return functools.partial(_to_image, pillow, IMAGES[extension], sizes, order)


def _image_sizes(
    dimensions: tuple[int, ...], channels: tuple[int, ...]
) -> tuple[int, int, int]:
    """Channels, height and width, from {N,C,H,W}, {C,H,W} or {H,W}."""
    batch, depth, *size = (1,) * (4 - len(dimensions)) + dimensions
    if len(dimensions) not in (2, 3, 4) or batch != 1 or depth not in channels:
        raise ModelError(
            f"the field 'dimensions' is {show(dimensions)}; for an image it must be "
            f"{{1,channels,height,width}}, {{channels,height,width}} or "
            f"{{height,width}}, with {', '.join(map(str, channels))} channels."
        )
    return depth, size[0], size[1]


def _to_npy(dimensions: tuple[int, ...], values: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, values.reshape(dimensions), allow_pickle=False)
    return file.getvalue()


def _to_bytes(values: np.ndarray) -> bytes:
    return values.astype(values.dtype.newbyteorder("<")).tobytes()


def _to_image(
    pillow: Any,
    kind: str,
    sizes: tuple[int, int, int],
    order: str,
    values: np.ndarray,
) -> bytes:
    """The image; floats are clipped to [0, 1], and NaN is black."""
    if values.dtype != np.uint8:
        unit = np.clip(np.nan_to_num(values.astype(np.float64)), 0, 1)
        values = np.rint(unit * 255).astype(np.uint8)
    pixels = _reorder(values.reshape(sizes).transpose(1, 2, 0), order)
    pixels = pixels[..., 0] if sizes[0] == 1 else pixels
    file = io.BytesIO()
    with _codec("the image"):
        pillow.fromarray(np.ascontiguousarray(pixels)).save(file, kind)
    return file.getvalue()
