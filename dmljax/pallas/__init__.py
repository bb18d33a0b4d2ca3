"""Pallas kernels, one file for each operator that gains from one; not public.

A *kernel* is a function that many programs run at once, each on its share of an array.
This folder has the kernels for NVIDIA GPUs, which Pallas compiles through Mosaic GPU,
and `tpu` has those for TPUs. A kernel's file offers its operator one more *form*: a
function of whole arrays (`dmljax._tensor.Form`). Here belongs how a form runs on such
hardware. What an operator computes is in `dmljax._coordinates`; the kernels for GPUs
repeat it for numbers without a sign. `dmljax._primitive` chooses the form.

Read `_launch` first, which makes every call of Pallas. `_elementwise` and `tpu._blocks`
are frames that several operators share. Kernels for GPUs say what one thread does:
`_threads` has the operations of a thread, and `_lockstep` runs such kernels on a CPU.

All files use these words in one sense each:

- *program*: one run of a kernel's body, for one point of the grid.
- *plan*: what is known about a call before it runs, such as sizes and types. A kernel
  takes it as a static argument, so that Mosaic sees constants.
- *block*: what one program handles. *tile*: on a GPU, what a warp handles; on a TPU,
  the rows and columns of an array that share vector registers.
- *chunk*: neighbouring elements of the output that a thread of a GPU stores at once.
- *position*: the coordinate of an element along one dimension.
- *offset*: how many elements, or words, lie before one in a flat array.
- *shared*: an operand is shared along a dimension if it has size 1 there while the
  output has more. All output elements along it then read the same element.
- *bits*: an integer that has the same bits as an element, whatever its type.
- *word*: 32 bits of a GPU's memory: one, two or four neighbouring elements, of which
  the first has the lowest bits.
- *bit word*: 32 bits that say which of 32 elements are not zero. Only the files
  `_nonzero_*` have them.
"""

WARP = 32  # the threads of a GPU that run together and can exchange values
