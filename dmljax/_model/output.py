"""The output of a model: printed text, and files that are written.

Text and files are prepared as a whole before the first is shown, so an error leaves
nothing behind. Text has the form that DxDispatch prints.
"""

import contextlib
import dataclasses
import functools
import io
import math
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dmljax._check import LONGEST_PATH, ModelError, escaped, quoted, show
from dmljax._model.fields import at
from dmljax._model.images import BYTES_PER_NUMBER, Encoder, image_encoder, is_image
from dmljax._tensor import DataType
from dmljax._types import is_floating

# The number of elements that become text at a time. As Python's numbers they take
# several times the memory of the array.
CHUNK = 2**16
# The most dimensions that NumPy's arrays have, and so a .npy file.
MOST_DIMENSIONS = 64


@dataclasses.dataclass(frozen=True)
class Targets:
    """Where files are written.

    Attributes:
      folder: the folder that a ``targetPath`` is relative to.
      clobber: whether a file that is there already may be replaced.
      planned: the files that are to be written, if none may be replaced.
    """

    folder: Path = Path()
    clobber: bool = True
    planned: set[Path] = dataclasses.field(default_factory=set)


HERE = Targets()


class FileOutput(NamedTuple):
    """A file to write.

    Attributes:
      path: the path of the file, without links.
      name: the path as the model and the command line have it, for messages.
      encode: turns the values into the content of the file.
      summary: what the content is, for messages.
      working_bytes: the memory that encoding takes.
    """

    path: Path
    name: str
    encode: Encoder
    summary: str
    working_bytes: int


# Printed text


def text_of(name: str, values: np.ndarray, *, verbose: bool = False) -> str:
    """Makes the text that the command ``print`` shows of a resource.

    >>> text_of("output", np.array([6, 1.5, np.nan]))
    "Resource 'output': 6, 1.5, nan"
    >>> print(text_of("output", np.array([6, 1.5], np.float16), verbose=True))
    Resource 'output':
    [0] 6 (0x4600)
    [1] 1.5 (0x3E00)
    """
    title = f"Resource '{escaped(name)}':"
    if not verbose:
        return f"{title} {', '.join(_number_texts(values))}"
    width, digits = len(str(values.size)), 2 * values.itemsize
    bits = values.view(f"u{values.itemsize}")
    # The tool pads the index and the bits with spaces, not with zeros.
    lines = (
        f"[{index:{width}}] {number} (0x{int(bits[index]):{digits}X})"
        for index, number in enumerate(_number_texts(values))
    )
    return "\n".join((title, *lines))


def _number_texts(values: np.ndarray) -> Iterator[str]:
    """Yields the elements as C++ writes them: floats with up to six digits."""
    floating = is_floating(values.dtype)
    for start in range(0, values.size, CHUNK):
        part = values[start : start + CHUNK]
        if floating:
            yield from (f"{value:g}" for value in part.astype(np.float64).tolist())
        else:
            yield from map(str, part.tolist())


