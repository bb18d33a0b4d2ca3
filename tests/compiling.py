"""The flags of XLA for the tests: CPU devices, and programs that are compiled fast.

Compiling takes most of the time of a test, and its arrays are small.
"""

import importlib.metadata

LEVEL = "--xla_backend_optimization_level"
FAST = [f"{LEVEL}=0", "--xla_cpu_parallel_codegen_split_count=1"]
# XLA's older code for fusions compiles in about half of the time of the newer one. Its
# later versions lack it, and a flag that XLA does not know ends the process.
if importlib.metadata.version("jaxlib").startswith("0.10."):
    FAST.append("--xla_cpu_use_fusion_emitters=false")


def flags(given, devices=8):
    """XLA's flags for a test, if these are given in the environment.

    Flags that name the level of optimization ask for programs that are compiled as
    users' programs are.
    """
    asked = f"--xla_force_host_platform_device_count={devices}"
    fast = [] if LEVEL in given else FAST
    return " ".join([*fast, given, asked])
