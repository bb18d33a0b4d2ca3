"""Pallas kernels of NONZERO_COORDINATES; not public.

A *kernel* is a function that many programs run at once, each on its share of an array.
`gpu` has the kernels for NVIDIA GPUs, through Mosaic GPU. `tpu` has the kernel for
TPUs, through Mosaic. A kernel is one more form of its operator:
docs/development/design.md defines *form*, *line* and *row*. The formulas are in
`dmljax._nonzero_forms`; the kernels for GPUs repeat them for numbers without a sign.
`dmljax._nonzero_kernels` chooses a kernel, and imports it when it is lowered.

All files use each of these words in one sense. `gpu` defines more words.

- *program*: one run of a kernel, for one point of the grid.
- *plan*: the sizes, types and attributes of a call, and all that follows from them
  before it runs. A kernel takes it as a static argument, so that Mosaic sees constants.
- *offset*: how many elements lie before one in a line, or in another flat array.
"""
