"""Slow cases of a parametrized test."""

import pytest


def slow(*case):
    """The arguments of a case for the slow tests."""
    return pytest.param(*case, marks=pytest.mark.slow)
