"""One program over many devices: results, and the collectives between devices.

Every row of the tables about sharding is compiled on meshes of eight virtual devices.
test_sharding.py has the tests for explicit mesh axes alone.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import dmljax
from dmljax import PaddingMode
from tests import meshes
from tests.checks import python
from tests.collectives import collectives
from tests.meshes import CASES, DOCS, check_both, each_kind, run, sharding_of
from tests.sharded import array
from tests.subjects import FORMS, KERNELS, SUBJECTS, nonzero_coordinates
from tests.subjects.one_hot import columns_of_32
from tests.subjects.padding import adjoint_oracle, oracle, pad_rows
from tests.transforms import dense

pytestmark = pytest.mark.usefixtures("simulator")

# BATCHES OF EVERY OPERATOR


eight = partial(dense.batches, count=8)


def sharded(program, inputs):
    """The outputs for batches. Each device has one element of a batch."""
    return program(jax.device_put(inputs, sharding_of("8", P("a"))))


@dense.each_operator(FORMS | KERNELS)
def test_shard_map(uses):
    """Forward; and with the gradient, if all devices share the last open operand."""
    mesh = sharding_of("8", P("a")).mesh

    def mapped(sample, *whole):
        in_axes = [None if i in whole else 0 for i in range(len(sample.operands))]
        one = jax.vmap(sample.run, in_axes, axis_size=1)
        specs = tuple(P() if axis is None else P("a") for axis in in_axes)
        return jax.shard_map(one, mesh=mesh, in_specs=specs, out_specs=P("a"))

    def run(sample, *operands):
        last = sample.open_operands[-1]
        some = [x[0] if i == last else x for i, x in enumerate(operands)]
        both = dense.with_gradient(sample, *some, mapped=mapped(sample, last))
        return mapped(sample)(*operands), both

    def expected(sample, *operands):
        last = sample.open_operands[-1]
        in_axes = [None if i == last else 0 for i in range(len(operands))]
        lines = dense.with_shared(operands, in_axes)
        output, gradient = dense.expected_with_gradient(sample, *lines)
        if sample.linear:
            gradient[-1] = gradient[-1].sum(0)
        return dense.expected_batch(sample, *operands), (output, gradient)

    dense.check(uses, eight, run, expected, sharded)


# THE TABLES OF THE PAGES


@pytest.mark.parametrize("operator", SUBJECTS)
def test_every_row_of_the_page_has_a_case(operator):
    cases = SUBJECTS[operator].sharded.values()
    assert {case.row for case in cases} == set(meshes.table(operator))


@meshes.divisions("2x4", "8", once=True)
def test_automatic_axes(case, mesh, spec):
    check_both(case, mesh, spec, AxisType.Auto)


@meshes.divisions("2x4", once=True)
def test_explicit_axes(case, mesh, spec):
    check_both(case, mesh, spec, AxisType.Explicit)


def test_the_depth_of_one_hot_is_divided():
    """Only the sharding of the output divides the depth."""
    indices = (np.arange(64) % 50 - 20).astype(np.int8).reshape(8, 1, 8)
    sharding = sharding_of("2x4", P("a"))
    wanted = NamedSharding(sharding.mesh, P("a", "b"))
    divided = jax.jit(columns_of_32, out_shardings=wanted)
    text, output = run(divided, sharding, indices)
    assert collectives(text) == []
    assert output.sharding.is_equivalent_to(wanted, output.ndim)


# LAYOUTS OF ARRAYS AND DEVICES


def test_parts_of_a_padded_dimension_may_be_uneven():
    """With automatic axes, XLA pads uneven parts; the pads must not reach results.

    An output is divided as the input is. If the devices can't share it, it is whole.
    """

    uses = [(mode, (3, 2)) for mode in PaddingMode]
    uses += [(PaddingMode.EDGE, (0, 1)), (PaddingMode.WRAP, (5, 0))]
    # Amounts beyond the size, and the size itself.
    uses += [(PaddingMode.REFLECTION, pads) for pads in ((140, 131), (128, 0))]

    def both(x):
        for mode, pads in uses:
            y, pull = jax.vjp(partial(pad_rows, pads=pads, mode=mode), x)
            yield y, *pull(y)

    def expected(x):
        for mode, (start, end) in uses:
            options = {"start": (start, 0, 0), "end": (end, 0, 0), "mode": mode}
            y = oracle(x, **options)
            yield y, adjoint_oracle(y, **options)

    one = list(expected(array()))
    sharding = sharding_of("8", P("a"))
    _, outputs = run(lambda x: list(both(x)), sharding, array(), one=one)
    whole = {(len(y) % 8 > 0, y.sharding.is_fully_replicated) for y, _ in outputs}
    assert whole == {(True, True), (False, False)}


@each_kind
def test_a_batch_of_lines_that_are_sharded_anyhow(kind):
    specs = P("a", "b"), P(None, "a"), P(None, None, ("a", "b")), P("b", None, "a")
    x = nonzero_coordinates.MASK[:8]
    placed = [jax.device_put(x, sharding_of("2x4", spec, kind)) for spec in specs]
    expected = dense.stacked(list(map(nonzero_coordinates.oracle, x)))
    for found in jax.jit(lambda arrays: list(map(nonzero_coordinates.lines, arrays)))(
        placed
    ):
        dense.assert_equal(found, expected)


# PROGRAMS AROUND THE OPERATORS


@each_kind
def test_second_derivatives(kind):
    """Exactly: a quadratic form of small whole numbers."""

    def loss(x):
        y = dmljax.padding(x, (1,), (7,), mode=PaddingMode.REFLECTION)
        return jnp.sum(dmljax.element_wise_if(y > 0, y * y, 3 * y))

    def product(x):
        return jax.jvp(jax.grad(loss), (x,), (x[::-1],))

    run(product, sharding_of("8", P("a"), kind), array(shape=(16,)))


# PERSISTENT PROGRAMS


def output_of(*command, **environment):
    """The output of another Python process."""
    done = python(*command, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_second_process_finds_every_program_in_the_persistent_cache(tmp_path):
    """Row-sharded programs of all operators, forward and gradient."""
    settings = {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        # A plugin that warns would end the process.
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    command = "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", ""
    cases = "-k", "test_automatic_axes", __file__
    kept = []
    for _ in range(2):  # a missing program is compiled, and stored under its key
        output_of(*command, *cases, **settings)
        kept.append({path.name for path in tmp_path.glob("*-cache")})
    assert len(kept[0]) >= 2 * len(CASES) // 3
    assert kept[1] == kept[0]


@pytest.mark.slow
def test_two_processes():
    """The example of the page, over the loopback device."""
    shown = output_of(str(DOCS / "two_processes.py"))
    kept = [i for i in range(32) if i % 3 == 0]
    padded = [int(i % 3 == 0) for i in [*range(24, 32), *range(32)]]
    for process, counts in ((0, [2, 1, 1, 2]), (1, [1, 1, 2, 1])):
        assert f"process {process}, rows: {kept + [0] * 21}" in shown
        assert f"process {process}, counts: {counts}" in shown
        half = padded[process * 20 :][:20]
        assert f"process {process}, padded: {half}" in shown
