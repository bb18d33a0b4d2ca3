"""All faults, module by module."""

from tests.mutants import descriptors, operators, padding

FAULTS = (*descriptors.FAULTS, *operators.FAULTS, *padding.FAULTS)
