"""Model files: the JSON of DxDispatch is read, checked, run and shown."""
