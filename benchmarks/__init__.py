"""Benchmarks: what each operator costs beside other libraries, in one run."""
