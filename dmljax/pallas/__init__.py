"""Pallas kernels of NONZERO_COORDINATES; not public.

A *kernel* is code that many programs run at once, each for a part of an array.
`gpu` has the kernels for NVIDIA GPUs, through Mosaic GPU. `tpu` has the kernel for
TPUs, through Mosaic. A kernel is one more form of its operator:
docs/development/design.md defines *form*, *line* and *row*. The formulas are in
`dmljax._nonzero_forms`; the kernels for GPUs repeat them for the numbers of a thread.
`dmljax._nonzero_kernels` chooses and imports a kernel when a call is lowered.

All files use each of these words in one sense. `gpu` defines more words.

- *program*: one run of a kernel, for one point of the grid.
- *plan*: the sizes, types and attributes of a call, and what follows from them before a
  run. A kernel takes the plan as a static argument: Mosaic sees constants.
- *offset* of an element: the number of elements before it in a line, or in another flat
  array.
"""
