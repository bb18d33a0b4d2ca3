"""Where a kernel is the default."""

KERNEL_FROM: dict[str, dict[str, dict[int, int]]] = {
    "cuda": {"nonzero_coordinates": {1: 4096, 2: 4096, 4: 4096}},
}
