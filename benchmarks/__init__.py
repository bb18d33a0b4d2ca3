"""Benchmarks: the cost of each operator beside other libraries, in one run."""
