"""DirectML's own terms: tensors in buffers, feature levels, structs, JSON, descriptors.

Nothing here computes an operator: a descriptor calls the function of its operator. The
descriptors of the operators stand beside the functions, in `_padding` and so on.
"""
