"""A case for each line of the tables about sharding, over the devices of two processes.

test_sharded_programs.py starts both processes. Each compares its parts of the results
with those of one process.
"""

import sys

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P


def placed(arrays, sharding):
    make = jax.make_array_from_callback
    return [make(x.shape, sharding, x.__getitem__) for x in arrays]


def all_cases(devices):
    """The outputs over eight devices, with automatic and with explicit axes."""
    # This import starts JAX's backends: the processes have to meet before.
    from tests.meshes import CASES, pulled_back

    cases = {case.row: case for case in CASES.values() if case.fits((8, 1, 1))}
    calls = [(case.function, case.arrays) for case in cases.values()]
    calls += [pulled_back(case) for case in cases.values() if case.differentiable]

    @jax.jit
    def run(inputs):
        return [f(*x) for (f, _), x in zip(calls, inputs, strict=True)]

    outputs = []
    for kind in (AxisType.Auto, AxisType.Explicit):
        sharding = NamedSharding(Mesh(devices, ("a",), axis_types=(kind,)), P("a"))
        inputs = [placed(arrays, sharding) for _, arrays in calls]
        outputs += jax.tree.leaves(run(inputs))
    return outputs


if __name__ == "__main__":
    address, process, expected = sys.argv[1:]
    jax.distributed.initialize(address, 2, int(process))
    outputs = all_cases(jax.devices())
    wholes = np.load(expected).values()
    for output, whole in zip(outputs, wholes, strict=True):
        assert len(output.addressable_shards) == 4
        for shard in output.addressable_shards:
            np.testing.assert_array_equal(shard.data, whole[shard.index])
