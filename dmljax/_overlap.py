"""Whether two elements of a strided tensor share an offset, decided in bounded time.

Two coordinates share an offset when their difference d, with |d[i]| <= size[i] - 1 and
d not 0, has dot(d, strides) = 0. An axis is here a pair (stride, reach): its part of
the difference is a multiple of the stride, at most `reach` times it either way.
"""

import math

import numpy as np

Axes = list[tuple[int, int]]
# Sums that one half of a search may have: 2^20 are sorted in about 0.1 s.
MOST_SUMS = 2**20
# A round of `_reduced` ends what strides of real layouts need in two; each costs 10 us.
MOST_ROUNDS = 16


def overlap(sizes: tuple[int, ...], strides: tuple[int, ...]) -> bool | None:
    """Whether two coordinates share an offset; None where it would take too long.

    >>> overlap((2, 3), (3, 1)), overlap((2, 3), (2, 1))
    (False, True)
    >>> overlap((50000, 40000), (40001, 3))  # 3 i = 40001 j has no solution this small
    False
    """
    given = zip(sizes, strides, strict=True)
    axes = [(stride, size - 1) for size, stride in given if size > 1]
    if any(stride == 0 for stride, _ in axes):
        return True
    axes = _reduced(axes)
    if not axes:
        return False
    if _pair_meets(axes) or _too_many(axes):
        return True
    return _search(axes)


def _reduced(axes: Axes) -> Axes:
    """Axes with the same solutions: without what no solution can contain.

    Whatever an axis adds, the others have to take away. So it adds no more than they
    reach together, and a multiple of the greatest common divisor of their strides. In
    the usual layouts, whose strides step over all the smaller axes, nothing is left;
    of two axes only those are left that meet.
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
    """The axis as far as the others can take away what it adds; none for nothing."""
    stride, reach = axis
    common = math.gcd(*(s for s, _ in others))
    step = common // math.gcd(common, stride) if others else 1
    limit = sum(s * r for s, r in others) // stride
    reach = min(reach, limit) // step
    return [(stride * step, reach)] if reach else []


def _pair_meets(axes: Axes) -> bool:
    """Whether two axes alone have a solution: their least common multiple."""
    return any(
        math.lcm(s, t) <= min(s * reach, t * extent)
        for i, (s, reach) in enumerate(axes)
        for t, extent in axes[:i]
    )


def _too_many(axes: Axes) -> bool:
    """Whether there are more coordinates than offsets that they could have."""
    span = sum(stride * reach for stride, reach in axes)
    offsets = span // math.gcd(*(stride for stride, _ in axes)) + 1
    return math.prod(reach + 1 for _, reach in axes) > offsets


def _search(axes: Axes) -> bool | None:
    """Whether a sum of half of the axes is a sum of the others, exactly."""
    halves: tuple[Axes, Axes] = ([], [])
    for axis in sorted(axes, key=lambda axis: -axis[1]):
        min(halves, key=_count).append(axis)
    wide = sum(stride * reach for stride, reach in axes) >= 2**62
    if wide or max(map(_count, halves)) > MOST_SUMS:
        return None
    first, second = map(_sums, halves)
    if np.sum(first == 0) > 1 or np.sum(second == 0) > 1:
        return True
    # Both are symmetric about 0, which both have once: from no difference at all.
    shared = np.intersect1d(first[first > 0], second[second > 0])
    return bool(shared.size)


def _count(axes: Axes) -> int:
    return math.prod(2 * reach + 1 for _, reach in axes)


def _sums(axes: Axes) -> np.ndarray:
    """Every sum of differences along the axes."""
    sums = np.zeros(1, np.int64)
    for stride, reach in axes:
        steps = stride * np.arange(-reach, reach + 1, dtype=np.int64)
        sums = np.add.outer(sums, steps).ravel()
    return sums
