"""The limits on the elements of a model and on the bytes that it reads.

A model of a few bytes may ask for any number of elements. We refuse too many of them
before memory is allocated: otherwise such a file could end the process. Files are
written in `output`.
"""

import os
from pathlib import Path

from dmljax._check import ModelError, as_python

# So many float32 take 1 GiB. A run holds about three copies of each resource.
MOST_ELEMENTS = 2**28
# Of the text of a model, and of another file beside its elements: a .npy file has a
# header, and an image may have a profile.
MOST_BYTES = 2**24
WIDEST = 8  # bytes of an element


class Room:
    """Counts the elements that a model may still have."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.left = limit

    def check(self, count: int, what: str) -> None:
        """Requires that there is room for `count` more elements."""
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


def read_file(path: Path, what: str, elements: int = 0) -> bytes:
    """Reads a regular file: the text of a model, or values of some elements at most.

    A device or a pipe is refused, because it may have no end.
    """
    if os.path.exists(path) and not os.path.isfile(path):
        raise ModelError(f"{what} is a folder, a device or a pipe, not a file.")
    try:
        size = os.path.getsize(path)
        check_length(size, what, elements)
        with open(path, "rb") as file:
            return file.read(size)
    except ModelError:  # the last clause would catch this ValueError
        raise
    except OSError as error:
        raise ModelError(f"{what} cannot be read: {error.strerror}.") from error
    except ValueError as error:  # no path may have a null character, for one
        raise ModelError(f"{what} is not a path: {error}.") from error


def check_length(size: int, what: str, elements: int = 0) -> None:
    """Requires that the text of a model, or a file of values, is not too long."""
    most = MOST_BYTES + WIDEST * elements
    if size > most:
        raise ModelError(
            f"{what} has more than {most} bytes. A text may have {MOST_BYTES}; a file "
            f"of values {WIDEST} more for each element for which there is room."
        )
