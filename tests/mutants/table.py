"""All faults, module by module."""

from tests.mutants import (
    arguments,
    descriptors,
    dispatch,
    elementwise,
    formulas,
    kernels,
    models,
    operators,
    outputs,
    padding,
    tensors,
    tpu,
    values,
)

FAULTS = (
    *arguments.FAULTS,
    *tensors.FAULTS,
    *descriptors.FAULTS,
    *operators.FAULTS,
    *formulas.FAULTS,
    *padding.FAULTS,
    *dispatch.FAULTS,
    *models.FAULTS,
    *values.FAULTS,
    *outputs.FAULTS,
    *elementwise.FAULTS,
    *kernels.FAULTS,
    *tpu.FAULTS,
)
