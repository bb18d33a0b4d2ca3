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
    is_local,
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
    backend = BACKENDS.get(platform)
    return backend is None or module(backend) is not None


def served(platform: str, least: tuple[int, int]) -> bool:
    """Whether the GPUs of this machine, if it has any, are not older than `least`."""
    # A program may be compiled for other GPUs. JAX tells a lowering rule at most the
    # name of its target, and only where the operands are on a mesh.
    found = compute_capability()
    return platform != "cuda" or found is None or found >= least


def has_known_sizes(context: Context) -> bool:
    """Whether all sizes are numbers: the grid and the loops of a kernel need them."""
    sizes = [size for array in types_of(context) for size in array.shape]
    return all(isinstance(size, int) for size in sizes)


def may_be_default(platform: str, context: Context) -> bool:
    """Whether a kernel can run in this program without being asked for."""
    # An exported program may run on a GPU that the kernel does not serve.
    return (
        is_local(context)
        and not is_exported(context)
        and has_known_sizes(context)
        and served(platform, LEAST_BY_DEFAULT)
        and kernels_available(platform)
    )


def require_kernel(
    operator: str, platform: str, exists: bool, context: Context
) -> None:
    """Requires that a kernel that was asked for can run in this program.

    `exists` says whether the operator has a kernel for the platform that the program is
    lowered for.
    """
    asked = f"{operator}: implementation='pallas' was asked for, and"
    # XLA can't divide a kernel. It would gather whole arrays on every device instead.
    divided = why_divided(context)
    if divided is not None:
        raise NoKernelError(f"{asked} {divided}")
    problem = _why_no_kernel(platform, exists, context)
    if problem is not None:
        raise NoKernelError(f"{asked} {problem}; use implementation=None or 'xla'.")


def _why_no_kernel(platform: str, exists: bool, context: Context) -> str | None:
    if not has_known_sizes(context):
        return "the sizes are symbolic; a kernel needs numbers"
    if not exists:
        # JAX does not say the name of a platform that has no lowering rule of its own.
        named = f"the platform {platform!r}" if platform else "this platform"
        return f"there is no kernel for {named}"
    if not kernels_available(platform):
        return (
            f"it needs {BACKENDS.get(platform, 'a backend')} as JAX 0.10.2 has it, "
            f"while this is JAX {jax.__version__}"
        )
    if not served(platform, LEAST_CAPABILITY):
        return f"it needs a GPU of compute capability {LEAST_CAPABILITY} or later"
    return None
