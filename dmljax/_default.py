"""From how many elements on a kernel is the default: by the figures.

By platform, context, operator and bytes of an element; where there is no
entry, XLA's form is the default. The elements are those of the largest input
or output. A call outside of jit and of every transformation is "alone".

`python -m benchmarks.choose` wrote this, from the ledgers
benchmarks/results/nvidia-h200.jsonl and tpu.jsonl: on a TPU nothing was measured,
the compiler's estimates decide.
"""

KERNEL_FROM: dict[str, dict[str, dict[str, dict[int, int]]]] = {
    "cuda": {
        "alone": {
            "diagonal_matrix1": {1: 65536, 2: 524176, 4: 16384},
            "element_wise_if": {1: 4096, 2: 2048, 4: 1024},
            "nonzero_coordinates": {1: 4096, 2: 32768, 4: 16384},
            "one_hot": {1: 65536, 2: 32768, 4: 16384},
            "padding": {1: 1074724, 2: 8586788},
        },
        "pipeline": {
            "nonzero_coordinates": {1: 4096, 2: 32768, 4: 16384},
        },
    },
    "tpu": {
        "alone": {
            "diagonal_matrix1": {1: 16777216},
            "nonzero_coordinates": {1: 65536, 2: 65536, 4: 65536},
            "padding": {2: 65667072, 4: 65667072},
        },
        "pipeline": {
            "nonzero_coordinates": {1: 65536, 2: 65536, 4: 65536},
        },
    },
}
