"""The output of a model: text of resources, as DxDispatch prints it, and files.

`files` encodes images.
"""

import contextlib
import dataclasses
import io
import math
import os
import sys
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dmljax._check import LONGEST_PATH, ModelError, quoted, shortened, show
from dmljax._directml.tensor import DataType
from dmljax._model.files import IMAGES, check_image, encode_image
from dmljax._model.format import Print, WriteFile, at_place
from dmljax._model.values import Resource, Version


@dataclasses.dataclass(frozen=True)
class Targets:
    """The options for written files."""

    folder: Path = Path()  # each targetPath is relative to this folder
    clobber: bool = True  # whether to replace an existing file
    # Without `clobber`: the files of the commands checked so far.
    planned: set[Path] = dataclasses.field(default_factory=set)


# The commands to print or write, by their places in messages. Each has its resource,
# and the path of its file, which `print` leaves empty.
Shown = Mapping[str, tuple[Print | WriteFile, Version, Path]]


def text_of(
    name: str,
    values: np.ndarray,
    *,
    verbose: bool = False,
) -> Iterator[str]:
    r"""Yields the text of a resource for the command ``print``, in pieces.

    >>> "".join(text_of("output", np.array([6, 1.5, np.nan])))
    "Resource 'output': 6, 1.5, nan\n"
    >>> print(*text_of("output", np.array([6, 1.5], np.float16), verbose=True), sep="")
    Resource 'output':
    [0] 6 (0x4600)
    [1] 1.5 (0x3E00)
    <BLANKLINE>
    """
    separator = ", "
    if verbose:
        separator = "\n"
    yield f"Resource '{shortened(name, None)}':{separator[-1]}"
    number_format = "d"
    if values.dtype.kind == "f":
        number_format = "g"  # C++ writes floats with up to six digits
    width = len(str(values.size))
    digits = 2 * values.itemsize
    bits = values.view(f"u{values.itemsize}")
    # A text takes many times the memory of its elements, so we write 4096 at a time.
    count = 2**12
    for start in range(0, values.size, count):
        texts = []
        for index, number in enumerate(values[start : start + count].tolist(), start):
            text = format(number, number_format)
            if verbose:
                # The tool pads the index and the bits with spaces, not with zeros.
                text = f"[{index:{width}}] {text} (0x{bits[index]:{digits}X})"
            texts.append(text)
        if start:
            yield separator
        yield separator.join(texts)
    yield "\n"


