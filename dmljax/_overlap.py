"""Decides whether two elements of a strided tensor share an offset, in bounded time.

Two coordinates share an offset if their difference d, which is not 0, has
dot(d, strides) = 0. Along each axis |d[i]| is at most size[i] - 1. In this file an axis
is a pair (stride, reach): it adds to the dot product a multiple of the stride, at most
`reach` times it in either direction. A *solution* is a choice of these multiples, not
all 0, whose sum is 0.

The problem is a subset sum, which takes exponential time in general. Strides that
people write are decided by `_reduced` alone. The rest is searched up to a limit.
"""

import math

import numpy as np

Axes = list[tuple[int, int]]
# The number of sums that one half of a search may have. 2^20 are sorted in about 0.1 s.
MOST_SUMS = 2**20
# The number of rounds of `_reduced`, each of which costs about 10 us. Real layouts need
# two.
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
    axes = _reduced(axes)
    if not axes:
        return False
    # Both tests are cheap, and show most overlaps that there are.
    if _pair_meets(axes) or _too_many(axes):
        return True
    return _search(axes)


def _reduced(axes: Axes) -> Axes:
    """Removes from the axes what no solution can contain.

    The other axes have to take away what an axis adds. So it adds no more than they
    reach together, and only multiples of the greatest common divisor of their strides.
    In usual layouts each stride steps over all the smaller axes, and no axis is left.
    """
    for _ in range(MOST_ROUNDS):
        before = axes
        for axis in axes:
            others = [other for other in axes if other is not axis]
            axes = others + _within(axis, others)
        if sorted(axes) == sorted(before):
            break
    return axes


def _within(axis: tuple[int, int], others: Axes) -> Axes:
    """Limits an axis to what the others can take away; an empty list if to nothing."""
    stride, reach = axis
    common = math.gcd(*(s for s, _ in others))
    step = common // math.gcd(common, stride) if others else 1
    limit = sum(s * r for s, r in others) // stride
    reach = min(reach, limit) // step
    return [(stride * step, reach)] if reach else []


def _pair_meets(axes: Axes) -> bool:
    """Whether two axes alone have a solution."""
    # The smallest sum that both can make is the least common multiple of the strides.
    return any(
        math.lcm(s, t) <= min(s * reach, t * extent)
        for i, (s, reach) in enumerate(axes)
        for t, extent in axes[:i]
    )


def _too_many(axes: Axes) -> bool:
    """Whether there are more coordinates than offsets that they could have."""
    # By the pigeonhole principle two coordinates then share an offset. All offsets are
    # multiples of the strides' greatest common divisor.
    span = sum(stride * reach for stride, reach in axes)
    offsets = span // math.gcd(*(stride for stride, _ in axes)) + 1
    return math.prod(reach + 1 for _, reach in axes) > offsets


def _search(axes: Axes) -> bool | None:
    """Whether a sum of half of the axes is also a sum of the others.

    Each half has about the square root of the number of sums of all axes, so this is
    far quicker than to try them all. None if a half has more than MOST_SUMS.
    """
    halves: tuple[Axes, Axes] = ([], [])
    for axis in sorted(axes, key=lambda axis: -axis[1]):
        min(halves, key=_count).append(axis)
    # The sums are int64.
    wide = sum(stride * reach for stride, reach in axes) >= 2**62
    if wide or max(map(_count, halves)) > MOST_SUMS:
        return None
    first, second = map(_sums, halves)
    # Each half has the sum 0 once, from no difference at all. A second 0 is a solution
    # within the half.
    if np.sum(first == 0) > 1 or np.sum(second == 0) > 1:
        return True
    # The sums of both halves are symmetric about 0, so the positive ones are enough.
    shared = np.intersect1d(first[first > 0], second[second > 0])
    return bool(shared.size)


def _count(axes: Axes) -> int:
    return math.prod(2 * reach + 1 for _, reach in axes)


def _sums(axes: Axes) -> np.ndarray:
    """Returns every sum that the axes can make."""
    sums = np.zeros(1, np.int64)
    for stride, reach in axes:
        steps = stride * np.arange(-reach, reach + 1, dtype=np.int64)
        sums = np.add.outer(sums, steps).ravel()
    return sums
