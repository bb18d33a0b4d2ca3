"""The collectives in a compiled program's text, and the bytes that devices send."""

import math
import re
from typing import NamedTuple

KINDS = "all-gather|all-reduce|all-to-all|collective-permute|reduce-scatter"


class Collective(NamedTuple):
    """A collective, and the array that each device receives."""

    kind: str
    elements: int
    bytes: int

    def sent(self, devices):
        """The bytes that each of `devices` devices sends, if they form a ring."""
        others = devices - 1
        parts = {
            "all-gather": others / devices,
            "all-reduce": 2 * others / devices,  # a reduce-scatter and an all-gather
            "all-to-all": others / devices,
            "collective-permute": 1,
            "reduce-scatter": others,  # the array is one of `devices` parts
        }
        return round(self.bytes * parts[self.kind])


def collectives(text):
    """All collectives of a program, in order of their kinds and sizes.

    A collective may have several arrays. If its start is an operation of its own, the
    start names the operands, then the results, and then, on a TPU, its scalars.
    """
    found = []
    for arrays, kind, start in re.findall(rf"= (.*?) ({KINDS})(-start)?\(", text):
        results = [
            Collective(kind, elements, elements * _bytes(dtype))
            for dtype, shape in re.findall(r"(\w+)\[([\d,]*)\]", arrays)
            if shape or not start
            for elements in [math.prod(int(size) for size in shape.split(",") if size)]
        ]
        # The start of an all-reduce is an exception: it names only the results.
        whole = not start or kind == "all-reduce"
        found += results if whole else results[len(results) // 2 :]
    return sorted(found)


def bytes_sent(text, devices):
    """The bytes that each device sends, if all devices take part in each collective.

    A collective in a loop counts once.
    """
    return sum(one.sent(devices) for one in collectives(text))


def show_bytes(number):
    """Bytes with three digits, in steps of 1024."""
    power = min(max(number.bit_length() - 1, 0) // 10, 3)
    return f"{number / 1024**power:.3g} {('B', 'KiB', 'MiB', 'GiB')[power]}"


def _bytes(dtype):
    """Bytes of an element. XLA's names have the bits; only bool is `pred`."""
    bits = re.search(r"\d+", dtype)
    return max(int(bits[0]) // 8, 1) if bits else 1
