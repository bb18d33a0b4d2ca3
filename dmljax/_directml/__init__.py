"""DirectML's own terms: tensors in buffers, feature levels, structs, JSON, descriptors.

Nothing here knows an operator. Its descriptor stands below its function, in the file of
the operator. Model files are in `_model`.
"""
