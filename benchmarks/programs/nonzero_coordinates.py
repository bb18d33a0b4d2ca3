"""Elements, rows, tokens and edges that a condition chooses: NONZERO_COORDINATES."""

import ctypes
import dataclasses
import functools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import dmljax
from benchmarks.case import Functions
from benchmarks.programs.program import (
    BOTH,
    CPU,
    FORWARD,
    GPU,
    SIZES,
    Numbers,
    Program,
    Shape,
    spellings,
)
from dmljax import numpy as dnp

NAME = "nonzero_coordinates"
LINE = {GPU: [(67108864,)], CPU: [(4194304,)]}
FEW_CHOSEN = "2 % chosen, room for 3.1 %"


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


# ELEMENTS ABOVE A LIMIT: inputs are whole numbers from 0 to 99.


def elements_above(x: jax.Array, limit: int, room: float, extract: Any) -> jax.Array:
    kept: jax.Array = extract(x > limit, x, size=int(len(x) * room))
    return kept


def by_coordinates(
    mask: jax.Array, x: jax.Array, *, size: int, implementation: Any = None
) -> jax.Array:
    """Coordinates, and a plain gather whose gradient is a scatter."""
    rows = None if size == len(x) else size
    found = dmljax.nonzero_coordinates(
        mask, size=rows, fill=len(x), implementation=implementation
    )
    return x.at[found.coordinates[:, 0]].get(
        mode="fill", fill_value=0, unique_indices=True, indices_are_sorted=True
    )


def indexed_elements(x: Any, limit: int) -> Any:
    """In NumPy and PyTorch the result has as many elements as there are."""
    return x[x > limit]


def cub_above(x: jax.Array, limit: int, room: float) -> Any:
    """A function of cub.cu, with the rows of the result and their type."""
    rows = int(len(x) * room)
    return f"above_{x.dtype}", rows, x.dtype, ctypes.c_float(limit)


ABOVE: Functions = {
    "jnp": jnp.extract,
    "jnp scatter": scatter,
    "jnp scatter in blocks": scatter_by_blocks,
    "dmljax xla": functools.partial(by_coordinates, implementation="xla"),
}


def above(
    limit: int, room: float, chosen: str, ours: Any = dnp.extract, **options: Any
) -> Program:
    """The elements above a limit, by `ours` in place of jnp.extract."""
    run = functools.partial(elements_above, limit=limit, room=room)
    indexed = functools.partial(indexed_elements, limit=limit)
    functions = {
        **spellings(run, extract={"dmljax": ours, **ABOVE}),
        "numpy": indexed,
        "torch": indexed,
        "cub": functools.partial(cub_above, limit=limit, room=room),
    }
    options = {"dtypes": ("float32", "bfloat16"), **options}
    inputs = [Numbers(100)]
    return Program(NAME, functions, inputs, LINE, chosen, rtol=0, **options)


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


ROWS = {
    GPU: [(1048576, 64), (1048576,)],
    CPU: [(65536, 64), (65536,)],
}
HALF = "50 % chosen, room for 62.5 %"

# TOKENS KEPT IN EACH SEQUENCE: the mean of the features of tokens with a high score.


