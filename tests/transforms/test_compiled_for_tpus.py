"""The kernels for TPUs compiled to machine code, without a TPU.

The tests need `pip install libtpu`, of the version that `jax[tpu]` asks for. It is
large, so this check is separate:

    JAX_PLATFORMS=cpu python -m pytest tests/transforms/test_compiled_for_tpus.py
"""

import dataclasses
import functools
import importlib.util
import os

import jax
import numpy as np
import pytest
from jax.experimental import topologies
from jax.sharding import AxisType, SingleDeviceSharding

from dmljax import DescriptorError
from tests import meshes
from tests.checks import needs_x64, struct
from tests.pallas.nonzero import by_kernel as find
from tests.transforms.test_compiled_for_gpus import check_sent
from tests.transforms.test_kernels import USES

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("libtpu") is None or jax.default_backend() != "cpu",
    reason="the compiler for TPUs is not installed, or there is an accelerator",
)
each_chip = pytest.mark.parametrize("chip", ["v5e", "v6e"])
# The compiler reads these: there is no TPU to ask, and other processes may have loaded
# the compiler.
ENVIRONMENT = {
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_WORKER_HOSTNAMES": "localhost",
}


@functools.cache
def devices(chip):
    """Chips to compile for."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    name = f"{chip}:2x2"  # for the compiler
    topology = topologies.get_topology_desc(platform="tpu", topology_name=name)
    return np.array(topology.devices)


def compiled(function, chip, *arrays):
    """The program for one chip."""
    one = SingleDeviceSharding(devices(chip)[0])
    placed = [x.update(sharding=one) for x in arrays]
    return jax.jit(function).lower(*placed).compile()


def kernels(program):
    """How many kernels of ours a compiled program has."""
    lines = program.as_text().splitlines()
    return sum("tpu_custom_call" in x and "%dmljax_nonzero" in x for x in lines)


def check(sample, chip):
    arrays = [struct(x.dtype, *x.shape) for x in sample.arrays()]
    program = compiled(lambda *x: sample.run(*x), chip, *arrays)
    # XLA removes a kernel whose results are empty.
    found = jax.tree.leaves((arrays, program.out_info))
    assert kernels(program) == all(x.size for x in found)


@each_chip
def test_samples_and_edges(chip):
    for sample in USES:
        with jax.enable_x64(needs_x64(sample)):
            check(sample, chip)


@pytest.mark.parametrize("shape", [(100, 1100), (3, 40_000)])
@each_chip
def test_blocks_of_nonzero_coordinates(chip, shape):
    batch = jax.vmap(find) if shape[0] == 3 else find
    program = compiled(batch, chip, struct(np.float32, *shape))
    assert kernels(program) == 1


def test_no_memory_of_all_rows():
    """There are only two copies of the elements, of 2 bytes each."""
    x = struct(np.float32, 128, 2**20)
    program = compiled(jax.vmap(functools.partial(find, size=1024)), "v5e", x)
    assert program.memory_analysis().temp_size_in_bytes <= 4.1 * x.size


@pytest.mark.parametrize("implementation", ["xla", "pallas"])
@meshes.divisions("4", "2x2")
def test_four_chips_communicate_as_the_page_says(case, mesh, spec, implementation):
    """With explicit axes, each chip runs the operator in a shard_map: a kernel, too.

    XLA can't divide a kernel: a call that XLA divides is refused.
    """
    operator, _ = case.row
    if operator.startswith("`nonzero_coordinates`"):
        function = functools.partial(case.function, implementation=implementation)
        case = dataclasses.replace(case, function=function)
    elif implementation == "pallas":
        pytest.skip("this operator has no kernel for TPUs")
    sent = functools.partial(
        check_sent, devices("v5e"), case, mesh, spec, AxisType.Explicit
    )
    words = meshes.table("nonzero_coordinates").get(case.row, {})
    by_xla = words.get(AxisType.Explicit) == "counts"
    if by_xla and implementation == "pallas":
        with pytest.raises(DescriptorError, match="XLA may divide these arrays"):
            sent()
    else:
        assert ("dmljax_" in sent()) == (implementation == "pallas")
