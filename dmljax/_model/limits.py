"""The memory that a model may use, counted before it is allocated.

A model of a few bytes may ask for any number of elements. Without a budget such a file
would end the process, or make the machine swap.
"""

import os
import re
import stat
from pathlib import Path

import numpy as np

from dmljax._check import ModelError, as_python, quoted

# The share of the machine's memory that a model may use by default.
DEFAULT_SHARE = 0.5
# The same in bytes, where Python can't say how much memory there is, as on Windows.
WITHOUT_SYSCONF = 4 * 2**30
NO_WAIT = getattr(os, "O_NONBLOCK", 0)  # a flag of os.open that Windows lacks
UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
# The files in which Linux says how much a container may use, by version of cgroups.
CONTAINER_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


class Budget:
    """Counts the bytes that one model uses, up to those that it may use."""

    def __init__(self, limit: int | None = None) -> None:
        self.limit = default_limit() if limit is None else limit
        self.used = 0

    def check(self, size: int, what: str) -> None:
        """Requires that there is room for the `size` more bytes that `what` needs."""
        if self.used + size > self.limit:
            so_far = f" besides {in_units(self.used)} so far" if self.used else ""
            raise ModelError(
                f"{what} needs {in_units(size)} of memory{so_far}; a model may use "
                f"{in_units(self.limit)} (--max-memory, or max_memory in Python)."
            )

    def take(self, size: int, what: str) -> None:
        """Counts `size` bytes, for which there must be room."""
        self.check(size, what)
        self.used += size


def default_limit() -> int:
    """Returns half of the machine's memory, or of its container's if that is less."""
    if not hasattr(os, "sysconf"):
        return WITHOUT_SYSCONF
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in CONTAINER_LIMITS:
        # A container without a limit has "max" here.
        text = path.read_text().strip() if path.is_file() else ""
        memory = min(memory, int(text)) if text.isdigit() else memory
    return int(memory * DEFAULT_SHARE)


def as_limit(value: int | str | None) -> int | None:
    """Returns a number of bytes, also from text such as 512M, 8G or 1.5GiB.

    >>> as_limit("1.5G")
    1610612736
    """
    if isinstance(value, str):
        match = re.fullmatch(
            r"(\d{1,15}(?:\.\d{1,9})?)\s*([KMGT]?)(?:i?B)?", value, re.I | re.A
        )
        if not match:
            raise ModelError(f"{quoted(value)} is not a size such as 512M or 8G.")
        return int(float(match[1]) * UNITS[match[2].upper()])
    other = isinstance(value, (bool, np.timedelta64))  # integers, for Python and NumPy
    if other or not isinstance(value, int | np.integer | None):
        raise TypeError(
            f"run_model: max_memory is {as_python(value)}; it must be an integer, the "
            "number of bytes, or text such as '8G'."
        )
    if value is not None and value < 0:
        raise ModelError(f"{as_python(value)} is not a size such as 512M or 8G.")
    return None if value is None else int(value)


def in_units(size: int) -> str:
    """Writes a number of bytes in the largest unit that it reaches.

    >>> in_units(10 * 2**30), in_units(700)
    ('10 GiB', '700 bytes')
    """
    for unit, scale in reversed(UNITS.items()):
        if unit and size >= scale:
            # A float can't hold the largest sizes that a file may ask for.
            number = size / scale if size < 2**60 else size // scale
            return f"{number:.3g} {unit}iB"
    return f"{size} bytes"


def read_file(path: Path, budget: Budget, what: str, factor: int = 1) -> bytes:
    """Reads a regular file.

    `factor` is the number of bytes of memory that its content needs for each byte. A
    device or a pipe is refused, because it may have no end.
    """
    try:
        # A pipe would wait until somebody writes to it.
        with open(
            path, "rb", opener=lambda p, flags: os.open(p, flags | NO_WAIT)
        ) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise ModelError(f"{what} is a folder, a device or a pipe, not a file.")
            budget.check(factor * status.st_size, what)
            return file.read(status.st_size)
    except ModelError:  # the last clause would catch this ValueError
        raise
    except OSError as error:
        raise ModelError(f"{what} cannot be read: {error.strerror}.") from error
    except ValueError as error:  # no path may have a null character, for one
        raise ModelError(f"{what} is not a path: {error}.") from error
