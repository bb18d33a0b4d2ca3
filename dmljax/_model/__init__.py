"""Model files: the JSON of DxDispatch is read, checked, run and shown.

Here *the tool* is https://github.com/microsoft/DirectML/tree/master/DxDispatch.
"""
