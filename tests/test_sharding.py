"""Arrays that are sharded over explicit mesh axes: JAX divides the calls.

transforms/test_sharded_programs.py tests the collectives between devices.
"""

import dataclasses
import os
import textwrap
import traceback
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import dmljax
from dmljax import DescriptorError, PaddingMode
from dmljax._jax import VERSION
from tests import samples
from tests.checks import needs_kernels
from tests.meshes import CASES, check_both, run, sharding_of
from tests.sharded import array
from tests.subjects import FORMS
from tests.subjects.padding import NARROW, pad_rows
from tests.transforms.dense import assert_equal, energy, only_open, pulled, stacked

pytestmark = pytest.mark.usefixtures("simulator")

# EVERY DIMENSION


def batch_of(sample):
    """Two of the sample at once."""

    def function(*arrays, **options):
        return jax.vmap(partial(sample.function, **options))(*arrays)

    def oracle(*arrays, **options):
        each = zip(*arrays, strict=True)
        return stacked([sample.oracle(*one, **options) for one in each])

    operands = tuple(
        (2, *x) if isinstance(x, tuple) else np.stack([x, x]) for x in sample.operands
    )
    return dataclasses.replace(
        sample, function=function, oracle=oracle, operands=operands
    )


def arrays_of(sample):
    """The operands; and, if there is a derivative, a cotangent of the output."""
    arrays = sample.arrays()
    if not sample.linear:
        return arrays
    output = jax.eval_shape(sample.run, *arrays)
    return *arrays, samples.numbers(output.shape, output.dtype, 2)


def evaluated(sample, arrays):
    """The outputs, and the cotangents of the open operands."""
    if not sample.linear:
        return sample.run(*arrays)
    *operands, cotangent = arrays
    output, pull = jax.vjp(sample.run, *operands)
    return output, only_open(sample, pull(cotangent))


def expected(sample):
    """The same by the oracle."""
    arrays = arrays_of(sample)
    if not sample.linear:
        return sample.expected(*arrays)
    *operands, cotangent = arrays
    return sample.expected(*operands), pulled(sample, operands, cotangent)


def divisions(sample):
    """Yields a sample, the positions of the divided arrays, and the divided dimension.

    We divide each array alone, in each of its dimensions; then the arrays of the
    highest rank together; and at last all arrays of a batch.
    """
    shapes = [np.shape(x) for x in arrays_of(sample)]
    rank = max(map(len, shapes))
    for dimension in range(rank):
        sizes = [(*shape, *[1] * rank)[dimension] for shape in shapes]
        long = {i for i, size in enumerate(sizes) if size > 1}
        for i in long:
            yield sample, {i}, dimension
        alike = {i for i in long if len(shapes[i]) == rank}
        if len(alike) > 1:
            yield sample, alike, dimension
    yield batch_of(sample), set(range(len(shapes))), 0


def divided(sample, positions, dimension):
    """The arrays, some of them divided over two devices.

    None if JAX can't trace the function outside of the operator: JAX divides slices of
    arrays only in few cases.
    """
    sharding = sharding_of("2", P(*[None] * dimension, "a"), AxisType.Explicit)
    placed = list(arrays_of(sample))
    for i in positions:
        placed[i] = jax.device_put(placed[i], sharding)
    try:
        jax.eval_shape(partial(evaluated, sample), placed)
    except Exception as error:
        # JAX 0.12 wants cotangents to be divided as their outputs are.
        cotangent = "argument to VJP function" in str(error)
        files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
        is_ours = any(os.path.dirname(dmljax.__file__) in file for file in files)
        # JAX 0.9.0 can't cut the divided dimension of a batch into parts.
        if is_ours and VERSION >= (0, 10):
            raise
        if type(error).__name__ != "ShardingTypeError" and not cotangent:
            raise
        return None
    return placed


# Three modes of PADDING are enough: the mode does not decide how it is divided.
@pytest.mark.parametrize(
    "sample", [sample for uses in FORMS.values() for sample in uses[:3]], ids=str
)
def test_every_dimension(sample):
    """Two devices give the oracle's results. The sizes are even."""
    cases = [
        (one, placed, f"arrays {positions} are divided in dimension {dimension}")
        for one, positions, dimension in divisions(sample)
        if (placed := divided(one, positions, dimension))
    ]
    uses, inputs, names = zip(*cases, strict=True)
    program = jax.jit(lambda inputs: list(map(evaluated, uses, inputs)))
    for one, found, name in zip(uses, program(inputs), names, strict=True):
        assert_equal(found, expected(one), name)


# SEVERAL MESH AXES


def test_a_gradient_inside_a_shard_map_over_some_axes():
    """The rows are padded. The other explicit axis divides them."""

    def energy(x):
        outputs = [pad_rows(x, NARROW, mode) for mode in PaddingMode]
        turned = x.transpose(1, 2, 0)
        outputs.append(dmljax.diagonal_matrix1(turned, fill_begin=-9, fill_end=3))
        return sum(jnp.sum(y**2) for y in outputs)[None]

    sharding = sharding_of("2x4", P("a", "b"), AxisType.Explicit)
    specs = {"in_specs": P(None, "b"), "out_specs": P("b"), "axis_names": {"b"}}
    mapped = jax.shard_map(energy, mesh=sharding.mesh, **specs)
    gradients = [jax.grad(lambda x, f=f: jnp.sum(f(x))) for f in (mapped, energy)]
    run(gradients[0], sharding, array(), one=jax.jit(gradients[1])(array()))


