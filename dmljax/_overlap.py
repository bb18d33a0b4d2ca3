"""Decides whether two elements of a strided tensor share an offset, in bounded time.

Two different coordinates share an offset if their difference d has
dot(d, strides) = 0. In this file an axis is a pair (stride, reach): it adds to the dot
product a multiple of its stride, at most `reach` times in either direction.

The problem is a subset sum, and takes exponential time in general
(https://en.wikipedia.org/wiki/Subset_sum_problem). `_reduce` alone decides the strides
that people write. What it leaves is tried, up to a limit.
"""

import math

import numpy as np

Axes = list[tuple[int, int]]
# The number of offsets that are compared. 2^20 are sorted in about 0.1 s.
MOST_OFFSETS = 2**20
# The number of rounds of `_reduce`. Each costs about 10 us. Real layouts need two.
MOST_ROUNDS = 16


def overlap(sizes: tuple[int, ...], strides: tuple[int, ...]) -> bool | None:
    """Whether two coordinates share an offset; None if it would take too long to find.

    >>> overlap((2, 3), (3, 1)), overlap((2, 3), (2, 1))
    (False, True)
    >>> overlap((50000, 40000), (40001, 3))  # 3 i = 40001 j has no solution this small
    False
    """
    given = zip(sizes, strides, strict=True)
    axes = [(stride, size - 1) for size, stride in given if size > 1]
    # A stride of 0 puts all elements along its axis at one offset.
    if any(stride == 0 for stride, _ in axes):
        return True
    axes = _reduce(axes)
    if _two_meet(axes):
        return True
    if math.prod(reach + 1 for _, reach in axes) > MOST_OFFSETS:
        return None
    # Sums of 2^64 and more wrap around. Then different ones may look alike, but never
    # the other way round.
    offsets = np.zeros(1, np.uint64)
    for stride, reach in axes:
        steps = np.uint64(stride % 2**64) * np.arange(reach + 1, dtype=np.uint64)
        offsets = np.add.outer(offsets, steps).ravel()
    return bool(np.unique(offsets).size < offsets.size)


def _reduce(axes: Axes) -> Axes:
    """Removes from the axes what no two coordinates with one offset can differ by.

    For example, sizes {2,3} have strides {3,1}. A step along the first axis adds 3, and
    the second can take away 2 at most: the first is removed, and then the second.

    The other axes have to take away what an axis adds. So it adds no more than they
    reach together, and only multiples of the greatest common divisor of their strides.
    In usual layouts each stride steps over all the smaller axes, and no axis is left.
    """
    for _ in range(MOST_ROUNDS):
        before = axes
        for axis in axes:
            others = [other for other in axes if other is not axis]
            axes = others + _limit(axis, others)
        if sorted(axes) == sorted(before):
            break
    return axes


def _limit(axis: tuple[int, int], others: Axes) -> Axes:
    """Limits an axis to what the others can take away; an empty list if to nothing."""
    stride, reach = axis
    common = math.gcd(*(s for s, _ in others))
    step = common // math.gcd(common, stride) if others else 1
    limit = sum(s * r for s, r in others) // stride
    reach = min(reach, limit) // step
    return [(stride * step, reach)] if reach else []


def _two_meet(axes: Axes) -> bool:
    """Whether two axes alone reach one offset."""
    # The smallest sum that both can make is the least common multiple of the strides.
    return any(
        math.lcm(s, t) <= min(s * reach, t * extent)
        for i, (s, reach) in enumerate(axes)
        for t, extent in axes[:i]
    )
