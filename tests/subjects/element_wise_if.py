"""ELEMENT_WISE_IF under test: samples, edges, errors, sharding, support."""

import functools

import jax.numpy as jnp
import numpy as np

import dmljax
from dmljax._directml.support import support_table
from tests.samples import (
    Described,
    Sample,
    Subject,
    Wrong,
    numbers,
    shape_of_rank,
    tensor,
)
from tests.sharded import Case, array
from tests.subjects import tables


def oracle(condition, a, b):
    """Selects a where condition != 0, and b elsewhere."""
    condition, a, b = map(np.asarray, (condition, a, b))
    return np.where(condition != 0, a, b)


_if = functools.partial(Sample, "element_wise_if", dmljax.element_wise_if, oracle)
BYTES = np.array([[0, 1, 2, 0], [128, 0, 255, 64]], np.uint8)
CONDITION = BYTES[:, :3]


def _make(maker):
    sizes = maker.sizes()
    condition = maker.tensor(dmljax.DataType.UINT8, sizes)
    return dmljax.ElementWiseIfDesc(condition, *maker.tensors(tables.ALL, *[sizes] * 3))


ITEM = tensor("FLOAT32", 2, 3)
DESC = dmljax.ElementWiseIfDesc(tensor("UINT8", 2, 3), ITEM, ITEM, ITEM)
MATRIX = np.ones((2, 3), np.float32)
WHOLE = np.ones((2, 3), np.int32)
_call = functools.partial(Wrong.of_call, "ELEMENT_WISE_IF", dmljax.element_wise_if)
ERRORS = [
    _call(
        "a (ATensor) has {2,1}, while condition (ConditionTensor) has {2,3}; both must "
        "be the same. Write element_wise_if(*jnp.broadcast_arrays(condition, a, b)).",
        CONDITION,
        MATRIX[:, :1],
        MATRIX[0, 0],
    ),
    _call(
        "b (BTensor) has {3}, while condition (ConditionTensor) has {2,3}; both..."
        "(condition, a, b)) if their last dimensions belong together.",
        CONDITION,
        MATRIX,
        MATRIX[0],
    ),
    _call(
        "a (ATensor) has FLOAT32, while b (BTensor) has INT32..."
        "choose a type that holds yours",
        CONDITION,
        MATRIX,
        WHOLE,
    ),
    Wrong(
        "ELEMENT_WISE_IF",
        "a (ATensor) and b (BTensor) are both Python numbers; one must be an array",
        lambda condition: dmljax.element_wise_if(condition, 1, 2.0),
        (CONDITION,),
        TypeError,
    ),
]
# A scalar condition is not broadcast. An array, which may be large, does not give way
# to a scalar.
HALF = MATRIX.astype(np.float16)
TOO_WIDE = "FLOAT16 does not hold every value of FLOAT32: choose a type that holds"
ERRORS += [
    _call(
        "a (ATensor) has {2,3}, while condition (ConditionTensor) has {}; both",
        CONDITION[0, 0],
        MATRIX,
        MATRIX,
    ),
    _call(f"while b (BTensor) has FLOAT16...{TOO_WIDE}", CONDITION, MATRIX[0, 0], HALF),
    _call(f"while b (BTensor) has FLOAT32...{TOO_WIDE}", CONDITION, HALF, MATRIX[0, 0]),
]
ERRORS.append(
    Wrong(
        "ELEMENT_WISE_IF",
        "a (ATensor) has data type FLOAT32, while b (BTensor) has INT32; both must be",
        lambda x: dmljax.element_wise_if(x > 0, jnp.full(x.shape, 1.5), x),
        (WHOLE,),
    )
)
for condition in (MATRIX, CONDITION.astype("i1")):
    name = condition.dtype.name.upper()
    text = f"condition (ConditionTensor) has data type {name}; it must be UINT8 or BOOL"
    ERRORS.append(_call(f"{text}. Write condition != 0", condition, MATRIX, MATRIX))
DESCRIPTORS = {
    # Fault: the function checks the sizes, and advises a call of itself.
    "'ATensor' has {2,1}, while tensor 'ConditionTensor' has {2,3}; both must be the "
    "same.": ("a", "FLOAT32", 2, 1),
    "'OutputTensor' has {6}, while tensor 'ConditionTensor'": ("output", "FLOAT32", 6),
    "'BTensor' has INT32, while tensor 'ATensor' has FLOAT32": ("b", "INT32", 2, 3),
    "has FLOAT16, while tensor 'ATensor' has FLOAT32": ("output", "FLOAT16", 2, 3),
}
for text, (name, *item) in DESCRIPTORS.items():
    change = {f"{name}_tensor": tensor(*item)}
    ERRORS.append(Wrong.of_descriptor(DESC, text, **change))

EDGES = [
    _if("all bytes", (np.arange(256, dtype=np.uint8), (256,), (256,))),
    _if("empty", (np.zeros((2, 0), np.uint8), (2, 0), (2, 0))),
    _if("true", (np.array(True), (), ())),
]
for rank in range(9):
    shape = shape_of_rank(rank)
    condition = numbers(shape, np.uint8, 1) % 3
    EDGES.append(_if(f"rank {rank}", (condition, shape, shape)))

SUBJECT = Subject(
    signature="(condition, a, b, /)",
    arguments=(MATRIX > 0, MATRIX, MATRIX),
    samples=(
        _if("bytes", (BYTES, (2, 4), (2, 4))),
        _if("truth", (BYTES[0] != 0, (4,), (4,))),
    ),
    edges=EDGES,
    errors=ERRORS,
    sharded={
        "element_wise_if": Case(
            dmljax.element_wise_if,
            ("`element_wise_if`", "any dimensions"),
            arrays=(array("bool"), array(), -array()),
        )
    },
    symbolic=lambda x, value: dmljax.element_wise_if(x > 0, x, value * x),
    descriptors={
        "ELEMENT_WISE_IF": Described(
            example=DESC,
            table=support_table(
                "ConditionTensor",
                "ATensor BTensor OutputTensor",
                V2_0=(4, 4, "UINT8", "FLOAT16"),
                V3_0=(1, 8, "UINT8", tables.SMALL),
                V5_0=(1, 8, "UINT8", tables.ALL),
            ),
            make=_make,
            oracle=lambda desc, *arrays: (oracle(*arrays),),
        )
    },
)
