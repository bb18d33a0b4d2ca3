"""A small run of every kernel, for compute-sanitizer: `python -m tests.sanitized`."""

import jax
import jax.numpy as jnp
import numpy as np

import dmljax


def main() -> None:
    """Runs each kernel on blocks that are whole and cut, aligned and not."""
    random = np.random.default_rng(0)
    for dtype in (np.float32, np.float16, np.uint8):
        for elements in (1, 8192, 20000, 20001):
            x = random.integers(0, 3, elements).astype(dtype)
            for density in (0.01, 0.9):
                y = jnp.asarray(np.where(random.random(elements) < density, x, 0))
                for fill in (0, None):
                    jax.block_until_ready(
                        dmljax.nonzero_coordinates(
                            y.astype(dtype), fill=fill, implementation="pallas"
                        )
                    )
            condition = random.integers(0, 2, elements).astype(np.uint8)
            dmljax.element_wise_if(condition, x, x, implementation="pallas")
        matrix = random.integers(0, 9, (3, 65, 127)).astype(dtype)
        dmljax.diagonal_matrix1(matrix, value=1, implementation="pallas")
        dmljax.nonzero_coordinates(matrix, implementation="pallas")
        values = np.array([0, 1], dtype)
        for shape, axis in (((300, 1, 7), 1), ((333, 1), 1), ((1, 2049), 0)):
            indices = random.integers(-40, 40, shape).astype(np.int32)
            dmljax.one_hot(
                indices, values, size=33, axis=axis, implementation="pallas"
            ).block_until_ready()
        for shape, pads in (((7, 65, 128), (0, 3, 3)), ((5, 33, 21, 3), (1, 2, 9, 0))):
            image = random.integers(0, 9, shape).astype(dtype)
            for mode in dmljax.PaddingMode:
                dmljax.padding(
                    image, pads, pads, mode=mode, implementation="pallas"
                ).block_until_ready()
    print("every kernel ran")


if __name__ == "__main__":
    main()
