"""One program over many devices: what communicates, on eight virtual devices.

docs/sharding.md has the table; here its cells are compiled, run and searched for
collectives.
"""

import pathlib
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import dmljax
from dmljax import PaddingMode

PAGE = pathlib.Path(__file__).parent.parent / "docs" / "sharding.md"
COLLECTIVES = re.compile(
    r"(all-gather|all-reduce|all-to-all|collective-permute|reduce-scatter)"
    r"(?:-start)?\("
)
SHAPE = (16, 16, 16)
MESHES = {
    "2": ((2,), ("a",)),
    "4": ((4,), ("a",)),
    "8": ((8,), ("a",)),
    "2x4": ((2, 4), ("a", "b")),
}
# Along which dimensions an array is sharded, on one and on two mesh axes.
SPECS = {
    1: (P("a"), P(None, "a"), P(None, None, "a")),
    2: (P("a", "b"), P(None, "a", "b"), P("b", None, "a"), P(("a", "b"))),
}


def array(dtype="float32", shape=SHAPE):
    line = np.arange(np.prod(shape)) * 7 % 11 - 3
    return line.reshape(shape).astype(dtype)


def element_wise_if(condition, a, b):
    return dmljax.element_wise_if(condition, a, b)


def diagonal_matrix1(x):
    return dmljax.diagonal_matrix1(x, value=2, fill_begin=-9, fill_end=4)


def one_hot(indices):
    return dmljax.one_hot(indices, np.array([5, 9], np.float32), size=32, axis=1)


def pad_first_axis(mode):
    def pad(x):
        return dmljax.padding(x, (3, 0, 0), (2, 0, 0), mode=mode)

    return pad


WITHOUT_COMMUNICATION = {
    "element_wise_if": (element_wise_if, (array("bool"), array(), -array())),
    "diagonal_matrix1": (diagonal_matrix1, (array(),)),
    "one_hot": (one_hot, (array("int32", (16, 1, 16)),)),
    **{
        f"padding, {mode.name}": (pad_first_axis(mode), (array(),))
        for mode in PaddingMode
    },
}
# The dimensions that are not sharded.
WHOLE = {"one_hot": (1,)} | {f"padding, {mode.name}": (0,) for mode in PaddingMode}
# In what is sharded; the gradient of one_hot's values is a sum over all devices.
DIFFERENTIABLE = [name for name in WITHOUT_COMMUNICATION if name != "one_hot"]


def cases(*names):
    """The meshes and specs under which these operators need no communication."""
    return pytest.mark.parametrize(
        ("name", "mesh", "spec"),
        [
            pytest.param(name, mesh, spec, id=f"{name}-{mesh}-{spec}")
            for name in names
            for mesh, (sizes, _) in MESHES.items()
            for spec in SPECS[len(sizes)]
            if all(i >= len(spec) or spec[i] is None for i in WHOLE.get(name, ()))
        ],
    )


def sharding_of(mesh, spec):
    sizes, names = MESHES[mesh]
    devices = jax.devices("cpu")[: np.prod(sizes)]
    types = (AxisType.Auto,) * len(sizes)
    made = jax.make_mesh(sizes, names, axis_types=types, devices=devices)
    return NamedSharding(made, spec)


def run(function, sharding, *arrays):
    """The collectives of the compiled program, and what it computes."""
    placed = [jax.device_put(x, sharding) for x in arrays]
    compiled = jax.jit(function).lower(*placed).compile()
    return COLLECTIVES.findall(compiled.as_text()), compiled(*placed)


@cases(*WITHOUT_COMMUNICATION)
def test_nothing_is_communicated(name, mesh, spec):
    function, arrays = WITHOUT_COMMUNICATION[name]
    sharding = sharding_of(mesh, spec)
    collectives, output = run(function, sharding, *arrays)
    assert collectives == []
    assert output.sharding.is_equivalent_to(sharding, output.ndim)
    np.testing.assert_array_equal(output, function(*map(jnp.asarray, arrays)))


@cases(*DIFFERENTIABLE)
def test_nothing_is_communicated_by_the_gradient(name, mesh, spec):
    function, arrays = WITHOUT_COMMUNICATION[name]

    def pull(*operands):
        *first, last, cotangent = operands
        return jax.vjp(lambda x: function(*first, x), last)[1](cotangent)[0]

    shape = jax.eval_shape(function, *arrays).shape
    operands = (*arrays, array(shape=shape))
    sharding = sharding_of(mesh, spec)
    collectives, output = run(pull, sharding, *operands)
    assert collectives == []
    assert output.sharding.is_equivalent_to(sharding, output.ndim)
    np.testing.assert_array_equal(output, pull(*map(jnp.asarray, operands)))


@pytest.mark.parametrize("mode", PaddingMode, ids=lambda mode: mode.name)
def test_padding_along_a_sharded_axis_is_right(mode):
    pad, x = pad_first_axis(mode), array()
    _, output = run(pad, sharding_of("8", P("a")), x)
    np.testing.assert_array_equal(output, pad(jnp.asarray(x)))


def test_the_page_names_every_operator_that_is_compiled_here():
    rows = re.findall(r"^\| `(\w+)` .*\| none \|", PAGE.read_text(), re.MULTILINE)
    assert set(rows) == {name.split(",")[0] for name in WITHOUT_COMMUNICATION}
