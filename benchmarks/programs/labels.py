"""Labels, experts and conditions: ONE_HOT and ELEMENT_WISE_IF."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import dmljax
from benchmarks.others import module
from benchmarks.programs.timed import BOTH, Timed
from dmljax._programs import (
    PROGRAMS as SHARED,
)
from dmljax._programs import (
    Input,
    Program,
    rows_of,
)

ON = np.array([0, 1], np.float32)


def _hot(library: Any, indices: Any, size: int) -> Any:
    device = {"device": indices.device} if library.__name__ == "torch" else {}
    return indices[..., None] == library.arange(size, **device)


def _one_hot(indices: jax.Array, size: int, dtype: Any) -> jax.Array:
    return dmljax.one_hot(indices[..., None], ON.astype(dtype), size=size)


# LABEL SMOOTHING


def _np_smoothing(x: np.ndarray, labels: np.ndarray) -> np.ndarray:
    x = x - x.max(-1, keepdims=True)
    logs = x - np.log(np.exp(x).sum(-1, keepdims=True))
    chosen = np.take_along_axis(logs, labels[:, None], -1)[:, 0]
    return np.asarray(-0.9 * chosen - 0.1 * logs.mean(-1))


def _torch_smoothing(x: Any, labels: Any) -> Any:
    cross_entropy = module("torch").nn.functional.cross_entropy
    static = {"label_smoothing": 0.1, "reduction": "none"}
    return cross_entropy(x.float(), labels.long(), **static)


def _vocabulary(elements: int, dtype: str) -> tuple[Input, ...]:
    return rows_of(32000, ((), "int32", 32000))(elements * 4, dtype)


SMOOTHING = SHARED["label smoothing"]

# A TABLE, AND A SEGMENTATION

CLASSES = 19


def _table(elements: int, dtype: str) -> tuple[Input, ...]:
    rows = max(elements // 1024, 1)
    return ((512, 1024), dtype, 10), ((rows,), "int32", 512)


def _segmentation(elements: int, dtype: str) -> tuple[Input, ...]:
    rows = 2 ** max(round(np.log2(elements / 256) / 2), 3)  # 512 for 2^26 elements
    shape = (max(elements // 4 // rows**2, 1), rows, rows)
    return ((*shape, CLASSES), dtype, 10), (shape, "int32", CLASSES)


def _dice(hot: Any, x: Any) -> Any:
    both, each = (hot * x).sum((1, 2)), hot.sum((1, 2)) + x.sum((1, 2))
    return 2 * both / each


def _torch_dice(x: Any, labels: Any) -> Any:
    hot = module("torch").nn.functional.one_hot(labels.long(), CLASSES)
    return _dice(hot.float(), x.float())


TABLE = Program(
    "one_hot",
    _table,
    {
        "dmljax": lambda table, i: _one_hot(i, len(table), table.dtype) @ table,
        "jnp one_hot": lambda table, i: (
            jax.nn.one_hot(i, len(table), dtype=table.dtype) @ table
        ),
        "jnp equal": lambda table, i: (
            _hot(jnp, i, len(table)).astype(table.dtype) @ table
        ),
        "jnp take": lambda table, i: table[i],
    },
)
DICE = Program(
    "one_hot",
    _segmentation,
    {
        "dmljax": lambda x, i: _dice(
            _one_hot(i, CLASSES, np.float32), x.astype(np.float32)
        ),
        "jnp one_hot": lambda x, i: _dice(
            jax.nn.one_hot(i, CLASSES), x.astype(np.float32)
        ),
        "jnp where": lambda x, i: _dice(
            jnp.where(_hot(jnp, i, CLASSES), 1.0, 0.0), x.astype(np.float32)
        ),
    },
)

# EXPERTS AND CONDITIONS


def _np_places(experts: np.ndarray) -> np.ndarray:
    """The number of tokens of the same expert before each token."""
    order = np.argsort(experts, kind="stable")
    places = np.empty(len(experts), np.int32)
    starts = np.searchsorted(experts[order], experts[order])
    places[order] = np.arange(len(experts)) - starts
    return places


def _torch_places(experts: Any) -> Any:
    hot = module("torch").nn.functional.one_hot(experts.long(), 64).int()
    return (hot.cumsum(0) * hot).sum(1) - 1


def _torch_mean(x: Any, keep: Any) -> Any:
    kept = keep != 0
    return module("torch").where(kept, x.float(), 0.0).sum(1) / kept.sum(1)


def _torch_log(x: Any) -> Any:
    where, positive = module("torch").where, x > 0.5
    return where(positive, where(positive, x, 1.0).log(), 0.0)


PROGRAMS = {
    "label smoothing": Timed(
        SMOOTHING, _np_smoothing, {"torch": _torch_smoothing}, directions=BOTH
    ),
    "label smoothing of a vocabulary": Timed(
        SMOOTHING._replace(inputs=_vocabulary, dtypes=("bfloat16",)),
        _np_smoothing,
        {"torch": _torch_smoothing},
        directions=BOTH,
    ),
    "product with a table": Timed(
        TABLE,
        lambda table, i: table[i],
        {
            "torch": lambda table, i: _hot(module("torch"), i, 512).to(table) @ table,
            "torch embedding": lambda table, i: table[i],
        },
        whole=True,
        ceiling=None,
    ),
    "dice sums of a segmentation": Timed(
        DICE,
        lambda x, i: _dice(_hot(np, i, CLASSES), x),
        {"torch": _torch_dice},
    ),
    "router": Timed(SHARED["router"], _np_places, {"torch": _torch_places}, whole=True),
    "masked mean": Timed(
        SHARED["masked mean"],
        lambda x, keep: (x * keep).sum(1) / keep.sum(1),
        {"torch": _torch_mean},
        directions=BOTH,
    ),
    "safe logarithm": Timed(
        SHARED["safe logarithm"],
        lambda x: np.where(x > 0.5, np.log(np.where(x > 0.5, x, 1)), 0),
        {"torch": _torch_log},
        directions=("gradient",),
    ),
}
