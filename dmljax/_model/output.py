"""The output of a model: printed text, and files that are written.

Text looks like what DxDispatch prints. Files are written all or not at all.
"""

import contextlib
import functools
import io
import math
import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dmljax._check import LONGEST_PATH, ModelError, escaped, quoted, shortened, show
from dmljax._model.fields import at, require
from dmljax._model.images import BYTES_PER_NUMBER, Encoder, image_encoder, is_image
from dmljax._tensor import DataType
from dmljax._types import is_floating

# The number of elements that become text at a time. A text takes many times the memory
# of its number.
CHUNK = 2**12
# The most dimensions that NumPy's arrays have, and so a .npy file.
MOST_DIMENSIONS = 64


class Targets(NamedTuple):
    """Where files are written."""

    folder: Path = Path()  # what a targetPath is relative to
    clobber: bool = True  # whether a file that is there already may be replaced


HERE = Targets()


class FileOutput(NamedTuple):
    """A file to write."""

    path: Path  # without links
    name: str  # the path as the model and the command line have it
    clobber: bool  # whether it may replace a file
    encode: Encoder  # turns the values into the content of the file
    summary: str  # what the content is, for messages
    working_bytes: int  # the memory that encoding takes


def text_of(name: str, values: np.ndarray, *, verbose: bool = False) -> Iterator[str]:
    r"""Yields the text that the command ``print`` shows of a resource, in pieces.

    >>> "".join(text_of("output", np.array([6, 1.5, np.nan])))
    "Resource 'output': 6, 1.5, nan\n"
    >>> print(*text_of("output", np.array([6, 1.5], np.float16), verbose=True), sep="")
    Resource 'output':
    [0] 6 (0x4600)
    [1] 1.5 (0x3E00)
    <BLANKLINE>
    """
    separator = "\n" if verbose else ", "
    yield f"Resource '{escaped(name)}':{separator[-1]}"
    # C++ writes floats with up to six digits.
    write = "{:g}".format if is_floating(values.dtype) else str
    width = len(str(values.size))
    digits = 2 * values.itemsize
    for start in range(0, values.size, CHUNK):
        part = values[start : start + CHUNK]
        texts: Iterable[str] = map(write, part.tolist())
        if verbose:
            # The tool pads the index and the bits with spaces, not with zeros.
            bits = part.view(f"u{part.itemsize}").tolist()
            texts = (
                f"[{start + n:{width}}] {text} (0x{bits[n]:{digits}X})"
                for n, text in enumerate(texts)
            )
        yield (separator if start else "") + separator.join(texts)
    yield "\n"


