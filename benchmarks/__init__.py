"""Benchmarks: what each operator costs beside jax.numpy and NumPy, in one run."""
