"""Programs of users: a file for each operator, with every good spelling.

A program is a plain function. Its last argument is dmljax's function, and jax.numpy's
function takes its place in another spelling. All cases have the context "program".
"""

from benchmarks.programs import (
    diagonal_matrix1,
    element_wise_if,
    nonzero_coordinates,
    one_hot,
    padding,
)
from benchmarks.programs.program import Program

PROGRAMS: dict[str, Program] = {
    **diagonal_matrix1.PROGRAMS,
    **element_wise_if.PROGRAMS,
    **one_hot.PROGRAMS,
    **padding.PROGRAMS,
    **nonzero_coordinates.PROGRAMS,
}

# The programs of the table of docs/benchmarks.md, and how most users write them.
FRONT = {
    "causal softmax": "jnp tril",
    "causal attention": "jnp tril",
    "label smoothing": "jnp one_hot",
    "masked mean": "jnp where",
    "reflect padding between two operations": "jnp",
    "frames of a signal": "jnp",
    "6 reflect-padded convolutions": "jnp",
    "elements above a limit": "jnp",
    "half of the elements above a limit": "jnp",
    "rows of a mask": "jnp",
    "rows of a mask and back": "jnp",
    "tokens kept in each sequence": "jnp where",
    "edges of graphs": "jnp",
}