def show_on(stream: Any, text: str) -> str:
    """Escapes the characters that a stream, such as standard output, can't encode."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def plan_file(
    fields: Mapping[str, Any], data_type: DataType, length: int, targets: Targets
) -> FileOutput:
    """Plans the file of a ``writeFile`` command for a resource of `length` elements."""
    given = tuple(fields.get("dimensions", ()))
    path = _check_target(fields["targetPath"], targets)
    require(
        not given or math.prod(given) == length,
        f"the field 'dimensions' is {show(given)}, {show(math.prod(given))} elements, "
        f"while the resource has {length}; both must be the same.",
    )
    sizes = given or (length,)
    extension = path.suffix.lower()
    size = length * (data_type.dtype.itemsize if data_type else 1)
    working_bytes = 2 * size  # of an array, encoding makes two copies
    if extension != ".npy" and not is_image(path):
        encode: Encoder = _to_bytes
        summary = f"{size} raw bytes"
    elif data_type == DataType.UNKNOWN:
        raise ModelError(
            f"a {extension} file needs one data type, and the resource has a list of "
            "elements with their own; write raw data (.bin)."
        )
    elif is_image(path):
        order = fields.get("channelOrder", "RGB")
        encode, summary = image_encoder(path, sizes, data_type, order)
        working_bytes = BYTES_PER_NUMBER * length
    else:
        require(
            len(sizes) <= MOST_DIMENSIONS,
            f"the field 'dimensions' has {len(sizes)} elements; a .npy file has at "
            f"most {MOST_DIMENSIONS} dimensions.",
        )
        encode = functools.partial(_to_npy, sizes)
        summary = f"{data_type.name} {show(sizes)}"
    name = str(targets.folder / fields["targetPath"])
    return FileOutput(path, name, targets.clobber, encode, summary, working_bytes)


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
        (exists and not targets.clobber, "is there already, and --no-clobber keeps it"),
        (exists and not os.access(path, os.W_OK), "is there already, and is read-only"),
    ):
        if wrong:
            raise ModelError(f"{place} {reason}.")
    return path


def _to_npy(dimensions: tuple[int, ...], values: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, values.reshape(dimensions), allow_pickle=False)
    return file.getvalue()


def _to_bytes(values: np.ndarray) -> bytes:
    # Raw files are little-endian on every machine, as the tool's are.
    return values.astype(values.dtype.newbyteorder("<")).tobytes()


def write_files(
    files: Iterable[tuple[str, FileOutput, np.ndarray]],
    interruptible: Callable[[], contextlib.AbstractContextManager[None]],
) -> list[str]:
    """Writes all files, or none if one can't be written, and returns a line about each.

    All content is written to files with other names first, in the context that
    `interruptible` makes. Then each gets its name in one step, so that no reader ever
    sees half of it. If this fails for one, those before it get back what they held,
    where the file system has links. Each file comes with its command's place.
    """
    with contextlib.ExitStack() as cleanup, contextlib.ExitStack() as undo:
        staged = []
        lines = []
        with interruptible():
            for place, output, values in files:
                with writing(place):
                    staged.append((place, output, stage_file(output, values, cleanup)))
        for place, output, temporary in staged:
            with writing(place):
                verb = _name_file(output, temporary, cleanup, undo)
            path = shortened(output.name, LONGEST_PATH)
            lines.append(f"{verb} {path} ({output.summary})")
        undo.pop_all()
        return lines


def stage_file(
    output: FileOutput, values: np.ndarray, cleanup: contextlib.ExitStack
) -> Path:
    """Writes a file under another name. `cleanup` removes it."""
    temporary = _other_name(output.path, cleanup)
    content = output.encode(values)
    replaced = os.path.exists(output.path)

    def create(path: str, flags: int) -> int:
        # What a private file will hold is never open to others, not even at first.
        return os.open(path, flags, 0o600 if replaced else 0o666)

    with open(temporary, "xb", opener=create) as file:
        file.write(content)
    if replaced:
        before, now = os.stat(output.path), os.stat(temporary)
        # The bits of another owner or group would open the file to other people.
        if (before.st_uid, before.st_gid) == (now.st_uid, now.st_gid):
            os.chmod(temporary, before.st_mode & 0o777)
    return temporary


def _name_file(
    output: FileOutput,
    temporary: Path,
    cleanup: contextlib.ExitStack,
    undo: contextlib.ExitStack,
) -> str:
    """Gives a file its name, and says what that did. `undo` takes it back."""
    path = output.path
    if not output.clobber:
        # Unlike os.replace, this fails if another process has made the file by now.
        os.link(temporary, path)
        undo.callback(_attempt, os.unlink, path)
        return "wrote"
    replaced = os.path.exists(path)
    before = _other_name(path, cleanup)
    # In a folder like /tmp, only the superuser could remove a link to another's file.
    if replaced and os.stat(temporary).st_uid in (0, os.stat(path).st_uid):
        _attempt(os.link, path, before)
        undo.callback(_attempt, os.replace, before, path)
    os.replace(temporary, path)
    if not replaced:
        undo.callback(_attempt, os.unlink, path)
    return "replaced" if replaced else "wrote"


def _other_name(path: Path, cleanup: contextlib.ExitStack) -> Path:
    """Returns another name beside a file, made of its own. `cleanup` removes it."""
    # A name has at most 255 bytes, and a character up to 4.
    other = path.with_name(f".{path.name[:50]}.{uuid.uuid4().hex[:8]}.tmp")
    cleanup.callback(_attempt, os.unlink, other)
    return other


def _attempt(step: Callable[..., None], *paths: Path) -> None:
    """Does what helps after an error, or before one, but is not always possible."""
    with contextlib.suppress(OSError):
        step(*paths)


@contextlib.contextmanager
def writing(place: str) -> Iterator[None]:
    """Turns an error of the operating system into one of the model at a place."""
    with at(place):
        try:
            yield
        except OSError as error:
            raise ModelError(f"it cannot be written: {error.strerror}.") from error
