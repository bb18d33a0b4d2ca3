"""The edges of each adjacency matrix, at most so many; and what they send to nodes.

Each node receives the sum of the features of the nodes from which an edge leads to it.
"""

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import dmljax
from benchmarks.case import Case, Functions
from benchmarks.data import Data
from benchmarks.oracles import Sample, grid
from benchmarks.others import module

# A graph has so many nodes, with so many features each. EDGES is the mean number of
# edges of a node, and MOST_EDGES bounds it.
NODES, FEATURES, MOST_EDGES, EDGES = 1024, 64, 16, 10


def cases(elements: int) -> Iterator[Case]:
    """One."""
    nodes = min(NODES, math.isqrt(elements))
    graphs = max(elements // nodes**2, 1)
    adjacency = Data((graphs, nodes, nodes), "uint8", high=2, density=EDGES / NODES)
    features = Data((graphs, nodes, FEATURES), "float32", seed=1)
    most = MOST_EDGES * nodes

    def ours(adjacency: Any) -> Any:
        found = dmljax.nonzero_coordinates(adjacency, size=most, fill=nodes)
        return found.coordinates.T

    def theirs(adjacency: Any) -> Any:
        return jnp.nonzero(adjacency, size=most, fill_value=nodes)

    functions: Functions = {
        "dmljax": jax.vmap(functools.partial(_sums, ours)),
        "jnp": jax.vmap(functools.partial(_sums, theirs)),
        "torch": _torch_sums,
    }
    yield Case(
        "nonzero_coordinates",
        f"edges of {graphs} graphs of {nodes} nodes",
        (adjacency, features),
        features,
        functions,
        _oracle,
        context="program",
    )


def _sums(edges: Callable[[Any], Any], adjacency: Any, features: Any) -> jax.Array:
    """The edges past the last one name a node that does not exist."""
    source, target = edges(adjacency)
    sent = features.at[source].get(mode="fill", fill_value=0)
    return jnp.zeros_like(features).at[target].add(sent, mode="drop")


def _torch_sums(adjacency: Any, features: Any) -> Any:
    graph, source, target = adjacency.nonzero(as_tuple=True)
    nodes = features.shape[1]
    flat = features.reshape(-1, features.shape[-1])
    sent = flat[graph * nodes + source]
    sums = module("torch").zeros_like(flat).index_add_(0, graph * nodes + target, sent)
    return sums.reshape(features.shape)


def _oracle(adjacency: np.ndarray, features: np.ndarray) -> Any:
    """The product of the adjacency matrix, transposed, with the features."""
    axes = grid(features.shape)
    graph, node, feature = axes
    edges = adjacency[graph][:, :, node].astype(np.float32)
    sums = edges.swapaxes(1, 2) @ features[graph][:, :, feature]
    return [Sample(features.shape, axes, sums)]
