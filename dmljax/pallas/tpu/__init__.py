"""The kernel for TPUs, through Mosaic; not public.

A reader needs to know this of a TPU
(https://docs.jax.dev/en/latest/pallas/tpu/details.html has more):

- A program has a *block* of each array in *vector memory*, of 16 MiB. A pipeline copies
  blocks there and back while the kernel works on other ones. Scalars have a memory of
  their own, SMEM.
- A *register* has 128 *lanes* along the last dimension, and 8, 16 or 32 *sublanes*
  along the one before it, of elements of 4, 2 or 1 bytes. An array fills whole ones in
  memory, so a last dimension of size 1 takes 128 times its bytes.
- The last two dimensions are *minor*, all others are *leading*.
- A gather works only within a register. There is no scatter and no cumulative sum.

We have not run the kernel on a chip. docs/how_to/implementation.md says how we checked
it.

Here belong words and numbers of the hardware. Code for a TPU does not.
"""

LANES = 128  # columns of a register
SUBLANES = 8  # rows of a register of int32
