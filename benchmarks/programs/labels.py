"""Labels, experts and conditions: ONE_HOT and ELEMENT_WISE_IF."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import dmljax
from benchmarks.others import module, onnx
from benchmarks.programs.ten import PROGRAMS as SHARED
from benchmarks.programs.ten import Input, Program, Ways
from benchmarks.programs.timed import BOTH, Timed, with_ways

CLASSES = 19


def _hot(library: Any, indices: Any, size: int) -> Any:
    """A comparison with all numbers, as booleans."""
    device = {"device": indices.device} if library.__name__ == "torch" else {}
    return indices[..., None] == library.arange(size, **device)


# One-hot arrays of a type.
HOT: Ways = {
    "dmljax": lambda i, size, dtype: dmljax.one_hot(
        i[..., None], np.array([0, 1], dtype), size=size
    ),
    "jnp one_hot": lambda i, size, dtype: jax.nn.one_hot(i, size, dtype=dtype),
    "jnp equal": lambda i, size, dtype: _hot(jnp, i, size).astype(dtype),
}

# LABEL SMOOTHING


def _np_smoothing(
    x: np.ndarray, labels: np.ndarray, smoothing: float = 0.1
) -> np.ndarray:
    x = x - x.max(-1, keepdims=True)
    logs = x - np.log(np.exp(x).sum(-1, keepdims=True))
    chosen = np.take_along_axis(logs, labels[:, None], -1)[:, 0]
    return np.asarray((smoothing - 1) * chosen - smoothing * logs.mean(-1))


def _torch_smoothing(x: Any, labels: Any, smoothing: float = 0.1) -> Any:
    cross_entropy = module("torch").nn.functional.cross_entropy
    static = {"label_smoothing": smoothing, "reduction": "none"}
    return cross_entropy(x.float(), labels.long(), **static)


def _vocabulary(elements: int, dtype: str) -> tuple[Input, ...]:
    rows = max(elements >> 13, 1)
    return ((rows, 32000), dtype, 10), ((rows,), "int32", 32000)


SMOOTHING = with_ways(
    SHARED["label smoothing"],
    {"jnp where": lambda i, n: jnp.where(_hot(jnp, i, n), 0.9, 0) + 0.1 / n},
)

LABELS: Ways = {
    "dmljax": lambda i, n: dmljax.one_hot(
        i[:, None], np.array([0, 1], np.float32), size=n
    ),
    "jnp one_hot": jax.nn.one_hot,
    "jnp where": lambda i, n: jnp.where(_hot(jnp, i, n), 1.0, 0.0),
}


def _mean_of(program: Program, ways: Ways, torch: Any, smoothing: float) -> Timed:
    """The loss that a training step has: the mean over the rows."""
    oracle = functools.partial(_np_smoothing, smoothing=smoothing)
    return Timed(
        program._replace(ways=ways, run=lambda *args: program.run(*args).mean()),
        lambda x, labels: np.asarray(oracle(x, labels).mean()),
        {"torch": lambda x, labels: torch(x, labels, smoothing).mean()},
        whole=True,
    )


# A TABLE, AND A SEGMENTATION


def _table(elements: int, dtype: str) -> tuple[Input, ...]:
    return ((elements >> 10,), "int32", 512), ((512, 1024), dtype, 10)


def _segmentation(elements: int, dtype: str) -> tuple[Input, ...]:
    rows = 2 ** max(round(np.log2(elements / 256) / 2), 3)  # 512 for 2^26 elements
    shape = (max(elements // 4 // rows**2, 1), rows, rows)
    return ((*shape, CLASSES), dtype, 10), (shape, "int32", CLASSES)


def _dice(hot: Any, x: Any) -> Any:
    both = (hot * x).sum((1, 2))
    each = hot.sum((1, 2)) + x.sum((1, 2))
    return 2 * both / each


def _torch_dice(x: Any, labels: Any) -> Any:
    hot = module("torch").nn.functional.one_hot(labels.long(), CLASSES)
    return _dice(hot.float(), x.float())


TABLE = Program(
    "one_hot",
    _table,
    lambda hot, i, table: hot(i, len(table), table.dtype) @ table,
    HOT,
)
DICE = Program(
    "one_hot",
    _segmentation,
    lambda hot, x, i: _dice(hot(i, CLASSES, np.float32), x.astype(np.float32)),
    HOT,
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
    where = module("torch").where
    positive = x > 0.5
    return where(positive, where(positive, x, 1.0).log(), 0.0)


PROGRAMS = {
    "label smoothing": Timed(
        SMOOTHING, _np_smoothing, {"torch": _torch_smoothing}, directions=BOTH
    ),
    "label smoothing of a vocabulary": Timed(
        SMOOTHING._replace(inputs=_vocabulary),
        _np_smoothing,
        {"torch": _torch_smoothing},
        directions=BOTH,
    ),
    "mean loss of smoothed labels": _mean_of(
        SMOOTHING, SMOOTHING.ways, _torch_smoothing, 0.1
    ),
    "mean loss of labels": _mean_of(SMOOTHING, LABELS, _torch_smoothing, 0.0),
    "product with a table": Timed(
        TABLE,
        lambda i, table: table[i],
        {"torch": lambda i, table: _hot(module("torch"), i, 512).to(table) @ table},
        references={"a gather": lambda i, table: table[i]},
        whole=True,
        ceiling=None,
    ),
    "dice sums of a segmentation": Timed(
        DICE,
        lambda x, i: _dice(_hot(np, i, CLASSES), x),
        {"torch": _torch_dice},
    ),
    "router": Timed(
        with_ways(
            SHARED["router"],
            {"jnp equal": lambda i, n: _hot(jnp, i, n).astype(np.int32)},
        ),
        _np_places,
        {"torch": _torch_places},
        dtypes=("int32",),
        whole=True,
    ),
    "masked mean": Timed(
        SHARED["masked mean"],
        lambda x, keep: (x * keep).sum(1) / keep.sum(1),
        {"torch": _torch_mean},
        more={
            "jnp mean": lambda x, keep: jnp.mean(
                x, 1, dtype=np.float32, where=keep != 0
            )
        },
        directions=BOTH,
    ),
    "safe logarithm": Timed(
        SHARED["safe logarithm"],
        lambda x: np.where(x > 0.5, np.log(np.where(x > 0.5, x, 1)), 0),
        {"torch": _torch_log},
        more={
            "jnp maximum": lambda x: jnp.where(x > 0.5, jnp.log(jnp.maximum(x, 0.5)), 0)
        },
        directions=("gradient",),
    ),
}


# ONE-HOT ARRAYS OF FEW LABELS, ON A CPU


def _one_hot(rows: int, dtype: str, between: bool) -> tuple[str, Timed]:
    def run(hot: Any, i: Any) -> Any:
        return hot(i * 2, 128, dtype) + 1 if between else hot(i, 128, dtype)

    def in_torch(i: Any, size: int, dtype: str) -> Any:
        torch = module("torch")
        return torch.nn.functional.one_hot(i.long(), size).to(getattr(torch, dtype))

    def in_numpy(i: Any, size: int, dtype: str) -> Any:
        return _hot(np, i, size).astype(dtype)

    more: dict[str, Any] = {"numpy": functools.partial(run, in_numpy)}
    if dtype == "float32" and not between:
        more["onnxruntime"] = onnx(
            ("OneHot", ["in0", "depth", "values"], "out", {}),
            depth=np.array(128, np.int32),
            values=np.array([0, 1], dtype),
        )
    program = Program("one_hot", lambda n, t: (((rows,), t, 64),), run, HOT)
    name = f"one-hot of 128 in {dtype}" + ", between two operations" * between
    timed = Timed(
        program,
        more["numpy"],
        {"torch": functools.partial(run, in_torch)},
        more=more,
        dtypes=("int32",),
        whole=True,
        rtol=0,
    )
    return name, timed


ON_CPU = [
    _one_hot(rows, dtype, between)
    for rows in (128, 256)
    for dtype in ("float32", "float16", "int8")
    for between in (False, True)
]