def encodable(text: str, stream: Any) -> str:
    """Escapes the characters that a stream, such as standard output, can't encode."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


# Files


def plan_file(
    fields: Mapping[str, Any], data_type: DataType, length: int, targets: Targets
) -> FileOutput:
    """Plans the file of a ``writeFile`` command for a resource of `length` elements.

    Raises:
      ModelError: if the file's kind, the dimensions and the type do not go together,
        or the file cannot be written.
    """
    given = tuple(fields.get("dimensions", ()))
    path = _check_target(fields["targetPath"], targets)
    name = str(targets.folder / fields["targetPath"])
    if given and math.prod(given) != length:
        raise ModelError(
            f"the field 'dimensions' is {show(given)}, {show(math.prod(given))} "
            f"elements, while the resource has {length}; both must be the same."
        )
    extension, sizes = path.suffix.lower(), given or (length,)
    if extension != ".npy" and not is_image(path):
        size = length * (data_type.dtype.itemsize if data_type else 1)
        return FileOutput(path, name, _to_bytes, f"{size} bytes", 2 * size)
    if data_type == DataType.UNKNOWN:
        raise ModelError(
            f"a {extension} file needs one data type, and the resource has a list of "
            "elements with their own; write raw data (.bin)."
        )
    if is_image(path):
        order = fields.get("channelOrder", "RGB")
        encode, pixels = image_encoder(path, sizes, data_type, order)
        summary = f"{pixels.width} x {pixels.height}"
        return FileOutput(path, name, encode, summary, BYTES_PER_NUMBER * length)
    if len(given) > MOST_DIMENSIONS:
        raise ModelError(
            f"the field 'dimensions' has {len(given)} elements; a .npy file has at "
            f"most {MOST_DIMENSIONS} dimensions."
        )
    encode, size = functools.partial(_to_npy, sizes), length * data_type.dtype.itemsize
    return FileOutput(path, name, encode, f"{data_type.name} {show(sizes)}", 2 * size)


def _check_target(name: str, targets: Targets) -> Path:
    """Returns the path of a file that can be written; ModelError if it can't be."""
    place = f"targetPath {quoted(name, LONGEST_PATH)}"
    try:
        path = Path(os.path.realpath(targets.folder / name))
        exists = True
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        exists = False
    except ValueError as error:  # a character that no path may have
        raise ModelError(f"{place} is not a path: {error}.") from error
    except OSError as error:  # such as a name that is too long
        raise ModelError(f"{place} cannot be written: {error.strerror}.") from error
    folder = quoted(str(targets.folder.absolute()), LONGEST_PATH)
    # Unlike the methods of a Path, os.path.isdir and os.path.isfile never raise.
    for wrong, reason in (
        (
            not os.path.isdir(path.parent),
            f"is in a folder that does not exist; it is relative to {folder}, and no "
            "folder is made",
        ),
        (not os.access(path.parent, os.W_OK), "is in a folder that cannot be written"),
        (exists and not os.path.isfile(path), "is there already, and is not a file"),
        (
            exists and not targets.clobber,
            "is there already, and --no-clobber keeps it",
        ),
        (exists and not os.access(path, os.W_OK), "is there already, and is read-only"),
        (path in targets.planned, "is written twice, and --no-clobber keeps it"),
    ):
        if wrong:
            raise ModelError(f"{place} {reason}.")
    if not targets.clobber:
        targets.planned.add(path)
    return path


def _to_npy(dimensions: tuple[int, ...], values: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, values.reshape(dimensions), allow_pickle=False)
    return file.getvalue()


def _to_bytes(values: np.ndarray) -> bytes:
    # Raw files are little-endian on every machine, as the tool's are.
    return values.astype(values.dtype.newbyteorder("<")).tobytes()


def stage_file(
    output: FileOutput, values: np.ndarray, cleanup: contextlib.ExitStack
) -> Callable[[], str]:
    """Writes a file under another name, in the folder where it belongs.

    Returns a function that gives the file its name, and returns a line about it. If it
    is not called, `cleanup` removes the file.
    """
    path = output.path
    temporary = path.with_name(f".{uuid.uuid4().hex}.tmp")
    cleanup.callback(temporary.unlink, missing_ok=True)
    temporary.write_bytes(output.encode(values))
    # A private file stays private when it is replaced.
    if path.exists():
        shutil.copymode(path, temporary)

    def finish() -> str:
        # A file is replaced in one step, so that no reader ever sees half of it.
        verb = "replaced" if path.exists() else "wrote"
        os.replace(temporary, path)
        return f"{verb} {escaped(output.name)} ({output.summary})"

    return finish


@contextlib.contextmanager
def writing(place: str) -> Iterator[None]:
    """Turns an error of the operating system into one of the model at a place."""
    with at(place):
        try:
            yield
        except OSError as error:
            raise ModelError(f"it cannot be written: {error.strerror}.") from error
