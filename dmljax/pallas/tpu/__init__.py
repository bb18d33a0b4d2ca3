"""Kernels for TPUs, through Mosaic, one file for each operator; not public.

`_blocks` is the frame of the three operators that select. `_padding` and
`_nonzero_coordinates` have kernels of their own. The words of the parent package hold
here too. What else a reader needs to know of a TPU:

- Its *vector memory* has 16 MiB. A pipeline copies blocks of the arrays there and back
  while the kernel works on other ones. Scalars have a memory of their own, SMEM.
- A register holds a *tile* of the last two dimensions: 128 *lanes* of the last one, and
  8, 16 or 32 rows, which are *sublanes*, of elements of 4, 2 or 1 bytes. An array takes
  whole tiles in memory, so a last dimension of size 1 takes 128 times its bytes.
- The last two dimensions are *minor*, all others are *leading*.
- A gather works only within a tile. There is no scatter and no cumulative sum.

No kernel here was run on a chip. docs/tpu.md says how they were verified, and on which
estimates the defaults rest.
"""
