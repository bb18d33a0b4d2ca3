"""The files of a model, and the limits on their sizes.

A model of a few bytes may ask for any number of elements. We refuse a model
that is too large before memory is allocated: it could end the process.

Images are tensors {1, channels, height, width}. Pillow, an extra, reads and writes
them. We import it only for an image.
"""

import io
import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from dmljax._check import (
    LONGEST_PATH,
    ModelError,
    as_python,
    quoted,
    shortened,
    show,
)
from dmljax._directml.tensor import DataType
from dmljax._model.format import DATA_TYPES, ResourceFields, reporting

# 1 GiB of float32. A run holds about three copies of each resource.
MOST_ELEMENTS = 2**28
# Of the text of a model, and of another file beside its elements: a .npy file has a
# header, and an image may have a profile.
MOST_BYTES = 2**24
# Images by the ending of a path: Pillow's name of the format, the counts of channels
# that we write, and the most rows and columns. PNG counts rows in 31 bits. JPEG counts
# them in 16 bits, and the JPEG library allows a little less.
IMAGES: dict[str, tuple[str, tuple[int, ...], int]] = {
    ".png": ("PNG", (1, 3, 4), 2**31 - 1),
    ".jpg": ("JPEG", (1, 3), 65500),
    ".jpeg": ("JPEG", (1, 3), 65500),
}


class Room:
    """Counts the elements left to a model."""

    def __init__(self, limit: int) -> None:
        if limit < 0:
            raise ModelError(
                f"the limit of elements is {as_python(limit)} (--max-elements, or "
                "max_elements in Python); it must be at least 0."
            )
        self.limit = limit
        self.left = limit

    def check(self, count: int, what: str) -> None:
        """Requires room for `count` more elements."""
        if count > self.left:
            raise ModelError(
                f"{what} has {as_python(count)} elements, and there is room for "
                f"{self.left}; a model may have {self.limit} in all (--max-elements, "
                "or max_elements in Python)."
            )

    def take(self, count: int) -> None:
        """Counts `count` elements, for which there must be room."""
        self.check(count, "it")
        self.left -= count


# Bytes


def read_file(path: Path, what: str, most: int = MOST_BYTES, remedy: str = "") -> bytes:
    """Reads the text of a model, or a file of values, of `most` bytes at most.

    `remedy` ends the message about a path that leads to no file.
    """
    # A device or a pipe may have no end.
    if os.path.exists(path) and not os.path.isfile(path):
        raise ModelError(f"{what} is a folder, a device or a pipe, not a file.{remedy}")
    # A path may have no null character: this is a ValueError.
    with reporting(f"{what} cannot be read", OSError, ValueError):
        size = os.path.getsize(path)
        if size > most:
            raise ModelError(
                f"{what} has {size} bytes. A text may have {MOST_BYTES}; a file of "
                "values 8 more for each element for which there is room."
            )
        with open(path, "rb") as file:
            return file.read(size)


# Values


def read_source(fields: ResourceFields, folder: Path, room: Room) -> np.ndarray:
    """Reads a file, whose path is relative to `folder` or to the current directory.

    The ending of the path tells an array, an image and raw data apart.
    """
    name = fields.initial_values.source_path
    path = folder / name
    # Unlike the methods of a Path, os.path.exists never raises.
    if os.path.exists(name) and not os.path.exists(path):
        path = Path(name)
    source = f"sourcePath {quoted(name, LONGEST_PATH)}"
    what = f"{source} (in {quoted(str(folder), LONGEST_PATH)} or the current directory)"
    content = read_file(path, what, MOST_BYTES + 8 * room.left)
    data_type = fields.initial_values_data_type
    ending = path.suffix.lower()
    if ending == ".npy":
        return _read_npy(content, data_type, source)
    if ending in IMAGES:
        return _read_image(content, fields, source, room)
    width = data_type.dtype.itemsize
    if len(content) % width:
        raise ModelError(
            f"{source} has {len(content)} bytes; they must be a multiple of {width}, "
            f"the size of an element of {data_type.name}."
        )
    # Raw files are little-endian, as the tool's are.
    return np.frombuffer(content, data_type.dtype.newbyteorder("<"))


def import_pillow(data_type: DataType) -> Any:
    """Requires a data type for images, and Pillow."""
    if data_type.name not in ("FLOAT64", "FLOAT32", "FLOAT16", "UINT8"):
        raise ModelError(
            f"an image has data type {data_type.name}; it must be one of FLOAT64, "
            "FLOAT32, FLOAT16, UINT8."
        )
    try:
        from PIL import Image
    except ImportError:
        raise ModelError(
            "images need Pillow, which is not installed: pip install pillow"
        ) from None
    return Image


