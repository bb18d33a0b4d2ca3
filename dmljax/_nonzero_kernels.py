"""The kernels of NONZERO_COORDINATES, and the choice between them and XLA's form.

Only this operator has kernels: XLA has good code for the other operators, and can't
fuse a kernel with the operations around it (docs/how_to/implementation.md). A kernel is
chosen, and its module is imported, when a call is lowered: not every JAX has the
modules that a kernel needs.
"""

import functools
from collections.abc import Callable
from typing import Any, Literal

import jax

from dmljax._check import DescriptorError, show
from dmljax._jax import (
    VERSION,
    Context,
    code_per_thread,
    compute_capability,
    is_exported,
    types_of,
    why_divided,
)
from dmljax._types import Form

# The caller's wish for a form. None stands for the default.
Implementation = Literal["xla", "pallas"] | None

# A kernel is the default if an operand or an output has this number of elements: small
# programs gain nothing, and compile more slowly (docs/development/lab_notes.md, "The
# size from which the kernel of nonzero_coordinates pays"). The kernel for TPUs has not
# run on a TPU, and is no default.
DEFAULT_MIN_ELEMENTS = {"cuda": 2**20}


def _kernel_of(platform: str, flags: Any, **static: Any) -> Form | None:
    """Returns the kernel of a platform, or None for too many flags or rows.

    `flags` is the type of the first operand.
    """
    if platform == "cuda":
        from dmljax.pallas.gpu._nonzero_coordinates import kernel_of
    else:
        from dmljax.pallas.tpu import kernel_of
    return kernel_of(flags.shape, **static)


# The kernels by platform. The tests add a kernel for "cpu".
KERNELS: dict[str, Callable[..., Form | None]] = {
    platform: functools.partial(_kernel_of, platform) for platform in ("cuda", "tpu")
}


def choose_kernel(
    platform: str,
    context: Context,
    *,
    implementation: Implementation = None,
    **static: Any,
) -> Form | None:
    """Returns the kernel of a call, or None for a form in jax.numpy.

    With implementation="pallas", a kernel that can't run is an error.
    """
    is_asked = implementation == "pallas"
    arrays = types_of(context)
    if not is_asked:
        fewest = DEFAULT_MIN_ELEMENTS.get(platform)
        # An exported program may run on an older GPU.
        if implementation == "xla" or fewest is None or is_exported(context):
            return None
        sizes = [array.size for array in arrays]
        if not any(isinstance(n, int) and n >= fewest for n in sizes):
            return None
    # By default the kernel runs where it was tested: on GPUs from Hopper on. A kernel
    # that is asked for may also run on GPUs from Ampere on, if JAX is 0.11.2 or later:
    # earlier versions of Mosaic GPU start every kernel by instructions of Hopper.
    least_capability = (8, 0) if is_asked and VERSION >= (0, 11, 2) else (9, 0)
    # We ask the GPUs of this machine, though a program may be compiled for another GPU:
    # JAX tells a lowering rule at most its name, and only for operands on a mesh.
    capability = compute_capability()
    remedy = "; use implementation=None or 'xla'."
    # XLA can't divide a kernel: every device would gather whole arrays.
    if problem := why_divided(context):
        remedy = ""  # `why_divided` has its own
    elif not all(isinstance(size, int) for x in arrays for size in x.shape):
        problem = "the sizes are symbolic; a kernel needs numbers"
    elif platform not in KERNELS:
        # `platform` is empty in the rule that serves all further platforms: JAX does
        # not say which one.
        named = f"the platform {platform!r}" if platform else "this platform"
        problem = f"there is no kernel for {named}"
    elif platform == "cuda" and code_per_thread() is None:
        problem = (
            "it needs jax.experimental.pallas.mosaic_gpu as JAX 0.10.2 has it, "
            f"while this is JAX {jax.__version__}"
        )
    elif (
        platform == "cuda" and capability is not None and capability < least_capability
    ):
        version = ".".join(map(str, least_capability))
        problem = f"it needs a GPU of compute capability {version} or later"
    else:
        kernel = KERNELS[platform](arrays[0], **static)
        if kernel is not None:
            return kernel
        problem = (
            "its kernel can't count the elements or rows of sizes "
            f"{show(arrays[0].shape)}"
        )
    if is_asked:
        raise DescriptorError(
            "NONZERO_COORDINATES: implementation='pallas' was asked for, and "
            f"{problem}{remedy}"
        )
    return None
