"""Elements, rows and edges that a condition chooses: NONZERO_COORDINATES."""

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import dmljax
from benchmarks.programs.program import (
    BOTH,
    CPU,
    GPU,
    SIZES,
    SMALL,
    TINY,
    Numbers,
    Program,
    spellings,
)
from dmljax import numpy as dnp


def scatter(mask: jax.Array, x: jax.Array, axis: Any = 0, *, size: int) -> jax.Array:
    """jnp.compress along axis 0, by a running count of the mask."""
    del axis
    mask = mask != 0
    places = jnp.where(mask, jnp.cumsum(mask.astype(jnp.int32)) - 1, size)
    return jnp.zeros((size, *x.shape[1:]), x.dtype).at[places].set(x, mode="drop")


def scatter_by_blocks(mask: jax.Array, x: jax.Array, *, size: int) -> jax.Array:
    """The same, with counts in blocks of 1024: XLA sums a long line slowly on a CPU."""
    inside = jnp.cumsum(mask.reshape(-1, 1024), 1)
    totals = inside[:, -1]
    before = jnp.cumsum(totals) - totals
    places = jnp.where(mask, (inside + before[:, None]).ravel() - 1, size)
    return jnp.zeros(size, x.dtype).at[places].set(x, mode="drop")


def np_first(x: np.ndarray, rows: int) -> np.ndarray:
    """The first rows, then zeros."""
    kept = np.zeros((rows, *x.shape[1:]), x.dtype)
    kept[: len(x)] = x[:rows]
    return kept


# ELEMENTS ABOVE A LIMIT: 2 % of the elements are above, and 3 % have room.


