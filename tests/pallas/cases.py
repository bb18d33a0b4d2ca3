"""Cases of a test that take long."""

import pytest


def slow(*case):
    """The arguments of a case that only the slow tests run."""
    return pytest.param(*case, marks=pytest.mark.slow)
