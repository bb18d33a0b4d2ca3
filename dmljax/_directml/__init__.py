"""DirectML's own terms: tensors in buffers, feature levels, structs, JSON, descriptors.

Nothing here computes an operator: a descriptor calls the operator of the lower floor.
The descriptors of each operator have a module. Model files are in `_model`.
"""