def elements_above(x: jax.Array, extract: Any = dnp.extract) -> jax.Array:
    kept: jax.Array = extract(x > 97, x, size=len(x) // 32)
    return kept


def by_coordinates(
    mask: jax.Array, x: jax.Array, size: int | None, implementation: Any = None
) -> jax.Array:
    found = dmljax.nonzero_coordinates(
        mask, size=size, fill=len(x), implementation=implementation
    )
    return x.at[found.coordinates[:, 0]].get(mode="fill", fill_value=0)


def by_argwhere(mask: jax.Array, x: jax.Array, size: int) -> jax.Array:
    found = jnp.argwhere(mask, size=size, fill_value=len(x))
    return x.at[found[:, 0]].get(mode="fill", fill_value=0)


def indexed_elements(x: Any) -> Any:
    """In NumPy and PyTorch the result has as many elements as there are."""
    return x[x > 97]


def torch_nonzero_static(x: Any) -> Any:
    import torch

    # Rows past the count have the index behind the last element.
    longer = torch.nn.functional.pad(x, (0, 1))
    found = torch.nonzero_static(x > 97, size=len(x) // 32, fill_value=len(x))
    return longer[found[:, 0]]


# ALL ELEMENTS ABOVE A LIMIT: there is room for every element.


def by_all_coordinates(
    mask: jax.Array, x: jax.Array, size: int, implementation: Any = None
) -> jax.Array:
    del size  # without `size`, there is a row for each element
    return by_coordinates(mask, x, None, implementation)


def all_elements_above(x: jax.Array, extract: Any = by_all_coordinates) -> jax.Array:
    kept: jax.Array = extract(x > 97, x, size=len(x))
    return kept


# ROWS OF A MASK: half of the rows, with room for 5/8.


def rows_of_mask(x: jax.Array, keep: jax.Array, compress: Any = dnp.compress) -> Any:
    return compress(keep, x, 0, size=len(x) * 5 // 8)


def indexed_rows(x: Any, keep: Any) -> Any:
    return x[keep != 0]


# ROWS OF A MASK AND BACK: the rows are taken, doubled, and written back.


def rows_and_back(x: jax.Array, keep: jax.Array) -> jax.Array:
    kept = dmljax.nonzero_coordinates(keep, size=len(x) * 5 // 8)
    return kept.put(x, 2 * kept.take(x))


def scattered_and_back(x: jax.Array, keep: jax.Array) -> jax.Array:
    size = len(x) * 5 // 8
    places = jnp.where(keep != 0, jnp.cumsum((keep != 0).astype(jnp.int32)) - 1, size)
    rows = 2 * jnp.zeros((size, *x.shape[1:]), x.dtype).at[places].set(x, mode="drop")
    back = rows.at[places].get(mode="fill", fill_value=0)
    return jnp.where((places < size)[:, None], back, x)


def jnp_rows_and_back(x: jax.Array, keep: jax.Array) -> jax.Array:
    (places,) = jnp.nonzero(keep, size=len(x) * 5 // 8, fill_value=len(x))
    rows = x.at[places].get(mode="fill", fill_value=0)
    return x.at[places].set(2 * rows, mode="drop")


def torch_rows_and_back(x: Any, keep: Any) -> Any:
    result = x.clone()
    result[keep != 0] = 2 * x[keep != 0]
    return result


def np_rows_and_back(x: np.ndarray, keep: np.ndarray) -> np.ndarray:
    result = x.copy()
    result[np.flatnonzero(keep)[: len(x) * 5 // 8]] *= 2
    return result


# EDGES OF GRAPHS: each node sums the features of its neighbours.


def edge_sums(
    distances: jax.Array, features: jax.Array, nonzero: Any = dnp.nonzero
) -> jax.Array:
    def of_graph(distances: jax.Array, features: jax.Array) -> jax.Array:
        nodes = len(distances)
        source, target = nonzero(distances < 1, size=16 * nodes, fill_value=nodes)
        sent = features.at[source].get(mode="fill", fill_value=0)
        return jnp.zeros_like(features).at[target].add(sent, mode="drop")

    sums: jax.Array = jax.vmap(of_graph)(distances, features)
    return sums


def scatter_coordinates(
    mask: jax.Array, *, size: int, fill_value: int
) -> tuple[jax.Array, jax.Array]:
    """jnp.nonzero of a matrix, by a scatter."""
    columns = mask.shape[1]
    flat = mask.ravel()
    places = jnp.where(flat, jnp.cumsum(flat.astype(jnp.int32)) - 1, size)
    none = jnp.full(size, fill_value * columns, jnp.int32)
    found = none.at[places].set(jnp.arange(flat.size, dtype=jnp.int32), mode="drop")
    return found // columns, found % columns


def np_edge_sums(distances: np.ndarray, features: np.ndarray) -> np.ndarray:
    """The product of the adjacency matrix, transposed, with the features."""
    near = (distances < 1).swapaxes(1, 2).astype(np.float64)
    return np.asarray(near @ features)


def torch_edge_sums(distances: Any, features: Any) -> Any:
    import torch

    graph, source, target = (distances < 1).nonzero(as_tuple=True)
    nodes = features.shape[1]
    flat = features.reshape(-1, features.shape[-1])
    sent = flat[graph * nodes + source]
    sums = torch.zeros_like(flat).index_add_(0, graph * nodes + target, sent)
    return sums.reshape(features.shape)


LINES = {GPU: [(67108864,)], CPU: [(4194304,)], SMALL: [(262144,)], TINY: [(1024,)]}
ROWS = {
    GPU: [(1048576, 64), (1048576,)],
    CPU: [(65536, 64), (65536,)],
    SMALL: [(4096, 64), (4096,)],
    TINY: [(16, 64), (16,)],
}
WITHOUT_KERNEL = functools.partial(by_coordinates, implementation="xla")
ALL_WITHOUT_KERNEL = functools.partial(by_all_coordinates, implementation="xla")
PROGRAMS = {
    "elements above a limit": Program(
        "nonzero_coordinates",
        {
            **spellings(
                elements_above,
                extract={
                    "dmljax": dnp.extract,
                    "jnp": jnp.extract,
                    "jnp scatter": scatter,
                    "jnp scatter in blocks": scatter_by_blocks,
                    "jnp argwhere": by_argwhere,
                    "dmljax coordinates": by_coordinates,
                    "dmljax xla": WITHOUT_KERNEL,
                },
            ),
            "numpy": indexed_elements,
            "torch": indexed_elements,
            "torch nonzero_static": torch_nonzero_static,
        },
        [Numbers(100)],
        LINES,
        lambda x: np_first(x[x > 97], len(x) // 32),
        dtypes=("float32", "bfloat16"),
        whole=True,
        count=lambda x: int((x > 97).sum()),
        rtol=0,
    ),
    "all elements above a limit": Program(
        "nonzero_coordinates",
        {
            **spellings(
                all_elements_above,
                extract={
                    "dmljax": by_all_coordinates,
                    "jnp argwhere": by_argwhere,
                    "jnp scatter": scatter,
                    "dmljax xla": ALL_WITHOUT_KERNEL,
                },
            ),
            "numpy": indexed_elements,
            "torch": indexed_elements,
        },
        [Numbers(100)],
        LINES,
        lambda x: np_first(x[x > 97], len(x)),
        dtypes=("float32",),
        whole=True,
        count=lambda x: int((x > 97).sum()),
        rtol=0,
    ),
    "rows of a mask": Program(
        "nonzero_coordinates",
        {
            **spellings(
                rows_of_mask,
                compress={
                    "dmljax": dnp.compress,
                    "jnp": jnp.compress,
                    "jnp scatter": scatter,
                },
            ),
            "numpy": indexed_rows,
            "torch": indexed_rows,
        },
        [Numbers(10), Numbers(2, "uint8")],
        ROWS,
        lambda x, keep: np_first(x[keep != 0], len(x) * 5 // 8),
        directions=BOTH,
        whole=True,
        count=lambda x, keep: int((keep != 0).sum()),
        rtol=0,
    ),
    "rows of a mask and back": Program(
        "nonzero_coordinates",
        {
            "dmljax": rows_and_back,
            "jnp": jnp_rows_and_back,
            "jnp scatter": scattered_and_back,
            "torch": torch_rows_and_back,
        },
        [Numbers(10), Numbers(2, "uint8")],
        ROWS,
        np_rows_and_back,
        directions=BOTH,
        whole=True,
        rtol=0,
    ),
    "edges of graphs": Program(
        "nonzero_coordinates",
        {
            **spellings(
                edge_sums,
                nonzero={
                    "dmljax": dnp.nonzero,
                    "jnp": jnp.nonzero,
                    "jnp scatter": scatter_coordinates,
                },
            ),
            "torch": torch_edge_sums,
        },
        [Numbers(100, "uint8"), Numbers(10)],
        {
            GPU: [(64, 1024, 1024), (64, 1024, 64)],
            CPU: [(4, 1024, 1024), (4, 1024, 64)],
            SMALL: [(1, 512, 512), (1, 512, 64)],
            TINY: [(1, 32, 32), (1, 32, 64)],
        },
        np_edge_sums,
        dtypes=("float32", "bfloat16"),
    ),
}

# Where a GPU has no kernel, the form depends on the number of elements. On both sides
# of the change, these programs run in few spellings.
FEW = ("dmljax", "dmljax xla", "jnp scatter", "jnp argwhere")
BY_SIZE = {
    "elements above a limit": (2**14, 2**20, 2**22, 2**23, 2**24),
    "all elements above a limit": (2**22,),
}


def by_size() -> Iterator[tuple[str, Program]]:
    """Programs with other numbers of elements, by name."""
    for name, sizes in BY_SIZE.items():
        functions = {word: PROGRAMS[name].functions[word] for word in FEW}
        program = dataclasses.replace(
            PROGRAMS[name], functions=functions, dtypes=("float32",)
        )
        for size in sizes:
            shapes = {elements: [(size,)] for elements in SIZES}
            yield name, dataclasses.replace(program, shapes=shapes)
