"""Parts of programs that users run, each in dmljax, in jax.numpy and in PyTorch.

- Six blocks of a network of convolutions: the images are padded by reflection, and then
  a convolution of 3 x 3 and the positive part follow. The same with zeros says what
  the reflection costs; there the others let the convolution add them.
- A router of a mixture of experts: the place of each token in the queue of its expert.
- Causal attention: the scores of later tokens become -inf, and a softmax follows.
- Graphs: the edges of each adjacency matrix, at most so many. Each node receives the
  sum of the features of the nodes from which an edge leads to it.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import dmljax
from benchmarks import oracles
from benchmarks.case import Case
from benchmarks.data import Data
from benchmarks.oracles import Oracle
from benchmarks.others import Functions, module
from dmljax import PaddingMode

BLOCKS, IMAGES, AROUND = 6, 16, (0, 0, 1, 1)
EXPERTS = 64
# No matrix has a diagonal beyond this one.
LAST = 2**31 - 1
# A graph has so many nodes, with so many features each. EDGES is the mean number of
# edges of a node, and MOST_EDGES bounds it.
NODES, FEATURES, MOST_EDGES, EDGES = 1024, 64, 16, 10


def programs(elements: int) -> Iterator[Case]:
    """All of them, for arrays of about so many elements."""
    for mode in _NUMPY:
        for dtype in ("float32", "bfloat16"):
            yield _convolutions(elements, mode, dtype)
            yield _trained(_convolutions(elements, mode, dtype), mode)
    yield _router(elements)
    for dtype in ("float32", "bfloat16"):
        yield _attention(elements, dtype)
    yield _graphs(elements)


def _program(
    operator: str,
    name: str,
    inputs: Sequence[Data],
    output: Data,
    functions: Functions,
    oracle: Oracle,
    **more: Any,
) -> Case:
    return Case(
        operator,
        name,
        tuple(inputs),
        output,
        functions,
        oracle,
        dtype=output.dtype,
        bytes=sum(data.nbytes for data in (*inputs, output)),
        context="program",
        **more,
    )


# CONVOLUTIONS


# The modes, by the names in NumPy.
_NUMPY = {PaddingMode.REFLECTION: "reflect", PaddingMode.CONSTANT: "constant"}


def _convolutions(elements: int, mode: PaddingMode, dtype: str) -> Case:
    side = 2 ** max(round(math.log2(elements) * 4 / 13), 3)
    channels = max(elements // side**2 // (2 * IMAGES), 2)
    images = Data((IMAGES, channels, side, side), dtype)
    weights = Data((BLOCKS, channels, channels, 3, 3), dtype, seed=1)
    functions: Functions = {
        "dmljax": functools.partial(_blocks, functools.partial(_padded, mode)),
        "jnp": functools.partial(_blocks, _CONVOLUTIONS[mode]),
        "torch": functools.partial(_torch_blocks, mode),
    }
    return _program(
        "padding",
        f"{BLOCKS} convolutions, {mode.name} by 1, {dtype} {images.shape}",
        [images, weights],
        images,
        functions,
        functools.partial(oracles.convolutions, mode=_NUMPY[mode], back=False),
        ceiling=None,
    )


def _trained(case: Case, mode: PaddingMode) -> Case:
    """The sum of the outputs, and its gradient in the weights and in the images."""
    gradients = {"dmljax": _gradient, "jnp": _gradient, "torch": _torch_gradient}
    return dataclasses.replace(
        case,
        functions={
            name: functools.partial(gradients[name], function)
            for name, function in case.functions.items()
        },
        oracle=functools.partial(oracles.convolutions, mode=_NUMPY[mode], back=True),
        direction="gradient",
    )


def _convolve(x: Any, weight: Any, around: int = 0) -> Any:
    pads = ((around, around),) * 2
    return lax.conv_general_dilated(x, weight, (1, 1), pads)


def _padded(mode: PaddingMode, x: Any, weight: Any) -> Any:
    return _convolve(dmljax.padding(x, AROUND, AROUND, mode=mode), weight)


def _reflected(x: Any, weight: Any) -> Any:
    return _convolve(jnp.pad(x, [(p, p) for p in AROUND], "reflect"), weight)


# How it is written with JAX alone. A convolution adds the zeros itself.
_CONVOLUTIONS: dict[PaddingMode, Callable[[Any, Any], Any]] = {
    PaddingMode.REFLECTION: _reflected,
    PaddingMode.CONSTANT: functools.partial(_convolve, around=1),
}


def _blocks(convolve: Callable[[Any, Any], Any], x: Any, weights: Any) -> Any:
    for weight in oracles.scaled(weights):
        x = jax.nn.relu(convolve(x, weight))
    return x


def _gradient(function: Callable[..., Any], x: Any, weights: Any) -> Any:
    def total(weights: Any, x: Any) -> Any:
        return function(x, weights).astype(np.float32).sum()

    return jax.value_and_grad(total, (0, 1))(weights, x)


def _torch_blocks(mode: PaddingMode, x: Any, weights: Any) -> Any:
    torch = module("torch")
    torch.backends.cudnn.benchmark = True  # XLA also looks for the fastest algorithm
    functional = torch.nn.functional
    reflect = mode == PaddingMode.REFLECTION
    for weight in oracles.scaled(weights):
        if reflect:
            x = functional.pad(x, (1, 1, 1, 1), mode="reflect")
        x = functional.conv2d(x, weight, padding=int(not reflect)).relu()
    return x


def _torch_gradient(function: Callable[..., Any], x: Any, weights: Any) -> Any:
    torch = module("torch")
    leaves = [tensor.detach().requires_grad_() for tensor in (weights, x)]
    total = function(leaves[1], leaves[0]).float().sum()
    return total, *torch.autograd.grad(total, leaves)


# A ROUTER


def _router(elements: int) -> Case:
    tokens = max(elements // EXPERTS, 1)
    experts = Data((tokens, 1), "int32", low=0, high=EXPERTS)
    functions: Functions = {
        "dmljax": lambda expert: _places(
            dmljax.one_hot(expert, np.array([0, 1], np.int32), size=EXPERTS)
        ),
        "jnp": lambda expert: _places(
            jax.nn.one_hot(expert[:, 0], EXPERTS, dtype=np.int32)
        ),
        "torch": _torch_places,
    }
    name = f"router of {tokens} tokens to {EXPERTS} experts"
    places = Data((tokens,), "int32")
    return _program("one_hot", name, [experts], places, functions, oracles.router)


def _places(hot: jax.Array) -> jax.Array:
    return (jnp.cumsum(hot, 0) * hot).sum(1) - 1


def _torch_places(expert: Any) -> Any:
    torch = module("torch")
    hot = torch.nn.functional.one_hot(expert[:, 0].long(), EXPERTS)
    return (hot.cumsum(0) * hot).sum(1) - 1


# ATTENTION


def _attention(elements: int, dtype: str) -> Case:
    length = min(1024, math.isqrt(elements))
    scores = Data((max(elements // length**2, 1), length, length), dtype, high=10)
    functions: Functions = {
        "dmljax": lambda x: jax.nn.softmax(
            dmljax.diagonal_matrix1(x, value=-jnp.inf, fill_begin=1, fill_end=LAST)
        ),
        "jnp": lambda x: jax.nn.softmax(
            jnp.where(jnp.tri(length, dtype=bool), x, jnp.array(-jnp.inf, x.dtype))
        ),
        "torch": _torch_attention,
    }
    name, oracle = f"causal softmax, {dtype} {scores.shape}", oracles.causal_softmax
    return _program("diagonal_matrix1", name, [scores], scores, functions, oracle)


def _torch_attention(x: Any) -> Any:
    torch = module("torch")
    later = torch.ones(x.shape[-2:], dtype=torch.bool, device=x.device).triu(1)
    return x.masked_fill(later, -math.inf).softmax(-1)


# GRAPHS


def _graphs(elements: int) -> Case:
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
    return _program(
        "nonzero_coordinates",
        f"edges of {graphs} graphs of {nodes} nodes",
        [adjacency, features],
        features,
        functions,
        oracles.graphs,
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
