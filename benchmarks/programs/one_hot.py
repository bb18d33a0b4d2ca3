"""Losses of labels: ONE_HOT."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import dmljax
from benchmarks.case import Functions
from benchmarks.programs.program import (
    BOTH,
    CPU,
    GPU,
    Numbers,
    Program,
    spellings,
)

# ONE-HOT ARRAYS OF A TYPE


def one_hot(labels: jax.Array, classes: int, dtype: Any) -> jax.Array:
    off_on = np.array([0, 1], dtype)
    return dmljax.one_hot(labels[..., None], off_on, size=classes)


def one_hot_by_equal(labels: jax.Array, classes: int, dtype: Any) -> jax.Array:
    return (labels[..., None] == jnp.arange(classes)).astype(dtype)


# LOSSES: x are the logits, (rows, classes).


def smoothed(labels: jax.Array, classes: int) -> jax.Array:
    """Targets: of each label, all classes share a tenth."""
    off_on = np.array([0.1 / classes, 0.9 + 0.1 / classes], np.float32)
    return dmljax.one_hot(labels[:, None], off_on, size=classes)


def smoothed_one_hot(labels: jax.Array, classes: int) -> jax.Array:
    return jax.nn.one_hot(labels, classes) * 0.9 + 0.1 / classes


def smoothed_where(labels: jax.Array, classes: int) -> jax.Array:
    hot = labels[:, None] == jnp.arange(classes)
    return jnp.where(hot, 0.9, 0) + 0.1 / classes


# Targets: 1 for the label, and 0 for the others.
chosen = functools.partial(one_hot, dtype=np.float32)


def chosen_where(labels: jax.Array, classes: int) -> jax.Array:
    hot = labels[:, None] == jnp.arange(classes)
    return jnp.where(hot, 1.0, 0.0)


def cross_entropy(x: jax.Array, labels: jax.Array, targets: Any = smoothed) -> Any:
    """The loss of each row."""
    logs = jax.nn.log_softmax(x.astype(jnp.float32))
    return -(targets(labels, x.shape[1]) * logs).sum(-1)


def mean_loss(x: jax.Array, labels: jax.Array, targets: Any = smoothed) -> Any:
    """The loss of a training step."""
    return cross_entropy(x, labels, targets).mean()


def torch_loss(x: Any, labels: Any, smoothing: float = 0.1) -> Any:
    import torch

    return torch.nn.functional.cross_entropy(
        x.float(), labels.long(), label_smoothing=smoothing, reduction="none"
    )


def torch_mean_loss(x: Any, labels: Any, smoothing: float = 0.1) -> Any:
    return torch_loss(x, labels, smoothing).mean()


SMOOTHED: Functions = {
    "dmljax": smoothed,
    "jnp one_hot": smoothed_one_hot,
    "jnp where": smoothed_where,
}
CHOSEN: Functions = {
    "dmljax": chosen,
    "jnp one_hot": jax.nn.one_hot,
    "jnp where": chosen_where,
}
LOSSES = {**spellings(cross_entropy, targets=SMOOTHED), "torch": torch_loss}
LOGITS = [Numbers(10), Numbers(1000, "int32")]
THOUSAND = {
    GPU: [(65536, 1000), (65536,)],
    CPU: [(4096, 1000), (4096,)],
}

PROGRAMS = {
    "label smoothing": Program("one_hot", LOSSES, LOGITS, THOUSAND, directions=BOTH),
    "mean loss of smoothed labels": Program(
        "one_hot",
        {**spellings(mean_loss, targets=SMOOTHED), "torch": torch_mean_loss},
        LOGITS,
        THOUSAND,
    ),
    "mean loss of labels": Program(
        "one_hot",
        {
            **spellings(mean_loss, targets=CHOSEN),
            "torch": functools.partial(torch_mean_loss, smoothing=0.0),
        },
        LOGITS,
        THOUSAND,
    ),
}
