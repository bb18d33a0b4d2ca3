"""Faults."""

from tests.mutants.fault import faults

EDGES = "test_operators.py::test_edges"

FAULTS = faults(
    "dmljax._axis",
    ("test_operators.py", "test_properties.py"),
    ("jnp.clip(position - start, 0,", "jnp.clip(position - start, 1,", "EDGE repeats the second element", EDGES + "[padding-edge]"),
    ("(max(2 * size - 2, 1), 2 * size - 2)", "(max(2 * size - 1, 1), 2 * size - 2)", "REFLECTION has a period one too long", EDGES + "[padding-reflection]"),
)
