"""A plugin of pytest: a JAX that comes without Pallas' Triton backend.

`python -m pytest -p tests.without_triton` runs the suite as on such a JAX. Tests of the
kernels that need the backend are skipped there (`tests.conftest`).
"""

import importlib.util

find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: (
    None if name == "jax.experimental.pallas.triton" else find_spec(name, package)
)
