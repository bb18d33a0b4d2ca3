"""All faults, module by module."""

from tests.mutants import (
    descriptors,
    dispatch,
    elementwise,
    kernels,
    models,
    operators,
    padding,
    tpu,
)

FAULTS = (
    *descriptors.FAULTS,
    *operators.FAULTS,
    *padding.FAULTS,
    *dispatch.FAULTS,
    *models.FAULTS,
    *elementwise.FAULTS,
    *kernels.FAULTS,
    *tpu.FAULTS,
)