def _read_npy(content: bytes, data_type: DataType, source: str) -> np.ndarray:
    """Reads an array of type `data_type`, or of any type for UNKNOWN."""
    # A damaged file makes decoders raise almost anything.
    with reporting(f"{source} cannot be converted", Exception):
        array = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    if array.dtype == bool:
        array = array.astype(np.uint8)
    name = array.dtype.name.upper()
    if name not in DATA_TYPES:
        raise ModelError(
            f"{source} has type {shortened(str(array.dtype))}; it must be one of "
            f"{', '.join(DATA_TYPES)}."
        )
    if data_type not in (DataType.UNKNOWN, DataType[name]):
        raise ModelError(
            f"{source} has data type {name}, while 'initialValuesDataType' is "
            f"{data_type.name}; both must be the same."
        )
    return array.astype(DataType[name].dtype, order="C", copy=False).ravel()


def _read_image(
    content: bytes, fields: ResourceFields, source: str, room: Room
) -> np.ndarray:
    """Reads the pixels in the order of {1, channels, height, width}.

    A UINT8 is a value of the file, 0 to 255. Floats are in [0, 1].
    """
    data_type = fields.initial_values_data_type
    library = import_pillow(data_type)
    modes = {1: "L", 3: "RGB", 4: "RGBA"}  # Pillow's, by the count of channels
    resample = fields.resample_size
    fits = len(resample) == 4 and resample[0] == 1 and resample[1] in modes
    if resample and not fits:
        raise ModelError(
            f"the field 'resampleSize' is {show(resample)}; it must be "
            "{1,channels,height,width} with 1, 3 or 4 channels."
        )
    with reporting(f"{source} cannot be converted", Exception):
        image = library.open(io.BytesIO(content), formats=("PNG", "JPEG"))
        # Pillow would cut them in silence. A tile ends with the mode of its pixels.
        if ";16" in str(image.tile):
            raise ValueError("its pixels have more than 8 bits")
        channels = 1 if image.mode in ("1", "L") else 3
        if "A" in image.mode or "transparency" in image.info:
            channels = 4
        sizes = (channels, image.height, image.width)
        channels, height, width = resample[1:] or sizes
        # The header is read, but not the pixels yet.
        room.check(math.prod(sizes), source)
        room.check(channels * height * width, source)
        image = image.convert(modes[channels])
        if resample:
            image = image.resize((width, height), library.Resampling.BICUBIC)
        pixels = np.asarray(image).reshape(height, width, channels)
    planes = pixels.transpose(2, 0, 1).ravel()
    if data_type == DataType.UINT8:
        return planes
    return (planes / 255).astype(data_type.dtype)


def check_image(ending: str, sizes: tuple[int, ...], data_type: DataType) -> None:
    """Requires sizes and a type for an image.

    The sizes may be {H,W}, {C,H,W} or {1,C,H,W}.
    """
    import_pillow(data_type)
    image_format, channels, most = IMAGES[ending]
    batch, channel_count, *size = (1,) * (4 - len(sizes)) + sizes
    if len(sizes) not in (2, 3, 4) or batch != 1 or channel_count not in channels:
        raise ModelError(
            f"the elements have sizes {show(sizes)}; for an image, 'dimensions' must "
            "be {1,channels,height,width}, {channels,height,width} or {height,width}, "
            f"with {', '.join(map(str, channels))} channels."
        )
    if max(size) > most:
        raise ModelError(
            f"the field 'dimensions' is {show(sizes)}; a {image_format} image has at "
            f"most {most} rows and columns."
        )


def encode(ending: str, values: np.ndarray) -> tuple[bytes, str]:
    """Returns the content of a file, and its type and sizes for messages.

    An image has sizes and a type that `check_image` accepts. Its floats are clipped to
    [0, 1], and NaN becomes black.
    """
    file = io.BytesIO()
    if ending in IMAGES:
        from PIL import Image

        if values.dtype != np.uint8:
            unit = np.clip(np.nan_to_num(values.astype(np.float64)), 0, 1)
            values = np.rint(unit * 255).astype(np.uint8)
        height, width = values.shape[-2:]
        pixels = values.reshape(-1, height, width).transpose(1, 2, 0)
        if pixels.shape[-1] == 1:
            pixels = pixels[..., 0]
        Image.fromarray(pixels).save(file, IMAGES[ending][0])
        return file.getvalue(), f"{width} x {height}"
    if ending == ".npy":
        np.save(file, values, allow_pickle=False)
        return file.getvalue(), f"{show(values.dtype)} {show(values.shape)}"
    # Raw files are little-endian on every machine, as the tool's are.
    content = values.astype(values.dtype.newbyteorder("<")).tobytes()
    return content, f"{len(content)} raw bytes"
