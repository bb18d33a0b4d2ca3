"""Which kernels a platform can run, and for which calls.

`dmljax._primitive` asks here when it lowers a call for which there is a kernel.
"""

import jax

from dmljax._check import NoKernelError
from dmljax._jax import (
    VERSION,
    Context,
    code_per_thread,
    compute_capability,
    is_exported,
    launches_threads,
    module,
    types_of,
    why_divided,
)

# Pallas' backends, by platform: Mosaic GPU for NVIDIA GPUs, and the one for TPUs.
BACKENDS = {
    "cuda": "jax.experimental.pallas.mosaic_gpu",
    "tpu": "jax.experimental.pallas.tpu",
}
# The oldest GPUs that the kernels run on. Mosaic GPU starts every kernel with
# instructions that Hopper brought. JAX 0.11.2 leaves them out for older GPUs: the
# kernels are then compiled for 8.0 and 8.9, as a test does.
LEAST_CAPABILITY = (8, 0) if VERSION >= (0, 11, 2) else (9, 0)
# The oldest GPUs that they run on by default. We have run no kernel on an older one: a
# kernel is no default before it ran on its hardware.
LEAST_BY_DEFAULT = (9, 0)


def kernels_available(platform: str) -> bool:
    """Whether the installed JAX has the backend, and the parts that the kernels use."""
    if platform == "cuda":
        return code_per_thread() is not None and launches_threads()
    return platform not in BACKENDS or module(BACKENDS[platform]) is not None


def may_be_default(platform: str, context: Context) -> bool:
    """Whether a kernel can run in this program without being asked for."""
    # An exported program may run on a GPU that the kernel does not serve.
    exported = is_exported(context)
    return not exported and _why_no_kernel(platform, context, LEAST_BY_DEFAULT) is None


def require_kernel(
    operator: str, platform: str, exists: bool, context: Context
) -> None:
    """Requires that a kernel that was asked for can run in this program.

    `exists` says whether the operator has a kernel for the platform that the program is
    lowered for.
    """
    problem = _why_no_kernel(platform, context, LEAST_CAPABILITY, exists)
    if problem is not None:
        raise NoKernelError(
            f"{operator}: implementation='pallas' was asked for, and {problem}"
        )


def _why_no_kernel(
    platform: str, context: Context, least: tuple[int, int], exists: bool = True
) -> str | None:
    """Gives the reason why no kernel can run, and the remedy; None if one can run.

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
    found = compute_capability()
    if not all(isinstance(size, int) for size in sizes):
        problem = "the sizes are symbolic; a kernel needs numbers"
    elif not exists:
        # JAX does not say the name of a platform that has no lowering rule of its own.
        named = f"the platform {platform!r}" if platform else "this platform"
        problem = f"there is no kernel for {named}"
    elif not kernels_available(platform):
        problem = (
            f"it needs {BACKENDS.get(platform, 'a backend')} as JAX 0.10.2 has it, "
            f"while this is JAX {jax.__version__}"
        )
    elif platform == "cuda" and found is not None and found < least:
        problem = f"it needs a GPU of compute capability {least} or later"
    else:
        return None
    return f"{problem}; use implementation=None or 'xla'."