def show_on(stream: Any, text: str) -> str:
    """Escapes what a stream, such as standard output, can't encode."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def check_output(
    command: Print | WriteFile, resource: Resource, targets: Targets
) -> Path:
    """Requires a resource that can be shown, and returns the path of the file.

    The path has no links: if the file becomes a link later, we replace the link.
    """
    if isinstance(command, Print):
        if resource.data_type == DataType.UNKNOWN:
            raise ModelError(
                f"the resource {quoted(command.resource)} has a list of elements with "
                "their own types and cannot be printed; write it to a file."
            )
        return Path()
    path = _check_target(command.target_path, targets)
    ending = path.suffix.lower()
    sizes = command.dimensions or resource.values.shape
    if math.prod(sizes) != resource.values.size:
        raise ModelError(
            f"the field 'dimensions' is {show(sizes)}, {show(math.prod(sizes))} "
            f"elements, while the resource has {resource.values.size}; both must be "
            "the same."
        )
    if ending == ".npy" or ending in IMAGES:
        if resource.data_type == DataType.UNKNOWN:
            raise ModelError(
                f"a {ending} file needs one data type, and the resource has a list of "
                "elements with their own; write raw data (.bin)."
            )
        if ending in IMAGES:
            check_image(ending, sizes, resource.data_type)
        elif len(sizes) > 64:  # NumPy's arrays have no more dimensions
            raise ModelError(
                f"the field 'dimensions' has {len(sizes)} elements; a .npy file has at "
                "most 64 dimensions."
            )
    return path


def _check_target(name: str, targets: Targets) -> Path:
    """Returns the path of a file, without links. We must be able to write there."""
    target = f"targetPath {quoted(name, LONGEST_PATH)}"
    try:
        path = Path(os.path.realpath(targets.folder / name))
        exists = False
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.stat(path)
            exists = True
    except FileNotFoundError as error:
        raise ModelError(
            f"{target} is relative to the current directory, which no longer exists."
        ) from error
    except ValueError as error:  # a character that no path may have
        raise ModelError(f"{target} is not a path: {error}.") from error
    except OSError as error:  # such as a name that is too long
        raise ModelError(f"{target} cannot be written: {error.strerror}.") from error
    # Unlike the methods of a Path, os.path.isdir and os.path.isfile never raise.
    if not os.path.isdir(path.parent):
        folder = quoted(str(targets.folder.absolute()), LONGEST_PATH)
        raise ModelError(
            f"{target} is in a folder that does not exist; it is relative to {folder}, "
            "and no folder is made."
        )
    if not os.access(path.parent, os.W_OK):
        raise ModelError(f"{target} is in a folder that cannot be written.")
    if not targets.clobber:
        if path in targets.planned:
            raise ModelError(f"{target} is written before, and --no-clobber keeps it.")
        targets.planned.add(path)
    if not exists:
        return path
    if not os.path.isfile(path):
        raise ModelError(f"{target} is there already, and is not a file.")
    if not targets.clobber:
        raise ModelError(f"{target} is there already, and --no-clobber keeps it.")
    if not os.access(path, os.W_OK):
        raise ModelError(f"{target} is there already, and is read-only.")
    return path


def _encode(
    ending: str, sizes: tuple[int, ...], values: np.ndarray
) -> tuple[bytes, str]:
    """Returns the content of a file, and its type and sizes for messages."""
    if ending in IMAGES:
        height, width = sizes[-2:]
        image = encode_image(ending, values.reshape(sizes))
        return image, f"{width} x {height}"
    if ending == ".npy":
        file = io.BytesIO()
        np.save(file, values.reshape(sizes), allow_pickle=False)
        return file.getvalue(), f"{show(values.dtype)} {show(sizes)}"
    # Raw files are little-endian on every machine, as the tool's are.
    content = values.astype(values.dtype.newbyteorder("<")).tobytes()
    return content, f"{len(content)} raw bytes"


def _write_file(
    command: WriteFile, path: Path, values: np.ndarray, targets: Targets
) -> str:
    """Writes a file, and returns a line about it.

    We write a file of another name and rename it, so that nobody reads half of a file.
    """
    sizes = command.dimensions or values.shape
    replaced = os.path.exists(path)
    # A name has at most 255 bytes, and a character up to 4.
    temporary = path.with_name(f".{path.name[:50]}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        with open(temporary, "xb") as file:
            if replaced:
                # The old file may be private, so this comes before the content. The
                # new file belongs to us, and must not run as its owner (set-uid).
                os.chmod(temporary, os.stat(path).st_mode & 0o777)
            content, summary = _encode(path.suffix.lower(), sizes, values)
            file.write(content)
        if targets.clobber:
            os.replace(temporary, path)
        else:
            # Unlike a replacement, a link fails if another process was faster.
            os.link(temporary, path)
    except OSError as error:
        raise ModelError(f"it cannot be written: {error.strerror}.") from error
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
    verb = "replaced" if replaced else "wrote"
    # The line has the path as written in the model and on the command line.
    name = shortened(str(targets.folder / command.target_path), LONGEST_PATH)
    return f"{verb} {name} ({summary})"


def write_outputs(
    shown: Shown, versions: Mapping[Version, np.ndarray], targets: Targets
) -> list[str]:
    """Writes the files of a model, and returns a line about each."""
    lines = []
    for place, (command, version, path) in shown.items():
        if isinstance(command, WriteFile):
            with at_place(place):
                lines.append(_write_file(command, path, versions[version], targets))
    return lines


def print_outputs(shown: Shown, versions: Mapping[Version, np.ndarray]) -> None:
    """Prints the text of the commands ``print``, in their order."""
    for place, (command, version, _) in shown.items():
        if isinstance(command, Print):
            values = versions[version]
            with at_place(place):
                # The whole text may need more memory than the model.
                for piece in text_of(command.resource, values, verbose=command.verbose):
                    print(show_on(sys.stdout, piece), end="")
