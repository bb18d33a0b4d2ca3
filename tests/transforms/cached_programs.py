"""Compiles sharded programs of every operator with JAX's persistent compilation cache.

    python -m tests.transforms.cached_programs FOLDER

prints how many programs the cache in the folder held, and how many it did not.
test_sharded_programs.py runs it twice: the second process must find every program.
"""

import collections
import sys

import jax

from tests import conftest, meshes  # noqa: F401  (conftest makes eight CPU devices)
from tests.meshes import P
from tests.transforms.test_sharded_programs import KEPT

PREFIX = "/jax/compilation_cache/"
EVENTS = (f"{PREFIX}cache_hits", f"{PREFIX}cache_misses")


def main(folder: str) -> None:
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    seen: collections.Counter[str] = collections.Counter()
    sharding = meshes.sharding_of("2", P("a"))
    programs = []
    for case in map(meshes.CASES.get, KEPT):
        programs.append((case.function, case.arrays))
        if case.differentiable:
            programs.append(meshes.pulled_back(case))
    jax.monitoring.register_event_listener(lambda event, **_: seen.update([event]))
    for function, arrays in programs:
        placed = [
            jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding) for x in arrays
        ]
        jax.jit(function).lower(*placed).compile()
    print(*(seen[event] for event in EVENTS))


if __name__ == "__main__":
    main(sys.argv[1])
