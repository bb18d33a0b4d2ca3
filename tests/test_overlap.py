"""Whether two elements of a strided tensor share an offset."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dmljax._overlap import overlap
from tests import oracles

axis = st.tuples(st.integers(1, 5), st.integers(0, 24))
axes = st.lists(axis, min_size=1, max_size=4)


@settings(max_examples=300)
@given(axes)
def test_small_strides(axes):
    sizes, strides = zip(*axes, strict=True)
    assert overlap(sizes, strides) == oracles.strides_overlap(sizes, strides)


def test_strides_of_which_three_or_more_meet():
    """Two axes alone rarely meet, and the offsets are too many to be all taken."""
    generator = np.random.default_rng(0)
    found = []
    for _ in range(400):
        rank = generator.integers(3, 6)
        sizes = tuple(map(int, generator.integers(2, 6, rank)))
        strides = tuple(map(int, generator.integers(1, 500, rank)))
        offsets = np.tensordot(strides, np.indices(sizes), 1)
        shared = len(np.unique(offsets)) < offsets.size
        assert overlap(sizes, strides) == shared, (sizes, strides)
        found.append(shared)
    assert 100 < sum(found) < 300


@pytest.mark.parametrize(
    ("sizes", "strides", "shared"),
    [
        ((4, 3), (3, 4), False),
        ((5, 4), (3, 4), True),
        ((2, 2, 2), (2**63 + 11, 2**62 + 1, 2**62 + 10), True),
        ((4, 5, 5, 5, 2), (51, 242, 399, 20, 331), True),
        ((65536, 65535), (65535, 1), False),
        ((65536, 64), (63, 1), True),
        ((50000, 40000), (40001, 3), False),
        ((50000, 40002), (40001, 3), True),
        ((2, 2), (2**20, 2**20), True),
        # More coordinates than are tried one by one: two axes meet, or several rounds
        # in which each axis limits the others leave none.
        ((2000, 2000), (1009, 1013), True),
        ((50000, 50000), (3, 5), True),
        ((2**16, 2**16), (2**10, 1), True),
        ((2**16, 2**16), (1, 2**10), True),
        ((3000, 3000, 50, 7), (21000, 10**7, 7, 5), False),
        ((2, 2000, 2000), (10**9, 4001, 4003), False),
        # The last elements of two axes meet, and a third one leaves much to compare.
        ((2012, 2004, 4), (2003, 2011, 1), True),
        # The stride of a size of 1 counts for nothing, and a stride of 0 for all.
        ((1, 1, 7), (0, 0, 1), False),
        ((1, 2), (5, 0), True),
        ((1,), (0,), False),
        # All offsets are multiples of 6, or their bits are those of the sizes.
        ((9, 9, 2), (60, 6, 600), False),
        ((2,) * 8, (128, 1, 64, 2, 32, 4, 16, 8), False),
        # Which of these overlap would take too long to find.
        ((16,) * 7, (8009, 8011, 8017, 8039, 8053, 8059, 8069), None),
        # No more than 2^20 elements with such strides are compared.
        ((16,) * 5, (8009, 8011, 8017, 8039, 8053), True),
        ((16, 16, 16, 16, 17), (8009, 8011, 8017, 8039, 8053), None),
        ((2, 2, 2, 2), (8009, 8011, 8017, 8039), False),
    ],
)
def test_chosen_strides(sizes, strides, shared):
    """Also with offsets that wrap around, where an odd factor changes nothing."""
    for factor in (1, 2**60 + 1):
        assert overlap(sizes, tuple(factor * s for s in strides)) is shared
