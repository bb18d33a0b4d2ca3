"""The kernels of NONZERO_COORDINATES, and the choice between them and XLA's form.

No other operator has kernels: XLA has good code for the others, and can't fuse a kernel
(docs/how_to/implementation.md). A kernel is chosen when a call is lowered, and its
module is imported then, because not every JAX has the modules that it imports.
"""

import functools
from typing import Any, Literal

import jax
from jax import Array

from dmljax import _nonzero_forms as forms
from dmljax._check import NoKernelError
from dmljax._jax import (
    VERSION,
    Context,
    code_per_thread,
    compute_capability,
    is_exported,
    types_of,
    why_divided,
)
from dmljax._types import Form, Outputs

# The form that a caller asks for. None stands for the default.
Implementation = Literal["xla", "pallas"] | None

# The oldest GPUs for which we compile a kernel that was asked for. Mosaic GPU starts
# every kernel with instructions that Hopper brought. JAX 0.11.2 leaves them out for
# older GPUs: the kernels are then compiled for 8.0 and 8.9, as a test does.
LEAST_CAPABILITY = (8, 0) if VERSION >= (0, 11, 2) else (9, 0)
# A kernel is the default if an operand or an output has this number of elements. On an
# H200, "elements above a limit" takes 1.14 to 1.17 of the time with it for 2^14 and
# 2^18 elements, 1.05 to 1.08 for 2^20 and 2^22, and 0.82 for 2^23. "Rows of a mask"
# with 2^20 rows takes 0.91 (benchmarks/results/nvidia-h200.csv, "[kernel]", "[no
# kernel]"). It compiles 0.2 s longer. We have not run the kernel for TPUs on its
# hardware.
DEFAULT_FROM = {"cuda": 2**20}


def _run(platform: str, *operands: Array, **static: Any) -> Outputs:
    """Finds the coordinates by the kernel of a platform."""
    if platform == "cuda":
        from dmljax.pallas.gpu._nonzero_coordinates import nonzero_coordinates as kernel
    else:
        from dmljax.pallas.tpu import nonzero_coordinates as kernel
    return kernel(*operands, **static)


# The kernel of each platform. Tests also have a kernel for "cpu".
KERNELS: dict[str, Form] = {
    "cuda": functools.partial(_run, "cuda"),
    "tpu": functools.partial(_run, "tpu"),
}


def default_kernel(platform: str, context: Context) -> Form | None:
    """Returns the kernel if it runs although nobody asked for it; else None."""
    # An exported program may run on a GPU that the kernel does not serve.
    if platform not in DEFAULT_FROM or is_exported(context):
        return None
    # We have run no kernel on a GPU before Hopper: a kernel is no default before it ran
    # on its hardware.
    if _why_no_kernel(platform, context, (9, 0)) is not None:
        return None
    if max(array.size for array in types_of(context)) < DEFAULT_FROM[platform]:
        return None

    def kernel_or_definition(*operands: Array, **static: Any) -> Outputs:
        try:
            return KERNELS[platform](*operands, **static)
        except NoKernelError:  # the kernel refuses the sizes
            return forms.definition(*operands, **static)

    return kernel_or_definition


def required_kernel(platform: str, context: Context) -> Form:
    """Returns the kernel that was asked for, or raises an error if it can't run."""
    problem = _why_no_kernel(platform, context, LEAST_CAPABILITY)
    if problem is not None:
        raise NoKernelError(
            f"NONZERO_COORDINATES: implementation='pallas' was asked for, and {problem}"
        )
    return KERNELS[platform]


def _why_no_kernel(
    platform: str, context: Context, least: tuple[int, int]
) -> str | None:
    """Gives the reason why no kernel can run, and the remedy; None if a kernel can run.

    A GPU must have at least the compute capability `least`.
    """
    # XLA can't divide a kernel. It would gather whole arrays on every device instead.
    divided = why_divided(context)
    if divided is not None:
        return divided
    sizes = [size for array in types_of(context) for size in array.shape]
    # A program may be compiled for other GPUs than those of this machine. JAX tells a
    # lowering rule at most the name of its target, and only where the operands are on a
    # mesh.
    capability = compute_capability()
    if not all(isinstance(size, int) for size in sizes):
        problem = "the sizes are symbolic; a kernel needs numbers"
    elif platform not in KERNELS:
        # JAX does not say the name of a platform that has no lowering rule of its own.
        named = f"the platform {platform!r}" if platform else "this platform"
        problem = f"there is no kernel for {named}"
    elif platform == "cuda" and code_per_thread() is None:
        problem = (
            "it needs jax.experimental.pallas.mosaic_gpu as JAX 0.10.2 has it, "
            f"while this is JAX {jax.__version__}"
        )
    elif platform == "cuda" and capability is not None and capability < least:
        version = ".".join(map(str, least))
        problem = f"it needs a GPU of compute capability {version} or later"
    else:
        return None
    return f"{problem}; use implementation=None or 'xla'."
