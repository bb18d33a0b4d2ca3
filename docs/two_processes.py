"""Compacts tokens that two processes share: jax.distributed on one machine.

    python docs/two_processes.py

This starts both and prints what each of them finds. On several machines, each would
call `work` with the address of the first one.
"""

import os
import socket
import subprocess
import sys

PROCESSES, DEVICES, TOKENS = 2, 4, 32  # four devices in each process


def work(address: str, process: int) -> None:
    """What each process does: the same program, on the devices that it has."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import AxisType, NamedSharding, PartitionSpec

    import dmljax

    jax.distributed.initialize(address, PROCESSES, process)
    devices = len(jax.devices())
    mesh = jax.make_mesh((devices,), ("tokens",), axis_types=(AxisType.Auto,))
    sharding = NamedSharding(mesh, PartitionSpec("tokens"))
    keep = np.arange(TOKENS) % 3 == 0
    keep = jax.make_array_from_callback(keep.shape, sharding, lambda part: keep[part])

    @jax.jit
    def compact(keep: jax.Array) -> tuple[jax.Array, ...]:
        """Without gaps, and part by part; and strips from one process to the other."""
        whole = dmljax.nonzero_coordinates(keep)
        parts = dmljax.nonzero_coordinates(keep, parts=devices)
        wrap = dmljax.PaddingMode.WRAP
        padded = dmljax.padding(keep, (devices,), (0,), mode=wrap)
        return (*whole, *parts, jnp.where(padded, 1, 0))

    count, rows, counts, _, padded = compact(keep)
    found = [
        f"process {process} of {PROCESSES}, {devices} devices: {count} tokens kept"
    ]
    for name, array in (("rows", rows), ("counts", counts), ("padded", padded)):
        # A device that has all of an array has the same as the others.
        shards = {
            shard.index[0].start or 0: shard for shard in array.addressable_shards
        }
        values = np.concatenate([np.ravel(shards[i].data) for i in sorted(shards)])
        found.append(f"process {process}, {name}: {values.tolist()}")
    print("\n".join(found), flush=True)  # at once: the other process prints as well


def main() -> None:
    """Starts the processes, each with CPU devices that are simulated."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        address = f"localhost:{free.getsockname()[1]}"
    flags = f"--xla_force_host_platform_device_count={DEVICES}"
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags}
    command = [sys.executable, __file__, address]
    running = [
        subprocess.Popen([*command, str(process)], env=environment)
        for process in range(PROCESSES)
    ]
    sys.exit(max(abs(process.wait()) for process in running))


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    work(sys.argv[1], int(sys.argv[2]))
