"""Random descriptors, calls and model files, drawn by the library hypothesis.

`nox -s fuzz` draws more than the session `slow`, and new ones in each run.
"""
