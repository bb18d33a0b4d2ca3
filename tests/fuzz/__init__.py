"""Random descriptors and model files, drawn by the library hypothesis.

``pytest tests/fuzz --hypothesis-profile=long`` draws more, and new ones in each run.
"""
