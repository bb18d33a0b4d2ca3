"""Wrong calls, which pyright refuses. It also reports an unneeded "ignore"."""
# pyright: reportUnnecessaryTypeIgnoreComment=true

import jax

import dmljax as dml


def refused(x: jax.Array) -> None:
    """Calls that pyright refuses."""
    dml.padding(x, (1, 0), (0, 1), mode="mirror")  # pyright: ignore[reportArgumentType]
    dml.padding(x, ((1, 0), (0, 1)))  # pyright: ignore
    dml.diagonal_matrix1(x, fill_begin="1", fill_end=2)  # pyright: ignore
