KERNEL_FROM: dict[str, dict[str, dict[str, dict[int, int]]]] = {
    "cuda": {
        "alone": {
            "diagonal_matrix1": {1: 0, 2: 0, 4: 0},
            "element_wise_if": {1: 0, 2: 0, 4: 0},
            "nonzero_coordinates": {1: 4096, 2: 2048, 4: 1024},
            "one_hot": {1: 0, 2: 0, 4: 0},
        },
        "pipeline": {
            "nonzero_coordinates": {1: 4096, 2: 2048, 4: 1024},
        },
    },
}
