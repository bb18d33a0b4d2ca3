"""Pallas kernels of NONZERO_COORDINATES and PADDING; not public.

A *kernel* is a function that many programs run at once, each on its share of an array.
`gpu` has the kernels for NVIDIA GPUs: Pallas compiles them through Mosaic GPU. `tpu`
has the kernel of NONZERO_COORDINATES for TPUs, which is compiled through Mosaic. A
kernel's file offers its operator one more form. docs/development/design.md defines
*form*, *line* and *row*.

Here belongs how a form runs on such hardware. The formulas of the operators are in
`dmljax._padding_forms` and `dmljax._nonzero_forms`; the kernels for GPUs repeat them
for numbers without a sign.
`dmljax._primitive` chooses the form, and imports a kernel when it is lowered.

All files use these words in one sense each. `gpu` and `tpu` define more of them.

- *program*: one run of a kernel, for one point of the grid.
- *plan*: the sizes, types and attributes of a call, and all that follows from them
  before it runs. A kernel takes it as a static argument, so that Mosaic sees constants.
- *offset*: how many elements lie before one in a line, or in another flat array.
- *position*: the coordinate of an element along one dimension.
"""
