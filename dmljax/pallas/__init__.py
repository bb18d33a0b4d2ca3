"""Pallas kernels, one file for each operator that gains from one; not public."""
