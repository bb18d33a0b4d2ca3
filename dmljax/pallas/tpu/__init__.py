"""Kernels for TPUs, through Mosaic, one file for each operator; not public."""
