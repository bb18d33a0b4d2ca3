"""ELEMENT_WISE_IF under test: samples, edges, drawn examples, support, errors."""

import functools
from typing import Any

import numpy as np
from hypothesis import strategies as st

import dmljax
from dmljax import _element_wise_if
from dmljax._operators import OPERATORS
from tests import oracles
from tests.samples import (
    Fuzzed,
    Sample,
    Subject,
    Wrong,
    numbers,
    shape_of_rank,
)
from tests.sharded import Case, array
from tests.subjects import tables

_if = functools.partial(
    Sample, "element_wise_if", dmljax.element_wise_if, oracles.element_wise_if
)
CONDITION = np.array([[0, 1, 2], [128, 0, 255]], np.uint8)


def _condition(shape: tuple[int, ...]) -> np.ndarray:
    return numbers(shape, np.uint8, 1) % 3


def like(operands: Any, attributes: Any) -> Sample:
    """A sample of the operator."""
    return _if("", operands, attributes)


@st.composite
def _examples(draw: Any) -> Sample:
    shape = draw(st.sampled_from([(5,), (2, 3), (2, 1, 2)]))
    count = int(np.prod(shape))
    byte = st.integers(0, 255) | st.just(0)
    line = draw(st.lists(byte, min_size=count, max_size=count))
    condition = np.array(line, np.uint8).reshape(shape)
    return like((condition, shape, shape), {})


def _tensors(ranks: Any, types: str) -> tables.Row:
    values = dict.fromkeys(("ATensor", "BTensor", "OutputTensor"), (*ranks, types))
    return {"ConditionTensor": (*ranks, "UINT8"), **values}


def _make(maker: Any) -> dmljax.ElementWiseIfDesc:
    sizes, data_type = maker.sizes(), maker.data_type(tables.ALL)
    return dmljax.ElementWiseIfDesc(
        maker.tensor(dmljax.DataType.UINT8, sizes),
        maker.tensor(data_type, sizes),
        maker.tensor(data_type, sizes),
        maker.tensor(data_type, sizes, output=True),
    )


SUBJECT = Subject(
    operator=OPERATORS["element_wise_if"],
    jitted=_element_wise_if._element_wise_if,
    tensor="OutputTensor",
    signature="(condition, a, b, /)",
    structs={"ELEMENT_WISE_IF": "ConditionTensor ATensor BTensor OutputTensor"},
    sharded={
        "element_wise_if": Case(
            dmljax.element_wise_if,
            (array("bool"), array(), -array()),
            ("`element_wise_if`", "any dimensions"),
        )
    },
    samples=(
        _if("bytes", (CONDITION, (2, 3), (2, 3))),
        _if("truth", (CONDITION[0] != 0, (3,), (3,))),
    ),
    edges=(
        *(
            _if(
                f"rank {rank}",
                (_condition(shape_of_rank(rank)), *[shape_of_rank(rank)] * 2),
            )
            for rank in range(9)
        ),
        _if("all bytes", (np.arange(256, dtype=np.uint8), (256,), (256,))),
        _if("empty", (np.zeros((2, 0), np.uint8), (2, 0), (2, 0))),
        _if("true", (np.array(True), (), ())),
    ),
    plans=("rank 0", "rank 1", "rank 2", "rank 8", "all bytes", "empty", "true"),
    tables={
        "ELEMENT_WISE_IF": {
            "2_0": _tensors((4, 4), "FLOAT16"),
            "3_0": _tensors((1, 8), tables.SMALL),
            "5_0": _tensors((1, 8), tables.ALL),
        }
    },
    attributes={"ELEMENT_WISE_IF": lambda rank, data_type: ()},
    examples=_examples(),
    fuzzed={
        "ELEMENT_WISE_IF": Fuzzed(
            _make,
            lambda desc, *arrays: (oracles.element_wise_if(*arrays),),
            lambda desc, form, *arrays: dmljax.element_wise_if(*arrays),
        )
    },
    errors=(
        Wrong(
            lambda: dmljax.element_wise_if(
                np.ones(3, bool), np.ones(3, np.float32), np.ones(4, np.float32)
            ),
            ("BTensor", "{4}", "{3}", "both must be the same"),
        ),
    ),
)
