"""XLA's flags for the tests: eight CPU devices, and fast compilation.

Compiling takes most of the time of a test, and the arrays are small.
"""

import importlib.metadata

LEVEL = "--xla_backend_optimization_level"
FAST = [f"{LEVEL}=0", "--xla_cpu_parallel_codegen_split_count=1"]
# XLA's older code for fusions compiles in about half of the time of the newer code.
# Later versions of XLA lack the older code, and an unknown flag ends the process.
if importlib.metadata.version("jaxlib").startswith(("0.9.", "0.10.")):
    FAST.append("--xla_cpu_use_fusion_emitters=false")


def flags(given):
    """The flags of a test, added to the flags `given` in the environment.

    If `given` names a level of optimization, we compile as users do.
    """
    asked = "--xla_force_host_platform_device_count=8"
    fast = [] if LEVEL in given else FAST
    return " ".join([*fast, given, asked])
