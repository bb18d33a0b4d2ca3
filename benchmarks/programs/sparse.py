"""Elements, rows and edges that a condition chooses: NONZERO_COORDINATES."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import dmljax
from benchmarks.others import module
from benchmarks.programs.timed import BOTH, Timed, with_ways
from dmljax._programs import PROGRAMS as SHARED
from dmljax._programs import Program

LIMIT = 97


def _kept(x: np.ndarray, rows: int) -> np.ndarray:
    """The first rows, and zeros past the last one."""
    kept = np.zeros((rows, *x.shape[1:]), x.dtype)
    kept[: len(x)] = x[:rows]
    return kept


def _torch_nonzero_static(x: Any) -> Any:
    # The rows past the count name an element that is not one of x.
    torch = module("torch")
    size = len(x) // 32
    longer = torch.nn.functional.pad(x, (0, 1))
    static = {"size": size, "fill_value": len(x)}
    return longer[torch.nonzero_static(x > LIMIT, **static)[:, 0]]


def _np_sums(distances: np.ndarray, features: np.ndarray) -> np.ndarray:
    """The product of the adjacency matrix, transposed, with the features."""
    sums: np.ndarray = (distances < 1).swapaxes(1, 2).astype(np.float64) @ features
    return sums


def _torch_sums(distances: Any, features: Any) -> Any:
    graph, source, target = (distances < 1).nonzero(as_tuple=True)
    nodes = features.shape[1]
    flat = features.reshape(-1, features.shape[-1])
    sent = flat[graph * nodes + source]
    sums = module("torch").zeros_like(flat).index_add_(0, graph * nodes + target, sent)
    return sums.reshape(features.shape)


def _places(condition: jax.Array, size: int) -> jax.Array:
    """Returns where a scatter puts each element. It drops what goes to `size`."""
    return jnp.where(condition, jnp.cumsum(condition.astype(np.int32)) - 1, size)


def _scattered(
    condition: jax.Array, x: jax.Array, axis: int = 0, *, size: int
) -> jax.Array:
    """The chosen parts of x along axis 0, without a list of their numbers."""
    del axis
    kept = jnp.zeros((size, *x.shape[1:]), x.dtype)
    return kept.at[_places(condition != 0, size)].set(x, mode="drop")


def _jnp_coordinates(
    condition: jax.Array, *, size: int, fill_value: int
) -> tuple[jax.Array, ...]:
    places = _places(condition.ravel(), size)
    numbers = jnp.arange(condition.size, dtype=np.int32)
    none = jnp.full(size, fill_value * condition.shape[1], np.int32)
    found = none.at[places].set(numbers, mode="drop")
    return found // condition.shape[1], found % condition.shape[1]


def _room(x: Any) -> int:
    """Returns how many rows of x are taken. A mask selects about half of them."""
    return len(x) * 5 // 8


def _doubled(x: np.ndarray, keep: np.ndarray) -> np.ndarray:
    result = x.copy()
    result[np.flatnonzero(keep)[: _room(x)]] *= 2
    return result


def _taken_and_put(x: jax.Array, keep: jax.Array) -> jax.Array:
    kept = dmljax.nonzero_coordinates(keep, size=_room(x))
    return kept.put(x, 2 * kept.take(x))


def _scattered_and_gathered(x: jax.Array, keep: jax.Array) -> jax.Array:
    rows = 2 * _scattered(keep, x, size=_room(x))
    places = _places(keep != 0, _room(x))
    back = rows.at[places].get(mode="fill", fill_value=0)
    return jnp.where((places < _room(x))[:, None], back, x)


def _jnp_taken_and_put(x: jax.Array, keep: jax.Array) -> jax.Array:
    (places,) = jnp.nonzero(keep, size=_room(x), fill_value=len(x))
    rows = x.at[places].get(mode="fill", fill_value=0)
    return x.at[places].set(2 * rows, mode="drop")


def _torch_taken_and_put(x: Any, keep: Any) -> Any:
    result = x.clone()
    result[keep != 0] = 2 * x[keep != 0]
    return result


def _by_coordinates(condition: jax.Array, x: jax.Array, size: int) -> jax.Array:
    found = dmljax.nonzero_coordinates(condition, size=size, fill=len(x))
    return x.at[found.coordinates[:, 0]].get(mode="fill", fill_value=0)


PROGRAMS = {
    "elements above a limit": Timed(
        with_ways(
            SHARED["elements above a limit"],
            {"dmljax coordinates": _by_coordinates, "jnp scatter": _scattered},
        ),
        lambda x: _kept(x[x > LIMIT], len(x) // 32),
        {
            "torch": lambda x: x[x > LIMIT],
            "torch nonzero_static": _torch_nonzero_static,
        },
        dtypes=("float32", "bfloat16"),
        whole=True,
        count=lambda x: int((x > LIMIT).sum()),
        rtol=0,
    ),
    "rows of a mask": Timed(
        with_ways(SHARED["rows of a mask"], {"jnp scatter": _scattered}),
        lambda x, keep: _kept(x[keep != 0], len(x) * 5 // 8),
        {"torch": lambda x, keep: x[keep != 0]},
        directions=BOTH,
        whole=True,
        count=lambda x, keep: int((keep != 0).sum()),
        rtol=0,
    ),
    "rows of a mask and back": Timed(
        Program(
            "nonzero_coordinates",
            SHARED["rows of a mask"].inputs,
            lambda way, x, keep: way(x, keep),
            {
                "dmljax": _taken_and_put,
                "jnp scatter": _scattered_and_gathered,
                "jnp": _jnp_taken_and_put,
            },
        ),
        _doubled,
        {"torch": _torch_taken_and_put},
        directions=BOTH,
        whole=True,
        rtol=0,
    ),
    "edges of graphs": Timed(
        with_ways(SHARED["edges of graphs"], {"jnp scatter": _jnp_coordinates}),
        _np_sums,
        {"torch": _torch_sums},
        dtypes=("float32", "bfloat16"),
    ),
}
