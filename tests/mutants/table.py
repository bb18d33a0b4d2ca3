"""All faults, module by module."""

from tests.mutants import descriptors

FAULTS = (*descriptors.FAULTS,)
