"""The output of a model: printed text, and files that are written.

Text and files are prepared as a whole before the first is shown, so that an error
leaves nothing behind. Text has the form that DxDispatch prints.
"""

import contextlib
import dataclasses
import functools
import io
import math
import os
import shutil
import sys
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dmljax._check import LONGEST_PATH, ModelError, escaped, quoted, show
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


def printed(name: str, values: np.ndarray, *, verbose: bool = False) -> str:
    """Makes the text that the command ``print`` shows of a resource.

    >>> printed("output", np.array([6, 1.5, np.nan]))
    "Resource 'output': 6, 1.5, nan"
    >>> print(printed("output", np.array([6, 1.5], np.float16), verbose=True))
    Resource 'output':
    [0] 6 (0x4600)
    [1] 1.5 (0x3E00)
    """
    name = escaped(name)
    if not verbose:
        return f"Resource '{name}': {', '.join(_numbers(values))}"
    width, digits = len(str(values.size)), 2 * values.itemsize
    bits = values.view(f"u{values.itemsize}")
    # The tool pads the index and the bits with spaces, not with zeros.
    lines = (
        f"[{index:{width}}] {number} (0x{int(bits[index]):{digits}X})"
        for index, number in enumerate(_numbers(values))
    )
    return "\n".join((f"Resource '{name}':", *lines))


def _numbers(values: np.ndarray) -> Iterator[str]:
    """Yields the elements as C++ writes them: floats with up to six digits."""
    floating = is_floating(values.dtype)
    for start in range(0, values.size, CHUNK):
        part = values[start : start + CHUNK]
        if floating:
            yield from (f"{value:g}" for value in part.astype(np.float64).tolist())
        else:
            yield from map(str, part.tolist())


def encodable(text: str) -> str:
    """Escapes the characters that standard output can't encode."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


# Files


def file_output(
    fields: Mapping[str, Any], data_type: DataType, length: int, targets: Targets
) -> FileOutput:
    """Plans the file of a ``writeFile`` command for a resource of `length` elements.

    Raises:
      ModelError: if the file's kind, the dimensions and the type do not go together,
        or the file cannot be written.
    """
    given = tuple(fields.get("dimensions", ()))
    path = _target(fields["targetPath"], targets)
    name = str(targets.folder / fields["targetPath"])
    if given and math.prod(given) != length:
        raise ModelError(
            f"the field 'dimensions' is {show(given)}, {show(math.prod(given))} "
            f"elements, while the resource has {length}; both must be the same."
        )
    extension, summary = path.suffix.lower(), show(given or (length,))
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
        encode, pixels = image_encoder(path, given or (length,), data_type, order)
        summary = f"{pixels.width} x {pixels.height}"
        return FileOutput(path, name, encode, summary, BYTES_PER_NUMBER * length)
    if len(given) > MOST_DIMENSIONS:
        raise ModelError(
            f"the field 'dimensions' has {len(given)} elements; a .npy file has at "
            f"most {MOST_DIMENSIONS} dimensions."
        )
    encode = functools.partial(_to_npy, given or (length,))
    size = length * data_type.dtype.itemsize
    return FileOutput(path, name, encode, f"{data_type.name} {summary}", 2 * size)


def _target(name: str, targets: Targets) -> Path:
    """Returns the path of a file that can be written; ModelError if it can't be."""
    place = f"targetPath {quoted(name, LONGEST_PATH)}"
    try:
        path = Path(os.path.realpath(targets.folder / name))
        exists = _exists(path)
    except ValueError as error:  # a character that no path may have
        raise ModelError(f"{place} is not a path: {error}.") from error
    except OSError as error:  # such as a name that is too long
        raise ModelError(f"{place} cannot be written: {error.strerror}.") from error
    # Unlike the method of a Path, os.path.isdir never raises.
    if not os.path.isdir(path.parent):
        base = quoted(str(targets.folder.absolute()), LONGEST_PATH)
        raise ModelError(
            f"{place} is in a folder that does not exist; it is relative to {base}, "
            "and no folder is made."
        )
    if not os.access(path.parent, os.W_OK):
        raise ModelError(f"{place} is in a folder that cannot be written.")
    if exists and not os.path.isfile(path):
        raise ModelError(f"{place} is there already, and is not a file.")
    if exists and not targets.clobber:
        raise ModelError(f"{place} is there already, and --no-clobber keeps it.")
    if exists and not os.access(path, os.W_OK):
        raise ModelError(f"{place} is there already, and is read-only.")
    if not targets.clobber:
        if path in targets.planned:
            raise ModelError(f"{place} is written twice, and --no-clobber keeps it.")
        targets.planned.add(path)
    return path


def _exists(path: Path) -> bool:
    try:
        os.stat(path)
    except FileNotFoundError:
        return False
    except NotADirectoryError:  # the check of the folder says what is wrong
        return False
    return True


def _to_npy(dimensions: tuple[int, ...], values: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, values.reshape(dimensions), allow_pickle=False)
    return file.getvalue()


def _to_bytes(values: np.ndarray) -> bytes:
    # Raw files are little-endian on every machine, as the tool's are.
    return values.astype(values.dtype.newbyteorder("<")).tobytes()


class StagedFile(NamedTuple):
    """A file that is written under another name, in the folder where it belongs."""

    output: FileOutput
    temporary: Path

    def finish(self) -> str:
        """Gives the file its name, and returns a line about it."""
        # A file is replaced in one step, so that no reader ever sees half of it.
        verb = "replaced" if self.output.path.exists() else "wrote"
        os.replace(self.temporary, self.output.path)
        return f"{verb} {escaped(self.output.name)} ({self.output.summary})"


def stage(
    output: FileOutput, values: np.ndarray, cleanup: contextlib.ExitStack
) -> StagedFile:
    """Writes the file under another name, which `cleanup` removes."""
    temporary = output.path.with_name(f".{uuid.uuid4().hex}.tmp")
    cleanup.callback(temporary.unlink, missing_ok=True)
    temporary.write_bytes(output.encode(values))
    # A private file stays private when it is replaced.
    if output.path.exists():
        shutil.copymode(output.path, temporary)
    return StagedFile(output, temporary)


@contextlib.contextmanager
def writing() -> Iterator[None]:
    """Turns an error of the operating system into one of the model."""
    try:
        yield
    except OSError as error:
        raise ModelError(f"it cannot be written: {error.strerror}.") from error
