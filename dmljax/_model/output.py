"""The output of a model: text of resources, as DxDispatch prints it, and files.

`files` encodes the content of a file.
"""

import contextlib
import math
import os
import sys
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dmljax._check import LONGEST_PATH, ModelError, quoted, shortened, show
from dmljax._directml.tensor import DataType
from dmljax._model.files import IMAGES, check_image, encode
from dmljax._model.format import Print, WriteFile, at_place, reporting
from dmljax._model.values import Resource, Version


class Targets(NamedTuple):
    """The options for written files."""

    folder: Path = Path()  # each targetPath is relative to this folder
    # With --no-clobber, the files of the commands checked so far. None: files may be
    # replaced.
    planned: set[Path] | None = None


# The commands to print or write, by their places in messages. Each has its resource,
# and the path of its file, which `print` leaves empty.
Shown = Mapping[str, tuple[Print | WriteFile, Version, Path]]


def text_of(name: str, values: np.ndarray, *, verbose: bool = False) -> Iterator[str]:
    r"""Yields the text of a resource for the command ``print``, in pieces.

    >>> "".join(text_of("output", np.array([6, 1.5, np.nan])))
    "Resource 'output': 6, 1.5, nan\n"
    >>> print(*text_of("output", np.array([6, 1.5], np.float16), verbose=True), sep="")
    Resource 'output':
    [0] 6 (0x4600)
    [1] 1.5 (0x3E00)
    <BLANKLINE>
    """
    separator = "\n" if verbose else ", "
    yield f"Resource '{shortened(name, None)}':{separator[-1]}"
    # C++ writes floats with up to six digits.
    number_format = "g" if values.dtype.kind == "f" else "d"
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
    path = Path()
    if isinstance(command, WriteFile):
        path = _check_target(command.target_path, targets)
    ending = path.suffix.lower()
    is_typed = isinstance(command, Print) or ending in (".npy", *IMAGES)
    if is_typed and resource.data_type == DataType.UNKNOWN:
        raise ModelError(
            f"the resource {quoted(command.resource)} has a list of elements with "
            "their own types; only writeFile can show it, as raw data (.bin)."
        )
    if isinstance(command, Print):
        return path
    sizes = command.dimensions or resource.values.shape
    if math.prod(sizes) != resource.values.size:
        raise ModelError(
            f"the field 'dimensions' is {show(sizes)}, {show(math.prod(sizes))} "
            f"elements, while the resource has {resource.values.size}; both must be "
            "the same."
        )
    if ending in IMAGES:
        check_image(ending, sizes, resource.data_type)
    elif ending == ".npy" and len(sizes) > 64:  # NumPy's arrays have no more dimensions
        raise ModelError(
            f"the field 'dimensions' has {len(sizes)} elements; a .npy file has at "
            "most 64 dimensions."
        )
    return path


def _check_target(name: str, targets: Targets) -> Path:
    """Returns the path of a file, without links. We must be able to write there."""
    target = f"targetPath {quoted(name, LONGEST_PATH)}"
    exists = False
    # Such as a name that is too long, or has a null character (a ValueError).
    with reporting(f"{target} cannot be written", OSError, ValueError):
        try:
            path = Path(os.path.realpath(targets.folder / name))
        except FileNotFoundError as error:
            raise ModelError(
                f"{target} is relative to the current directory, which no longer "
                "exists."
            ) from error
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.stat(path)
            exists = True
    # Unlike the methods of a Path, os.path.isdir and os.path.isfile never raise.
    if not os.path.isdir(path.parent):
        folder = quoted(str(targets.folder.absolute()), LONGEST_PATH)
        raise ModelError(
            f"{target} is in a folder that does not exist; it is relative to {folder}, "
            "and no folder is made."
        )
    if not os.access(path.parent, os.W_OK):
        raise ModelError(f"{target} is in a folder that cannot be written.")
    if targets.planned is not None:
        if exists or path in targets.planned:
            when = "there already" if exists else "written before"
            raise ModelError(f"{target} is {when}, and --no-clobber keeps it.")
        targets.planned.add(path)
    if exists and not os.path.isfile(path):
        raise ModelError(f"{target} is there already, and is not a file.")
    if exists and not os.access(path, os.W_OK):
        raise ModelError(f"{target} is there already, and is read-only.")
    return path


def _write_file(
    command: WriteFile, path: Path, values: np.ndarray, targets: Targets
) -> str:
    """Writes a file, and returns a line about it.

    We write a file of another name and rename it, so that nobody reads half of a file.
    """
    values = values.reshape(command.dimensions or values.shape)
    replaced = os.path.exists(path)
    # A name has at most 255 bytes, and a character up to 4.
    temporary = path.with_name(f".{path.name[:50]}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        with reporting("it cannot be written", OSError):
            with open(temporary, "xb") as file:
                if replaced:
                    # The old file may be private, so this comes before the content. The
                    # new file belongs to us, and must not run as its owner (set-uid).
                    os.chmod(temporary, os.stat(path).st_mode & 0o777)
                content, summary = encode(path.suffix.lower(), values)
                file.write(content)
            # Unlike a replacement, a link fails if another process was faster.
            finish = os.replace if targets.planned is None else os.link
            finish(temporary, path)
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
