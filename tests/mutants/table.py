"""All faults, module by module."""

from tests.mutants import frame

FAULTS = (*frame.FAULTS,)