def test_a_vmap_over_a_divided_dimension_of_a_mesh_of_three_axes():
    """JAX 0.12 would end the process for a shard_map over the third axis alone."""
    pad = partial(dmljax.padding, start_padding=(0, 1), end_padding=(0, 2), mode="wrap")
    sharding = sharding_of("2x2x2", P("long", None, "b"), AxisType.Explicit)
    _, output = run(jax.vmap(pad, 2), sharding, array(shape=(8, 4, 2)))
    assert output.sharding.spec == P("b", "long", None)


SMOOTHED = np.float32([0.25, 0.75])
SELECTS = (
    partial(dmljax.diagonal_matrix1, fill_begin=1, fill_end=None),
    lambda x: dmljax.element_wise_if(x > 0, x, 0),
    lambda x: dmljax.one_hot(x[..., None].astype(np.int32), SMOOTHED, size=3),
)


def test_results_of_selects_are_divided_as_their_array():
    """Also gradients, and batches along each dimension."""

    def results(x):
        for function in SELECTS:
            yield function(x), jax.grad(energy(function))(x)
            yield [jax.vmap(function, axis, axis)(x) for axis in range(3)]

    program, x = jax.jit(lambda x: [*results(x)]), array(shape=(8, 4, 2))
    one = program(x)
    for spec in P("long", "b", "a"), P(("a", "b")):
        sharding = sharding_of("2x2x2", spec, AxisType.Explicit)
        _, outputs = run(program, sharding, x, one=one)
        for output in jax.tree.leaves(outputs):
            assert output.sharding.is_equivalent_to(sharding, output.ndim)


def type_of(call, mesh, spec, rows):
    """The type of the result of a matrix over explicit axes."""
    sharding = sharding_of(mesh, spec, AxisType.Explicit)
    x = jax.ShapeDtypeStruct((rows, 8), np.float32, sharding=sharding)
    with jax.set_mesh(sharding.mesh):
        return jax.eval_shape(call, x)


pad = partial(dmljax.padding, start_padding=(1, 0), end_padding=(2, 0))


def test_limits_of_explicit_axes():
    for call in (dmljax.nonzero_coordinates, pad):
        with pytest.raises(
            NotImplementedError, match=r"\{4,8\} is unreduced .*reshard"
        ):
            type_of(call, "8", P(unreduced={"a"}), 4)
    # Planted faults: the 2 devices along the first of two mesh axes; the 2 mesh axes.
    with pytest.raises(DescriptorError, match=r"8 devices can't share the 12 "):
        type_of(partial(pad, end_padding=(3, 0)), "2x4", P(("a", "b")), 8)


def test_a_dimension_of_size_1_is_whole():
    """A planted fault: a mesh axis of size 1 divides it, and the call is XLA's."""
    assert type_of(pad, "1x2", P("a", "b"), 1).sharding.spec == P(None, "b")


@needs_kernels
def test_the_lines_of_the_message_run_the_kernel():
    """Over automatic axes, where XLA divides the call."""
    find = partial(dmljax.nonzero_coordinates, size=2)

    def f(x):
        return jax.vmap(partial(find, implementation="pallas"))(x)

    mask = np.arange(64).reshape(8, 8) % 5 == 0
    x = jax.device_put(mask, sharding_of("8", P("a")))
    with pytest.raises(DescriptorError) as caught:
        jax.jit(f).lower(x)
    _, *lines = str(caught.value).splitlines()
    names = {"jax": jax, "x": x, "f": f}
    exec(textwrap.dedent("\n".join(lines)), names)
    assert_equal(names["outputs"], jax.vmap(find)(mask))


@pytest.mark.usefixtures("plain_kernels")
@pytest.mark.parametrize("name", ["vmap", "parts"])
def test_a_kernel_runs_where_one_of_two_axes_is_manual(name):
    case = CASES[f"nonzero_coordinates, {name}"]
    function = partial(case.function, implementation="pallas")
    with_kernel = dataclasses.replace(case, function=function)
    check_both(with_kernel, "2x4", P("a"), AxisType.Explicit)


@pytest.mark.skipif(jax.device_count() < 4, reason="there are fewer devices here")
def test_automatic_axes_beside_explicit_axes_stay():
    """Each device gathers a tensor along the explicit axis, and keeps its batch."""
    kinds = AxisType.Explicit, AxisType.Auto
    devices = jax.devices()[:4]
    mesh = jax.make_mesh((2, 2), ("a", "b"), axis_types=kinds, devices=devices)
    with jax.set_mesh(mesh):
        function = jax.vmap(dmljax.nonzero_coordinates)
        sharding = NamedSharding(mesh, P("b", "a"))
        _, (_, coordinates) = run(function, sharding, array(shape=(4, 16)))
    assert coordinates.sharding.spec[0] == "b"
