"""Kernels for NVIDIA GPUs, through Mosaic GPU; not public."""