def kept_tokens(scores: jax.Array, x: jax.Array, take: Any) -> jax.Array:
    """`take` returns the rows that are kept, and zeros."""

    def of_sequence(scores: jax.Array, x: jax.Array) -> jax.Array:
        keep = scores > 89
        rows = take(keep, x, size=len(x) // 8).astype(jnp.float32)
        means: jax.Array = rows.sum(0) / keep.sum()
        return means

    means: jax.Array = jax.vmap(of_sequence)(scores, x)
    return means


def taken(keep: jax.Array, x: jax.Array, *, size: int) -> Any:
    return dmljax.nonzero_coordinates(keep, size=size).take(x)


def masked(keep: jax.Array, x: jax.Array, *, size: int) -> jax.Array:
    """Without a selection: all tokens are added, and most are 0."""
    return jnp.where(keep[:, None], x, 0)


def torch_kept_tokens(scores: Any, x: Any) -> Any:
    keep = (scores > 89)[..., None]
    return (x.float() * keep).sum(1) / keep.sum(1)


# TOKENS BY EXPERT: tokens in the order of their experts, and the tokens of each.


def by_expert(chosen: jax.Array, experts: int) -> Any:
    mask = jnp.arange(experts)[:, None] == chosen
    order = dmljax.nonzero_coordinates(mask, size=len(chosen)).coordinates[:, 1]
    return order.astype(jnp.int32), mask.sum(1, dtype=jnp.int32)


def by_argsort(chosen: jax.Array, experts: int) -> Any:
    order = jnp.argsort(chosen, stable=True).astype(jnp.int32)
    return order, jnp.bincount(chosen, length=experts)


def by_running_sum(chosen: jax.Array, experts: int) -> Any:
    counts = jnp.cumsum(jax.nn.one_hot(chosen, experts, dtype=jnp.int32), 0)
    sizes = counts[-1]
    inside = jnp.take_along_axis(counts, chosen[:, None], 1)[:, 0] - 1
    places = inside + (jnp.cumsum(sizes) - sizes)[chosen]
    tokens = jnp.arange(len(chosen), dtype=jnp.int32)
    order = jnp.zeros_like(chosen).at[places].set(tokens, unique_indices=True)
    return order, sizes


def torch_by_expert(chosen: Any, experts: int) -> Any:
    return chosen.argsort(stable=True), chosen.bincount(minlength=experts)


def tokens_by_expert(experts: int) -> Program:
    ways = {
        "dmljax": by_expert,
        "jnp argsort": by_argsort,
        "jnp running sum": by_running_sum,
        "torch": torch_by_expert,
    }
    return Program(
        NAME,
        {n: functools.partial(way, experts=experts) for n, way in ways.items()},
        [Numbers(experts, "int32")],
        {GPU: [(131072,)], CPU: [(16384,)]},
        f"1 of {experts} chosen, room for all",
        dtypes=("int32",),
    )


# COORDINATES OF A STORED MASK: the kernel alone, and XLA's packing of bits.


def stored_mask(percent: int, room: float, chosen: str) -> Program:
    """The coordinates of stored elements that are not zero."""

    def rows(x: Any) -> int:
        return int(x.size * room)

    functions = {
        "dmljax": lambda x: dmljax.nonzero_coordinates(x, size=rows(x)).coordinates,
        "jnp": lambda x: jnp.argwhere(x, size=rows(x), fill_value=0),
        "numpy": np.argwhere,
        "torch": lambda x: x.argwhere(),
        "cub flagged": lambda x: ("indices", rows(x), np.uint32),
    }
    inputs = [Numbers(2, density=percent / 100)]
    types = ("bool", "uint8", "bfloat16", "float32")
    return Program(NAME, functions, inputs, LINE, chosen, dtypes=types, rtol=0)


# EDGES OF GRAPHS: each node sums the features of its neighbours.


def edge_sums(
    distances: jax.Array,
    features: jax.Array,
    nonzero: Any = dnp.nonzero,
    limit: int = 1,
    degree: int = 16,
) -> jax.Array:
    def of_graph(distances: jax.Array, features: jax.Array) -> jax.Array:
        nodes = len(distances)
        size = degree * nodes
        source, target = nonzero(distances < limit, size=size, fill_value=nodes)
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


def torch_edge_sums(distances: Any, features: Any, limit: int = 1) -> Any:
    import torch

    graph, source, target = (distances < limit).nonzero(as_tuple=True)
    nodes = features.shape[1]
    flat = features.reshape(-1, features.shape[-1])
    sent = flat[graph * nodes + source]
    sums = torch.zeros_like(flat).index_add_(0, graph * nodes + target, sent)
    return sums.reshape(features.shape)


EDGES: Functions = {
    "dmljax": dnp.nonzero,
    "jnp": jnp.nonzero,
    "jnp scatter": scatter_coordinates,
}
GRAPHS = {
    GPU: [(64, 1024, 1024), (64, 1024, 64)],
    CPU: [(4, 1024, 1024), (4, 1024, 64)],
}
FEW_EDGES = "1 % chosen, room for 1.6 %"
SMALL_GRAPHS = functools.partial(edge_sums, limit=10, degree=8)

PROGRAMS = {
    "elements above a limit": above(97, 1 / 32, FEW_CHOSEN, directions=BOTH),
    "half of the elements above a limit": above(49, 5 / 8, HALF),
    "all elements above a limit": above(
        97, 1, "2 % chosen, room for all", by_coordinates, dtypes=("float32",)
    ),
    "coordinates of a stored mask": stored_mask(2, 1 / 32, FEW_CHOSEN),
    "all coordinates of a stored mask": stored_mask(10, 1, "10 % chosen, room for all"),
    "rows of a mask": Program(
        NAME,
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
        HALF,
        directions=BOTH,
        rtol=0,
    ),
    "rows of a mask and back": Program(
        NAME,
        {
            "dmljax": rows_and_back,
            "jnp": jnp_rows_and_back,
            "jnp scatter": scattered_and_back,
            "torch": torch_rows_and_back,
        },
        [Numbers(10), Numbers(2, "uint8")],
        ROWS,
        HALF,
        directions=BOTH,
        rtol=0,
    ),
    "tokens kept in each sequence": Program(
        NAME,
        {
            **spellings(
                kept_tokens,
                take={"dmljax": taken, "jnp scatter": scatter, "jnp where": masked},
            ),
            "torch": torch_kept_tokens,
        },
        [Numbers(100), Numbers(10)],
        {
            GPU: [(4096, 4096), (4096, 4096, 16)],
            CPU: [(64, 4096), (64, 4096, 16)],
        },
        "10 % chosen, room for 12.5 %",
    ),
    **{f"tokens by {n} experts": tokens_by_expert(n) for n in (8, 64, 256)},
    "edges of graphs": Program(
        NAME,
        {**spellings(edge_sums, nonzero=EDGES), "torch": torch_edge_sums},
        [Numbers(100, "uint8"), Numbers(10)],
        GRAPHS,
        FEW_EDGES,
        dtypes=("float32", "bfloat16"),
    ),
    "edges of small graphs": Program(
        NAME,
        {
            **spellings(SMALL_GRAPHS, nonzero=EDGES),
            "torch": functools.partial(torch_edge_sums, limit=10),
        },
        [Numbers(100, "uint8"), Numbers(10)],
        {
            GPU: [(1024, 64, 64), (1024, 64, 64)],
            CPU: [(1024, 64, 64), (1024, 64, 64)],
        },
        "10 % chosen, room for 12.5 %",
        dtypes=("float32",),
    ),
}

# LINES: the coordinates in each line of a stored array, by vmap.


def found_in_lines(x: jax.Array, find: Any) -> Any:
    """An eighth of a line has room."""
    return jax.vmap(functools.partial(find, size=max(x.shape[1] // 8, 1)))(x)


def find_coordinates(line: jax.Array, size: int) -> jax.Array:
    return dmljax.nonzero_coordinates(line, size=size).coordinates[:, 0]


def find_by_scatter(line: jax.Array, size: int) -> jax.Array:
    return scatter(line, jnp.arange(len(line), dtype=jnp.uint32), size=size)


def lines(shape: Shape) -> Program:
    ways = {"dmljax": find_coordinates, "jnp scatter": find_by_scatter}
    return Program(
        NAME,
        spellings(found_in_lines, find=ways),
        [Numbers(2, density=0.1)],
        {elements: [shape] for elements in SIZES},
        "10 % chosen, room for 1 of 8",
        dtypes=("bool",),
    )


# The elements of a line, and all but the largest are numbers of lines, too.
POWERS = [16**n for n in range(1, 7)]


def many_lines(elements: int) -> Iterator[tuple[str, Program]]:
    """Lines of stored bools, for arrays of so many elements at most."""
    for length in POWERS:
        for count in (2, *POWERS[:-1]):
            if count * length <= elements:
                yield "coordinates in each line", lines((count, length))


# Where a GPU has no kernel, the form depends on the number of elements. On both sides
# of the change, a program runs in few spellings.
FEW = ("dmljax", "dmljax xla", "jnp scatter")
OTHER_SIZES = (2**14, 2**18, 2**20, 2**22, 2**23, 2**24)


def by_size() -> Iterator[tuple[str, Program]]:
    """Elements above a limit, in arrays of other sizes."""
    name = "elements above a limit"
    program = dataclasses.replace(
        PROGRAMS[name],
        functions={way: PROGRAMS[name].functions[way] for way in FEW},
        dtypes=("float32",),
        directions=FORWARD,
    )
    for size in OTHER_SIZES:
        shapes = {elements: [(size,)] for elements in SIZES}
        yield name, dataclasses.replace(program, shapes=shapes)
