"""The compiler for TPUs, which runs without a TPU if libtpu is installed."""

import functools
import os

import jax
from jax.experimental import topologies
from jax.sharding import SingleDeviceSharding

# The compiler's names of the chips.
CHIPS = {"v5e": "v5e:2x2", "v6e": "v6e:2x2"}
CHIP = "v5e"
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
    topology = topologies.get_topology_desc(platform="tpu", topology_name=CHIPS[chip])
    return list(topology.devices)


def compiled(function, chip, *arrays):
    """The program for one chip."""
    one = SingleDeviceSharding(devices(chip)[0])
    placed = [x.update(sharding=one) for x in arrays]
    return jax.jit(function).lower(*placed).compile()
