"""DirectML's own terms: tensors in buffers, feature levels, structs, JSON, descriptors.

The files here know no single operator. The descriptor of an operator stands below its
function, in the operator's file. Model files are read in `_model`.
"""
